"""R7: how well the work was split, run side by side, and put together again.

PARL's `r_parallel` pays for spawning. What is meant is here: true speed-up against the *best serial
plan* (not against the team's own work, which grows with padding), shares without overlap, and
results that reach the answer. All but `split` are gated by the answer, or cannot be had without it.
"""

import numpy as np

from stretto.rewards.derived import of_events, of_team
from stretto.rewards.outcome import outcome
from stretto.rewards.ranges import Positive
from stretto.rewards.stream import Stream, end_of, final
from stretto.rewards.tool_use import answer_depends_on, arguments_of, calls_of
from stretto.trace import Trace


def speedup(trace: Trace, most: Positive = 8.0, channel: str = "serial_seconds") -> Stream | None:
    """`R · min(Sp, most) / most` with `Sp = best serial plan / makespan`, paid at the end.

    The seconds of the best serial plan are recorded on `channel`, or follow from the task, where
    it is one whose best plan Stretto computes. Without either, without an outcome and without
    times it is `None`. A fast failure earns nothing.
    """
    earned, serial = outcome(trace), of_team(trace, channel)
    seconds = end_of(trace)
    if earned is None or serial is None or not seconds:
        return None
    return final(trace, earned.total * min(serial / seconds, most) / most)


def split(trace: Trace, channel: str = "split") -> Stream | None:
    """How rightly the work was split, paid with each spawn: the mean of what `channel` says.

    Where no spawn was judged: the share of distinct (tool, arguments) that no two spawned agents
    both called, each spawn an equal part. That is no measure for tasks that ask for independent
    samples. `None` where fewer than two agents were spawned or none called with known arguments.
    """
    spawns = trace.columns.is_kind("spawn")
    if spawns.sum() < 2:
        return None
    judged = of_events(trace, channel)
    marked = np.array([event.id in judged for event in trace.events], dtype=bool) & spawns
    if marked.any():
        values = np.array([judged.get(event.id, 0.0) for event in trace.events])
        return Stream(values * marked / marked.sum(), end=end_of(trace))
    share = _own_pieces(trace)
    return None if share is None else Stream(spawns * share / spawns.sum(), end=end_of(trace))


def _own_pieces(trace: Trace) -> float | None:
    """Share of the pieces of work that one spawned agent alone did."""
    spawned = {event.to for event in trace.events if event.kind == "spawn"}
    workers: dict[tuple[str | None, str], set[str]] = {}
    for row in np.flatnonzero(calls_of(trace)).tolist():
        event = trace.events[row]
        said = arguments_of(trace, event)
        if event.agent in spawned and said is not None:
            workers.setdefault((event.tool, said), set()).add(event.agent)
    alone = sum(len(agents) == 1 for agents in workers.values())
    return alone / len(workers) if workers else None


def aggregation(trace: Trace, channel: str = "aggregation") -> Stream | None:
    """How well results were put together, paid at the end: the mean of what `channel` says.

    Where nothing was judged: the share of returns that the answer depends on, by the trace's edges.
    `None` without returns or without an answer.
    """
    judged = of_events(trace, channel)
    if judged:
        return final(trace, float(np.mean(list(judged.values()))))
    returns = trace.columns.is_kind("return")
    used = answer_depends_on(trace)
    if used is None or not returns.any():
        return None
    return final(trace, float((returns & used).sum() / returns.sum()))
