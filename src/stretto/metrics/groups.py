"""Two groups of traces, side by side.

Groups are paired by task and seed, so that what an instance is like cancels out. Groups that have
no known task and seed in common are held against each other as wholes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from stretto.columns import Floats
from stretto.errors import StrettoError
from stretto.metrics import Measure, measure
from stretto.metrics.baselines import UNKNOWN_TASK
from stretto.trace import Trace

RESAMPLES = 2000
"""Bootstrap resamples of an interval."""

NOT_PAIRED = "the two groups have no known task and seed in common"


class GroupChange(Struct, frozen=True):
    """How a measure differs between two groups."""

    traces: tuple[int, int]
    """Traces of each group that are compared: of pairs, those in which both sides know it."""
    first: float
    """Mean over those of the first group."""
    second: float
    difference: float
    """Second minus first."""
    low: float | None
    """Lower end of its 95 % interval (percentile bootstrap; over pairs, or over either group)."""
    high: float | None
    greater: int | None
    """Pairs in which the second is greater; `None` where the groups are not paired."""
    less: int | None
    reason: str = ""
    """Why there is no interval."""


class GroupComparison(Struct, frozen=True):
    """How two groups differ."""

    measures: Mapping[str, GroupChange]
    """Those that are known on both sides."""
    paired: bool
    left_out: tuple[int, int]
    """Traces of each group that have no partner in the other; none where they are not paired."""
    reason: str = ""
    """Why the groups are not paired."""


def compare_groups(
    first: Sequence[Trace], second: Sequence[Trace], seed: int = 0
) -> GroupComparison:
    """Compare two groups measure by measure, over the pairs of one known task and seed.

    Several traces of one task and seed (or without a seed) are paired in their order. Without any
    pair, the means of the two groups are compared. Intervals of few traces are too narrow.

    Raises `StrettoError` for an empty group.
    """
    if not first or not second:
        raise StrettoError("a group has no traces", hint="both files need traces to compare")
    pairs = _pairs(first, second)
    sides = ([one for one, _ in pairs], [other for _, other in pairs]) if pairs else (first, second)
    measured = [[measure(trace) for trace in side] for side in sides]
    compared = _paired if pairs else _apart
    found = {
        name: compared(_values(measured[0], name), _values(measured[1], name), seed)
        for name in measured[0][0]
    }
    known = {name: change for name, change in found.items() if change is not None}
    if not pairs:
        return GroupComparison(known, False, (0, 0), NOT_PAIRED)
    left_out = len(first) - len(pairs), len(second) - len(pairs)
    return GroupComparison(known, True, left_out)


def _pairs(first: Sequence[Trace], second: Sequence[Trace]) -> list[tuple[Trace, Trace]]:
    waiting: defaultdict[tuple[str, int | None], list[Trace]] = defaultdict(list)
    for trace in reversed(second):
        waiting[trace.task, trace.seed].append(trace)
    return [
        (trace, waiting[trace.task, trace.seed].pop())
        for trace in first
        if trace.task != UNKNOWN_TASK and waiting[trace.task, trace.seed]
    ]


def _values(measured: Sequence[Mapping[str, Measure]], name: str) -> Floats:
    """A measure of every trace; NaN where it is unknown."""
    return np.array([found[name].value for found in measured], dtype=np.float64)


def _paired(one: Floats, other: Floats, seed: int) -> GroupChange | None:
    known = ~np.isnan(other - one)
    if not known.any():
        return None
    one, other = one[known], other[known]
    gap = other - one
    low = high = None
    if len(gap) > 1:
        low, high = _interval(_means(gap, np.random.default_rng(seed)))
    return GroupChange(
        traces=(len(gap), len(gap)),
        first=float(one.mean()),
        second=float(other.mean()),
        difference=float(gap.mean()),
        low=low,
        high=high,
        greater=int((gap > 0).sum()),
        less=int((gap < 0).sum()),
        reason="one pair has no interval" if low is None else "",
    )


def _apart(one: Floats, other: Floats, seed: int) -> GroupChange | None:
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    if not len(one) or not len(other):
        return None
    random = np.random.default_rng(seed)
    low = high = None
    if min(len(one), len(other)) > 1:
        low, high = _interval(_means(other, random) - _means(one, random))
    return GroupChange(
        traces=(len(one), len(other)),
        first=float(one.mean()),
        second=float(other.mean()),
        difference=float(other.mean() - one.mean()),
        low=low,
        high=high,
        greater=None,
        less=None,
        reason="a group of one trace has no interval" if low is None else "",
    )


def _means(values: Floats, random: np.random.Generator) -> Floats:
    """The mean of every resample."""
    draws = random.integers(len(values), size=(RESAMPLES, len(values)))
    return values[draws].mean(axis=1)


def _interval(means: Floats) -> tuple[float, float]:
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return low, high
