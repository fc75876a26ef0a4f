"""Families R2 to R7 on small traces, in numbers."""

from math import log

import numpy as np
import pytest
from hypothesis import given as on

from stretto.errors import StrettoError
from stretto.rewards.channels import CHANNELS
from stretto.rewards.derived import serial_seconds
from stretto.rewards.individual import constant, individual
from stretto.rewards.planning import aggregation, speedup, split
from stretto.rewards.process import discounted, folding, process
from stretto.rewards.role import role
from stretto.rewards.stopping import overlong, step_cost, step_costs, stopping, token_budget
from stretto.rewards.tool_use import tool_calls, tool_format, tool_use, used_tool
from stretto.rewards.verifier import debate, verifiers
from stretto.tasks.gather import Gather
from stretto.tasks.hops import Hops
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.trace import Decision, Score, Tokens, Trace

from ..examples import event, trace, turn
from ..strategies import examples, traces


def agents_scored(channel, **values):
    return tuple(Score(channel=channel, value=v, agent=a) for a, v in values.items())


def events_scored(channel, values):
    return tuple(Score(channel=channel, value=v, event=e) for e, v in values.items())


def tokens(read, sampled):
    return Tokens(input=read, output=sampled)


PAIR = trace(
    turn("a#0", 0.0, 1.0),
    turn("b#0", 1.0, 1.0),
    turn("a#1", 2.0, 1.0),
    event("b#1", "stop", 3.0),
    roles={"a": "solver", "b": "critic", "c": "solver"},
    outcome=1.0,
)


def pair(*scores):
    return trace(
        *PAIR.events,
        roles={"a": "solver", "b": "critic", "c": "solver"},
        scores=scores,
        outcome=1.0,
    )


# ---- R2 and R3


def test_individual_pays_each_agent_with_its_last_event():
    given = pair(*agents_scored("individual", a=0.5, b=-0.25, c=2.0))
    stream = individual(given)
    assert stream.at.tolist() == [0, 0, 0.5, -0.25]
    assert stream.final == 2.0  # c has no event
    assert individual(given, agent="b").total == -0.25


def test_who_was_not_scored_is_not_paid_nothing():
    assert individual(PAIR) is None
    assert individual(pair(*agents_scored("individual", a=0.0)), agent="b") is None
    assert individual(pair(*agents_scored("individual", a=0.0))).total == 0.0
    assert constant(PAIR).total == 1.0


def test_a_role_is_paid_the_mean_of_its_agents():
    given = pair(*agents_scored("role", a=1.0, b=7.0, c=0.5))
    assert role(given, "solver").total == 0.75
    assert role(given, "solver").at.tolist() == [0, 0, 0.5, 0]
    assert role(given, "solver", flip=True).total == 0.25
    assert role(given, "judge") is None


def test_an_agent_of_a_role_may_be_scored_by_its_events():
    given = pair(*events_scored("role", {"a#0": 1.0, "a#1": 0.0}), *agents_scored("role", c=1.0))
    assert role(given, "solver").total == 0.75
    assert role(given, "critic") is None


# ---- R4


def test_process_pays_each_step_and_the_mean_is_safe_from_padding():
    given = pair(*events_scored("process", {"a#0": 0.5, "a#1": 0.5, "b#0": -1.0}))
    assert process(given).at.tolist() == [0.5, -1.0, 0.5, 0]
    assert process(given, agent="a").total == 1.0
    assert process(given, agent="a", mean=True).total == 0.5
    assert process(PAIR) is None
    assert process(given, agent="c") is None


def test_maporls_discounted_sum_of_all():
    """Two rounds, γ = .3: `(s + .3·mean of the next round) / 1.3`, and the last round alone."""
    scores = {"a#0": 0.2, "b#0": 0.6, "a#1": 0.9}
    given = pair(*events_scored("verifier", scores))
    expected = [(0.2 + 0.3 * 0.9) / 1.3, (0.6 + 0.3 * 0.9) / 1.3, 0.9, 0]
    assert discounted(given).at.tolist() == pytest.approx(expected)
    assert discounted(given, agent="b").total == pytest.approx(expected[1])
    assert discounted(given, gamma=0.0).at.tolist() == [0.2, 0.6, 0.9, 0]
    assert discounted(PAIR) is None


FOLD = trace(
    turn("0#0", tokens=tokens(10, 1)),
    turn("0#1", tokens=tokens(60, 1)),  # beyond half of 100, and no branch
    event("0#2", tokens=tokens(70, 1), decision=Decision(type="spawn")),
    event("0#3", "spawn", to="0/0"),
    turn("0/0#0", tokens=tokens(90, 1)),
    event("0/0#1", "tool_call", tool="read"),
    event("0/0#2", "tool_result", tool="read", attrs={"is_error": True}),
    turn("0/0#3"),
    edges=[("0/0#0", "0/0#1"), ("0/0#1", "0/0#2")],
    scores=events_scored("scope", {"0#3": 0.0}),
    outcome=1.0,
)


def test_foldgrpos_penalties():
    at = folding(FOLD, limit=100).at.tolist()
    assert at == pytest.approx([0, -1, 0, 0, -1, 0, 0, -0.2])
    in_scope = trace(*FOLD.events, outcome=1.0)
    assert folding(in_scope, limit=1000).at.tolist() == [0] * 8


def test_foldgrpos_penalties_are_clipped_at_nothing():
    failed = trace(*FOLD.events, scores=events_scored("scope", {"0#3": 0.0}), outcome=0.0)
    assert not folding(failed, limit=100).at.any()
    assert folding(trace(*FOLD.events), limit=100) is None


def test_a_prompt_of_unknown_length_is_not_taken_for_a_short_one():
    unknown = turn("0#4")
    assert folding(trace(*FOLD.events, unknown, outcome=1.0), limit=100) is None
    branch = turn("0/0#4")
    assert folding(trace(*FOLD.events, branch, outcome=1.0), limit=100) is not None


def test_a_table_reads_words():
    """Every prompt of a lead of `hops` is longer than 5 words, and none than 5000."""
    game = Hops()
    (found,) = rollout(game, scripts_of(game)["oracle"], [0])
    lead = np.array([each.agent == "0" and each.kind == "decision" for each in found.events])
    branches = [e.decision is not None and e.decision.type == "spawn" for e in found.events]
    paid = folding(found, limit=10).at
    assert (lead & ~np.array(branches)).any()
    assert (paid[lead & ~np.array(branches)] == -1.0).all()
    assert not paid[~lead].any()
    assert not folding(found, limit=10_000).at.any()


# ---- R5


def searched(outcome, **attrs):
    return trace(
        turn("0#0"),
        event("0#1", "tool_call", tool="search", content="x"),
        event("0#2", "tool_call", tool="search", content="x"),
        event("0#3", "tool_call", tool="read", content="y"),
        event("0#4", "tool_call", tool="read", content="z"),
        event("0#5", "tool_result", tool="search"),
        event("0#6", "tool_result", tool="read", attrs=attrs),
        event("0#7", "stop"),
        edges=[("0#1", "0#5"), ("0#2", "0#5"), ("0#3", "0#6"), ("0#5", "0#7"), ("0#6", "0#7")],
        outcome=outcome,
    )


def test_only_calls_that_a_right_answer_needs_are_paid():
    """The second search repeats, the last read leads nowhere."""
    assert tool_use(searched(0.8), most=4).at.tolist() == pytest.approx(
        [0, 0.2, 0, 0.2, 0, 0, 0, 0]
    )
    assert tool_use(searched(0.0), most=4).total == 0.0
    assert tool_use(searched(0.8, is_error=True), most=4).total == pytest.approx(0.2)
    assert tool_use(searched(0.8), most=2).total == pytest.approx(0.4)  # four calls share
    assert tool_use(searched(None)) is None
    assert tool_use(trace(event("0#0", "stop"), outcome=1.0)) is None


def test_the_plain_bonus_pays_whatever_comes_of_it():
    assert tool_calls(searched(0.0), most=8).total == 0.5
    assert tool_calls(PAIR) is None


def test_tool_format_is_recorded_or_the_share_without_errors():
    assert tool_format(searched(1.0)).total == 1.0
    assert tool_format(searched(1.0, error="no such file")).total == 0.5
    assert tool_format(pair(Score(channel="tool_format", value=0.25))).total == 0.25
    assert tool_format(PAIR) is None
    assert used_tool(searched(1.0)).total == 1.0
    assert used_tool(searched(1.0), tools=("browse",)).total == 0.0


# ---- R6


def test_several_verifiers_as_one():
    judged = pair(
        Score(channel="judge", value=1.0),
        *agents_scored("tests", a=0.5, c=0.0),
        *events_scored("style", {"a#0": 0.75}),
    )
    all_three = ("judge", "tests", "style")
    assert verifiers(judged, all_three).total == 0.25
    assert verifiers(judged, all_three, combine="median").total == 0.75
    assert verifiers(judged, all_three, combine="mean").total == pytest.approx(2 / 3)
    assert verifiers(judged, ("judge", "gone")) is None


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        ("answered", searched(1.0), 1.0),
        ("answered", trace(turn("0#0")), 0.0),
        ("grounded", searched(1.0), 1.0),
        ("grounded", PAIR, 0.0),
        ("grounded", trace(turn("0#0")), None),
        ("no_failed_call", searched(1.0, is_error=True), 0.0),
        ("no_failed_call", PAIR, None),
        ("all_returned", trace(event("0#0", "spawn", to="1"), event("1#0", "return")), 1.0),
        ("all_returned", trace(event("0#0", "spawn", to="1")), 0.0),
        ("all_returned", PAIR, None),
    ],
)
def test_rules_that_verify(rule, given, expected):
    found = verifiers(given, (f"rule:{rule}",))
    assert (found and found.total) == expected if expected is None else found.total == expected


def test_mistakes_in_verifiers_are_told():
    with pytest.raises(StrettoError, match=r'did you mean "grounded"\?'):
        verifiers(PAIR, ("rule:gronded",))
    with pytest.raises(StrettoError, match=r'did you mean "median"\?'):
        verifiers(PAIR, ("rule:answered",), combine="medain")
    with pytest.raises(StrettoError, match="no verifier is named"):
        verifiers(PAIR, ())


def test_a_debate_pays_what_it_changed_however_long_it_is():
    given = pair(*events_scored("correct", {"a#0": 0.0, "a#1": 1.0, "b#0": 1.0}))
    assert debate(given).at.tolist() == [0, 0, 1.0, 0]
    assert debate(pair(*events_scored("correct", {"a#0": 1.0}))) is None


# ---- R7


def timed(serial, outcome=1.0):
    return trace(
        event("0#0", "tool_call", 0.0, 4.0),
        scores=(Score(channel="serial_seconds", value=serial, kind="metric"),),
        outcome=outcome,
    )


def test_speedup_is_against_the_best_serial_plan_and_needs_a_right_answer():
    assert speedup(timed(12.0), most=6).total == 0.5
    assert speedup(timed(400.0), most=6).total == 1.0
    assert speedup(timed(12.0, outcome=0.5), most=6).total == 0.25
    assert speedup(timed(12.0, outcome=0.0), most=6).total == 0.0
    assert speedup(PAIR) is None


def test_the_best_serial_plan_of_gather_is_computed():
    task = Gather(entities=3)
    seconds = serial_seconds(Trace(id="t", spec=task.spec))
    assert seconds > 0
    assert seconds % task.harness.tools["read"].latency == pytest.approx(0.0)
    assert serial_seconds(PAIR) is None


TEAM = [
    event("0#0", "spawn", to="1"),
    event("0#1", "spawn", to="2"),
    event("1#0", "tool_call", tool="read", content="x"),
    event("1#1", "tool_call", tool="read", content="y"),
    event("2#0", "tool_call", tool="read", content="y"),
    event("1#2", "return"),
    event("2#1", "return"),
    event("0#2", "aggregate"),
    event("0#3", "stop"),
]


def test_a_split_is_right_as_far_as_nobody_does_anothers_piece():
    assert split(trace(*TEAM)).at[:2].tolist() == [0.25, 0.25]
    judged = trace(*TEAM, scores=events_scored("split", {"0#0": 1.0, "0#1": 0.5}))
    assert split(judged).at[:2].tolist() == [0.5, 0.25]
    assert split(trace(*TEAM[1:])) is None


def test_aggregation_is_judged_or_the_share_of_returns_that_were_used():
    used = trace(*TEAM, edges=[("1#2", "0#2"), ("0#2", "0#3")])
    assert aggregation(used).total == 0.5
    judged = trace(*TEAM, scores=events_scored("aggregation", {"0#2": 0.9}))
    assert aggregation(judged).total == 0.9
    assert aggregation(trace(*TEAM[:-1])) is None


def test_going_on_costs_and_stopping_does_not():
    stop = event("0#2", tokens=tokens(5, 5), decision=Decision(type="stop"))
    given = trace(turn("0#0", tokens=tokens(10, 10)), turn("0#1", tokens=tokens(20, 10)), stop)
    assert stopping(given, turn=0.5, token=0.01).at.tolist() == pytest.approx([-0.7, -0.8, -0.1])
    assert stopping(PAIR, turn=1.0).total == -3.0
    assert stopping(PAIR, token=1.0) is None


def test_puppeteers_price_of_steps():
    assert step_cost(6, 6) == pytest.approx(0.1)
    assert step_cost(0, 1) == pytest.approx(0.1 * log(1.5) / log(2))
    turns = [turn(f"0#{n}", tokens=tokens(40_000, 10_000)) for n in range(3)]
    paid = step_costs(trace(*turns, outcome=1.0), max_steps=6)
    first, second, third = (step_cost(step, 6) for step in range(3))
    assert paid.at.tolist() == pytest.approx([-first / 2, -second / 2, 0])
    assert paid.final == pytest.approx(third / 2)
    assert step_costs(trace(*turns, outcome=0.0), max_steps=6).final == pytest.approx(-third / 2)
    assert step_costs(trace(*turns), max_steps=6) is None
    assert step_costs(PAIR, max_steps=6) is None


def test_budgets_of_tokens():
    given = trace(turn("0#0", tokens=tokens(1000, 4000)), turn("0#1", tokens=tokens(0, 0)))
    assert token_budget(given).total == -0.5
    assert token_budget(given, budget=100).total == -1.0
    assert token_budget(PAIR) is None
    assert overlong(given).total == -0.5  # 4000 lies half way from 3000 to 5000
    assert overlong(given, soft=5000, hard=6000).total == 0.0
    assert overlong(PAIR) is None


# ---- all of them

NEEDED = {"role": {"role": "solver"}, "folding": {"limit": 9}, "step_costs": {"max_steps": 9}}


@examples(60, shrink=False)
@on(traces())
def test_on_any_trace_a_channel_pays_something_finite_or_says_that_it_cannot(given):
    for name, channel in CHANNELS.items():
        with np.errstate(over="ignore", invalid="ignore"):
            stream = channel(given, **NEEDED.get(name, {}))
        if stream is not None:
            assert stream.at.shape == (len(given.events),)
            assert not np.isnan(stream.at).any()


@pytest.mark.parametrize("name", CHANNELS)
def test_a_channel_never_changes_the_trace_and_says_the_same_twice(name):
    before = repr(PAIR)
    first, second = (CHANNELS[name](PAIR, **NEEDED.get(name, {})) for _ in range(2))
    assert repr(PAIR) == before
    assert (first and first.total) == (second and second.total)
