"""The compute-matched gain: what a team adds to one agent at the same tokens."""

import numpy as np
import pytest

from stretto.bench.gain import (
    Attempt,
    Instance,
    area,
    best_of,
    bootstrap,
    curve,
    gain,
    gain_of,
    majority,
    mean_interval,
    scores_at,
    within,
)

TRIES = (Attempt(10, 0.2, "a"), Attempt(10, 0.9, "b"), Attempt(10, 0.4, "a"))


def test_what_is_done_within_a_budget():
    assert within(Attempt(10, 0.7), 10) == 0.7
    assert within(Attempt(10, 0.7), 9.9) == 0.0
    assert within(None, 100) == 0.0


def test_best_of_takes_as_many_as_fit():
    assert [best_of(TRIES, budget) for budget in (9, 10, 20, 30)] == [0.0, 0.2, 0.9, 0.9]


def test_majority_takes_the_most_frequent_answer():
    """At 20 both answers are said once and the first counts; at 30 `a` was said twice."""
    assert majority(TRIES, 20) == 0.2
    assert majority(TRIES, 30) == pytest.approx((0.2 + 0.4) / 2)
    assert majority(TRIES, 5) == 0.0
    assert majority((Attempt(1, 1.0, None),), 5) == 0.0, "no answer is no vote"


def test_gain_is_against_the_best_way_of_one_agent():
    instance = Instance(Attempt(30, 1.0), Attempt(20, 0.5), TRIES)
    table = scores_at([instance], [30])
    assert table.tolist() == [[1.0], [0.5], [0.9], [pytest.approx(0.3)]]
    assert gain_of(table) == pytest.approx(1.0 - 0.9)


def test_the_largest_of_means_not_the_mean_of_largest():
    table = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert gain_of(table) == pytest.approx(1.0 - 0.5)


def test_both_sides_may_finish():
    """A team that saves one word does not win by cutting the other off."""
    instance = Instance(Attempt(99, 1.0), Attempt(100, 1.0))
    found = gain([instance] * 5)
    assert (found.mean, found.low, found.high) == (0.0, 0.0, 0.0)


def test_curve_by_hand():
    """One agent is done at 10, the team at 100: Γ is -1 in between, then 0."""
    found = curve([Instance(Attempt(100, 1.0), Attempt(10, 1.0))])
    assert found.budgets[0] == 10
    assert set(found.gain) == {-1.0, 0.0}
    assert found.gain[-1] == 0.0
    assert found.auc == pytest.approx(-1.0, abs=0.05)
    assert found.team[-1] == found.one[-1] == 1.0


def test_who_was_stopped_before_the_end_breaks_no_curve():
    """Nobody knows how many tokens an attempt took that never came to its end."""
    lost = Attempt(float("inf"), 0.0)
    found = curve([Instance(lost, Attempt(10, 1.0)), Instance(Attempt(100, 1.0), lost, (lost,))])
    assert max(found.budgets) < 101 and not np.isnan(found.auc)
    assert gain([Instance(lost, Attempt(10, 1.0))]).mean == -1.0
    assert curve([Instance(lost, lost)]).budgets == ()


def test_area_is_a_mean():
    assert area(np.array([0.0, 1.0, 3.0]), np.array([2.0, 2.0, 2.0])) == 2.0
    assert area(np.array([0.0, 2.0]), np.array([0.0, 1.0])) == 0.5
    assert area(np.array([1.0]), np.array([0.3])) == 0.3


def test_intervals_hold_the_mean_and_are_reproducible():
    values = [0.0, 1.0] * 20
    found = mean_interval(values)
    assert found == mean_interval(values)
    assert found.low < found.mean == 0.5 < found.high
    assert 0.1 < found.high - found.low < 0.5
    same = bootstrap(np.ones((4, 10)), gain_of)
    assert (same.mean, same.low, same.high) == (0, 0, 0)
