"""The compute-matched gain of a team over one agent: `Γ(B) = S_team(B) - max S_one(B)`.

`S(B)` is the mean over instances of what an agent or a team reached that was done within `B`
tokens; who was not done by then has reached nothing. One agent has three ways to spend `B`
(benchmark-and-safety §4): one long attempt; the best of as many attempts as fit, chosen by the
exact score, hence an upper bound; and the answer that most of those attempts gave.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from stretto.columns import Floats

POINTS = 25
"""Budgets of a curve, evenly on a log scale."""
RESAMPLES = 1_000
"""Resamples of a bootstrap interval."""
LEVEL = 0.95


class Attempt(Struct, frozen=True):
    """One episode, as far as a budget is concerned."""

    tokens: float
    score: float
    answer: str | None = None


class Instance(Struct, frozen=True):
    """One instance: what a team made of it, and one agent."""

    team: Attempt
    long: Attempt | None
    """One attempt of one agent."""
    attempts: tuple[Attempt, ...] = ()
    """Several attempts of one agent, in the order in which they are made."""


class Curve(Struct, frozen=True):
    """Γ over a log grid of budgets."""

    budgets: tuple[float, ...]
    team: tuple[float, ...]
    one: tuple[float, ...]
    """The best of the three ways of one agent at each budget."""
    gain: tuple[float, ...]
    auc: float
    """Mean of `gain` over the logarithm of the budget."""


class Interval(Struct, frozen=True):
    """A mean and its bootstrap interval."""

    mean: float
    low: float
    high: float


def within(attempt: Attempt | None, budget: float) -> float:
    """What an attempt reaches within a budget."""
    return attempt.score if attempt is not None and attempt.tokens <= budget else 0.0


def best_of(attempts: Sequence[Attempt], budget: float) -> float:
    """The best of as many attempts as fit into a budget, one after the other."""
    return max((each.score for each in _fitting(attempts, budget)), default=0.0)


def majority(attempts: Sequence[Attempt], budget: float) -> float:
    """What the most frequent answer of the attempts that fit is worth; the first of those alike."""
    fitting = [each for each in _fitting(attempts, budget) if each.answer is not None]
    if not fitting:
        return 0.0
    counts = Counter(each.answer for each in fitting)
    winner = max(counts, key=lambda answer: counts[answer])
    return float(np.mean([each.score for each in fitting if each.answer == winner]))


def scores_at(instances: Sequence[Instance], budgets: Sequence[float]) -> Floats:
    """Team, long, best-of-n and majority of every instance at its budget; shape (4, instances)."""
    scores = np.array(
        [
            (
                within(each.team, budget),
                within(each.long, budget),
                best_of(each.attempts, budget),
                majority(each.attempts, budget),
            )
            for each, budget in zip(instances, budgets, strict=True)
        ]
    )
    return scores.reshape(-1, 4).T


def gain_of(scores: Floats) -> Floats:
    """`Γ`: mean of the team minus the best of the means of one agent's three ways.

    From shape (4, ..., instances) to (...).
    """
    means = scores.mean(axis=-1)
    return means[0] - means[1:].max(axis=0)


def gain(instances: Sequence[Instance]) -> Interval:
    """`Γ` where the budget of each instance lets both the team and one agent finish.

    A budget that cuts one of them off by a word would decide the comparison by itself.
    """
    budgets = [max(i.team.tokens, i.long.tokens if i.long else 0.0) for i in instances]
    return bootstrap(scores_at(instances, budgets), gain_of)


def curve(instances: Sequence[Instance]) -> Curve:
    """`Γ(B)` from the least budget in which anybody is done to the largest anybody took."""
    spent = [i.team.tokens for i in instances]
    spent += [i.long.tokens for i in instances if i.long]
    spent += [sum(a.tokens for a in i.attempts) for i in instances if i.attempts]
    known = [tokens for tokens in spent if 0 < tokens < float("inf")]
    if not known:
        return Curve((), (), (), (), float("nan"))
    budgets = np.geomspace(min(known), max(known) * 1.001, POINTS)
    means = np.array([scores_at(instances, [b] * len(instances)).mean(axis=1) for b in budgets])
    one = means[:, 1:].max(axis=1)
    gains = means[:, 0] - one
    return Curve(
        tuple(budgets.tolist()),
        tuple(means[:, 0].tolist()),
        tuple(one.tolist()),
        tuple(gains.tolist()),
        area(np.log(budgets), gains),
    )


def area(places: Floats, values: Floats) -> float:
    """Mean of a function given at places, by the trapezoidal rule."""
    if len(places) < 2 or places[-1] == places[0]:
        return float(values.mean())
    return float(np.trapezoid(values, places) / (places[-1] - places[0]))


def bootstrap(values: Floats, of: Callable[[Floats], Floats], seed: int = 0) -> Interval:
    """A statistic of instances, and the percentile interval of its bootstrap.

    Args:
        values: Shape (numbers, instances).
        of: From shape (numbers, ..., instances) to (...); a NaN counts for nothing.
        seed: Of the resamples.
    """
    count = values.shape[1]
    chosen = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    draws = of(values[:, chosen])
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(of(values)), float(low), float(high))


def mean_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """Mean of values and its bootstrap interval."""
    return bootstrap(np.array([values], dtype=np.float64), lambda v: v[0].mean(axis=-1), seed)


def _fitting(attempts: Sequence[Attempt], budget: float) -> list[Attempt]:
    """The attempts that are done within the budget, made in their order."""
    totals = np.cumsum([each.tokens for each in attempts])
    return [each for each, total in zip(attempts, totals, strict=True) if total <= budget]
