"""Gemini CLI chats: one file a session, sub-agents in `chats/<session of the parent>/`.

A tool call that ran a sub-agent says its session in `agentId`; where it does not, the words that
the sub-agent was asked are looked for in the arguments of the calls (heuristic).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from stretto.errors import StrettoError
from stretto.importers.gemini_cli.lane import Lane, Runs
from stretto.importers.gemini_cli.records import Chat, is_header, read_chat
from stretto.importers.kit.fields import known, list_at, text_at, time_at, value_at
from stretto.importers.kit.grouping import connected, counts_of
from stretto.importers.kit.heads import Head, read_head
from stretto.importers.kit.loom import Loom
from stretto.importers.kit.report import FileReport, Imported, Likeness
from stretto.importers.kit.strand import paths, trace_of
from stretto.trace import Agent, Trace

__all__ = ["import_files", "recognise", "sessions"]

DERIVED = {"decision.duration": "derived", "tool_call.start": "derived"}
"""How values are known that the source does not state."""


def recognise(head: Head) -> Likeness:
    """Look for the header of a chat, or for records that patch one."""
    document = head.document
    if is_header(document) and (isinstance(document.get("messages"), list) or head.lines):
        return Likeness(1.0)
    if is_header(document):
        return Likeness(0.4, 'no "messages"')
    fits = sum(map(_is_record, head.lines))
    if fits:
        share = 0.8 * fits / len(head.lines)
        return Likeness(share, "no header with a session and a start")
    if text_at(document, "sessionId") is not None and "messages" in document:
        return Likeness(0.3, 'neither "startTime" nor "projectHash"')
    near = any(text_at(each, "type") == "gemini" for each in head.nested)
    return Likeness(0.3, "no header with a session and a start") if near else Likeness(0.0)


def _is_record(line: object) -> bool:
    """Whether a line is a patch or a message; only `gemini` is nobody else's word."""
    is_answer = text_at(line, "type") == "gemini" and text_at(line, "id") is not None
    return is_answer or value_at(line, "$set") is not None


def sessions(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Sessions with those of their sub-agents, which are looked for where they are kept."""
    named = {file.resolve(): file for file in files}
    others = [file for file in _companions(files) if file.resolve() not in named]
    groups = connected([*sorted(files), *others], _keys)
    return [sorted(group) for group in groups if any(f.resolve() in named for f in group)]


def _companions(files: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for file in files:
        header = _header(file)
        name = text_at(header, "sessionId")
        if name is not None and "/" not in name and ".." not in name:
            found |= dict.fromkeys(_matching(file.parent / name, "*.json*"))
        if value_at(header, "kind") == "subagent":
            short = file.parent.name[:8]
            found |= dict.fromkeys(_matching(file.parent, "*.json*"))
            found |= dict.fromkeys(_matching(file.parent.parent, f"*{short}*.json*"))
    return [file for file in found if file.is_file()]


def _matching(folder: Path, pattern: str) -> list[Path]:
    """None of a folder that cannot be: the name of a session may be too long for one."""
    try:
        return sorted(folder.glob(pattern))
    except (OSError, ValueError):
        return []


def _header(file: Path) -> object:
    try:
        return read_head(file).document
    except StrettoError:
        return None


def _keys(file: Path) -> Iterator[str]:
    header = _header(file)
    yield text_at(header, "sessionId") or str(file)
    if value_at(header, "kind") == "subagent":
        yield file.parent.name


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a session of a person, with its sub-agents.

    Raises `StrettoError` for a file of which nothing is whole.
    """
    chats = [read_chat(file) for file in files]
    parts = [_weave(group) for group in connected(chats, _chat_keys)]
    reports = {report.file: report for _, told in parts for report in told}
    return Imported(tuple(trace for trace, _ in parts), tuple(reports[c.file] for c in chats))


def _chat_keys(chat: Chat) -> Iterator[str]:
    yield chat.id
    if chat.parent is not None:
        yield chat.parent


def _weave(group: Sequence[Chat]) -> tuple[Trace, list[FileReport]]:
    found: dict[str, Chat] = {}
    for chat in sorted(group, key=lambda chat: len(chat.messages)):
        found[chat.id] = chat  # of several files of one session, the longest
    times = [time_at(m.value, "timestamp") for chat in found.values() for m in chat.messages]
    loom = Loom(min((time for time in times if time is not None), default=None))
    runs = Runs(list(found.values()))
    parents = _parents(found, runs)
    ids = paths(parents)
    ordered = sorted(ids, key=lambda key: (-ids[key].count("/"), ids[key]))
    lanes = {key: Lane(loom, key, ids, runs) for key in ordered}
    for key, lane in lanes.items():  # children first: their parents hear what they return
        lane.weave(found.get(key))
    runs.join(loom, lanes)
    main = next((found[key] for key in ids if ids[key] == "0" and key in found), group[0])
    trace = trace_of(
        loom,
        [_agent(lanes[key], found.get(key), runs) for key in ids],
        id=main.id,
        system="gemini-cli",
        attrs=known(
            format="gemini-cli",
            started=loom.origin.isoformat() if loom.origin is not None else None,
            project_hash=text_at(main.header, "projectHash"),
            directories=list_at(main.header, "directories") or None,
            summary=text_at(main.header, "summary"),
            error=lanes[main.id].error,
            evidence=DERIVED,
        ),
    )
    return trace, _reports(group, found, loom, lanes)


def _parents(found: dict[str, Chat], runs: Runs) -> dict[str, str | None]:
    """Every session to its parent, in order of birth."""
    ordered = sorted(found.values(), key=lambda c: (text_at(c.header, "startTime") or "", c.id))
    stated: dict[str, str | None] = {}
    for chat in ordered:
        run = runs.first(chat.id)
        stated[chat.id] = run.caller if run is not None else chat.parent
        if chat.parent is not None and chat.parent not in found:
            stated.setdefault(chat.parent, None)
    for child in runs.of_child:
        run = runs.first(child)
        stated.setdefault(child, run.caller if run is not None else None)
    return stated


def _agent(lane: Lane, chat: Chat | None, runs: Runs) -> Agent:
    run = runs.first(lane.key)
    call = run.call if run is not None else {}
    role = text_at(call, "args", "agent_name") or text_at(call, "resultDisplay", "agentName")
    return Agent(
        id=lane.strand.agent,
        role=role or text_at(call, "name"),
        parent=lane.strand.agent.rpartition("/")[0] or None,
        name=text_at(call, "displayName"),
        model=next(iter(lane.models), None),
        attrs=known(
            transcript=chat is not None,
            agent_id=lane.key,
            prompt=lane.prompt,
            models=list(lane.models) if len(lane.models) > 1 else None,
        ),
    )


def _reports(
    group: Sequence[Chat], found: dict[str, Chat], loom: Loom, lanes: dict[str, Lane]
) -> list[FileReport]:
    counts = counts_of(loom)
    reports: list[FileReport] = []
    for chat in group:
        is_copy = found[chat.id] is not chat
        skipped = Counter[str]() if is_copy else Counter(lanes[chat.id].skipped)
        if chat.patched and not is_copy:
            skipped["patch"] = chat.patched
        fields = counts.get(chat.file, {})
        doubled = chat.records if is_copy else 0
        reports.append(
            FileReport(
                file=chat.file,
                records=chat.records,
                skipped=dict(skipped),
                duplicates=doubled,
                warnings=chat.warnings,
                **fields,
            )
        )
    return reports
