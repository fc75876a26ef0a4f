"""Channels that no source recorded, but that follow from the trace or from its task's oracle.

| channel | of | value | known for |
|---|---|---|---|
| `format` | team, agents | 1; 0 if a call failed or was refused, or anything invalid | who acted |
| `verifier` | events | 1 or 0 for a tool result that says whether somebody `passed` | any |
| `marginal` | agents | what the outcome owes to each | the families of `MARGINAL` |
| `judge` | agents | what was judged of a question and of its answer | `exam` |
| `serial_seconds` | team | seconds of the best serial plan | the families of `SERIAL_BOUND` |

`format` is known of agents that decided or called, in a rollout of a task, or in an import that has
results of tools or something malformed. What is recorded on a channel counts alone; these are
computed only where it is not, and only when a reward asks. The families are listed in
`stretto.tasks.exact`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stretto.errors import StrettoError
from stretto.rewards import recorded
from stretto.rewards.recorded import failed
from stretto.tasks import build
from stretto.tasks.exact import MARGINAL, SERIAL_BOUND, exact_function
from stretto.trace import Event, Trace

Values = Mapping[str, float]
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
"""What reading attributes raises that a file has, but a task would not have written."""


def of_agents(trace: Trace, channel: str) -> Values:
    """Agent to its value on a channel: as recorded, else as it follows."""
    return recorded.of_agents(trace, channel) or _computed(AGENTS, trace, channel) or {}


def of_events(trace: Trace, channel: str) -> Values:
    """Event to its value on a channel: as recorded, else as it follows."""
    return recorded.of_events(trace, channel) or _computed(EVENTS, trace, channel) or {}


def of_team(trace: Trace, channel: str) -> float | None:
    """The team's value on a channel: as recorded, else as it follows."""
    known = recorded.of_team(trace, channel)
    return _computed(TEAM, trace, channel) if known is None else known


def anywhere(trace: Trace, channel: str) -> float | None:
    """The team's value, else the mean over agents or events; what is recorded comes first."""
    known = recorded.anywhere(trace, channel)
    return _computed(TEAM, trace, channel) if known is None else known


def _computed(table: Mapping[str, Callable[[Trace], Any]], trace: Trace, channel: str) -> Any:
    return table[channel](trace) if channel in table else None


def malformed(event: Event) -> bool:
    """Whether a call failed or was refused here, or what was said is marked as invalid."""
    return failed(event) or bool(event.attrs.get("refused") or event.attrs.get("invalid"))


def well_formed(trace: Trace) -> Values:
    """1 for every agent that acted without a malformed event, 0 for one with; others are unknown.

    Nobody is known in an import that records neither results of tools nor anything malformed.
    """
    broken = {event.agent for event in trace.events if malformed(event)}
    seen = bool(trace.spec or broken) or any(e.kind == "tool_result" for e in trace.events)
    acted = {event.agent for event in trace.events if event.kind in ("decision", "tool_call")}
    known = acted | broken if seen else set[str]()
    return {agent.id: float(agent.id not in broken) for agent in trace.agents if agent.id in known}


def all_well_formed(trace: Trace) -> float | None:
    """Whether that holds for all who acted; `None` where it is known of nobody."""
    return min(well_formed(trace).values(), default=None)


def verdicts(trace: Trace) -> Values:
    """What each tool result says that tells whether its agent `passed`."""
    return {
        event.id: float(event.attrs["passed"])
        for event in trace.events
        if event.kind == "tool_result" and isinstance(event.attrs.get("passed"), bool)
    }


def marginal(trace: Trace) -> Values | None:
    """What the outcome owes to every agent; 0 for one that the oracle does not name.

    Leave-one-out in the games, which is what SHARP computes, and exact Shapley values, which is
    what it is after, elsewhere. `None` for a family without such an oracle, for an episode without
    an outcome, and where the oracle cannot say: too many agents, two that wrote one cell, or a file
    with other attributes than the task writes.
    """
    finds = exact_function(MARGINAL, _family(trace))
    if finds is None or trace.reward("outcome") is None:
        return None
    try:
        found = finds(build(trace.spec), trace)
    except (StrettoError, *_UNREADABLE):
        return None
    return None if found is None else {agent.id: 0.0 for agent in trace.agents} | dict(found)


def judge(trace: Trace) -> Values | None:
    """What was judged in an exam; `None` elsewhere."""
    if _family(trace) != "exam":
        return None
    from stretto.tasks.games.exam import judged

    return judged(trace)


def serial_seconds(trace: Trace) -> float | None:
    """Seconds of the best serial plan; `None` for a family whose plan is not known."""
    finds = exact_function(SERIAL_BOUND, _family(trace))
    try:
        return None if finds is None else finds(build(trace.spec))
    except StrettoError:
        return None


def _family(trace: Trace) -> str:
    return str(trace.spec.get("family", ""))


AGENTS: Mapping[str, Callable[[Trace], Values | None]] = {
    "format": well_formed,
    "judge": judge,
    "marginal": marginal,
}
EVENTS: Mapping[str, Callable[[Trace], Values | None]] = {"verifier": verdicts}
TEAM: Mapping[str, Callable[[Trace], float | None]] = {
    "format": all_well_formed,
    "serial_seconds": serial_seconds,
}
