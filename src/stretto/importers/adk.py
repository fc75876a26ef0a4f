"""Sessions of Google's Agent Development Kit (ADK), one trace a session.

Fields come in snake case or in camel case. The agents of an app are declared beforehand, so a
transfer is a `delegate`; `branch` names the agents above one. An event has one time only, which
most versions take when the model has answered: a turn began when the last thing it reads had come.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.fields import (
    count_at,
    epoch,
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
from stretto.importers.kit.reading import Document, parse_document, parse_lines
from stretto.importers.kit.report import FileReport, Imported, Likeness, report_of
from stretto.importers.kit.strand import Strand, paths, trace_of
from stretto.importers.kit.texts import json_text
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Agent, Decision, Tokens, Trace

__all__ = ["import_files", "recognise", "sessions"]

TRANSFERS = ("transfer_to_agent", "transfer_to_other_agent")
CODE = "code_execution"
"""Tool name of code that the model runs on its own."""


def recognise(head: Head) -> Likeness:
    """Look for events that name an author and an invocation."""
    document = head.document
    lines = [line for line in head.lines if "author" in line]
    events = document if isinstance(document, list) else list_at(document, "events") or lines
    first = next((each for each in events if isinstance(each, dict)), {})
    if "author" in first and _at(first, "invocation_id") is not None:
        return Likeness(1.0)
    is_session = "events" in record_at(document) and _at(document, "app_name") is not None
    if is_session and not events:
        return Likeness(1.0)
    if "author" in first or is_session:
        return Likeness(0.3, 'events without "author" and "invocation_id"')
    return _nearness(head)


def _nearness(head: Head) -> Likeness:
    """How much a file that has no events where they are looked for looks like a session."""
    keys = {key for each in (*head.nested, *head.lines[:1]) for key in each}
    if {"Author", "InvocationID"} <= keys:
        return Likeness(0.4, "its keys begin with capital letters, as only the kit for Go has them")
    is_session = _at(head.document, "app_name") is not None
    if "author" in keys and keys & {"invocation_id", "invocationId"}:
        return Likeness(0.4, 'its events do not stand under "events"')
    return Likeness(0.3, 'a session without "events"') if is_session else Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read one session a file.

    Raises `StrettoError` for a file of which nothing is whole, or that holds no event.
    """
    traces: list[Trace] = []
    reports: list[FileReport] = []
    for file in files:
        document = _read(file)
        weaver = _Weaver(document, file)
        traces.append(weaver.weave())
        reports.append(
            report_of(
                str(file),
                traces[-1:],
                records=len(weaver.events),
                skipped=dict(weaver.skipped),
                warnings=document.warnings,
            )
        )
    return Imported(tuple(traces), tuple(reports))


def _read(file: Path) -> Document:
    """A session or a list of events; one event a line becomes a list."""
    data = read_bytes(file)
    begin = data.lstrip().partition(b"\n")[0]
    if b'"author"' not in begin or not begin.rstrip().endswith(b"}") or b'"events"' in begin:
        return parse_document(data, str(file))
    lines = parse_lines(data, str(file))
    return Document([line.value for line in lines.records], lines.warnings)


def _at(record: Any, name: str, *path: str | int) -> Any:
    """What stands under a name in snake case or in camel case."""
    value = value_at(record, name)
    if value is None:
        first, *rest = name.split("_")
        value = value_at(record, first + "".join(word.capitalize() for word in rest))
    return value_at(value, *path)


class _Weaver:
    """Adds the events of a session in order."""

    def __init__(self, document: Document, file: Path) -> None:
        self.file = file
        value = document.value
        self.session = record_at(value)
        events = value if isinstance(value, list) else list_at(self.session, "events")
        self.events = [each for each in events if isinstance(each, dict)]
        self.skipped: Counter[str] = Counter()
        self.parents = _parents(self.events)
        if not self.parents:
            raise StrettoError("holds no event of an agent", str(file), 'is "author" there?')
        self.paths = paths(self.parents)
        self.origin = min((t for event in self.events if (t := _time(event))), default=None)
        self.loom = Loom(self.origin)
        self.strands = {name: Strand(self.loom, path) for name, path in self.paths.items()}
        self.models: dict[str, str] = {}
        self.calls: dict[str, list[tuple[str | None, int]]] = {}
        self.answers = _answers(self.events)
        self.ready: dict[str | None, datetime | None] = {}
        authors = {text_at(event, "author") for event in self.events}
        self.authors = [name for name in self.paths if name in authors]
        self.branches = _branches(self.events)
        self.last = next((e for e in reversed(self.events) if _is_turn(e)), None)
        self.listener = self._listeners()

    def weave(self) -> Trace:
        """The trace of the session."""
        for place, event in enumerate(self.events):
            author = text_at(event, "author")
            if flag_at(event, "partial"):
                self.skipped["partial"] += 1
            elif author == "user":
                self._user(event, place)
            elif author in self.paths:
                self._event(event, author, place)
            else:
                self.skipped["event without an author"] += 1
        return trace_of(self.loom, [self._agent(name) for name in self.paths], **self._header())

    def _source(self, place: int) -> Source:
        return Source(f"{self.file}/events", place)

    def _listeners(self) -> list[str]:
        """For every event, the agent that acts next."""
        name = next(iter(self.paths))
        found: list[str] = []
        for event in reversed(self.events):
            author = text_at(event, "author")
            name = author if author in self.paths else name
            found.append(name)
        return found[::-1]

    def _user(self, event: dict[str, Any], place: int) -> None:
        """What a person says, or the late answer to a call that waited for one."""
        name, time = self.listener[place], _time(event)
        text = _text(event)
        if text is not None or not _parts(event, "function_response"):
            number = self.strands[name].add(
                "human", time, self._source(place), content=self.loom.store(text)
            )
            self._heard(number, "causal", event, None)
        for response in _parts(event, "function_response"):
            self._answer(name, response, time, place)
        self._passed(event)

    def _event(self, event: dict[str, Any], author: str, place: int) -> None:
        time = _time(event)
        if _is_turn(event):
            self._turn(event, author, place)
        elif not _parts(event, "function_response") and not _parts(event, "code_execution_result"):
            self.skipped["event without content"] += 1
        for response in _parts(event, "function_response"):
            self._answer(author, response, time, place)
        for result in _parts(event, "code_execution_result"):
            self._answer(author, {"name": CODE, "response": result.get("output")}, time, place)
        self._actions(event, author, place)
        self._passed(event)

    def _passed(self, event: dict[str, Any]) -> None:
        """Remember when the last thing on a branch came."""
        self.ready[text_at(event, "branch")] = _time(event) or self.ready.get(None)

    def _turn(self, event: dict[str, Any], author: str, place: int) -> None:
        strand, end = self.strands[author], _time(event)
        start = self._began(event, end)
        calls = [*_parts(event, "function_call"), *_parts(event, "executable_code")]
        model = _at(event, "model_version")
        model = model if isinstance(model, str) and model else None
        if model is not None:
            self.models.setdefault(author, model)
        text = _text(event)
        strand.turn(
            start,
            self._source(place),
            duration=(end - start).total_seconds() if end and start else None,
            tokens=_tokens(event),
            content=self.loom.store(text),
            decision=Decision(type=self._type(event, calls)),
            attrs=known(
                event_id=text_at(event, "id"),
                invocation_id=_word(_at(event, "invocation_id")),
                branch=text_at(event, "branch"),
                model=model if model != self.models.get(author) else None,
                finish_reason=_word(_at(event, "finish_reason")),
                error=_word(_at(event, "error_message")) or _word(_at(event, "error_code")),
            ),
        )
        for call in calls:
            self._call(event, author, call, place)
        if text is not None and len(self.authors) > 1:
            number = strand.act("message", end, self._source(place), content=self.loom.store(text))
            self._heard(number, "message", event, author)

    def _began(self, event: dict[str, Any], end: datetime | None) -> datetime | None:
        """When the last thing that a turn can see had come; its own time where nothing had."""
        branch = text_at(event, "branch")
        seen = [time for each, time in self.ready.items() if time and _sees(branch, each)]
        earlier = [time for time in seen if end is not None and time <= end]
        return max(earlier, default=end)

    def _type(self, event: dict[str, Any], calls: Sequence[dict[str, Any]]) -> str:
        if any(text_at(call, "name") in TRANSFERS for call in calls):
            return "delegate"
        return "stop" if event is self.last and not calls else "act"

    def _call(self, event: dict[str, Any], author: str, call: dict[str, Any], place: int) -> None:
        name, made = text_at(call, "id"), _time(event)
        tool = text_at(call, "name") or CODE
        until = self.answers.get(name) if name is not None else None
        long = name is not None and name in _list(_at(event, "long_running_tool_ids"))
        number = self.strands[author].act(
            "tool_call",
            made,
            self._source(place),
            tool=tool,
            duration=(until - made).total_seconds() if until and made and until >= made else None,
            content=self.loom.store(json_text(call.get("args", call.get("code", {})))),
            attrs=known(tool_call_id=name, waiting=long or None),
        )
        self.calls.setdefault(tool, []).append((name, number))

    def _answer(
        self, author: str, response: dict[str, Any], time: datetime | None, place: int
    ) -> None:
        """Answer the call of that id, or the oldest open one of that tool where there are none."""
        tool, name = text_at(response, "name") or CODE, text_at(response, "id")
        waiting = self.calls.get(tool, [])
        match = next((each for each in waiting if each[0] == name), None)
        if match is not None:
            waiting.remove(match)
        said = response.get("response")
        self.strands[author].answer(
            match[1] if match is not None else None,
            time,
            self._source(place),
            tool=tool,
            content=self.loom.store(json_text(said) if said is not None else None),
            attrs=known(tool_call_id=name),
        )

    def _actions(self, event: dict[str, Any], author: str, place: int) -> None:
        actions = record_at(event, "actions")
        target = _target(event)
        if target in self.paths:
            number = self.strands[author].act(
                "delegate", _time(event), self._source(place), to=self.paths[target]
            )
            if target in self.authors:
                self.strands[target].hear(number, "message", "recorded")
            else:  # a workflow agent: whoever acts next does so for it
                after = self.listener[min(place + 1, len(self.listener) - 1)]
                self.strands[after].hear(number, "message", "heuristic")
        if flag_at(actions, "escalate"):
            attrs = {"reason": "escalate"}
            self.strands[author].act("stop", _time(event), self._source(place), attrs=attrs)
        changed = {name: _at(actions, name) for name in ("state_delta", "artifact_delta")}
        self.skipped.update(name for name, value in changed.items() if value)

    def _heard(self, number: int, label: str, event: dict[str, Any], by: str | None) -> None:
        """Let the next turn of every other agent that can see an event read it."""
        branch = text_at(event, "branch")
        for name in self.authors:
            if name != by and _sees(self.branches.get(name), branch):
                self.strands[name].hear(number, label)

    def _agent(self, name: str) -> Agent:
        parent = self.parents[name]
        path = self.paths[name]
        return Agent(
            id=path,
            parent=path.rpartition("/")[0] or None if parent is not None else None,
            name=name,
            model=self.models.get(name),
            attrs={} if name in self.authors else {"transcript": False},
        )

    def _header(self) -> dict[str, Any]:
        app = _at(self.session, "app_name")
        started = self.origin.isoformat() if self.origin else None
        invocations = {json_text(_at(event, "invocation_id")) for event in self.events}
        attrs = known(
            format="adk",
            started=started,
            app=app if isinstance(app, str) else None,
            invocations=len(invocations),
            evidence={"decision.duration": "heuristic", "tool_call.duration": "derived"},
        )
        name = text_at(self.session, "id") or self.file.stem
        return {"id": name, "system": "google-adk", "attrs": attrs}


def _parents(events: Sequence[dict[str, Any]]) -> dict[str, str | None]:
    """Agents to those above them in a branch, in order of appearance."""
    parents: dict[str, str | None] = {}
    for event in events:
        author = text_at(event, "author")
        line = [part for part in (text_at(event, "branch") or "").split(".") if part][:64]
        if author is not None and author != "user":
            line = line if line[-1:] == [author] else [*line, author]
        for above, name in zip([None, *line], line, strict=False):
            parents[name] = parents.get(name) or above
        target = _target(event)
        if target is not None and target != "user":
            parents.setdefault(target, None)
    return parents


def _branches(events: Sequence[dict[str, Any]]) -> dict[str | None, str | None]:
    """The branch of every author that has but one."""
    found: dict[str | None, set[str | None]] = {}
    for event in events:
        found.setdefault(text_at(event, "author"), set()).add(text_at(event, "branch"))
    return {author: next(iter(seen)) for author, seen in found.items() if len(seen) == 1}


def _target(event: dict[str, Any]) -> str | None:
    """The agent that a transfer goes to: an action, or in early versions the tool's answer."""
    stated = _at(event, "actions", "transfer_to_agent") or _at(event, "actions", "transferToAgent")
    if isinstance(stated, str) and stated:
        return stated
    for response in _parts(event, "function_response"):
        if text_at(response, "name") in TRANSFERS:
            return text_at(response, "response", "target_agent_name")
    return None


def _sees(branch: str | None, other: str | None) -> bool:
    """Whether one on `branch` sees what was said on another: ADK's own rule."""
    return not branch or not other or f"{branch}.".startswith(f"{other}.")


def _is_turn(event: dict[str, Any]) -> bool:
    """Whether a model made an agent's event: it speaks, or calls."""
    if text_at(event, "author") == "user" or flag_at(event, "partial"):
        return False
    made = any(_parts(event, kind) for kind in ("function_call", "executable_code"))
    answers = any(_parts(event, kind) for kind in ("function_response", "code_execution_result"))
    failed = _at(event, "error_code") is not None
    return made or failed or (_text(event) is not None and not answers)


def _parts(event: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    parts = list_at(event, "content", "parts")
    return [found for part in parts if isinstance(found := _at(part, kind), dict)]


def _text(event: dict[str, Any]) -> str | None:
    """The text of an event, without the thoughts of the model."""
    parts = list_at(event, "content", "parts")
    texts = [text_at(part, "text") for part in parts if not flag_at(part, "thought")]
    return "\n".join(text for text in texts if text) or None


def _time(event: dict[str, Any]) -> datetime | None:
    """Seconds since 1970 in files, ISO 8601 in what the service sends."""
    return epoch(number_at(event, "timestamp") or None) or time_at(event, "timestamp")


def _answers(events: Sequence[dict[str, Any]]) -> dict[str, datetime | None]:
    """When the call of each id was first answered."""
    found: dict[str, datetime | None] = {}
    for event in events:
        for response in _parts(event, "function_response"):
            name = text_at(response, "id")
            if name is not None:
                found.setdefault(name, _time(event))
    return found


def _tokens(event: dict[str, Any]) -> Tokens | None:
    """Tokens of a turn: thoughts are sampled, too, and the prompt includes what was cached."""
    usage = _at(event, "usage_metadata")
    prompt = count_at(_at(usage, "prompt_token_count"))
    said, thought = (
        count_at(_at(usage, f"{kind}_token_count")) for kind in ("candidates", "thoughts")
    )
    read = count_at(_at(usage, "cached_content_token_count"))
    if prompt is None and said is None:
        return None
    return Tokens(
        input=None if prompt is None else max(0, prompt - (read or 0)),
        output=None if said is None and thought is None else (said or 0) + (thought or 0),
        cache_read=read,
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
