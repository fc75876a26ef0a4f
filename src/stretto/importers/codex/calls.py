"""Codex rollouts: tool calls with their outputs, and what those between agents do.

| what it does | tools |
|---|---|
| spawn | `spawn_agent` |
| delegate | `send_input` (v1), `followup_task`, `assign_task` (v2) |
| message | `send_message` (v2) |
| wait | `wait` (to 0.105), `wait_agent` |
| close | `close_agent` |
| resume, interrupt, list | `resume_agent`, `interrupt_agent`, `list_agents` |
"""

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from stretto.importers.codex.facts import Facts, facts_of
from stretto.importers.codex.prompts import prompts_in
from stretto.importers.codex.records import Entry, Thread
from stretto.importers.codex.turns import Step, decoded, is_sampled, steps_of, texts_in
from stretto.importers.kit.fields import text_at, value_at
from stretto.importers.kit.texts import json_text

NAMESPACES = ("multi_agent_v1", "collaboration")
ACTIONS = {
    "spawn_agent": "spawn",
    "send_input": "delegate",
    "followup_task": "delegate",
    "assign_task": "delegate",
    "send_message": "message",
    "wait": "wait",
    "wait_agent": "wait",
    "close_agent": "close",
    "resume_agent": "resume",
    "interrupt_agent": "interrupt",
    "list_agents": "list",
}
TARGETS = ("target", "id", "agent_id", "recipient")
REFUSALS = ("unsupported call", "collab spawn failed")
"""How the harness begins to say that it did not spawn."""
_CIPHER = re.compile(r"gAAAA[A-Za-z0-9_=-]{60,}")
_SPAWNED = re.compile(r"agent_id: *(\S+)")
_SUBMITTED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Call(Struct):
    """A call of a tool."""

    entry: Entry
    id: str
    name: str
    text: str
    """The arguments as they were sampled."""
    arguments: Any
    output: Entry | None = None
    facts: Facts | None = None
    action: str = ""
    """What a call between agents does; empty for other tools."""

    @property
    def answer(self) -> str:
        """Text of its output."""
        return "" if self.output is None else output_text(self.output)

    @property
    def answered(self) -> Any:
        """Its output, where that is JSON, or the words that the first versions had for it."""
        return _in_words(self.action, self.answer.strip()) or decoded(self.answer)

    @property
    def is_refused(self) -> bool:
        """Whether the harness did not do it: the output is an error in words."""
        if self.facts is not None and (self.facts.action or self.facts.path):
            return self.facts.failed
        return bool(self.answer) and not isinstance(self.answered, dict)

    @property
    def may_have_spawned(self) -> bool:
        """Whether a child of its own can say that it worked: its output does not say no."""
        failed = self.facts is not None and self.facts.failed
        return not failed and not self.answer.startswith(REFUSALS)

    @property
    def target(self) -> str | None:
        """The agent that it is about, as the model named it."""
        return next(filter(None, (text_at(self.arguments, name) for name in TARGETS)), None)

    @property
    def prompt(self) -> str | None:
        """The words for another agent; `None` where they are encrypted."""
        stated = self.facts.prompt if self.facts is not None else None
        items = value_at(self.arguments, "items")
        parts = items if isinstance(items, list) else []
        inside = "\n\n".join(filter(None, (text_at(part, "text") for part in parts)))
        return readable(stated or text_at(self.arguments, "message") or inside or None)


class Script(Struct):
    """One thread, ready to be woven."""

    thread: Thread
    steps: Sequence[Step]
    calls: dict[int, Call]
    """By the line of the record that tells of them first, in order."""
    answers: dict[int, Call]
    """The calls that outputs answer, by the line of the output."""
    prompts: dict[int, str]
    """What somebody put into it, by the line of the record."""


def script_of(thread: Thread) -> Script:
    """Group a thread into turns, and pair its calls with outputs and facts."""
    steps = steps_of(thread)
    facts = facts_of(thread.entries)
    calls: dict[int, Call] = {}
    named: dict[str, deque[Call]] = {}
    for entry in thread.entries:
        if is_sampled(entry) and entry.what.endswith("_call"):
            call = _call(entry, facts)
            calls[entry.line] = call
            named.setdefault(call.id, deque()).append(call)
    for name, fact in facts.items():
        if fact.action and name not in named:
            calls[fact.entry.line] = _unsampled(name, fact)
    return Script(thread, steps, calls, _answers(thread, named), prompts_in(thread.entries))


def _answers(thread: Thread, named: dict[str, deque[Call]]) -> dict[int, Call]:
    """Pair outputs with calls by id; calls whose ids are the same (redacted) by their order."""
    found: dict[int, Call] = {}
    for entry in thread.entries:
        waiting = named.get(text_at(entry.payload, "call_id") or "")
        is_output = entry.kind == "response_item" and entry.what.endswith("_output")
        if is_output and waiting and waiting[0].entry.line < entry.line:
            call = waiting.popleft()
            call.output = entry
            found[entry.line] = call
    return found


def _in_words(action: str, text: str) -> dict[str, str] | None:
    """What the first versions with agents answered: a line with the id of the agent, or an id."""
    spawned = _SPAWNED.fullmatch(text) if action == "spawn" else None
    if spawned is not None:
        return {"agent_id": spawned[1]}
    submitted = action == "delegate" and _SUBMITTED.fullmatch(text) is not None
    return {"submission_id": text} if submitted else None


def call_id(entry: Entry) -> str:
    """Id of a call; one that the provider answers itself has none but its place."""
    payload = entry.payload
    return text_at(payload, "call_id") or text_at(payload, "id") or f"line {entry.line}"


def _call(entry: Entry, facts: dict[str, Facts]) -> Call:
    payload = entry.payload
    sampled = payload.get("arguments", payload.get("input", payload.get("action")))
    text = "" if sampled is None else json_text(sampled)
    arguments = decoded(text)
    name = text_at(payload, "name") or entry.what.removesuffix("_call")
    fact = facts.get(call_id(entry))
    action = _action(name, text_at(payload, "namespace"), arguments)
    if fact is not None and fact.action and not action:
        action = fact.action
    return Call(entry, call_id(entry), name, text, arguments, None, fact, action)


def _action(name: str, namespace: str | None, arguments: Any) -> str:
    """What a tool does between agents; `wait` alone is also a tool for shells."""
    if namespace is not None and namespace not in NAMESPACES:
        return ""
    names_agents = text_at(arguments, "id") or value_at(arguments, "ids") is not None
    if name == "wait" and namespace is None and not names_agents:
        return ""
    return ACTIONS.get(name, "")


def _unsampled(name: str, fact: Facts) -> Call:
    """A call that is known by the harness's record only, as where code makes it."""
    arguments = {"message": fact.prompt, "target": next(iter(fact.receivers), None)}
    text = json_text({key: value for key, value in arguments.items() if value is not None})
    return Call(fact.entry, name, fact.action, text, arguments, None, fact, fact.action)


def output_text(entry: Entry) -> str:
    """Text of a call's output, which is a text, a list of parts, or an object with either."""
    output = value_at(entry.payload, "output")
    if isinstance(output, dict):
        output = output.get("content", output.get("output"))
    if isinstance(output, str):
        return output
    parts = entry._replace(payload={"content": output if isinstance(output, list) else []})
    return "\n\n".join(texts_in(parts))


def readable(text: str | None) -> str | None:
    """A text, unless it is encrypted."""
    return None if text is None or _CIPHER.fullmatch(text.strip()) else text
