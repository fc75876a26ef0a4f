"""Every reward family on one small trace, in numbers."""

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.rewards import add, final, scale
from stretto.rewards.cost import cost
from stretto.rewards.mix import Mix, mixed
from stretto.rewards.orchestration import anneal, finish, parallel
from stretto.rewards.outcome import outcome
from stretto.rewards.stream import end_of
from stretto.team.protocols import Prices
from stretto.trace import Score, Trace

from ..examples import event, trace, turn
from ..strategies import examples

SMALL = trace(
    turn("0#0", 0.0, 1.0),
    event("0#1", "spawn", 1.0, 0.0, to="0/0"),
    event("0#2", "spawn", 1.0, 0.0, to="0/1"),
    event("0/0#0", "tool_call", 1.0, 4.0),
    event("0/1#0", "return", 2.0, 0.0, to="0"),
    event("0#3", "stop", 3.0, 0.5),
    outcome=0.75,
)
PRICES = Prices(spawn=0.1, second=0.01)


def test_the_outcome_is_paid_when_the_episode_ends():
    stream = outcome(SMALL)
    assert stream.final == 0.75
    assert not stream.at.any()
    assert (stream.per_second, stream.total) == (0.0, 0.75)


def test_what_was_not_scored_has_no_outcome():
    assert outcome(trace(event("0#0"))) is None
    assert outcome(SMALL, "format") is None
    assert outcome(trace(event("0#0"), outcome=0.0)).total == 0.0


def test_an_outcome_may_come_on_another_channel():
    scores = (Score(channel="format", value=-2.0),)
    assert outcome(trace(event("0#0"), scores=scores), "format").total == -2.0


def test_effort_costs_with_every_spawn_and_every_second():
    stream = cost(SMALL, spawn=0.1, second=0.01)
    assert stream.at.tolist() == [0, -0.1, -0.1, 0, 0, 0]
    assert (stream.per_second, stream.end) == (-0.01, 5.0)
    assert stream.total == pytest.approx(-0.25)


def test_an_episode_ends_when_its_last_event_ends_whatever_the_record_order():
    assert end_of(SMALL) == 5.0
    assert end_of(trace(event("a", start=2.0), event("b", duration=9.0))) == 2.0
    assert end_of(trace(event("a"))) == end_of(Trace(id="t")) == 0.0


def test_parallel_pays_each_spawn_its_share():
    assert parallel(SMALL, 8).at.tolist() == [0, 0.125, 0.125, 0, 0, 0]
    assert parallel(SMALL, 2).total == 1.0


def test_parallel_pays_no_more_than_the_most():
    assert parallel(SMALL, 1).at.tolist() == [0, 0.5, 0.5, 0, 0, 0]


def test_finish_is_the_share_of_the_spawned_that_returned():
    assert finish(SMALL).total == 0.5
    assert finish(SMALL).final == 0.5
    none_returned = trace(event("0#0", "spawn", to="0/0"))
    assert finish(none_returned).total == 0.0


def test_finish_is_not_scored_where_nobody_was_spawned():
    assert finish(trace(event("0#0"), event("0#1", "return"))) is None


def test_a_return_of_somebody_who_was_not_spawned_finishes_nothing():
    given = trace(event("0#0", "spawn", to="0/0"), event("0#1", "return"))
    assert finish(given).total == 0.0


def test_an_agent_that_returns_twice_finishes_once():
    twice = trace(
        event("0#0", "spawn", to="0/0"),
        event("0#1", "spawn", to="0/1"),
        event("0/0#0", "return"),
        event("0/0#1", "return"),
    )
    assert finish(twice).total == 0.5


@pytest.mark.parametrize(
    ("step", "weight"), [(0, 0.8), (5, 0.4), (9, 0.08), (10, 0.0), (11, 0.0), (1000, 0.0)]
)
def test_weights_fall_linearly_to_zero_and_stay_there(step, weight):
    assert anneal(0.8, step, 10) == pytest.approx(weight)


def test_the_mix_adds_outcome_cost_and_annealed_terms():
    mix = Mix(cost=2.0, parallel=0.8, finish=0.4, most=4, anneal=10)
    expected = 0.75 - 2 * 0.25 + 0.4 * 0.5 + 0.2 * 0.5
    assert mixed(mix, PRICES, step=5)(SMALL).total == pytest.approx(expected)


def test_a_mix_pays_each_part_when_it_falls():
    mix = Mix(cost=1.0, parallel=1.0, finish=1.0, most=4, anneal=10)
    stream = mixed(mix, PRICES, step=0)(SMALL)
    assert stream.at.tolist() == pytest.approx([0, 0.15, 0.15, 0, 0, 0])
    assert stream.final == pytest.approx(1.25)
    assert (stream.per_second, stream.end) == (-0.01, 5.0)


@pytest.mark.parametrize(
    "mix",
    [Mix(cost=0.0), Mix(cost=0.0, parallel=1.0, finish=1.0, anneal=10)],
    ids=["no weights", "annealed"],
)
def test_parl_without_its_terms_is_the_outcome(mix):
    stream = mixed(mix, PRICES, step=10)(SMALL)
    assert stream.total == outcome(SMALL).total
    assert stream.at.tolist() == outcome(SMALL).at.tolist()


def test_finish_is_left_out_where_nobody_was_spawned():
    alone = trace(turn("0#0", 0.0, 1.0), outcome=1.0)
    mix = Mix(cost=0.0, finish=0.5, anneal=10)
    assert mixed(mix, PRICES, step=0)(alone).total == 1.0


def test_a_mix_of_an_unscored_trace_is_not_scored():
    unscored = trace(event("0#0", "spawn", 0.0, to="0/0"))
    assert mixed(Mix(parallel=1.0, anneal=10), PRICES, step=0)(unscored) is None


def test_a_weight_that_is_set_is_paid_at_the_first_step_or_refused():
    try:
        reward = mixed(Mix(cost=0.0, parallel=0.5), PRICES, step=0)
    except StrettoError:
        return
    assert reward(SMALL).total == pytest.approx(0.75 + 0.5 * 2 / 8)


def test_streams_of_a_trace_without_events_are_empty():
    empty = Trace(id="t", scores=(Score(channel="outcome", value=1.0),))
    assert cost(empty, 1.0, 1.0).total == 0.0
    assert parallel(empty, 3).total == 0.0


numbers = st.floats(-100, 100)


@examples(60)
@given(numbers, numbers, numbers, numbers)
def test_adding_and_scaling_are_linear(first, second, price, factor):
    a = final(SMALL, first)
    b = add([final(SMALL, second), cost(SMALL, 0.0, price)])
    mixture = add([scale(a, factor), b])
    assert mixture.total == pytest.approx(factor * first + second - 5 * price, abs=1e-9)
    np.testing.assert_allclose(mixture.at, factor * a.at + b.at)
    assert mixture.end == 5.0


@examples(60)
@given(st.lists(st.sampled_from(["spawn", "return", "decision"]), min_size=1), st.integers(1, 5))
def test_parls_terms_lie_between_zero_and_one(kinds, most):
    given = trace(*(event(f"0#{i}", kind, float(i), to="0/0") for i, kind in enumerate(kinds)))
    assert 0 <= parallel(given, most).total <= 1 + 1e-12
    finished = finish(given)
    assert finished is None or 0 <= finished.total <= 1
    assert cost(given, 0.5, 0.5).total <= 0


def test_unknown_times_are_no_effort_but_no_nan_either():
    assert cost(trace(event("a"), event("b", "spawn")), 0.5, 0.5).total == -0.5
    assert cost(trace(event("a", start=nan)), 0.5, 0.5).total == 0.0
