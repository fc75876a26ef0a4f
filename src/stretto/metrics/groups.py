"""Two groups of traces, side by side.

Groups are paired by task and seed, so that what an instance is like cancels out. Groups that have
no known task and seed in common are held against each other as wholes.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from msgspec import Struct

from stretto.columns import Floats
from stretto.credit.counterfactual.doubly_robust import student
from stretto.errors import StrettoError
from stretto.metrics import Measure, measure
from stretto.metrics.baselines import UNKNOWN_TASK
from stretto.metrics.compare import both_sides, worst
from stretto.metrics.measure import no_bound
from stretto.trace import Evidence, Trace

FEWEST = 6
"""Pairs, or traces of either group, below which there is no interval."""

FEW = {1: f"fewer than {FEWEST} pairs", 2: f"a group of fewer than {FEWEST} traces"}
NO_SPREAD = {1: "all gaps are equal", 2: "neither group varies"}
"""Why there is no interval, by the number of samples."""

ROUNDING = 1e-9
"""Share of the largest value below which a spread is that of rounding."""

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
    """Lower end of the 95 % interval of the mean difference (Student's t; Welch's for groups)."""
    high: float | None
    greater: int | None
    """Pairs in which the second is greater; `None` where the groups are not paired."""
    less: int | None
    how: Evidence
    """How the worst known of all that are compared is known."""
    reason: str = ""
    """What is missing from them; a difference is no bound because of that."""
    no_interval: str = ""
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


def compare_groups(first: Sequence[Trace], second: Sequence[Trace]) -> GroupComparison:
    """Compare two groups measure by measure, over the pairs of one known task and seed.

    Several traces of one task and seed (or without a seed) are paired in their order. Without any
    pair, the means of the two groups are compared.

    Raises `StrettoError` for an empty group.
    """
    if not first or not second:
        raise StrettoError("a group has no traces", hint="both files need traces to compare")
    pairs = _pairs(first, second)
    sides = ([one for one, _ in pairs], [other for _, other in pairs]) if pairs else (first, second)
    measured = [[measure(trace) for trace in side] for side in sides]
    compared = _paired if pairs else _apart
    found = {
        name: compared(*([found[name] for found in side] for side in measured))
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


def _paired(one: Sequence[Measure], other: Sequence[Measure]) -> GroupChange | None:
    pairs = zip(one, other, strict=True)
    known = [pair for pair in pairs if None not in (pair[0].value, pair[1].value)]
    if not known:
        return None
    one, other = zip(*known, strict=True)
    gap = _values(other) - _values(one)
    return _change(
        (one, other),
        _interval(float(gap.mean()), gap),
        greater=int((gap > 0).sum()),
        less=int((gap < 0).sum()),
    )


def _apart(one: Sequence[Measure], other: Sequence[Measure]) -> GroupChange | None:
    one, other = ([each for each in side if each.value is not None] for side in (one, other))
    if not one or not other:
        return None
    values = _values(one), _values(other)
    gap = float(values[1].mean() - values[0].mean())
    return _change((one, other), _interval(gap, *values))


def _values(side: Sequence[Measure]) -> Floats:
    return np.array([each.value for each in side], dtype=np.float64)


def _change(
    sides: tuple[Sequence[Measure], Sequence[Measure]],
    interval: tuple[float, float] | str,
    greater: int | None = None,
    less: int | None = None,
) -> GroupChange:
    """A change between measures that are all known."""
    first, second = (float(_values(side).mean()) for side in sides)
    low, high = (None, None) if isinstance(interval, str) else interval
    return GroupChange(
        traces=(len(sides[0]), len(sides[1])),
        first=first,
        second=second,
        difference=second - first,
        low=low,
        high=high,
        greater=greater,
        less=less,
        how=worst(each.how for side in sides for each in side),
        reason=both_sides(*map(_lacks, sides)),
        no_interval=interval if isinstance(interval, str) else "",
    )


def _lacks(side: Sequence[Measure]) -> str:
    """How many of one side lack something, and what most of those do."""
    reasons = Counter(no_bound(each.reason) for each in side if each.reason)
    if not reasons:
        return ""
    (most, _), others = reasons.most_common(1)[0], len(reasons) > 1
    said = f"{most}, among others" if others else most
    return said if len(side) == 1 else f"{reasons.total()} of {len(side)} traces: {said}"


def _interval(middle: float, *samples: Floats) -> tuple[float, float] | str:
    """The 95 % interval of a sum or difference of means, or why there is none.

    Welch (1947): of one sample it is that of Student.
    """
    if min(map(len, samples)) < FEWEST:
        return FEW[len(samples)]
    if not any(np.ptp(each) > ROUNDING * abs(each).max() for each in samples):
        return NO_SPREAD[len(samples)]
    errors = [float(each.var(ddof=1)) / len(each) for each in samples]
    parts = zip(errors, samples, strict=True)
    freedom = sum(errors) ** 2 / sum(error**2 / (len(each) - 1) for error, each in parts)
    reach = student(round(freedom)) * sqrt(sum(errors))
    return middle - reach, middle + reach
