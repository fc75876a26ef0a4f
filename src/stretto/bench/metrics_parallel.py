"""E2: how much faster a team was, against optimal plans (benchmark-and-safety §4)."""

from collections.abc import Sequence

import numpy as np

from stretto.bench.facts import Brought
from stretto.bench.truth import Plans
from stretto.columns import Floats, Ints
from stretto.metrics.critical import critical
from stretto.metrics.intervals import activities
from stretto.metrics.parallelism import parallelism as own_parallelism
from stretto.metrics.siblings import siblings
from stretto.trace import Trace

Values = dict[str, float | None]


def parallel(
    trace: Trace, found: Sequence[Brought], plans: Plans, serial: float | None, solved: bool
) -> Values:
    """Makespan, work, span, and how near they come to the optimum.

    Args:
        trace: The episode.
        found: What its tool results brought.
        plans: How fast the instance can be solved.
        serial: `T*_serial` where the family has no exact one: the time of its serial script.
        solved: Whether it solved the task; who did not is neither fast nor slow.

    - `speedup = T*_serial / T_P`, `own_parallelism = T_1 / T_P`
    - `optimality = T*_P / T_P` where the family knows `T*_P`, else `max(T_∞, T_1 / P) / T_P`
    - `pseudo = 1 - T_1ᵘ / T_1`, `utilisation = T_1ᵘ / (P · T_P)`: `T_1ᵘ` is the time of tool calls
      that were the first to bring a fact or a step that the outcome needs, and of all turns
    """
    work = activities(trace.columns)
    times = own_parallelism(trace, work)
    elapsed, total = times["makespan"].value, times["work"].value
    chain = critical(trace, work, times["work"])["span"].value
    useful = useful_seconds(trace, found)
    columns = trace.columns
    busy = len(np.unique(columns.agent[np.nan_to_num(work.work) > 0]))
    least = best_serial(plans, serial)
    groups = siblings(trace, work)
    return {
        "makespan": elapsed,
        "work": total,
        "span": chain,
        "own_parallelism": _ratio(total, elapsed),
        "speedup": _ratio(least or None, elapsed) if solved else None,
        "optimality": _optimality(plans, busy, elapsed, total, chain) if solved else None,
        "utilisation": _ratio(useful, None if elapsed is None else busy * elapsed),
        "pseudo": None if not total else 1 - useful / total,
        "critical_steps": groups["critical_steps"].value,
        "straggler": groups["straggler_ratio"].value,
        "workers": float(busy),
    }


def best_serial(plans: Plans, script: float | None) -> float | None:
    """`T*_serial`: exact where the family knows it, else the time of its serial script."""
    return plans.serial if plans.serial is not None else script


def useful_seconds(trace: Trace, found: Sequence[Brought]) -> float:
    """`T_1ᵘ`: seconds of turns, and of calls that brought a needed fact or step first.

    First in the order of the record, which is that of time.
    """
    columns = trace.columns
    known: set[object] = set()
    useful = columns.is_kind("decision")
    calls = _calls(trace)
    for each in found:
        new = (each.facts | each.steps) - known
        call = calls.get(each.event)
        if new and call is not None:
            useful[columns.row[call]] = True
        known |= new
    return _busy(columns.agent[useful], columns.start[useful], columns.duration[useful])


def _busy(agent: Ints, start: Floats, duration: Floats) -> float:
    """Seconds in which agents are busy: what one does at the same time counts once."""
    duration = np.nan_to_num(duration)
    order = np.lexsort((start, agent))
    total, last = 0.0, (-1, 0.0)
    for who, begin, end in zip(agent[order], start[order], (start + duration)[order], strict=True):
        until = last[1] if who == last[0] else begin
        total += max(0.0, end - max(begin, until))
        last = (who, max(end, until))
    return float(total)


def _calls(trace: Trace) -> dict[str, str]:
    """Tool result to its call."""
    kinds = {event.id: event.kind for event in trace.events}
    return {
        edge.dst: edge.src
        for edge in trace.edges
        if kinds[edge.src] == "tool_call" and kinds[edge.dst] == "tool_result"
    }


def _optimality(
    plans: Plans, busy: int, elapsed: float | None, total: float | None, chain: float | None
) -> float | None:
    if plans.parallel is not None:
        return _ratio(plans.parallel(max(busy, 1)), elapsed)
    if total is None or chain is None:
        return None
    return _ratio(max(chain, total / max(busy, 1)), elapsed)


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
