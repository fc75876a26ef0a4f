"""Return-to-go per decision, against other rollouts that stood at the same point.

`A(d) = G(d) - mean over other rollouts of their G at decisions that saw the same`, where `G(d)` is
what the team still earned from `d` on. Comparing equal observations is the anchor-state grouping of
GiGPO (arXiv 2505.10978); the baseline leaves the own rollout out, and each rollout counts once in
it however often it came by, so it is unbiased and independent of how many agents were spawned.
No extra policy tokens. A decision that no other rollout shares gets 0.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from stretto.credit.table import Credit, Floats, Group, require_unit, table
from stretto.errors import StrettoError
from stretto.rewards.stream import Stream
from stretto.trace import Event, Trace

Situation = tuple[str | None, str | None, tuple[str, ...]]


@dataclass(frozen=True)
class Point:
    """A decision: whose, at what situation, and what the team earned from it on."""

    event: str
    situation: Situation
    to_go: float


def return_to_go(group: Group, unit: str = "turn") -> Credit:
    """What the team earned from a decision on, compared with other rollouts at the same point."""
    require_unit(unit, ("turn",))
    points = [
        _points(trace, stream) for trace, stream in zip(group.traces, group.streams, strict=True)
    ]
    means = [_means(own) for own in points]
    totals: dict[Situation, tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for own in means:
        for situation, mean in own.items():
            total, count = totals[situation]
            totals[situation] = (total + mean, count + 1)
    values = [
        _advantage(point, own[point.situation], *totals[point.situation])
        for rollout, own in zip(points, means, strict=True)
        for point in rollout
    ]
    names = [[point.event for point in rollout] for rollout in points]
    return table(group, "return_to_go", unit, names, values)


def _advantage(point: Point, own_mean: float, total: float, rollouts: int) -> float:
    if rollouts < 2:
        return 0.0
    return point.to_go - (total - own_mean) / (rollouts - 1)


def _means(points: list[Point]) -> dict[Situation, float]:
    """A rollout's mean return-to-go at each situation that it met."""
    found: dict[Situation, list[float]] = defaultdict(list)
    for point in points:
        found[point.situation].append(point.to_go)
    return {situation: sum(values) / len(values) for situation, values in found.items()}


def _points(trace: Trace, stream: Stream) -> list[Point]:
    role = {agent.id: agent.role for agent in trace.agents}
    rows = [row for row, event in enumerate(trace.events) if event.kind == "decision"]
    to_go = returns_to_go(trace, stream, rows)
    return [
        Point(trace.events[row].id, _situation(trace.events[row], role), value)
        for row, value in zip(rows, to_go, strict=True)
    ]


def _situation(event: Event, role: dict[str, str | None]) -> Situation:
    decision = event.decision
    if decision is None:
        return role[event.agent], None, ()
    return role[event.agent], decision.observation, decision.candidates


def returns_to_go(trace: Trace, stream: Stream, rows: list[int]) -> list[float]:
    """What was still to be earned when the events at `rows` began.

    Left out is what fell at an earlier time, or at the same time to one of the event's causes; so
    the order in which simultaneous events happen to be recorded does not matter.

    Raises `StrettoError` where time has a price and a turn has no time.
    """
    start = trace.columns.start
    if stream.per_second and np.isnan(start[rows]).any():
        event = trace.events[next(row for row in rows if np.isnan(start[row]))].id
        raise StrettoError("a turn without a time, but time has a price", f"{trace.id}: {event}")
    start = np.nan_to_num(start)
    order = np.argsort(start, kind="stable")
    cumulative = np.concatenate([[0.0], np.cumsum(stream.at[order])])
    earlier = cumulative[np.searchsorted(start[order], start[rows], side="left")]
    before = [_fell_to_causes(trace, stream.at, start, row) for row in rows]
    total = stream.at.sum() + stream.final
    return [
        float(total - past - causes + stream.per_second * (stream.end - start[row]))
        for row, past, causes in zip(rows, earlier, before, strict=True)
    ]


def _fell_to_causes(trace: Trace, at: Floats, start: Floats, row: int) -> float:
    """Rewards of the causes of `row` that are as late as itself."""
    parents = trace.columns.parents
    seen, stack, total = {row}, [row], 0.0
    while stack:
        current = stack.pop()
        for cause in parents.source[parents.offsets[current] : parents.offsets[current + 1]]:
            if cause not in seen and start[cause] == start[row]:
                seen.add(int(cause))
                stack.append(int(cause))
                total += float(at[cause])
    return total
