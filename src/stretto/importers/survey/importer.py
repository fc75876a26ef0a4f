"""Files of the survey's schema, as an import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.fields import list_at, record_at, value_at
from stretto.importers.kit.heads import SIZE, Head
from stretto.importers.kit.report import Imported, Likeness, Notice, report_of
from stretto.importers.plan import one_by_one as sessions
from stretto.importers.survey.schema import documents, from_survey
from stretto.importers.survey.torn import read_torn
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]

_EVENT = {"id", "t", "type", "agent"}


def recognise(head: Head) -> Likeness:
    """Look for the fields at the beginning; all after the first event may be cut off."""
    document = head.document
    document = value_at(document, 0) if isinstance(document, list) else document
    candidates = (document, *head.lines)  # one a line, of which the first may be cut
    found = next((each for each in candidates if _acts(each)), document)
    if not isinstance(found, dict):
        return Likeness(0.0)
    acts, named = _acts(found), "trace_id" in found
    if acts and (named or len(head.data) >= SIZE):  # the name may stand too far down to be seen
        return Likeness(1.0)
    missing = 'no "trace_id"' if acts else 'no "events" with id, t, type and agent'
    if not acts and not named:
        return Likeness(0.0)
    return Likeness(0.4 if acts or "task_id" in found else 0.2, missing)


def _acts(document: Any) -> bool:
    return record_at(list_at(document, "events"), 0).keys() >= _EVENT


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a document; of one that is cut, what is whole, with a notice.

    Raises `StrettoError` with the field for the first thing that is wrong.
    """
    parts = [_read_file(file) for file in files]
    return Imported(
        tuple(trace for part in parts for trace in part.traces),
        tuple(report for part in parts for report in part.report),
    )


def _read_file(file: Path) -> Imported:
    read = list[tuple[Trace, tuple[Notice, ...]]]()
    lost = list[StrettoError]()
    for data, name in documents(read_bytes(file), str(file)):
        try:
            read.append(_read(data, name))
        except StrettoError as error:
            lost.append(error)
    if lost and not read:
        raise lost[0]
    traces = [trace for trace, _ in read]
    notices = [notice for _, told in read for notice in told]
    notices += [Notice(error.where, f"left out: {error.what}") for error in lost]
    records = sum(len(trace.events) for trace in traces)
    report = report_of(str(file), traces, records=records, warnings=tuple(notices))
    return Imported(tuple(traces), (report,))


def _read(data: bytes, name: str) -> tuple[Trace, tuple[Notice, ...]]:
    try:
        return from_survey(data, name), ()
    except StrettoError:
        torn = read_torn(data, name)
        if torn is None:
            raise
        return torn
