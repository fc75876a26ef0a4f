"""AutoGen 0.4 and later: event logs and dumps of `run_stream`, one trace a run.

All agents of a team are there from the start, so each is a root. What one says in a group chat is
read by the next turn of every other; a handoff is a `delegate`. A message carries the time at which
it was finished; its turn began when the last thing that it reads had come.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.importers.autogen.records import (
    NAMELESS,
    Item,
    Records,
    first_id,
    name_of,
    read_records,
    recognise,
    usage_of,
)
from stretto.importers.kit.fields import count_at, known, list_at, record_at, text_at, time_at
from stretto.importers.kit.heads import read_head
from stretto.importers.kit.loom import Loom
from stretto.importers.kit.report import FileReport, Imported, report_of
from stretto.importers.kit.strand import Strand, paths, trace_of
from stretto.importers.kit.texts import json_text, text_of, tokens_of
from stretto.trace import Agent, Decision, Trace

__all__ = ["import_files", "recognise", "sessions"]

PEOPLE = ("user", "user_proxy", "UserProxy")
"""Sources that stand for a person."""
SILENT = ("ModelClientStreamingChunkEvent", "MemoryQueryEvent", "UserInputRequestedEvent")
"""Messages without an event of their own."""
NO_TURN = ("ToolCallExecutionEvent", "CodeExecutionEvent", "ToolCallSummaryMessage")


def sessions(files: Sequence[Path]) -> Iterable[Sequence[Path]]:
    """Files of one run, told by the message that it began with."""
    runs: dict[str, list[Path]] = {}
    for file in sorted(files):
        runs.setdefault(first_id(read_head(file)) or str(file), []).append(file)
    return list(runs.values())


def import_files(files: Sequence[Path]) -> Imported:
    """Read the files of one run as one trace.

    Raises `StrettoError` for a file of which nothing is whole.
    """
    found = read_records(files)
    if not found.items:
        raise StrettoError("holds no message and no model call", str(files[0]))
    trace = _Weaver(found).weave(files)
    return Imported((trace,), tuple(_reports(files, found, trace)))


def _reports(files: Sequence[Path], found: Records, trace: Trace) -> Iterable[FileReport]:
    for file in files:
        name = str(file)
        yield report_of(
            name,
            [trace] if file == files[0] else [],
            records=found.records[name],
            skipped=dict(found.skipped[name]),
            duplicates=found.duplicates[name],
            warnings=found.warnings[name],
        )


class _Weaver:
    """Adds the items of a run in order."""

    def __init__(self, found: Records) -> None:
        self.found = found
        self.calls = _matched(found.items)
        self.modelled = {item.agent for item in found.items if item.kind == "call"}
        self.merged = {id(call) for call in self.calls.values()}
        self.by_message = any(item.kind == "said" for item in found.items)
        self.people = _people(found.items, self.by_message)
        names = _agents([item for item in found.items if not self._is_told(item)], self.people)
        self.paths = paths(dict.fromkeys(names))
        times = [time for item in found.items if (time := time_at(item.record, "created_at"))]
        self.origin = min(times, default=None)
        self.loom = Loom(self.origin)
        self.strands = {name: Strand(self.loom, path) for name, path in self.paths.items()}
        self.ready: dict[str, datetime | None] = {}
        self.open: dict[str, dict[str | None, int]] = {}
        self.answered = _answered(found.items)
        self.results: dict[str | None, int] = {}
        self.listener = self._listeners()
        self.stop_reason = found.stop_reason
        self.thoughts: dict[str, str | None] = {}
        self.models: dict[str, str] = {}
        self.errors: list[str] = []
        self.last = next(
            (item for item in reversed(found.items) if self._is_turn(item)), found.items[-1]
        )

    def weave(self, files: Sequence[Path]) -> Trace:
        """The trace of the run."""
        for item in self.found.items:
            self._add(item)
        agents = [
            Agent(id=path, name=name or None, model=self.models.get(name))
            for name, path in self.paths.items()
        ]
        first = next((text_at(i.record, "id") for i in self.found.items if i.kind == "said"), None)
        attrs = known(
            format="autogen",
            started=self.origin.isoformat() if self.origin else None,
            stop_reason=self.stop_reason,
            errors=self.errors or None,
            evidence={"decision.duration": "derived", "tool_call.duration": "derived"},
        )
        header: dict[str, Any] = {"id": first or Path(files[0]).stem, "system": "autogen"}
        return trace_of(self.loom, agents, attrs=attrs, **header)

    def _is_told(self, item: Item) -> bool:
        """Whether a call that names no agent is told again, by a message of its agent."""
        is_told = id(item) in self.merged or (item.kind == "tool" and self.by_message)
        return item.agent == NAMELESS and is_told

    def _is_turn(self, item: Item) -> bool:
        if item.kind != "said":
            return item.kind == "call" and id(item) not in self.merged
        kind = item.record.get("type")
        if item.agent in self.people or kind in SILENT:
            return False
        if usage_of(item.record)[1] is not None or id(item) in self.calls:
            return True
        return _speaks(item.record) and item.agent not in self.modelled

    def _add(self, item: Item) -> None:
        skipped = self.found.skipped[item.source.file]
        kind = text_at(item.record, "type") or ""
        if item.kind == "error":
            self.errors.append(text_of(item.record.get("exception")) or kind)
        elif item.kind == "sent":
            self._sent(item)
        elif item.kind == "call":
            if id(item) not in self.merged:
                self._turn(item, item.record, self._response(item.record))
        elif item.kind == "tool":
            self._tool(item, skipped)
        elif kind in SILENT:
            skipped[kind] += 1
        elif item.agent in self.people:
            self._human(item)
        elif item.agent not in self.strands:
            self.stop_reason = self.stop_reason or text_of(item.record.get("content"))
        elif kind == "ThoughtEvent":
            self.thoughts[item.agent or ""] = text_of(item.record.get("content"))
        else:
            self._said(item, kind)

    def _path(self, name: Any) -> str | None:
        return self.paths.get(name) if isinstance(name, str) and name else None

    def _strand(self, item: Item) -> Strand:
        return self.strands[item.agent or ""]

    def _listeners(self) -> dict[int, str]:
        """Items (by identity) to the agent that acts next."""
        name = next(iter(self.strands))
        found: dict[int, str] = {}
        for item in reversed(self.found.items):
            name = item.agent if item.agent in self.strands else name
            found[id(item)] = name
        return found

    def _human(self, item: Item) -> None:
        """What a person says is heard by all, and stands with whoever acts next."""
        name = self.listener[id(item)]
        time = time_at(item.record, "created_at")
        text = self.loom.store(text_of(item.record.get("content")))
        number = self.strands[name].add(
            "human", time, item.source, content=text, attrs=known(name=item.agent)
        )
        self._heard(number, "causal", time, None)

    def _heard(self, number: int, label: str, time: datetime | None, by: str | None) -> None:
        for name, strand in self.strands.items():
            if name != by:
                strand.hear(number, label)
                self.ready[name] = time or self.ready.get(name)

    def _said(self, item: Item, kind: str) -> None:
        name = item.agent or ""
        time = time_at(item.record, "created_at")
        if self._is_turn(item):
            self._turn(item, item.record, item.record)
        if kind in ("ToolCallExecutionEvent", "CodeExecutionEvent"):
            self._results(item, time)
        elif kind == "HandoffMessage":
            self._speak(item, "delegate", time, to=self._path(item.record.get("target")))
        elif kind in ("SelectSpeakerEvent", "SelectorEvent"):
            for chosen in list_at(item.record, "content"):
                self._speak(item, "delegate", time, to=self._path(chosen))
        elif kind not in ("ToolCallRequestEvent", "CodeGenerationEvent"):
            self._speak(item, "message", time)
        self.ready[name] = time or self.ready.get(name)

    def _speak(self, item: Item, kind: str, time: datetime | None, **fields: Any) -> None:
        """Say something to the team, or hand over to one of it."""
        number = self._strand(item).act(
            kind,
            time,
            item.source,
            content=self.loom.store(text_of(item.record.get("content"))),
            attrs=known(message_id=text_at(item.record, "id"), type=text_at(item.record, "type")),
            **fields,
        )
        if item.record.get("type") in ("ToolCallSummaryMessage", "HandoffMessage"):
            self.loom.link(self.results.get(item.agent), number, "tool_dependency", "derived")
        self._heard(number, "message", time, item.agent)

    def _turn(self, item: Item, record: dict[str, Any], said: dict[str, Any]) -> None:
        """A model call, told by its message, by its record in the event log, or by both."""
        name = item.agent or ""
        end, start = time_at(record, "created_at"), self.ready.get(name)
        start = end if start is None or (end is not None and end < start) else start
        call = self.calls.get(id(item), item).record
        tools = list_at(said, "content") if _asks(said) else []
        model = text_at(call, "response", "model")
        self.models.setdefault(name, model or "") if model else None
        thought = self.thoughts.pop(name, None)
        self._strand(item).turn(
            start if end is not None else None,
            item.source,
            duration=(end - start).total_seconds() if end and start else None,
            tokens=_tokens(record, call),
            content=self.loom.store(thought if tools else text_of(said.get("content"))),
            decision=Decision(type=self._type(item, tools)),
            attrs=known(
                message_id=text_at(record, "id"),
                model=model if model != self.models.get(name) else None,
                created=count_at(call, "response", "created"),
                finish_reason=text_at(call, "response", "choices", 0, "finish_reason"),
            ),
        )
        for tool in tools:
            self._call(item, tool, end)

    def _type(self, item: Item, tools: Sequence[Any]) -> str:
        kind = text_at(item.record, "type") or ""
        names = [text_at(tool, "name") or "" for tool in tools]
        if kind.startswith("Select") or any(self._hands_over(name) for name in names):
            return "delegate"
        if item is self.last and not tools:
            return "stop"
        return "communicate" if kind.endswith("Message") else "act"

    def _hands_over(self, tool: str) -> bool:
        name = tool.removeprefix("transfer_to_")
        return name != tool and self._path(name) is not None

    def _call(self, item: Item, tool: dict[str, Any], time: datetime | None) -> None:
        end = self.answered.get((item.agent, text_at(tool, "id")))
        known_times = time is not None and end is not None and end >= time
        number = self._strand(item).act(
            "tool_call",
            time,
            item.source,
            tool=text_at(tool, "name"),
            duration=(end - time).total_seconds() if known_times and time and end else None,
            content=self.loom.store(json_text(tool.get("arguments", {}))),
            attrs=known(tool_call_id=text_at(tool, "id")),
        )
        self.open.setdefault(item.agent or "", {})[text_at(tool, "id")] = number

    def _results(self, item: Item, time: datetime | None) -> None:
        """All results of one request come in one message."""
        content = item.record.get("content")
        results = content if isinstance(content, list) else [{"content": json_text(content)}]
        for result in results:
            waiting = self.open.get(item.agent or "", {})
            self.results[item.agent] = self._strand(item).answer(
                waiting.pop(text_at(result, "call_id"), None),
                time,
                item.source,
                tool=text_at(result, "name"),
                content=self.loom.store(text_of(record_at(result).get("content"))),
                attrs=known(
                    tool_call_id=text_at(result, "call_id"),
                    error=True if record_at(result).get("is_error") is True else None,
                ),
            )

    def _tool(self, item: Item, skipped: Counter[str]) -> None:
        """A tool that was called; where messages tell of it too, they know when."""
        if self.by_message:
            skipped["ToolCall"] += 1
            return
        record, name = item.record, text_at(item.record, "tool_name")
        waiting = self.open.get(item.agent or "", {})
        asked = next((key for key, call in waiting.items() if self._tool_of(call) == name), "")
        call = waiting.pop(asked, None)
        if call is None:
            content = self.loom.store(json_text(record.get("arguments", {})))
            call = self._strand(item).act(
                "tool_call", None, item.source, tool=name, content=content
            )
        result = self.loom.store(text_of(record.get("result")))
        self._strand(item).answer(call, None, item.source, tool=name, content=result)

    def _tool_of(self, number: int) -> str | None:
        return self.loom.drafts[number].event.tool

    def _sent(self, item: Item) -> None:
        """A message of the core: to one agent, or to whoever listens to a topic."""
        record = item.record
        to = name_of(text_at(record, "receiver"))
        fields = {
            "content": self.loom.store(text_at(record, "payload")),
            "attrs": known(kind=(text_at(record, "kind") or "").rpartition(".")[2] or None),
        }
        target = self.strands[to] if to is not None and to in self.strands else None
        label = "message" if item.agent in self.strands else "causal"
        if item.agent in self.strands:
            path = target.agent if target is not None else None
            number = self._strand(item).act("message", None, item.source, to=path, **fields)
        else:
            first = target or next(iter(self.strands.values()))
            number = first.add("human", None, item.source, **fields)
        if target is not None:
            target.hear(number, label)
            return
        for name, strand in self.strands.items():
            if name != item.agent:
                strand.hear(number, label, "heuristic")

    def _response(self, record: dict[str, Any]) -> dict[str, Any]:
        """A logged response in the form of a message."""
        response = record_at(record, "response")
        message = record_at(response, "choices", 0, "message")
        calls = [
            {"id": text_at(each, "id"), **record_at(each, "function")}
            for each in list_at(message, "tool_calls")
        ]
        content = message.get("content", response.get("content"))
        return {"content": calls or content}


def _asks(said: dict[str, Any]) -> bool:
    """Whether the content of a message is a list of tool calls."""
    content = list_at(said, "content")
    return bool(content) and all(
        text_at(each, "name") and "arguments" in record_at(each) for each in content
    )


def _tokens(record: dict[str, Any], call: dict[str, Any]) -> Any:
    stated = usage_of(record)
    prompt, output = usage_of(call) if stated == (None, None) else stated
    details = record_at(call, "response", "usage", "prompt_tokens_details")
    read, write = count_at(details, "cached_tokens"), count_at(details, "cache_write_tokens")
    return tokens_of(prompt, output, read, write)


def _matched(items: Sequence[Item]) -> dict[int, Item]:
    """Messages (by identity) to the record of the model call that wrote them.

    That is the oldest open call of the same agent with the same usage, else one of nobody; for a
    message that states none, as an orchestrator's, the newest open call.
    """
    waiting: dict[str | None, list[Item]] = {}
    found: dict[int, Item] = {}
    for item in items:
        calls = waiting.setdefault(item.agent, [])
        if item.kind == "call":
            calls.append(item)
        elif item.kind == "said":
            usage = usage_of(item.record)
            call = _taken(calls, usage)
            if call is None and usage != (None, None):
                call = _taken(waiting.get(NAMELESS, []), usage)
            if call is not None:
                found[id(item)] = call
            elif calls and usage == (None, None) and _speaks(item.record):
                found[id(item)] = calls[-1]
                calls.clear()  # those before it wrote nothing
    return found


def _taken(calls: list[Item], usage: tuple[int | None, int | None]) -> Item | None:
    """The oldest call with this usage, which is taken out."""
    place = next((n for n, call in enumerate(calls) if usage_of(call.record) == usage), None)
    return None if place is None else calls.pop(place)


def _speaks(record: dict[str, Any]) -> bool:
    kind = text_at(record, "type") or ""
    return kind not in (*SILENT, *NO_TURN, "HandoffMessage", "ThoughtEvent")


def _answered(items: Sequence[Item]) -> dict[tuple[str | None, str | None], datetime | None]:
    """When each tool call was answered, by agent and id of the call."""
    return {
        (item.agent, text_at(result, "call_id")): time_at(item.record, "created_at")
        for item in items
        if item.record.get("type") == "ToolCallExecutionEvent"
        for result in list_at(item.record, "content")
    }


def _people(items: Sequence[Item], by_message: bool) -> frozenset[str | None]:
    """Sources that speak for a person: by name, or because they asked for input.

    Whoever calls a model is an agent, and who calls a tool, where no messages tell of tools.
    """
    acts = ("call",) if by_message else ("call", "tool")
    acting = {i.agent for i in items if i.kind in acts}
    asking = {i.agent for i in items if i.record.get("type") == "UserInputRequestedEvent"}
    asked = asking - acting
    speaking = {i.agent for i in items if i.kind == "said"} - asked
    modelled = {i.agent for i in items if i.kind == "call"}
    named = (set(PEOPLE) & {i.agent for i in items}) - acting
    return frozenset((asked | named) if speaking - named or modelled else asked)


def _agents(items: Sequence[Item], people: frozenset[str | None]) -> list[str]:
    """Everybody else who said or did something, in order of appearance."""
    names: dict[str, None] = {}
    for item in items:
        acts = item.kind != "error" and item.record.get("type") != "StopMessage"
        if item.agent is not None and item.agent not in people and acts:
            names.setdefault(item.agent)
        target = text_at(item.record, "target")
        if item.kind == "said" and target is not None and target not in people:
            names.setdefault(target)
        if item.kind == "sent":
            to = name_of(text_at(item.record, "receiver"))
            direct = (text_at(item.record, "kind") or "").endswith("DIRECT")
            if to is not None and direct:
                names.setdefault(to)
    return list(names) or ["team"]
