"""E2: what agents did between their first event and their last: worked, waited, or nothing."""

from dataclasses import dataclass

import numpy as np

from stretto.columns import Columns, Flags, Floats, sums_by
from stretto.metrics.intervals import DECIMALS, WORK, Activities, Intervals
from stretto.metrics.measure import Measure, by_evidence, join, lower_bound, unknown
from stretto.metrics.parallelism import (
    NO_DURATION,
    NO_TIME,
    never_back,
    unknown_durations,
    unknown_times,
    unseen_work,
)
from stretto.metrics.siblings import bounds
from stretto.trace import Trace


@dataclass(frozen=True)
class Times:
    """Seconds by agent; NaN for an agent of which no time is known, and for all without durations.

    `busy + blocked + idle` is the time from an agent's first event to its last.
    """

    busy: Floats
    """At work, whatever it did at once."""
    blocked: Floats
    """Waiting for a call, or for what it had handed to another agent."""
    idle: Floats
    """Neither."""


def times(columns: Columns, work: Activities) -> Times:
    """Split the life of every agent in work, blocking waits and idle time.

    Blocked is the time of marked waits, and every gap that ends at the moment at which the agent
    reads the return of another, as far as the agent does not work meanwhile.
    """
    first, last = bounds(columns, work)
    busy, engaged = _by_agent(work.at_work, len(first)), _by_agent(work.engaged, len(first))
    blocked = (engaged - busy + _gaps_before_returns(columns, work)).round(DECIMALS)
    unseen = np.isnan(first) | np.isnan(work.work[work.is_work]).all()
    busy[unseen] = blocked[unseen] = np.nan
    idle = (last - first - busy - blocked).round(DECIMALS)
    return Times(busy, blocked, np.maximum(idle, 0.0))


def _by_agent(pieces: Intervals, agents: int) -> Floats:
    return sums_by(pieces.agent, pieces.end - pieces.begin, agents)


def _gaps_before_returns(columns: Columns, work: Activities) -> Floats:
    """Seconds by agent of the gaps that end as the agent reads another's return."""
    open_ = work.engaged
    same = open_.agent[1:] == open_.agent[:-1]
    gap = np.where(same, open_.begin[1:] - open_.end[:-1], 0.0)
    gap *= _begin_with_a_return(columns, work, open_)[1:]
    return sums_by(open_.agent[1:], gap, len(columns.agents))


def _begin_with_a_return(columns: Columns, work: Activities, pieces: Intervals) -> Flags:
    """Mark the pieces at whose begin any event of their agent reads another's return."""
    readers = np.unique(columns.parents.target[return_edges(columns)])
    moments, piece = np.unique(pieces.begin, return_inverse=True)
    if not len(readers) or not len(moments):
        return np.zeros(len(pieces.begin), dtype=bool)
    begin = work.begin[readers].round(DECIMALS)
    moment = np.minimum(np.searchsorted(moments, begin), len(moments) - 1)
    met = moments[moment] == begin
    read = (columns.agent[readers] * len(moments) + moment)[met]
    return np.isin(pieces.agent * len(moments) + piece, read)


def return_edges(columns: Columns) -> Flags:
    """Mark the edges from a return to an event of another agent."""
    parents = columns.parents
    back = columns.is_kind("return")[parents.source]
    return back & (columns.agent[parents.source] != columns.agent[parents.target])


def waits_are_guessed(columns: Columns) -> bool:
    """Whether a guess says who reads a return: then waits and idle time are guesses too."""
    return bool((return_edges(columns) & columns.parents.is_guess).any())


def waits(trace: Trace, work: Activities) -> dict[str, Measure]:
    """Blocking waits and idle time, summed over agents."""
    names = ("blocked", "idle")
    if np.isnan(work.begin).all():
        return dict.fromkeys(names, unknown(NO_TIME))
    if np.isnan(work.work[work.is_work]).all():
        return dict.fromkeys(names, unknown(NO_DURATION))
    found = times(trace.columns, work)
    if np.isnan(found.idle).all():
        return dict.fromkeys(names, unknown("no agent has work at a known time"))
    how = by_evidence(waits_are_guessed(trace.columns))
    values = (float(np.nansum(each)) for each in (found.blocked, found.idle))
    reasons = _missing(trace, work)
    return {
        name: Measure(value, how, reason)
        for name, value, reason in zip(names, values, reasons, strict=True)
    }


def _missing(trace: Trace, work: Activities) -> tuple[str, str]:
    """What is missing from blocked and from idle time; both are bounds where only agents are.

    Work or a wait of unknown length may fill a gap, or split one of which a part is no wait then.
    An event without a time may read a return, or be the last of a life. An agent without a record
    adds to both, but what another waits for its return is idle while nothing is known of that.
    """
    hidden, note = unseen_work(trace, work)
    lost = join(unknown_durations(work), unknown_times(work.begin), _unknown_waits(trace))
    if lost:
        said = join(lost, hidden, note)
        return said, said
    idle = hidden if never_back(trace) else lower_bound(hidden)
    return join(lower_bound(hidden), note), join(idle, note)


def _unknown_waits(trace: Trace) -> str:
    columns = trace.columns
    delays, lost = marked_waits(columns)
    count = int(lost.sum())
    return f"{count} of {int(delays.sum())} waits have no known time" if count else ""


def marked_waits(columns: Columns) -> tuple[Flags, Flags]:
    """Mark the calls that just wait, and those of them of which it is not known when."""
    delays = columns.is_kind(*WORK) & columns.waiting
    return delays, delays & np.isnan(columns.start + columns.duration)
