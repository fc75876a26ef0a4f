"""R5: tool calls are paid for what came of them (survey §6, Table 10; P6 of §11).

A bonus for calling is hacked by tool spam (`tool_calls` is that bonus, as the release of a paper or
a first recipe has it). `tool_use` conditions it on the downstream outcome: a call earns only where
the team's answer depends on it, it did not fail, it was not made before, and the answer is right.
"""

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from stretto.columns import Flags
from stretto.graph import ancestors
from stretto.rewards.derived import anywhere
from stretto.rewards.outcome import outcome
from stretto.rewards.ranges import Count
from stretto.rewards.recorded import failed
from stretto.rewards.stream import Stream, end_of, final
from stretto.trace import Event, Trace


def tool_use(trace: Trace, most: Count = 8) -> Stream | None:
    """The outcome's share of every useful call, paid with it: `R / max(most, calls)` each.

    Useful is a call that the last `stop` depends on, whose result is no error, and that does not
    repeat an earlier call of its agent to the same tool with the same arguments. So a call more
    than `most` takes from the others. `None` without an outcome, without calls, without a `stop`.
    """
    earned, calls = outcome(trace), calls_of(trace)
    used = answer_depends_on(trace)
    if earned is None or used is None or not calls.any():
        return None
    useful = calls & used & ~_repeated(trace, calls) & ~_broken(trace)
    share = earned.total / max(most, int(calls.sum()))
    return Stream(np.where(useful, share, 0.0), end=end_of(trace))


def tool_calls(trace: Trace, most: Count = 8) -> Stream | None:
    """Share of `most` calls that were made, whatever came of them: hacked by tool spam.

    Each call is paid an equal part of it. `None` without calls.
    """
    calls = calls_of(trace)
    if not calls.any():
        return None
    return Stream(calls / max(most, int(calls.sum())), end=end_of(trace))


def tool_format(trace: Trace, channel: str = "tool_format") -> Stream | None:
    """The score on `channel`; where there is none, the share of results that are no errors.

    `None` without a score and without results.
    """
    recorded = anywhere(trace, channel)
    if recorded is not None:
        return final(trace, recorded)
    results = [event for event in trace.events if event.kind == "tool_result"]
    if not results:
        return None
    return final(trace, 1 - sum(map(failed, results)) / len(results))


def used_tool(
    trace: Trace, tools: Annotated[tuple[str, ...], Meta(min_length=1)] = ("search",)
) -> Stream:
    """1 where one of `tools` was called at all, else 0."""
    return final(trace, float(any(e.kind == "tool_call" and e.tool in tools for e in trace.events)))


def calls_of(trace: Trace) -> Flags:
    """Mark the tool calls that do not just wait."""
    return trace.columns.is_kind("tool_call") & ~trace.columns.waiting


def answer_depends_on(trace: Trace) -> Flags | None:
    """Mark what the last `stop` depends on; `None` where nobody stopped."""
    stops = [event.id for event in trace.events if event.kind == "stop"]
    if not stops:
        return None
    before = ancestors(trace, stops[-1])
    return np.array([event.id in before for event in trace.events], dtype=bool)


def _repeated(trace: Trace, calls: Flags) -> Flags:
    """Mark calls that repeat one of their agent; one without known arguments repeats nothing."""
    seen: set[tuple[str, str | None, str]] = set()
    found = np.zeros(len(trace.events), dtype=bool)
    for row in np.flatnonzero(calls).tolist():
        event = trace.events[row]
        said = arguments_of(trace, event)
        if said is not None:
            found[row] = (event.agent, event.tool, said) in seen
            seen.add((event.agent, event.tool, said))
    return found


def arguments_of(trace: Trace, event: Event) -> str | None:
    """What a tool was asked, as something to compare; `None` where it is not known.

    An import has it as the content; in a rollout of our own the attributes are the arguments.
    """
    if event.content is not None or not trace.spec:
        return event.content
    return msgspec.json.encode(event.attrs, order="deterministic").decode()


def _broken(trace: Trace) -> Flags:
    """Mark the calls that were answered by an error."""
    errors = {event.id for event in trace.events if failed(event)}
    calls = {edge.src for edge in trace.edges if edge.dst in errors}
    return np.array([event.id in calls for event in trace.events], dtype=bool)
