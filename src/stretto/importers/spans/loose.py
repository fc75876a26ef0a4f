"""Spans that stand outside of export requests: what SDKs, Jaeger and data sets write.

| what | where spans stand | how they are told |
|---|---|---|
| exporters of SDKs | one after the other, a line each, or a list | ids in a context |
| Jaeger | `data[].spans`, or `spans` of one trace | `spanID`, `operationName` |
| Elasticsearch | `_source` of a line each, or of `hits.hits[]` | as Jaeger's |
| MLflow | `data.spans` | as the others |
| others | `spans`, a line each, or a list | ids of trace and span, a name, a time or attributes |

Spans may hold spans (`child_spans`), and leave the id of the trace to what holds them.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from stretto.importers.kit.fields import known, record_at, text_at
from stretto.importers.kit.reading import Line, Lines, line_of
from stretto.importers.kit.report import Notice
from stretto.importers.spans.jaeger import from_jaeger, is_jaeger
from stretto.importers.spans.messages import decoded
from stretto.importers.spans.wire import SPAN_IDS, ids_of, parent_of

HOLDERS = ("spans", "data", "child_spans", "hits", "_source")
SPAN_NAMES = (*SPAN_IDS, "spanID")
"""What the id of a span is called; a file without any of these holds none."""
_TRACE_IDS = ("trace_id", "traceId", "traceID")
_SIGNS = ("attributes", "span_attributes", "start_time", "startTime", "startTimeUnixNano")
_BRACE = re.compile(rb"^[{}][ \t\r]*$", re.MULTILINE)
_OPEN = re.compile(rb"\{[ \t\r]*\n")
"""What the files of most other formats do not have."""
_LIST = re.compile(rb"\s*\[[ \t\r]*(?:[{\]\n]|\Z)")


def loose_spans(value: Any) -> Iterator[dict[str, Any]]:
    """The spans of a document, with the names of OTLP or of an SDK, outer ones first."""
    waiting: deque[tuple[Any, dict[str, Any], dict[str, Any]]] = deque([(value, {}, {})])
    while waiting:
        each, above, processes = waiting.popleft()
        if isinstance(each, list):
            waiting.extendleft((item, above, processes) for item in reversed(each))
        elif isinstance(each, dict):
            span = _span(each, above, processes)
            if span is not None:
                yield span
            above = _inherited(each, above, span)
            processes = record_at(each, "processes") or processes
            inner = (each.get(name) for name in reversed(HOLDERS))
            waiting.extendleft((items, above, processes) for items in inner if items)


def _span(
    raw: dict[str, Any], above: dict[str, Any], processes: dict[str, Any]
) -> dict[str, Any] | None:
    if is_jaeger(raw):
        return from_jaeger(raw, processes)
    is_named = text_at(raw, "name") is not None or text_at(raw, "span_name") is not None
    if not is_named or _is_phoenix(raw) or not any(sign in raw for sign in _SIGNS):
        return None
    parent = above.get("parent_span_id") if parent_of(raw) is None else None
    inherited = known(trace_id=above.get("trace_id"), parent_span_id=parent)
    full = inherited | {name: value for name, value in raw.items() if value is not None}
    return None if None in ids_of(full) else full


def _is_phoenix(raw: dict[str, Any]) -> bool:
    """Phoenix has a context too, but neither the ids nor the kinds of an SDK."""
    span = text_at(raw, "context", "span_id")
    is_sdk = span is not None and span.startswith("0x")
    return "context" in raw and not is_sdk and not str(raw.get("kind")).startswith("SpanKind.")


def _inherited(
    raw: dict[str, Any], above: dict[str, Any], span: dict[str, Any] | None
) -> dict[str, Any]:
    """What a span that stands in this object need not say."""
    named = (text_at(raw, name) or text_at(raw, "trace", name) for name in _TRACE_IDS)
    trace = next(filter(None, named), None) or above.get("trace_id")
    parent = ids_of(span)[1] if span is not None else None
    return {"trace_id": trace, "parent_span_id": parent}


def begins_list(data: bytes) -> bool:
    """Whether a list begins, rather than a line of a log with a time in brackets."""
    return _LIST.match(data) is not None


def documents_in(data: bytes, name: str, fits: Callable[[Any], bool]) -> Lines | None:
    """The objects that stand one after the other over many lines, among lines of any other kind.

    So a console exporter writes them. `None` where none fits, or all are parts of one document.
    """
    if begins_list(data) or not _OPEN.search(data):
        return None
    records: list[Line] = []
    warnings: list[Notice] = []
    blocks, torn = _blocks(data)
    number, seen = 1, 0
    for block in blocks:
        number, seen = number + data.count(b"\n", seen, block.start), block.start
        value = _decoded(data[block])
        if value is not None:
            records.append(Line(number, value))
        else:
            warnings.append(Notice(f"{name}:{number}", "is no whole record: left out"))
    if not any(fits(line.value) for line in records) or (warnings and _decoded(data) is not None):
        return None
    if torn is not None:
        where = f"{name}:{line_of(data, torn)}"
        warnings.append(Notice(where, "the last record is cut: left out"))
    return Lines(tuple(records), tuple(warnings))


def _blocks(data: bytes) -> tuple[list[slice], int | None]:
    """From each line that is an opening brace to the next closing one, and where one stays open."""
    found: list[slice] = []
    begin: int | None = None
    for brace in _BRACE.finditer(data):
        if begin is None and brace[0].startswith(b"{"):
            begin = brace.start()
        elif begin is not None and brace[0].startswith(b"}"):
            found.append(slice(begin, brace.end()))
            begin = None
    return found, begin


def _decoded(data: bytes) -> dict[str, Any] | None:
    value = decoded(data.decode("utf-8", "surrogateescape"))
    return value if isinstance(value, dict) else None
