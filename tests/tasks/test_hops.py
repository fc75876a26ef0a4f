"""The hop family: questions, the game, and its exact side."""

from itertools import chain, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks import topology
from stretto.tasks.conformance import check_task
from stretto.tasks.hops import Hops, instance_of, necessary_facts
from stretto.tasks.hops import instance as hops_instance
from stretto.tasks.hops import oracle as hops_oracle
from stretto.tasks.hops.instance import HEIRS, heirs_like, walk
from stretto.tasks.hops.oracle import (
    agent_values,
    best_plan,
    blame,
    ideal_speedup,
    makespan,
    message_value,
    plan,
    report_values,
    span,
    work,
)
from stretto.tasks.scripts import score, scripts_of
from stretto.team.engine import rollout
from stretto.team.interventions import Force, Null, Remove, Replace
from stretto.team.replay import replay
from stretto.team.what_if import what_if

QUESTIONS = st.builds(
    Hops,
    width=st.integers(1, 6),
    depth=st.integers(2, 4),
    stages=st.integers(1, 3),
    query=st.sampled_from(["compare", "meet"]),
    topology=st.sampled_from(topology.NAMES),
    seed=st.integers(0, 10**6),
)


def run(task, script="oracle", seed=0):
    return rollout(task, scripts_of(task)[script], [seed])[0]


def end_of(trace):
    return max((e.start or 0.0) + (e.duration or 0.0) for e in trace.events)


def choices(trace, agent):
    return [e.decision.choice for e in trace.events if e.decision and e.agent == agent]


# ---- the game


def test_one_path_by_hand():
    task = Hops(width=1, depth=2)
    (stage,) = instance_of(task).stages
    ((start,), (path,)) = stage.starts, stage.paths
    trace = run(task)
    first = trace.events[0].decision
    assert (
        trace.text(first.observation) == f"At: {start}.\nPath: {', '.join(path)}.\nOpen: one path."
    )
    assert {f"look {path[0]}", "spawn one"} < set(first.candidates)
    assert choices(trace, "0") == [f"look {path[0]}", f"look {path[1]}", f"answer {stage.answer}"]
    assert [(e.kind, e.start) for e in trace.events if e.kind != "decision"] == [
        ("tool_call", 0.0),
        ("tool_result", 1.0),
        ("tool_call", 1.0),
        ("tool_result", 2.0),
        ("aggregate", 2.0),
        ("stop", 2.0),
    ]
    assert {s.channel: s.value for s in trace.scores} == {
        "outcome": 1.0,
        "success": 1.0,
        "facts": 1.0,
    }


def test_two_workers_report_and_the_lead_compares():
    task = Hops(width=2, depth=2, worker_cost=0)
    (stage,) = instance_of(task).stages
    trace = run(task)
    assert choices(trace, "0") == ["spawn two", "compare", f"answer {stage.answer}"]
    assert choices(trace, "0/1") == [*(f"look {r}" for r in stage.paths[1]), "report"]
    texts = [trace.text(e.content) for e in trace.events if e.kind == "return"]
    assert texts == [f"End: {end}." for (end,) in stage.ends]
    assert end_of(trace) == 3.0 == span(task)


def test_a_wrong_turn_leads_astray_for_good():
    task = Hops(width=1, depth=2, seed=4)
    policies = scripts_of(task)["oracle"]
    trace = run(task)
    wrong = next(c for c in trace.events[0].decision.candidates if c not in choices(trace, "0"))
    found = what_if(trace, "0#0", Force(wrong), task=task, policies=policies)
    assert found.difference == -1.0
    assert found.trace.reward("facts") == 0.0


def test_an_answer_whose_end_was_taken_away_is_given_again():
    task = Hops(width=1, depth=2)
    trace = run(task)
    policies = scripts_of(task)["oracle"]
    again = what_if(trace, trace.events[-1].id, Remove(), task=task, policies=policies)
    assert again.trace.attrs["ended"] == "stop"
    assert again.difference == 0.0


def test_outcome_is_the_share_of_stages_before_the_first_mistake():
    task = Hops(width=2, depth=2, stages=3)
    trace = run(task)
    answers = [e.id for e in trace.events if e.kind == "aggregate"]
    for done, event in enumerate(answers):
        decision = next(edge.src for edge in trace.edges if edge.dst == event)
        row = trace.columns.row[decision]
        chosen = trace.events[row].decision
        other = next(c for c in chosen.candidates if c != chosen.choice)
        policies = scripts_of(task)["oracle"]
        world = what_if(trace, decision, Force(other), task=task, policies=policies).trace
        assert world.reward("outcome") == done / 3
        assert world.reward("success") == 0.0


def test_topologies_share_the_instance_and_differ_in_who_writes_to_whom():
    kinds = {}
    for name in topology.NAMES:
        task = Hops(width=4, depth=2, topology=name, worker_cost=0, second_cost=0.1)
        assert instance_of(task) is instance_of(Hops(width=4, depth=2))
        trace = run(task)
        assert trace.topology == name
        roles = [agent.role for agent in trace.agents]
        messages = sum(e.kind == "message" for e in trace.events)
        written = sum(e.tool == "memory.write" for e in trace.events) // 2
        kinds[name] = (roles.count("worker"), len(roles) - 1, messages, written)
    assert kinds == {
        "centralized": (4, 4, 0, 0),
        "planner_executor_critic": (4, 5, 0, 0),
        "debate": (4, 4, 12, 0),
        "swarm": (4, 4, 8, 0),
        "hierarchical": (4, 6, 0, 0),
        "harness": (4, 4, 0, 4),
    }


def test_what_is_read_from_memory_names_who_wrote_it():
    trace = run(Hops(width=3, depth=2, topology="harness", worker_cost=0))
    read = next(e.id for e in trace.events if e.tool == "memory.read" and e.kind == "tool_result")
    writers = {edge.src.partition("#")[0] for edge in trace.edges if edge.dst == read}
    assert {"0/0", "0/1", "0/2"} <= writers


@settings(max_examples=15, deadline=None)
@given(QUESTIONS)
def test_the_oracle_answers_and_takes_what_its_plan_says(task):
    trace = run(task)
    best = best_plan(task)
    assert trace.reward("success") == 1.0
    assert end_of(trace) == pytest.approx(best.seconds)
    assert sum(e.kind == "spawn" for e in trace.events) == best.agents
    assert score(task, trace, priced=True) == pytest.approx(best.utility)
    assert replay(trace, task) is None


@settings(max_examples=10, deadline=None)
@given(QUESTIONS, st.integers(0, 99))
def test_chance_never_breaks_the_rules(task, seed):
    trace = run(task, "random", seed)
    assert replay(trace, task) is None
    assert trace.attrs["ended"] == "stop"
    for event in trace.events:
        if event.decision:
            assert 1 <= len(event.decision.candidates) <= 9


# ---- instances


@settings(max_examples=15, deadline=None)
@given(QUESTIONS)
def test_a_question_is_what_its_graph_says(task):
    instance = instance_of(task)
    for number, stage in enumerate(instance.stages):
        found = [
            walk(instance, start, path)[-1]
            for start, path in zip(stage.starts, stage.paths, strict=True)
        ]
        assert tuple(found) == stage.ends
        assert all(len(path) == task.depth for path in stage.paths)
        ends = list(chain.from_iterable(stage.ends))
        if task.query == "meet" and task.width > 1:
            assert set.intersection(*map(set, stage.ends)) == {stage.answer}
            assert ends.count(stage.answer) == task.width
            assert len(set(ends)) == 2 * task.width + 1
        else:
            assert len(set(ends)) == task.width
            assert max(ends, key=instance.wealth) == stage.answer
        if number:
            assert set(stage.starts) == {instance.stages[number - 1].answer}
            assert [path[0] for path in stage.paths] == list(HEIRS[: task.width])
    assert len(necessary_facts(task)) == task.width * task.depth * task.stages


def test_heirs_are_offered_beside_their_neighbours():
    assert heirs_like("heir one") == ["heir one", "heir two", "heir three"]
    assert heirs_like("heir five") == ["heir four", "heir five", "heir six"]


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"width": 0}, "task.width"),
        ({"width": 901}, "task.width"),
        ({"width": 900, "depth": 9}, "task.width"),
        ({"depth": 0}, "task.depth"),
        ({"depth": 1, "query": "meet"}, "task.depth"),
        ({"stages": 0}, "task.stages"),
        ({"worker_cost": -1.0}, "task.worker_cost"),
        ({"second_cost": float("nan")}, "task.second_cost"),
        ({"topology": "star"}, "task.topology"),
    ],
)
def test_impossible_rules_are_refused(parameters, where):
    with pytest.raises(StrettoError) as caught:
        Hops(**parameters)
    assert caught.value.where == where


# ---- the exact side


def test_work_span_and_makespans_by_hand():
    task = Hops(width=4, depth=3)
    assert (work(task), span(task), ideal_speedup(task)) == (13.0, 4.0, 3.25)
    assert [makespan(task, agents) for agents in range(1, 6)] == [13.0, 7.0, 7.0, 4.0, 4.0]
    assert work(Hops(width=4, depth=3, stages=2, query="meet")) == 24.0
    with pytest.raises(StrettoError, match="0 agents"):
        makespan(task, 0)


def fastest(width, depth, agents):
    """Shortest schedule of whole branches, over every assignment."""
    loads = (
        [owners.count(agent) for agent in range(agents)]
        for owners in product(range(agents), repeat=width)
    )
    return min(max(load) for load in loads) * depth


@pytest.mark.parametrize("width", range(1, 6))
@pytest.mark.parametrize("agents", range(1, 5))
def test_the_even_split_is_the_fastest(width, agents):
    task = Hops(width=width, depth=2, query="meet")
    assert makespan(task, agents) == fastest(width, 2, agents)


def test_where_the_width_is_one_no_team_helps():
    for name in topology.NAMES:
        task = Hops(width=1, depth=4, stages=2, topology=name, worker_cost=0)
        assert ideal_speedup(task) == 1.0
        assert best_plan(task).workers == 0
        assert all(makespan(task, agents) == work(task) for agents in (1, 2, 8))
        assert plan(task, 1).seconds >= plan(task, 0).seconds
        alone = run(task, "solo")
        for seed in range(5):
            other = run(task, "random", seed)
            assert score(task, alone, True) >= score(task, other, True)


def test_wide_questions_are_worth_a_team():
    task = Hops(width=8, depth=3)
    assert best_plan(task).utility > plan(task, 0).utility
    assert score(task, run(task), True) > score(task, run(task, "solo"), True)


def test_only_the_report_of_the_richest_counts_in_a_comparison():
    task = Hops(width=3, depth=2)
    decisive = instance_of(task).stages[0].decisive
    assert [message_value(task, 0, [b]) for b in range(3)] == [
        float(b == decisive) for b in range(3)
    ]


def test_of_two_lists_each_counts_and_of_three_none():
    assert message_value(Hops(width=2, query="meet"), 0, [0]) == pytest.approx(2 / 3)
    assert message_value(Hops(width=3, query="meet"), 0, [0]) == 0.0
    assert message_value(Hops(width=3, query="meet"), 0, [0, 1]) == pytest.approx(2 / 3)
    assert message_value(Hops(width=2, query="meet", stages=2), 1, [0, 1]) == 0.5


@pytest.mark.parametrize("name", topology.NAMES)
def test_what_a_report_is_worth_is_what_the_team_loses_without_it(name):
    """A faultless receiver of a comparison behaves as the exact one does: replay agrees."""
    task = Hops(width=3, depth=2, topology=name, worker_cost=0)
    policies = scripts_of(task)["oracle"]
    trace = run(task)
    values = report_values(task, trace)
    assert sum(value == 1.0 for value in values.values()) == 1
    assert len(values) == 3 + sum(e.kind == "message" for e in trace.events)
    for event, value in values.items():
        do = Replace("End: none.", {"ends": {}})
        lost = what_if(trace, event, do, task=task, policies=policies)
        assert -lost.difference == value
        if trace.events[trace.columns.row[event]].kind == "message":
            assert what_if(trace, event, Null(), task=task, policies=policies).difference == 0.0


def test_shapley_values_by_hand():
    pair = Hops(width=2, query="meet")
    assert agent_values(pair, 0, {0: "a", 1: "b"}) == pytest.approx({"a": 0.5, "b": 0.5})
    three = Hops(width=3, query="meet")  # 1/3 for the first, 2/3 more for the second, then nothing
    assert agent_values(three, 0, {0: "a", 1: "b", 2: "c"}) == pytest.approx(
        dict.fromkeys("abc", 1 / 3)
    )
    task = Hops(width=3)
    decisive = instance_of(task).stages[0].decisive
    owners = {branch: "xyz"[branch] for branch in range(3)}
    expected = {name: float(name == owners[decisive]) for name in "xyz"}
    assert agent_values(task, 0, owners) == pytest.approx(expected)
    with pytest.raises(StrettoError, match="too many"):
        agent_values(Hops(width=20), 0, {b: str(b) for b in range(20)})


# ---- blame


@settings(max_examples=12, deadline=None)
@given(QUESTIONS, st.sampled_from(["lookup", "report"]))
def test_the_blamed_event_set_right_sets_the_answer_right(task, fault):
    task = replace(task, fault=fault, worker_cost=0.0, width=max(task.width, 2))
    if task.query == "meet":
        task = replace(task, width=2)  # of three lists, one may be wrong
    policies = scripts_of(task)["oracle"]
    trace = run(task)
    found = blame(task, trace)
    assert found is not None
    assert trace.reward("outcome") == 0.0
    event = trace.events[trace.columns.row[found.event]]
    assert event.agent == found.agent
    stage = instance_of(task).stages[0]
    right = list(stage.ends[stage.decisive])
    attrs = dict(event.attrs)
    if fault == "lookup":
        attrs["found"] = right
    else:
        attrs["ends"] = {**attrs["ends"], str(stage.decisive): right}
    mended = what_if(trace, found.event, Replace("", attrs), task=task, policies=policies)
    assert mended.trace.reward("outcome") == 1.0


def test_nobody_is_blamed_where_nothing_was_planted_or_nobody_reports():
    assert blame(Hops(), run(Hops())) is None
    task = Hops(fault="report")
    alone = run(task, "solo")
    assert blame(task, alone) is None
    assert alone.reward("outcome") == 1.0


@pytest.mark.parametrize("name", topology.NAMES)
@pytest.mark.parametrize("script", ["oracle", "greedy", "random", "blind", "silent", "solo"])
def test_a_remark_is_seen_and_moves_no_script(name, script):
    """The benign twin of a false report: in the same event, over the same way, to the same lead."""
    clean = Hops(width=4, depth=2, worker_cost=0.0, topology=name)
    twin, false = (replace(clean, fault=fault) for fault in ("remark", "report"))
    for seed in range(3):
        before, after = run(clean, script, seed), run(twin, script, seed)
        assert after.scores == before.scores
        assert [(e.id, e.start, e.kind) for e in after.events] == [
            (e.id, e.start, e.kind) for e in before.events
        ]
        chosen = [
            [e.decision.choice for e in trace.events if e.decision] for trace in (before, after)
        ]
        assert chosen[0] == chosen[1]
    assert blame(twin, after) is None
    if script == "oracle":
        culprit = blame(false, run(false)).event
        said = [e.id for e in after.events if "remark" in e.attrs and e.id == culprit]
        seen = [e.agent for e in after.events if e.decision and "Remark" in _prompt(after, e)]
        assert said == [culprit]
        assert "0" in seen


def _prompt(trace, event):
    return trace.text(event.decision.observation)


# ---- names


def test_few_names_are_made_and_all_can_be_found():
    instance = hops_instance.generate(width=4, depth=3, stages=1, query="compare", seed=5)
    assert len(instance.names._places) < 30
    names = list(hops_instance.Names(5))
    assert len(set(names)) == hops_instance.POPULATION
    fresh = hops_instance.Names(5)
    assert [fresh.place(names[place]) for place in (0, 17, 8_999)] == [0, 17, 8_999]
    assert fresh[17] == names[17]
    stage = instance.stages[0]
    assert all(instance.type_of(start) in hops_instance.TYPES for start in stage.starts)


# ---- the benchmark's rules


@pytest.mark.parametrize("name", topology.NAMES)
@pytest.mark.parametrize("query", ["compare", "meet"])
def test_the_family_conforms(name, query):
    found = check_task(Hops(width=3, depth=2, query=query, topology=name), episodes=12)
    assert found.normalised["solo"] == found.normalised["oracle"] == 1.0


def test_the_control_conforms():
    check_task(Hops(width=1), episodes=12)
    check_task(Hops(width=3, depth=2, stages=2), episodes=12)


def test_a_thousand_events():
    task = Hops(width=100, depth=4, worker_cost=0.0)
    trace = run(task)
    assert len(trace.events) > 1_000
    assert trace.reward("success") == 1.0
    assert hops_oracle.best_plan(task).workers == 100


# ---- edited traces


def repeated(trace, tool):
    """Every answer of a tool twice, the copy right behind it."""
    events = []
    for event in trace.events:
        same = event.kind == "tool_result" and event.tool == tool
        events += [event, replace(event, id=f"{event.id}x")] if same else [event]
    return replace(trace, events=tuple(events))


@pytest.mark.parametrize("tool", ["memory.write", "memory.read", "lookup"])
def test_what_is_asked_or_written_twice_is_no_second_report(tool):
    task = Hops(width=4, worker_cost=0.0, topology="harness")
    trace = run(task)
    assert sum(report_values(task, trace).values()) == 1.0
    assert report_values(task, repeated(trace, tool)) == report_values(task, trace)


def test_an_answer_that_comes_twice_leads_no_further():
    task = Hops(width=2)
    trace = run(task, "solo")
    worlds = [task.begin(0), task.begin(0)]
    for world, events in zip(worlds, (trace.events, repeated(trace, "lookup").events), strict=True):
        for event in events:
            task.apply(world, event)
    assert worlds[0].answers == worlds[1].answers
    assert task.scores(worlds[1]) == trace_scores(trace)


def trace_scores(trace):
    return {score.channel: score.value for score in trace.scores}


@pytest.mark.parametrize("name", topology.NAMES)
def test_no_certain_plan_is_faster_than_the_makespan(name):
    """The oracle takes just so long; a shared memory is used only where that is faster."""
    for width in (1, 2, 5):
        task = Hops(width=width, depth=2, topology=name, worker_cost=0.0, second_cost=0.02)
        workers = hops_oracle.best_plan(task).workers
        assert run(task).events[-1].start == pytest.approx(makespan(task, max(workers, 1)))
    memory = 0.2 if name == "harness" else 0.0
    assert makespan(Hops(width=4, depth=2, topology=name), 4) == pytest.approx(3.0 + memory)
    assert makespan(Hops(width=4, depth=2, topology=name), 1) == 9.0
