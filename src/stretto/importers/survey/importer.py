"""Files of the survey's schema, as an import."""

from collections.abc import Sequence
from pathlib import Path

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.fields import list_at, record_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.report import Imported, Likeness, Notice, report_of
from stretto.importers.plan import one_by_one as sessions
from stretto.importers.survey.schema import from_survey
from stretto.importers.survey.torn import read_torn
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]

_EVENT = {"id", "t", "type", "agent"}


def recognise(head: Head) -> Likeness:
    """Look for the fields at the beginning; all after the first event may be cut off."""
    document = head.document
    if not isinstance(document, dict) or "trace_id" not in document:
        return Likeness(0.0)
    if record_at(list_at(document, "events"), 0).keys() >= _EVENT:
        return Likeness(1.0)
    return Likeness(0.4, 'no "events" with id, t, type and agent')


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a file; of one that is cut, what is whole, with a notice.

    Raises `StrettoError` with the field for the first thing that is wrong.
    """
    read = [_read(file) for file in files]
    report = [
        report_of(str(file), [trace], records=len(trace.events), warnings=notices)
        for file, (trace, notices) in zip(files, read, strict=True)
    ]
    return Imported(tuple(trace for trace, _ in read), tuple(report))


def _read(file: Path) -> tuple[Trace, tuple[Notice, ...]]:
    data, name = read_bytes(file), str(file)
    try:
        return from_survey(data, name), ()
    except StrettoError:
        torn = read_torn(data, name)
        if torn is None:
            raise
        return torn
