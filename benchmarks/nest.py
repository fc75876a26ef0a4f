"""What an event of a nest costs, with everything that is exact about it.

    python benchmarks/nest.py [--json]

One process, pinned to one core where the system allows it. Times are processor seconds, which on an
idle core are seconds by the clock; every figure is the median of its repeats, on instances that are
made anew. All policies are scripted, and send what they can.

| column | what is timed |
|---|---|
| play | a whole rollout, with its instances |
| exact | optimum, Shapley and message values, blame, the best schedule, the time bound |
| measures | E1 from the trace, and all of `stretto.measure`: E2, E3 and E4 |

`exact` makes the instances anew, as who reads a stored trace must. The two goals: 300 agents and
4,000 events in under 3 seconds, all three columns together; and at 100,000 events no more than 1.5
times what an event costs at 1,000.
"""

import argparse
import gc
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import process_time
from typing import Any

from engine import pin

from stretto.metrics import measure
from stretto.tasks import gather, hops
from stretto.tasks.nest import Nest
from stretto.tasks.nest import oracle as nest_oracle
from stretto.tasks.nest.oracle import least_seconds
from stretto.tasks.nest.scripts import scripts
from stretto.team.engine import rollout

GATHER = {"family": "gather", "attributes": 4, "cells_per_document": 4}
INNER = (
    {**GATHER, "entities": 7, "workers": 14},
    {"family": "hops", "width": 8, "depth": 8, "worker_cost": 0.0},
    {**GATHER, "entities": 8, "workers": 16},
    {"family": "scouts", "width": 8},
)
"""Jobs of some 10 to 20 agents, and 200 events on average."""
JOBS = {"1k events": 4, "300 agents": 24, "10k events": 48, "100k events": 480}
"""Multiples of the number of templates, so that the mixture is always the same."""
CACHES = (gather.instance_of, gather._index, hops._drawn, hops.necessary_facts)
ABREAST = 8
"""Fewer than jobs, so that there is a schedule to search for."""
REPEATS = 5


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    agents: int
    events: int
    play: float
    """Seconds, as the two below."""
    exact: float
    measures: float
    optimality: float
    """Outcome over the optimum."""
    certified: bool
    """Whether the best schedule is proved to be the best."""

    @property
    def total(self) -> float:
        """All seconds."""
        return self.play + self.exact + self.measures

    @property
    def microseconds(self) -> float:
        """Of the rollout, per event."""
        return self.play / self.events * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="What an event of a nest costs.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    core = pin()
    figures = run_all()
    if as_json:
        print(json.dumps({"core": core, "figures": [asdict(each) for each in figures]}, indent=2))
    else:
        show(figures, core)


def run_all() -> list[Figure]:
    """The sizes in turn, so that a busy moment hits all of them; the first round warms up."""
    runs: dict[str, list[Figure]] = {}
    for seed in range(REPEATS + 1):
        for name, jobs in JOBS.items():
            runs.setdefault(name, []).append(run(name, jobs, seed))
    return [middle(figures[1:]) for figures in runs.values()]


def run(name: str, jobs: int, seed: int) -> Figure:
    """Play one fresh nest and compute all that is exact about it."""
    task = Nest(inner=INNER, jobs=jobs, abreast=ABREAST, topology="centralized", seed=seed)
    policies = scripts(task)["oracle"]
    trace, play = timed(lambda: rollout(task, policies, [0])[0])
    for cache in CACHES:
        cache.cache_clear()
    (values, _), exact = timed(lambda: (nest_oracle.exact(task, trace), least_seconds(task)))
    _, measures = timed(lambda: measure(trace))
    agents, events = len(trace.agents), len(trace.events)
    reached = (trace.reward("outcome") or 0.0) / values.optimum
    certified = values.schedule.certified
    return Figure(name, agents, events, play, exact, measures, reached, certified)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the processor seconds that it takes."""
    gc.collect()
    start = process_time()
    result = work()
    return result, process_time() - start


def middle(figures: list[Figure]) -> Figure:
    """The median of every number; certified where all are."""
    name, agents, events, *numbers, certified = zip(
        *(asdict(each).values() for each in figures), strict=True
    )
    sizes = int(median(agents)), int(median(events))
    return Figure(name[0], *sizes, *map(median, numbers), all(certified))


def show(figures: list[Figure], core: int | None) -> None:
    """Print the table and the two goals."""
    heads = ("agents", "events", "play", "exact", "measures", "total", "µs/event", "optimality")
    print(f"{'':12}" + "".join(f"{head:>11}" for head in (*heads, "certified")))
    for row in figures:
        print(
            f"{row.name:12}{row.agents:>11}{row.events:>11}{row.play:>11.3f}{row.exact:>11.3f}"
            f"{row.measures:>11.3f}{row.total:>11.3f}{row.microseconds:>11.1f}{row.optimality:>11.4f}"
            f"{'yes' if row.certified else 'no':>11}"
        )
    small, team, _, large = figures
    print(f"300 agents: {team.total:.2f} s in all (goal: under 3)")
    for what in ("play", "total"):
        ratio = getattr(large, what) / large.events / (getattr(small, what) / small.events)
        print(f"100k against 1k, {what}: {ratio:.2f} times an event (goal: at most 1.5)")
    print("not pinned to a core" if core is None else f"on core {core}")


if __name__ == "__main__":
    main()
