"""Rewards over the course of a trace."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan

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
    final: float = 0.0
    """Reward that falls when it ends."""

    @property
    def total(self) -> float:
        """The return of the whole episode."""
        return float(self.at.sum()) + self.per_second * self.end + self.final


Reward = Callable[[Trace], Stream | None]
"""Turns a trace into what it earned; `None` means that it was not scored."""


def final(trace: Trace, value: float) -> Stream:
    """All of `value`, when the episode ends."""
    return Stream(np.zeros(len(trace.events)), end=end_of(trace), final=value)


def add(streams: Sequence[Stream]) -> Stream:
    """The sum of streams over one trace."""
    at = np.sum([stream.at for stream in streams], axis=0)
    per_second, paid_last = (
        sum(getattr(stream, name) for stream in streams) for name in ("per_second", "final")
    )
    return Stream(at, per_second, streams[0].end, paid_last)


def scale(stream: Stream, factor: float) -> Stream:
    """A stream times a weight."""
    at, per_second = stream.at * factor, stream.per_second * factor
    return Stream(at, per_second, stream.end, stream.final * factor)


def end_of(trace: Trace) -> float:
    """Seconds at which the last event ends; 0 where no times are known."""
    end = trace.columns.last_end
    return 0.0 if isnan(end) else end
