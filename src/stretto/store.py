"""Traces as JSONL: one record a line, so that errors have a line and files can grow.

A trace is a `trace` record (its header, with the schema version), then its `agent`, `event`,
`edge`, `score` and `content` records in any order, then an `end` record that counts the events and
edges, so that a file that was cut is noticed. A file may hold any number of traces.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes, write_whole
from stretto.garbage import paused_collector
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
from stretto.validate import Problem, contradictions, false_hash, require_valid


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
_END = re.compile(rb'"record"\s*:\s*"end"')
_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()
_HEADER_FIELDS = tuple(field.name for field in fields(Header))


def write(path: str | Path, traces: Trace | Iterable[Trace]) -> None:
    """Write one or many traces to a file, whole or not at all.

    Raises `StrettoError` for no traces at all, and for one that could not be read back.
    """
    given = [traces] if isinstance(traces, Trace) else traces
    write_whole(Path(path), _encoded(given, str(path)))


def _encoded(traces: Iterable[Trace], name: str) -> Iterator[bytes]:
    empty = True
    for trace in traces:
        empty = False
        yield encode_checked(trace)
    if empty:
        raise StrettoError("nothing to write: there is no trace", name)


def encode_checked(trace: Trace) -> bytes:
    """The records of a trace as JSON lines, which `decode` reads back.

    Raises `StrettoError` for a trace that could not be read back.
    """
    require_valid(trace, trace.id)
    data = encode(trace)
    _records(data, f"the trace {trace.id!r}")  # fields of structs can hold what their types forbid
    return data


def encode(trace: Trace) -> bytes:
    """The records of a trace as JSON lines, without a check that they can be read back.

    Raises `StrettoError` for what JSON cannot hold at all.
    """
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
    with paused_collector():
        return list(_assemble(_records(data, name), _Source(data, name)))


def decode_whole(data: bytes, name: str) -> tuple[list[Trace], bool]:
    """Decode the traces that are whole in a file that may be cut; and whether it is."""
    try:
        return decode(data, name), False
    except StrettoError:
        ends = [match.end() for match in _END.finditer(data)]  # of which the last may be cut
        last = max((data.find(b"\n", end) + 1 for end in ends[-2:]), default=0)
        return decode(data[:last], name), bool(data[last:].strip())


class _Source(Struct, frozen=True):
    """Where records come from; asked only when something is wrong."""

    data: bytes
    name: str

    def where(self, index: int) -> str:
        """File and line of a record."""
        number, _ = next(islice(_lines(self.data), index, None))
        return f"{self.name}:{number}"


def _records(data: bytes, name: str) -> list[Record]:
    """All records; an error names the line."""
    try:
        records = _DECODER.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _line_by_line(data, name)
    plain = len(records) == data.count(b"\n") + (not data.endswith(b"\n"))
    return records if plain else _line_by_line(data, name)  # blank lines, or two records in one


def _line_by_line(data: bytes, name: str) -> list[Record]:
    records: list[Record] = []
    for number, line in _lines(data):
        try:
            records.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if b"\0" in data[:4096]:
                raise StrettoError("not a trace file: it is binary", name) from None
            lines = data.split(b"\n")[:number]
            _require_known_schemas(lines, name)
            _raise_bad_line(error, lines, f"{name}:{number}")
    return records


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that hold something, with their numbers from 1."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.isspace():
            yield number, line


def _require_known_schemas(lines: Sequence[bytes], name: str) -> None:
    """What a newer schema brings must not be taken for a mistake."""
    for number, line in enumerate(lines, start=1):
        if b'"schema"' in line:
            record = _plain(line)
            schema = record.get("schema") if record.get("record") == "trace" else None
            if isinstance(schema, int) and schema > SCHEMA:
                _raise_newer(schema, f"{name}:{number}")


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


def _assemble(records: Sequence[Record], source: _Source) -> Iterator[Trace]:
    start: int | None = None
    free = 0  # the first record that belongs to no trace yet
    bounds = [i for i, record in enumerate(records) if isinstance(record, (TraceRecord, EndRecord))]
    for index in bounds:
        record = records[index]
        if isinstance(record, TraceRecord):
            if start is not None:
                _raise_no_end(source.where(start))
            if record.schema > SCHEMA:
                _raise_newer(record.schema, source.where(index))
            start = index
        if start is None or (start == index and free < index):
            raise StrettoError("a record before any trace record", source.where(free))
        if isinstance(record, EndRecord):
            yield _build(records[start : index + 1], start, source)
            start, free = None, index + 1
    if start is not None:
        _raise_no_end(source.where(start))
    if free < len(records):
        raise StrettoError("a record before any trace record", source.where(free))


def _raise_no_end(where: str) -> NoReturn:
    hint = "the file was cut; write it again, or drop the incomplete trace"
    raise StrettoError("the trace that starts here has no end record", where, hint)


def _raise_newer(schema: int, where: str) -> NoReturn:
    what = f"schema version {schema}, this version of Stretto reads up to {SCHEMA}"
    raise StrettoError(what, where, "upgrade stretto")


def _build(records: Sequence[Record], first: int, source: _Source) -> Trace:
    """The trace of these records, of which the first is number `first` of the file."""
    parts: dict[type[Record], list[Any]] = {kind: [] for kind in _KINDS.values()}
    for record in records:
        parts[type(record)].append(record)
    trace = Trace(
        **{field: getattr(records[0], field) for field in _HEADER_FIELDS},
        agents=tuple(parts[Agent]),
        events=tuple(parts[Event]),
        edges=tuple(parts[Edge]),
        scores=tuple(parts[Score]),
        contents={content.hash: content.text for content in parts[ContentRecord]},
    )
    for problem in chain(contradictions(trace), _false_hashes(parts[ContentRecord])):
        where = [i for i, record in enumerate(records) if type(record) is _KINDS[problem.part]]
        place = f"{source.where(first + where[problem.index])}: {problem.part}.{problem.field}"
        raise StrettoError(problem.what, place, problem.hint)
    _require_counts(trace, records[-1], lambda: source.where(first + len(records) - 1))
    return trace


def _false_hashes(contents: Sequence[ContentRecord]) -> Iterator[Problem]:
    for index, content in enumerate(contents):
        if (problem := false_hash(index, content.hash, content.text)) is not None:
            yield problem


def _require_counts(trace: Trace, said: Record, where: Callable[[], str]) -> None:
    found = _end(trace)
    for part in EndRecord.__struct_fields__:
        if getattr(said, part) not in (None, getattr(found, part)):
            what = f"{getattr(found, part)} {part}, the end record says {getattr(said, part)}"
            raise StrettoError(what, where(), "records are missing or were added")
