"""Episodes of verifiers (`traces.jsonl`, 0.4), as a target: for prime-rl and other trainers.

A turn becomes a sampled message; what it reads stands before it. What crosses between turns is a
semantic parent of the turn that reads it:

| here | there |
|---|---|
| `spawn`, `delegate` | `subagent_call` |
| `return` | `subagent_return` |
| `message` | `agent_message` |
| `despawn` | `subagent_cancel` on the last turn of who leaves |
| a `temporal` edge | `continuation` |
| any other edge between turns | its own label |

A `delegate` to an agent that nobody spawned is an `agent_message`, for a `subagent_call` would be a
spawn to verifiers. Agents that nobody spawned are traces of their own, unless edges run between
them. A trace that came from verifiers gets its messages, links and tokens back as they were.

What verifiers has no words for stands in `info.stretto` of the first trace (see
`verifiers_restore`), so that nothing is lost. Turns that it cannot train on, for the tokens of the
prompt are unknown, are counted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from stretto.exporters.output import Output
from stretto.exporters.remainder import thought_of
from stretto.exporters.timing import NANO, epoch
from stretto.exporters.verifiers_restore import remainder
from stretto.trace import Agent, Event, Score, Trace

SUFFIX = ".traces.jsonl"
ONE_FILE = True

LINK = {
    "spawn": "subagent_call",
    "delegate": "subagent_call",
    "return": "subagent_return",
    "message": "agent_message",
}
"""Kinds of events between two turns, and the label of the link that they become."""
ROLE = {"human": "user", "user": "user", "system": "system", "tool_result": "tool"}
UNPROMPTED = "turns with sampled tokens, but without those of the prompt"
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9._:-]{0,127}")

Json = dict[str, Any]
T = TypeVar("T")


def export(traces: Sequence[Trace]) -> Output:
    """One episode a line."""
    left_out: dict[str, int] = {}
    lines = [msgspec.json.encode(_episode(trace, left_out)) for trace in traces]
    return Output({"": b"\n".join(lines) + b"\n"}, left_out)


def _episode(trace: Trace, left_out: dict[str, int]) -> Json:
    families = _families(trace)
    task: Json = {"type": "Task", "data": {"id": trace.task}, "key": trace.task}
    group = trace.attrs.get("group")
    made = [
        _Conversation(trace, members, len(families) == 1, left_out).made(task)
        for members in families
    ]
    episode: Json = {
        "id": trace.id,
        "env": {"id": str(trace.attrs.get("env") or "")},
        "task": task,
        **({"group": {"id": group}} if isinstance(group, str) else {}),
        "ok": "error" not in trace.attrs,
        "errors": _errors(trace.attrs.get("error")),
        "traces": made,
    }
    held = {"stretto": remainder(trace, episode)}
    if made:
        made[0]["info"] = held
    else:
        episode["task"] = task | {"data": {"id": trace.task, **held}}
    return episode


def _errors(error: Any) -> list[Json]:
    return [] if error is None else [{"type": "Error", "message": str(error)}]


def _families(trace: Trace) -> list[list[Agent]]:
    """Agents with all that they spawned; those that edges join are one family."""
    parent = {agent.id: agent.parent for agent in trace.agents}
    leader = {agent.id: agent.id for agent in trace.agents}

    def lead(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    owner = {event.id: event.agent for event in trace.events}
    pairs = [(child, above) for child, above in parent.items() if above in leader]
    pairs += [(owner[edge.dst], owner[edge.src]) for edge in trace.edges]
    for one, other in pairs:
        leader[lead(one)] = lead(other)
    families: dict[str, list[Agent]] = {}
    for agent in trace.agents:
        families.setdefault(lead(agent.id), []).append(agent)
    return list(families.values())


class _Link(Struct):
    """A semantic parent, as an import keeps it."""

    node: int
    type: str


class _Node(Struct):
    """A message, and the event that it comes from."""

    record: Json
    event: Event


class _Conversation:
    """Makes one trace of verifiers from the events of a family."""

    def __init__(
        self, trace: Trace, members: Sequence[Agent], is_only: bool, left_out: dict[str, int]
    ) -> None:
        self.trace = trace
        self.members = members
        self.is_only = is_only
        self.left_out = left_out
        self.models = {agent.id: agent.model for agent in members}
        self.events = [event for event in trace.events if event.agent in self.models]
        self.by_id = {event.id: event for event in self.events}
        self.causes: dict[str, list[tuple[str, str]]] = {}
        self.effects: dict[str, list[str]] = {}
        for edge in trace.edges:
            if edge.src in self.by_id and edge.dst in self.by_id:
                self.causes.setdefault(edge.dst, []).append((edge.src, edge.label))
                self.effects.setdefault(edge.src, []).append(edge.dst)
        self.base = epoch(trace) / NANO
        self.tips: dict[str, int] = {}
        self.laid: dict[str, tuple[int, ...]] = {}
        """Token ids of every agent so far."""
        self.nodes: list[_Node] = []
        self.place: dict[str, int] = {}
        """Turns to their nodes."""
        self.doer: dict[str, int | None] = {}
        """Events to the nodes of the turns that did them."""
        spawns = [event for event in self.events if event.kind == "spawn"]
        self.born = {event.to for event in spawns}
        self.asked = {(e.agent, e.to): e.attrs.get("tool_call_id") for e in reversed(spawns)}
        """The tool call with which an agent first spawned another."""

    def made(self, task: Json) -> Json:
        """The trace."""
        stood = {event.id: _kept(event.attrs, "node", int, -1) for event in self.events}
        native = [event for event in self.events if stood[event.id] >= 0]
        if self.trace.attrs.get("format") == "verifiers" and native:
            self._restore(sorted(native, key=lambda event: stood[event.id]))
        else:
            for event in self.events:
                self._add(event)
            self._link()
        root = self.members[0]
        stop = root.attrs.get("stop_condition")
        return {
            "version": 1,
            "id": str(root.attrs.get("trace_id") or f"{self.trace.id}/{root.id}"),
            "verifiers": {"version": "0.4.0"},
            "task": task,
            "agent": {
                "config": {},
                "name": root.role or root.name or root.id,
                "trainable": root.attrs.get("trainable") is not False,
            },
            "nodes": [node.record for node in self.nodes],
            "calls": [self._model_call(event) for event in self.events if event.id in self.place],
            "rewards": dict(self._rewards()),
            "metrics": {s.channel: s.value for s in self._scores() if s.kind != "reward"},
            "is_completed": True,
            "ok": "error" not in self.trace.attrs,
            "errors": _errors(root.attrs.get("error")),
            **({"stop_condition": stop} if isinstance(stop, str) else {}),
        }

    def _restore(self, events: Sequence[Event]) -> None:
        """Messages as they stood in the trace that was read."""
        index = {event.attrs["node"]: place for place, event in enumerate(events)}
        for event in events:
            parent = index.get(_kept(event.attrs, "parent", int, -1))
            record = self._record(event, parent)
            links = _kept(event.attrs, "semantic_parents", list[_Link], [])
            record["semantic_parents"] = [
                {"node": index[link.node], "type": link.type}
                for link in links
                if link.node in index
            ]
            self._put(event, record, native=True)

    def _put(self, event: Event, record: Json, native: bool = False) -> None:
        if event.kind == "decision":
            self.place[event.id] = len(self.nodes)
            record |= {"sampled": True}
            record |= _tokens(event) if native else self._laid_out(event, record)
        elif native and (ids := _kept(event.attrs, "token_ids", list[int], [])):
            record |= {"token_ids": ids, "mask": [False] * len(ids)}
        if not native:
            self.tips[event.agent] = len(self.nodes)
        self.nodes.append(_Node(record, event))

    def _laid_out(self, event: Event, record: Json) -> Json:
        """Tokens of a turn after those of the turns before; where they differ, it is a root."""
        decision, before = event.decision, self.laid.get(event.agent, ())
        if decision is None or not decision.completion_ids:
            return {}
        if not decision.prompt_ids:
            self.left_out[UNPROMPTED] = self.left_out.get(UNPROMPTED, 0) + 1
            return {}
        if decision.prompt_ids[: len(before)] != before:
            record.pop("parent", None)
            before = ()
        scaffold, sampled = decision.prompt_ids[len(before) :], decision.completion_ids
        self.laid[event.agent] = decision.prompt_ids + sampled
        return {
            "token_ids": [*scaffold, *sampled],
            "mask": [False] * len(scaffold) + [True] * len(sampled),
            "logprobs": list(decision.completion_logprobs),
        }

    def _add(self, event: Event) -> None:
        if event.kind == "decision" or event.kind in ROLE:
            self._put(event, self._record(event, self.tips.get(event.agent)))
        elif event.kind in LINK:
            self._received(event)

    def _received(self, event: Event) -> None:
        """What another agent reads: a result where a tool brought it, else words of a user."""
        text = self.trace.text(event.content)
        if event.to is None or text is None or event.to not in self.models:
            return
        call = self.asked.get((event.to, event.agent)) if event.kind == "return" else None
        role: Json = {"role": "user"} if call is None else {"role": "tool", "tool_call_id": call}
        record = {"parent": self.tips.get(event.to), "message": {**role, "content": text}}
        self.tips[event.to] = len(self.nodes)
        self.nodes.append(_Node(record, event))

    def _record(self, event: Event, parent: int | None) -> Json:
        text = self.trace.text(event.content) or ""
        message: Json = {"role": ROLE.get(event.kind, "assistant"), "content": text}
        if event.kind == "decision":
            calls = list(self._calls(event))
            reasoning = thought_of(self.trace, event)
            message |= {"tool_calls": calls} if calls else {}
            message |= {"reasoning_content": reasoning} if isinstance(reasoning, str) else {}
        elif event.kind == "tool_result":
            message["tool_call_id"] = str(event.attrs.get("tool_call_id") or self._asked(event))
        elif event.kind not in ROLE:
            message["role"] = event.kind if event.kind == "assistant" else "user"
        return {**({} if parent is None else {"parent": parent}), "message": message}

    def _asked(self, event: Event) -> str:
        causes = (src for src, _ in self.causes.get(event.id, ()))
        return next((src for src in causes if self.by_id[src].kind == "tool_call"), event.id)

    def _calls(self, event: Event) -> Iterator[Json]:
        for name in self.effects.get(event.id, ()):
            effect = self.by_id[name]
            spawned = effect.kind == "spawn" and "tool_call_id" in effect.attrs
            if effect.kind == "tool_call" or spawned:
                yield {
                    "id": str(effect.attrs.get("tool_call_id") or effect.id),
                    "name": effect.tool or effect.kind,
                    "arguments": self.trace.text(effect.content) or "",
                }

    def _link(self) -> None:
        """Set the semantic parents of all turns."""
        self.doer |= self.place
        for name, place in self.place.items():
            links = dict.fromkeys(self._parents_of(name))
            found = [(node, label) for node, label in links if node != place]
            self.nodes[place].record["semantic_parents"] = [
                {"node": node, "type": label} for node, label in found
            ]
        last = {event.agent: event.id for event in self.events if event.kind == "decision"}
        for event in self.events:
            src, dst = self._cause(event.id), self.place.get(last.get(event.to or "", ""))
            if event.kind == "despawn" and src is not None and dst is not None and src != dst:
                link = {"node": src, "type": "subagent_cancel"}
                self.nodes[dst].record["semantic_parents"].append(link)

    def _parents_of(self, name: str) -> Iterator[tuple[int, str]]:
        for src, label in self.causes.get(name, ()):
            if src in self.place:
                known = "continuation" if label == "temporal" else label
                if _LABEL.fullmatch(known) is not None:
                    yield self.place[src], known
                continue
            event = self.by_id[src]
            node = self._cause(src) if event.kind in LINK else None
            if node is not None:
                yield node, self._link_of(event)

    def _link_of(self, event: Event) -> str:
        """The label of what was sent; to call an agent that nobody spawned would be to spawn it."""
        if event.kind == "delegate" and event.to not in self.born:
            return LINK["message"]
        return LINK[event.kind]

    def _cause(self, name: str) -> int | None:
        """The turn that did something, where need be by calling a tool or reading its result."""
        trail: dict[str, None] = {}
        place: str | None = name
        while place is not None and place not in self.doer and place not in trail:
            trail[place] = None
            place = self._before(place)
        found = self.doer.get(place) if place is not None else None
        self.doer |= dict.fromkeys(trail, found)
        return found

    def _before(self, name: str) -> str | None:
        """A turn that caused an event; where none did, what its agent did or read before."""
        causes = [src for src, _ in self.causes.get(name, ())]
        turns = (src for src in causes if src in self.place)
        agent = self.by_id[name].agent
        own = (src for src in causes if self.by_id[src].agent == agent)
        return next(turns, None) or next(own, None)

    def _model_call(self, event: Event) -> Json:
        call: Json = {"node": self.place[event.id]}
        model = event.model or self.models[event.agent]
        call |= {"model": model} if model is not None else {}
        if usage := _usage(event):
            call["usage"] = usage
        request = event.attrs.get("request_id")
        call |= {"acp": {"request_id": request}} if isinstance(request, str) else {}
        if event.start is not None and self.base:
            start = self.base + event.start
            call["time"] = {"start": start, "end": start + (event.duration or 0.0)}
        return call

    def _rewards(self) -> Iterable[tuple[str, Json]]:
        weights = _kept(self.trace.attrs, "reward_weights", dict[str, float], {})
        for score in self._scores():
            if score.kind == "reward":
                weight = weights.get(score.channel, 1.0)
                yield score.channel, {"score": score.value, "weight": weight}

    def _scores(self) -> Iterator[Score]:
        """The scores of the team where it is one family, and of the first agent of this one."""
        for score in self.trace.scores:
            own = score.agent == self.members[0].id or (score.agent is None and self.is_only)
            if score.event is None and own:
                yield score


def _tokens(event: Event) -> Json:
    """Token ids of a turn: what the template put before it, then what was sampled."""
    decision = event.decision
    before = _kept(event.attrs, "scaffold_ids", list[int], [])
    if decision is None or not (decision.completion_ids or before):
        return {}
    sampled = list(decision.completion_ids)
    advantages = _kept(event.attrs, "advantages", list[float], [])
    return {
        "token_ids": before + sampled,
        "mask": [False] * len(before) + [True] * len(sampled),
        "logprobs": list(decision.completion_logprobs),
        **({"advantages": advantages} if advantages else {}),
    }


def _usage(event: Event) -> Json:
    """What a turn cost; nothing where a count is unknown, or known to be wrong."""
    tokens = event.tokens
    if tokens is None or tokens.input is None or tokens.output is None or tokens.unreliable:
        return {}
    usage: Json = {
        "prompt_tokens": tokens.input + (tokens.cache_write or 0),
        "completion_tokens": tokens.output,
    }
    optional = {"cached_input_tokens": tokens.cache_read, "cost": event.price}
    return usage | {name: value for name, value in optional.items() if value is not None}


def _kept(attrs: Json, name: str, kind: type[T], instead: T) -> T:
    """What an import of verifiers kept under a name; of other imports it may be anything."""
    try:
        return msgspec.convert(attrs.get(name), kind)
    except msgspec.ValidationError:
        return instead
