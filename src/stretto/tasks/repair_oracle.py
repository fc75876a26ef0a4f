"""The exact side of `repair`: what has to be repaired, how fast, and what each report is worth.

A job is a failing module: it is read, patched if it is faulty, and tested,

`p_m = read + edit·[m faulty] + tests_m`,

and waits for the jobs of all that it imports. The best schedule on identical workers
(P|prec|C_max) is found by a search over what is done and what runs for how long, with idle workers
where that helps. What repairs are worth is found by toggling faults one by one: the functions are
evaluated here, not in the sandbox, which gives the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, combinations
from math import ceil

import numpy as np
from msgspec import Struct

from stretto.errors import StrettoError
from stretto.tasks.games.coalitions import shapley
from stretto.tasks.gather_oracle import Makespan
from stretto.tasks.repair import EDIT_SECONDS, LIST_SECONDS, READ_SECONDS, Repair, instance_of
from stretto.tasks.repair_instance import HIDDEN, Instance, changed, overfitted
from stretto.team.state import ROOT
from stretto.trace import Event, Trace

UNIT = 0.5
"""Virtual seconds of which all jobs are multiples."""
MOST_JOBS = 24
"""Most jobs whose best schedule is searched for."""
SEARCH_STATES = 200_000
"""Most states that a search visits."""
MOST_PLAYERS = 12
"""Most agents whose Shapley values, and most faults whose toggles, are enumerated."""


class Blame(Struct, frozen=True):
    """Whose mistake was decisive."""

    agent: str
    event: str
    """Id of the event without whose error the package would be right."""


def jobs(task: Repair) -> dict[str, float]:
    """Failing module to the virtual seconds that one agent needs for it."""
    instance = instance_of(task)
    return {
        name: READ_SECONDS
        + (EDIT_SECONDS if name in instance.faulty else 0.0)
        + instance.modules[name].seconds
        for name in instance.failing
    }


def work(task: Repair) -> float:
    """Seconds of all jobs, one after the other: `T_1`."""
    return sum(jobs(task).values())


def span(task: Repair) -> float:
    """Seconds of the longest chain of jobs that wait for each other: `T_∞`."""
    lengths, before = _graph(task)
    return max(_tails(lengths, before)) * UNIT


def best_seconds(task: Repair, workers: int | None = None) -> float:
    """Virtual seconds from the first event to the end, if nobody makes a mistake.

    Raises `StrettoError` where the search for the best schedule does not end.
    """
    best = best_schedule(task, workers)
    if not best.certified:
        hint = "take fewer modules or more workers"
        raise StrettoError("the best schedule is not settled", task.id, hint)
    return LIST_SECONDS + best.value * UNIT


def best_schedule(task: Repair, workers: int | None = None) -> Makespan:
    """Shortest time for all jobs, in units of `UNIT`, by `workers` (the task's own number).

    Certified where list scheduling meets `max(T_∞, ⌈T_1 / P⌉)`, or else by search, up to
    `MOST_JOBS` jobs and `SEARCH_STATES` states.
    """
    lengths, before = _graph(task)
    return schedule(lengths, before, task.workers if workers is None else workers)


def schedule(lengths: Sequence[int], before: Sequence[Set[int]], workers: int) -> Makespan:
    """Shortest schedule of jobs with predecessors on identical workers: P|prec|C_max.

    `before` holds the numbers of the jobs that each waits for; they are smaller than its own.
    """
    if workers < 1 or any(length < 1 for length in lengths):
        raise StrettoError("workers and jobs must be positive", "schedule")
    if not lengths:
        return Makespan(0, certified=True)
    bound = max(max(_tails(lengths, before)), ceil(sum(lengths) / workers))
    upper = list_schedule(lengths, before, workers)
    if upper == bound or len(lengths) > MOST_JOBS:
        return Makespan(upper, certified=upper == bound)
    search = _Search(lengths, before, workers)
    found = search.rest(0, ())
    ended = search.states <= SEARCH_STATES
    return Makespan(found if ended else upper, certified=ended)


def list_schedule(lengths: Sequence[int], before: Sequence[Set[int]], workers: int) -> int:
    """Makespan of list scheduling: whoever is free takes the ready job with the longest chain."""
    tails = _tails(lengths, before)
    waiting, done = set(range(len(lengths))), set[int]()
    running: list[tuple[int, int]] = []
    now = 0
    while waiting or running:
        ready = sorted((j for j in waiting if before[j] <= done), key=lambda j: (-tails[j], j))
        for job in ready[: workers - len(running)]:
            running.append((now + lengths[job], job))
            waiting.remove(job)
        now = min(end for end, _ in running)
        done |= {job for end, job in running if end == now}
        running = [(end, job) for end, job in running if end > now]
    return now


def best_outcome(task: Repair) -> float:
    """Outcome of a team without mistakes of its own: 1, less what the planted fault spoils."""
    instance = instance_of(task)
    if task.fault != "edit":
        return 1.0
    culprit = instance.faulty[-1]
    sources = {name: instance.modules[name].right for name in instance.above[culprit]}
    wrong = _wrong(instance, {**sources, culprit: overfitted(sources[culprit])})
    return 1 - len(wrong.intersection(instance.failing)) / len(instance.failing)


def outcome_with(task: Repair, repaired: Set[str]) -> float:
    """Share of the failing modules that pass the hidden suite once these are repaired."""
    return _outcome(task, frozenset(repaired))


def needed_repairs(task: Repair, module: str) -> frozenset[str]:
    """A smallest set of faults whose repair makes a module pass its hidden suite.

    Exhaustive: one fault may hide another one. The first of them in the package's order is the
    decisive fault.

    Raises `StrettoError` for a module with more than `MOST_PLAYERS` faults below it.
    """
    instance = instance_of(task)
    below = [name for name in instance.closures[module] if name in instance.faulty]
    if len(below) > MOST_PLAYERS:
        what = f"{len(below)} faults are too many to toggle"
        raise StrettoError(what, module, f"at most {MOST_PLAYERS}")
    return next(
        frozenset(chosen) for chosen in _subsets(below) if module in _passing(instance, chosen)
    )


def report_values(task: Repair, trace: Trace) -> dict[str, float]:
    """Value of every report to the lead, by the id of its event.

    What is lost of the outcome if it alone does not arrive: the lead then sends nobody to what
    depends on the module. A report that says nothing, or of a failure, is worth 0.
    """
    instance = instance_of(task)
    faulty = frozenset(instance.faulty)
    found: dict[str, float] = {}
    for event in trace.events:
        if event.kind == "return" and event.to == ROOT:
            module: str = event.attrs.get("module", "")
            passes = event.attrs.get("passes") and module in instance.failing
            blocked = set(instance.above[module]) - {module} if passes else set[str]()
            found[event.id] = 1 - outcome_with(task, faulty - blocked)
    return found


def agent_values(task: Repair, trace: Trace) -> dict[str, float]:
    """Shapley value of every agent that repaired something, by enumeration of coalitions.

    A coalition is worth the outcome with its repairs alone.

    Raises `StrettoError` for more than `MOST_PLAYERS` such agents.
    """
    instance = instance_of(task)
    owners: dict[str, str] = {}
    for event in merged_edits(trace):
        module = event.attrs["module"]
        owners.pop(module, None)
        if event.attrs["written"] == instance.modules[module].right and module in instance.faulty:
            owners[module] = event.agent
    players = sorted(set(owners.values()))
    if len(players) > MOST_PLAYERS:
        what = f"{len(players)} agents are too many to enumerate"
        raise StrettoError(what, "agent_values", f"at most {MOST_PLAYERS}")
    game = [
        outcome_with(task, {m for m, owner in owners.items() if mask >> players.index(owner) & 1})
        for mask in range(1 << len(players))
    ]
    return dict(zip(players, shapley(np.array(game)).tolist(), strict=True))


def merge_conflicts(trace: Trace) -> int:
    """How many patches were refused because somebody else had changed the module meanwhile."""
    return sum(
        event.kind == "tool_result" and event.attrs.get("refused") == "conflict"
        for event in trace.events
    )


def merged_edits(trace: Trace) -> Iterator[Event]:
    """Results of the patches that were merged, in their order."""
    for event in trace.events:
        if (
            event.kind == "tool_result"
            and event.tool == "edit"
            and event.attrs.get("refused") == ""
        ):
            yield event


def blame(task: Repair, trace: Trace) -> Blame | None:
    """Whose patch went wrong by the planted fault, and in which event; `None` where none did.

    Exact: the visible suite does not tell, and with that one patch written rightly its module
    passes the hidden suite.
    """
    culprit = instance_of(task).faulty[-1]
    last = [event for event in merged_edits(trace) if event.attrs["module"] == culprit][-1:]
    wrong = [event for event in last if event.attrs["written"] != event.attrs["patch"]]
    return Blame(wrong[0].agent, wrong[0].id) if wrong else None


Running = tuple[tuple[int, int], ...]
"""Jobs that run: time left and number, sorted."""


class _Search:
    """The best schedule by dynamic programming over (what is done, what runs for how long).

    A state is left as soon as it reaches its own lower bound, and a branch whose bound is no better
    than what is known is not entered.
    """

    def __init__(self, lengths: Sequence[int], before: Sequence[Set[int]], workers: int) -> None:
        self.states = 0
        self._lengths = lengths
        self._tails = _tails(lengths, before)
        self._before = [sum(1 << job for job in jobs) for jobs in before]
        self._workers = workers
        self._everything = (1 << len(lengths)) - 1
        self._known: dict[tuple[int, Running], int] = {}

    def rest(self, done: int, running: Running) -> int:
        """Least time until all is done; meaningless once `states` exceeds `SEARCH_STATES`."""
        if done == self._everything or self.states > SEARCH_STATES:
            return 0
        place = done, running
        if place not in self._known:
            self.states += 1
            self._known[place] = self._best(done, running, self._least(done, running))
        return self._known[place]

    def _best(self, done: int, running: Running, least: int) -> int:
        best: int | None = None
        for started in self._starts(done, running):
            if best is None or self._least(done, started) < best:
                found = self._after(done, started)
                best = found if best is None else min(best, found)
                if best == least:
                    break
        assert best is not None  # something runs, or something is ready
        return best

    def _least(self, done: int, running: Running) -> int:
        """No schedule from here is shorter: the longest chain, and the work over the workers."""
        chain, total, busy = 0, 0, 0
        for left, job in running:
            chain = max(chain, left + self._tails[job] - self._lengths[job])
            total += left
            busy |= 1 << job
        for job, length in enumerate(self._lengths):
            if not (done | busy) >> job & 1:
                chain = max(chain, self._tails[job])
                total += length
        return max(chain, ceil(total / self._workers))

    def _starts(self, done: int, running: Running) -> Iterator[Running]:
        """All ways to start ready jobs now; none at all only while something runs."""
        busy = sum(1 << job for _, job in running)
        ready = [
            job
            for job, needed in enumerate(self._before)
            if not (done | busy) >> job & 1 and needed & ~done == 0
        ]
        ready.sort(key=lambda job: -self._tails[job])
        free = self._workers - len(running)
        for size in range(min(free, len(ready)), -1 if running else 0, -1):
            for chosen in combinations(ready, size):
                yield tuple(sorted((*running, *((self._lengths[job], job) for job in chosen))))

    def _after(self, done: int, running: Running) -> int:
        step = running[0][0]
        ended = sum(1 << job for left, job in running if left == step)
        rest = tuple((left - step, job) for left, job in running if left > step)
        return step + self.rest(done | ended, rest)


def _graph(task: Repair) -> tuple[list[int], list[set[int]]]:
    """Lengths of the jobs in units, and the jobs that each waits for."""
    instance, seconds = instance_of(task), jobs(task)
    number = {name: place for place, name in enumerate(instance.failing)}
    before = [
        {number[n] for n in instance.closures[name] if n in number and n != name}
        for name in instance.failing
    ]
    return [round(seconds[name] / UNIT) for name in instance.failing], before


def _tails(lengths: Sequence[int], before: Sequence[Set[int]]) -> list[int]:
    """Length of the longest chain that begins with each job."""
    above = [0] * len(lengths)
    tails = list(lengths)
    for job in reversed(range(len(lengths))):
        tails[job] += above[job]
        for earlier in before[job]:
            above[earlier] = max(above[earlier], tails[job])
    return tails


@lru_cache(maxsize=65_536)
def _outcome(task: Repair, repaired: frozenset[str]) -> float:
    instance = instance_of(task)
    passing = _passing(instance, repaired)
    return sum(name in passing for name in instance.failing) / len(instance.failing)


def _passing(instance: Instance, repaired: Iterable[str]) -> set[str]:
    """Modules that pass the hidden suite with these repairs, without a sandbox.

    All do that no fault is left below.
    """
    left = set(instance.faulty).difference(repaired)
    below = set(chain.from_iterable(instance.above[name] for name in left))
    sources = {
        name: module.found if name in left else module.right
        for name, module in instance.modules.items()
        if name in below
    }
    return set(instance.modules) - _wrong(instance, sources)


def _wrong(instance: Instance, sources: Mapping[str, str]) -> set[str]:
    """Which of these modules fail the hidden suite; all others are repaired."""
    right, found = instance.working, changed(instance.working, sources)
    return {name for name in sources if any(found[name](x) != right[name](x) for x in HIDDEN)}


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All subsets, the smallest first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)
