"""The loss on two prompts and three turns, in numbers."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stretto.learn.batch import Batch
from stretto.learn.losses import divergence, entropy, policy_loss
from stretto.team.protocols import Ask

from ..strategies import examples

EVEN = torch.tensor([0.5, 0.5], dtype=torch.float64)
SKEW = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
NOW = [EVEN.log(), SKEW.log()]
ASKS = tuple(Ask(name, "", name, tuple("abc"[:n]), "", 0) for name, n in (("even", 2), ("skew", 3)))


def batch(rows, episodes=2):
    """Turns as (ask, chosen, behaviour probability, advantage)."""
    ask, chosen, behaviour, advantage = zip(*rows, strict=True)
    return Batch(
        asks=ASKS,
        ask=torch.tensor(ask),
        chosen=torch.tensor(chosen),
        behaviour=torch.tensor(behaviour, dtype=torch.float64).log(),
        advantage=torch.tensor(advantage, dtype=torch.float64),
        episodes=episodes,
    )


@pytest.mark.parametrize(
    ("row", "surrogate"),
    [
        ((0, 0, 0.5, 3.0), 3.0),
        ((0, 0, 0.4, 1.0), 1.2),
        ((0, 0, 0.4, -1.0), -1.25),
        ((1, 0, 0.4, 1.0), 0.5),
        ((1, 0, 0.4, -1.0), -0.8),
        ((1, 2, 0.5, -2.0), -2.0),
        ((0, 0, 0.45, 1.0), 0.5 / 0.45),
    ],
)
def test_one_turn(row, surrogate):
    """The smaller of ratio and clipped ratio times the advantage, negated, per episode."""
    assert policy_loss(NOW, batch([row]), 0.2).item() == pytest.approx(-surrogate / 2)


def test_turns_are_summed_and_episodes_averaged():
    rows = [(0, 0, 0.4, 1.0), (1, 2, 0.5, -2.0), (1, 0, 0.4, -1.0)]
    expected = -(1.2 - 2.0 - 0.8)
    assert policy_loss(NOW, batch(rows), 0.2).item() == pytest.approx(expected / 2)
    assert policy_loss(NOW, batch(rows, 5), 0.2).item() == pytest.approx(expected / 5)


def test_the_order_of_turns_is_no_matter():
    rows = [(0, 0, 0.4, 1.0), (1, 2, 0.5, -2.0), (1, 0, 0.4, -1.0)]
    forwards, backwards = (policy_loss(NOW, batch(each), 0.2) for each in (rows, rows[::-1]))
    assert forwards.item() == pytest.approx(backwards.item())


def gradient(row, clip=0.2):
    logits = [each.clone().requires_grad_() for each in NOW]
    policy_loss([each.log_softmax(0) for each in logits], batch([row]), clip).backward()
    return [each.grad for each in logits]


def test_on_policy_the_gradient_is_that_of_reinforce():
    """`-A (onehot - p) / episodes`, and nothing at prompts of other turns."""
    even, skew = gradient((1, 2, 0.5, 4.0))
    assert even is None or not even.any()
    assert skew.tolist() == pytest.approx([4 * 0.2 / 2, 4 * 0.3 / 2, -4 * 0.5 / 2])


@pytest.mark.parametrize("row", [(0, 0, 0.4, 1.0), (1, 0, 0.4, -1.0)])
def test_a_clipped_turn_moves_nothing(row):
    assert all(each is None or not each.any() for each in gradient(row))


@pytest.mark.parametrize("row", [(0, 0, 0.4, -1.0), (1, 0, 0.4, 1.0)])
def test_a_turn_that_went_the_wrong_way_is_not_clipped(row):
    assert any(each is not None and each.any() for each in gradient(row))


def test_a_turn_without_advantage_moves_nothing():
    assert not any(each.any() for each in gradient((0, 0, 0.5, 0.0)) if each is not None)


def test_entropy_is_the_mean_over_turns():
    skew = -(0.2 * log(0.2) + 0.3 * log(0.3) + 0.5 * log(0.5))
    rows = [(0, 0, 0.5, 0.0), (1, 0, 0.5, 0.0), (1, 1, 0.5, 0.0)]
    assert entropy(NOW, batch(rows)).item() == pytest.approx((log(2) + 2 * skew) / 3)


def test_divergence_is_exact_and_the_mean_over_turns():
    reference = [torch.tensor([0.9, 0.1], dtype=torch.float64).log(), SKEW.log()]
    even = 0.5 * log(0.5 / 0.9) + 0.5 * log(0.5 / 0.1)
    rows = [(0, 0, 0.5, 0.0), (1, 0, 0.5, 0.0), (1, 1, 0.5, 0.0)]
    assert divergence(NOW, reference, batch(rows)).item() == pytest.approx(even / 3)


weights = st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(
    lambda row: torch.tensor(row, dtype=torch.float64).log_softmax(0)
)


@examples(60)
@given(weights, weights)
def test_divergence_is_never_negative_and_zero_only_between_equals(policy, reference):
    one = batch([(1, 0, 0.5, 0.0)])
    assert divergence([EVEN.log(), policy], [EVEN.log(), policy], one).item() == 0.0
    assert divergence([EVEN.log(), policy], [EVEN.log(), reference], one).item() >= -1e-12
    assert 0 <= entropy([EVEN.log(), policy], one).item() <= log(3) + 1e-12


@examples(60)
@given(weights, st.integers(0, 2), st.floats(0.05, 1.0), st.floats(-3, 3), st.floats(0, 0.5))
def test_clipping_never_promises_more(policy, chosen, behaviour, advantage, clip):
    one = batch([(1, chosen, behaviour, advantage)])
    now = [EVEN.log(), policy]
    ratio = policy[chosen].exp().item() / behaviour
    surrogate = -2 * policy_loss(now, one, clip).item()
    assert surrogate <= ratio * advantage + 1e-9
    inside = abs(ratio - 1) <= clip
    if inside:
        assert surrogate == pytest.approx(ratio * advantage, abs=1e-9)
