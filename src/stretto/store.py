"""Traces as JSONL: one record a line, so that errors have a line and files can grow.

A trace is a `trace` record (its header, with the schema version), then its `agent`, `event`,
`edge`, `score` and `content` records in any order, then an `end` record that counts the events and
edges, so that a file that was cut is noticed. A file may hold any number of traces.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes, write_whole
from stretto.trace import (
    SCHEMA,
    Agent,
    Decision,
    Edge,
    Event,
    Header,
    SafetyLabel,
    Score,
    Tokens,
    Trace,
)
from stretto.validate import Problem, problems


class TraceRecord(Header, frozen=True, kw_only=True, tag_field="record", tag="trace"):
    """The first record of a trace."""

    schema: Annotated[int, Meta(ge=1)]


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
    agents: int | None = None
    scores: int | None = None


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
_PARTS: dict[str, type[Struct]] = {"decision": Decision, "tokens": Tokens, "label": SafetyLabel}
_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()
_HEADER_FIELDS = tuple(field.name for field in fields(Header))


def write(path: str | Path, traces: Sequence[Trace]) -> None:
    """Write traces to a file, whole or not at all.

    Raises `StrettoError` for no traces at all, and for one that could not be read back.
    """
    if not traces:
        raise StrettoError("nothing to write: there is no trace", str(path))
    write_whole(Path(path), (_readable(trace) for trace in traces))


def _readable(trace: Trace) -> bytes:
    """The records of a trace, tried: fields of structs can hold what their types forbid."""
    data = encode(trace)
    decode(data, f"the trace {trace.id!r}")
    return data


def encode(trace: Trace) -> bytes:
    """The records of a trace as JSON lines.

    Raises `StrettoError` for a trace that could not be read back.
    """
    for problem in problems(trace):
        where = f"{trace.id}: {problem.part} {problem.index}: {problem.field}"
        raise StrettoError(problem.what, where, problem.hint)
    header = {name: getattr(trace, name) for name in _HEADER_FIELDS}
    records: list[Record] = [TraceRecord(schema=SCHEMA, **header)]
    records += trace.agents
    records += trace.events
    records += trace.edges
    records += trace.scores
    records += [ContentRecord(name, text) for name, text in trace.contents.items()]
    records.append(_end(trace))
    try:
        return _ENCODER.encode_lines(records)
    except UnicodeEncodeError as error:
        what = f"a text holds half a character: {error.object[error.start]!r}"
        raise StrettoError(what, ascii(trace.id), "replace lone surrogates") from None
    except (TypeError, RecursionError) as error:
        raise StrettoError(f"a value that JSON cannot hold: {error}", trace.id) from None


def _end(trace: Trace) -> EndRecord:
    counts = (len(part) for part in (trace.events, trace.edges, trace.agents, trace.scores))
    return EndRecord(*counts)


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
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if b"\0" in data[:4096]:
                    raise StrettoError("not a trace file: it is binary", name) from None
                lines = data.split(b"\n")[:number]
                _require_known_schemas(lines, name)
                _raise_bad_line(error, lines, f"{name}:{number}")
    return records


def _require_known_schemas(lines: Sequence[bytes], name: str) -> None:
    """What a newer schema brings must not be taken for a mistake."""
    for number, line in enumerate(lines, start=1):
        if b'"schema"' in line:
            record = _plain(line)
            if record.get("record") == "trace" and isinstance(record.get("schema"), int):
                _require_known_schema(record["schema"], f"{name}:{number}")


def _raise_bad_line(error: Exception, lines: Sequence[bytes], where: str) -> NoReturn:
    message, line = str(error), lines[-1]
    if isinstance(error, RecursionError):
        raise StrettoError("the record is nested too deeply", where) from None
    if message.startswith("Input data was truncated"):
        hint = "the file was cut, or written by something else"
        raise StrettoError("the record is cut off", where, hint) from None
    record = _plain(line)
    kind = str(record.get("record"))
    if "record" not in record:
        raise StrettoError("not a JSON object with a `record` field", where) from None
    if kind not in _KINDS:
        hint = did_you_mean(kind, _KINDS)
        raise StrettoError(f'unknown record "{kind}"', f"{where}: record", hint) from None
    what, _, field = message.partition(" - at `$")
    hint = ""
    if unknown := re.search("unknown field `(.+)`", what):
        part = _PARTS.get(field.rpartition(".")[2].strip("`"), _KINDS[kind])
        hint = did_you_mean(unknown[1], [each.encode_name for each in fields(part)])
        field, what = f"{field.rstrip('`')}.{unknown[1]}", "no such field"
    place = f"{where}: {kind}{field.rstrip('`')}"
    raise StrettoError(f"{what[0].lower()}{what[1:]}", place, hint) from None


def _plain(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; empty where there is none."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _assemble(records: Sequence[tuple[int, Record]], name: str) -> Iterator[Trace]:
    start: int | None = None
    for index, (line, record) in enumerate(records):
        if isinstance(record, TraceRecord):
            if start is not None:
                _raise_no_end(records[start], name)
            _require_known_schema(record.schema, f"{name}:{line}")
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


def _require_known_schema(schema: int, where: str) -> None:
    if schema > SCHEMA:
        what = f"schema version {schema}, this version of Stretto reads up to {SCHEMA}"
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


def _require_counts(trace: Trace, line: int, said: EndRecord, name: str) -> None:
    found = _end(trace)
    for part in EndRecord.__struct_fields__:
        if getattr(said, part) not in (None, getattr(found, part)):
            what = f"{getattr(found, part)} {part}, the end record says {getattr(said, part)}"
            raise StrettoError(what, f"{name}:{line}", "records are missing or were added")


def _raise_problem(problem: Problem, records: Sequence[tuple[int, Record]], name: str) -> NoReturn:
    lines = [line for line, record in records if isinstance(record, _KINDS[problem.part])]
    where = f"{name}:{lines[problem.index]}: {problem.part}.{problem.field}"
    raise StrettoError(problem.what, where, problem.hint)
