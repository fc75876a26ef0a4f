"""Measures of a trace: pure functions to numbers that say how they are known."""

from collections.abc import Mapping

from stretto.metrics.breakdown import Row, breakdown
from stretto.metrics.collaboration import collaboration
from stretto.metrics.cost import cost
from stretto.metrics.critical import CriticalEvent, CriticalPath, critical, critical_path
from stretto.metrics.flow import untrusted_flow
from stretto.metrics.hacking import hacking
from stretto.metrics.intervals import activities
from stretto.metrics.measure import Measure
from stretto.metrics.overhead import overhead
from stretto.metrics.parallelism import parallelism
from stretto.metrics.prices import Price, Prices, load_prices
from stretto.metrics.redundancy import redundancy
from stretto.metrics.siblings import siblings
from stretto.metrics.structure import structure
from stretto.metrics.waits import waits
from stretto.trace import Trace

__all__ = [
    "CriticalEvent",
    "CriticalPath",
    "Measure",
    "Price",
    "Prices",
    "Row",
    "breakdown",
    "critical_path",
    "load_prices",
    "measure",
    "measure_by_group",
]


def measure(
    trace: Trace, *, baseline: Trace | str | None = None, prices: Prices | None = None
) -> dict[str, Measure]:
    """All measures of a trace by name; what cannot be known is `None` with the reason.

    `docs/measures.md` has every formula. What is by agent, role, kind, tool or event is a table:
    see `breakdown` and `critical_path`.

    Args:
        trace: Any trace; one whose causes form a loop lacks the measures that need a graph without.
        baseline: The same task done by a single agent, for overhead and speed-up; or why there is
            none.
        prices: A table of prices; the one that comes with Stretto where none is given.
    """
    groups = measure_by_group(trace, baseline=baseline, prices=prices)
    return {name: found for group in groups.values() for name, found in group.items()}


def measure_by_group(
    trace: Trace, *, baseline: Trace | str | None = None, prices: Prices | None = None
) -> Mapping[str, Mapping[str, Measure]]:
    """As `measure`, in the groups of a report: structure, E2, E3, E4 and hacking."""
    table = load_prices() if prices is None else prices
    work = activities(trace.columns)
    parallel = parallelism(trace, work)
    total = parallel["work"]
    return {
        "structure": structure(trace),
        "E2 parallelism": {
            **parallel,
            **critical(trace, work, total),
            **siblings(trace, work),
            **waits(trace, work),
        },
        "E3 collaboration": {
            **redundancy(trace),
            **collaboration(trace, work, total),
        },
        "E4 overhead": {
            **overhead(trace),
            **cost(trace, table, baseline),
            **untrusted_flow(trace),
        },
        "hacking": hacking(trace, work),
    }
