"""The Agent Trajectory Interchange Format (ATIF 1.7, RFC 0001 of Harbor), as a target.

ATIF knows steps of one agent; a sub-agent is a trajectory inside that of its parent, named by a
reference in the observation of the call that spawned it. An agent's trajectory is made like this:

| event | becomes |
|---|---|
| `decision` | a step of the agent |
| `spawn`, `delegate`, `message`, `tool_call`, `return`, … | a tool call of the step under way |
| `tool_result` | a result in the observation of the step of its call |
| spawned with, written to by another | a step of the user |
| `human` | a step of the user |
| anything else | a step of the system |

What a turn thought is its `reasoning_content`; a system prompt is the first step, of the system.
The whole event stands in `extra.stretto` of what it became, what else there is in that of the
outermost trajectory (see `atif_restore`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from stretto.errors import StrettoError
from stretto.exporters.atif_restore import counts, known_texts
from stretto.exporters.output import Output
from stretto.exporters.remainder import event_texts, thought_of
from stretto.exporters.timing import epoch, nanoseconds
from stretto.trace import Agent, Event, Header, Trace

SUFFIX = ".atif.json"
ONE_FILE = False

VERSION = "ATIF-v1.7"
ACTIONS = ("spawn", "despawn", "delegate", "message", "tool_call", "return", "aggregate", "stop")
"""Kinds that an agent does by means of a turn."""
RECEIVED = ("spawn", "delegate", "message")
"""Kinds whose text is what another agent reads."""

Json = dict[str, Any]


def export(traces: Sequence[Trace]) -> Output:
    """One trace as a trajectory with its sub-agents' trajectories inside."""
    (trace,) = traces
    return Output({"": msgspec.json.encode(_root(trace)) + b"\n"})


def _root(trace: Trace) -> Json:
    facts = _gather(trace)
    roots = [agent for agent in trace.agents if agent.parent is None]
    if not roots:
        raise StrettoError("no agent to write a trajectory of", trace.id)
    made = {
        agent.id: _Trajectory(facts, agent, place).made()
        for place, agent in enumerate(trace.agents)
    }
    root = made[roots[0].id]
    for agent in trace.agents:
        inside = root if agent.parent is None else made[agent.parent]
        if made[agent.id] is not root:
            inside.setdefault("subagent_trajectories", []).append(made[agent.id])
    root["extra"] = _extra_of(trace, root)
    root["final_metrics"]["extra"] = {"scores": msgspec.to_builtins(trace.scores)}
    if len(roots) > 1:
        root["notes"] = f"{len(roots) - 1} of the sub-agents have no parent: agents side by side"
    return root


def _extra_of(trace: Trace, root: Json) -> Json:
    """What the format has no place for."""
    known = known_texts(root, trace)
    header = {name: getattr(trace, name) for name in Header.__struct_fields__}
    return {
        "stretto": msgspec.to_builtins(header),
        "edges": msgspec.to_builtins(trace.edges),
        "texts": {name: text for name, text in trace.contents.items() if name not in known},
        "counts": counts(trace),
    }


class _Facts(Struct, frozen=True):
    """What the trajectories of a trace need to know of each other."""

    trace: Trace
    epoch: int
    place: dict[str, int]
    """By event, its row."""
    parent: dict[str, str | None]
    lived: dict[str, list[Event]]
    """By agent, what it did and what it was told."""
    called: dict[str, str]
    """The call that a tool result answers."""
    returned: dict[str, str | None]
    """The text that an agent returned first."""


def _gather(trace: Trace) -> _Facts:
    lived: dict[str, list[Event]] = {agent.id: [] for agent in trace.agents}
    returned: dict[str, str | None] = {}
    for event in trace.events:
        lived[event.agent].append(event)
        if event.kind in RECEIVED and event.to in lived and event.to != event.agent:
            lived[event.to].append(event)
        if event.kind == "return":
            returned.setdefault(event.agent, trace.text(event.content))
    kinds = {event.id: event.kind for event in trace.events}
    called = {
        edge.dst: edge.src
        for edge in trace.edges
        if kinds[edge.dst] == "tool_result" and kinds[edge.src] in ACTIONS
    }
    return _Facts(
        trace,
        epoch(trace),
        {event.id: row for row, event in enumerate(trace.events)},
        {agent.id: agent.parent for agent in trace.agents},
        lived,
        called,
        returned,
    )


class _Call(Struct, frozen=True):
    """Where a tool call stands."""

    step: Json
    name: str


class _Trajectory:
    """Makes the trajectory of one agent; grows while its events are added."""

    def __init__(self, facts: _Facts, agent: Agent, place: int) -> None:
        self.facts = facts
        self.trace = facts.trace
        self.agent = agent
        self.place = place
        self.steps: list[Json] = []
        self.under_way: Json | None = None
        self.calls: dict[str, _Call] = {}

    def made(self) -> Json:
        """The trajectory."""
        named = self.agent.attrs.get("system_prompt")
        if isinstance(named, str) and (prompt := self.trace.text(named)):
            self._bare("system", prompt, "system_prompt")
        for event in self.facts.lived[self.agent.id]:
            if event.agent == self.agent.id:
                self._own(event)
            else:
                self._step("user", event)
        if not self.steps:  # the format requires one
            self._bare("system", "", "nothing happened")
        agent = self.agent
        optional = {"model_name": agent.model} if agent.model is not None else {}
        return {
            "schema_version": VERSION,
            "session_id": self.trace.id,
            "trajectory_id": agent.id,
            "agent": {
                "name": agent.name or agent.role or agent.id,
                "version": self.trace.system or "unknown",
                **optional,
                "extra": {"stretto": msgspec.to_builtins(agent), "place": self.place},
            },
            "steps": self.steps,
            "final_metrics": {"total_steps": len(self.steps)},
        }

    def _own(self, event: Event) -> None:
        if event.kind == "decision":
            self.under_way = self._step("agent", event)
            self.under_way["llm_call_count"] = 1
            if event.model is not None:
                self.under_way["model_name"] = event.model
            if thought := thought_of(self.trace, event):
                self.under_way["reasoning_content"] = thought
            if metrics := _metrics(event):
                self.under_way["metrics"] = metrics
        elif event.kind in ACTIONS:
            self._call(event)
        elif event.kind == "tool_result":
            self._result(event, self.calls.get(self.facts.called.get(event.id, "")))
        else:
            self._step("user" if event.kind == "human" else "system", event)

    def _step(self, source: str, event: Event) -> Json:
        step: Json = {"step_id": len(self.steps) + 1, "source": source}
        if (time := _timestamp(self.facts, event)) is not None:
            step["timestamp"] = time
        step |= {"message": self.trace.text(event.content) or "", "extra": self._extra(event)}
        self.steps.append(step)
        return step

    def _bare(self, source: str, message: str, why: str) -> Json:
        """A step that no event made."""
        step: Json = {"step_id": len(self.steps) + 1, "source": source, "message": message}
        self.steps.append(step | {"extra": {"stretto": why}})
        return self.steps[-1]

    def _current(self) -> Json:
        """The step that an action belongs to; before the first turn, one without a model call."""
        if self.under_way is None:
            self.under_way = self._bare("agent", "", "before the first turn")
            self.under_way["llm_call_count"] = 0
        return self.under_way

    def _call(self, event: Event) -> None:
        step = self._current()
        step.setdefault("tool_calls", []).append(
            {
                "tool_call_id": event.id,
                "function_name": event.tool or event.kind,
                "arguments": _arguments(self.trace, event),
                "extra": self._extra(event),
            }
        )
        self.calls[event.id] = _Call(step, event.id)
        if event.kind == "spawn" and event.to is not None:
            self._spawned(step, event, event.to)

    def _spawned(self, step: Json, event: Event, child: str) -> None:
        result: Json = {"source_call_id": event.id}
        if (text := self.facts.returned.get(child)) is not None:
            result["content"] = text
        if self.facts.parent.get(child) == self.agent.id:  # the only place where a reader looks
            result["subagent_trajectory_ref"] = [
                {"trajectory_id": child, "session_id": self.trace.id}
            ]
        _observe(step, result)

    def _result(self, event: Event, call: _Call | None) -> None:
        result: Json = {} if call is None else {"source_call_id": call.name}
        result |= {"content": self.trace.text(event.content), "extra": self._extra(event)}
        _observe(self._current() if call is None else call.step, result)

    def _extra(self, event: Event) -> Json:
        texts = event_texts(self.trace, event)
        observed = {"observed": texts["observed"]} if "observed" in texts else {}
        place = self.facts.place[event.id]
        return {"stretto": msgspec.to_builtins(event), "place": place, **observed}


def _observe(step: Json, result: Json) -> None:
    step.setdefault("observation", {"results": []})["results"].append(result)


def _timestamp(facts: _Facts, event: Event) -> str | None:
    if not facts.epoch or event.start is None:
        return None
    micros = (facts.epoch + nanoseconds(event.start, facts.trace.id)) // 1000
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat()


def _arguments(trace: Trace, event: Event) -> Json:
    text = trace.text(event.content)
    if event.kind == "tool_call":
        try:
            parsed = msgspec.json.decode(text or "")
        except msgspec.DecodeError:
            parsed = None
        return parsed if isinstance(parsed, dict) else _said(input=text)
    return _said(to=event.to, message=text)


def _said(**values: str | None) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _metrics(event: Event) -> Json:
    """What the turn cost; a count that is not to be trusted stands in `extra` of the step only."""
    tokens, decision = event.tokens, event.decision
    counts: dict[str, Any] = {"cost_usd": event.price}
    if tokens is not None:
        cached = (tokens.cache_read or 0) + (tokens.cache_write or 0)
        prompt = None if tokens.input is None else tokens.input + cached
        counts["prompt_tokens"] = None if set(tokens.unreliable) - {"output"} else prompt
        counts["completion_tokens"] = None if "output" in tokens.unreliable else tokens.output
        distrusted = "cache_read" in tokens.unreliable
        counts["cached_tokens"] = None if distrusted else tokens.cache_read
    if decision is not None:
        counts["prompt_token_ids"] = decision.prompt_ids or None
        counts["completion_token_ids"] = decision.completion_ids or None
        counts["logprobs"] = decision.completion_logprobs or None
    return {name: value for name, value in counts.items() if value is not None}
