from collections import Counter
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.team.noise import gumbel_argmax, key_of, uniform

from ..strategies import examples

KEYS = [key_of(seed, "0#0") for seed in range(20_000)]
NAMES = st.text("abcdef", min_size=1, max_size=3)


def chi_square(observed, expected):
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


def test_a_key_is_fixed_by_seed_and_name():
    """Draws are part of recorded traces: these numbers must never change."""
    assert key_of(0, "0#0") == 11524388266609898632
    assert key_of(7, "0/2#3") == 8090326701877558370
    assert uniform(0) == pytest.approx(0.28856539582605234, rel=1e-12)
    assert uniform(2**64 - 1, "stop") == pytest.approx(0.13992175621842184, rel=1e-12)


def test_keys_of_other_seeds_and_other_events_differ():
    keys = {key_of(seed, f"{agent}#{n}") for seed in range(20) for agent in "01" for n in range(20)}
    assert len(keys) == 800
    assert key_of(1, "1:0#0") != key_of(11, ":0#0")


def test_uniform_numbers_are_uniform():
    """Chi-square with 19 degrees of freedom: 43.8 is exceeded once in a thousand times."""
    for purpose in ("", "a"):
        cells = Counter(int(uniform(key, purpose) * 20) for key in KEYS)
        assert chi_square([cells[cell] for cell in range(20)], [1000.0] * 20) < 43.8


def test_numbers_for_consecutive_keys_are_uniform():
    cells = Counter(int(uniform(key) * 20) for key in range(20_000))
    assert chi_square([cells[cell] for cell in range(20)], [1000.0] * 20) < 43.8


@pytest.mark.parametrize(
    "other",
    [
        lambda index: uniform(KEYS[index], "b"),
        lambda index: uniform(KEYS[index - 1], "a"),
        lambda index: uniform(key_of(index, "0#1"), "a"),
    ],
    ids=["another purpose", "the last seed", "the next event"],
)
def test_draws_are_independent(other):
    first = np.array([uniform(key, "a") for key in KEYS])
    second = np.array([other(index) for index in range(len(KEYS))])
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / len(KEYS) ** 0.5
    cells = Counter(zip((first * 4).astype(int), (second * 4).astype(int), strict=True))
    counts = [cells[a, b] for a in range(4) for b in range(4)]
    assert chi_square(counts, [len(KEYS) / 16] * 16) < 37.7  # 15 degrees of freedom, .999


def key_with_hash(target):
    """The key whose last step of mixing gives `target`: every step can be undone."""
    mask = (1 << 64) - 1

    def unshift(value, bits):
        result = value
        for _ in range(64 // bits + 1):
            result = value ^ (result >> bits)
        return result

    value = unshift(target, 31)
    value = unshift(value * pow(0x94D049BB133111EB, -1, 1 << 64) & mask, 27)
    value = unshift(value * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask, 30)
    return (value - 0x9E3779B97F4A7C15) & mask


@pytest.mark.parametrize("target", [0, 1, (1 << 64) - 1, (1 << 64) - 500])
def test_the_ends_of_the_interval_are_never_drawn(target):
    from stretto.team import noise

    key = key_with_hash(target) ^ noise._hash64("")
    assert 0 < uniform(key) < 1


def test_choices_come_with_their_probabilities():
    probabilities = {"stop": 0.5, "one": 0.3, "two": 0.15, "three": 0.05}
    logprobs = [log(p) for p in probabilities.values()]
    names = list(probabilities)
    chosen = Counter(gumbel_argmax(key, names, logprobs) for key in KEYS)
    expected = [p * len(KEYS) for p in probabilities.values()]
    assert chi_square([chosen[i] for i in range(4)], expected) < 16.3  # 3 degrees of freedom, .999


def test_probabilities_need_not_be_normalised():
    names, logprobs = ["a", "b", "c"], [-1.0, -2.0, -0.5]
    shifted = [value + 40 for value in logprobs]
    for key in KEYS[:500]:
        assert gumbel_argmax(key, names, logprobs) == gumbel_argmax(key, names, shifted)


def test_what_is_impossible_is_never_chosen():
    assert {gumbel_argmax(key, ["a", "b", "c"], [-inf, -1.0, -1.0]) for key in KEYS[:500]} == {1, 2}
    assert gumbel_argmax(1, ["a", "b"], [-inf, -800.0]) == 1


@pytest.mark.parametrize("gap", [0.0, 1.0, 3.0])
def test_two_candidates_follow_the_logistic_function(gap):
    share = np.mean([gumbel_argmax(key, ["a", "b"], [gap, 0.0]) == 0 for key in KEYS])
    expected = 1 / (1 + exp(-gap))
    assert abs(share - expected) < 4 * (expected * (1 - expected) / len(KEYS)) ** 0.5


@st.composite
def lotteries(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    logprobs = draw(st.lists(st.floats(-6, 0), min_size=len(names), max_size=len(names)))
    return draw(st.integers(0, 2**64 - 1)), dict(zip(names, logprobs, strict=True))


def winner(key, table):
    return list(table)[gumbel_argmax(key, list(table), list(table.values()))]


@examples(150)
@given(lotteries(), st.data())
def test_the_winner_stays_when_others_are_taken_away(lottery, data):
    key, table = lottery
    won = winner(key, table)
    kept = data.draw(st.sets(st.sampled_from(list(table)))) | {won}
    assert winner(key, {name: value for name, value in table.items() if name in kept}) == won


@examples(80)
@given(lotteries(), st.data())
def test_the_winner_does_not_depend_on_the_order(lottery, data):
    key, table = lottery
    order = data.draw(st.permutations(list(table)))
    assert winner(key, {name: table[name] for name in order}) == winner(key, table)


@examples(80)
@given(lotteries(), st.floats(0, 5))
def test_the_winner_stays_when_it_becomes_more_likely(lottery, more):
    key, table = lottery
    won = winner(key, table)
    assert winner(key, {**table, won: table[won] + more}) == won
