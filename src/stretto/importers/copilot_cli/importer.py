"""GitHub Copilot CLI sessions (`session-state/<id>/events.jsonl`): one file is the whole team.

Events of sub-agents stand inline and carry `agentId`; older versions say `parentToolCallId` only.
`parentId` chains the log and is no cause, so it makes no edge.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stretto.importers.copilot_cli.facts import Facts
from stretto.importers.kit.fields import (
    count_at,
    flag_at,
    known,
    list_at,
    number_at,
    record_at,
    text_at,
    time_at,
    value_at,
)
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.reading import Line, Lines, read_lines
from stretto.importers.kit.report import FileReport, Imported, Likeness, report_of
from stretto.importers.kit.strand import Strand, paths, trace_of
from stretto.importers.kit.texts import json_text, tokens_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Agent, Decision, Score, Tokens, Trace

__all__ = ["import_files", "recognise", "sessions"]

DERIVED = {"decision.duration": "derived", "tool_call.duration": "derived"}
"""How values are known that the source does not state."""

KINDS = ("session", "user", "assistant", "tool", "subagent", "system", "hook", "permission")
"""First words of event types."""

MAIN = ""
"""Key of the agent that the person talks to."""


def recognise(head: Head) -> Likeness:
    """Look for the envelope of events, and for who produced them."""
    lines = head.lines
    fits = sum(map(_is_event, lines))
    if any(map(_is_event, head.nested)):
        return Likeness(0.4, "its events stand in one document, and one event a line is read")
    if not fits:
        near = any(map(_is_like_event, lines))
        return Likeness(0.3, 'events without "id" and "parentId"') if near else Likeness(0.0)
    begins = any(line.get("type") == "session.start" for line in lines)
    share = fits / len(lines) * (1.0 if begins else 0.8)
    return Likeness(share, f"{fits} of its first {len(lines)} lines are events of Copilot")


def _is_event(line: dict[str, Any]) -> bool:
    framed = isinstance(line.get("data"), dict) and "parentId" in line and "id" in line
    return framed and (line.get("type") == "abort" or _first_word(line) in KINDS)


def _is_like_event(line: dict[str, Any]) -> bool:
    return isinstance(line.get("data"), dict) and _first_word(line) in KINDS


def _first_word(line: dict[str, Any]) -> str:
    return (text_at(line, "type") or "").split(".")[0]


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a file.

    Raises `StrettoError` for a file that holds no whole record.
    """
    parts = [_import(file) for file in files]
    return Imported(tuple(trace for trace, _ in parts), tuple(report for _, report in parts))


def _import(file: Path) -> tuple[Trace, FileReport]:
    lines = read_lines(file)
    story = _Story(file, lines)
    for line in lines.records:
        story.take(line)
    trace = story.trace()
    return trace, report_of(
        str(file),
        [trace],
        records=len(lines.records),
        skipped=dict(story.skipped),
        duplicates=story.doubled,
        warnings=lines.warnings,
    )


class _Story:
    """One session while its events are read in order."""

    def __init__(self, file: Path, lines: Lines) -> None:
        self.file = file
        self.facts = Facts(lines.records)
        times = [time_at(line.value, "timestamp") for line in lines.records]
        self.loom = Loom(min((time for time in times if time is not None), default=None))
        parents = {MAIN: None, **{key: c.parent for key, c in self.facts.children.items()}}
        self.ids = paths(parents)
        self.strands = {key: Strand(self.loom, path) for key, path in self.ids.items()}
        self.models: dict[str, str] = {}
        """What each agent is set to now."""
        self._began_with: dict[str, str] = {}
        """The model of each agent's first turn, which is the agent's."""
        self.header: dict[str, Any] = {}
        self.scores: list[Score] = []
        self.skipped: Counter[str] = Counter()
        self.doubled = 0
        self._asked: dict[str, datetime | None] = {}
        self._made: dict[str, int] = {}
        self._spawns: dict[str, int] = {}
        self._backs: dict[str, int] = {}
        self._told_at: dict[str, int] = {}
        """The line at which each sub-agent returned last."""
        self._sent: dict[str, list[int]] = {}
        self._prompts: dict[str, str | None] = {}
        self._seen: set[str] = set()

    def take(self, line: Line) -> None:
        """Add what an event means."""
        kind = text_at(line.value, "type") or "unknown"
        handler = _HANDLERS.get(kind)
        if handler is None or not handler(self, line, record_at(line.value, "data")):
            self.skipped[kind] += 1

    def trace(self) -> Trace:
        """The session as a trace."""
        firsts = {agent: numbers[0] for agent, numbers in self.loom.of_agents().items()}
        for key, number in self._spawns.items():
            self.loom.link(number, firsts.get(self.ids[key]), "spawn")
        start = self.header
        version = text_at(start, "copilotVersion")
        origin = self.loom.origin
        return trace_of(
            self.loom,
            [self._agent(key) for key in self.ids],
            id=text_at(start, "sessionId") or self.file.stem,
            system=f"copilot-cli {version}" if version else "copilot-cli",
            scores=tuple(self.scores),
            attrs=known(
                format="copilot-cli",
                started=origin.isoformat() if origin is not None else None,
                context=record_at(start, "context") or None,
                shutdown=start.get("shutdown"),
                evidence=DERIVED,
            ),
        )

    def _agent(self, key: str) -> Agent:
        child = self.facts.children.get(key)
        model = self._began_with.get(key) or self.models.get(key)
        if child is None:
            return Agent(id=self.ids[key], model=model, attrs={"transcript": True})
        has_events = self.strands[key].latest is not None
        parent = self.ids[key].rpartition("/")[0] or None
        return Agent(
            id=self.ids[key],
            role=child.role,
            parent=parent,
            name=child.name,
            model=model or child.model,
            attrs=known(
                transcript=has_events,
                agent_id=key,
                spawn_call=child.call,
                description=child.description,
                prompt=self._prompts.get(key),
                error=child.error,
            ),
        )

    def _source(self, line: Line) -> Source:
        return Source(str(self.file), line.number)

    def _wait_for(self, key: str, line: Line) -> None:
        """The next turn of an agent cannot have begun before this."""
        self._asked[key] = time_at(line.value, "timestamp")

    def _start(self, line: Line, data: dict[str, Any]) -> bool:
        self.header = {**data, **self.header}
        model = text_at(data, "selectedModel")
        if model is not None:
            self.models[MAIN] = model
        return False

    def _model(self, line: Line, data: dict[str, Any]) -> bool:
        model = text_at(data, "newModel")
        if model is not None and model != "auto":
            self.models[self.facts.agent_of(line.value)] = model
        return False

    def _said(self, line: Line, data: dict[str, Any]) -> bool:
        key = self.facts.agent_of(line.value)
        self._wait_for(key, line)
        content = self.loom.store(text_at(data, "content"))
        if key != MAIN:
            return self._told(key, content)
        source = text_at(data, "source")
        if source not in (None, "user"):
            return False
        attrs = known(uuid=text_at(line.value, "id"), delivery=text_at(data, "delivery"))
        time = time_at(line.value, "timestamp")
        self.strands[key].told(time, self._source(line), content=content, attrs=attrs)
        return True

    def _told(self, key: str, content: str | None) -> bool:
        """What a sub-agent is told: its task first, then what is written to it."""
        if key not in self._prompts:
            self._prompts[key] = None if key in self._spawns else content
            return True
        sent = self._sent.get(key)
        if not sent:
            return False
        self.strands[key].hear(sent.pop(0), "message")
        return True

    def _turn_start(self, line: Line, data: dict[str, Any]) -> bool:
        self._wait_for(self.facts.agent_of(line.value), line)
        return True

    def _message(self, line: Line, data: dict[str, Any]) -> bool:
        name = text_at(data, "messageId")
        if name not in (None, "REDACTED") and name in self._seen:
            self.doubled += 1
            return True
        self._seen.add(name or "")
        key = self.facts.agent_of(line.value)
        time = time_at(line.value, "timestamp")
        start = self._asked.pop(key, None) or time
        is_late = start is not None and time is not None and start > time
        begin = time if is_late else start
        model = text_at(data, "model") or self.models.get(key)
        if model is not None:
            self._began_with.setdefault(key, model)
        self.strands[key].turn(
            begin,
            self._source(line),
            duration=_between(begin, time),
            content=self.loom.store(text_at(data, "content")),
            decision=Decision(type=self._decision(key, line, data)),
            tokens=self._tokens(data),
            attrs=known(
                message_id=name,
                turn_id=text_at(data, "turnId"),
                api_call_id=text_at(data, "apiCallId"),
                thinking=self.loom.store(text_at(data, "reasoningText")),
                model=model if model != self._began_with.get(key) else None,
            ),
        )
        self._asked[key] = time
        for request in list_at(data, "toolRequests"):
            self._never_started(key, line, request)
        return True

    def _decision(self, key: str, line: Line, data: dict[str, Any]) -> str:
        requests = list_at(data, "toolRequests")
        called = {text_at(request, "toolCallId") or "" for request in requests}
        if any(self.facts.spawned(call) is not None for call in called):
            return "spawn"
        if any(text_at(request, "name") == "write_agent" for request in requests):
            return "delegate"
        is_last = self.facts.last_message.get(key) == line.number
        return "stop" if is_last and not requests else "act"

    def _tokens(self, data: dict[str, Any]) -> Tokens | None:
        usage = self.facts.usage.get(text_at(data, "apiCallId") or "")
        if usage is None:
            return tokens_of(None, count_at(data, "outputTokens"))
        names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        prompt, output, read, write = (count_at(usage, name) for name in names)
        return tokens_of(prompt, output, read, write)

    def _never_started(self, key: str, line: Line, request: Any) -> None:
        """A call that was asked for and has no record of having run."""
        call = text_at(request, "toolCallId")
        if call is None or call in self.facts.started:
            return
        self._add_call(key, line, call, text_at(request, "name"), request, started=False)

    def _call(self, line: Line, data: dict[str, Any]) -> bool:
        call = text_at(data, "toolCallId")
        if call is None:
            return False
        key = self.facts.agent_of(line.value)
        self._add_call(key, line, call, text_at(data, "toolName"), data)
        return True

    def _add_call(
        self,
        key: str,
        line: Line,
        call: str,
        tool: str | None,
        data: Any,
        started: bool | None = None,
    ) -> None:
        arguments = value_at(data, "arguments")
        child = self.facts.spawned(call)
        other = child or self.facts.named(text_at(arguments, "agent_id"))
        kind = "tool_call"
        words = None
        if child is not None:
            kind, words = "spawn", text_at(arguments, "prompt") or ""
        elif tool == "write_agent" and other is not None:
            kind, words = "delegate", text_at(arguments, "message") or ""
        time = time_at(line.value, "timestamp")
        number = self.strands[key].act(
            kind,
            time,
            self._source(line),
            to=self.ids[other] if other is not None else None,
            tool=tool,
            duration=self._call_seconds(call, line, time) if kind == "tool_call" else None,
            content=self.loom.store(words if words is not None else json_text(arguments)),
            attrs=known(
                call_id=call,
                started=started,
                waiting=True if _waits(tool, arguments) else None,
                mode=text_at(arguments, "mode") if kind == "spawn" else None,
                description=text_at(arguments, "description") if kind == "spawn" else None,
            ),
        )
        self._made[call] = number
        if child is not None:
            self._spawns.setdefault(child, number)
        elif kind == "delegate" and other is not None:
            self._sent.setdefault(other, []).append(number)

    def _call_seconds(self, call: str, line: Line, start: datetime | None) -> float | None:
        done = self.facts.result(call, line.number)
        return _between(start, time_at(done.value, "timestamp") if done is not None else None)

    def _result(self, line: Line, data: dict[str, Any]) -> bool:
        call = text_at(data, "toolCallId") or ""
        key = self.facts.agent_of(line.value)
        self._wait_for(key, line)
        child = self.facts.spawned(call)
        success = flag_at(data, "success")
        if child is not None and success is not False:
            if child not in self._backs and not self.facts.children[child].ends:
                self._return(child, line, text_at(data, "result", "content"), {"via": "result"})
            if child in self._backs:
                self._hear(key, child, line)
                return True
        text = text_at(data, "result", "content") or text_at(data, "error", "message")
        number = self.strands[key].answer(
            self._made.get(call),
            time_at(line.value, "timestamp"),
            self._source(line),
            tool=self.facts.tools.get(call),
            content=self.loom.store(text),
            attrs=known(
                call_id=call or None,
                is_error=True if success is False else None,
                error_code=text_at(data, "error", "code"),
            ),
        )
        about = self.facts.named(self.facts.asked_about.get(call))
        if about is not None and about in self._backs and success is not False:
            self.loom.link(self._backs[about], number, "return")
        return True

    def _hear(self, key: str, child: str, line: Line) -> None:
        self.strands[key].hear(self._backs[child], "return", "recorded")
        seconds = self.loom.seconds(time_at(line.value, "timestamp"))
        self.loom.note(self._backs[child], **known(delivered=seconds))

    def _started(self, line: Line, data: dict[str, Any]) -> bool:
        """A sub-agent begins; where no call for it ran, this is its spawn."""
        key = self.facts.agent_of(line.value)
        child = self.facts.children.get(key)
        if child is None or key in self._spawns or child.parent is None:
            return True
        number = self.strands[child.parent].act(
            "spawn",
            time_at(line.value, "timestamp"),
            self._source(line),
            to=self.ids[key],
            attrs=known(call_id=child.call),
        )
        self._spawns[key] = number
        return True

    def _completed(self, line: Line, data: dict[str, Any]) -> bool:
        key = self.facts.agent_of(line.value)
        child = self.facts.children.get(key)
        if child is None:
            return False
        if not self._has_news(key, line):
            return True
        done = self.facts.result(child.call or "", line.number)  # only a call that waits has one
        text = text_at(done.value, "data", "result", "content") if done is not None else None
        names = ("totalTokens", "totalToolCalls", "durationMs")
        attrs = known(**{name: number_at(data, name) for name in names})
        self._return(key, line, text or self.facts.last_words(key, line.number), attrs)
        return True

    def _has_news(self, key: str, line: Line) -> bool:
        """Whether a sub-agent has said anything since it returned."""
        told = self._told_at.get(key)
        return told is None or self.facts.last_words(key, line.number, told) is not None

    def _return(self, key: str, line: Line, text: str | None, attrs: dict[str, Any]) -> None:
        parent = self.ids[key].rpartition("/")[0]
        number = self.strands[key].add(
            "return",
            time_at(line.value, "timestamp"),
            self._source(line),
            to=parent or None,
            content=self.loom.store(text),
            attrs=attrs,
        )
        self.loom.link(self.strands[key].latest, number, "return")
        self._backs[key] = number
        self._told_at[key] = line.number

    def _notified(self, line: Line, data: dict[str, Any]) -> bool:
        """News of a sub-agent in the background."""
        key = self.facts.agent_of(line.value)
        self._wait_for(key, line)
        child = self.facts.named(text_at(data, "kind", "agentId"))
        if child is None:
            return False
        if self._has_news(child, line):  # an agent that may be told more is idle, not completed
            words = self.facts.last_words(child, line.number)
            self._return(child, line, words, {"via": "notification"})
        self._hear(key, child, line)
        return True

    def _abort(self, line: Line, data: dict[str, Any]) -> bool:
        attrs = known(interrupt=True, reason=text_at(data, "reason"))
        time = time_at(line.value, "timestamp")
        self.strands[MAIN].told(time, self._source(line), attrs=attrs)
        return True

    def _error(self, line: Line, data: dict[str, Any]) -> bool:
        latest = self.strands[self.facts.agent_of(line.value)].latest
        if latest is None:
            return False
        self.loom.note(latest, error=text_at(data, "message") or "unknown")
        return True

    def _shutdown(self, line: Line, data: dict[str, Any]) -> bool:
        """What the whole session used, which no single turn says."""
        self.header["shutdown"] = data
        units = number_at(data, "totalNanoAiu")
        requests = number_at(data, "totalPremiumRequests")
        values = {"aiu": None if units is None else units / 1e9, "premium_requests": requests}
        for channel, value in values.items():
            if value is not None:
                self.scores.append(Score(channel=channel, value=value, kind="cost"))
        return True


_Handler = Callable[[_Story, Line, dict[str, Any]], bool]
_HANDLERS: dict[str, _Handler] = {
    "session.start": _Story._start,
    "session.model_change": _Story._model,
    "session.error": _Story._error,
    "session.shutdown": _Story._shutdown,
    "user.message": _Story._said,
    "assistant.turn_start": _Story._turn_start,
    "assistant.message": _Story._message,
    "tool.execution_start": _Story._call,
    "tool.execution_complete": _Story._result,
    "subagent.started": _Story._started,
    "subagent.completed": _Story._completed,
    "system.notification": _Story._notified,
    "abort": _Story._abort,
}


def _waits(tool: str | None, arguments: Any) -> bool:
    return tool == "read_agent" and flag_at(arguments, "wait") is not False


def _between(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()
