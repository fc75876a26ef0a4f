"""How often votes in `jury` are right, exactly, and what each witness adds to that.

Pieces of one kind that as many witnesses hold are alike, so not claims are enumerated but profiles:
how many such pieces have each count of claims. For two colours without copies that is a polynomial
in the number of witnesses; hundreds take well under a second.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, factorial, prod

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.games.coalitions import shapley
from stretto.tasks.jury import Jury, case_of
from stretto.tasks.jury.evidence import Floats, powers, times, unheard, weight

MOST_PROFILES = 30_000_000
"""Most profiles that are summed over."""
MOST_ALIKE = 200_000
"""Most profiles of the pieces of one kind, and most that can be said about one piece."""
MOST_PLAYERS = 10
"""Most witnesses whose Shapley values are enumerated."""
BLOCK = 1_000_000
"""Profiles that are held at once."""

Kinds = tuple[tuple[tuple[str, int], int], ...]
"""Kind of pieces and how many were heard about each, and how many such pieces there are."""


def accuracy(task: Jury, known: Collection[int] | None = None) -> float:
    """How often the best vote is right if the claims of these witnesses reach the judge, or all.

    A planted fault does not count: the judge knows nothing of it (see `jury.robust`).

    Raises `StrettoError` for more than `MOST_PROFILES` profiles.
    """
    heard = range(task.witnesses) if known is None else known
    silent = task.witnesses - len(heard)
    return _accuracy(_kinds(task, heard), silent, task.classes, task.liars)


def majority_accuracy(task: Jury) -> float:
    """How often the colour that most witnesses say is right; ties by a fair coin.

    Takes time and space that grow with `witnesses ** (classes - 1)`.

    Raises `StrettoError` for more than `MOST_PROFILES` numbers of votes.
    """
    size = task.witnesses + 1
    _require(size ** (task.classes - 1) * (task.liars + 1), MOST_PROFILES)
    votes = np.zeros((size,) * (task.classes - 1) + (task.liars + 1,))
    votes.flat[0] = 1.0
    for (kind, held), pieces in _kinds(task, range(task.witnesses), merged=False):
        for _ in range(pieces):
            votes = _voted(votes, kind, held, task.liars)
    counts = np.indices((size,) * (task.classes - 1))
    counts = np.concatenate([counts, task.witnesses - counts.sum(axis=0, keepdims=True)])
    most = counts == counts.max(axis=0)
    right = most[0] / most.sum(axis=0)  # all colours are alike: let the first be hidden
    return float((votes[..., task.liars] * right).sum() / comb(task.witnesses, task.liars))


def witness_values(task: Jury) -> Floats:
    """Shapley value of every witness, where a coalition is worth `accuracy`; shape (witnesses,).

    They sum to `accuracy` of all minus that of a guess. By enumeration of coalitions.

    Raises `StrettoError` for more than `MOST_PLAYERS` witnesses.
    """
    count = task.witnesses
    if count > MOST_PLAYERS:
        what = f"{count} witnesses are too many to enumerate"
        raise StrettoError(what, "witness_values", f"at most {MOST_PLAYERS}")
    coalitions = ([n for n in range(count) if mask >> n & 1] for mask in range(1 << count))
    return shapley(np.array([accuracy(task, members) for members in coalitions]))


def _kinds(task: Jury, heard: Collection[int], merged: bool = True) -> Kinds:
    """Pieces that are alike; without liars all that is said about one is the same."""
    case = case_of(task)
    held = Counter(case.holds[witness] for witness in heard)
    once = merged and not task.liars
    alike = Counter((case.kinds[item], 1 if once else count) for item, count in held.items())
    return tuple(sorted(alike.items()))


@lru_cache(maxsize=4096)
def _accuracy(kinds: Kinds, silent: int, classes: int, liars: int) -> float:
    outcomes = [[w for _, w in _outcomes(*kind, classes, liars)] for kind, _ in kinds]
    sizes = [comb(n + len(o) - 1, n) for (_, n), o in zip(kinds, outcomes, strict=True)]
    _require(prod(sizes), MOST_PROFILES)
    _require(max(sizes, default=0), MOST_ALIKE)
    halves = [
        np.tile(unheard(silent, liars), (1, classes, 1)),
        powers(np.zeros((classes, liars + 1)), 0),
    ]
    order = sorted(range(len(kinds)), key=lambda each: -sizes[each])
    for each in order:
        less = int(len(halves[1]) < len(halves[0]))
        table = _profiles(outcomes[each], kinds[each][1])
        both = times(halves[less][:, None], table[None])
        halves[less] = both.reshape(-1, classes, liars + 1)
    witnesses = silent + sum(held * pieces for (_, held), pieces in kinds)
    return min(1.0, _best_sum(*halves) / classes / comb(witnesses, liars))


def _best_sum(left: Floats, right: Floats) -> float:
    """Sum over all pairs of profiles of the greatest likelihood of a colour."""
    flipped = right[:, :, ::-1].transpose(1, 2, 0)  # the degrees of a pair add up to the liars
    step = max(1, BLOCK // len(right))
    blocks = (left[at : at + step].transpose(1, 0, 2) for at in range(0, len(left), step))
    return float(sum((block @ flipped).max(axis=0).sum() for block in blocks))


def _outcomes(
    kind: str, held: int, classes: int, liars: int
) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """What the holders of one piece can say, as counts, and how likely that is."""
    _require(comb(held + classes - 1, held), MOST_ALIKE)
    for said in _compositions(held, classes).tolist():
        ways = factorial(held) // prod(factorial(count) for count in said)
        found = weight(kind, tuple(said), liars)
        if found.any():
            yield tuple(said), ways * found


def _profiles(outcomes: Sequence[Floats], pieces: int) -> Floats:
    """How likely each profile of so many pieces is; shape (profiles, classes, liars + 1)."""
    counts = _compositions(pieces, len(outcomes))
    left = np.full(len(counts), pieces)
    total = powers(np.zeros_like(outcomes[0]), 0)
    for outcome, taken in zip(outcomes, counts.T, strict=True):
        ways = [float(comb(n, k)) for n, k in zip(left.tolist(), taken.tolist(), strict=True)]
        total = times(total, powers(outcome, pieces)[taken] * np.array(ways)[:, None, None])
        left = left - taken
    return total


def _require(profiles: int, most: int) -> None:
    if profiles > most:
        what = f"{profiles} profiles of claims are too many to sum over"
        raise StrettoError(what, "jury_accuracy", "take fewer classes, copies, liars or witnesses")


def _compositions(total: int, parts: int) -> NDArray[np.int64]:
    """All ways to write a number as an ordered sum of so many; shape (ways, parts)."""
    last = total + parts - 1
    bars = np.array(list(combinations(range(last), parts - 1)), dtype=np.int64)
    bars = bars.reshape(comb(last, parts - 1), parts - 1)
    ends = np.full((len(bars), 1), last)
    return np.diff(np.concatenate([ends * 0 - 1, bars, ends], axis=1), axis=1) - 1


def _voted(votes: Floats, kind: str, held: int, liars: int) -> Floats:
    """One piece more: votes for each colour but the last, and liars, if the first is hidden."""
    found = np.zeros_like(votes)
    classes = votes.ndim
    for said, chance in _outcomes(kind, held, classes, liars):
        into = tuple(slice(count, None) for count in said[:-1])
        out = tuple(slice(None, votes.shape[0] - count) for count in said[:-1])
        found[into] += times(votes[out], chance[0])
    return found
