"""Nests: jobs are played as if alone, the lead sees only what it may, mistakes are named."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from stretto.errors import StrettoError
from stretto.tasks import build
from stretto.tasks.conformance import check_task
from stretto.tasks.faults import faults_of, with_fault
from stretto.tasks.nest import Nest
from stretto.tasks.nest.oracle import played
from stretto.tasks.nest.scripts import policies, scripts
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.team.interventions import Null, Remove
from stretto.team.protocols import Policy
from stretto.team.replay import fork, replay
from stretto.team.what_if import what_if
from stretto.trace import Trace

GATHER = {"family": "gather", "entities": 2}
HOPS = {"family": "hops", "width": 2, "depth": 2}
REPAIR = {"family": "repair", "layers": 2, "wide": 2, "healthy": 0}
COLOURS = {"family": "agree", "problem": "colouring", "members": 5}
SCOUTS = {"family": "scouts", "width": 2, "horizon": 4}
MIXED = Nest(inner=(GATHER, HOPS), jobs=4, abreast=2, topology="centralized")


def run(task: Nest, script: str = "oracle", seed: int = 0) -> Trace:
    return rollout(task, scripts(task)[script], [seed])[0]


def test_one_job_of_scouts_by_hand() -> None:
    inner = ({"family": "scouts", "width": 1, "horizon": 1},)
    task = Nest(inner=inner, jobs=1, topology="centralized")
    trace = run(task)
    assert [(event.agent, event.kind, event.to, event.start) for event in trace.events] == [
        ("0", "decision", None, 0.0),
        ("0", "spawn", "0/0", 0.0),
        ("0/0", "decision", None, 0.0),
        ("0/0", "spawn", "0/0/0", 0.0),
        ("0/0/0", "tool_call", None, 0.0),
        ("0/0/0", "tool_result", None, 1.0),
        ("0/0/0", "return", "0/0", 1.0),
        ("0/0/0", "despawn", "0/0/0", 1.0),
        ("0/0", "decision", None, 1.0),
        ("0/0", "return", "0", 1.0),
        ("0/0", "despawn", "0/0", 1.0),
        ("0", "decision", None, 1.0),
        ("0", "aggregate", None, 1.0),
        ("0", "stop", None, 1.0),
    ]
    assert [agent.role for agent in trace.agents] == ["lead", "scouts.lead", "scouts.scout"]
    assert trace.events[4].tool == "scouts.look"
    first, last = trace.events[0].decision, trace.events[11].decision
    assert first is not None and last is not None
    assert trace.text(first.observation) == "Jobs open: one scouts.\nOut: none.\nDone: none."
    assert first.candidates == ("send scouts", "work scouts", "stop")
    assert trace.text(last.observation) == "Jobs open: none.\nOut: none.\nDone: one."


@pytest.mark.parametrize("script", ["oracle", "silent", "greedy"])
@pytest.mark.parametrize("topology", ["centralized", "harness", "debate", "hierarchical"])
def test_a_job_is_played_as_if_it_were_alone(script: str, topology: str) -> None:
    """Nothing is left to chance in these families, so nothing may differ."""
    inner = (GATHER, HOPS, {"family": "agree", "members": 5}, REPAIR)
    task = Nest(inner=inner, jobs=4, abreast=3, topology=topology)
    trace = rollout(task, policies_of(task, script), [0])[0]
    assert len(list(played(task, trace))) == 4
    for job in played(task, trace):
        alone = rollout(job.leaf.task, scripts_of(job.leaf.task)[script], [0])[0]
        assert job.trace.events == alone.events
        assert set(job.trace.edges) == set(alone.edges)
        assert job.trace.agents == alone.agents
        assert job.trace.scores == alone.scores
        assert job.trace.spec == alone.spec


def policies_of(task: Nest, script: str) -> Mapping[str, Policy]:
    """The scripts of the families under a lead that sends all jobs."""
    inner = {kind: scripts_of(template)[script] for kind, template in task.templates.items()}
    return policies(task, lambda ask: ask.candidates[0], inner)


def test_who_works_alone_does_the_same_job() -> None:
    task = structs.replace(MIXED, jobs=2)
    trace = run(task, "solo")
    assert len(trace.agents) == 1
    for job in played(task, trace):
        alone = rollout(job.leaf.task, scripts_of(job.leaf.task)["solo"], [0])[0]
        assert job.trace.events[-1].kind == "stop"
        assert job.trace.events[-1].start == alone.events[-1].start
        counts = [Counter((e.kind, e.tool) for e in each.events) for each in (job.trace, alone)]
        assert counts[0] == counts[1]  # menus are dealt by turn, so the order may be another one
    prompts = [trace.text(e.decision.observation) or "" for e in trace.events if e.decision]
    assert sum(prompt.startswith("Job: gather.\nOpen: ") for prompt in prompts) > 3


def test_the_lead_sees_numbers_of_jobs_only() -> None:
    trace = run(MIXED)
    own = [event for event in trace.events if event.agent == "0" and event.decision]
    texts = {trace.text(event.decision.observation) for event in own if event.decision}
    assert texts == {
        "Jobs open: two gather, two hops.\nOut: none.\nDone: none.",
        "Jobs open: two gather, one hops.\nOut: one.\nDone: none.",
        "Jobs open: two gather.\nOut: none.\nDone: two.",
        "Jobs open: one gather.\nOut: one.\nDone: two.",
        "Jobs open: none.\nOut: none.\nDone: four.",
    }


def test_an_unanswered_job_earns_nothing() -> None:
    trace = run(MIXED)
    assert trace.reward("outcome") == trace.reward("success") == 1.0
    spawn = next(event for event in trace.events if event.kind == "spawn" and event.agent == "0")
    sublead = spawn.to or ""
    answer = next(e for e in trace.events if e.agent == sublead and e.kind == "return")
    oracle = scripts(MIXED)["oracle"]
    lost = what_if(trace, answer.id, Null(), task=MIXED, policies=oracle).trace
    assert lost.reward("outcome") == 0.75
    assert lost.reward("success") == 0.0
    assert lost.reward("jobs_succeeded") == 0.75
    again = what_if(trace, spawn.id, Remove(), task=MIXED, policies=oracle).trace
    assert again.reward("outcome") == 1.0  # the job was still open, so it was sent again


@pytest.mark.parametrize("script", ["oracle", "greedy", "solo", "silent", "blind", "random"])
def test_replay_and_fork(script: str) -> None:
    task = Nest(inner=(SCOUTS, HOPS), jobs=3, abreast=2)
    trace = run(task, script, seed=3)
    assert replay(trace, task) is None
    middle = trace.events[len(trace.events) // 2].id
    assert fork(trace, task, middle, scripts(task)[script]).events == trace.events


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 5))
def test_no_more_sub_leads_than_may_be_are_out(seed: int, abreast: int, jobs: int) -> None:
    task = Nest(inner=(SCOUTS, HOPS), jobs=jobs, abreast=abreast, seed=seed)
    trace = run(task, "random", seed)
    out = 0
    given_out: list[int] = []
    subleads: set[str | None] = set()
    for event in trace.events:
        if event.agent == "0" and event.kind in ("spawn", "delegate") and "job" in event.attrs:
            given_out.append(event.attrs["job"])
            out += event.kind == "spawn"
            subleads |= {event.to} - {"0"}
        elif event.kind == "despawn":
            out -= event.to in subleads
        assert out <= abreast
    assert len(set(given_out)) == len(given_out) <= jobs
    assert trace.attrs["ended"] == "stop"


def test_a_nest_of_nests() -> None:
    deep = {"family": "nest", "inner": [HOPS], "jobs": 2, "abreast": 1}
    task = Nest(inner=(deep, GATHER), jobs=2, topology="centralized")
    trace = run(task)
    assert trace.reward("outcome") == 1.0
    assert {"nest.lead", "nest.hops.lead"} <= {agent.role for agent in trace.agents}
    assert any((event.tool or "").startswith("nest.hops.") for event in trace.events)
    assert max(agent.id.count("/") for agent in trace.agents) == 2
    assert replay(trace, task) is None


def test_each_job_has_its_own_seed_and_the_topology_of_the_nest() -> None:
    task = Nest(inner=(HOPS, {**HOPS, "topology": "swarm"}), jobs=4, topology="debate")
    specs = [task.job(job).spec for job in range(4)]
    assert list(task.templates) == ["hops", "hops-two"]
    assert [spec["topology"] for spec in specs] == ["debate", "swarm"] * 2
    assert len({spec["seed"] for spec in specs}) == 4
    assert task.job(0) != structs.replace(task, seed=1).job(0)
    assert task.harness.topology == "debate"


def test_one_job_has_the_fault_and_all_else_is_as_without_it() -> None:
    clean = Nest(inner=(COLOURS, HOPS), jobs=6)
    task = structs.replace(clean, fault="job")
    assert task.faulty in (1, 3, 5)
    for job in range(6):
        fault = "lookup" if job == task.faulty else None
        expected = clean.job(job)
        if fault:
            expected = structs.replace(expected, fault=fault)
        assert task.job(job) == expected
    places = {structs.replace(task, seed=seed).faulty for seed in range(20)}
    assert places == {1, 3, 5}
    assert structs.replace(task, topology="swarm").faulty == task.faulty
    deep = Nest(inner=(clean.spec,), jobs=2, fault="job")
    assert [deep.job(job).fault for job in range(2)].count("job") == 1
    assert clean.faulty is None


def test_the_faults_of_a_family() -> None:
    assert faults_of("hops") == ("lookup", "report", "remark")
    assert faults_of("nest") == ("job",)
    assert faults_of("chain") == ()
    planted = with_fault(Nest())
    assert planted == Nest(fault="job")
    assert with_fault(Nest(fault="job")) is None
    assert with_fault(build({"family": "chain"})) is None
    assert with_fault(build(COLOURS)) is None  # a lie needs a consensus


def test_names_and_specifications() -> None:
    assert Nest(seed=7).id == "nest/7"
    assert MIXED.id.startswith("nest/0,")
    assert structs.replace(MIXED, seed=3).id == MIXED.id.replace("/0", "/3")
    assert build(MIXED.spec) == MIXED
    assert hash(build(MIXED.spec)) == hash(MIXED)


@pytest.mark.parametrize("topology", ["hierarchical", "planner_executor_critic"])
def test_it_keeps_the_rules_of_the_benchmark(topology: str) -> None:
    found = check_task(Nest(inner=(GATHER, HOPS), jobs=3, topology=topology), episodes=8)
    assert found.scores["oracle"] == found.scores["solo"] == 1.0


def test_it_keeps_the_rules_of_the_benchmark_where_jobs_are_left_to_chance() -> None:
    task = Nest(inner=({"family": "scouts"}, HOPS), jobs=3, abreast=2, topology="centralized")
    assert 0.85 < check_task(task, episodes=16).scores["oracle"] <= 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inner": []}, "task.inner: () makes no nest"),
        ({"inner": [{"family": "gathr"}]}, 'task.inner[0].family: no task family "gathr"'),
        ({"inner": [HOPS, {**GATHER, "wrong": 2.0}]}, "task.inner[1].wrong: 2.0 makes no table"),
        ({"inner": [HOPS, {**GATHER, "wide": 2}]}, 'task.inner[1]: no parameter "wide"'),
        ({"jobs": 0}, "task.jobs: 0 makes no nest (at least one template"),
        ({"jobs": 1000}, "task.jobs: 1000 makes no nest"),
        ({"abreast": 0}, "task.abreast: 0 makes no nest"),
        ({"topology": "star"}, 'task.topology: no topology "star" (did you mean'),
        (
            {"fault": "job", "inner": [{**HOPS, "fault": "lookup"}, COLOURS]},
            "task.fault: no job of this nest can have a fault",
        ),
    ],
)
def test_mistakes_are_named(parameters: Mapping[str, object], message: str) -> None:
    with pytest.raises(StrettoError) as caught:
        build({"family": "nest", **parameters})
    assert str(caught.value).startswith(message)
