"""OpenCode sessions, between the stages: which calls ran which sub-agents, and how that ended.

A call waits for its sub-agent and has the result as its output, or it only launches it. A launch
says so (`metadata.background`, or `<task … state="running">` as its output); what came of it is a
text that the harness writes to the caller: `<task id=… state="completed"><task_result>…`.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

from msgspec import Struct

from stretto.importers.kit.fields import epoch, number_at, text_at, value_at
from stretto.importers.kit.loom import Source
from stretto.importers.opencode.records import Message, Session

_RESULT = re.compile(r"<task_(result|error)>\s*(.*?)\s*</task_\1>", re.DOTALL)
_NOTICE = re.compile(r'\s*<task id="([^"]*)" state="(completed|error)">')
_LAUNCHED = re.compile(r'\s*<task id="[^"]*" state="running">')
Part = dict[str, Any]


class Outcome(NamedTuple):
    """How a run ended."""

    time: datetime | None
    text: str
    source: Source
    """Where that is told: the message of the call, or that of the notice."""
    failed: bool = False


class Run(Struct):
    """One call of the `task` tool that ran a sub-agent."""

    caller: str
    child: str
    part: Part
    is_first: bool
    in_background: bool
    outcome: Outcome | None
    """Absent where it failed in the foreground, where it is not told, and where it goes on."""
    back: int | None = None
    """The event of its return."""
    call: int | None = None
    """The event of the call."""


class Tasks:
    """All runs of sub-agents in a tree of sessions."""

    def __init__(self, group: Sequence[Session]) -> None:
        """Look for `task` parts that name a session, and for notices of their ends."""
        self.runs: dict[str, list[Run]] = {}
        self._by_part: dict[int, Run] = {}
        self._by_notice: dict[int, Run] = {}
        for session in group:
            for message in session.messages:
                for part in message.parts:
                    self._take(session, message, part)
                    if message.role == "user" and is_made(part):
                        self._end(session, message, part)

    def _take(self, session: Session, message: Message, part: Part) -> None:
        child = session_in(part)
        if child is None or child == session.id:
            return
        runs = self.runs.setdefault(child, [])
        launched = _is_launch(part)
        outcome = None if launched else _outcome(part, Source(session.file, message.number))
        run = Run(session.id, child, part, not runs, launched, outcome)
        runs.append(run)
        self._by_part[id(part)] = run

    def _end(self, session: Session, message: Message, part: Part) -> None:
        """A notice ends the oldest run of its session that has no end yet."""
        text = text_at(part, "text") or ""
        notice = _NOTICE.match(text)
        runs = self.runs.get(notice[1], []) if notice is not None else []
        launched = (run for run in runs if run.in_background and run.caller == session.id)
        run = next((run for run in launched if run.outcome is None), None)
        if notice is None or run is None:
            return
        time = time_of(message.info, "time", "created")
        source = Source(session.file, message.number)
        run.outcome = Outcome(time, _inside(text), source, notice[2] == "error")
        self._by_notice[id(part)] = run

    def of(self, part: Part) -> Run | None:
        """The run that a part is the call of."""
        return self._by_part.get(id(part))

    def ended_by(self, part: Part) -> Run | None:
        """The run in the background that a part tells the end of."""
        return self._by_notice.get(id(part))

    def returned(self, child: str) -> list[Run]:
        """The runs of a session that brought a result, in the order of their ends."""
        runs = self.runs.get(child, [])
        done = [run for run in runs if run.outcome is not None and not run.outcome.failed]
        return sorted(done, key=_end_of)

    def first(self, child: str) -> Run | None:
        """The run that spawned a session."""
        runs = self.runs.get(child)
        return runs[0] if runs else None

    def caller(self, child: str) -> str | None:
        """The session that spawned another one."""
        run = self.first(child)
        return run.caller if run is not None else None


def session_in(part: Part) -> str | None:
    """The session that a `task` part ran."""
    if part.get("type") != "tool" or part.get("tool") != "task":
        return None
    found = text_at(part, "state", "metadata", "sessionId")
    return found or text_at(part, "state", "metadata", "sessionID")


def is_made(part: Part) -> bool:
    """Whether the harness wrote a part of a user's message."""
    return part.get("synthetic") is True or part.get("ignored") is True


def time_of(record: Any, *path: str | int) -> datetime | None:
    """A time in milliseconds since 1970."""
    stated = number_at(record, *path)
    return None if stated is None else epoch(stated / 1000)


def _is_launch(part: Part) -> bool:
    """Whether a call was answered before its sub-agent was done."""
    said = value_at(part, "state", "metadata", "background") is True
    return said or _LAUNCHED.match(text_at(part, "state", "output") or "") is not None


def _end_of(run: Run) -> float:
    end = run.outcome.time if run.outcome is not None else None
    return inf if end is None else end.timestamp()


def _outcome(part: Part, source: Source) -> Outcome | None:
    if text_at(part, "state", "status") != "completed":
        return None
    output = text_at(part, "state", "output") or ""
    return Outcome(time_of(part, "state", "time", "end"), _inside(output), source)


def _inside(text: str) -> str:
    found = _RESULT.search(text)
    return found[2] if found else text
