"""OpenCode sessions, stage two: one session as the events of its agent."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from stretto.importers.kit.fields import (
    count_at,
    flag_at,
    known,
    number_at,
    record_at,
    text_at,
    value_at,
)
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.strand import Strand
from stretto.importers.kit.texts import json_text
from stretto.importers.opencode.records import Message, Session
from stretto.importers.opencode.tasks import Outcome, Part, Run, Tasks, is_made, time_of
from stretto.trace import Decision, Tokens


class Lane:
    """One session while it is woven."""

    def __init__(self, loom: Loom, key: str, ids: dict[str, str], tasks: Tasks) -> None:
        """`ids` are the paths of all sessions."""
        self.loom, self.key, self.ids, self.tasks = loom, key, ids, tasks
        self.strand = Strand(loom, ids[key])
        self.skipped: Counter[str] = Counter()
        self.role: str | None = None
        self.models: dict[str, None] = {}
        self._model: str | None = None
        """Of the answer, or what was asked for."""
        self.prompt: str | None = None
        self._turns: list[tuple[float, int]] = []
        self._file = ""
        self._asked: int | None = None
        """What the person said last."""
        self._returned = 0
        self._is_child = "/" in ids[key]

    def turn_after(self, run: Run) -> int | None:
        """The first turn that began after a call."""
        start = self.loom.seconds(time_of(run.part, "state", "time", "start")) or 0.0
        return next((number for begin, number in self._turns if begin >= start), None)

    def weave(self, session: Session | None, lanes: dict[str, "Lane"]) -> None:
        """Add the events of a session, and what it returns to those who called it."""
        messages = session.messages if session is not None else ()
        self._file = session.file if session is not None else ""
        last = next((m for m in reversed(messages) if m.role == "assistant"), None)
        for message in messages:
            self._returns(time_of(message.info, "time", "created"), lanes)
            if message.role == "user":
                self._user(message)
            elif message.role == "assistant":
                self._assistant(message, message is last)
        self._returns(None, lanes)

    def _source(self, message: Message) -> Source:
        return Source(self._file, message.number)

    def _returns(self, before: datetime | None, lanes: dict[str, "Lane"]) -> None:
        """Add the returns of all runs that had ended by then."""
        for run in self.tasks.returned(self.key)[self._returned :]:
            end = run.outcome.time if run.outcome is not None else None
            if before is not None and (end is None or end > before):
                return
            self._returned += 1
            if run.outcome is not None:
                self._return(run, run.outcome)

    def _return(self, run: Run, outcome: Outcome) -> None:
        run.back = self.strand.add(
            "return",
            outcome.time,
            outcome.source,
            to=self.ids[run.caller],
            content=self.loom.store(outcome.text),
            attrs=known(call_id=text_at(run.part, "callID"), total_duration_ms=_run_ms(run)),
        )
        self.loom.link(self.strand.latest, run.back, "return")

    def _notice(self, message: Message, part: Part) -> None:
        """What the harness wrote: the end of a run in the background, or words to skip."""
        run = self.tasks.ended_by(part)
        if run is None or run.outcome is None:
            self.skipped[f"part/{part.get('type')}/synthetic"] += 1
        elif run.outcome.failed:
            self.strand.answer(
                run.call,
                run.outcome.time,
                self._source(message),
                tool="task",
                content=self.loom.store(run.outcome.text),
                attrs=known(call_id=text_at(run.part, "callID"), is_error=True),
            )
        elif run.back is not None:
            self.strand.hear(run.back, "return", "recorded")

    def _user(self, message: Message) -> None:
        info = message.info
        self._model = text_at(info, "modelID") or text_at(info, "model", "modelID")
        texts = [p for p in message.parts if p.get("type") == "text" and not is_made(p)]
        text = "\n\n".join(filter(None, (text_at(part, "text") for part in texts)))
        others = [part for part in message.parts if part.get("type") in _ATTACHED]
        for part in filter(is_made, message.parts):
            self._notice(message, part)
        if self._is_child:
            if self.tasks.first(self.key) is None:
                self.prompt = self.prompt or self.loom.store(text)
            return
        if not texts and not others:
            return
        attrs = known(
            message_id=text_at(message.info, "id"),
            commands=[text_at(p, "command") for p in others if text_at(p, "command")] or None,
            files=[text_at(p, "filename") for p in others if text_at(p, "filename")] or None,
            mentions=[text_at(p, "name") for p in others if p.get("type") == "agent"] or None,
        )
        self._asked = self.strand.told(
            time_of(message.info, "time", "created"),
            self._source(message),
            content=self.loom.store(text),
            attrs=attrs,
        )

    def _assistant(self, message: Message, is_last: bool) -> None:
        info = message.info
        self.role = self.role or text_at(info, "agent") or text_at(info, "mode")
        self._model = text_at(info, "modelID") or self._model
        if self._model is not None:
            self.models.setdefault(self._model)
        steps = _steps(message)
        start = time_of(info, "time", "created")
        for number, parts in enumerate(steps):
            if _is_call(message, parts):
                self._turn(message, parts, start, is_last and number == len(steps) - 1)
            for part in parts:
                if part.get("type") == "tool":
                    self._tool(message, part, sampled=_is_call(message, parts))
                elif part.get("type") not in _TOLD:
                    self.skipped[f"part/{part.get('type')}"] += 1
            ends = [time_of(part, "state", "time", "end") for part in parts]
            start = max((end for end in ends if end is not None), default=start)

    def _turn(
        self, message: Message, parts: Sequence[Part], start: datetime | None, is_last: bool
    ) -> None:
        info = message.info
        finish = next((part for part in parts if part.get("type") == "step-finish"), info)
        end = _end_of_call(parts) or time_of(info, "time", "completed")
        fits = start is not None and end is not None and end >= start
        number = self.strand.turn(
            start,
            self._source(message),
            duration=(end - start).total_seconds() if fits and start and end else None,
            content=self.loom.store(_said(parts, "text")),
            decision=Decision(type=self._decision(parts, is_last)),
            tokens=_tokens(record_at(finish, "tokens")),
            price=_price(finish),
            attrs=known(
                message_id=text_at(info, "id"),
                thinking=self.loom.store(_said(parts, "reasoning")),
                reasoning_tokens=count_at(finish, "tokens", "reasoning"),
                stop_reason=text_at(finish, "reason") or text_at(info, "finish"),
                model=self._model if len(self.models) > 1 else None,
                agent=text_at(info, "agent") if text_at(info, "agent") != self.role else None,
                summary=flag_at(info, "summary") or None,
                error=text_at(info, "error", "data", "message") or text_at(info, "error", "name"),
            ),
        )
        self._turns.append((self.loom.seconds(start) or 0.0, number))

    def _decision(self, parts: Sequence[Part], is_last: bool) -> str:
        tools = [part for part in parts if part.get("type") == "tool"]
        runs = [run for run in map(self.tasks.of, tools) if run is not None]
        if any(run.is_first for run in runs):
            return "spawn"
        if runs:
            return "delegate"
        return "stop" if is_last and not tools else "act"

    def _tool(self, message: Message, part: Part, sampled: bool) -> None:
        run = self.tasks.of(part)
        state = record_at(part, "state")
        start, end = time_of(state, "time", "start"), time_of(state, "time", "end")
        seconds = (end - start).total_seconds() if start and end and end >= start else None
        kind = "tool_call" if run is None else "spawn" if run.is_first else "delegate"
        asked = state.get("input")
        text = json_text(asked) if run is None else text_at(asked, "prompt")
        add = self.strand.act if sampled else self.strand.add
        number = add(
            kind,
            start or time_of(message.info, "time", "created"),
            self._source(message),
            to=self.ids[run.child] if run is not None else None,
            tool=text_at(part, "tool"),
            duration=seconds if run is None else None,
            content=self.loom.store(text),
            attrs=known(
                call_id=text_at(part, "callID"),
                call_duration=seconds if run is not None else None,
                status=_unfinished(state),
                command=text_at(asked, "command") if run is not None else None,
                background=True if run is not None and run.in_background else None,
            ),
        )
        if not sampled:
            self.loom.link(self._asked, number, "causal", "derived")
        if run is not None:
            run.call = number
        if run is not None and run.back is not None and not run.in_background:
            self.strand.hear(run.back, "return", "recorded")
        elif text_at(state, "status") in ("completed", "error"):
            self._result(message, part, number, end)

    def _result(self, message: Message, part: Part, call: int, end: datetime | None) -> None:
        failed = text_at(part, "state", "status") == "error"
        name = "error" if failed else "output"
        self.strand.answer(
            call,
            end,
            self._source(message),
            tool=text_at(part, "tool"),
            content=self.loom.store(text_at(part, "state", name)),
            attrs=known(
                call_id=text_at(part, "callID"),
                is_error=True if failed else None,
                exit_code=count_at(part, "state", "metadata", "exit"),
            ),
        )


_TOLD = ("text", "reasoning", "tool", "step-start", "step-finish")
"""Types of parts that become events, or belong to one."""

_ATTACHED = ("subtask", "agent", "file")
"""Types of parts that a person adds to what is typed."""


def _run_ms(run: Run) -> float | None:
    """How long a run took that its call waited for."""
    start = time_of(run.part, "state", "time", "start")
    end = run.outcome.time if run.outcome is not None else None
    if run.in_background or start is None or end is None or end < start:
        return None
    return (end - start).total_seconds() * 1000


def _steps(message: Message) -> list[list[Part]]:
    """The parts of each model call; early versions put several calls into one message."""
    steps: list[list[Part]] = [[]]
    for part in message.parts:
        is_new = part.get("type") == "step-start"
        if is_new and any(other.get("type") in _TOLD for other in steps[-1]):
            steps.append([])
        steps[-1].append(part)
    return steps


def _is_call(message: Message, parts: Sequence[Part]) -> bool:
    """Whether a model was called: a command runs its sub-agent without one."""
    if any(part.get("type") in ("step-start", "text", "reasoning") for part in parts):
        return True
    spent = record_at(message.info, "tokens")
    used = any(count_at(spent, name) for name in ("input", "output"))
    return used or value_at(message.info, "error") is not None


def _end_of_call(parts: Sequence[Part]) -> datetime | None:
    """When the model had said everything: before its tools were done."""
    said = [time_of(p, "time", "end") for p in parts if p.get("type") in ("text", "reasoning")]
    asked = [time_of(p, "state", "time", "start") for p in parts if p.get("type") == "tool"]
    return max((time for time in (*said, *asked) if time is not None), default=None)


def _said(parts: Sequence[Part], kind: str) -> str:
    texts = (text_at(part, "text") for part in parts if part.get("type") == kind)
    return "\n\n".join(filter(None, texts))


def _tokens(stated: dict[str, Any]) -> Tokens | None:
    """Prompt tokens are stated without cached ones; thoughts are in `output` or beside it."""
    prompt, output = count_at(stated, "input"), count_at(stated, "output")
    read, write = count_at(stated, "cache", "read"), count_at(stated, "cache", "write")
    if prompt is None and output is None:
        return None
    thoughts, total = count_at(stated, "reasoning"), count_at(stated, "total")
    counted = (prompt or 0) + (output or 0) + (read or 0) + (write or 0)
    if output is not None and thoughts and total == counted + thoughts:
        output += thoughts
    return Tokens(input=prompt, output=output, cache_read=read, cache_write=write)


def _price(finish: Part) -> float | None:
    cost = number_at(finish, "cost")
    return cost if cost is not None and cost >= 0 else None


def _unfinished(state: Part) -> str | None:
    status = text_at(state, "status")
    return None if status in ("completed", "error") else status
