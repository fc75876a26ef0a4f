"""Which event is the final output of a trace: what all that was of use led to."""

from dataclasses import dataclass

import numpy as np

from stretto.columns import Columns, Flags, Floats, Ints
from stretto.metrics.intervals import running_max
from stretto.trace import Trace

NO_OUTPUT = "there is neither a stop nor a turn or aggregate of an agent without a parent"
BY_RECORD = "which output is the last is told by the order of the record"


@dataclass(frozen=True)
class FinalOutput:
    """The final output, if there is one."""

    row: int | None
    """Its event."""
    note: str = ""
    """What to say of how it was chosen."""


def final_output(trace: Trace) -> FinalOutput:
    """The last `stop`, else the last turn or aggregate of an agent without a parent.

    One without a time comes after what its agent did before it in the record; where no event of
    that kind has a time, the last of the record is the last.
    """
    columns = trace.columns
    parentless = [agent.parent is None for agent in trace.agents]
    own = np.array([*parentless, *[True] * (len(columns.agents) - len(parentless))], dtype=bool)
    merges = columns.is_kind("decision", "aggregate") & own[columns.agent]
    for wanted in (columns.is_kind("stop"), merges):
        if wanted.any():
            return _last(columns, wanted)
    return FinalOutput(None)


def _last(columns: Columns, wanted: Flags) -> FinalOutput:
    rows = np.flatnonzero(wanted)
    lost = np.isnan(columns.start[rows])
    if not lost.any() or lost.all():
        return FinalOutput(int(rows[np.lexsort((rows, columns.start[rows]))[-1]]))
    begin = _by_record(columns.start, columns.agent)[rows]
    return FinalOutput(int(rows[np.lexsort((rows, begin))[-1]]), BY_RECORD)


def _by_record(start: Floats, agent: Ints) -> Floats:
    """Starts, with those that are unknown put at the latest of their agent so far."""
    order, latest = np.argsort(agent, kind="stable"), np.empty_like(start)
    latest[order] = running_max(np.nan_to_num(start[order], nan=-np.inf), agent[order])
    return np.where(np.isnan(start), latest, start)
