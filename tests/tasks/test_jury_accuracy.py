"""How often votes of a jury are right: against enumeration, by hand, and for hundreds."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks.jury import KINDS, Jury, case_of
from stretto.tasks.jury.accuracy import accuracy, majority_accuracy, witness_values

from .juries import CASES, SMALL, enumerate_claims

MORE = [
    Jury(classes=2, witnesses=6, copies=1, liars=2, faint=3, seed=5),
    Jury(classes=2, witnesses=6, copies=3, liars=0, seed=6),
    Jury(classes=3, witnesses=4, copies=0, liars=2, seed=7),
]


def test_one_witness_by_hand():
    task = Jury(classes=3, witnesses=1, copies=0, liars=0)
    r = KINDS[case_of(task).kinds[0]]
    assert accuracy(task) == majority_accuracy(task) == pytest.approx(r)
    assert accuracy(task, []) == pytest.approx(1 / 3)
    # A known liar of two colours says the wrong one as often as an honest witness the right one.
    assert accuracy(Jury(classes=2, witnesses=1, copies=0, liars=1)) == pytest.approx(r)


def test_two_colours_and_three_alike_by_hand():
    task = Jury(classes=2, witnesses=3, copies=0, liars=0, faint=3)
    r = KINDS["faint"]
    assert accuracy(task) == pytest.approx(r**3 + 3 * r**2 * (1 - r), abs=1e-15)


def binomial(count, chance):
    return [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]


@pytest.mark.parametrize(("witnesses", "liars"), [(101, 0), (101, 20), (701, 30)])
def test_hundreds_alike_are_a_binomial(witnesses, liars):
    """Of pieces that are all alike the most said colour is the best vote."""
    task = Jury(classes=2, witnesses=witnesses, copies=0, liars=liars, faint=witnesses)
    r = KINDS["faint"]
    right = np.convolve(binomial(witnesses - liars, r), binomial(liars, 1 - r))
    expected = right[witnesses // 2 + 1 :].sum()
    assert accuracy(task) == pytest.approx(expected, abs=1e-12)
    if witnesses < 200:
        assert majority_accuracy(task) == pytest.approx(expected, abs=1e-12)


def test_copies_without_liars_count_once():
    task = Jury(classes=3, witnesses=200, copies=193, liars=0)
    alone = replace(task, witnesses=7, copies=0)
    pairs = zip(case_of(task).kinds, case_of(alone).kinds, strict=True)
    assert all(a == b for a, b in pairs)
    assert accuracy(task) == pytest.approx(accuracy(alone), abs=1e-12)


@pytest.mark.parametrize(("witnesses", "copies", "liars"), [(100, 10, 5), (700, 5, 30)])
def test_long_cases_are_neither_sure_nor_solved_by_counting(witnesses, copies, liars):
    faint = witnesses - copies - 9
    rules = {"witnesses": witnesses, "copies": copies, "liars": liars, "faint": faint}
    task = Jury(classes=2, **rules)
    assert 0.85 < accuracy(task) < 0.98
    if witnesses == 100:
        assert majority_accuracy(task) < accuracy(task) - 0.1


@pytest.mark.parametrize("task", [*SMALL, *MORE])
def test_accuracies_equal_enumeration_for_every_coalition(task):
    joint = enumerate_claims(task)
    for size in range(task.witnesses + 1):
        for known in combinations(range(task.witnesses), size):
            table = {}
            for (hidden, claims), chance in joint.items():
                row = table.setdefault(tuple(claims[n] for n in known), [0.0] * task.classes)
                row[hidden] += chance
            assert accuracy(task, known) == pytest.approx(sum(map(max, table.values())), abs=1e-12)
    right = 0.0
    for (hidden, claims), chance in joint.items():
        counts = [claims.count(c) for c in range(task.classes)]
        most = [c for c, count in enumerate(counts) if count == max(counts)]
        right += chance * (hidden in most) / len(most)
    assert majority_accuracy(task) == pytest.approx(right, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(CASES)
def test_weighing_beats_counting_and_values_add_up(task):
    task = replace(task, witnesses=min(task.witnesses, 5))
    assert majority_accuracy(task) <= accuracy(task) + 1e-12
    values = witness_values(task)
    assert values.sum() == pytest.approx(accuracy(task) - 1 / task.classes)
    assert (values >= -1e-12).all()


def test_holders_of_one_piece_are_worth_the_same():
    task = Jury(witnesses=6, copies=3)
    case, values = case_of(task), witness_values(task)
    for a, b in combinations(range(6), 2):
        if case.kinds[case.holds[a]] == case.kinds[case.holds[b]]:
            same = case.holds.count(case.holds[a]) == case.holds.count(case.holds[b])
            assert not same or values[a] == pytest.approx(values[b])


def test_too_much_to_enumerate_is_refused():
    with pytest.raises(StrettoError, match="too many to sum over"):
        accuracy(Jury(witnesses=300, copies=0))
    with pytest.raises(StrettoError, match="too many to sum over"):
        accuracy(Jury(classes=4, witnesses=900, copies=899))
    with pytest.raises(StrettoError, match="too many to sum over"):
        majority_accuracy(Jury(classes=4, witnesses=900))
    with pytest.raises(StrettoError, match="too many to enumerate"):
        witness_values(Jury(classes=2, witnesses=12))


def test_counting_is_worse_than_weighing_where_there_are_copies_and_liars():
    gaps = [accuracy(t) - majority_accuracy(t) for t in (Jury(copies=3, seed=s) for s in range(8))]
    assert min(gaps) >= 0 and np.mean(gaps) > 0.02
