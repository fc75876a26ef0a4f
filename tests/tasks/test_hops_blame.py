"""Which planted mistakes of `hops` did harm: set right where blamed, they set the answer right."""

from collections import Counter

import pytest
from msgspec.structs import replace

from stretto.tasks import topology
from stretto.tasks.hops import Hops, instance_of
from stretto.tasks.hops.oracle import best_answer, blame
from stretto.tasks.nest import Nest
from stretto.tasks.nest.oracle import exact
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.team.interventions import Replace
from stretto.team.what_if import what_if

FAULTS = pytest.mark.parametrize("fault", ["lookup", "report"])


def run(task, script="oracle"):
    return rollout(task, scripts_of(task)[script], [0])[0]


def set_right(task, trace, found, script="oracle"):
    """Outcome of the world in which the blamed event says what is so."""
    event = trace.events[trace.columns.row[found.event]]
    stage = instance_of(task).stages[0]
    right = list(stage.ends[stage.decisive])
    attrs = dict(event.attrs)
    if task.fault == "lookup":
        attrs["found"] = right
    else:
        attrs["ends"] = {**attrs["ends"], str(stage.decisive): right}
    policies = scripts_of(task)[script]
    return what_if(trace, found.event, Replace("", attrs), task=task, policies=policies).trace


@FAULTS
@pytest.mark.parametrize("query", ["compare", "meet"])
@pytest.mark.parametrize("width", [2, 3, 4, 6])
def test_blamed_exactly_where_the_answer_is_wrong_by_it(query, width, fault):
    for seed in range(12):
        task = Hops(width=width, query=query, depth=2, fault=fault, seed=seed, worker_cost=0.0)
        trace = run(task)
        found = blame(task, trace)
        assert (found is not None) == (trace.reward("outcome") == 0.0)
        if found:
            assert set_right(task, trace, found).reward("outcome") == 1.0


@FAULTS
@pytest.mark.parametrize("name", topology.NAMES)
def test_in_every_topology(name, fault):
    for seed in range(4):
        task = Hops(width=3, depth=2, fault=fault, seed=seed, worker_cost=0.0, topology=name)
        trace = run(task)
        found = blame(task, trace)
        assert found is not None
        assert set_right(task, trace, found).reward("outcome") == 1.0


def test_more_lists_outvote_a_wrong_one():
    outcomes = Counter()
    for seed in range(40):
        task = Hops(width=4, query="meet", fault="lookup", seed=seed)
        trace = run(task)
        outcomes[trace.reward("outcome"), blame(task, trace) is None] += 1
    assert set(outcomes) == {(1.0, True), (0.0, False)}  # three names against three
    for seed in range(8):
        assert blame(task, run(Hops(width=6, query="meet", fault="lookup", seed=seed))) is None


def test_who_answers_without_the_comparison_errs_by_itself():
    for seed in range(20):
        task = Hops(fault="lookup", width=3, seed=seed)
        trace = run(task, "greedy")
        assert trace.reward("outcome") == 0.0
        assert blame(task, trace) is None


@pytest.mark.parametrize("script", ["silent", "random", "blind"])
def test_nobody_is_blamed_for_what_never_arrived(script):
    for seed in range(8):
        task = Hops(fault="report", width=3, depth=1, worker_cost=0.0, seed=seed)
        trace = run(task, script)
        found = blame(task, trace)
        assert found is None or trace.reward("outcome") == 0.0
        assert script != "silent" or found is None


def test_the_branch_of_a_fault_is_any_one():
    for query in ("compare", "meet"):
        stages = [instance_of(Hops(query=query, seed=seed)).stages[0] for seed in range(80)]
        places = Counter(stage.decisive for stage in stages)
        assert set(places) == set(range(4))
        assert max(places.values()) < 36


def test_a_nest_blames_as_its_jobs_do():
    inner = {"family": "hops", "width": 6, "query": "meet", "fault": "lookup", "depth": 2}
    task = Nest(inner=(inner,), jobs=3)
    assert exact(task, run(task)).blame == {}


@FAULTS
def test_names_of_agents_change_no_blame(fault):
    task = Hops(width=3, depth=2, fault=fault, worker_cost=0.0)
    trace = run(task)
    found = blame(task, trace)
    other = replace(
        trace,
        agents=tuple(replace(a, id=f"a{a.id}", parent=a.parent and f"a{a.parent}")
                     for a in trace.agents),
        events=tuple(replace(e, agent=f"a{e.agent}", to=e.to and f"a{e.to}") for e in trace.events),
    )  # fmt: skip
    assert blame(task, other) == replace(found, agent=f"a{found.agent}")


def test_an_exact_receiver_of_nothing_is_never_right():
    assert best_answer(instance_of(Hops()), 0, []) == 0.0
