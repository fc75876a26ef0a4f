"""OpenCode sessions: exports, one a session, and streams of parts.

A sub-agent is a session of its own (`info.parentID`); the `task` tool of its parent names it in
`state.metadata.sessionId`. Where its export is not among the files, it is known by that call only.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from stretto.importers.kit.fields import known, number_at, record_at, text_at
from stretto.importers.kit.grouping import connected, counts_of
from stretto.importers.kit.heads import Head, read_head
from stretto.importers.kit.loom import Loom
from stretto.importers.kit.report import FileReport, Imported, Likeness
from stretto.importers.kit.strand import paths, trace_of
from stretto.importers.opencode.lane import Lane
from stretto.importers.opencode.records import (
    PARTS,
    Session,
    is_export,
    part_of,
    read_session,
)
from stretto.importers.opencode.tasks import Tasks, time_of
from stretto.trace import Agent, Trace

__all__ = ["import_files", "recognise", "sessions"]

DERIVED = {"decision.duration": "derived"}
"""How values are known that the source does not state."""


def recognise(head: Head) -> Likeness:
    """Look for an export with `info` and `messages`, or for lines that hold parts."""
    if is_export(head.document):
        return Likeness(1.0)
    if text_at(head.document, "info", "id") is not None:
        lacks = "info.time" if "messages" in head.document else "messages"
        return Likeness(0.4, f'no "{lacks}"')
    if any("info" in each and "parts" in each for each in head.nested):
        return Likeness(0.4, 'messages without the "info" of their session')
    parts = [part_of(line) for line in head.lines]
    fits = sum(part is not None and part.get("type") in PARTS for part in parts)
    if fits:
        why = f"{fits} of its first {len(parts)} lines hold a part"
        return Likeness(fits / len(parts), why)
    near = any(text_at(line, "part", "type") in PARTS for line in head.lines)
    return Likeness(0.3, 'parts without "sessionID"') if near else Likeness(0.0)


def sessions(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Exports of one tree together."""
    return [sorted(group) for group in connected(sorted(files), _keys)]


def _keys(file: Path) -> Iterator[str]:
    info = record_at(read_head(file).document, "info")
    yield text_at(info, "id") or str(file)
    parent = text_at(info, "parentID")
    if parent is not None:
        yield parent


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a tree of sessions.

    Raises `StrettoError` for a file of which nothing is whole.
    """
    read = [read_session(file) for file in files]
    groups = connected(read, _session_keys)
    traces: list[Trace] = []
    reports: dict[str, FileReport] = {}
    for group in groups:
        trace, told = _weave(group)
        traces.append(trace)
        reports |= told
    return Imported(tuple(traces), tuple(reports[session.file] for session in read))


def _session_keys(session: Session) -> Iterator[str]:
    yield session.id
    parent = text_at(session.info, "parentID")
    if parent is not None:
        yield parent


def _weave(group: Sequence[Session]) -> tuple[Trace, dict[str, FileReport]]:
    longest = sorted(group, key=lambda session: len(session.messages))
    found = {session.id: session for session in longest}
    times = [time for session in group for time in _times(session)]
    loom = Loom(min(times, default=None))
    tasks = Tasks(group)
    parents = _parents(found, tasks)
    ids = paths(parents)
    lanes = {key: Lane(loom, key, ids, tasks) for key in sorted(ids, key=lambda k: _depth(ids[k]))}
    for key in reversed(lanes):  # children first: their parents hear what they return
        lanes[key].weave(found.get(key), lanes)
    _join(loom, tasks, lanes)
    main = next((found[key] for key in lanes if key in found), group[0])
    trace = trace_of(
        loom,
        [_agent(found.get(key), lanes[key], ids, tasks) for key in ids],
        id=main.id,
        system=" ".join(filter(None, ["opencode", text_at(main.info, "version")])),
        attrs=known(
            format="opencode",
            started=loom.origin.isoformat() if loom.origin is not None else None,
            title=text_at(main.info, "title"),
            directory=text_at(main.info, "directory"),
            share=text_at(main.info, "share", "url"),
            evidence=DERIVED,
        ),
    )
    return trace, _reports(group, found, loom, lanes)


def _join(loom: Loom, tasks: Tasks, lanes: dict[str, Lane]) -> None:
    """Link every call to what it set going."""
    firsts = {agent: numbers[0] for agent, numbers in loom.of_agents().items()}
    for child, runs in tasks.runs.items():
        for run in runs:
            if run.is_first:
                loom.link(run.call, firsts.get(lanes[child].strand.agent), "spawn")
            else:
                loom.link(run.call, lanes[child].turn_after(run), "message", "derived")


def _parents(found: dict[str, Session], tasks: Tasks) -> dict[str, str | None]:
    """Every session to its parent: as it says itself, or as the task that ran it says."""
    ordered = sorted(found.values(), key=lambda session: (_born(session), session.id))
    stated: dict[str, str | None] = {}
    for session in ordered:
        parent = text_at(session.info, "parentID")
        stated[session.id] = parent or tasks.caller(session.id)
        if parent is not None and parent not in found:
            stated.setdefault(parent, None)
    for child in tasks.runs:
        stated.setdefault(child, tasks.caller(child))
    return stated


def _born(session: Session) -> float:
    return number_at(session.info, "time", "created") or 0.0


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _times(session: Session) -> Iterator[datetime]:
    for message in session.messages:
        for record in (message.info, *(part.get("state") for part in message.parts)):
            for name in ("created", "start"):
                time = time_of(record, "time", name)
                if time is not None:
                    yield time


def _agent(session: Session | None, lane: Lane, ids: dict[str, str], tasks: Tasks) -> Agent:
    run = tasks.first(lane.key)
    asked = record_at(run.part, "state", "input") if run is not None else {}
    model = text_at(run.part, "state", "metadata", "model", "modelID") if run is not None else None
    parent = ids[lane.key].rpartition("/")[0] or None
    return Agent(
        id=ids[lane.key],
        role=lane.role or text_at(asked, "subagent_type"),
        parent=parent,
        name=text_at(asked, "description"),
        model=next(iter(lane.models), model),
        attrs=known(
            transcript=session is not None,
            agent_id=lane.key,
            title=text_at(session.info, "title") if session is not None else None,
            prompt=lane.prompt,
            models=list(lane.models) if len(lane.models) > 1 else None,
        ),
    )


def _reports(
    group: Sequence[Session], found: dict[str, Session], loom: Loom, lanes: dict[str, Lane]
) -> dict[str, FileReport]:
    counts = counts_of(loom)
    reports: dict[str, FileReport] = {}
    for session in group:
        is_copy = found[session.id] is not session
        skipped = Counter[str]() if is_copy else lanes[session.id].skipped + _odd(session)
        reports[session.file] = FileReport(
            file=session.file,
            records=session.records,
            skipped=dict(skipped),
            duplicates=session.records if is_copy else 0,
            warnings=session.warnings,
            **counts.get(session.file, {}),
        )
    return reports


def _odd(session: Session) -> Counter[str]:
    """Messages that are neither of the user nor of the assistant."""
    roles = (message.role for message in session.messages)
    return Counter(f"message/{role or '?'}" for role in roles if role not in ("user", "assistant"))
