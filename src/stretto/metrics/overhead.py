"""E4: what a run cost."""

import numpy as np

from stretto.columns import Floats
from stretto.metrics.measure import Measure, lower_bound, unseen
from stretto.trace import Trace


def overhead(trace: Trace) -> dict[str, Measure]:
    """Prompt and sampled tokens over all turns."""
    columns = trace.columns
    turns = columns.is_kind("decision")
    return {
        "input_tokens": _total(columns.input_tokens[turns], unseen(trace)),
        "output_tokens": _total(columns.output_tokens[turns], unseen(trace)),
    }


def _total(values: Floats, unseen_agents: str) -> Measure:
    if not len(values):
        return Measure(None, reason="no turns are recorded")
    known = ~np.isnan(values)
    if not known.any():
        return Measure(None, reason="no turn says how many, or the source gets them wrong")
    missing = len(values) - int(known.sum())
    silent = f"{missing} of {len(values)} turns do not say" if missing else ""
    reason = lower_bound(silent, unseen_agents)
    return Measure(float(values[known].sum()), "derived" if reason else "recorded", reason)
