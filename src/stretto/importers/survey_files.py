"""Files of the survey's schema, as an import."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.report import FileReport, Imported, Likeness
from stretto.importers.survey import from_survey, is_survey
from stretto.trace import Trace


def recognise(head: bytes) -> Likeness:
    """A whole document is checked; of a long one, the two fields at its beginning."""
    if not head.lstrip().startswith(b"{"):
        return Likeness(0.0)
    try:
        whole = is_survey(msgspec.json.decode(head))
    except (msgspec.DecodeError, RecursionError):
        whole = False
    missing = [name for name in ("trace_id", "events") if f'"{name}"'.encode() not in head]
    if whole or not missing:
        return Likeness(1.0)
    return Likeness(0.4 if len(missing) == 1 else 0.0, f'no "{missing[0]}"')


def import_files(paths: Sequence[Path]) -> Imported:
    """Read one trace a file; of a folder, all files that look like one.

    Raises `StrettoError` with the field for the first thing that is wrong.
    """
    files = [file for path in paths for file in _files(path)]
    traces = [from_survey(read_bytes(file), str(file)) for file in files]
    report = [_report(file, trace) for file, trace in zip(files, traces, strict=True)]
    return Imported(tuple(traces), tuple(report))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*.json"))
    files = [file for file in found if recognise(read_bytes(file)).score >= 1]
    if not files:
        raise StrettoError("holds no file of the survey's schema", str(path))
    return files


def _report(file: Path, trace: Trace) -> FileReport:
    returned = {event.agent for event in trace.events if event.kind == "return"}
    spawned = [event.to for event in trace.events if event.kind == "spawn"]
    return FileReport(
        file=str(file),
        records=len(trace.events),
        spawns=len(spawned),
        returns=sum(event.kind == "return" for event in trace.events),
        unpaired=sum(agent not in returned for agent in spawned),
    )
