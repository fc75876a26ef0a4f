"""One span as JSON: as OTLP has it, and with the names that SDKs and other tools give its fields.

| field | OTLP | elsewhere |
|---|---|---|
| ids | hex | hex after `0x`, base64; inside `context` (Python), `_spanContext` (JavaScript) |
| times | nanoseconds as text | ISO, numbers of any unit, pairs of seconds and nanoseconds |
| attributes | key and typed value | key and plain value, an object, flat or nested |
| status | `code`, `message` | `status_code` beside `description` or `status_message` |
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from stretto.importers.kit.fields import list_at, record_at, text_at, value_at
from stretto.importers.kit.loom import Source
from stretto.importers.spans.mlflow import with_plain_names
from stretto.importers.spans.records import Moment, Record, flat
from stretto.importers.spans.span import LATEST, NANO, nanos_of

CONTEXTS = ("context", "_spanContext")
TRACE_IDS = ("traceId", "trace_id")
SPAN_IDS = ("spanId", "span_id")
_PARENT_IDS = ("parentSpanId", "parent_span_id", "parentId", "parent_id")
_PARENTS = ("parentSpanContext", "_parentSpanContext")
_BEGINS = ("startTimeUnixNano", "start_time_unix_nano", "startTime", "start_time", "timestamp")
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "endTime", "end_time")
_INSTANTS = ("timeUnixNano", "time_unix_nano", "timestamp", "time")
_ATTRIBUTES = ("attributes", "span_attributes")
_SCOPES = ("scope", "instrumentationLibrary", "instrumentationScope")
_SCALARS = ("stringValue", "string_value", "boolValue", "bool_value", "bytesValue", "bytes_value")
_INTEGERS = ("intValue", "int_value")
_DOUBLES = ("doubleValue", "double_value")
_BASE64 = (12, 24)
_HEX = re.compile(r"(?:[0-9a-fA-F]{16}){1,2}")
"""The ids of spans and traces."""
_DEPTH = 40
_ERRORS = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error")
_DURATION = re.compile(
    r"P(?:(\d{1,6})D)?T?(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?"
)
_UNITS = (86_400, 3_600, 60, 1)
"""Seconds in the parts of an ISO duration."""


def record_of(
    raw: dict[str, Any], scope: str, resource: dict[str, Any], source: Source
) -> Record | None:
    """A span with its attributes; `None` for one without ids."""
    trace, span = ids_of(raw)
    if trace is None or span is None:
        return None
    parent = parent_of(raw)
    links = (_link(link, trace) for link in list_at(raw, "links"))
    start = _time(raw, _BEGINS)
    return Record(
        id=f"{trace}/{span}",
        trace=trace,
        source=source,
        name=text_at(raw, "name") or text_at(raw, "span_name") or "",
        parent=f"{trace}/{parent}" if parent and parent.strip("0") else None,
        links=tuple(link for link in links if link is not None),
        start=start,
        end=_time(raw, _ENDS) or _end(raw, start),
        attributes=with_plain_names(attributes_of(raw)),
        moments=tuple(_moment(each) for each in list_at(raw, "events")),
        error=_error(raw),
        scope=scope,
        resource=resource,
    )


def ids_of(raw: Any) -> tuple[str | None, str | None]:
    """Ids of the trace and of the span, which may stand in a context."""
    for place in (raw, *(value_at(raw, name) for name in CONTEXTS)):
        span = _identity(place, *SPAN_IDS)
        if span is not None:
            return _identity(place, *TRACE_IDS), span
    return None, None


def attributes_of(raw: Any) -> dict[str, Any]:
    """The attributes of a span, a resource or an event by dotted name."""
    found = next(filter(None, (value_at(raw, name) for name in _ATTRIBUTES)), None)
    if isinstance(found, dict):
        return flat(found)
    return flat(_pairs(found, 0)) if isinstance(found, list) else {}


def resource_of(raw: dict[str, Any]) -> dict[str, Any]:
    """What a span that stands alone says of the program it comes from."""
    listed = list_at(raw, "resource", "_rawAttributes")
    pairs = (each for each in listed if isinstance(each, list) and len(each) == 2)
    named = {key: value for key, value in pairs if isinstance(key, str)}
    beside = flat(record_at(raw, "resource_attributes"))
    return attributes_of(record_at(raw, "resource")) or named or beside


def scope_of(raw: Any) -> str:
    """Name and version of what recorded it."""
    named = next(filter(None, (record_at(raw, name) for name in _SCOPES)), {})
    name = text_at(named, "name") or text_at(raw, "scope_name")
    version = text_at(named, "version") or text_at(raw, "scope_version")
    return " ".join(filter(None, (name, version)))


def _identity(raw: Any, *names: str) -> str | None:
    """An id in lower hex digits; libraries for protobuf write base64 where they are not told."""
    found = next(filter(None, (text_at(raw, name) for name in names)), None)
    if found is None:
        return None
    found = found.removeprefix("0x")
    if len(found) not in _BASE64 or not found.endswith("="):
        return found.lower() if _HEX.fullmatch(found) else found
    try:
        return b64decode(found, validate=True).hex()
    except ValueError:
        return found


def parent_of(raw: dict[str, Any]) -> str | None:
    """Id of the span above it."""
    inside = (_identity(raw.get(name), *SPAN_IDS) for name in _PARENTS)
    return _identity(raw, *_PARENT_IDS) or next(filter(None, inside), None)


def _link(raw: Any, trace: str) -> str | None:
    other, span = ids_of(raw)
    return f"{other or trace}/{span}" if span else None


def _moment(raw: Any) -> Moment:
    return Moment(text_at(raw, "name") or "", _time(raw, _INSTANTS), attributes_of(raw))


def _time(raw: Any, names: Sequence[str]) -> int | None:
    """Nanoseconds since 1970; 0 is a time that is not known."""
    times = (_instant(name, value_at(raw, name)) for name in names)
    return next((time for time in times if time is not None and 0 < time < LATEST), None)


def _instant(name: str, value: Any) -> int | None:
    """A number under a name that says so is nanoseconds, under any other of a unit that fits."""
    if name.lower().endswith("nano"):
        return _integer(value)
    return _pair(value) if isinstance(value, list) else nanos_of(value)


def _pair(value: Any) -> int | None:
    """Seconds and nanoseconds, as the JavaScript SDK has times."""
    whole, rest = _integer(value_at(value, 0)), _integer(value_at(value, 1))
    return None if whole is None or rest is None else whole * NANO + rest


def _end(raw: dict[str, Any], start: int | None) -> int | None:
    """The end of a span that says its duration instead."""
    stated = raw.get("duration")
    length = _iso(stated) if isinstance(stated, str) else _pair(stated)
    return start + length if start is not None and length is not None else None


def _iso(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS, strict=True)
    return round(sum(float(part) * unit for part, unit in parts if part) * NANO)


def _error(raw: dict[str, Any]) -> str | None:
    status = record_at(raw, "status") or raw
    code = status.get("code", status.get("status_code", raw.get("status")))
    said = (text_at(status, name) for name in ("message", "description", "status_message"))
    return next(filter(None, said), "error") if code in _ERRORS else None


def _pairs(listed: Sequence[Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute in listed:
        key = text_at(attribute, "key")
        if key is not None:
            found[key] = _plain(attribute.get("value"), depth)
    return found


def _plain(value: Any, depth: int) -> Any:
    """The value of an attribute; one of an unknown type is none."""
    if not isinstance(value, dict) or depth > _DEPTH:
        return value if isinstance(value, str | int | float) else None
    for name, inner in value.items():
        if name in _SCALARS:
            return inner if isinstance(inner, str | bool) else None
        if name in _INTEGERS:
            return _integer(inner)
        if name in _DOUBLES:
            return inner if isinstance(inner, int | float) else None
        if name in ("arrayValue", "array_value"):
            return [_plain(each, depth + 1) for each in list_at(inner, "values")]
        if name in ("kvlistValue", "kvlist_value"):
            return _pairs(list_at(inner, "values"), depth + 1)
    return None


def _integer(value: Any) -> int | None:
    """A 64-bit number, which JSON has as a text."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
