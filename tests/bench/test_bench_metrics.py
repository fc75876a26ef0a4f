"""Every metric on a trace that is small enough to compute by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.bench.facts import Brought
from stretto.bench.luck import Fair, without_luck
from stretto.bench.metrics_overhead import (
    containment,
    efficiency,
    error_ratio,
    overhead,
    token_overhead,
)
from stretto.bench.metrics_parallel import parallel, useful_seconds
from stretto.bench.metrics_success import pass_hat, regret, success
from stretto.bench.metrics_team import free_riders, redundancy, team
from stretto.bench.tokens import counted, turn_tokens
from stretto.bench.truth import Exact, Plans
from stretto.tasks.hops import Hops
from stretto.tasks.scripts import Yardstick
from stretto.trace import Agent, Decision, Edge, Event, Score, Tokens, Trace


def turn(id, agent, start, duration=0.0, type="act", candidates=("go on", "stop"), chosen=0):
    decision = Decision(type=type, candidates=candidates, chosen=chosen, observation="seen")
    return Event(
        id=id, kind="decision", agent=agent, start=start, duration=duration, decision=decision
    )


def event(id, kind, agent, start, duration=0.0, **more):
    return Event(id=id, kind=kind, agent=agent, start=start, duration=duration, **more)


@pytest.fixture
def trace():
    """The lead thinks a second, two workers look up for 4 and 2 seconds, the lead concludes."""
    events = (
        turn("0#0", "0", 0.0, 1.0, type="spawn"),
        event("0#1", "spawn", "0", 1.0, to="0/0"),
        event("0#2", "spawn", "0", 1.0, to="0/1"),
        turn("0/0#0", "0/0", 1.0),
        event("0/0#1", "tool_call", "0/0", 1.0, 4.0, tool="look"),
        turn("0/1#0", "0/1", 1.0),
        event("0/1#1", "tool_call", "0/1", 1.0, 2.0, tool="look"),
        event("0/1#2", "tool_result", "0/1", 3.0, tool="look"),
        event("0/1#3", "return", "0/1", 3.0, to="0"),
        event("0/0#2", "tool_result", "0/0", 5.0, tool="look"),
        event("0/0#3", "return", "0/0", 5.0, to="0"),
        turn("0#3", "0", 5.0, 1.0, type="stop", chosen=1),
        event("0#4", "stop", "0", 6.0),
    )
    pairs = [
        ("0#0", "0#1", "causal"),
        ("0#0", "0#2", "causal"),
        ("0#1", "0/0#0", "spawn"),
        ("0#2", "0/1#0", "spawn"),
        ("0/0#0", "0/0#1", "causal"),
        ("0/1#0", "0/1#1", "causal"),
        ("0/0#1", "0/0#2", "tool_dependency"),
        ("0/1#1", "0/1#2", "tool_dependency"),
        ("0/1#2", "0/1#3", "causal"),
        ("0/0#2", "0/0#3", "causal"),
        ("0/0#3", "0#3", "return"),
        ("0/1#3", "0#3", "return"),
        ("0#3", "0#4", "causal"),
    ]
    return Trace(
        id="t",
        agents=(Agent(id="0"), Agent(id="0/0", parent="0"), Agent(id="0/1", parent="0")),
        events=events,
        edges=tuple(Edge(*pair) for pair in pairs),
        scores=(Score(channel="outcome", value=0.5),),
        contents={"seen": "three words here"},
    )


SAME = [
    Brought("0/1#2", "0/1", frozenset({("a",)})),
    Brought("0/0#2", "0/0", frozenset({("a",)})),
]
"""Both workers look up one fact; the second to finish brings nothing new."""


def test_parallelism(trace):
    found = parallel(trace, SAME, Plans(), 12.0, solved=True)
    assert found["makespan"] == 6.0
    assert found["work"] == 1 + 4 + 2 + 1
    assert found["span"] == 1 + 4 + 1
    assert found["own_parallelism"] == pytest.approx(8 / 6)
    assert found["speedup"] == 12 / 6
    assert found["workers"] == 3
    assert found["critical_steps"] == 2 + 1
    assert found["straggler"] == pytest.approx(4 / 3)


def test_useful_work(trace):
    """Two turns of a second, and the first look-up of the fact, of two seconds."""
    assert useful_seconds(trace, SAME) == 1 + 1 + 2
    found = parallel(trace, SAME, Plans(), None, solved=True)
    assert found["pseudo"] == 1 - 4 / 8
    assert found["utilisation"] == pytest.approx(4 / (3 * 6))
    assert found["speedup"] is None


def test_schedule_optimality(trace):
    """Without a known optimum, max(T_inf, T_1 / P) / T_P; with one, that over T_P."""
    assert parallel(trace, SAME, Plans(), None, True)["optimality"] == max(6, 8 / 3) / 6
    plans = Plans(serial=9.0, parallel=lambda agents: 9.0 / agents)
    found = parallel(trace, SAME, plans, 12.0, True)
    assert found["optimality"] == (9 / 3) / 6
    assert found["speedup"] == 9 / 6


def test_who_did_not_solve_it_is_neither_fast_nor_slow(trace):
    found = parallel(trace, SAME, Plans(serial=9.0), None, solved=False)
    assert found["speedup"] is None and found["optimality"] is None
    assert found["makespan"] == 6.0


def test_redundancy():
    assert redundancy(SAME) == 1 - 1 / 2
    more = [*SAME, Brought("x", "0/0", frozenset({("b",), ("c",)}))]
    assert redundancy(more) == 1 - 3 / 4
    again = [*more, Brought("y", "0/0", frozenset({("b",)}))]
    assert redundancy(again) == 1 - 3 / 4, "an agent knows a fact once"
    assert redundancy([Brought("x", "0", frozenset(), frozenset({("step",)}))]) is None


def test_message_value_shares_and_free_riders():
    found = team(SAME, Exact({"a": 0.5, "b": 0.0, "c": 0.0, "d": -0.1}, {"0/0": 0.99, "0/1": 0.01}))
    assert [found[f"message_{name}"] for name in ("plus", "zero", "minus")] == [0.25, 0.5, 0.25]
    assert found["free_riders"] == 1 / 2, "0.01 < 0.1 * 1 / 2"
    assert free_riders({"0/0": 0.5, "0/1": 0.5}) == 0
    assert free_riders({"0/0": 0.0}) is None and free_riders(None) is None
    assert team(SAME, Exact())["message_plus"] is None


def test_tokens_of_scripts_are_words(trace):
    """Three words seen, three in the menu; two or one written."""
    tokens = turn_tokens(counted(trace))
    assert tokens == {"0#0": 3 + 3 + 2, "0/0#0": 8, "0/1#0": 8, "0#3": 3 + 3 + 1}


def test_tokens_that_a_model_counted_are_kept():
    event = turn("0#0", "0", 0.0)
    told = Event(
        id="0#0", kind="decision", agent="0", decision=event.decision, tokens=Tokens(5, 2, 10)
    )
    own = Trace(id="t", agents=(Agent(id="0"),), events=(told,))
    assert counted(own) is own
    assert turn_tokens(own) == {"0#0": 17}


def test_overhead(trace):
    """Of four turns only the first decides about the team; two returns are the messages."""
    found = overhead(counted(trace))
    assert found["tokens"] == 8 + 8 + 8 + 7
    assert found["coordination"] == pytest.approx(8 / 31)
    assert found["messages_per_turn"] == 2 / 4
    assert found["score_per_1000"] == pytest.approx(1000 * 0.5 / 31)
    assert (found["turns"], found["events"], found["agents"]) == (4, 13, 3)


def test_overheads_and_error_ratio():
    assert token_overhead(150, 100) == 0.5
    assert token_overhead(150, 0) is None
    assert error_ratio(0.8, 0.9) == pytest.approx(2.0)
    assert error_ratio(0.8, 1.0) is None


def test_containment():
    assert containment({1: True, 2: True, 3: False}, {1: True, 2: False, 3: False}) == 0.5
    assert containment({1: False}, {1: True}) is None


def test_what_is_scored_for_the_turns_that_one_agent_would_need():
    assert efficiency(0.8, team=20, solo=10) == pytest.approx(0.4)
    assert efficiency(0.8, team=0, solo=10) is None


def test_success_and_utility(trace):
    """U = 0.5 - 0.1 * 2 spawns - 0.02 * 6 seconds."""
    task = Hops(worker_cost=0.1, second_cost=0.02)
    found = success(task, Yardstick(best=1.0), trace, Fair())
    assert found["outcome"] == 0.5 and found["success"] == 0.0
    assert found["utility"] == pytest.approx(0.5 - 0.2 - 0.12)
    assert found["judged"] == 0.5
    priced = success(task, Yardstick(best=0.9, random=0.1, priced=True), trace, Fair())
    assert priced["judged"] == priced["utility"] and priced["chance"] == 0.1


def test_regret():
    best, chance = np.array([1.0, 1.0]), np.array([0.2, 0.2])
    assert regret(np.array([0.5, 0.7]), best, chance) == pytest.approx((1 - 0.6) / 0.8)
    assert regret(np.array([1.0, 1.0]), best, chance) == 0.0
    assert regret(np.array([0.0, 0.1]), best, chance) == 1.0, "clipped"
    assert math.isnan(regret(best, best, best))


def test_pass_hat():
    """Two of four: 1 of 6 pairs; four of four: all."""
    assert pass_hat([4, 4], [2, 4], 1) == pytest.approx((0.5 + 1) / 2)
    assert pass_hat([4, 4], [2, 4], 2) == pytest.approx((1 / 6 + 1) / 2)
    assert pass_hat([4, 1], [2, 1], 2) is None


def test_what_an_agent_does_at_the_same_time_is_busy_once():
    """Writing takes .1 s of the second in which the same agent reads; another reads beside it."""
    found, events, edges = [], [], []
    for agent, tool, seconds in (("0", "write", 0.1), ("0", "read", 1.0), ("1", "read", 1.0)):
        ids = f"{agent}#{tool}", f"{agent}#{tool}'"
        events.append(event(ids[0], "tool_call", agent, 0.0, seconds, tool=tool))
        events.append(event(ids[1], "tool_result", agent, seconds, tool=tool))
        edges.append(Edge(*ids, "tool_dependency"))
        found.append(Brought(ids[1], agent, frozenset({(ids[1],)})))
    ordered = tuple(sorted(events, key=lambda each: each.start))
    trace = Trace(id="t", agents=(Agent(id="0"), Agent(id="1")), events=ordered, edges=tuple(edges))
    assert useful_seconds(trace, found) == pytest.approx(2.0)


def test_scores_without_luck():
    """The oracle loses only what bad luck takes; luck does not move who sees nothing."""
    best = np.array([0.8, 0.8, 0.9, 0.9])
    luck = np.array([0.1, -0.1, 0.2, -0.2])
    assert without_luck(best + luck, best, luck) == pytest.approx(best)
    half = without_luck(best - 0.3 + 0.5 * luck, best, luck)
    assert half == pytest.approx(best - 0.3), "half of the luck was its own"
    flat = np.full(4, 0.5)
    assert without_luck(flat, np.full(4, 0.8), luck) == pytest.approx(flat)
    assert without_luck(flat, best, np.zeros(4)) == pytest.approx(flat)
    forfeit = np.append(best + luck, 0.0), np.append(best, 0.8), np.append(luck, np.nan)
    assert without_luck(*forfeit) == pytest.approx([*best, 0.0]), "the others keep their luck out"


@given(st.integers(0, 2**32 - 1))
def test_taking_luck_out_takes_noise_out(seed):
    """Luck with mean zero that moves scores: the rest has less spread, and hardly another mean."""
    noise = np.random.default_rng(seed)
    luck, rest = noise.normal(size=(2, 200))
    judged = 0.5 + 0.6 * luck + 0.1 * rest
    found = without_luck(judged, np.full(200, 0.9), luck)
    assert found.std() < 0.3 * judged.std()
    assert abs(found.mean() - 0.5) < 0.1
