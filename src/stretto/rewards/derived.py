"""Channels that no source recorded, but that follow from the trace or from its task's oracle.

| channel | of | value | known for |
|---|---|---|---|
| `format` | team, agents | 1; 0 if a call failed or was refused, or anything invalid | who acted |
| `verifier` | events | 1 or 0 for a tool result that says whether somebody `passed` | any |
| `marginal` | agents | what the outcome owes to each | the families of `MARGINAL` |
| `judge` | agents | what was judged of a question and of its answer | `exam` |
| `serial_seconds` | team | seconds of the best serial plan | the families of `SERIAL` |

`format` is known of agents that decided or called, in a rollout of a task, or in an import that has
results of tools or something malformed. What is recorded on a channel counts alone; these are
computed only where it is not, and only when a reward asks.
"""

from collections.abc import Callable, Mapping
from typing import Any

from stretto.errors import StrettoError
from stretto.rewards import recorded
from stretto.rewards.recorded import failed
from stretto.tasks import build
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
    finds = MARGINAL.get(_family(trace))
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
    finds = SERIAL.get(_family(trace))
    try:
        return None if finds is None else finds(build(trace.spec))
    except StrettoError:
        return None


def _family(trace: Trace) -> str:
    return str(trace.spec.get("family", ""))


def _fanout_parts(task: Any, trace: Trace) -> Values:
    from stretto.tasks.games.fanout import agent_leave_one_out

    return agent_leave_one_out(task, trace)


def _gather_parts(task: Any, trace: Trace) -> Values:
    from stretto.tasks.gather.shapley import gather_shapley

    return gather_shapley(trace)


def _hops_parts(task: Any, trace: Trace) -> Values | None:
    """Where the question has one stage, and somebody has reported."""
    from stretto.tasks.nest.oracle import hops_values

    return hops_values(task, trace) or None


def _proxies_parts(task: Any, trace: Trace) -> Values:
    from stretto.tasks.games.proxies import agent_leave_one_out

    return agent_leave_one_out(task, trace)


def _repair_parts(task: Any, trace: Trace) -> Values:
    from stretto.tasks.repair.oracle import agent_values

    return agent_values(task, trace)


def _gather_seconds(task: Any) -> float:
    """The least reading that fills the table rightly, one document after another.

    Searching and writing are left out, so the speed-up is told too small, never too large.
    """
    from stretto.tasks.gather import instance_of
    from stretto.tasks.gather.oracle import optimal_reading

    return optimal_reading(instance_of(task), 1, task.harness.tools["read"].latency).seconds


def _hops_seconds(task: Any) -> float:
    from stretto.tasks.hops.oracle import work

    return work(task)


def _repair_seconds(task: Any) -> float:
    from stretto.tasks.repair import LIST_SECONDS
    from stretto.tasks.repair.oracle import work

    return LIST_SECONDS + work(task)


MARGINAL: Mapping[str, Callable[[Any, Trace], Values | None]] = {
    "fanout": _fanout_parts,
    "gather": _gather_parts,
    "hops": _hops_parts,
    "proxies": _proxies_parts,
    "repair": _repair_parts,
}
SERIAL: Mapping[str, Callable[[Any], float]] = {
    "gather": _gather_seconds,
    "hops": _hops_seconds,
    "repair": _repair_seconds,
}
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
