"""When which agent was at work: the intervals that time is measured on.

Work is the time of turns and of tool calls. The time of a message is transit, and `attrs.waiting`
marks a call that just waits. An agent without turns and calls of its own whose return states how
long it ran (`attrs.total_duration_ms`) was at work for that long before the return.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stretto.columns import Columns, Flags, Floats, Ints

WORK = ("decision", "tool_call")
"""Kinds whose duration is work."""

TRANSIT = ("message", "delegate")
"""Kinds whose duration is the way to the receiver."""

STATED = "total_duration_ms"
"""The attribute in which a return states how long its agent ran."""

DECIMALS = 9
"""Times are compared to the nanosecond: what a sum of floats adds to an end is no overlap."""


@dataclass(frozen=True)
class Activities:
    """What every event is as a piece of work; one entry an event."""

    begin: Floats
    """Seconds at which it begins; NaN where unknown."""
    work: Floats
    """Seconds of work: 0 for what is none, NaN where unknown."""
    wait: Floats
    """Seconds of a marked wait, 0 for what is none or where unknown."""
    is_work: Flags
    """Whether it is work, however long."""
    stated: Flags
    """Whether its time is what a return states."""
    queued: Floats
    """Seconds before it could run, which are no work of it."""
    agent: Ints
    """Code of the agent."""

    @cached_property
    def busy(self) -> "Intervals":
        """The work of some length at a known time, event by event."""
        return self._intervals(self.work)

    @cached_property
    def at_work(self) -> "Intervals":
        """When each agent was at work, whatever it did at once."""
        return merge(self.busy)

    @cached_property
    def engaged(self) -> "Intervals":
        """When each agent was at work or in a marked wait."""
        return merge(self._intervals(self.work + self.wait)) if self.wait.any() else self.at_work

    def _intervals(self, seconds: Floats) -> "Intervals":
        begin, end = self.begin.round(DECIMALS), (self.begin + seconds).round(DECIMALS)
        row = np.flatnonzero(end > begin)  # not where one is unknown
        return Intervals(begin[row], end[row], self.agent[row], row)


@dataclass(frozen=True)
class Intervals:
    """Pieces of time, each of one agent."""

    begin: Floats
    """Seconds."""
    end: Floats
    """Seconds."""
    agent: Ints
    """Code of the agent."""
    row: Ints
    """The event that opens it."""


def activities(columns: Columns) -> Activities:
    """Every event as a piece of work."""
    kinds = columns.is_kind(*WORK)
    is_work = kinds & ~columns.waiting
    seconds = _stated(columns, kinds)
    stated = ~np.isnan(seconds)
    queued = np.where(is_work, np.fmin(columns.waited, np.nan_to_num(columns.duration)), 0.0)
    work = np.where(stated, seconds, np.where(is_work, columns.duration - queued, 0.0))
    waits = kinds & columns.waiting
    return Activities(
        begin=np.where(stated, columns.start - seconds, columns.start + queued),
        work=work,
        wait=np.nan_to_num(np.where(waits, columns.duration, 0.0)),
        is_work=is_work | stated,
        stated=stated,
        queued=queued,
        agent=columns.agent,
    )


def _stated(columns: Columns, kinds: Flags) -> Floats:
    """Seconds that returns of agents without work of their own state; NaN elsewhere."""
    found = np.full(len(columns.start), np.nan)
    has_work = np.bincount(columns.agent[kinds], minlength=len(columns.agents)) > 0
    for row in np.flatnonzero(columns.is_kind("return") & ~has_work[columns.agent]).tolist():
        value = columns.events[row].attrs.get(STATED)
        if isinstance(value, int | float) and value >= 0:
            found[row] = value / 1000
    return found


def merge(pieces: Intervals) -> Intervals:
    """Join what overlaps or touches of each agent; the result is ordered by agent and begin."""
    order = np.argsort(pieces.begin, kind="stable")
    order = order[np.argsort(pieces.agent[order] * len(order) + np.arange(len(order)))]
    begin, end, agent = pieces.begin[order], pieces.end[order], pieces.agent[order]
    reach = running_max(end, agent)
    fresh = np.ones(len(begin), dtype=bool)
    fresh[1:] = (agent[1:] != agent[:-1]) | (begin[1:] > reach[:-1])
    last = np.flatnonzero(np.append(fresh[1:], True)[: len(begin)])
    return Intervals(begin[fresh], reach[last], agent[fresh], pieces.row[order][fresh])


def running_max(values: Floats, group: Ints) -> Floats:
    """The largest value of the group so far; groups stand together, in increasing order."""
    order = np.argsort(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    shift = group * len(values)  # ranks are whole numbers, so that nothing is lost in the sum
    return values[order][np.maximum.accumulate(rank + shift) - shift]


def open_ended(columns: Columns) -> Flags:
    """Mark the agents whose last turn or call has no duration: when it ended is not known."""
    return _end_with(columns, columns.is_kind(*WORK) & np.isnan(columns.duration))


def under_way(columns: Columns) -> Flags:
    """Mark the agents whose last event is a message without a duration, of which nothing came.

    One that had an effect has arrived by then.
    """
    led_on = np.diff(columns.parents.effects.offsets) > 0
    return _end_with(columns, columns.is_kind(*TRANSIT) & np.isnan(columns.duration) & ~led_on)


def _end_with(columns: Columns, wanted: Flags) -> Flags:
    """Mark the agents whose last event at a known time is one of these."""
    found = np.zeros(len(columns.agents), dtype=bool)
    unknown = wanted & ~np.isnan(columns.start)
    if unknown.any():
        end = columns.start + np.nan_to_num(columns.duration)
        last = np.full(len(found), -np.inf)
        np.fmax.at(last, columns.agent, end)
        found[columns.agent[unknown & (end >= last[columns.agent])]] = True
    return found


def covered_seconds(begin: Floats, end: Floats) -> float:
    """Seconds in which at least one interval is open."""
    order = np.argsort(begin)
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    before = np.concatenate([begin[:1], reach[:-1]])
    return float(np.maximum(reach - np.maximum(before, begin), 0.0).sum())
