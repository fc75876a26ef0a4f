"""Labels of MAST: failure modes that a person or a model found in a run."""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.fields import list_at, number_at, record_at, text_at
from stretto.importers.kit.report import Notice
from stretto.trace import Score

SIDECAR = "annotations.csv"
MODES = {
    "1.1": "disobey_task_specification",
    "1.2": "disobey_role_specification",
    "1.3": "step_repetition",
    "1.4": "loss_of_conversation_history",
    "1.5": "unaware_of_termination_conditions",
    "2.1": "conversation_reset",
    "2.2": "fail_to_ask_for_clarification",
    "2.3": "task_derailment",
    "2.4": "information_withholding",
    "2.5": "ignored_other_agents_input",
    "2.6": "reasoning_action_mismatch",
    "3.1": "premature_termination",
    "3.2": "no_or_incomplete_verification",
    "3.3": "incorrect_verification",
}
"""The 14 modes of the paper, by the number that MAST-Data writes."""

_COLUMNS = ("", "instance_id", "link", "text")
"""Columns of a table that are no labels."""
_END = "\0"
"""Put behind a table: a quote that is open there swallows it."""
_SAID = {"yes": 1.0, "no": 0.0}


class Labels(NamedTuple):
    """What is said about a run."""

    values: dict[str, float]
    """1 where a mode was found, 0 where not; between, the share of those who found it."""
    texts: dict[str, Any]
    """Remarks."""


class Table(NamedTuple):
    """A table of labels."""

    rows: Mapping[str, dict[str, str]]
    """By the id of the run."""
    warnings: tuple[Notice, ...]
    """What is left out."""


def is_table(data: bytes) -> bool:
    """Whether a file begins as a table of labels does."""
    header = data.lstrip().split(b"\n", 1)[0].replace(b'"', b"").split(b",")
    return len(header) > len(_COLUMNS) and header[1:3] == [b"instance_id", b"link"]


def read_table(file: Path) -> Table:
    """The rows of a table by the id of their run.

    A row with fewer cells than the header, with a quote that does not end or without an id is left
    out with a notice.

    Raises `StrettoError` where it is no table.
    """
    text = read_bytes(file).decode("utf-8", "replace").replace(_END, "")
    try:
        (_, header), *body = _rows(text)
    except (csv.Error, ValueError) as error:
        raise StrettoError(f"is no table: {error}", str(file)) from None
    rows: dict[str, dict[str, str]] = {}
    warnings: list[Notice] = []
    for line, cells in body:
        row = dict(zip(header, cells, strict=False))
        name = row.get("instance_id")
        if len(cells) < len(header) or _END in cells[-1] or not name:
            warnings.append(Notice(f"{file}:{line}", "is no whole row: left out"))
        else:
            rows[name] = row
    return Table(rows, tuple(warnings))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, and the lines where they begin."""
    reader = csv.reader(StringIO(f"{text}\n{_END}", newline=""))
    begin = 1
    for cells in reader:
        if cells and cells != [_END]:
            yield begin, cells
        begin = reader.line_num + 1


def read_sidecar(table: Path) -> Table:
    """As `read_table`, once for many runs; no rows where it is not there or cannot be read."""
    try:
        state = table.stat()
    except OSError:
        return Table({}, ())
    return _read_once(table, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read_once(table: Path, _changed: int, _size: int) -> Table:
    try:
        return read_table(table)
    except StrettoError as error:
        return Table({}, (Notice(str(table), f"not read: {error.what}"),))


def labels_of(record: Any, row: Mapping[str, str]) -> tuple[Labels, list[str]]:
    """The labels of a run from its own record and its row of a table, and where the two differ."""
    own = dict(_own(record))
    told = dict(_told(row))
    differ = [
        f'its label "{name}" is not that of {SIDECAR}'
        for name in told
        if name in own and own[name] != told[name]
    ]
    texts = {"annotation": row["text"]} if row.get("text") else {}
    return Labels({**told, **own}, texts), differ


def scores_of(values: Mapping[str, float]) -> Iterator[Score]:
    """One score a label."""
    for name, value in values.items():
        yield Score(channel=name, value=value, kind="metric")


def channel(label: str) -> str:
    """A label as the name of a channel."""
    return re.sub(r"[^a-z0-9]+", "_", label.casefold()).strip("_") or "label"


def _own(record: Any) -> Iterator[tuple[str, float]]:
    for label, said in record_at(record, "note", "options").items():
        if isinstance(said, str) and said.casefold() in _SAID:
            yield channel(label), _SAID[said.casefold()]
    for number in record_at(record, "mast_annotation"):
        value = number_at(record, "mast_annotation", number)
        if value is not None:
            yield MODES.get(number, channel(f"mode {number}")), value
    for entry in list_at(record, "annotations"):
        votes = [
            vote
            for name, vote in record_at(entry).items()
            if name.startswith("annotator") and isinstance(vote, bool)
        ]
        label = (text_at(entry, "failure mode") or "").split("\n", 1)[0]
        if votes and label:
            yield channel(re.sub(r"^[\d.]+\s*", "", label)), sum(votes) / len(votes)


def _told(row: Mapping[Any, Any]) -> Iterator[tuple[str, float]]:
    for label, said in row.items():
        is_label = isinstance(label, str) and label not in _COLUMNS and isinstance(said, str)
        if is_label and said.casefold() in _SAID:
            yield channel(label), _SAID[said.casefold()]
