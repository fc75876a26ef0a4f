"""E2: what agents did between their first event and their last: worked, waited, or nothing."""

from dataclasses import dataclass

import numpy as np

from stretto.columns import Columns, Flags, Floats, sums_by
from stretto.metrics.intervals import DECIMALS, WORK, Activities, Intervals
from stretto.metrics.measure import Measure, by_evidence, join, lower_bound, unknown, upper_bound
from stretto.metrics.parallelism import (
    NO_DURATION,
    NO_TIME,
    unknown_durations,
    unknown_starts,
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
    """What is missing from blocked and from idle time, and which way it could change them.

    Work of unknown length may fill a gap that counts as a wait, or end one that does not; in idle
    time it only counts too much. Work without a start could be anywhere.
    """
    durations, starts, delays = unknown_durations(work), unknown_starts(work), _unknown_waits(trace)
    hidden, note = unseen_work(trace, work)
    said = join(durations, starts, delays, hidden)
    too_much = join(durations, delays)
    blocked = said if durations or starts else lower_bound(said)
    idle = said if starts or (too_much and hidden) else upper_bound(too_much) or lower_bound(hidden)
    return join(blocked, note), join(idle, note)


def _unknown_waits(trace: Trace) -> str:
    columns = trace.columns
    delays = columns.is_kind(*WORK) & columns.waiting
    lost = int((delays & np.isnan(columns.start + columns.duration)).sum())
    return f"{lost} of {int(delays.sum())} waits have no known time" if lost else ""
