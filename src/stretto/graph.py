"""Views of a trace as a graph: order, causal cones, critical path.

All of them run on the columns, in time linear in events and edges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stretto.columns import NONE, SEVERAL, Columns, Floats, Ints, Parents
from stretto.errors import StrettoError, short
from stretto.trace import Trace

MOST_NAMED = 12
"""Events of a loop that an error names."""


@dataclass(frozen=True)
class CriticalPath:
    """The chain of events that no team could have run faster, however wide."""

    seconds: float
    """Sum of the durations on the chain: the span of the trace."""
    rows: tuple[int, ...]
    """Event rows, first to last."""


def topological_order(trace: Trace) -> Ints:
    """Rows so that every cause stands before its effects.

    Raises `StrettoError` for a loop, and names it.
    """
    parents = trace.columns.parents
    target = parents.target
    if bool(np.all(parents.source < target)):  # record order is one already: the usual case
        return np.arange(len(trace.events))
    return _kahn(trace, parents)


def ancestors(trace: Trace, event: str) -> frozenset[str]:
    """Ids of all events that `event` depends on, without itself."""
    parents = trace.columns.parents
    return _reach(trace, event, parents.offsets, parents.source)


def cone(trace: Trace, event: str) -> frozenset[str]:
    """Ids of all events that depend on `event` (its causal cone), without itself."""
    offsets, target = children(trace.columns)
    return _reach(trace, event, offsets, target)


def children(columns: Columns) -> tuple[Ints, Ints]:
    """The effects of every event: `target[offsets[i]:offsets[i + 1]]` are those of row `i`."""
    effects = columns.parents.effects
    return effects.offsets, effects.target


def critical_path(trace: Trace, weight: Floats | None = None) -> CriticalPath:
    """The heaviest chain of causes: `CP(v) = w(v) + max CP(u)` over the causes `u` of `v`.

    Where an effect began before its cause had ended (a tool that starts while the turn still
    streams), the time that both ran counts once.
    The weight of an event is its duration in seconds (0 where unknown) unless `weight` gives one an
    event. Of several heaviest chains, one that ends last in the record is returned.
    """
    columns = trace.columns
    own = np.nan_to_num(columns.duration) if weight is None else weight
    beside = beside_time(columns.parents, columns.start, own)
    total, best = longest_chains(topological_order(trace), columns.parents, own, beside)
    if not len(total):
        return CriticalPath(0.0, ())
    rows = [len(total) - 1 - int(np.argmax(total[::-1]))]
    seconds = float(total[rows[0]])
    while best[rows[-1]] >= 0:
        rows.append(best[rows[-1]])
    return CriticalPath(seconds, tuple(reversed(rows)))


def beside_time(parents: Parents, begin: Floats, weight: Floats) -> Floats:
    """Seconds, for each edge, that the effect had begun before the weight of its cause was over."""
    left = begin[parents.source] + weight[parents.source] - begin[parents.target]
    return np.clip(np.nan_to_num(left), 0.0, weight[parents.source])


def longest_chains(
    order: Ints, parents: Parents, weight: Floats, beside: Floats
) -> tuple[Floats, list[int]]:
    """Heaviest chain that ends at each row, and the row before it (-1 for none).

    Most events have one cause; those take the short way through the loop.
    """
    walk = parents.walk
    alone = np.flatnonzero(walk.only >= 0)
    gain = weight.copy()
    gain[alone] -= beside[parents.offsets[alone]]
    total, best = [0.0] * len(weight), walk.only.tolist()
    gains: list[float] = gain.tolist()
    heaviest = _heaviest_cause(parents, total, beside)
    for row in order.tolist():
        before = best[row]
        if before >= 0:
            total[row] = gains[row] + total[before]
        elif before == NONE:
            total[row] = gains[row]
        else:
            longest, best[row] = heaviest(SEVERAL - before)
            total[row] = gains[row] + longest
    return np.array(total), best


def _heaviest_cause(
    parents: Parents, total: list[float], beside: Floats
) -> Callable[[int], tuple[float, int]]:
    """Finds the heaviest chain to the `k`-th row of several causes, and its cause.

    Of equals it is the last.
    """
    walk = parents.walk
    begins, source = walk.begins.tolist(), parents.source[walk.places].tolist()
    shared: list[float] = beside[walk.places].tolist()

    def heaviest(several: int) -> tuple[float, int]:
        longest, winner = 0.0, NONE
        for place in range(begins[several], begins[several + 1]):
            before = total[source[place]] - shared[place]
            if before >= longest:
                longest, winner = before, source[place]
        return longest, winner

    return heaviest


def _reach(trace: Trace, event: str, offsets: Ints, neighbour: Ints) -> frozenset[str]:
    start = trace.columns.row.get(event)
    if start is None:
        raise StrettoError(f'no event "{event}"', trace.id)
    seen = np.zeros(len(trace.events), dtype=bool)
    frontier = np.array([start])
    while len(frontier):
        spans = [neighbour[offsets[row] : offsets[row + 1]] for row in frontier]
        reached = np.unique(np.concatenate(spans))
        frontier = reached[~seen[reached]]
        seen[frontier] = True
    seen[start] = False
    return frozenset(trace.events[row].id for row in np.flatnonzero(seen))


def _kahn(trace: Trace, parents: Parents) -> Ints:
    offsets, target = (column.tolist() for column in children(trace.columns))
    missing: list[int] = np.diff(parents.offsets).tolist()
    order = [row for row, count in enumerate(missing) if not count]
    for row in order:  # grows while it is read
        for effect in target[offsets[row] : offsets[row + 1]]:
            missing[effect] -= 1
            if not missing[effect]:
                order.append(effect)
    if len(order) < len(missing):
        raise StrettoError(
            f"the events form a loop: {_name_loop(trace, missing)}",
            trace.id,
            "this needs a graph without loops",
        )
    return np.array(order, dtype=np.int64)


def _name_loop(trace: Trace, missing: Sequence[int]) -> str:
    """Walk backwards among the events that were never free until one comes up again."""
    parents = trace.columns.parents
    stuck = {row for row, count in enumerate(missing) if count}
    row, place = min(stuck), dict[int, int]()
    while row not in place:
        place[row] = len(place)
        causes = parents.source[parents.offsets[row] : parents.offsets[row + 1]].tolist()
        row = next(cause for cause in causes if cause in stuck)
    loop = [row, *reversed(list(place)[place[row] :])]
    names = [short(trace.events[each].id) for each in loop]
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 3 : -2] = [f"… {len(names) - MOST_NAMED + 1} more …"]
    return " → ".join(names)
