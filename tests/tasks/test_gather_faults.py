"""Planted faults of `gather`: one wrong cell, whose culprit is known exactly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks.faults import Blame
from stretto.tasks.gather import Gather, flaw_of, instance_of
from stretto.tasks.gather.blame import blame
from stretto.tasks.gather.instance import standing
from stretto.tasks.gather.scripts import ROLES, scripts
from stretto.tasks.scripts import everyone, offered
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout
from stretto.team.interventions import Replace
from stretto.team.replay import replay
from stretto.team.what_if import what_if

FAULTS = pytest.mark.parametrize("fault", ["read", "report"])
ONE_CELL = {"entities": 1, "attributes": 1, "redundancy": 10.0, "wrong": 1.0}


def play(task, script="oracle", seed=0):
    return rollout(task, scripts(task)[script], [seed])[0]


def set_right(task):
    """What the culprit event would have said without the fault."""
    flaw, instance = flaw_of(task), instance_of(task)
    if task.fault == "report":
        return Replace("Written.", {"cell": flaw.cell, "value": instance.truth[flaw.cell]})
    document = instance.documents[flaw.document]
    statements = dict(document.statements)
    facts = {"doc": document.name, "title": document.title, "statements": statements}
    return Replace(document.text, facts)


@pytest.mark.parametrize("seed", range(8))
def test_a_flaw_lies_in_the_best_source_and_says_what_nobody_says(seed):
    task = Gather(seed=seed)
    flaw, instance = flaw_of(task), instance_of(task)
    sources = [d for d in instance.documents.values() if flaw.cell in d.statements]
    ranks = sorted(standing(d.title) for d in sources)
    assert standing(instance.documents[flaw.document].title) == ranks[-1]
    assert ranks[-1] not in ranks[:-1]
    assert flaw.value not in {d.statements[flaw.cell] for d in sources}


def test_a_flaw_does_not_depend_on_who_plays():
    other = {"topology": "debate", "fault": "read", "workers": 9, "second_cost": 0.5}
    assert flaw_of(Gather(seed=4)) == flaw_of(Gather(seed=4, **other))
    assert flaw_of(Gather(seed=4)) != flaw_of(Gather(seed=5))


@FAULTS
@pytest.mark.parametrize("topology", NAMES)
def test_a_culprit_set_right_makes_the_table_right(fault, topology):
    for seed in range(4):
        task = Gather(fault=fault, topology=topology, seed=seed)
        trace, flaw = play(task), flaw_of(task)
        cells = len(instance_of(task).truth)
        assert trace.reward("outcome") == pytest.approx(1 - 1 / cells)
        found = blame(task, trace)
        event = trace.events[trace.columns.row[found.event]]
        assert (event.agent, event.kind) == (found.agent, "tool_result")
        assert flaw.value in trace.text(event.content) or fault == "report"
        policies = scripts(task)["oracle"]
        other = what_if(trace, found.event, set_right(task), task=task, policies=policies)
        assert other.trace.reward("outcome") == 1.0
        assert blame(task, other.trace) is None


@FAULTS
def test_twins_are_alike_until_the_culprit(fault):
    task = Gather(fault=fault, seed=2)
    trace, clean = play(task), play(replace(task, fault=None))
    pairs = zip(trace.events, clean.events, strict=False)
    first = next(here for here, there in pairs if here != there)
    assert first.id == blame(task, trace).event


@FAULTS
@pytest.mark.parametrize("script", ["oracle", "solo", "greedy", "random"])
@given(
    seed=st.integers(0, 10**6),
    topology=st.sampled_from(NAMES),
    size=st.sampled_from([{}, ONE_CELL, {"entities": 1}, {"redundancy": 8.0, "wrong": 1.0}]),
)
@settings(max_examples=12, deadline=None)
def test_blame_is_due_where_and_only_where_harm_was_done(fault, script, seed, topology, size):
    task = Gather(**size, fault=fault, topology=topology, seed=seed)
    policies = scripts(task)[script]
    trace = play(task, script)
    found = blame(task, trace)
    clean = play(replace(task, fault=None), script)
    assert replay(trace, task) is None
    if script in ("oracle", "solo"):
        assert (found is not None) == (trace.reward("outcome") < 1.0)
    if found is None:
        assert script == "random" or trace.reward("outcome") == clean.reward("outcome")
    else:
        other = what_if(trace, found.event, set_right(task), task=task, policies=policies)
        assert other.trace.reward("outcome") == clean.reward("outcome")


def test_a_lone_lead_can_be_told_wrongly_and_reports_nothing():
    told, silent = Gather(fault="read", seed=1), Gather(fault="report", seed=1)
    assert blame(told, play(told, "solo")).agent == "0"
    assert play(silent, "solo").events == play(Gather(seed=1), "solo").events
    assert blame(silent, play(silent, "solo")) is None


def test_only_who_has_the_cell_to_fill_is_told_wrongly():
    """A peer that reads the same document for other cells sees it as it is."""
    for seed in range(30):
        task = Gather(fault="read", seed=seed, cells_per_document=6)
        trace, flaw = play(task), flaw_of(task)
        owner = blame(task, trace).agent
        reads = [e for e in trace.events if e.kind == "tool_result" and e.tool == "read"]
        said = {e.agent: e.attrs["statements"] for e in reads if e.attrs["doc"] == flaw.document}
        if len(said) > 1:
            right = instance_of(task).truth[flaw.cell]
            assert {a: s[flaw.cell] for a, s in said.items()} == {
                a: flaw.value if a == owner else right for a in said
            }
            return
    pytest.fail("no document was read by two")


def test_what_a_worker_meant_is_on_record_and_what_it_wrote_is_in_the_table():
    task = Gather(fault="report", seed=3)
    trace, flaw = play(task), flaw_of(task)
    culprit = trace.events[trace.columns.row[blame(task, trace).event]]
    assert culprit.attrs == {
        "cell": flaw.cell,
        "value": flaw.value,
        "meant": instance_of(task).truth[flaw.cell],
    }
    report = next(e for e in trace.events if e.kind == "return" and e.agent == culprit.agent)
    assert report.attrs["filled"][flaw.cell] == flaw.value


def test_nobody_is_to_blame_without_a_fault_or_without_a_write():
    assert blame(Gather(), play(Gather())) is None
    lazy = everyone(
        ROLES, Scripted(lambda ask: offered(ask, "submit", "return", "leave", "drop")[0])
    )
    for fault in ("read", "report"):
        task = Gather(fault=fault)
        assert blame(task, rollout(task, lazy, [0])[0]) is None


def test_a_culprit_names_agent_and_event():
    task = Gather(fault="report", entities=1, attributes=1, redundancy=1)
    assert blame(task, play(task)) == Blame("0/0", "0/0#8")
