"""How often votes in `jury` are right when the strongest witnesses lie: the curve S(f), exactly.

The judge knows nothing of planted lies. Who weighs claims trusts the strongest most, so weighing,
best while witnesses keep to the rules, may lose more by a lie than counting does.
"""

from collections.abc import Collection
from itertools import product

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.jury import Jury, case_of
from stretto.tasks.jury.evidence import Floats, shows, times, unheard, weight

MOST_CLAIMS = 60_000
"""Most combinations of claims that are enumerated."""

Ints = NDArray[np.int64]


class Robustness(Struct, frozen=True):
    """How often a vote on the claims of all is right."""

    weighed: float
    """The vote of highest posterior."""
    counted: float
    """The colour that most say; ties by a fair coin."""


def curve(task: Jury, most: int = 3, knowing: bool = False) -> list[Robustness]:
    """S(f) for f = 0 to `most`: the f strongest witnesses lie, and nobody else.

    Raises `StrettoError` for more than `MOST_CLAIMS` combinations of claims.
    """
    strongest = case_of(task).strongest
    return [robustness(task, strongest[:lying], knowing) for lying in range(most + 1)]


def robustness(task: Jury, lying: Collection[int], knowing: bool = False) -> Robustness:
    """How often votes are right when just these witnesses lie; the judge knows `liars`.

    Args:
        task: The rules of the case.
        lying: Who lies: says another colour than it saw, any of them alike.
        knowing: Whether liars are worse than any in an episode: they know the right colour, and
            say another than that.

    Raises `StrettoError` for more than `MOST_CLAIMS` combinations of claims.
    """
    if task.classes**task.witnesses > MOST_CLAIMS:
        what = f"{task.classes}^{task.witnesses} combinations of claims are too many to enumerate"
        raise StrettoError(what, "jury_robust", "take fewer witnesses or classes")
    rows = np.array(list(product(range(task.classes), repeat=task.witnesses)))
    chance = _drawn(task, rows, lying, knowing) / task.classes
    counts = np.stack([(rows == colour).sum(axis=1) for colour in range(task.classes)], axis=1)
    most = counts == counts.max(axis=1, keepdims=True)
    counted = (chance * most / most.sum(axis=1, keepdims=True)).sum()
    votes = _votes(task, rows)
    return Robustness(float(chance[np.arange(len(rows)), votes].sum()), float(counted))


def _drawn(task: Jury, rows: Ints, lying: Collection[int], knowing: bool) -> Floats:
    """Probability of each row of claims under each colour; shape (rows, classes)."""
    total, hidden = np.ones((len(rows), task.classes)), np.arange(task.classes)
    for kind, holders in _pieces(task):
        group = np.zeros_like(total)
        for shown in range(task.classes):
            told = np.ones_like(total)
            for holder in holders:
                said = rows[:, holder, None]
                if holder in lying:
                    told *= (said != (hidden if knowing else shown)) / (task.classes - 1)
                else:
                    told *= said == shown
            group += told * shows(kind, shown, task.classes)
        total *= group
    return total


def _votes(task: Jury, rows: Ints) -> Ints:
    """The best vote on each row; the number of liars is the nearest with which it can be said."""
    votes = np.full(len(rows), -1)
    for number in sorted(range(task.witnesses + 1), key=lambda n: abs(n - task.liars)):
        left = np.flatnonzero(votes < 0)
        likelihood = _likelihood(task, rows[left], number)
        found = likelihood.any(axis=1)
        belief = likelihood[found] / likelihood[found].sum(axis=1, keepdims=True)
        votes[left[found]] = belief.round(12).argmax(axis=1)
    return votes


def _likelihood(task: Jury, rows: Ints, liars: int) -> Floats:
    """Likelihood of each row under each colour, up to a factor; shape (rows, classes)."""
    total = np.broadcast_to(unheard(0, liars), (len(rows), task.classes, liars + 1))
    colours = range(task.classes)
    for kind, holders in _pieces(task):
        said = list(product(colours, repeat=len(holders)))
        counts = [tuple(each.count(colour) for colour in colours) for each in said]
        table = np.stack([weight(kind, each, liars) for each in counts])
        place = np.ravel_multi_index(rows[:, holders].T, (task.classes,) * len(holders))
        total = times(table[place], total)
    return total[:, :, liars]


def _pieces(task: Jury) -> list[tuple[str, list[int]]]:
    """Kind of each piece of evidence, and who has it."""
    case = case_of(task)
    return [
        (kind, [n for n, held in enumerate(case.holds) if held == item])
        for item, kind in enumerate(case.kinds)
    ]
