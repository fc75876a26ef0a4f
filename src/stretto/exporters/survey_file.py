"""The survey's trace schema as a file; `stretto.exporters.survey` says how a trace becomes one."""

from collections.abc import Sequence

import msgspec

from stretto.exporters.output import Output
from stretto.exporters.survey import to_survey
from stretto.trace import Trace

SUFFIX = ".survey.json"
ONE_FILE = False


def export(traces: Sequence[Trace]) -> Output:
    """One trace as one JSON document, which is read back as the same trace.

    Raises `StrettoError` for a trace without events: the schema requires one.
    """
    (trace,) = traces
    return Output({"": msgspec.json.encode(to_survey(trace))})
