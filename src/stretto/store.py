"""Traces as JSONL: one record a line, so that errors have a line and files can grow.

A trace is a `trace` record (its header, with the schema version), then its `agent`, `event`,
`edge`, `score` and `content` records in any order, then an `end` record that counts the events and
edges, so that a file that was cut is noticed. A file may hold any number of traces.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes, write_whole
from stretto.trace import SCHEMA, Agent, Edge, Event, Header, Score, Trace
from stretto.validate import Problem, problems


class TraceRecord(Header, frozen=True, kw_only=True, tag_field="record", tag="trace"):
    """The first record of a trace."""

    schema: int


class ContentRecord(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="record", tag="content"
):
    """A text and its hash."""

    hash: str
    text: str


class EndRecord(Struct, frozen=True, forbid_unknown_fields=True, tag_field="record", tag="end"):
    """The last record of a trace."""

    events: int
    edges: int


Record = TraceRecord | Agent | Event | Edge | Score | ContentRecord | EndRecord
R = TypeVar("R", Agent, Event, Edge, Score, ContentRecord)

_KINDS: dict[str, type[Record]] = {
    "trace": TraceRecord,
    "agent": Agent,
    "event": Event,
    "edge": Edge,
    "score": Score,
    "content": ContentRecord,
    "end": EndRecord,
}
_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()
_HEADER_FIELDS = tuple(field.name for field in fields(Header))


def write(path: str | Path, traces: Sequence[Trace]) -> None:
    """Write traces to a file, whole or not at all."""
    write_whole(Path(path), (encode(trace) for trace in traces))


def encode(trace: Trace) -> bytes:
    """The records of a trace as JSON lines."""
    header = {name: getattr(trace, name) for name in _HEADER_FIELDS}
    records: list[Record] = [TraceRecord(schema=SCHEMA, **header)]
    records += trace.agents
    records += trace.events
    records += trace.edges
    records += trace.scores
    records += [ContentRecord(name, text) for name, text in trace.contents.items()]
    records.append(EndRecord(len(trace.events), len(trace.edges)))
    return _ENCODER.encode_lines(records)


def read(path: str | Path) -> list[Trace]:
    """Read all traces of a file, validated.

    Raises `StrettoError` with file, line and field for the first thing that is wrong.
    """
    return decode(read_bytes(Path(path)), str(path))


def decode(data: bytes, name: str) -> list[Trace]:
    """Decode the records of a file; `name` stands for it in errors."""
    return list(_assemble(_records(data, name), name))


def _records(data: bytes, name: str) -> list[tuple[int, Record]]:
    """All records with their line numbers, from 1."""
    records: list[tuple[int, Record]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.isspace():
            try:
                records.append((number, _DECODER.decode(line)))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                _raise_bad_line(error, data, line, f"{name}:{number}")
    return records


def _raise_bad_line(error: Exception, data: bytes, line: bytes, where: str) -> NoReturn:
    message = str(error)
    if b"\0" in data[:4096]:
        raise StrettoError("not a trace file: it is binary", where.rpartition(":")[0]) from None
    if "truncated" in message:
        hint = "the file was cut, or written by something else"
        raise StrettoError("the record is cut off", where, hint) from None
    kind = _record_kind(line)
    if kind is None:
        raise StrettoError("not a JSON object with a `record` field", where) from None
    if kind not in _KINDS:
        hint = did_you_mean(kind, _KINDS)
        raise StrettoError(f'unknown record "{kind}"', f"{where}: record", hint) from None
    what, _, field = message.partition(" - at `$")
    hint = ""
    if unknown := re.search("unknown field `(.+)`", what):
        field, what = f".{unknown[1]}", "no such field"
        hint = did_you_mean(unknown[1], [each.encode_name for each in fields(_KINDS[kind])])
    place = f"{where}: {kind}{field.rstrip('`')}"
    raise StrettoError(f"{what[0].lower()}{what[1:]}", place, hint) from None


def _record_kind(line: bytes) -> str | None:
    try:
        return str(msgspec.json.decode(line)["record"])
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        return None


def _assemble(records: Sequence[tuple[int, Record]], name: str) -> Iterator[Trace]:
    start: int | None = None
    for index, (line, record) in enumerate(records):
        if isinstance(record, TraceRecord):
            if start is not None:
                _raise_no_end(records[start], name)
            _require_known_schema(record, f"{name}:{line}")
            start = index
        elif start is None:
            raise StrettoError("a record before any trace record", f"{name}:{line}")
        elif isinstance(record, EndRecord):
            trace = _build(records[start:index], name)
            _require_counts(trace, line, record, name)
            yield trace
            start = None
    if start is not None:
        _raise_no_end(records[start], name)


def _raise_no_end(first: tuple[int, Record], name: str) -> NoReturn:
    hint = "the file was cut; write it again, or drop the incomplete trace"
    raise StrettoError("the trace that starts here has no end record", f"{name}:{first[0]}", hint)


def _require_known_schema(record: TraceRecord, where: str) -> None:
    if record.schema > SCHEMA:
        what = f"schema version {record.schema}, this version of Stretto reads up to {SCHEMA}"
        raise StrettoError(what, where, "upgrade stretto")


def _build(records: Sequence[tuple[int, Record]], name: str) -> Trace:
    header = records[0][1]
    trace = Trace(
        **{field: getattr(header, field) for field in _HEADER_FIELDS},
        agents=_of(records, Agent),
        events=_of(records, Event),
        edges=_of(records, Edge),
        scores=_of(records, Score),
        contents={content.hash: content.text for content in _of(records, ContentRecord)},
    )
    for problem in problems(trace):
        _raise_problem(problem, records, name)
    return trace


def _of(records: Sequence[tuple[int, Record]], kind: type[R]) -> tuple[R, ...]:
    return tuple(record for _, record in records if isinstance(record, kind))


def _require_counts(trace: Trace, line: int, end: EndRecord, name: str) -> None:
    events, edges = len(trace.events), len(trace.edges)
    if (end.events, end.edges) != (events, edges):
        what = (
            f"{events} events and {edges} edges, the end record says {end.events} and {end.edges}"
        )
        raise StrettoError(what, f"{name}:{line}", "records are missing or were added")


def _raise_problem(problem: Problem, records: Sequence[tuple[int, Record]], name: str) -> NoReturn:
    lines = [line for line, record in records if isinstance(record, _KINDS[problem.part])]
    where = f"{name}:{lines[problem.index]}: {problem.part}.{problem.field}"
    raise StrettoError(problem.what, where, problem.hint)
