"""How likely claims are: the polynomials that all exact values of `jury` are made of.

Evidence of reliability `r` shows colour `s` with probability `c(s|θ)`: `r` for `s = θ`, else
`(1-r)/(K-1)`. An honest holder says `s`, a liar any other colour alike. All sets of `f` liars are
alike, so with a variable `x` that counts liars

`P(claims | θ) = [x^f] Π_pieces Σ_s c(s|θ) (x/(K-1))^(h - h_s) · (1+x)^u / C(n, f)`

where `h_s` of the `h` holders of a piece who were heard say `s`, and `u` witnesses were not heard.
Only the counts of a piece matter, not who said what: such counts are its `Sign`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from stretto.tasks.jury import KINDS

Floats = NDArray[np.float64]

Sign = tuple[str, tuple[int, ...]]
"""Kind of a piece of evidence, and how many of its holders said each colour."""


@lru_cache(maxsize=65_536)
def weight(kind: str, said: tuple[int, ...], liars: int) -> Floats:
    """Polynomial of one piece under each hidden colour; shape (classes, liars + 1)."""
    classes = len(said)
    found = np.zeros((classes, liars + 1))
    for shown, honest in enumerate(said):
        lies = sum(said) - honest
        if lies <= liars:
            found[:, lies] += shows(kind, shown, classes) / (classes - 1) ** lies
    return found


def shows(kind: str, shown: int, classes: int) -> Floats:
    """Probability that a piece shows this colour, under each hidden colour; shape (classes,)."""
    chance = np.full(classes, (1 - KINDS[kind]) / (classes - 1))
    chance[shown] = KINDS[kind]
    return chance


def unheard(count: int, liars: int) -> Floats:
    """Polynomial of so many witnesses who were not heard; shape (liars + 1,)."""
    return np.array([float(comb(count, lies)) for lies in range(liars + 1)])


def times(left: Floats, right: Floats) -> Floats:
    """Product of polynomials along the last axis, cut off at the same degree."""
    size = left.shape[-1]
    result = left[..., :1] * right
    for degree in range(1, size):
        result[..., degree:] += left[..., degree, None] * right[..., : size - degree]
    return result


def chances(signs: Mapping[Sign, int], silent: int, classes: int, liars: int) -> Floats:
    """How likely these signs are under each hidden colour, up to a factor; shape (classes,).

    All 0 where so many liars cannot say that. Takes time that is linear in the number of different
    signs, not of witnesses.
    """
    total = _scaled(np.tile(unheard(silent, liars), (classes, 1)))
    for (kind, said), count in signs.items():
        total = _scaled(times(total, _power(weight(kind, said, liars), count)))
    return total[:, liars]


def powers(base: Floats, most: int) -> Floats:
    """All powers of a polynomial up to `most`; shape (most + 1, *base.shape)."""
    found = [np.zeros_like(base)]
    found[0][..., 0] = 1.0
    for _ in range(most):
        found.append(times(base, found[-1]))
    return np.stack(found)


def posterior_of(shown: Sequence[tuple[str, int]], classes: int) -> Floats:
    """Probability of every colour given what pieces show: kind and colour; shape (classes,)."""
    signs: dict[Sign, int] = {}
    for kind, colour in shown:
        sign = kind, tuple(int(colour == each) for each in range(classes))
        signs[sign] = signs.get(sign, 0) + 1
    found = chances(signs, 0, classes, 0)
    return found / found.sum()


def _power(base: Floats, count: int) -> Floats:
    """By squaring; scaled, so that nothing vanishes however many witnesses there are."""
    found = np.zeros_like(base)
    found[..., 0] = 1.0
    while count:
        if count & 1:
            found = _scaled(times(found, base))
        base = _scaled(times(base, base))
        count >>= 1
    return found


def _scaled(values: Floats) -> Floats:
    top = values.max()
    return values / top if top > 0 else values
