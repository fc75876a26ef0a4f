"""Scouts under the six topologies: the same game, and another way that reports take to the lead."""

import pytest
from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks.conformance import check_task
from stretto.tasks.nest import Nest
from stretto.tasks.scouts import TABLE, Scouts, arrived, told
from stretto.tasks.scouts import oracle as scouts_oracle
from stretto.tasks.scouts.lattice import round_price
from stretto.tasks.scouts.oracle import blame
from stretto.tasks.scripts import score, scripts_of, yardstick_of
from stretto.tasks.topology import NAMES, seating
from stretto.team.engine import rollout
from stretto.team.interventions import Null, Remove
from stretto.team.replay import replay
from stretto.team.what_if import what_if

GAME = Scouts(reliability=0.7, scout_cost=0.01, round_cost=0.05, width=9, horizon=20)
ALL = pytest.mark.parametrize("name", NAMES)


def play(name, *choices, seed=0, **rules):
    by_turn = iter(choices)
    task = replace(GAME, topology=name, **rules)
    (trace,) = rollout(task, {"lead": Scripted(lambda ask: next(by_turn))}, [seed])
    return task, trace


def rows(trace):
    return [(e.agent, e.kind, e.tool, e.to, e.start) for e in trace.events if e.kind != "despawn"]


def looks(trace):
    return [e.attrs["colour"] for e in trace.events if e.tool == "look" and "colour" in e.attrs]


def reached(trace):
    return sum(sum(arrived(event)) for event in trace.events)


# ---- by hand


def test_a_sublead_sends_its_scouts_listens_and_passes_on_what_they_saw():
    _, trace = play("hierarchical", "two", "stop")
    one = [
        ("0", "spawn", None, "0/0", 0.0),
        ("0/0", "spawn", None, "0/0/0", 0.0),
        ("0/0/0", "tool_call", "look", None, 0.0),
        ("0/0", "tool_call", "listen", None, 0.0),
    ]
    other = [(a.replace("0/0", "0/1"), k, t, to and to.replace("0/0", "0/1"), at)
             for a, k, t, to, at in one]  # fmt: skip
    ends = [
        row
        for n in range(2)
        for row in (
            (f"0/{n}/0", "tool_result", "look", None, 1.0),
            (f"0/{n}/0", "return", None, f"0/{n}", 1.0),
            (f"0/{n}", "tool_result", "listen", None, 1.0),
            (f"0/{n}", "return", None, "0", 1.0),
        )
    ]
    last = [("0", "decision", None, None, 1.0), ("0", "stop", None, None, 1.0)]
    assert rows(trace) == [("0", "decision", None, None, 0.0), *one, *other, *ends, *last]
    passed = [e for e in trace.events if e.kind == "return" and e.to == "0"]
    assert [e.attrs["votes"] for e in passed] == [
        [int(colour == "red"), int(colour == "blue")] for colour in looks(trace)
    ]


def test_a_critic_hears_all_scouts_of_a_round():
    _, trace = play("planner_executor_critic", "three", "stop")
    assert [(a.id, a.role) for a in trace.agents] == [
        ("0", "lead"), ("0/0", "critic"), *((f"0/0/{n}", "scout") for n in range(3))
    ]  # fmt: skip
    (passed,) = [e for e in trace.events if e.kind == "return" and e.to == "0"]
    seen = looks(trace)
    assert passed.attrs["votes"] == [seen.count("red"), seen.count("blue")]
    assert trace.text(passed.content) == (
        f"They saw: {seen.count('red')} red, {seen.count('blue')} blue."
    )


def test_who_listens_waits_and_does_not_work():
    _, trace = play("hierarchical", "four", "stop")
    waits = [e.attrs.get("waiting") for e in trace.events if e.kind == "tool_call"]
    assert waits.count(True) == 2 and waits.count(None) == 4
    assert trace.columns.last_end == 1.0


def test_a_shared_memory_takes_its_time_to_write_and_to_read():
    _, trace = play("harness", "two", "one", "stop")
    times = [(e.agent, e.tool, e.kind, e.start) for e in trace.events
             if e.tool and e.tool.startswith("memory")]  # fmt: skip
    assert times[:6] == [
        ("0/0", "memory.write", "tool_call", 1.0),
        ("0/1", "memory.write", "tool_call", 1.0),
        ("0", "memory.read", "tool_call", 1.1),
        ("0/0", "memory.write", "tool_result", 1.1),
        ("0/1", "memory.write", "tool_result", 1.1),
        ("0", "memory.read", "tool_result", 1.2),
    ]
    assert [e.start for e in trace.events if e.decision] == pytest.approx([0.0, 1.2, 2.4])
    reads = [e for e in trace.events if e.tool == "memory.read" and e.kind == "tool_result"]
    assert [sum(e.attrs["votes"]) for e in reads] == [2, 1], "what was read is not read again"
    sources = {edge.src for edge in trace.edges if edge.dst == reads[0].id}
    written = [e.id for e in trace.events if e.tool == "memory.write" and e.kind == "tool_result"]
    assert set(written[:2]) < sources


def test_in_a_swarm_scouts_write_to_their_neighbours_of_the_round():
    _, trace = play("swarm", "two", "four", "stop")
    written = {(e.agent, e.to) for e in trace.events if e.kind == "message"}
    ring = ["0/2", "0/3", "0/4", "0/5"]
    pairs = {(a, b) for n, a in enumerate(ring) for b in (ring[n - 1], ring[(n + 1) % 4])}
    assert written == {("0/0", "0/1"), ("0/1", "0/0")} | pairs


def test_a_debate_is_bounded_by_its_tables():
    _, trace = play("debate", "one", "nine", "stop")
    written = {(e.agent, e.to) for e in trace.events if e.kind == "message"}
    table = [f"0/{n}" for n in range(1, 1 + TABLE)]
    assert written == {(a, b) for a in table for b in table if a != b}, "the ninth sits alone"


# ---- every topology


@ALL
def test_everybody_sits_and_writes_as_the_mask_says(name):
    _, trace = play(name, "five", "stop")
    order = {"lead": 0, "critic": 1, "sublead": 1, "scout": 2}
    agents = sorted(trace.agents, key=lambda agent: order[agent.role])
    seat = {agent.id: number for number, agent in enumerate(agents)}
    seats = seating(name, 5)
    assert trace.topology == name
    assert [agent.role.replace("scout", "worker") for agent in agents] == list(seats.roles)
    assert tuple(seat.get(agent.parent, -1) for agent in agents) == seats.parents
    for event in trace.events:
        if event.kind in ("message", "return") and not seats.memory:
            assert (seat[event.agent], seat[event.to]) in seats.edges


@ALL
def test_all_reports_reach_the_lead_once_and_the_price_is_that_of_the_oracle(name):
    for seed in range(10):
        task, trace = play(name, "five", "two", "stop", seed=seed)
        seen = looks(trace)
        heard = [sum(votes) for votes in zip(*map(arrived, trace.events), strict=True)]
        assert heard == [seen.count("red"), seen.count("blue")]
        assert trace.events[-1].attrs["colour"] == max(("red", "blue"), key=seen.count)
        total = score(task, trace, False) - score(task, trace, True)
        spawns, seconds = len(trace.agents) - 1, 2.4 if name == "harness" else 2.0
        assert total == pytest.approx(0.01 * spawns + 0.05 * seconds)
        assert total == pytest.approx(round_price(task, 5) + round_price(task, 2))


@ALL
@pytest.mark.parametrize(
    "rules", [{}, {"width": 1, "horizon": 9}, {"width": 6, "sizes": "doubling", "most_lead": 30}]
)
def test_the_rules_of_the_benchmark_hold(name, rules):
    task = replace(GAME, topology=name, **rules)
    found = check_task(task, episodes=60)
    assert found.chance == yardstick_of(task).random


@ALL
def test_what_never_reaches_the_lead_does_not_count(name):
    task = replace(GAME, topology=name)
    policies = scripts_of(task)["blind"]
    (trace,) = rollout(task, policies, [0])
    report = next(e for e in trace.events if told(e))
    other = what_if(trace, report.id, Null(), task=task, policies=policies).trace
    assert reached(other) == reached(trace) - 1
    assert replay(other, task) is None


@pytest.mark.parametrize("name", ["debate", "swarm"])
def test_nobody_waits_for_a_peer_that_never_came(name):
    task = replace(GAME, topology=name)
    policies = scripts_of(task)["blind"]
    (trace,) = rollout(task, policies, [0])
    spawn = next(e.id for e in trace.events if e.kind == "spawn" and e.to == "0/1")
    other = what_if(trace, spawn, Remove(), task=task, policies=policies).trace
    assert other.attrs["ended"] == "stop"
    assert reached(other) == reached(trace) - 1
    assert replay(other, task) is None


@ALL
def test_nests_hold_scouts_of_every_topology(name):
    task = Nest(inner=({"family": "scouts", "width": 9},), jobs=2, abreast=2, topology=name)
    (trace,) = rollout(task, scripts_of(task)["oracle"], [0])
    assert trace.attrs["ended"] == "stop"
    assert replay(trace, task) is None


@ALL
def test_an_episode_of_hundreds_of_scouts_is_of_its_band(name):
    rules = {"reliability": 0.56, "scout_cost": 0.0003, "round_cost": 0.02, "most_lead": 64}
    task = Scouts(**rules, width=128, horizon=256, sizes="doubling", topology=name)
    for trace in rollout(task, scripts_of(task)["oracle"], range(1_000_000, 1_000_003)):
        assert 600 < len(trace.events) < 3_162


# ---- the planted fault


@ALL
def test_one_scout_of_the_first_round_says_the_other_colour_and_all_else_is_as_without(name):
    liars = set()
    for seed in range(12):
        _, clean = play(name, "five", "stop", seed=seed)
        task, faulty = play(name, "five", "stop", seed=seed, fault="lie")
        assert looks(clean) == looks(faulty)
        votes = [[sum(v) for v in zip(*map(arrived, t.events), strict=True)]
                 for t in (clean, faulty)]  # fmt: skip
        saw, said = seen_and_said(faulty)
        assert seen_and_said(clean) == (saw, saw)
        (liar,) = (scout for scout in saw if said[scout] != saw[scout])
        liars.add(list(saw).index(liar))
        turn = 1 if saw[liar] == "red" else -1
        assert votes[1] == [votes[0][0] - turn, votes[0][1] + turn]
        assert replay(faulty, task) is None
    assert len(liars) > 2  # the place in the team says nothing


def seen_and_said(trace):
    """Scout to what it saw, and to what it handed up."""
    said = {}
    for event in trace.events:
        if (colour := told(event)) is not None:
            said.setdefault(event.agent, colour)
    saw = scouts_oracle.looks(trace)
    return dict(saw), {scout: said[scout] for scout in saw}


@ALL
def test_who_lies_in_a_later_round_is_nobody(name):
    for seed in range(6):
        _, faulty = play(name, "two", "three", "stop", seed=seed, fault="lie")
        saw, said = seen_and_said(faulty)
        (liar,) = (scout for scout in saw if said[scout] != saw[scout])
        assert liar in list(saw)[:2]


@ALL
def test_the_liar_is_to_blame_exactly_where_it_turned_the_answer(name):
    found = []
    for seed in range(60):
        _, clean = play(name, "three", "stop", seed=seed)
        task, faulty = play(name, "three", "stop", seed=seed, fault="lie")
        culprit = blame(task, faulty)
        spoilt = clean.reward("success") == 1 and faulty.reward("success") == 0
        assert (culprit is not None) == spoilt
        assert blame(replace(task, fault=None), clean) is None
        if culprit:
            event = faulty.events[faulty.columns.row[culprit.event]]
            saw, said = seen_and_said(faulty)
            assert event.agent == culprit.agent
            assert event.attrs["colour"] == said[culprit.agent] != saw[culprit.agent]
            found.append(list(saw).index(culprit.agent))
    assert 5 < len(found) < 40
    assert len(set(found)) == 3


@ALL
def test_faulty_games_run_with_every_script(name):
    task = replace(GAME, topology=name, fault="lie")
    for policies in scripts_of(task).values():
        for trace in rollout(task, policies, range(3)):
            assert trace.attrs["ended"] == "stop"
    assert yardstick_of(task) == yardstick_of(replace(task, fault=None))
