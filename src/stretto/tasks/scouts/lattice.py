"""A game of scouts as a lattice: after `n` votes, `r` of them for red.

Everything is computed given that red is hidden: then every vote is for red with probability
`reliability`, whatever came before, and a round of `m` scouts moves `r` by a binomial number. What
holds given blue is the mirror image, row `n` reversed. So a round costs one correlation with a
binomial kernel, whose tails below `TAIL` are cut off.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import comb, log

import numpy as np
from numpy.typing import NDArray

from stretto.tasks.scouts import Scouts, round_seconds, seats_taken, sizes_at

Floats = NDArray[np.float64]
Decide = Callable[[int, Floats], Floats]
"""Scouts asked and Q of shape (decisions, states) to the probability of every decision there."""

TAIL = 1e-20
"""Parts of a binomial distribution that are less likely count as 0."""


def belief(game: Scouts, lead: Floats) -> Floats:
    """Probability of red where red is `lead` votes ahead: `q^d / (q^d + (1-q)^d)`."""
    odds = log(game.reliability / (1 - game.reliability))
    return (1 + np.tanh(odds * lead / 2)) / 2


def leads_after(asked: int) -> NDArray[np.int64]:
    """By how much red is ahead in every state after so many votes; shape (asked + 1,)."""
    return np.arange(-asked, asked + 1, 2)


def round_price(game: Scouts, count: int) -> float:
    """What a round of so many scouts costs: all who are spawned, and the time."""
    return game.scout_cost * seats_taken(game, count) + game.round_cost * round_seconds(game)


def given_red(game: Scouts, asked: int, values: Floats) -> Floats:
    """Q of every state after `asked` votes, given that red is hidden; of the game with its fault.

    Args:
        game: The rules.
        asked: Votes so far.
        values: What is to come given red after more votes; shape (horizon + 1, horizon + 1).

    Returns: Shape (1 + team sizes on offer, asked + 1); the first row is the answer.
    """
    sizes = sizes_at(game, asked)
    q = np.empty((1 + len(sizes), asked + 1))
    q[0] = (np.sign(leads_after(asked)) + 1) / 2
    for row, size in enumerate(sizes, start=1):
        lies = bool(game.fault) and not asked
        first, weights = _kernel(game.reliability, size, lies)
        further = values[asked + size, first : first + asked + len(weights)]
        q[row] = np.correlate(further, weights, "valid") - round_price(game, size)
    return q


def as_believed(game: Scouts, red: Floats, lie: int = 0) -> Floats:
    """What is expected by who knows the votes and not the colour, from values given red.

    Who knows that one of the votes was a lie (1 for red, -1 for blue) counts it the other way.
    """
    lead = (leads_after(red.shape[-1] - 1) - 2 * lie).astype(np.float64)
    return belief(game, lead) * red + belief(game, -lead) * red[..., ::-1]


def backward(game: Scouts, decide: Decide) -> Floats:
    """What is to come in every state given red, where `decide` decides; last round first.

    Shape (horizon + 1, horizon + 1): votes so far, votes for red; 0 where there is no such state.
    `decide` must treat the colours alike.
    """
    values = np.zeros((game.horizon + 1, game.horizon + 1))
    for asked in range(game.horizon, -1, -1):
        q = given_red(game, asked, values)
        shares = decide(asked, as_believed(game, q))
        values[asked, : asked + 1] = (shares * q).sum(axis=0)
    return values


def forward(game: Scouts, shares: Callable[[int], Floats]) -> Iterator[tuple[int, Floats, Floats]]:
    """Walk an episode: votes so far, expected visits to every state then, and the decisions there.

    `shares` gives the probability of every decision in the states after so many votes, of shape
    (decisions on offer, asked + 1), and must treat the colours alike.
    """
    visits = np.zeros((game.horizon + 1, game.horizon + 1))
    visits[0, 0] = 1.0
    for asked in range(game.horizon + 1):
        red, decisions = visits[asked, : asked + 1], shares(asked)
        yield asked, (red + red[::-1]) / 2, decisions
        for row, size in enumerate(sizes_at(game, asked), start=1):
            leaving = red * decisions[row]
            if leaving.any():
                first, weights = _kernel(game.reliability, size)
                after = np.convolve(leaving, weights)
                visits[asked + size, first : first + len(after)] += after


def accuracies(game: Scouts, most: int) -> Floats:
    """How often the majority of 0 to `most` votes is right, ties by a fair coin."""
    found = np.empty(most + 1)
    chance = np.ones(1)
    for votes in range(most + 1):
        found[votes] = chance @ ((np.sign(leads_after(votes)) + 1) / 2)
        chance = np.convolve(chance, (1 - game.reliability, game.reliability))
    return found


@lru_cache(maxsize=4096)
def _kernel(reliability: float, count: int, lies: bool = False) -> tuple[int, Floats]:
    """Chance of every number of right votes among `count`, from the first that counts.

    Where one `lies`, it votes right as often as an honest one votes wrong.
    """
    wrong, honest = 1 - reliability, count - lies
    chance = np.array(
        [comb(honest, k) * reliability**k * wrong ** (honest - k) for k in range(honest + 1)]
    )
    chance = np.convolve(chance, (reliability, wrong)) if lies else chance
    likely = np.flatnonzero(chance > TAIL)
    return int(likely[0]), chance[likely[0] : likely[-1] + 1]


def best_shares(q: Floats) -> Floats:
    """The best decisions of every state, those alike in equal shares."""
    best = (q >= q.max(axis=0) - 1e-12).astype(float)
    return best / best.sum(axis=0)
