"""The price of effort: with the outcome it makes `U = R·S - c_k·spawns - c_t·T`."""

import numpy as np

from stretto.rewards.ranges import NonNegative
from stretto.rewards.stream import Stream, end_of
from stretto.trace import Trace


def cost(trace: Trace, spawn: NonNegative = 0.0, second: NonNegative = 0.0) -> Stream:
    """Minus `spawn` with every spawn event, and minus `second` for every second.

    Prices are in units of the outcome, so the stream is never positive.
    """
    at = np.where(trace.columns.is_kind("spawn"), -spawn, 0.0)
    return Stream(at, per_second=-second, end=end_of(trace))
