"""Claude Code transcripts: tool calls with their results, and what the special ones say."""

import re
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct, field

from stretto.importers.claude_code_records import Block, Entry, Message, raw_text
from stretto.importers.claude_code_threads import Thread
from stretto.importers.claude_code_turns import Turn, blocks_of

SPAWN_TOOLS = ("Task", "Agent")
POLL_TOOLS = ("TaskOutput", "AgentOutputTool")
"""Tools that ask how a background agent fares."""
WAITING_TOOLS = (*POLL_TOOLS, "AskUserQuestion", "ExitPlanMode")
"""Tools whose time is spent waiting for an agent or a person: no work."""
DONE = ("completed", "success")


class Result(Struct, frozen=True):
    """What came back for a tool call."""

    position: int
    entry: Entry
    block: Block

    @property
    def text(self) -> str:
        """The readable part."""
        return raw_text(self.block.content)


class Call(Struct, frozen=True):
    """A tool call."""

    position: int
    entry: Entry
    turn: int
    """Which turn of the thread made it."""
    block: Block
    result: Result | None

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.block.name or "unknown"

    @property
    def is_spawn(self) -> bool:
        """Whether it starts (or goes on with) a sub-agent."""
        return self.name in SPAWN_TOOLS


class SpawnInput(Struct, frozen=True, gc=False):
    """What a sub-agent is asked."""

    prompt: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    name: str | None = None
    team_name: str | None = None
    model: str | None = None
    resume: str | None = None
    """Id of the agent that shall go on, instead of a new one."""


class SpawnResult(Struct, frozen=True, gc=False, rename="camel"):
    """What the harness says about a sub-agent that came back, or was started."""

    status: str | None = None
    is_async: bool | None = None
    agent_id: str | None = None
    teammate_id: str | None = field(default=None, name="agent_id")
    agent_type: str | None = None
    resolved_model: str | None = None
    content: Raw = Raw()
    total_duration_ms: float | None = None
    total_tokens: int | None = None
    total_tool_use_count: int | None = None


class MessageInput(Struct, frozen=True, gc=False):
    """A message to another agent."""

    to: str | None = None
    recipient: str | None = None
    message: str | Raw = ""
    content: str | Raw = ""
    type: str | None = None
    summary: str | None = None


class PollInput(Struct, frozen=True, gc=False):
    """Whom a poll asks about."""

    task_id: str | None = None
    agent_id: str | None = field(default=None, name="agentId")


def calls_of(thread: Thread, turns: Sequence[Turn]) -> tuple[list[Call], list[Result]]:
    """The tool calls of a thread in order, and the results that answer none of them."""
    made = [
        (position, entry, number, block)
        for number, turn in enumerate(turns)
        for position, entry, message in zip(
            turn.positions, turn.entries, turn.messages, strict=True
        )
        for block in blocks_of(message)
        if (block.type or "").endswith("tool_use")
    ]
    open_calls: dict[str, deque[int]] = {}
    for index, (_, _, _, block) in enumerate(made):
        open_calls.setdefault(block.id or "", deque()).append(index)
    answers: dict[int, Result] = {}
    orphans: list[Result] = []
    for result in _results(thread):
        waiting = open_calls.get(result.block.tool_use_id or "")
        if waiting:
            index = _pick(waiting, made, result)
            answers[index] = result
        else:
            orphans.append(result)
    calls = [Call(*made[index], answers.get(index)) for index in range(len(made))]
    return sorted(calls, key=lambda call: call.position), orphans


def _results(thread: Thread) -> list[Result]:
    return [
        Result(position, entry, block)
        for position, entry in enumerate(thread.entries)
        if isinstance(entry.record.message, Message)
        for block in blocks_of(entry.record.message)
        if block.tool_use_id is not None
    ]


def _pick(
    waiting: deque[int], made: Sequence[tuple[int, Entry, int, Block]], result: Result
) -> int:
    """The call that is answered: ids can be blotted out, then the caller's record decides."""
    caller = result.entry.record.source_assistant
    for index in waiting:
        if caller is not None and made[index][1].record.uuid == caller:
            waiting.remove(index)
            return index
    return waiting.popleft()


def input_of[T: Struct](call: Call, kind: type[T]) -> T:
    """The arguments of a call as one of the structs here; what does not fit is left out."""
    return _convert(call.block.input, kind)


def spawn_result(result: Result) -> SpawnResult:
    """What the record of a result says beside its text."""
    return _convert(result.entry.record.tool_use_result, SpawnResult)
