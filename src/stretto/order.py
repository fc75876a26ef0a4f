"""Whether the ids of a trace are unique, its edges lead somewhere, and its causes come first.

There are two ways to know. A dict is the plain one; in a large trace it misses the processor's
cache at every look, so there all hashes are compared at once, if that does not cost more than it
spares: to import numpy takes as long as to look up half a million ids. So a process that has not
done so looks up as many first, trace by trace.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stretto.trace import Trace

if TYPE_CHECKING:
    from stretto.hashing import Ints

MANY, VERY_MANY = 20_000, 400_000
"""Events and edges of a large trace, where numpy is there already and where it is not; there those
count, too, that were looked up before."""


class Order(Struct, frozen=True):
    """What holds of a graph as a whole."""

    unique: bool
    """No two events have the same id."""
    known: bool
    """All ends of edges are events."""
    forward: bool
    """Both hold, and every cause is recorded before its effect."""


class Hashes(Struct, frozen=True):
    """Hashes of all ids, 64 bits each, batch by batch; equal for equal ids in one process."""

    event: list["Ints"] = field(default_factory=list)
    """Of the events."""
    end: list["Ints"] = field(default_factory=list)
    """Of the cause and the effect of every edge, in turns."""

    def add_events(self, ids: Sequence[str]) -> None:
        """Add the next events."""
        self.event.append(_hashed(ids))

    def add_edges(self, ends: Sequence[str]) -> None:
        """Add the next edges, each by its cause and its effect."""
        self.end.append(_hashed(ends))


class Spent(Struct):
    """What this process has looked up in dicts so far."""

    records: int = 0


SPENT = Spent()


def is_large(records: int) -> bool:
    """Whether hashes are faster for so many events and edges."""
    if "numpy" in sys.modules:
        return records >= MANY
    return records + SPENT.records >= VERY_MANY


def order_of(trace: Trace) -> Order:
    """The order of a trace; kept with it, as it never changes."""
    kept = vars(trace)
    if "_order" not in kept:
        large = is_large(len(trace.events) + len(trace.edges))
        keep_order(trace, by_hashes(hashes_of(trace)) if large else by_dict(trace))
    return kept["_order"]


def keep_order(trace: Trace, order: Order) -> None:
    """Keep the order of a trace with it, for `order_of`."""
    vars(trace)["_order"] = order


def by_dict(trace: Trace) -> Order:
    """Look up one end after another."""
    SPENT.records += len(trace.events) + len(trace.edges)
    row = {event.id: row for row, event in enumerate(trace.events)}
    unique = len(row) == len(trace.events)
    try:
        forward = all([row[edge.src] < row[edge.dst] for edge in trace.edges])
    except KeyError:
        return Order(unique, known=False, forward=False)
    return Order(unique, known=True, forward=unique and forward)


def by_hashes(hashes: Hashes) -> Order:
    """Look up all ends at once.

    Two ids that share a hash make `unique` false, so look closer then. An end that is no event
    passes for one in 10^14 times (for 100,000 events).
    """
    import numpy as np

    from stretto.hashing import UNKNOWN, find_rows

    event, end = (np.concatenate([np.empty(0, np.int64), *p]) for p in (hashes.event, hashes.end))
    rows = find_rows(event, end)
    source, target = rows[0::2], rows[1::2]
    known = bool((rows != UNKNOWN).all())
    ranked = np.sort(event)
    unique = bool((ranked[1:] != ranked[:-1]).all())
    return Order(unique, known, forward=unique and known and bool((source < target).all()))


def hashes_of(trace: Trace) -> Hashes:
    """The hashes of a trace that is there already."""
    from stretto.columns import BATCH

    hashes = Hashes()
    for begin in range(0, len(trace.events), BATCH):
        hashes.add_events([event.id for event in trace.events[begin : begin + BATCH]])
    for begin in range(0, len(trace.edges), BATCH):
        edges = trace.edges[begin : begin + BATCH]
        hashes.add_edges([end for edge in edges for end in (edge.src, edge.dst)])
    return hashes


def _hashed(ids: Sequence[str]) -> "Ints":
    from stretto.hashing import id_hashes

    return id_hashes(ids)
