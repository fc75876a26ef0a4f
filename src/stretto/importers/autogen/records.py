"""AutoGen logs, stage one: messages and model calls, each once, in the order of the files.

An `EVENT_LOGGER` file has every message when it is sent and again when it is delivered, on several
topics; what AgentChat says stands in the payloads. A dump of `run_stream` has the same messages and
repeats them in the result at its end. So messages are known by their `id`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stretto.files import read_bytes
from stretto.importers.kit.fields import count_at, list_at, record_at, text_at
from stretto.importers.kit.heads import SIZE, Head, read_head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.reading import parse_document, parse_lines
from stretto.importers.kit.report import Likeness, Notice
from stretto.importers.kit.texts import json_text

LOGGED = (
    "Message",
    "LLMCall",
    "LLMStreamStart",
    "LLMStreamEnd",
    "ToolCall",
    "MessageDropped",
    "MessageHandlerException",
    "AgentConstructionException",
)
"""Types of the records of an event log."""

NAMELESS = ""
"""Whose calls they are that name no agent: outside of a runtime there is none."""


_PREFIXED = re.compile(rb"^[^\n{]*autogen_core\.events[^\n{]*(\{.*)$|^.+$", re.MULTILINE)


class Item(NamedTuple):
    """One thing that was logged."""

    kind: str
    """`said` for a message of AgentChat, `sent` for one of the core, `call`, `tool`, `error`."""
    agent: str | None
    """Who did it."""
    record: dict[str, Any]
    source: Source


class Records(NamedTuple):
    """What the files of one run hold."""

    items: list[Item]
    stop_reason: str | None
    records: dict[str, int]
    """Whole records by file."""
    skipped: dict[str, Counter[str]]
    duplicates: dict[str, int]
    warnings: dict[str, tuple[Notice, ...]]


def recognise(head: Head) -> Likeness:
    """Look for the records of an event log, or for messages with a source and their usage."""
    lines = head.lines or Head(_bare(head.data)).lines
    first = next(iter(lines), None)
    document = head.document
    if isinstance(document, list):
        first = next((each for each in document if isinstance(each, dict)), None)
    elif first is None or "type" not in first:
        first = next((each for each in list_at(document, "messages") if isinstance(each, dict)), {})
    return _likeness(first or {})


def _likeness(record: dict[str, Any]) -> Likeness:
    if record.get("type") in LOGGED:
        fits = "delivery_stage" in record or "agent_id" in record or "payload" in record
        return Likeness(1.0) if fits else Likeness(0.3, 'no "delivery_stage", "agent_id"')
    if _is_said(record):
        return Likeness(1.0)
    near = "source" in record and "content" in record and "type" in record
    return Likeness(0.3, 'a message without "models_usage"') if near else Likeness(0.0)


def _is_said(record: Any) -> bool:
    """Whether it is a message of AgentChat."""
    named = text_at(record, "source") is not None and text_at(record, "type") is not None
    return named and "models_usage" in record


def first_id(head: Head) -> str | None:
    """The id of the message with which a run begins: the same in all its files."""
    lines = head.lines or Head(_bare(head.data)).lines
    records = head.document if isinstance(head.document, list) else lines
    for record in records:
        for said in _said_in(record):
            if text_at(said, "id"):
                return said["id"]
    return None


def read_records(files: Sequence[Path]) -> Records:
    """Read the files of one run.

    Raises `StrettoError` for a file of which nothing is whole.
    """
    found = Records([], None, {}, {}, {}, {})
    seen: set[str] = set()
    stop = None
    for file in sorted(files, key=lambda file: (not _is_log(file), file)):
        name = str(file)
        rows, warnings = _rows(file)
        found.records[name], found.warnings[name] = len(rows), warnings
        found.skipped[name], found.duplicates[name] = Counter(), 0
        for line, record in rows:
            stop = text_at(record, "stop_reason") or stop
            items = list(_items(record, Source(name, line), found.skipped[name]))
            for item in items:
                key = _key(item, "stop_reason" in record)
                if key is None or key not in seen:
                    found.items.append(item)
                else:
                    found.duplicates[name] += 1
                seen |= {key or "", json_text(item.record)}
    return found._replace(stop_reason=stop)


def _is_log(file: Path) -> bool:
    """Whether it is an event log, which knows more than a dump and is read before one."""
    head = read_head(file)
    lines = head.lines or Head(_bare(head.data)).lines
    return any(line.get("type") in LOGGED for line in lines[:1])


def _key(item: Item, repeats: bool) -> str | None:
    """By what a message is known; early versions gave none an id."""
    named = text_at(item.record, "id") if item.kind == "said" else None
    return named or (json_text(item.record) if repeats else None)


def _rows(file: Path) -> tuple[list[tuple[int, dict[str, Any]]], tuple[Notice, ...]]:
    """The records of a file with their lines; in a document, with their places."""
    data = _bare(read_bytes(file))
    start = data.lstrip()
    is_result = start.startswith(b"{") and '"messages"' in start[:200].decode(errors="replace")
    if not start.startswith(b"[") and not (is_result and b"\n{" not in start):
        lines = parse_lines(data, str(file))
        return [(line.number, line.value) for line in lines.records], lines.warnings
    value, warnings = parse_document(data, str(file))
    records = value if isinstance(value, list) else [value]
    whole = [(at, each) for at, each in enumerate(records, 1) if isinstance(each, dict)]
    return whole, warnings


def _bare(data: bytes) -> bytes:
    """Lines of Python's `logging` without what it puts before a record; others become empty."""
    if b"autogen_core.events" not in data[:SIZE] or data.lstrip()[:1] in (b"{", b"["):
        return data
    return _PREFIXED.sub(lambda line: line[1] or b"", data)


def _items(record: dict[str, Any], source: Source, skipped: Counter[str]) -> Iterator[Item]:
    kind = text_at(record, "type") or "result"
    if kind in ("LLMCall", "LLMStreamEnd"):
        yield Item("call", agent_name(record) or NAMELESS, record, source)
    elif kind == "ToolCall":
        yield Item("tool", agent_name(record) or NAMELESS, record, source)
    elif kind.endswith("Exception"):
        yield Item("error", agent_name(record), record, source)
    elif kind == "Message":
        yield from _message(record, source, skipped)
    else:
        said = list(_said_in(record))
        yield from (Item("said", text_at(each, "source"), each, source) for each in said)
        if not said and "stop_reason" not in record:
            skipped[kind] += 1


def _message(record: dict[str, Any], source: Source, skipped: Counter[str]) -> Iterator[Item]:
    said = list(_said_in(record))
    yield from (Item("said", text_at(each, "source"), each, source) for each in said)
    stage = (text_at(record, "delivery_stage") or "").rpartition(".")[2]
    if said:
        return
    payload = text_at(record, "payload")
    has_words = payload not in (None, "{}", "null", "Message could not be serialized")
    if stage == "SEND" and has_words:
        yield Item("sent", name_of(text_at(record, "sender")), record, source)
    else:
        skipped[f"Message/{stage or 'unknown'}"] += 1


def _said_in(record: Any) -> Iterator[dict[str, Any]]:
    """The messages of AgentChat that a record holds, at whatever place it keeps them."""
    if _is_said(record):
        yield record
        return
    payload = _decoded(text_at(record, "payload"))
    response = record_at(payload, "response")
    places = (
        list_at(record, "messages") if record_at(record).get("type") != "LLMCall" else [],
        list_at(payload, "messages"),
        [payload.get("message")],
        list_at(response, "inner_messages"),
        [response.get("chat_message")],
    )
    for place in places:
        yield from (record_at(each) for each in place if _is_said(each))


def _decoded(payload: str | None) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(payload) if payload else None
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}
    return value if isinstance(value, dict) else {}


def agent_name(record: dict[str, Any]) -> str | None:
    """The agent that a record of the event log belongs to."""
    return name_of(text_at(record, "agent_id") or text_at(record, "handling_agent"))


def name_of(agent: str | None) -> str | None:
    """The name in an id of the runtime, `type/key`; AgentChat adds the key to the type."""
    if agent is None:
        return None
    name, _, key = agent.partition("/")
    return name.removesuffix(f"_{key}") or agent


def usage_of(record: dict[str, Any]) -> tuple[int | None, int | None]:
    """Prompt and completion tokens."""
    usage = record_at(record, "models_usage") or record
    return count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
