"""E2: where the time went, and how much of it was side by side."""

import numpy as np

from stretto.columns import Floats
from stretto.metrics.intervals import (
    TRANSIT,
    Activities,
    Intervals,
    activities,
    covered_seconds,
    open_ended,
    under_way,
)
from stretto.metrics.measure import (
    Measure,
    by_evidence,
    join,
    lower_bound,
    no_bound,
    ratio,
    unknown,
    unseen,
)
from stretto.trace import Trace

NO_TIME = "no event has a time"
NO_WORK = "the trace takes no time"
NO_DURATION = "no turn or tool call has a duration"


def parallelism(trace: Trace, work: Activities) -> dict[str, Measure]:
    """Makespan, work, own parallelism and widths; see `docs/measures.md`."""
    elapsed, total = _elapsed(trace, work), total_work(trace, work)
    own = ratio(_timed_work(work, total), elapsed, NO_WORK)
    return {
        "makespan": elapsed,
        "work": total,
        "parallelism": Measure(own.value, own.how, no_bound(own.reason)),
        **_widths(trace, work, total),
    }


def span_seconds(trace: Trace) -> Floats:
    """Seconds that every event adds to a chain of causes: work and transit; 0 where unknown."""
    return chain_seconds(trace, activities(trace.columns))


def chain_seconds(trace: Trace, work: Activities) -> Floats:
    """As `span_seconds`, for work that is known already."""
    transit = trace.columns.is_kind(*TRANSIT)
    return np.nan_to_num(np.where(transit, trace.columns.duration, work.work))


def makespan(trace: Trace) -> Measure:
    """Seconds from the first start to the last end."""
    return _elapsed(trace, activities(trace.columns))


def _elapsed(trace: Trace, work: Activities) -> Measure:
    columns, begin = trace.columns, work.begin
    known = ~np.isnan(begin)
    if not known.any():
        return unknown(NO_TIME)
    end = columns.start + np.nan_to_num(columns.duration)
    seconds = float(end[known].max() - begin[known].min())
    if not seconds and np.isnan(columns.duration[known]).all():
        return unknown("no event has a duration, and all have one time")
    going = int((open_ended(columns) | under_way(columns)).sum())
    reason = lower_bound(
        unknown_times(begin),
        f"the last duration of {going} agents is unknown" if going else "",
        never_back(trace),
    )
    return Measure(seconds, "derived", reason)


def never_back(trace: Trace) -> str:
    """What to say of agents that left neither a record of their own nor a return."""
    columns = trace.columns
    back = {columns.agents[code] for code in columns.agent[columns.is_kind("return")].tolist()}
    hidden = [agent.id for agent in trace.agents if agent.attrs.get("transcript") is False]
    lost = sum(name not in back for name in hidden)
    return f"when {lost} agents ended is unknown" if lost else ""


def unknown_times(begin: Floats) -> str:
    """How many events have no time; empty where all have one."""
    lost = int(np.isnan(begin).sum())
    return f"{lost} of {len(begin)} events have no time" if lost else ""


def unknown_durations(work: Activities) -> str:
    """How much work has no duration; empty where all has one."""
    lost = int(np.isnan(work.work[work.is_work]).sum())
    return f"{lost} of {int(work.is_work.sum())} durations are unknown" if lost else ""


def unseen_work(trace: Trace, work: Activities) -> tuple[str, str]:
    """What to say of agents without a record: whose work is lost, and whose their returns state."""
    said = len(set(trace.columns.agent[work.stated].tolist()))
    hidden = sum(agent.attrs.get("transcript") is False for agent in trace.agents)
    note = f"the time that the returns of {said} agents state is taken as their work"
    return unseen(trace) if hidden > said else "", note if said else ""


def total_work(trace: Trace, work: Activities) -> Measure:
    """Seconds of all turns and tool calls."""
    if np.isnan(work.work[work.is_work]).all():
        return unknown(NO_DURATION)
    hidden, note = unseen_work(trace, work)
    queued = int((work.queued > 0).sum())
    waits = f"{queued} calls waited for the call before them" if queued else ""
    missing = _at_least(work, unknown_durations(work), hidden)
    seconds = float(np.nansum(work.work))
    return Measure(seconds, by_evidence(bool(queued)), join(missing, note, waits))


def _at_least(work: Activities, *missing: str) -> str:
    """What is missing from a sum of work: no bound where returns state some, pauses included."""
    return join(*missing) if work.stated.any() else lower_bound(*missing)


def _timed_work(work: Activities, total: Measure) -> Measure:
    """The work whose time is known: what can be seen side by side."""
    if total.value is None:
        return total
    seconds = float(np.nansum(work.work[~np.isnan(work.begin)]))
    lost = int((work.is_work & np.isnan(work.begin)).sum())
    starts = f"{lost} of {int(work.is_work.sum())} starts are unknown" if lost else ""
    return Measure(seconds, total.how, join(total.reason, _at_least(work, starts)))


def _widths(trace: Trace, work: Activities, total: Measure) -> dict[str, Measure]:
    """Mean and largest number of activities under way, and most agents at work at one time."""
    names = ("average_width", "peak_width", "peak_agents")
    busy = work.busy
    if total.value is None or not len(busy.row):
        timeless = bool(np.isnan(trace.columns.start).all())
        reason = total.reason if total.value is None else NO_TIME if timeless else NO_WORK
        return dict.fromkeys(names, unknown(reason))
    average = float((busy.end - busy.begin).sum()) / covered_seconds(busy.begin, busy.end)
    values = average, _peak(busy), _peak(work.at_work)
    reason = _timed_work(work, total).reason
    found = {n: Measure(v, total.how, reason) for n, v in zip(names, values, strict=True)}
    return {**found, "average_width": Measure(average, total.how, no_bound(reason))}


def _peak(pieces: Intervals) -> float:
    """Most intervals that overlap; at one moment, ends come before begins."""
    begin = np.sort(pieces.begin)
    ended = np.searchsorted(np.sort(pieces.end), begin, side="right")
    return float((np.arange(1, len(begin) + 1) - ended).max())
