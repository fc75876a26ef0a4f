"""What a trace must satisfy beyond the types of its fields."""

from collections.abc import Iterator, Sequence
from math import inf, isfinite
from typing import Any, Literal

from msgspec import Struct

from stretto.errors import did_you_mean
from stretto.trace import Decision, Event, Trace

Part = Literal["trace", "agent", "event", "edge", "score"]


class Problem(Struct, frozen=True):
    """One thing that is wrong with a trace."""

    part: Part
    index: int
    """Which record of that part, from 0."""
    field: str
    what: str
    hint: str = ""


def problems(trace: Trace) -> Iterator[Problem]:
    """All that is wrong: doubled ids, references to nowhere, decisions that do not add up.

    Loops are not wrong: imported graphs may have them, and what needs none says so.
    """
    agents = {agent.id for agent in trace.agents}
    events = {event.id for event in trace.events}
    yield from _doubled([agent.id for agent in trace.agents], "agent")
    yield from _doubled([event.id for event in trace.events], "event")
    for index, event in enumerate(trace.events):
        if event.agent not in agents:
            hint = did_you_mean(event.agent, agents) if agents else "declare it"
            yield Problem("event", index, "agent", f'no agent "{event.agent}"', hint)
        yield from _values(index, event)
        if event.decision is not None:
            yield from _decision(index, event.decision)
    yield from _dangling(trace, agents, events)
    for index, score in enumerate(trace.scores):
        if not isfinite(score.value):
            yield Problem("score", index, "value", f"{score.value} is no value", "leave it out")
    for index, agent in enumerate(trace.agents):
        yield from _finite_only(agent.attrs, "agent", index, "attrs")
    yield from _finite_only(trace.attrs, "trace", 0, "attrs")
    yield from _finite_only(trace.spec, "trace", 0, "spec")


def _doubled(names: Sequence[str], part: Part) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            yield Problem(part, index, "id", f'the id "{name}" is taken', "ids are unique")


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


def _dangling(trace: Trace, agents: set[str], events: set[str]) -> Iterator[Problem]:
    for index, edge in enumerate(trace.edges):
        for field, end in (("src", edge.src), ("dst", edge.dst)):
            if end not in events:
                yield Problem("edge", index, field, f'no event "{end}"', "an edge to nowhere")
    for index, score in enumerate(trace.scores):
        if score.agent is not None and score.agent not in agents:
            yield Problem("score", index, "agent", f'no agent "{score.agent}"')
        if score.event is not None and score.event not in events:
            yield Problem("score", index, "event", f'no event "{score.event}"')
    for lineage in trace.lineage:
        if lineage.event not in events:
            yield Problem("trace", 0, "lineage", f'no event "{lineage.event}"')
