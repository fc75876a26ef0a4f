"""Codex rollouts, stage one: lines to threads, each with the records of its own only.

A file is one thread, and `session_meta` is its first record. A forked thread copies the records of
the thread that it was forked from, with new times and a `session_meta` of that thread; they are cut
off here. A file can hold several threads, one after the other, where a recorder joined them.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from stretto.files import read_bytes
from stretto.importers.kit.arrays import unrolled
from stretto.importers.kit.fields import count_at, number_at, record_at, text_at, time_at
from stretto.importers.kit.reading import Line, parse_lines
from stretto.importers.kit.report import Notice

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Entry(NamedTuple):
    """One record."""

    line: int
    time: datetime | None
    kind: str
    """`type` of the record."""
    what: str
    """`type` of its payload; empty where there is none."""
    payload: dict[str, Any]
    ordinal: int | None


class Thread(Struct):
    """The records of one agent."""

    file: str
    id: str
    meta: dict[str, Any]
    """Payload of its `session_meta`; empty where that is lost."""
    line: int
    """Where it begins."""
    entries: list[Entry] = []
    replayed: int = 0
    """Records of another thread that were cut off."""
    total: dict[str, Any] | None = None
    """The token counter as the replayed records left it."""
    replays: bool = False
    """Whether it opens with the `session_meta` of a thread that it comes from."""

    @property
    def parent(self) -> str | None:
        """Id of the thread that spawned it; a mere fork has none."""
        spawned = text_at(self.meta, "source", "subagent", "thread_spawn", "parent_thread_id")
        return spawned or text_at(self.meta, "parent_thread_id")

    @property
    def path(self) -> str | None:
        """Name in the tree, as in `/root/task` (multi-agent v2)."""
        spawned = text_at(self.meta, "source", "subagent", "thread_spawn", "agent_path")
        return spawned or text_at(self.meta, "agent_path")

    @property
    def is_child(self) -> bool:
        """Whether another agent, or the harness, started it: no person speaks there first."""
        return self.parent is not None or bool(record_at(self.meta, "source").get("subagent"))


class Rollout(NamedTuple):
    """What a file holds."""

    file: str
    records: int
    threads: tuple[Thread, ...]
    warnings: tuple[Notice, ...]
    metas: int
    """Records that only open a thread."""


def read_rollout(path: Path) -> Rollout:
    """Read the threads of a file of JSON lines, or of a JSON array of the same records.

    Raises `StrettoError` where no line is whole.
    """
    lines = parse_lines(unrolled(read_bytes(path)), str(path))
    threads: dict[str, Thread] = {}
    metas = 0
    current: Thread | None = None
    known: set[str] = set()
    for line in lines.records:
        meta = _meta(line)
        if meta is not None:
            metas += 1
            if current is None or meta["id"] not in known:
                is_first = current is not None or line.number == 1
                own = meta if is_first or _is_of(path, meta) else _named(path)
                current = _begin(threads, path, line.number, own)
                known = set(_links(meta))
            current.replays |= meta["id"] != current.id
            known.update(_links(meta))
            continue
        if current is None:
            current = _begin(threads, path, line.number, _named(path))
        current.entries.append(_entry(line))
    for thread in threads.values():
        _cut_replay(thread)
    found = tuple(threads.values())
    return Rollout(str(path), len(lines.records), found, lines.warnings, metas)


def run_keys(meta: dict[str, Any]) -> list[str]:
    """Ids by which the threads of one run are joined; a person's fork is a run of its own."""
    spawn = ("source", "subagent", "thread_spawn", "parent_thread_id")
    parents = [text_at(meta, *spawn), text_at(meta, "parent_thread_id")]
    is_fork = text_at(meta, "forked_from_id") is not None and not any(parents)
    session = None if is_fork else text_at(meta, "session_id")
    return list(filter(None, (text_at(meta, "id"), session, *parents)))


def _links(meta: dict[str, Any]) -> list[str]:
    """Ids of the thread and of those that its records may be copied from."""
    others = (text_at(meta, "forked_from_id"), text_at(meta, "session_id"))
    return [*run_keys(meta), *filter(None, others)]


def _meta(line: Line) -> dict[str, Any] | None:
    payload = record_at(line.value, "payload")
    is_meta = line.value.get("type") == "session_meta" and text_at(payload, "id") is not None
    return payload if is_meta else None


def _begin(threads: dict[str, Thread], path: Path, line: int, meta: dict[str, Any]) -> Thread:
    return threads.setdefault(meta["id"], Thread(str(path), meta["id"], meta, line, []))


def _named(path: Path) -> dict[str, Any]:
    """What is known of a thread whose first record is lost: a rollout is named after its thread."""
    found = _UUID.findall(path.stem)
    return {"id": found[-1] if found else path.stem}


def _is_of(path: Path, meta: dict[str, Any]) -> bool:
    """Whether a `session_meta` that is not the first record can be that of the file's thread."""
    found = _UUID.findall(path.stem)
    return not found or found[-1] == meta["id"]


def _entry(line: Line) -> Entry:
    value = line.value
    payload = record_at(value, "payload")
    return Entry(
        line.number,
        time_at(value, "timestamp"),
        text_at(value, "type") or "unknown",
        text_at(payload, "type") or "",
        payload,
        count_at(value, "ordinal"),
    )


def _cut_replay(thread: Thread) -> None:
    """Leave only what the thread did itself."""
    begin = _own_begin(thread)
    for entry in thread.entries[:begin]:
        if entry.what == "token_count":
            thread.total = record_at(entry.payload, "info", "total_token_usage") or thread.total
    thread.replayed = begin
    thread.entries = thread.entries[begin:]


def _own_begin(thread: Thread) -> int:
    """Where the replayed records end: as the record says, or where the first turn of its own is.

    It is 0 where nothing says that any of them is a copy.
    """
    first = count_at(thread.meta, "subagent_history_start_ordinal")
    if first is not None and any(entry.ordinal is not None for entry in thread.entries):
        return _first(thread.entries, lambda e: e.ordinal is not None and e.ordinal >= first)
    if not thread.replays and text_at(thread.meta, "forked_from_id") is None:
        return 0
    begin = _first(thread.entries, lambda e: e.what == "task_started" and _is_own(thread, e))
    return 0 if begin == len(thread.entries) and not thread.replays else begin


def _first(entries: Sequence[Entry], fits: Callable[[Entry], bool]) -> int:
    return next((place for place, entry in enumerate(entries) if fits(entry)), len(entries))


def _is_own(thread: Thread, started: Entry) -> bool:
    """Whether a turn began after its thread did: both ids are UUIDs of version 7, which hold it."""
    turn, born = _born(text_at(started.payload, "turn_id")), _born(thread.id)
    if turn is not None and born is not None:
        return turn >= born
    seconds, birth = number_at(started.payload, "started_at"), time_at(thread.meta, "timestamp")
    if seconds is not None and birth is not None:
        return seconds >= int(birth.timestamp())
    return text_at(started.payload, "turn_attribution", "parent_turn_id") is not None


def _born(name: str | None) -> int | None:
    """Milliseconds since 1970 in a UUID of version 7."""
    is_uuid = name is not None and _UUID.fullmatch(name) is not None and name[14] == "7"
    return int(name[:8] + name[9:13], 16) if name is not None and is_uuid else None
