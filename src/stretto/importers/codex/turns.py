"""Codex rollouts: model calls, put together from the items that each one sampled."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from stretto.importers.codex.records import Entry, Thread
from stretto.importers.codex.usage import Counter, Usage
from stretto.importers.kit.fields import list_at, record_at, text_at

INPUTS = ("turn_context", "world_state", "compacted", "inter_agent_communication")
"""Records that come before a model call, apart from messages and results."""


class Turn(Struct):
    """One model call."""

    entries: list[Entry]
    """What it sampled; empty where only its token count is recorded."""
    start: datetime | None
    """Time of the newest record that it answers."""
    end: datetime | None
    usage: Usage | None = None
    line: int = 0


Step = Turn | Entry


def is_sampled(entry: Entry) -> bool:
    """Whether the model made the item: a thought, a message or a call."""
    if entry.kind != "response_item":
        return False
    if entry.what == "message":
        return entry.payload.get("role") == "assistant" and letter_in(entry) is None
    return entry.what == "reasoning" or entry.what.endswith("_call")


def letter_in(entry: Entry) -> dict[str, Any] | None:
    """A message between agents that stands in JSON where an answer would (v2 before 0.148)."""
    content = list_at(entry.payload, "content")
    text = text_at(content, 0, "text") if len(content) == 1 else None
    if text is None or not text.startswith("{") or "trigger_turn" not in text:
        return None
    letter = decoded(text)
    is_letter = text_at(letter, "author") is not None and text_at(letter, "recipient") is not None
    return letter if is_letter else None


def is_input(entry: Entry) -> bool:
    """Whether a model call may have waited for the record."""
    if entry.kind == "event_msg":
        return entry.what == "task_started" or said_in(entry) is not None
    return entry.kind in INPUTS or (entry.kind == "response_item" and not is_sampled(entry))


def steps_of(thread: Thread) -> list[Step]:
    """Turns, and the records between them, in order."""
    return _Grouping(thread).steps


class _Grouping:
    """Collects turns while it goes over a thread once."""

    def __init__(self, thread: Thread) -> None:
        self.steps: list[Step] = []
        self._open: Turn | None = None
        self._latest: Turn | None = None
        self._asked: datetime | None = None
        self._counter = Counter(thread.total)
        self._has_records = any(e.kind == "token_usage_record" for e in thread.entries)
        for entry in thread.entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        if is_sampled(entry):
            self._sampled(entry)
        elif entry.kind == "token_usage_record":
            self._counted(entry, record_at(entry.payload, "usage"))
        elif entry.what == "token_count" and entry.kind == "event_msg":
            is_awaited = self._latest is not None and self._latest.usage is None
            usage = self._counter.usage(entry, is_awaited)
            if usage and not self._has_records:
                self._counted(entry, usage)
        else:
            if is_input(entry):
                self._open = None
                self._asked = _later(self._asked, entry.time)
            self.steps.append(entry)

    def _sampled(self, entry: Entry) -> None:
        if self._open is None:
            asked = self._asked or entry.time
            early = asked is not None and entry.time is not None and entry.time < asked
            start = entry.time if early else asked
            self._begin(Turn([], start, entry.time, line=entry.line))
        turn = self._open
        assert turn is not None
        turn.entries.append(entry)
        turn.end = _later(turn.end, entry.time)
        self._asked = _later(self._asked, entry.time)

    def _counted(self, entry: Entry, usage: Usage) -> None:
        """A call's tokens: of the latest turn, or of one that left nothing else."""
        if self._latest is None or self._latest.usage is not None:
            self._begin(Turn([], self._asked or entry.time, entry.time, line=entry.line))
        turn = self._latest
        assert turn is not None
        turn.usage = usage
        if entry.kind == "token_usage_record":
            turn.end = _later(turn.end, entry.time)
            self._asked = _later(self._asked, entry.time)
        self._open = None

    def _begin(self, turn: Turn) -> None:
        self._open = self._latest = turn
        self.steps.append(turn)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return one if other is None or (one is not None and one > other) else other


def text_of(turn: Turn) -> str:
    """What the model said."""
    said = (entry for entry in turn.entries if entry.what == "message")
    return "\n\n".join(text for entry in said for text in texts_in(entry))


def thought_of(turn: Turn) -> str:
    """What the source shows of its thoughts: mostly a summary, or nothing."""
    thoughts = [entry for entry in turn.entries if entry.what == "reasoning"]
    parts = (p for e in thoughts for n in ("summary", "content") for p in list_at(e.payload, n))
    return "\n\n".join(filter(None, (text_at(part, "text") for part in parts)))


def said_in(entry: Entry) -> str | None:
    """What an event says that somebody put into a thread: a person, or the parent."""
    if entry.kind != "event_msg":
        return None
    if entry.what == "user_message":
        return text_at(entry.payload, "message")
    item = record_at(entry.payload, "item")
    if entry.what != "item_completed" or text_at(item, "type") != "UserMessage":
        return None
    return "\n\n".join(texts_in(entry._replace(payload=item))) or None


def decoded(text: str) -> Any:
    """What a text says in JSON; `None` where it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def texts_in(entry: Entry) -> Iterator[str]:
    """The texts of a message."""
    content = entry.payload.get("content")
    parts: Sequence[object] = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        text = text_at(part, "text")
        if text is not None:
            yield text
