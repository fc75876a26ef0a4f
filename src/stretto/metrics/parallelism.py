"""E2: where the time went, and how much of it was side by side."""

import numpy as np
from numpy.typing import NDArray

from stretto.columns import Columns, Floats, Ints
from stretto.graph import critical_path
from stretto.metrics.measure import Measure, lower_bound, unseen
from stretto.trace import Trace

WORK = ("decision", "tool_call")
"""Kinds whose duration is work; that of a message is transit, and `attrs.waiting` marks a wait."""

NO_TIME = "no event has a time"
NO_WORK = "the trace takes no time"


def parallelism(trace: Trace) -> dict[str, Measure]:
    """Makespan, work, span, own parallelism and peak width; see `stretto.metrics.measure`."""
    columns = trace.columns
    work = work_seconds(trace)
    elapsed, total = makespan(trace), _work(trace, work)
    return {
        "makespan": elapsed,
        "work": total,
        "span": _span(trace, total),
        "parallelism": _ratio(total, elapsed),
        "peak_width": _peak_width(columns, work, total),
    }


def work_seconds(trace: Trace) -> Floats:
    """Seconds of work of every event; NaN where a duration is unknown.

    That is its duration if it is a turn or a tool call that does not just wait, else 0.
    """
    columns = trace.columns
    return np.where(columns.is_kind(*WORK) & ~_waiting(trace), columns.duration, 0.0)


def _waiting(trace: Trace) -> NDArray[np.bool_]:
    return np.array([bool(event.attrs.get("waiting")) for event in trace.events], dtype=bool)


def span_seconds(trace: Trace) -> Floats:
    """Seconds that every event adds to a chain of causes: work and transit; 0 where unknown."""
    transit = trace.columns.is_kind("message", "delegate")
    return np.nan_to_num(np.where(transit, trace.columns.duration, work_seconds(trace)))


def makespan(trace: Trace) -> Measure:
    """Seconds from the first start to the last end."""
    columns = trace.columns
    known = ~np.isnan(columns.start)
    if not known.any():
        return Measure(None, reason=NO_TIME)
    end = columns.start + np.nan_to_num(columns.duration)
    seconds = float(end[known].max() - columns.start[known].min())
    if not seconds and np.isnan(columns.duration[known]).all():
        return Measure(None, reason="no event has a duration, and all have one time")
    return Measure(seconds, "derived")


def _work(trace: Trace, work: Floats) -> Measure:
    considered = trace.columns.is_kind(*WORK) & ~_waiting(trace)
    unknown = int(np.isnan(work[considered]).sum())
    count = int(considered.sum())
    if unknown == count:
        return Measure(None, reason="no turn or tool call has a duration")
    timeless = f"{unknown} of {count} durations are unknown" if unknown else ""
    reason = lower_bound(timeless, unseen(trace))
    return Measure(float(np.nansum(work)), "derived", reason)


def _span(trace: Trace, work: Measure) -> Measure:
    if work.value is None:
        return work
    return Measure(critical_path(trace, span_seconds(trace)).seconds, "derived", work.reason)


def _ratio(work: Measure, makespan: Measure) -> Measure:
    if work.value is None or makespan.value is None:
        return Measure(None, reason=work.reason or makespan.reason)
    if not makespan.value:
        return Measure(None, reason=NO_WORK)
    return Measure(work.value / makespan.value, "derived", work.reason)


def _peak_width(columns: Columns, work: Floats, total: Measure) -> Measure:
    """Most agents at work at one time; an agent with two tool calls under way counts once."""
    busy = (np.nan_to_num(work) > 0) & ~np.isnan(columns.start)
    if not busy.any():
        timeless = bool(np.isnan(columns.start).all())
        return Measure(None, reason=total.reason or (NO_TIME if timeless else NO_WORK))
    start = columns.start[busy]
    begin, end = _merged(start, start + work[busy], columns.agent[busy])
    change = np.concatenate([np.ones(len(begin)), -np.ones(len(end))])
    order = np.lexsort((change, np.concatenate([begin, end])))  # at one moment, ends come first
    return Measure(float(np.cumsum(change[order]).max()), "derived", total.reason)


def _merged(start: Floats, end: Floats, agent: Ints) -> tuple[Floats, Floats]:
    """The intervals in which each agent is at work, whatever it does in them."""
    order = np.lexsort((start, agent))
    start, end, agent = start[order], end[order], agent[order]
    reach = np.empty_like(end)
    for who in np.flatnonzero(np.diff(agent, prepend=-1)):
        upto = np.searchsorted(agent, agent[who], side="right")
        reach[who:upto] = np.maximum.accumulate(end[who:upto])
    fresh = np.ones(len(start), dtype=bool)
    fresh[1:] = (agent[1:] != agent[:-1]) | (start[1:] > reach[:-1])
    last = np.append(np.flatnonzero(fresh)[1:], len(start)) - 1
    return start[fresh], reach[last]
