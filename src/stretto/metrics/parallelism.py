"""E2: where the time went, and how much of it was side by side."""

import numpy as np

from stretto.columns import Columns, Floats
from stretto.graph import critical_path
from stretto.metrics.measure import Measure
from stretto.trace import Trace

WORK = ("decision", "tool_call")
"""Kinds whose duration is work; that of a message is transit, and `attrs.waiting` marks a wait."""


def parallelism(trace: Trace) -> dict[str, Measure]:
    """Makespan, work, span, own parallelism and peak width; see `stretto.metrics.measure`."""
    columns = trace.columns
    work = work_seconds(trace)
    makespan, total = _makespan(columns), _work(columns, work)
    return {
        "makespan": makespan,
        "work": total,
        "span": _span(trace, total),
        "parallelism": _ratio(total, makespan),
        "peak_width": _peak_width(columns, work, total),
    }


def work_seconds(trace: Trace) -> Floats:
    """Seconds of work of every event; NaN where a duration is unknown.

    That is its duration if it is a turn or a tool call that does not just wait, else 0.
    """
    columns = trace.columns
    waiting = np.array([bool(event.attrs.get("waiting")) for event in trace.events], dtype=bool)
    return np.where(columns.is_kind(*WORK) & ~waiting, columns.duration, 0.0)


def _makespan(columns: Columns) -> Measure:
    known = ~np.isnan(columns.start)
    if not known.any():
        return Measure(None, reason="no event has a time")
    end = columns.start + np.nan_to_num(columns.duration)
    return Measure(float(end[known].max() - columns.start[known].min()), "derived")


def _work(columns: Columns, work: Floats) -> Measure:
    considered = columns.is_kind(*WORK)
    unknown = int(np.isnan(work[considered]).sum())
    count = int(considered.sum())
    if unknown == count:
        return Measure(None, reason="no turn or tool call has a duration")
    reason = f"{unknown} of {count} durations are unknown: a lower bound" if unknown else ""
    return Measure(float(np.nansum(work)), "derived", reason)


def _span(trace: Trace, work: Measure) -> Measure:
    if work.value is None:
        return work
    transit = trace.columns.is_kind("message", "delegate")
    weight = np.nan_to_num(np.where(transit, trace.columns.duration, work_seconds(trace)))
    return Measure(critical_path(trace, weight).seconds, "derived", work.reason)


def _ratio(work: Measure, makespan: Measure) -> Measure:
    if work.value is None or makespan.value is None:
        return Measure(None, reason=work.reason or makespan.reason)
    if not makespan.value:
        return Measure(None, reason="the trace takes no time")
    return Measure(work.value / makespan.value, "derived", work.reason)


def _peak_width(columns: Columns, work: Floats, total: Measure) -> Measure:
    """Most agents at work at one time; an agent with two tool calls under way counts once."""
    busy = (np.nan_to_num(work) > 0) & ~np.isnan(columns.start)
    if not busy.any():
        return Measure(None, reason=total.reason or "the trace takes no time")
    start, end = columns.start[busy], columns.start[busy] + work[busy]
    changes = np.concatenate([_starts(start, end, columns.agent[busy])])
    order = np.lexsort((changes[:, 1], changes[:, 0]))  # at one moment, ends come before starts
    return Measure(float(np.cumsum(changes[order, 1]).max()), "derived", total.reason)


def _starts(start: Floats, end: Floats, agent: np.ndarray) -> Floats:
    """Rows (time, +1 or -1) of the merged intervals in which each agent is at work."""
    order = np.lexsort((start, agent))
    rows: list[tuple[float, float]] = []
    current, until = -1, 0.0
    for begin, finish, who in zip(start[order], end[order], agent[order], strict=True):
        if who == current and begin <= until:
            until = max(until, finish)
            continue
        if current >= 0:
            rows.append((until, -1.0))
        rows.append((begin, 1.0))
        current, until = int(who), finish
    rows.append((until, -1.0))
    return np.array(rows)
