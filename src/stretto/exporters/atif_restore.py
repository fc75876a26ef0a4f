"""The trace that Stretto wrote into an ATIF file, put together again from the `extra` fields.

| `extra` of | holds |
|---|---|
| the outermost trajectory | the header, `edges`, `texts` that stand nowhere else, `counts` |
| `agent` | the agent, and its place among the agents |
| a step, a call, a result | the event that it was made of, its place among the events |
| a step that no event made | what it is for |

The result of a spawn has none: what came back is an event of the agent that was spawned.

An event's text is the message, the arguments or the result beside it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from stretto.trace import Agent, Edge, Event, Header, Score, Trace, content_hash
from stretto.validate import problems


class _Extra(Struct):
    stretto: Event | str
    place: int = 0
    observed: str | None = None


class _Call(Struct):
    tool_call_id: str
    arguments: dict[str, Any]
    extra: _Extra


class _Result(Struct):
    source_call_id: str | None = None
    content: str | None = None
    extra: _Extra | None = None


class _Observation(Struct):
    results: list[_Result] = []


class _Step(Struct):
    message: str
    extra: _Extra
    reasoning_content: str | None = None
    tool_calls: list[_Call] = []
    observation: _Observation = msgspec.field(default_factory=_Observation)


class _AgentExtra(Struct):
    stretto: Agent
    place: int


class _AgentInfo(Struct):
    extra: _AgentExtra


class _Trajectory(Struct):
    agent: _AgentInfo
    steps: list[_Step]
    subagent_trajectories: list["_Trajectory"] = []


class _TraceExtra(Struct):
    stretto: Header
    edges: tuple[Edge, ...]
    texts: dict[str, str]
    counts: dict[str, int]


class _Scores(Struct):
    scores: tuple[Score, ...]


class _Metrics(Struct):
    extra: _Scores


class _Document(_Trajectory, kw_only=True):
    extra: _TraceExtra
    final_metrics: _Metrics


def from_stretto_extra(document: Any) -> Trace | None:
    """The trace of a trajectory; `None` where others added to it, or not all of it is there."""
    try:
        found = msgspec.convert(document, _Document)
        trace = _restored(found)
    except (msgspec.ValidationError, RecursionError):
        return None
    whole = counts(trace) == found.extra.counts
    own = all(_is_ours(step) for each in _trajectories(found) for step in each.steps)
    return trace if whole and own and not any(problems(trace)) else None


def counts(trace: Trace) -> dict[str, int]:
    """How many of each there are: what shows that some are missing."""
    parts = ("agents", "events", "edges", "scores", "contents")
    return {name: len(getattr(trace, name)) for name in parts}


def _is_ours(step: _Step) -> bool:
    """Whether no result was added or is gone: but for one a spawn, each carries an event."""
    events = ((call.tool_call_id, call.extra.stretto) for call in step.tool_calls)
    spawns = [
        name
        for name, event in events
        if isinstance(event, Event) and event.kind == "spawn" and event.to is not None
    ]
    bare = [each.source_call_id for each in step.observation.results if each.extra is None]
    return bare == spawns


def known_texts(document: Any, trace: Trace) -> dict[str, str]:
    """Texts of the trace, by hash, that stand in a trajectory word for word.

    Raises `msgspec.ValidationError` for one that Stretto did not write.
    """
    return _texts(msgspec.convert(document, _Trajectory), trace)


def _restored(document: _Document) -> Trace:
    header = {name: getattr(document.extra.stretto, name) for name in Header.__struct_fields__}
    agents: dict[int, Agent] = {}
    events: dict[int, Event] = {}
    for each in _trajectories(document):
        agents[each.agent.extra.place] = each.agent.extra.stretto
        for extra, _ in _parts(each):
            if isinstance(extra.stretto, Event):
                events[extra.place] = extra.stretto
    trace = Trace(
        **header,
        agents=tuple(agents[place] for place in sorted(agents)),
        events=tuple(events[place] for place in sorted(events)),
        edges=document.extra.edges,
        scores=document.final_metrics.extra.scores,
    )
    texts = _texts(document, trace) | document.extra.texts
    return msgspec.structs.replace(trace, contents=texts)


def _texts(document: _Trajectory, trace: Trace) -> dict[str, str]:
    wanted = {event.content for event in trace.events}
    wanted |= {event.decision.observation for event in trace.events if event.decision is not None}
    wanted |= {_named(event.attrs, "thinking") for event in trace.events}
    wanted |= {_named(agent.attrs, "system_prompt") for agent in trace.agents}
    said = (
        text
        for each in _trajectories(document)
        for extra, texts in _parts(each)
        for text in (extra.observed, *texts)
        if text
    )
    return {name: text for text in said if (name := content_hash(text)) in wanted}


def _named(attrs: dict[str, Any], name: str) -> str | None:
    value = attrs.get(name)
    return value if isinstance(value, str) else None


def _trajectories(document: _Trajectory) -> Iterator[_Trajectory]:
    """A trajectory and all inside it."""
    waiting = [document]
    for each in waiting:  # grows while it is read
        yield each
        waiting += each.subagent_trajectories


def _parts(trajectory: _Trajectory) -> Iterator[tuple[_Extra, tuple[str | None, ...]]]:
    """Everything that may carry an event, and the texts beside it."""
    for step in trajectory.steps:
        yield step.extra, (step.message, step.reasoning_content)
        for call in step.tool_calls:
            yield call.extra, tuple(_said(call.arguments))
        for result in step.observation.results:
            if result.extra is not None:
                yield result.extra, (result.content,)


def _said(arguments: dict[str, Any]) -> Iterator[str]:
    yield msgspec.json.encode(arguments).decode()
    yield from (text for text in arguments.values() if isinstance(text, str))
