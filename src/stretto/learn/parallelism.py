"""How far the teams of a step ran side by side: what spawning for nothing is seen by."""

from collections.abc import Sequence

import numpy as np

from stretto.metrics.critical import critical
from stretto.metrics.intervals import activities
from stretto.metrics.parallelism import parallelism
from stretto.trace import Trace

MEASURED = 16
"""Episodes of a step that are measured: it takes as long as playing them, and a trend is wanted."""


def mean_speedup(traces: Sequence[Trace]) -> float | None:
    """Mean work over critical path of a step's first episodes; 1 for one without work.

    `None` where none is known.
    """
    known = [found for found in map(_speedup, traces[:MEASURED]) if found is not None]
    return float(np.mean(known)) if known else None


def _speedup(trace: Trace) -> float | None:
    work = activities(trace.columns)
    total = parallelism(trace, work)["work"]
    span = critical(trace, work, total)["span"].value
    if total.value is None or span is None:
        return None
    return total.value / span if span else 1.0
