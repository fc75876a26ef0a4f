"""Read traces from whatever holds them: Stretto's records, the survey's JSON, a transcript."""

import re
import warnings
from pathlib import Path

from stretto import store
from stretto.errors import SourceWarning, StrettoError
from stretto.files import read_bytes
from stretto.trace import Trace

_RECORDS = re.compile(rb'\s*\{\s*"record"\s*:')
"""How a file of Stretto's own begins."""

_SURVEY = re.compile(rb'\s*\{\s*"trace_id"\s*:\s*"[^"]*"\s*,\s*"task_id"\s*:')
"""How a file of the survey's schema begins, if its fields come in the order of the schema."""


def load(path: str | Path) -> Trace:
    """Read the one trace of a file.

    Raises `StrettoError` for bad input, and for a file that holds more than one.
    """
    traces = _read(Path(path))
    if len(traces) != 1:
        what = f"holds {len(traces)} traces"
        raise StrettoError(what, str(path), "stretto.load_all(path) reads them all")
    return traces[0]


def load_all(path: str | Path) -> list[Trace]:
    """Read all traces of a file (or of a folder of transcripts), validated.

    What is to know about a file that was imported is a `SourceWarning`: that it was cut, say.

    Raises `StrettoError` with file, line and field for the first thing that is wrong.
    """
    return _read(Path(path))


def _read(path: Path) -> list[Trace]:
    if path.is_dir():
        return _imported(path, None)
    data = read_bytes(path)
    if _RECORDS.match(data):
        return store.decode(data, str(path))
    if _SURVEY.match(data):  # told at once; asking all formats costs more than reading
        return _survey(data, path)
    from stretto.importers import detect

    format = detect(path)
    if format == "stretto":
        return store.decode(data, str(path))
    return _survey(data, path) if format == "survey" else _imported(path, format)


def _survey(data: bytes, path: Path) -> list[Trace]:
    from stretto.importers.survey.schema import documents, from_survey

    return [from_survey(each, name) for each, name in documents(data, str(path))]


def _imported(path: Path, format: str | None) -> list[Trace]:
    from stretto.importers import import_paths

    imported = import_paths([path], format)
    for file in imported.report:
        if file.warnings:
            more = f" (and {len(file.warnings) - 1} more; `stretto import --report` lists them)"
            said = f"{file.warnings[0]}{more if len(file.warnings) > 1 else ''}"
            warnings.warn(said, SourceWarning, stacklevel=4)  # at the caller of `load`
    return list(imported.traces)
