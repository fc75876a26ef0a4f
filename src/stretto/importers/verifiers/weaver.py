"""verifiers traces, stage two: the events and edges of an episode."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from stretto.importers.kit.fields import (
    count_at,
    epoch,
    flag_at,
    known,
    list_at,
    number_at,
    record_at,
    text_at,
)
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.strand import Strand, paths, trace_of
from stretto.importers.kit.texts import json_text, snake_case, text_of
from stretto.importers.verifiers.graph import MAIN, Graph, Link, graph_of, is_turn
from stretto.trace import Agent, Decision, Score, Tokens, Trace

LABEL = {"continuation": "temporal"}
"""Labels that mean one of ours."""
SENT = {"subagent_call": "spawn", "subagent_return": "return", "agent_message": "message"}
"""Labels of what has an event of its own, and the kind of that."""
Key = tuple[int, int]
"""A trace of the episode, and an agent in it."""


class _Lane(Struct):
    """One agent while its turns are added."""

    strand: Strand
    model: str | None = None


class Weaver:
    """Adds the messages of one episode."""

    def __init__(self, episode: dict[str, Any], source: Source) -> None:
        self.episode = episode
        self.source = source
        self.traces = [record_at(each) for each in list_at(episode, "traces")]
        self.graphs = [graph_of(trace) for trace in self.traces]
        self.skipped: Counter[str] = Counter()
        parents: dict[str, str | None] = {
            _name((number, key)): None if above is None else _name((number, above))
            for number, graph in enumerate(self.graphs)
            for key, above in graph.above.items()
        }
        self.paths = paths(parents)
        self.origin = epoch(min(self._times(), default=None))
        self.loom = Loom(self.origin)
        self.lanes = {name: _Lane(Strand(self.loom, path)) for name, path in self.paths.items()}
        self.numbers: dict[Key, int] = {}
        """Events of messages, by trace and node."""
        self.open: dict[tuple[str, str | None], int] = {}
        self.born: set[str] = set()
        self.woven: set[tuple[int, Link]] = set()

    def _times(self) -> Iterator[float]:
        for graph in self.graphs:
            starts = (number_at(call, "time", "start") for call in graph.calls.values())
            yield from (start for start in starts if start)

    def weave(self) -> Trace:
        """The trace of the episode."""
        for number, graph in enumerate(self.graphs):
            for turn in _in_order(graph):
                self._prompt(number, graph, turn)
                self._turn(number, graph, turn)
            self._rest(number, graph)
            self._direct(number, graph)
        agents = [
            self._agent(number, key)
            for number, graph in enumerate(self.graphs)
            for key in graph.above
        ]
        return trace_of(self.loom, agents, scores=tuple(self._scores()), **self._header())

    def _lane(self, number: int, graph: Graph, node: int) -> _Lane:
        return self.lanes[_name((number, graph.owner.get(node, MAIN)))]

    def _prompt(self, number: int, graph: Graph, turn: int) -> None:
        """Add the messages that a turn is the first to read."""
        path: list[int] = []
        place = graph.parent[turn]
        while place is not None and (number, place) not in self.numbers:
            if not is_turn(graph.nodes[place]):
                path.append(place)
            place = graph.parent[place]
        lane = self._lane(number, graph, turn)
        read = epoch(number_at(graph.calls.get(turn), "time", "start") or None)
        for node in reversed(path):
            self.numbers[number, node] = self._given(lane, graph.nodes[node], node, read)

    def _given(self, lane: _Lane, node: dict[str, Any], place: int, read: datetime | None) -> int:
        """A message that no model call made; it was there when it was read, at the latest."""
        message = record_at(node, "message")
        role = text_at(message, "role") or "unknown"
        content = self.loom.store(text_of(message.get("content")))
        attrs = _node_attrs(node, place)
        if role == "tool":
            name = text_at(message, "tool_call_id")
            call = self.open.pop((lane.strand.agent, name), None)
            tool = self.loom.drafts[call].event.tool if call is not None else None
            tool = tool or text_at(message, "name")
            return lane.strand.answer(
                call,
                read,
                self.source,
                tool=tool,
                content=content,
                attrs=attrs | known(tool_call_id=name),
            )
        is_task = role == "user" and "/" not in lane.strand.agent  # else a caller wrote it
        kind = "human" if is_task else role
        number = lane.strand.add(kind, read, self.source, content=content, attrs=attrs)
        lane.strand.hear(number, "causal")
        return number

    def _turn(self, number: int, graph: Graph, turn: int) -> None:
        lane, node = self._lane(number, graph, turn), graph.nodes[turn]
        call = record_at(graph.calls.get(turn))
        message = record_at(node, "message")
        tools = [record_at(each) for each in list_at(message, "tool_calls")]
        start = epoch(number_at(call, "time", "start") or None)
        end = epoch(number_at(call, "time", "end") or None)
        model = text_at(call, "model")
        lane.model = lane.model or model
        cost = number_at(call, "usage", "cost")
        self._arrivals(number, graph, graph.incoming.get(turn, ()))
        made = lane.strand.turn(
            start,
            self.source,
            duration=(end - start).total_seconds() if start and end and end >= start else None,
            tokens=_tokens(call, node),
            price=cost if cost is not None and cost >= 0 else None,
            content=self.loom.store(text_of(message.get("content"))),
            decision=self._decision(graph, turn, node, tools),
            attrs=_turn_attrs(call, node, turn)
            | known(model=model if model != lane.model else None),
        )
        self.numbers[number, turn] = made
        for tool in tools:
            self._call(lane, tool, end, graph, turn)

    def _call(
        self, lane: _Lane, tool: dict[str, Any], time: datetime | None, graph: Graph, turn: int
    ) -> None:
        space, name = text_at(tool, "namespace"), text_at(tool, "name")
        answered = graph.read_at.get((turn, text_at(tool, "id")))
        until = epoch(number_at(graph.calls.get(answered or -1), "time", "start") or None)
        known_times = time is not None and until is not None and until >= time
        number = lane.strand.act(
            "tool_call",
            time,
            self.source,
            tool=f"{space}.{name}" if space and name else name,
            duration=(until - time).total_seconds() if known_times and until and time else None,
            content=self.loom.store(json_text(tool.get("arguments", ""))),
            attrs=known(tool_call_id=text_at(tool, "id")),
        )
        self.open[lane.strand.agent, text_at(tool, "id")] = number

    def _decision(
        self, graph: Graph, turn: int, node: dict[str, Any], tools: Sequence[Any]
    ) -> Decision:
        sampled = _ids(node, sampled=True)
        logprobs = [number_at(each) for each in list_at(node, "logprobs")]
        certain = tuple(each for each in logprobs if each is not None and each <= 0)
        return Decision(
            type=_type(graph, turn, tools),
            completion_ids=sampled,
            completion_logprobs=certain if len(certain) == len(sampled) else (),
        )

    def _arrivals(self, number: int, graph: Graph, links: Sequence[Link]) -> None:
        """Add what other turns sent to this one, before it reads it."""
        for link in links:
            src = self.numbers.get((number, link.src))
            if src is None or link.label not in SENT:
                continue
            self.woven.add((number, link))
            sender, reader = (self._lane(number, graph, each) for each in (link.src, link.dst))
            time = epoch(number_at(graph.calls.get(link.src), "time", "end") or None)
            kind = self._kind(link.label, sender, reader)
            said = self._asked(number, graph, link) if kind in ("spawn", "delegate") else src
            made = sender.strand.add(
                kind, time, self.source, to=reader.strand.agent, content=self._said(said)
            )
            self.loom.link(src, made, "causal")
            label = {"delegate": "message"}.get(kind, kind)
            reader.strand.hear(made, label, "recorded")

    def _asked(self, number: int, graph: Graph, link: Link) -> int | None:
        """The message with which a sub-agent is called: the last before its turn."""
        place = graph.parent[link.dst]
        given = place is not None and not is_turn(graph.nodes[place])
        return self.numbers.get((number, place)) if given and place is not None else None

    def _said(self, number: int | None) -> str | None:
        return None if number is None else self.loom.drafts[number].event.content

    def _kind(self, label: str, sender: _Lane, reader: _Lane) -> str:
        if label == "subagent_call":
            new = reader.strand.agent not in self.born and reader is not sender
            self.born.add(reader.strand.agent)
            return "spawn" if new else "delegate"
        return SENT[label]

    def _rest(self, number: int, graph: Graph) -> None:
        """Messages that no turn has read."""
        for node, record in enumerate(graph.nodes):
            if (number, node) not in self.numbers and record:
                lane = self._lane(number, graph, graph.reader.get(node, node))
                self.numbers[number, node] = self._given(lane, record, node, None)

    def _direct(self, number: int, graph: Graph) -> None:
        """Links without an event of their own, and those that point back in time."""
        for link in graph.links:
            src, dst = self.numbers.get((number, link.src)), self.numbers.get((number, link.dst))
            if src is None or dst is None:
                self.skipped[f"link/{link.label}"] += 1
                continue
            if link.label == "subagent_cancel":
                self._cancel(number, graph, link, src)
            if (number, link) in self.woven:
                continue
            self.loom.link(src, dst, LABEL.get(link.label, link.label))

    def _cancel(self, number: int, graph: Graph, link: Link, src: int) -> None:
        lane, child = (self._lane(number, graph, each) for each in (link.src, link.dst))
        time = epoch(number_at(graph.calls.get(link.src), "time", "end") or None)
        made = lane.strand.add("despawn", time, self.source, to=child.strand.agent)
        self.loom.link(src, made, "causal")

    def _agent(self, number: int, key: int) -> Agent:
        trace, path = self.traces[number], self.paths[_name((number, key))]
        own = key == MAIN
        attrs = known(
            trace_id=text_at(trace, "id"),
            trainable=flag_at(trace, "agent", "trainable") if own else None,
            stop_condition=text_at(trace, "stop_condition") if own else None,
            error=_error(trace) if own else None,
            first_node=None if own else key,
        )
        return Agent(
            id=path,
            role=text_at(trace, "agent", "name") if own else None,
            parent=path.rpartition("/")[0] or None,
            name=text_at(trace, "agent", "name") if own else None,
            model=self.lanes[_name((number, key))].model,
            attrs=attrs,
        )

    def _scores(self) -> Iterator[Score]:
        """Rewards and metrics: of the team where there is one trace, else of its agents."""
        for number, trace in enumerate(self.traces):
            agent = self.paths[_name((number, MAIN))] if len(self.traces) > 1 else None
            rewards = record_at(trace, "rewards")
            for name, reward in rewards.items():
                value = number_at(reward, "score")
                if value is not None:
                    yield Score(channel=snake_case(name), value=value, agent=agent)
            for name in record_at(trace, "metrics"):
                value = number_at(trace, "metrics", name)
                if value is not None:
                    yield Score(channel=snake_case(name), value=value, kind="metric", agent=agent)

    def _header(self) -> dict[str, Any]:
        episode, first = self.episode, self.traces[0] if self.traces else {}
        version = text_at(first, "verifiers", "version")
        weights = {
            name: weight
            for trace in self.traces
            for name, reward in record_at(trace, "rewards").items()
            if (weight := number_at(reward, "weight")) not in (None, 1.0)
        }
        attrs = known(
            format="verifiers",
            started=self.origin.isoformat() if self.origin else None,
            env=text_at(episode, "env", "id"),
            group=text_at(episode, "group", "id"),
            run=text_at(episode, "run", "id"),
            ok=flag_at(episode, "ok"),
            is_timeout=flag_at(episode, "is_timeout") or None,
            error=_error(episode),
            stop_condition=text_at(first, "stop_condition") if len(self.traces) == 1 else None,
            reward_weights=weights or None,
            evidence={"decision.duration": "recorded", "tool_call.duration": "derived"},
        )
        task = record_at(episode, "task")
        named = text_at(task, "key") or text_at(task, "hash") or text_at(task, "type")
        return {
            "id": text_at(episode, "id") or text_at(first, "id") or str(self.source),
            "task": named or "unknown",
            "system": f"verifiers {version}" if version else "verifiers",
            "attrs": attrs,
        }


def _name(key: Key) -> str:
    return f"{key[0]}:{key[1]}"


def _in_order(graph: Graph) -> list[int]:
    """Turns by the start of their call; one without a time keeps its place."""
    turns = [number for number, node in enumerate(graph.nodes) if is_turn(node)]
    latest = 0.0
    when: dict[int, float] = {}
    for turn in turns:
        start = number_at(graph.calls.get(turn), "time", "start")
        latest = start if start else latest
        when[turn] = latest
    return sorted(turns, key=lambda turn: (when[turn], turn))


def _type(graph: Graph, turn: int, tools: Sequence[Any]) -> str:
    sent = graph.sent.get(turn, ())
    if "subagent_call" in sent:
        return "spawn"
    if "agent_message" in sent:
        return "communicate"
    return "stop" if turn in graph.last and not tools else "act"


def _tokens(call: dict[str, Any], node: dict[str, Any]) -> Tokens | None:
    usage = record_at(call, "usage")
    prompt, output = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
    if prompt is None and output is None:
        mask = list_at(node, "mask")
        return Tokens(output=sum(each is True for each in mask)) if mask else None
    return Tokens(input=prompt, output=output, cache_read=count_at(usage, "cached_input_tokens"))


def _node_attrs(node: dict[str, Any], place: int) -> dict[str, Any]:
    """Where a message stands, and the tokens that it adds to those before it."""
    ids = list(_ids(node, sampled=False)) or None
    return known(node=place, parent=count_at(node, "parent"), token_ids=ids)


def _ids(node: dict[str, Any], sampled: bool) -> tuple[int, ...]:
    """The token ids of a message that were sampled, or the others; none where any is odd."""
    ids, mask = list_at(node, "token_ids"), list_at(node, "mask")
    if len(ids) != len(mask) or not all(type(each) is int and each >= 0 for each in ids):
        return ()
    return tuple(each for each, own in zip(ids, mask, strict=True) if (own is True) == sampled)


def _turn_attrs(call: dict[str, Any], node: dict[str, Any], place: int) -> dict[str, Any]:
    attrs = _node_attrs(node, place)
    links = [
        {"node": link["node"], "type": link["type"]}
        for link in list_at(node, "semantic_parents")
        if text_at(link, "type") and count_at(link, "node") is not None
    ]
    advantages = [number_at(each) for each in list_at(node, "advantages")]
    return attrs | known(
        scaffold_ids=attrs.pop("token_ids", None),
        semantic_parents=links or None,
        advantages=advantages if advantages and None not in advantages else None,
        reasoning=text_at(node, "message", "reasoning_content"),
        finish_reason=text_at(call, "finish_reason"),
        request_id=text_at(call, "acp", "request_id"),
        error=text_at(call, "error", "message"),
    )


def _error(record: dict[str, Any]) -> str | None:
    errors = list_at(record, "errors")
    return text_at(errors[-1], "message") or text_at(errors[-1], "type") if errors else None
