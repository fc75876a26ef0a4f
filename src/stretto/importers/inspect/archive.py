"""Inspect logs: an `.eval` archive or a `.json` document, as samples that stand for themselves."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.inspect.zips import SIGNATURE, read_members
from stretto.importers.kit.fields import list_at, record_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.reading import parse_document
from stretto.importers.kit.report import Likeness, Notice

_MEMBERS = (b"_journal/", b"_epoch_", b"header.json", b"summaries.json")
_NOT_FINITE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b', re.DOTALL)


class Log(NamedTuple):
    """One log: what is true of all samples, and the samples."""

    header: dict[str, Any]
    samples: list[tuple[str, dict[str, Any]]]
    """Where each stands, and its record."""
    warnings: tuple[Notice, ...]


def recognise(head: Head) -> Likeness:
    """Look for the names of members in an archive, or for the header of an evaluation."""
    if head.data.startswith(SIGNATURE):
        known = any(name in head.data for name in _MEMBERS)
        why = "an archive without samples of Inspect: unpack it first"
        return Likeness(1.0) if known else Likeness(0.2, why)
    document = Head(_plain(head.data)).document
    evaluation = record_at(document, "eval")
    if not evaluation:
        return Likeness(0.0)
    missing = [name for name in ("task", "model", "created") if name not in evaluation]
    return Likeness(0.4, f'no "eval.{missing[0]}"') if missing else Likeness(1.0)


def read_log(path: Path) -> Log:
    """Read a log; what is cut or damaged is left out with a notice.

    Raises `StrettoError` where nothing is whole.
    """
    data = read_bytes(path)
    name = str(path)
    return _archive(data, name) if data.startswith(SIGNATURE) else _document(data, name)


def _document(data: bytes, name: str) -> Log:
    value, warnings = parse_document(_plain(data), name)
    header = record_at(value)
    if not record_at(header, "eval"):
        raise StrettoError("is no log of Inspect", name, 'the field "eval" is missing')
    samples = [(name, sample) for sample in list_at(header, "samples") if isinstance(sample, dict)]
    return Log(header, samples, warnings)


def _archive(data: bytes, name: str) -> Log:
    members, warnings = read_members(data, name)
    found = list(warnings)
    header = {}
    for member in ("_journal/start.json", "header.json"):
        header |= next((value for _, value in _read(members, [member], name, found)), {})
    names = sorted(each for each in members if each.startswith("samples/"))
    samples = list(_read(members, names, name, found))
    if not samples and not header:
        raise StrettoError("holds no whole member of an Inspect log", name, "is it cut?")
    return Log(header, samples, tuple(found))


def _read(
    members: dict[str, bytes], names: list[str], name: str, warnings: list[Notice]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for member in names:
        where = f"{name}/{member}"
        try:
            value, notices = parse_document(_plain(members.get(member, b"{}")), where)
        except StrettoError as error:
            warnings.append(Notice(error.where or where, f"{error.what}: left out"))
            continue
        warnings.extend(notices)
        if isinstance(value, dict) and value:
            yield where, value


def _plain(data: bytes) -> bytes:
    """JSON without the numbers that are none, which Inspect writes for scores that failed."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return _NOT_FINITE.sub(lambda found: found[0] if found[0][:1] == b'"' else b"null", data)
