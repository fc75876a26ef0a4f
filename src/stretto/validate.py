"""What a trace must satisfy beyond the types of its fields.

The usual case, that nothing is wrong, is settled for all records at once; only where something is
does a loop look for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from math import inf, isfinite
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from stretto.errors import StrettoError, did_you_mean, short
from stretto.order import order_of
from stretto.trace import Agent, Decision, Event, Trace, content_hash

Part = Literal["trace", "agent", "event", "edge", "score", "content"]
_DIGEST = re.compile("[0-9a-f]{32}")


class Problem(Struct, frozen=True):
    """One thing that is wrong with a trace."""

    part: Part
    index: int
    """Which record of that part, from 0."""
    field: str
    what: str
    hint: str = ""


def problems(trace: Trace) -> Iterator[Problem]:
    """All that is wrong with a trace: contradictions, values that no file can hold, false hashes.

    Not wrong are loops of events: imported graphs may have them, and what needs none says so. Nor
    is a receiver (`Event.to`) that is no agent: sources name some that never act.
    """
    yield from contradictions(trace)
    yield from _unwritable(trace)
    yield from false_hashes(trace)


def false_hashes(trace: Trace) -> Iterator[Problem]:
    """Texts whose names are digests of ours, but not their own."""
    for index, (name, text) in enumerate(trace.contents.items()):
        if (problem := false_hash(index, name, text)) is not None:
            yield problem


def contradictions(trace: Trace) -> Iterator[Problem]:
    """What the types of a file's records leave open.

    Doubled ids, references to nowhere, agents that are their own ancestors, and decisions that do
    not add up.
    """
    agents = set(map(_ID, trace.agents))
    if len(agents) < len(trace.agents):
        yield from _doubled(trace.agents, "agent")
    yield from _families(trace.agents, agents)
    if not order_of(trace).unique:
        yield from _doubled(trace.events, "event")
    yield from _events(trace, agents)
    yield from _edges(trace)
    yield from _scores(trace, agents)


def dangling(trace: Trace) -> Iterator[Problem]:
    """Doubled ids of events, and edges to nowhere: all that a bare graph can have wrong."""
    if not order_of(trace).unique:
        yield from _doubled(trace.events, "event")
    yield from _edges(trace)


def require_valid(trace: Trace, where: str) -> None:
    """Raise `StrettoError` for the first thing that is wrong with a trace."""
    for problem in problems(trace):
        place = f"{where}: {problem.part} {problem.index}: {problem.field}"
        raise StrettoError(problem.what, place, problem.hint)


def find_loop(trace: Trace) -> str | None:
    """Say which events form a loop; `None` for a graph without any.

    Raises `StrettoError` for an edge whose end is no event.
    """
    if order_of(trace).forward:
        return None
    from stretto.graph import topological_order

    _ = trace.columns  # which an edge to nowhere cannot have
    try:
        topological_order(trace)
    except StrettoError as error:
        return error.what
    return None


def false_hash(index: int, name: str, text: str) -> Problem | None:
    """What is wrong with a text whose name is one of our digests, but not its own."""
    if not is_digest(name) or content_hash(text) == name:
        return None
    what = f'the text of "{name}" has another hash'
    return Problem("content", index, "text", what, "it was changed; drop it or hash it again")


def is_digest(name: str) -> bool:
    """Whether a content reference looks like one of our digests (see `content_hash`)."""
    return _DIGEST.fullmatch(name) is not None


_ID = attrgetter("id")


def _doubled(records: Sequence[Agent | Event], part: Part) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(map(_ID, records)):
        if first.setdefault(name, index) != index:
            yield Problem(part, index, "id", f'the id "{short(name)}" is taken', "ids are unique")


def _families(agents: Sequence[Agent], ids: Set[str]) -> Iterator[Problem]:
    """Parents that are no agents, and agents that descend from themselves."""
    parent = {agent.id: agent.parent for agent in agents if agent.parent is not None}
    rooted: set[str] = set()
    for index, agent in enumerate(agents):
        if agent.parent is not None and agent.parent not in ids:
            hint = did_you_mean(agent.parent, ids)
            yield Problem("agent", index, "parent", f'no agent "{agent.parent}"', hint)
        line: dict[str, None] = {}
        name: str | None = agent.id
        while name is not None and name not in rooted and name not in line:
            line[name] = None
            name = parent.get(name)
        if name in line:
            what = f"an agent that is its own ancestor: {_circle(line, name)}"
            yield Problem("agent", index, "parent", what, "parents form a tree")
        rooted.update(line)


def _circle(line: Mapping[str, None], name: str) -> str:
    names = list(line)
    return " → ".join([*names[names.index(name) :], name])


def _events(trace: Trace, agents: Set[str]) -> Iterator[Problem]:
    if not all(map(agents.__contains__, map(attrgetter("agent"), trace.events))):
        for index, event in enumerate(trace.events):
            if event.agent not in agents:
                hint = did_you_mean(event.agent, agents) if agents else "declare it"
                yield Problem("event", index, "agent", f'no agent "{event.agent}"', hint)
    for index, event in enumerate(trace.events):
        if event.decision is not None:
            yield from _decision(index, event.decision)


def _edges(trace: Trace) -> Iterator[Problem]:
    if order_of(trace).known:
        return
    events = set(map(_ID, trace.events))
    for index, edge in enumerate(trace.edges):
        for field, end in (("src", edge.src), ("dst", edge.dst)):
            if end not in events:
                yield Problem(
                    "edge", index, field, f'no event "{short(end)}"', "an edge to nowhere"
                )


def _scores(trace: Trace, agents: Set[str]) -> Iterator[Problem]:
    named = any([score.event is not None for score in trace.scores]) or trace.lineage
    events = set(map(_ID, trace.events)) if named else set[str]()
    for index, score in enumerate(trace.scores):
        if score.agent is not None and score.agent not in agents:
            yield Problem("score", index, "agent", f'no agent "{score.agent}"')
        if score.event is not None and score.event not in events:
            yield Problem("score", index, "event", f'no event "{score.event}"')
    for lineage in trace.lineage:
        if lineage.event not in events:
            yield Problem("trace", 0, "lineage", f'no event "{lineage.event}"')


def _unwritable(trace: Trace) -> Iterator[Problem]:
    for index, event in enumerate(trace.events):
        yield from _values(index, event)
    for index, score in enumerate(trace.scores):
        if not isfinite(score.value):
            yield Problem("score", index, "value", f"{score.value} is no value", "leave it out")
    for index, agent in enumerate(trace.agents):
        yield from _finite_only(agent.attrs, "agent", index, "attrs")
    yield from _finite_only(trace.attrs, "trace", 0, "attrs")
    yield from _finite_only(trace.spec, "trace", 0, "spec")


def _values(index: int, event: Event) -> Iterator[Problem]:
    """Numbers that JSON cannot hold, or that no reader would take."""
    for field in ("start", "duration", "price"):
        value: float | None = getattr(event, field)
        if value is not None and not 0 <= value < inf:
            yield Problem("event", index, field, f"{value} is neither 0 nor positive and finite")
    yield from _finite_only(event.attrs, "event", index, "attrs")


def _finite_only(attrs: dict[str, Any], part: Part, index: int, field: str) -> Iterator[Problem]:
    try:
        fine = not attrs or _finite(attrs)
    except RecursionError:
        yield Problem(part, index, field, "a value that is nested too deeply")
        return
    if not fine:
        yield Problem(part, index, field, "a number that is not finite", "leave it out")


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    return all(map(_finite, value)) if isinstance(value, (list, tuple)) else True


def _decision(index: int, decision: Decision) -> Iterator[Problem]:
    candidates, chosen = len(decision.candidates), decision.chosen
    if chosen is not None and chosen >= candidates:
        what = f"{chosen} is none of the {candidates} candidates"
        yield Problem("event", index, "decision.chosen", what)
    for field in ("logprobs", "completion_logprobs"):
        if not all(-inf < value <= 0 for value in getattr(decision, field)):
            what = "a log-probability that is not finite, or above 0"
            yield Problem("event", index, f"decision.{field}", what)
    if decision.logprobs and len(decision.logprobs) != candidates:
        what = f"{len(decision.logprobs)} log-probabilities for {candidates} candidates"
        yield Problem("event", index, "decision.logprobs", what)
    if decision.completion_logprobs and (
        len(decision.completion_logprobs) != len(decision.completion_ids)
    ):
        what = "as many log-probabilities as completion ids are needed"
        yield Problem("event", index, "decision.completion_logprobs", what)
