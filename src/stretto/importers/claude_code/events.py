"""Claude Code transcripts, stage two: turns, tool calls and human input as events.

Starts are what the source records. Durations are derived: a turn lasts from the newest record that
it answers to its last content block, a tool call from its record to that of its result. Blocks are
recorded while the model still streams, so a tool can begin before its turn has ended.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from msgspec import Struct

from stretto.importers.claude_code.calls import (
    SPAWN_TOOLS,
    WAITING_TOOLS,
    WORKFLOW_TOOL,
    Call,
    Result,
    owner_in,
)
from stretto.importers.claude_code.groups import LEADS
from stretto.importers.claude_code.mail import INTERRUPT, is_from_a_person
from stretto.importers.claude_code.queueing import waited
from stretto.importers.claude_code.records import Entry, Record
from stretto.importers.claude_code.threads import said
from stretto.importers.claude_code.tree import Node
from stretto.importers.claude_code.turns import Turn, hour_writes, side_calls, tokens_of
from stretto.importers.kit.fields import known
from stretto.importers.kit.loom import Loom
from stretto.trace import Decision

MESSAGE_TOOL = "SendMessage"

ENVELOPE = ("version", "cwd", "git_branch")
"""Fields that most records of a session share: they are kept once, as high up as they are true."""


class Lane(Struct):
    """One agent, and what has been made of its records so far."""

    node: Node
    turns: Sequence[Turn] = ()
    calls: Sequence[Call] = ()
    orphans: Sequence[Result] = ()
    """Results whose call is not there."""
    decisions: Sequence[int] = ()
    """The event of every turn."""
    firsts: Sequence[int] = ()
    """The place of the first record of every turn."""
    used: set[int] = set()
    """Places of the records that became events."""
    clock: Sequence[float] = ()
    """The newest time at every place, in seconds of the trace."""
    runs: Sequence[int] = ()
    """Places where it was told to do something."""
    waited: Mapping[int, float] = {}
    """By call: seconds of its duration in which it waited for the calls before it."""
    prompt: str | None = None
    """What it was asked first, where no spawn says it."""
    envelope: dict[str, list[str]] = {}
    """The values of each of these fields, in order of appearance."""

    @property
    def path(self) -> str:
        """Id of the agent."""
        return self.node.path

    @property
    def entries(self) -> Sequence[Entry]:
        """Its records."""
        return self.node.thread.entries if self.node.thread is not None else ()

    @property
    def is_main(self) -> bool:
        """Whether a person may speak to it."""
        return self.node.thread is not None and self.node.thread.source in ("main", "member")

    @property
    def model(self) -> str | None:
        """The first model that it called."""
        return next((turn.model for turn in self.turns if turn.model is not None), None)

    @property
    def is_root(self) -> bool:
        """Whether it is the session itself, which nobody spawned."""
        return self.node.thread is not None and self.node.thread.source == "main"

    @property
    def is_member(self) -> bool:
        """Whether it has a session of its own as a member of a team."""
        records = (entry.record for entry in self.entries if entry.record.team_name)
        name = next((record.agent_name for record in records if record.agent_name), None)
        return name is not None and name not in LEADS

    def reader(self, position: int) -> int | None:
        """The first turn that can have read the record at a place."""
        index = bisect_right(self.firsts, position)
        return self.decisions[index] if index < len(self.decisions) else None

    def place_at(self, seconds: float | None) -> float:
        """Where something stands that is only known by its time."""
        if not self.clock:
            return seconds or 0.0
        return len(self.clock) if seconds is None else bisect_right(self.clock, seconds) - 0.5

    def end_of_run(self, seconds: float | None) -> float:
        """Where the work ends that was under way at a time: it goes on until it is told more."""
        place = self.place_at(seconds)
        if not self.clock:
            return place
        index = bisect_right(self.runs, place)
        return (self.runs[index] if index < len(self.runs) else len(self.clock)) - 0.5


def make_lane(loom: Loom, node: Node, **parts: Any) -> Lane:
    """Start on an agent."""
    lane = Lane(node, **parts)
    lane.waited = waited(lane.calls)
    lane.firsts = [turn.positions[0] for turn in lane.turns]
    latest, clock = 0.0, []
    for entry in lane.entries:
        latest = max(latest, loom.seconds(entry.record.timestamp) or 0.0)
        clock.append(latest)
    lane.clock = clock
    lane.envelope = {name: _values(lane.entries, name) for name in ENVELOPE}
    lane.runs = [place for place, entry in enumerate(lane.entries) if _is_order(entry.record)]
    return lane


def _values(entries: Sequence[Entry], field: str) -> list[str]:
    found = dict.fromkeys([getattr(entry.record, field) for entry in entries])
    return [value for value in found if value is not None]


def _is_order(record: Record) -> bool:
    return record.type == "user" and not record.is_meta and bool(said(record))


def weave_turns(loom: Loom, lane: Lane, placeholders: bool) -> None:
    """Add a decision a turn, and the edges from each turn to the next.

    Args:
        loom: Takes the events.
        lane: The agent.
        placeholders: Whether counts of sampled tokens that are not final are distrusted.
    """
    made: dict[int, list[Call]] = {}
    for call in lane.calls:
        made.setdefault(call.turn, []).append(call)
    lane.decisions = [
        _decision(loom, lane, number, made.get(number, []), placeholders)
        for number in range(len(lane.turns))
    ]
    for before, after in pairwise(lane.decisions):
        loom.link(before, after, "temporal", "derived")


def _decision(
    loom: Loom, lane: Lane, number: int, calls: Sequence[Call], placeholders: bool
) -> int:
    turn = lane.turns[number]
    lane.used.update(turn.positions)
    times = [e.record.timestamp for e in turn.entries if e.record.timestamp is not None]
    asked = _asked(lane, number, times[0]) if times else None
    duration = (max(times) - asked).total_seconds() if asked is not None else None
    is_last = number == len(lane.turns) - 1 and not turn.is_synthetic
    return loom.add(
        lane.path,
        "decision",
        turn.positions[0],
        asked or (times[0] if times else None),
        turn.entries[0].source,
        duration=duration,
        content=loom.store("\n\n".join(b.text for b in turn.blocks if b.text)),
        decision=Decision(type=_decision_type(calls, is_last)),
        tokens=tokens_of(turn, placeholders),
        price=turn.price,
        attrs=_turn_attrs(loom, turn, lane),
    )


def _decision_type(calls: Sequence[Call], is_last: bool) -> str:
    tools = {call.name for call in calls}
    if not tools.isdisjoint((*SPAWN_TOOLS, WORKFLOW_TOOL)):
        return "spawn"
    if MESSAGE_TOOL in tools:
        return "communicate"
    if any(owner_in(call) for call in calls):
        return "delegate"
    return "stop" if is_last and not tools else "act"


def _asked(lane: Lane, number: int, first: datetime) -> datetime | None:
    """Time of the newest record that a turn answers; not after its own first block."""
    begin = lane.firsts[number - 1] + 1 if number else 0
    times = [
        entry.record.timestamp
        for entry in lane.entries[begin : lane.firsts[number]]
        if entry.record.timestamp is not None and _is_input(entry.record)
    ]
    return min(max(times), first) if times else None


def _is_input(record: Record) -> bool:
    queued = record.attachment is not None and record.attachment.type == "queued_command"
    return record.type == "user" or queued


def _turn_attrs(loom: Loom, turn: Turn, lane: Lane) -> dict[str, Any]:
    record = turn.entries[0].record
    return known(
        message_id=turn.id,
        request_id=record.request_id,
        uuid=record.uuid,
        stop_reason=turn.stop_reason,
        thinking=loom.store("\n\n".join(b.thinking for b in turn.blocks if b.thinking)),
        synthetic=turn.is_synthetic or None,
        side_calls=side_calls(turn) or None,
        model=turn.model if turn.model != lane.model else None,
        cache_write_1h=hour_writes(turn),
        **{name: getattr(record, name) for name, seen in lane.envelope.items() if len(seen) > 1},
    )


def weave_call(loom: Loom, lane: Lane, call: Call, kind: str = "tool_call", **fields: Any) -> int:
    """Add a tool call, or what is done by means of one."""
    attrs: dict[str, Any] = fields.pop("attrs", {})
    number = loom.add(
        lane.path,
        kind,
        call.position,
        call.entry.record.timestamp,
        call.entry.source,
        tool=call.name,
        attrs=known(tool_use_id=call.block.id) | attrs,
        **fields,
    )
    loom.link(lane.decisions[call.turn], number, "causal")
    return number


def weave_tool(loom: Loom, lane: Lane, call: Call) -> int:
    """Add an ordinary tool call."""
    waiting = True if call.name in WAITING_TOOLS else None
    text = bytes(call.block.input).decode("utf-8", "replace")
    return weave_call(
        loom,
        lane,
        call,
        duration=call.seconds,
        content=loom.store(text),
        attrs=known(waiting=waiting, waited=lane.waited.get(call.index)),
    )


def weave_result(
    loom: Loom,
    lane: Lane,
    result: Result,
    tool: str | None,
    cause: int | None,
    not_before: int = 0,
    **attrs: Any,
) -> int:
    """Add what a tool answered, and link it to the turn that reads it."""
    lane.used.add(result.position)
    place = max(result.position, not_before)
    record = result.entry.record
    error = True if result.block.is_error else None
    number = loom.add(
        lane.path,
        "tool_result",
        place,
        record.timestamp,
        result.entry.source,
        tool=tool,
        content=loom.store(result.text),
        attrs=known(
            tool_use_id=result.block.tool_use_id, uuid=record.uuid, is_error=error, **attrs
        ),
    )
    loom.link(cause, number, "tool_dependency")
    loom.link(number, lane.reader(place), "tool_dependency", "derived")
    return number


def weave_human(loom: Loom, lane: Lane, position: int, text: str) -> bool:
    """Add what a person typed; `False` where nobody did."""
    entry = lane.entries[position]
    if not lane.is_main or not is_from_a_person(entry.record, text):
        return False
    interrupt = True if text.startswith(INTERRUPT) else None
    number = loom.add(
        lane.path,
        "human",
        position,
        entry.record.timestamp,
        entry.source,
        content=loom.store(text),
        attrs=known(uuid=entry.record.uuid, interrupt=interrupt),
    )
    loom.link(number, lane.reader(position), "causal", "derived")
    lane.used.add(position)
    return True
