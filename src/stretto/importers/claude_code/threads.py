"""Claude Code transcripts, sorted: which records belong to which session and to which agent.

| a sub-agent's records are | told by |
|---|---|
| in a file of its own | `agentId`, which all its records carry |
| in the parent's file, as news of a tool (`agent_progress`) | `data.agentId` |
| in the parent's file, between its records | `isSidechain`, one chain of `parentUuid` an agent |
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from stretto.importers.claude_code.records import (
    Entry,
    Message,
    Record,
    Transcript,
    text_of,
    with_zone,
)

Source = Literal["main", "file", "progress", "inline"]


class Meta(Struct, frozen=True, rename="camel"):
    """What a file beside a sub-agent's transcript (`agent-….meta.json`) says of it."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    model: str | None = None


class Filed(Struct, frozen=True):
    """A transcript, and where it belongs."""

    session: str
    owner: str | None
    """The sub-agent whose transcript it is; `None` for that of a session."""
    transcript: Transcript
    meta: Meta

    @property
    def start(self) -> datetime | None:
        """The oldest time in it."""
        times = [entry.record.timestamp for entry in self.transcript.entries]
        return min((time for time in times if time is not None), default=None)


class Thread(Struct, frozen=True):
    """The records of one agent in order of the file, and what names it."""

    key: str
    """The agent's id in the source; empty for the session itself."""
    source: Source
    entries: tuple[Entry, ...]
    name: str | None = None
    """What the team calls it."""
    meta: Meta = Meta()

    @property
    def call(self) -> str | None:
        """Id of the tool call that spawned it, where the source says so."""
        return self.meta.tool_use_id or self.entries[0].call

    @property
    def prompt(self) -> str:
        """What it was asked first."""
        return next((said(e.record) for e in self.entries if e.record.type == "user"), "")


class Session(Struct, frozen=True):
    """What belongs to one run of the harness."""

    id: str
    threads: tuple[Thread, ...]
    """The main thread first, if there is one."""
    start: datetime | None
    continues: str | None
    """The session whose records this one repeats."""
    dropped: Mapping[tuple[str, str], int]
    """By file and type: news of agents that have a transcript of their own."""
    duplicates: Mapping[str, int]
    """By file: records that were there before."""


def said(record: Record) -> str:
    """The readable part of a record's message."""
    message = record.message
    return text_of(message.content) if isinstance(message, Message) else message or ""


def kind_of(record: Record) -> str:
    """The type of a record, with its subtype where it has one."""
    attachment, data = record.attachment, record.data
    below = record.subtype or record.operation or (attachment and attachment.type)
    below = below or (data and data.type)
    return f"{record.type}/{below}" if below else f"{record.type}"


def owner_of(transcript: Transcript) -> str | None:
    """The sub-agent whose transcript this file is; `None` where it is that of a session."""
    turns = [e.record for e in transcript.entries if e.record.type in ("user", "assistant")]
    if not turns or not all(record.is_sidechain or record.agent_id for record in turns):
        return None
    name = Path(transcript.file).stem
    named = name.removeprefix("agent-") if name.startswith("agent-") else None
    return next((record.agent_id for record in turns if record.agent_id), named) or None


def session_of(transcript: Transcript) -> str:
    """Id of the session to which a file belongs; empty where its records name none.

    A resumed session can start with records of another, so the name of the file counts most.
    """
    ids = Counter(e.record.session_id for e in transcript.entries if e.record.session_id)
    stem = Path(transcript.file).stem
    if not ids:
        return ""
    return stem if stem in ids else ids.most_common(1)[0][0]


def sessions(files: Iterable[Filed]) -> list[Session]:
    """Group files by session, in order of their start; a record that comes again is left out."""
    groups: dict[str, list[tuple[datetime | None, Filed]]] = {}
    for file in files:
        groups.setdefault(file.session, []).append((file.start, file))
    for group in groups.values():  # the session before its sub-agents, the oldest file first
        group.sort(key=lambda each: (each[1].owner is not None, _order(each[0])))
    seen: dict[str, str] = {}
    found = [_session(name, group, seen) for name, group in _by_start(groups)]
    return found


def _by_start(
    groups: Mapping[str, list[tuple[datetime | None, Filed]]],
) -> list[tuple[str, list[tuple[datetime | None, Filed]]]]:
    return sorted(groups.items(), key=lambda item: min(_order(start) for start, _ in item[1]))


def _order(start: datetime | None) -> tuple[bool, float]:
    return (start is None, 0.0 if start is None else start.timestamp())


def _session(
    name: str, group: list[tuple[datetime | None, Filed]], seen: dict[str, str]
) -> Session:
    sorting = _Sorting(name, seen)
    for _, file in group:
        for entry in file.transcript.entries:
            if sorting.is_new(entry):
                sorting.put(entry, file.owner)
    threads = sorting.threads({file.owner: file.meta for _, file in group})
    start = min((start for start, _ in group if start is not None), default=None)
    return Session(
        name, tuple(threads), start, sorting.continues, sorting.dropped, sorting.duplicates
    )


class _Sorting:
    """Puts the records of one session to the agents."""

    def __init__(self, name: str, seen: dict[str, str]) -> None:
        self.name = name
        self.seen = seen
        self.continues: str | None = None
        self.entries: dict[tuple[Source, str], list[Entry]] = {}
        self.chains: dict[str, str] = {}
        self.news: set[tuple[str, str]] = set()
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.duplicates: Counter[str] = Counter()

    def is_new(self, entry: Entry) -> bool:
        uuid = entry.record.uuid
        if uuid is None:
            return True
        first = self.seen.get(uuid)
        if first is None:
            self.seen[uuid] = self.name
            return True
        if first != self.name:
            self.continues = first
        self.duplicates[entry.file] += 1
        return False

    def put(self, entry: Entry, owner: str | None) -> None:
        """Find the agent of a record."""
        record = entry.record
        news = record.data.message if record.data is not None else None
        if isinstance(news, Record):
            self._put_news(entry, news, record.data and record.data.agent_id)
        elif owner or record.agent_id:
            self._add("file", owner or record.agent_id or "", entry)
        elif record.is_sidechain:
            self._add("inline", self._chain(record), entry)
        else:
            self._add("main", "", entry)

    def _put_news(self, entry: Entry, news: Record, agent: str | None) -> None:
        key = agent or entry.record.parent_tool_use_id or "?progress"
        if news.uuid is None or (key, news.uuid) not in self.news:
            self.news.add((key, news.uuid or ""))
            self._add("progress", key, _unwrap(entry, news))
        else:
            self.duplicates[entry.file] += 1

    def threads(self, metas: Mapping[str | None, Meta]) -> list[Thread]:
        """All threads; news of an agent that has a transcript of its own are left out."""
        found: list[Thread] = []
        for (source, key), entries in self.entries.items():
            if source == "progress" and ("file", key) in self.entries:
                self.dropped.update((e.file, "progress/agent_progress") for e in entries)
            else:
                meta = metas.get(key, Meta())
                names = (e.record.agent_name for e in entries if e.record.agent_name)
                name = meta.name or next(names, None)
                found.append(Thread(key, source, tuple(entries), name, meta))
        return sorted(found, key=lambda thread: thread.source != "main")

    def _add(self, source: Source, key: str, entry: Entry) -> None:
        self.entries.setdefault((source, key), []).append(entry)

    def _chain(self, record: Record) -> str:
        """First record of the chain of parents; one that hangs nowhere starts a new chain."""
        own, parent = record.uuid, record.parent_uuid
        if own is None and parent is None:  # no ids at all: the agent that spoke last
            return next(reversed(self.chains.values()), "?inline")
        name = own or parent or "?inline"
        root = self.chains.get(parent or "", name)
        self.chains[name] = root
        return root


def _unwrap(entry: Entry, news: Record) -> Entry:
    """A sub-agent's own record, out of the parent's record that brings it."""
    inner = with_zone(news)
    if inner.timestamp is None:
        inner = structs.replace(inner, timestamp=entry.record.timestamp)
    if inner.version is None:
        outer = entry.record
        inner = structs.replace(
            inner, version=outer.version, cwd=outer.cwd, git_branch=outer.git_branch
        )
    return Entry(entry.file, entry.line, inner, entry.record.parent_tool_use_id)
