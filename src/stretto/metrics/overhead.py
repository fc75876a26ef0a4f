"""E4: what a run cost."""

import numpy as np

from stretto.columns import Floats
from stretto.metrics.measure import Measure
from stretto.trace import Trace


def overhead(trace: Trace) -> dict[str, Measure]:
    """Prompt and sampled tokens over all turns."""
    columns = trace.columns
    turns = columns.is_kind("decision")
    return {
        "input_tokens": _total(columns.input_tokens[turns]),
        "output_tokens": _total(columns.output_tokens[turns]),
    }


def _total(values: Floats) -> Measure:
    if not len(values):
        return Measure(None, reason="no turns are recorded")
    known = ~np.isnan(values)
    if not known.any():
        return Measure(None, reason="no turn says how many, or the source gets them wrong")
    missing = len(values) - int(known.sum())
    reason = f"{missing} of {len(values)} turns do not say: a lower bound" if missing else ""
    return Measure(float(values[known].sum()), "derived" if missing else "recorded", reason)
