"""Claude Code transcripts, as traces.

| stage | module | what it does |
|---|---|---|
| files | `groups`, `files` | which files belong together, and what stands in them |
| records | `records` | lines to typed records, nothing interpreted |
| threads | `threads`, `chains`, `members` | records to sessions and agents, each once |
| turns | `turns` | records to model calls, with tokens |
| calls, tree | `calls`, `workflows`, `tree` | calls with results; who spawned whom |
| events | `events`, `lanes`, `returns`, `letters`, `mail`, `tasks`, `fanout` | what happened |
| session | `weave`, `team`, `outcome`, `report` | all agents of a session together |

What the source does not say stays unknown: an interrupted spawn has no return, and an agent without
a transcript has no turns (`attrs.transcript` is false). The report counts both.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stretto.importers.claude_code.calls import SpawnInput, SpawnResult, input_of
from stretto.importers.claude_code.events import ENVELOPE, Lane
from stretto.importers.claude_code.files import Found, read_group, recognise
from stretto.importers.claude_code.groups import sessions
from stretto.importers.claude_code.members import join_teams
from stretto.importers.claude_code.outcome import ended, scores_of
from stretto.importers.claude_code.report import file_reports
from stretto.importers.claude_code.threads import Meta, Session
from stretto.importers.claude_code.threads import sessions as sort_records
from stretto.importers.claude_code.turns import Key
from stretto.importers.claude_code.weave import Woven, weave
from stretto.importers.claude_code.workflows import Member, Run, run_of, runs_of
from stretto.importers.kit.fields import known
from stretto.importers.kit.report import Imported
from stretto.trace import Agent, Trace

__all__ = ["import_files", "recognise", "sessions"]

DERIVED = {
    "decision.duration": "derived",
    "tool_call.duration": "derived",
    "tool_call.waited": "heuristic",
}
"""How values are known that the source does not state."""


def import_files(files: Sequence[Path]) -> Imported:
    """Read the sessions of one group of files, one trace each.

    A team is one trace, and a session that only repeats others is none.

    Raises `StrettoError` where none of them holds a whole record.
    """
    found = read_group(files)
    owners: dict[Key, tuple[str, str]] = {}
    sorted_sessions = join_teams(sort_records(found.transcripts))
    woven = [weave(each, owners, _runs(found, each)) for each in sorted_sessions]
    reports = file_reports([each.transcript for each in found.transcripts], woven)
    own = [each for each in woven if each.session.threads or not each.session.duplicates]
    return Imported(tuple(_trace(each) for each in own), (*reports, *found.reports))


def _runs(found: Found, session: Session) -> dict[str, Run]:
    direct = [t for t in session.threads if t.source == "file" and not t.meta.is_nested]
    files = {thread.key: thread.entries[0].file for thread in direct}
    runs = {agent: run for agent, file in files.items() if (run := run_of(file)) is not None}
    return runs_of(found.journals, found.snapshots, runs)


def _trace(woven: Woven) -> Trace:
    session = woven.session
    envelope = {name: _values(woven.lanes, name) for name in ENVELOPE}
    shared = _constant(envelope)
    attrs = known(
        format="claude-code",
        session_id=session.id,
        started=session.start.isoformat() if session.start is not None else None,
        continues=session.continues,
        result=ended(session),
        evidence=DERIVED,
        **shared,
    )
    return Trace(
        id=session.id,
        system=" ".join(["claude-code", ", ".join(envelope["version"])]).strip(),
        attrs=attrs,
        agents=tuple(_agent(lane, shared) for lane in woven.lanes),
        events=woven.events,
        edges=woven.edges,
        scores=scores_of(session),
        contents=woven.contents,
    )


def _values(lanes: Sequence[Lane], field: str) -> list[str]:
    return list(dict.fromkeys(value for lane in lanes for value in lane.envelope.get(field, ())))


def _constant(envelope: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Fields of the envelope that have one value only."""
    return {name: only[0] for name, only in envelope.items() if len(only) == 1}


def _agent(lane: Lane, shared: Mapping[str, str]) -> Agent:
    node = lane.node
    asked = input_of(node.call, SpawnInput) if node.call is not None else SpawnInput()
    came = node.call.came if node.call is not None else SpawnResult()
    meta = node.thread.meta if node.thread is not None else Meta()
    told = node.member or Member(node.key or "")
    stated = (came.resolved_model, meta.model, came.model, asked.model, told.model)
    own = {name: seen for name, seen in lane.envelope.items() if name not in shared}
    teams = (entry.record.team_name for entry in lane.entries if entry.record.team_name)
    attrs = known(
        transcript=node.thread is not None,
        source=node.thread.source if node.thread is not None else None,
        agent_id=node.key,
        prompt=lane.prompt,
        tool_use_id=node.call.block.id if node.call is not None else None,
        description=asked.description or meta.description,
        team_name=asked.team_name or next(teams, None),
        task_kind=meta.task_kind,
        worktree_path=meta.worktree_path,
        worktree_branch=meta.worktree_branch,
        **_constant(own),
    )
    return Agent(
        id=node.path,
        role=asked.subagent_type or meta.agent_type or came.agent_type or came.teammate_type,
        parent=node.parent,
        name=node.name,
        model=next((model for model in (lane.model, *stated) if model), None),
        attrs=attrs,
    )
