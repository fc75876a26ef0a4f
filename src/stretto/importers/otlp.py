"""OTLP/JSON exports: GenAI semantic conventions, OpenInference, and what Stretto wrote itself.

One request a line, as file exporters write them, or one document. Spans that stand outside of
requests, as SDKs and Jaeger write them, are read too (see `spans.loose`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.exporters.otlp import SCHEMA_ATTRIBUTE
from stretto.exporters.otlp_restore import from_stretto_attributes
from stretto.files import read_bytes
from stretto.importers.kit.fields import known, list_at, record_at, text_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.reading import Line, Lines, parse_document, parse_lines
from stretto.importers.kit.report import Imported, Likeness, Notice
from stretto.importers.spans.conventions import spans_of
from stretto.importers.spans.documents import whole_ones
from stretto.importers.spans.importing import About, Read, by_trace, import_spans
from stretto.importers.spans.loose import SPAN_NAMES, begins_list, documents_in, loose_spans
from stretto.importers.spans.records import Record
from stretto.importers.spans.wire import attributes_of, record_of, resource_of, scope_of
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]

sessions = by_trace

_PENDING = "pending_span"
_SESSIONS = ("gen_ai.conversation.id", "session.id")


def recognise(head: Head) -> Likeness:
    """Look for export requests with spans."""
    document = head.document if isinstance(head.document, list) else [head.document]
    objects = [each for each in (*head.lines, *document) if isinstance(each, dict)]
    parts = [part for each in objects for part in _parts(each)]
    if any(True for part in parts for _ in _scopes(part)) or _is_loose(head, objects):
        return Likeness(1.0)
    if parts:
        return Likeness(0.4, "export requests without spans")
    if any("resourceLogs" in each or "resourceMetrics" in each for each in objects):
        return Likeness(0.3, "OTLP logs or metrics: only spans are read")
    return Likeness(0.0)


def _is_loose(head: Head, objects: Sequence[dict[str, Any]]) -> bool:
    """Whether spans stand outside of requests, in the first objects or after lines of a console."""
    if not any(name.encode() in head.data for name in SPAN_NAMES):
        return False  # which is the usual case, and the quickest to tell
    return any(map(_holds_loose, objects)) or documents_in(head.data, "", _holds_loose) is not None


def import_files(files: Sequence[Path]) -> Imported:
    """Read the runs of one or several files; spans of one trace may stand in several.

    Raises `StrettoError` where nothing of a file is whole.
    """
    return import_spans(files, _read, "otlp")


def _read(file: Path) -> Read:
    lines = _requests(file)
    restored, notices, rest = _restore(lines, str(file))
    skipped: Counter[str] = Counter()
    records = [record for line in rest for record in _records(line, str(file), skipped)]
    about: dict[str, About] = {}
    for record in records:
        about[record.trace] = _about(record, about.get(record.trace, About()))
    ours = filter(_is_ours, (part for line in lines.records for part in _parts(line.value)))
    return Read(
        spans=spans_of(records),
        records=len(records) + skipped.total() + sum(1 for part in ours for _ in _raw(part)),
        warnings=(*lines.warnings, *notices),
        skipped=dict(skipped),
        about=about,
        traces=restored,
    )


def _requests(file: Path) -> Lines:
    """What holds spans: a line each, objects over many lines each, one document, or its items."""
    data, name = read_bytes(file), str(file)
    first = data.split(b"\n", 1)[0].strip()
    if first not in (b"{", b"") and not begins_list(first):
        lines = _lines(data, name)
        if lines is not None:
            return lines
    many = documents_in(data, name, _holds_spans)
    if many is not None:
        return many
    document = parse_document(data, name)
    values = document.value if isinstance(document.value, list) else [document.value]
    found = [value for value in values if isinstance(value, dict)]
    if document.warnings and found:
        _drop_partial(found)
    if not any(map(_holds_spans, found)):
        raise StrettoError("holds no span", name, '"resourceSpans", or spans with ids, is expected')
    return Lines(tuple(Line(1, value) for value in found), document.warnings)


def _holds_spans(value: Any) -> bool:
    return bool(_parts(value)) or _holds_loose(value)


def _holds_loose(value: Any) -> bool:
    return next(loose_spans(value), None) is not None


def _lines(data: bytes, name: str) -> Lines | None:
    """The lines, if any holds spans; the last one may be cut: what is whole of a request there."""
    try:
        lines = parse_lines(data, name)
    except StrettoError:
        return None
    if not any(_holds_spans(line.value) for line in lines.records):
        return None
    end = data.rstrip()
    last, number = end.rpartition(b"\n")[2], end.count(b"\n") + 1
    if number in (line.number for line in lines.records):
        return lines
    try:
        document = parse_document(last, name)
    except StrettoError:
        return lines
    if not _parts(document.value):
        return lines
    _drop_partial([document.value])
    return Lines((*lines.records, Line(number, document.value)), lines.warnings)


def _drop_partial(found: list[dict[str, Any]]) -> None:
    """Take the last span out of what was cut, where it shows that it is not whole."""
    scopes = [scope for part in _parts(found[-1])[-1:] for scope in _scopes(part)]
    data = list_at(found[-1], "data") or [found[-1].get("data")]
    traces = [each for each in data if isinstance(each, dict)]
    holder = (scopes or traces or found)[-1]
    if "spans" in holder:
        spans = [span for span in list_at(holder, "spans") if isinstance(span, dict)]
        holder["spans"] = whole_ones(spans)
    elif not scopes:
        found[:] = whole_ones(found)


def _parts(request: Any) -> list[dict[str, Any]]:
    """The spans of a request by resource; APIs of Jaeger and Tempo wrap it once more."""
    names = ("resourceSpans", "resource_spans", "batches")
    whole = (request, record_at(request, "result"), record_at(request, "trace"))
    found = (part for each in whole for name in names for part in list_at(each, name))
    return [part for part in found if isinstance(part, dict)]


def _scopes(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
        yield from (scope for scope in list_at(part, name) if isinstance(scope, dict))


def _raw(part: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every span with its scope."""
    for scope in _scopes(part):
        for span in list_at(scope, "spans"):
            if isinstance(span, dict):
                yield scope, span


def _restore(lines: Lines, name: str) -> tuple[tuple[Trace, ...], list[Notice], Sequence[Line]]:
    """The traces that Stretto wrote, notices of those that are damaged, and the other requests."""
    ours = [line for line in lines.records if any(map(_is_ours, _parts(line.value)))]
    if not ours:
        return (), [], lines.records
    try:
        return _restored(ours, name), [], lines.records
    except StrettoError:
        traces: list[Trace] = []
        notices: list[Notice] = []
    for line in ours:
        try:
            traces += _restored([line], name)
        except StrettoError as error:
            notices.append(Notice(f"{name}:{line.number}", f"not read: {error.what}"))
    if not traces and len(ours) == len(lines.records):
        raise StrettoError(notices[0].what, notices[0].where)
    return tuple(traces), notices, lines.records


def _restored(lines: Sequence[Line], name: str) -> tuple[Trace, ...]:
    try:
        requests = [{"resourceSpans": _parts(line.value)} for line in lines]
        return from_stretto_attributes(requests, name)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"the stretto.* attributes are damaged: {error or type(error).__name__}"
        raise StrettoError(what, f"{name}:{lines[0].number}") from None


def _is_ours(part: dict[str, Any]) -> bool:
    named = list_at(part, "resource", "attributes")
    return any(text_at(attribute, "key") == SCHEMA_ATTRIBUTE for attribute in named)


def _records(line: Line, file: str, skipped: Counter[str]) -> Iterator[Record]:
    source, parts = Source(file, line.number), _parts(line.value)
    for part in parts:
        if not _is_ours(part):
            yield from _of_request(part, source, skipped)
    found = None if parts else list(loose_spans(line.value))
    for raw in found or ():
        record = record_of(raw, scope_of(raw), resource_of(raw), source)
        if record is not None:
            yield record
    if found == []:
        skipped["not a span"] += 1


def _of_request(part: dict[str, Any], source: Source, skipped: Counter[str]) -> Iterator[Record]:
    resource = attributes_of(record_at(part, "resource"))
    for scope, raw in _raw(part):
        record = record_of(raw, scope_of(scope), resource, source)
        if record is None:
            skipped["span without an id"] += 1
        elif record.attributes.get("logfire.span_type") == _PENDING:
            skipped["pending span"] += 1
        else:
            yield record


def _about(record: Record, known_so_far: About) -> About:
    """What a span says of its trace: what recorded it, where it ran, which session it is of."""
    session = record.text(*_SESSIONS) if record.parent is None else None
    resource = record.resource or None
    attrs = known(resource=resource, session_id=session)
    system = record.scope or None
    if record.parent is None and system is not None:
        return About(system, known_so_far.attrs | attrs)
    return About(known_so_far.system or system, attrs | known_so_far.attrs)
