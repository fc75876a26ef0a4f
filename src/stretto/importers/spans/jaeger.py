"""Jaeger's JSON (its API, and the download of its user interface): spans with the fields of OTLP.

Times are microseconds; a parent and links are references; attributes, status and the scope of a
span are tags; events are logs; what a service says of itself stands once a trace (`processes`).

In Elasticsearch a process stands in each span, and tags may be fields of an object, with `@` for
the dots in their names (`plugin/storage/es/spanstore/dbmodel` of Jaeger).
"""

from collections.abc import Iterable
from typing import Any

from stretto.importers.kit.fields import count_at, list_at, record_at, text_at, value_at
from stretto.importers.spans.wire import attributes_of

STATUS = ("otel.status_code", "otel.status_description", "error")
SCOPE = (("otel.scope.name", "otel.library.name"), ("otel.scope.version", "otel.library.version"))
_OWN = (*STATUS, *SCOPE[0], *SCOPE[1], "span.kind", "internal.span.format")
"""Tags that Jaeger's translation of OTLP adds to the attributes."""
_DIGITS = 20
"""So many a 64-bit number does not have."""


def is_jaeger(raw: dict[str, Any]) -> bool:
    """Whether an object is a span of Jaeger."""
    ids = text_at(raw, "traceID") is not None and text_at(raw, "spanID") is not None
    return ids and text_at(raw, "operationName") is not None


def from_jaeger(raw: dict[str, Any], processes: dict[str, Any]) -> dict[str, Any]:
    """A span with the names of OTLP.

    Args:
        raw: The span.
        processes: Those of its trace, by their key.
    """
    tags = _all_tags(raw)
    parent, links = _references(raw)
    begin, length = _micros(raw, "startTime"), _micros(raw, "duration")
    process = record_at(raw, "process") or record_at(processes, text_at(raw, "processID") or "")
    return {
        "traceId": raw["traceID"],
        "spanId": raw["spanID"],
        "parentSpanId": parent,
        "name": raw["operationName"],
        "startTimeUnixNano": _nanos(begin),
        "endTimeUnixNano": None if begin is None or length is None else _nanos(begin + length),
        "attributes": {name: value for name, value in tags.items() if name not in _OWN},
        "links": links,
        "events": [_event(log) for log in list_at(raw, "logs")],
        "status": _status(tags),
        "scope": {"name": _first(tags, SCOPE[0]), "version": _first(tags, SCOPE[1])},
        "resource": {"attributes": _said_of(process)},
    }


def _all_tags(raw: dict[str, Any]) -> dict[str, Any]:
    """The tags of a span or a process, those that are fields of an object too."""
    fields = record_at(raw, "tag").items()
    return {name.replace("@", "."): value for name, value in fields} | _tags(raw, "tags")


def _tags(raw: Any, name: str) -> dict[str, Any]:
    return attributes_of({"attributes": list_at(raw, name)})


def _references(raw: dict[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
    """The first parent of the same trace, and all other spans that are referred to, as links.

    Before there were references, a parent had a field of its own.
    """
    parent: str | None = None
    links: list[dict[str, Any]] = []
    for each in list_at(raw, "references"):
        trace, span = text_at(each, "traceID") or raw["traceID"], text_at(each, "spanID")
        is_parent = text_at(each, "refType") == "CHILD_OF" and trace == raw["traceID"]
        if is_parent and parent is None:
            parent = span
        else:
            links.append({"traceId": trace, "spanId": span})
    return parent or text_at(raw, "parentSpanID"), links


def _micros(raw: Any, name: str) -> int | None:
    """A time or a duration; some stores keep it as a text."""
    value = value_at(raw, name)
    is_text = isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS
    return count_at([int(value) if is_text else value], 0)


def _nanos(micros: int | None) -> int | None:
    return None if micros is None else micros * 1000


def _event(log: Any) -> dict[str, Any]:
    """An event; Jaeger keeps its name as one more field."""
    fields = _tags(log, "fields")
    name = fields.pop("event", None) or fields.pop("message", "")
    time = _nanos(_micros(log, "timestamp"))
    return {"name": name, "timeUnixNano": time, "attributes": fields}


def _status(tags: dict[str, Any]) -> dict[str, Any]:
    code, message, failed = (tags.get(name) for name in STATUS)
    return {"code": "ERROR" if failed in (True, "true") else code, "message": message}


def _first(tags: dict[str, Any], names: Iterable[str]) -> Any:
    return next((tags[name] for name in names if name in tags), None)


def _said_of(process: dict[str, Any]) -> dict[str, Any]:
    service = text_at(process, "serviceName")
    return ({"service.name": service} if service else {}) | _all_tags(process)
