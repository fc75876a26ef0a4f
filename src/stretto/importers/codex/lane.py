"""Codex rollouts, stage two: one thread as the events of its agent."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from stretto.importers.codex.calls import Call, Script, output_text
from stretto.importers.codex.facts import Status, status_in, statuses_in
from stretto.importers.codex.mail import Mail, mail_in, news_in
from stretto.importers.codex.outcomes import exit_code_in, wall_time_in
from stretto.importers.codex.prompts import typed_in
from stretto.importers.codex.records import Entry
from stretto.importers.codex.tree import Node, Tree
from stretto.importers.codex.turns import Turn, text_of, texts_in, thought_of
from stretto.importers.codex.usage import tokens_of
from stretto.importers.kit.fields import count_at, known, number_at, record_at, text_at, value_at
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.strand import Strand
from stretto.trace import Decision


class Sent(Struct):
    """Work or words for another agent."""

    number: int
    sender: str
    to: str
    is_spawn: bool
    is_task: bool
    text: str | None
    is_read: bool = False


class News(Struct):
    """What an agent hears about another one, or from it."""

    about: str
    """Key of the other agent."""
    entry: Entry
    via: str
    status: Status | None = None
    mail: Mail | None = None
    at: int | None = None
    """The event that brings it."""
    reader: int | None = None
    """The turn that reads it."""


class Lane:
    """One agent while its thread is woven."""

    def __init__(self, loom: Loom, tree: Tree, node: Node) -> None:
        """`tree` is the whole run."""
        self.loom, self.tree, self.node = loom, tree, node
        self.strand = Strand(loom, node.id)
        self.sent: list[Sent] = []
        self.news: list[News] = []
        self.skipped: Counter[str] = Counter()
        self.first_words: str | None = None
        """What it was asked first, where no spawn says so."""
        self.models: list[str] = []
        self._made: dict[int, int] = {}
        self._unread: list[News] = []
        self._wait: tuple[int, list[News]] | None = None
        self._turn_id: str | None = None
        self._error: str | None = None
        self._started = False
        entries = node.script.thread.entries if node.script is not None else ()
        self._has_mail = any(entry.what == "agent_message" for entry in entries)

    def source(self, line: int) -> Source:
        """Where a record stands."""
        script = self.node.script
        return Source(script.thread.file if script is not None else "", line)

    def weave(self, script: Script, inbox: Sequence[Sent]) -> None:
        """Add the events of a thread.

        Args:
            script: The thread.
            inbox: What other agents sent to it; what it reads is marked.
        """
        turns = [step for step in script.steps if isinstance(step, Turn)]
        last = turns[-1] if turns else None
        told = set(script.prompts.values())
        for step in script.steps:
            if isinstance(step, Turn):
                self._turn(script, step, step is last)
            elif not self._take(script, step, inbox):
                call = script.calls.get(step.line)
                if call is not None:
                    self._call(call)
                elif typed_in(step) not in told:
                    self.skipped[_kind(step)] += 1

    def _turn(self, script: Script, turn: Turn, is_last: bool) -> None:
        calls = [script.calls[e.line] for e in turn.entries if e.line in script.calls]
        number = self.strand.turn(
            turn.start,
            self.source(turn.line),
            duration=_seconds(turn.start, turn.end),
            content=self.loom.store(text_of(turn)),
            decision=Decision(type=self._decision(calls, is_last)),
            tokens=tokens_of(turn.usage),
            attrs=known(
                turn_id=self._turn_id,
                thinking=self.loom.store(thought_of(turn)),
                reasoning_tokens=count_at(turn.usage, "reasoning_output_tokens"),
                model=self.models[-1] if len(self.models) > 1 else None,
                output_recorded=None if turn.entries else False,
            ),
        )
        for news in self._unread:
            news.reader = number
        self._unread.clear()
        for call in calls:
            self._call(call)

    def _decision(self, calls: Sequence[Call], is_last: bool) -> str:
        done = {call.action for call in calls if not call.is_refused}
        if any(self.tree.spawned(call) for call in calls if call.action == "spawn"):
            return "spawn"
        if "delegate" in done:
            return "delegate"
        if "message" in done:
            return "communicate"
        return "stop" if is_last and not calls else "act"

    def _call(self, call: Call) -> None:
        child = self.tree.spawned(call) if call.action == "spawn" else None
        other = child or self.tree.find(self.node.key, call.target)
        refused = call.is_refused if call.action != "spawn" else child is None
        kind = "tool_call" if refused else _KINDS.get(call.action, "tool_call")
        is_word = kind in ("spawn", "delegate", "message")
        start, duration = _span(call)
        number = self.strand.act(
            kind,
            start,
            self.source(call.entry.line),
            to=other.id if other is not None and call.action else None,
            tool=call.name,
            duration=None if kind != "tool_call" else duration,
            content=self.loom.store(call.prompt if is_word else call.text),
            attrs=_call_attrs(call, duration if kind != "tool_call" else None, is_word),
        )
        self._made[call.entry.line] = number
        if is_word and other is not None:
            is_task = kind != "message"
            sent = Sent(number, self.node.key, other.key, kind == "spawn", is_task, call.prompt)
            self.sent.append(sent)
        if call.action == "wait":
            self._wait = (call.entry.line, [])
        if call.entry.kind == "event_msg":
            self._tell(call, call.entry, number)

    def _take(self, script: Script, entry: Entry, inbox: Sequence[Sent]) -> bool:
        """Add what a record between turns means; `False` where that is nothing."""
        text = script.prompts.get(entry.line)
        if text is not None:
            self._said(entry, text, inbox)
            return True
        if entry.kind == "response_item" or self._is_letter(entry):
            return self._item(script, entry)
        if entry.kind == "turn_context":
            model = text_at(entry.payload, "model")
            if model is not None and model not in self.models[-1:]:
                self.models.append(model)
            return False
        return self._event(script, entry)

    def _is_letter(self, entry: Entry) -> bool:
        """Whether a record is a message between agents that no item tells again."""
        return entry.kind == "inter_agent_communication" and not self._has_mail

    def _item(self, script: Script, entry: Entry) -> bool:
        if entry.what.endswith("_output"):
            self._result(script, entry)
            return True
        mail = mail_in(entry)
        text = mail.text or "" if mail is not None else "".join(texts_in(entry))
        is_told = mail is not None or entry.payload.get("role") == "user"
        told = news_in(text) if is_told else []
        for name, status in told:
            self._hear_status(name, entry, "notification", status)
        return bool(told) or (mail is not None and self._receive(mail, entry))

    def _receive(self, mail: Mail, entry: Entry) -> bool:
        author = self.tree.find(self.node.key, mail.author)
        if author is None or author.key == self.node.key:
            return False
        self._hear(News(author.key, entry, "mail", mail=mail))
        return True

    def _hear(self, news: News) -> None:
        self.news.append(news)
        self._unread.append(news)

    def _hear_status(
        self, name: str, entry: Entry, via: str, status: Status | None, at: int | None = None
    ) -> None:
        other = self.tree.find(self.node.key, name)
        if other is None or status is None or status.word not in ("completed", "errored"):
            return
        news = News(other.key, entry, via, status, at=at)
        if at is None:
            self._hear(news)
        else:
            self.news.append(news)

    def _said(self, entry: Entry, text: str, inbox: Sequence[Sent]) -> None:
        """Somebody puts words into the thread: the parent, where its words are the same."""
        first, self._started = not self._started, True
        is_child = self.node.script is not None and self.node.script.thread.is_child
        if is_child and first:
            spawn = next((sent for sent in inbox if sent.is_spawn), None)
            if spawn is None:
                self.first_words = self.loom.store(text)
            else:
                spawn.is_read = True
            return
        tasks = [sent for sent in inbox if sent.is_task and not sent.is_read]
        same = [sent for sent in tasks if sent.text == text]
        sent = next(iter(same or [sent for sent in tasks if sent.text is None]), None)
        if sent is not None:
            sent.is_read = True
            self.strand.hear(sent.number, "message")
        else:
            attrs = known(turn_id=self._turn_id)
            source = self.source(entry.line)
            self.strand.told(entry.time, source, content=self.loom.store(text), attrs=attrs)

    def _result(self, script: Script, entry: Entry) -> None:
        call = script.answers.get(entry.line)
        text = output_text(entry)
        facts = call.facts if call is not None else None
        failed = (facts is not None and facts.failed) or value_at(
            entry.payload, "output", "success"
        ) is False
        code = facts.exit_code if facts is not None else None
        number = self.strand.answer(
            self._made.get(call.entry.line) if call is not None else None,
            entry.time,
            self.source(entry.line),
            tool=call.name if call is not None else None,
            content=self.loom.store(text),
            attrs=known(
                call_id=text_at(entry.payload, "call_id"),
                is_error=True if failed or self._is_refusal(call) else None,
                exit_code=code if code is not None else exit_code_in(text),
                wall_time=wall_time_in(text),
            ),
        )
        if call is not None:
            self._tell(call, entry, number)

    def _is_refusal(self, call: Call | None) -> bool:
        """Whether an output says that the harness did not do what it was asked between agents."""
        if call is None or not call.action or self.tree.spawned(call) is not None:
            return False
        return call.is_refused

    def _tell(self, call: Call, entry: Entry, number: int) -> None:
        """What the result of a call says about other agents."""
        if call.action == "wait":
            for name, status in _statuses(call).items():
                self._hear_status(name, entry, "wait", status, number)
            if self._wait is not None and self._wait[0] == call.entry.line:
                for news in self._wait[1]:
                    news.at = number
                    self.news.append(news)
                self._wait = None
        elif call.action == "close" and call.target is not None:
            said = value_at(call.answered, "previous_status") or value_at(call.answered, "status")
            self._hear_status(call.target, entry, "close", status_in(said), number)

    def _event(self, script: Script, entry: Entry) -> bool:
        payload = entry.payload
        if entry.what == "task_started":
            self._turn_id, self._error = text_at(payload, "turn_id"), None
        elif entry.what == "task_complete":
            return self._completed(entry)
        elif entry.what == "turn_aborted" and not script.thread.is_child:
            attrs = known(interrupt=True, reason=text_at(payload, "reason"))
            self.strand.told(entry.time, self.source(entry.line), attrs=attrs)
            return True
        elif entry.what == "error" and self.strand.latest is not None:
            self._error = text_at(payload, "message") or "unknown"
            self.loom.note(self.strand.latest, error=self._error)
            return True
        elif entry.what in ("item_completed", "sub_agent_activity"):
            return self._activity(record_at(payload, "item") or payload, entry)
        return False

    def _activity(self, item: dict[str, Any], entry: Entry) -> bool:
        """A sub-agent is done while its parent waits: that ends the wait (v2)."""
        is_news = item.get("type") in ("SubAgentActivity", "sub_agent_activity")
        is_done = is_news and item.get("kind") == "completed"
        other = self.tree.find(self.node.key, text_at(item, "agent_thread_id")) if is_done else None
        if other is None:
            return False
        if self._wait is not None:
            self._wait[1].append(News(other.key, entry, "activity"))
        return True

    def _completed(self, entry: Entry) -> bool:
        parent = self.tree.nodes[self.node.parent] if self.node.parent is not None else None
        if parent is None:
            return False
        text = text_at(entry.payload, "last_agent_message")
        failed = text is None and self._error is not None
        milliseconds = number_at(entry.payload, "duration_ms")
        number = self.strand.add(
            "return",
            entry.time,
            self.source(entry.line),
            to=parent.id,
            content=self.loom.store(self._error if failed else text),
            attrs=known(
                status="errored" if failed else "completed",
                turn_id=text_at(entry.payload, "turn_id"),
                run_seconds=None if milliseconds is None else milliseconds / 1000,
            ),
        )
        self.loom.link(self.strand.latest, number, "return")
        return True


_KINDS = {"spawn": "spawn", "delegate": "delegate", "message": "message", "close": "despawn"}


def _call_attrs(call: Call, duration: float | None, is_word: bool) -> dict[str, Any]:
    facts = call.facts
    named = call.target if call.action else None
    return known(
        call_id=call.id,
        namespace=text_at(call.entry.payload, "namespace"),
        waiting=True if call.action == "wait" else None,
        interrupt=True if call.action == "interrupt" or _interrupts(call) else None,
        recipient=named,
        task_name=text_at(call.arguments, "task_name") if call.action == "spawn" else None,
        forked=_forked(call) if call.action == "spawn" else None,
        encrypted=True if is_word and call.prompt is None else None,
        call_duration=duration,
        model=facts.model if facts is not None and call.action else None,
    )


def _statuses(call: Call) -> dict[str, Status | None]:
    """What a wait tells of agents; the first versions waited for one, and said only how it is."""
    said, only = value_at(call.answered, "status"), text_at(call.arguments, "id")
    if only is not None:
        return {only: status_in(said)}
    stated = call.facts.statuses if call.facts is not None else {}
    return {**(statuses_in(said) or stated)}


def _interrupts(call: Call) -> bool:
    return call.action == "delegate" and value_at(call.arguments, "interrupt") is True


def _forked(call: Call) -> Any:
    """How much of its own history the caller gives to the child, as it says."""
    fork = value_at(call.arguments, "fork_context")
    return fork if isinstance(fork, bool) else text_at(call.arguments, "fork_turns")


def _span(call: Call) -> tuple[datetime | None, float | None]:
    """When a call began, and how many seconds it took: until the harness says, or its output."""
    start, facts = call.entry.time, call.facts
    end = facts.end if facts is not None else None
    if facts is not None and facts.start is not None and end is not None and facts.start < end:
        start = facts.start
    end = end or (call.output.time if call.output is not None else None)
    return start, _seconds(start, end)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None or end < start:
        return None
    return (end - start).total_seconds()


def _kind(entry: Entry) -> str:
    """Type of a record, as a report says it."""
    detail = text_at(entry.payload, "item", "type") or text_at(entry.payload, "role")
    return "/".join(filter(None, (entry.kind, entry.what, detail)))
