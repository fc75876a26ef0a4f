"""R6: what verifiers say, several of different kinds together, and what a debate brings.

A verifier is a channel that somebody recorded (a judge, tests, an agent's verdict) or a rule of
`RULES`, written `rule:NAME`. No model is ever called here. One verifier alone is hacked by
collusion: the policy learns what it likes. With the minimum or the median of several that fail in
different ways, all or most of them must be fooled at once.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from stretto.errors import StrettoError, did_you_mean
from stretto.rewards.derived import anywhere, of_events
from stretto.rewards.recorded import failed
from stretto.rewards.stream import Stream, end_of, final
from stretto.rewards.tool_use import answer_depends_on
from stretto.trace import Trace

PREFIX = "rule:"
COMBINE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "min": min,
}


def verifiers(
    trace: Trace, channels: tuple[str, ...] = ("verifier",), combine: str = "min"
) -> Stream | None:
    """The verdicts of several verifiers as one value, paid at the end.

    A channel's verdict is the team's score, else the mean over the agents or events it scored.
    `None` where any of them did not judge: the rest would be another verifier.

    Raises `StrettoError` for an unknown rule or way to combine, and where no channel is named.
    """
    if combine not in COMBINE:
        hint = did_you_mean(combine, COMBINE)
        raise StrettoError(f'no way to combine "{combine}"', "combine", hint)
    if not channels:
        hint = 'as in channels = ["judge", "rule:grounded"]'
        raise StrettoError("no verifier is named", "channels", hint)
    verdicts = [_verdict(trace, channel) for channel in channels]
    known = [verdict for verdict in verdicts if verdict is not None]
    return final(trace, COMBINE[combine](known)) if len(known) == len(verdicts) else None


def debate(trace: Trace, channel: str = "correct") -> Stream | None:
    """What each turn of a debate changed: its score minus that of its agent's turn before.

    The first turn of an agent earns nothing. The sum is the last minus the first score of every
    debater, divided by their number, so a longer debate earns no more by its length. `None` where
    no agent was scored twice.
    """
    values = of_events(trace, channel)
    before: dict[str, float] = {}
    debaters: set[str] = set()
    at = np.zeros(len(trace.events))
    for row, event in enumerate(trace.events):
        if event.id in values:
            if event.agent in before:
                at[row] = values[event.id] - before[event.agent]
                debaters.add(event.agent)
            before[event.agent] = values[event.id]
    return Stream(at / len(debaters), end=end_of(trace)) if debaters else None


def _verdict(trace: Trace, channel: str) -> float | None:
    if not channel.startswith(PREFIX):
        return anywhere(trace, channel)
    name = channel.removeprefix(PREFIX)
    if name not in RULES:
        raise StrettoError(f'no rule "{name}"', "channels", did_you_mean(name, RULES))
    return RULES[name](trace)


def answered(trace: Trace) -> float:
    """1 where somebody stopped."""
    return float(any(event.kind == "stop" for event in trace.events))


def grounded(trace: Trace) -> float | None:
    """1 where the answer depends on a tool result without an error; `None` without an answer."""
    used = answer_depends_on(trace)
    if used is None:
        return None
    results = [
        e for e, on in zip(trace.events, used, strict=True) if on and e.kind == "tool_result"
    ]
    return float(any(not failed(event) for event in results))


def no_failed_call(trace: Trace) -> float | None:
    """1 where no tool result is an error; `None` without results."""
    results = [event for event in trace.events if event.kind == "tool_result"]
    return float(not any(map(failed, results))) if results else None


def all_returned(trace: Trace) -> float | None:
    """1 where every spawned agent returned; `None` where none was spawned."""
    spawned = {event.to for event in trace.events if event.kind == "spawn"}
    returned = {event.agent for event in trace.events if event.kind == "return"}
    return float(spawned <= returned) if spawned else None


RULES: Mapping[str, Callable[[Trace], float | None]] = {
    "all_returned": all_returned,
    "answered": answered,
    "grounded": grounded,
    "no_failed_call": no_failed_call,
}
"""Rule predicates that judge any trace; 1 passes, 0 fails, `None` cannot tell."""
