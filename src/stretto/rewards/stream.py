"""Rewards over the course of a trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.trace import Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Stream:
    """What a team earns in an episode, and when."""

    at: Floats
    """Reward that falls with each event, in record order; shape (events,)."""
    per_second: float = 0.0
    """Reward for every second until the episode ends."""
    end: float = 0.0
    """Seconds at which the episode ends."""

    @property
    def total(self) -> float:
        """The return of the whole episode."""
        return float(self.at.sum()) + self.per_second * self.end


Reward = Callable[[Trace], Stream | None]
"""Turns a trace into what it earned; `None` means that it was not scored."""


def constant(trace: Trace, value: float) -> Stream:
    """All of `value`, paid with the last event."""
    at = np.zeros(len(trace.events))
    if len(at):
        at[-1] = value
    return Stream(at, end=end_of(trace))


def add(streams: Sequence[Stream]) -> Stream:
    """The sum of streams over one trace."""
    at = np.sum([stream.at for stream in streams], axis=0)
    return Stream(at, sum(stream.per_second for stream in streams), streams[0].end)


def scale(stream: Stream, factor: float) -> Stream:
    """A stream times a weight."""
    return Stream(stream.at * factor, stream.per_second * factor, stream.end)


def end_of(trace: Trace) -> float:
    """Seconds at which the last event ends; 0 where no times are known."""
    columns = trace.columns
    ends = columns.start + np.nan_to_num(columns.duration)
    return float(np.nanmax(ends)) if len(ends) and not np.isnan(ends).all() else 0.0
