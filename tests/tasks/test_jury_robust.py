"""The curve S(f) of a jury whose strongest witnesses lie: by hand, as published, by simulation."""

from itertools import combinations

import numpy as np
import pytest

from stretto.errors import StrettoError
from stretto.tasks.jury import KINDS, LIES, Case, Jury, case_of
from stretto.tasks.jury import robust as jury_robust
from stretto.tasks.jury.accuracy import accuracy, majority_accuracy
from stretto.tasks.jury.robust import curve, robustness
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout

from .juries import SMALL, enumerate_claims


def test_three_voters_by_hand(monkeypatch):
    """One of 0.9 outweighs two of 0.6: weighing follows it, and falls with it."""
    seat(monkeypatch, [0.9, 0.6, 0.6])
    clean, lie = curve(Jury(classes=2, witnesses=3, copies=0, liars=0), most=1)
    assert clean.weighed == pytest.approx(0.9)
    assert clean.counted == pytest.approx(0.9 * (1 - 0.16) + 0.1 * 0.36)
    assert lie.weighed == pytest.approx(0.1)
    assert lie.counted == pytest.approx(0.1 * (1 - 0.16) + 0.9 * 0.36)
    (_, knowing) = curve(Jury(classes=2, witnesses=3, copies=0, liars=0), 1, knowing=True)
    assert (knowing.weighed, knowing.counted) == pytest.approx((0.0, 0.36))


def test_nine_voters_as_published(monkeypatch):
    """Weighing is better than counting, until the strongest lie: then it is worse.

    The published figures do not say how reliable the nine are; these are among those that give
    them, with liars who know the right colour.
    """
    seat(monkeypatch, [0.76, 0.75, 0.73, 0.70, 0.66, 0.65, 0.65, 0.63, 0.62])
    found = curve(Jury(classes=2, witnesses=9, copies=0, liars=0), most=2, knowing=True)
    assert [round(each.counted, 3) for each in found] == [0.881, 0.757, 0.562]
    assert [round(each.weighed, 3) for each in found] == [0.888, 0.714, 0.398]


@pytest.mark.parametrize("task", SMALL)
def test_the_mean_over_all_sets_of_liars_is_the_accuracy(task):
    """Drawn liars are any set alike, so planting every set in turn gives what is drawn."""
    everybody = range(task.witnesses)
    found = [robustness(task, lying) for lying in combinations(everybody, task.liars)]
    assert np.mean([each.weighed for each in found]) == pytest.approx(accuracy(task), abs=1e-12)
    counted = np.mean([each.counted for each in found])
    assert counted == pytest.approx(majority_accuracy(task), abs=1e-12)
    assert sum(enumerate_claims(task).values()) == pytest.approx(1.0)


@pytest.mark.parametrize("fault", LIES)
def test_votes_are_right_as_often_as_computed(fault):
    task = Jury(fault=fault, seed=1)
    found = robustness(task, case_of(task).strongest[: task.lies])
    for script, expected in (("oracle", found.weighed), ("greedy", found.counted)):
        right = [t.reward("success") for t in rollout(task, scripts_of(task)[script], range(500))]
        assert abs(np.mean(right) - expected) < 4 * np.std(right) / 500**0.5


def test_too_much_to_enumerate_is_refused():
    with pytest.raises(StrettoError, match="too many to enumerate"):
        curve(Jury(witnesses=11))


def seat(monkeypatch, reliabilities):
    """Voters of these reliabilities, in the place of a case that is drawn."""
    kinds = tuple(f"{'-'.join(map(str, reliabilities))} {n}" for n in range(len(reliabilities)))
    for kind, reliability in zip(kinds, reliabilities, strict=True):
        monkeypatch.setitem(KINDS, kind, reliability)
    case = Case(kinds, kinds, tuple(range(len(kinds))))
    monkeypatch.setattr(jury_robust, "case_of", lambda _: case)
