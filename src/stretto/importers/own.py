"""Stretto's own records, so that they can stand among the files of an import."""

from collections.abc import Sequence
from pathlib import Path

from stretto import store
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.fields import text_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.report import FileReport, Imported, Likeness, Notice, report_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]


def recognise(head: Head) -> Likeness:
    """The first record says that a trace begins."""
    kinds = [text_at(line, "record") for line in head.lines]
    if kinds[:1] == ["trace"]:
        return Likeness(1.0)
    near = any(kind in ("trace", "agent", "event", "edge") for kind in kinds)
    return Likeness(0.4 * near, "its first line is no record of a trace")


def import_files(files: Sequence[Path]) -> Imported:
    """Read the traces of the files as they are; one that is cut off is left out with a notice.

    Raises `StrettoError` with file, line and field for what is wrong, and where no trace is whole.
    """
    traces: list[Trace] = []
    reports: list[FileReport] = []
    for file in files:
        data = read_bytes(file)
        found, is_cut = store.decode_whole(data, str(file))
        if not found:
            raise StrettoError("holds no whole trace", str(file))
        line = data.rstrip(b"\n").count(b"\n") + 1
        cut = (Notice(f"{file}:{line}", "the last trace is cut off: left out"),) if is_cut else ()
        traces += found
        reports.append(report_of(str(file), found, records=line, warnings=cut))
    return Imported(tuple(traces), tuple(reports))
