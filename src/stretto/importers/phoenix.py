"""Phoenix exports: OpenInference spans as Phoenix's API, client and data frames write them.

A list of spans, a page of the API (`{"data": [...]}`), or one span a line; attributes nested or by
dotted name, and columns of a data frame (`context.span_id`, `attributes.llm.model_name`).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from stretto.importers.kit.fields import known, list_at, number_at, record_at, text_at, value_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import Imported, Likeness
from stretto.importers.spans.conventions import spans_of
from stretto.importers.spans.documents import items_of, read_items
from stretto.importers.spans.importing import About, Read, by_trace, import_spans
from stretto.importers.spans.messages import decoded
from stretto.importers.spans.records import Moment, Record, flat, nested
from stretto.importers.spans.span import Span, nanos_of

__all__ = ["import_files", "recognise", "sessions"]

sessions = by_trace

_OWN = (
    "id",
    "name",
    "context",
    "span_kind",
    "parent_id",
    "start_time",
    "end_time",
    "status_code",
    "status_message",
    "attributes",
    "events",
    "annotations",
    "links",
)


def recognise(head: Head) -> Likeness:
    """Look for spans with a context and a kind."""
    items = list(items_of(head))
    if any(str(item.get("kind")).startswith("SpanKind.") for item in items):
        return Likeness(0.4, "spans of an SDK of OpenTelemetry: they are read as otlp")
    if any(_ids(item) is not None and _kind(item) is not None for item in items):
        return Likeness(1.0)
    if any(_ids(item) is not None for item in items):
        return Likeness(0.4, 'spans without "span_kind"')
    return Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read the runs of one or several files; spans of one trace may stand in several.

    Raises `StrettoError` where nothing of a file is whole.
    """
    return import_spans(files, _read, "phoenix")


def _read(file: Path) -> Read:
    found = read_items(file, lambda item: _ids(item) is not None)
    records = [_record(item, Source(str(file), number)) for number, item in found.items]
    spans = [
        _with_annotations(span, item)
        for span, (_, item) in zip(spans_of(records), found.items, strict=True)
    ]
    about: dict[str, About] = {}
    for record in records:
        if record.parent is None or record.trace not in about:
            session = record.text("session.id")
            about[record.trace] = About("phoenix", known(session_id=session))
    return Read(
        spans=spans,
        records=len(records) + found.others,
        warnings=found.warnings,
        skipped={"not a span": found.others} if found.others else {},
        about=about,
    )


def _ids(item: Any) -> tuple[str, str] | None:
    """Ids of the trace and of the span."""
    trace = text_at(item, "context", "trace_id") or text_at(item, "context.trace_id")
    span = text_at(item, "context", "span_id") or text_at(item, "context.span_id")
    return (trace, span) if trace is not None and span is not None else None


def _kind(item: dict[str, Any]) -> str | None:
    attributes = record_at(item, "attributes")
    beside = text_at(item, "span_kind") or text_at(item, "attributes.openinference.span.kind")
    inside = text_at(attributes, "openinference.span.kind")
    return beside or inside or text_at(attributes, "openinference", "span", "kind")


def _record(item: dict[str, Any], source: Source) -> Record:
    trace, span = _ids(item) or ("", "")
    parent = text_at(item, "parent_id")
    attributes = record_at(item, "attributes") or nested(item, "attributes") or {}
    more = {name: value for name, value in item.items() if name.partition(".")[0] not in _OWN}
    return Record(
        id=f"{trace}/{span}",
        trace=trace,
        source=source,
        name=text_at(item, "name") or "",
        kind=_kind(item) or "UNKNOWN",
        parent=f"{trace}/{parent}" if parent else None,
        start=nanos_of(item.get("start_time")),
        end=nanos_of(item.get("end_time")),
        attributes=flat(attributes if isinstance(attributes, dict) else {}) | flat(more),
        moments=tuple(_moments(decoded(item.get("events")))),
        error=_error(item),
    )


def _moments(events: Any) -> Iterator[Moment]:
    for event in events if isinstance(events, list) else ():
        time = value_at(event, "timestamp") or value_at(event, "time")
        attributes = flat(record_at(event, "attributes"))
        yield Moment(text_at(event, "name") or "", nanos_of(time), attributes)


def _error(item: dict[str, Any]) -> str | None:
    failed = text_at(item, "status_code") == "ERROR"
    return text_at(item, "status_message") or "error" if failed else None


def _with_annotations(span: Span, item: dict[str, Any]) -> Span:
    """What evaluators and people said of a span: a score, else a label."""
    scores: list[tuple[str, float]] = []
    labels: dict[str, str] = {}
    for note in list_at(item, "annotations"):
        name = text_at(note, "name")
        score, label = number_at(note, "result", "score"), text_at(note, "result", "label")
        if name and score is not None:
            scores.append((name, score))
        if name and label is not None:
            labels[name] = label
    attrs = span.attrs | ({"annotations": labels} if labels else {})
    return structs.replace(span, scores=(*span.scores, *scores), attrs=attrs)
