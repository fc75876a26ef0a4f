"""Proxy against utility over the steps of a run."""

import numpy as np
import pytest

from stretto.rewards.mix import Mix
from stretto.rewards.watch import (
    LEAST,
    Sighting,
    flat_speedup,
    hacked,
    pays_proxies,
    proxy_correlation,
    sight,
)
from stretto.team.protocols import Prices
from stretto.trace import Score

from ..examples import event, trace, turn

PRICES = Prices(spawn=0.1)


def history(proxy, utility):
    return [Sighting(p, u) for p, u in zip(proxy, utility, strict=True)]


RISING = np.arange(12) / 10
WAVES = np.array([0.0, 0.01, -0.01] * 4)


def test_a_step_is_seen_as_proxy_and_utility():
    """Two spawns of four: proxy .5·.5, whatever the step; utility .75 less two prices."""
    given = trace(
        turn("0#0"), event("0#1", "spawn", to="1"), event("0#2", "spawn", to="2"), outcome=0.75
    )
    mix = Mix(parallel=0.5, most=4, anneal=10)
    expected = Sighting(pytest.approx(0.25), pytest.approx(0.55), spawning=0.5)
    assert sight(mix, PRICES, [given]) == expected
    assert pays_proxies(mix, PRICES, 9)
    assert not pays_proxies(mix, PRICES, 10)


def test_the_mean_is_over_what_was_scored():
    one = trace(turn("0#0"), outcome=1.0, scores=(Score(channel="judge", value=0.5),))
    mix = Mix(channels={"verifiers": {"channels": ["judge"], "optional": True}})
    assert sight(mix, Prices(), [one, trace(turn("0#0"), outcome=0.0)]) == Sighting(0.5, 0.5)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_utility_is_the_outcome_however_little_it_is_paid_for(weight):
    mix = Mix(channels={"outcome": weight})
    assert sight(mix, PRICES, [trace(turn("0#0"), outcome=0.75)]).utility == 0.75


@pytest.mark.parametrize("mix", [Mix(), Mix(channels={"tool_calls": -1.0, "shaping": 1.0})])
def test_prices_penalties_and_shaping_are_no_proxies(mix):
    assert sight(mix, PRICES, [trace(turn("0#0"), outcome=1.0)]).proxy is None
    assert not pays_proxies(mix, PRICES, 0)


def test_up_and_down_is_hacked_and_up_and_up_is_not():
    assert hacked(history(RISING, -RISING + WAVES))
    assert not hacked(history(RISING, RISING + WAVES))


def test_a_proxy_that_falls_while_the_utility_rises_is_no_hack():
    assert proxy_correlation(history(-RISING, RISING + WAVES)) < -0.9
    assert not hacked(history(-RISING, RISING + WAVES))


def test_only_what_was_seen_often_enough_and_lately_counts():
    few = LEAST - 1
    assert proxy_correlation(history(RISING[:few], -RISING[:few])) is None
    assert proxy_correlation(history(RISING, [1.0] * 12)) is None
    unknown = [Sighting(None, 1.0)] * 30
    assert proxy_correlation(unknown) is None
    long_ago = history(np.arange(80.0), [*-np.arange(40.0), *np.arange(40.0)])
    assert proxy_correlation(long_ago) == pytest.approx(1.0)


def test_noise_is_hardly_ever_taken_for_hacking():
    """Of 1,000 windows of noise that moves both against each other, less than one in 200."""
    noise = np.random.default_rng(0).normal(size=(1000, 2, 40))
    assert sum(hacked(history(p, u - 2 * p)) for p, u in noise) < 5


@pytest.mark.parametrize(
    ("parallel", "speedup", "flagged"),
    [
        ([0.1, 0.5, 0.9], [1.0, 1.0, 1.02], True),
        ([0.1, 0.5, 0.9], [1.0, 2.0, 3.0], False),
        ([0.5, 0.5, 0.5], [1.0, 1.0, 1.0], False),
        ([0.9, 0.5, 0.1], [1.0, 1.0, 1.0], False),
    ],
)
def test_instantiation_up_and_speedup_flat_is_flagged(parallel, speedup, flagged):
    assert flat_speedup(parallel, speedup) is flagged
