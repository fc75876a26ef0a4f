"""The exact side of `repair`: what has to be repaired, how fast, and what each report is worth.

A plan is *certain* if nobody patches unread, and all modules that failed were seen to pass before
the package is submitted. Then a job is a failing module,

`p_m = read + edit·[m faulty] + tests_m`,

and waits for what it imports to be reported. Two topologies need less: a critic tests without
reading, `p_m = tests_m` of what is not faulty; and in `harness`, where the lead looks at all
results again, the jobs are those of faulty modules, `p_m = read + edit`, and a look follows each.
The best schedule on identical workers (P|prec|C_max) is found by a search over what is done and
what runs for how long, with idle workers where that helps. Who submits unseen may be faster: that
is luck.

What repairs are worth is found by toggling faults one by one: the functions are evaluated here, not
in the sandbox, which gives the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, combinations
from math import ceil

import numpy as np

from stretto.errors import StrettoError
from stretto.tasks.faults import Blame
from stretto.tasks.games.coalitions import shapley
from stretto.tasks.gather.oracle import Makespan
from stretto.tasks.repair import EDIT_SECONDS, LIST_SECONDS, READ_SECONDS, Repair, instance_of
from stretto.tasks.repair.instance import HIDDEN, VISIBLE, Instance, changed, overfitted
from stretto.tasks.topology import WORKER
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


def jobs(task: Repair) -> dict[str, float]:
    """Module that somebody must work on to the least virtual seconds of it, for any team."""
    instance = instance_of(task)
    if task.topology == "harness":
        return dict.fromkeys(instance.faulty, READ_SECONDS + EDIT_SECONDS)
    unread = task.topology == "planner_executor_critic"
    return {
        name: instance.modules[name].seconds
        if unread and name not in instance.faulty
        else _alone(instance, name)
        for name in instance.failing
    }


def work(task: Repair) -> float:
    """Seconds in which one agent alone does all jobs, in any topology: `T*_serial` less the list.

    It reads and tests every failing module: whoever sends nobody is not shown the results again.
    """
    instance = instance_of(task)
    return sum(_alone(instance, name) for name in instance.failing)


def serial_seconds(task: Repair) -> float:
    """`T*_serial`: the list, then all jobs by one agent alone."""
    return LIST_SECONDS + work(task)


def span(task: Repair) -> float:
    """Seconds of the longest chain of jobs that wait for each other: `T_∞`."""
    lengths, before = _graph(task)
    return max(_tails(lengths, before, _look(task))) * UNIT


def least_seconds(task: Repair, agents: int) -> float:
    """`T*_P`: no certain plan of so many agents, the lead among them, takes less virtual seconds.

    The lead lists first, and while others are out it can do nothing else: so `agents - 1` work at
    once, at most the task's own number. Exact but for `harness` and critics, and where
    `best_schedule` is not certified; there a lower bound.
    """
    if agents <= 1 and task.topology != "harness":
        return serial_seconds(task)
    abreast = max(1, min(agents - 1, task.workers))
    best = best_schedule(task, abreast)
    if best.certified:
        least = LIST_SECONDS + (best.value + _look(task)) * UNIT
        return max(least, quick_bound(task, abreast))
    return quick_bound(task, abreast)


def quick_bound(task: Repair, abreast: int | None = None) -> float:
    """No certain plan takes less virtual seconds, by the longest chain and by the work alone."""
    shared = sum(jobs(task).values()) / (task.workers if abreast is None else abreast)
    return LIST_SECONDS + max(span(task), shared + _look(task) * UNIT)


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
    return _written(task, instance_of(task).faulty) if task.fault == "edit" else 1.0


def silent_outcome(task: Repair) -> float:
    """The same of a team in which nobody reports.

    It repairs what imports nothing that fails at first; the rest waits for ever.
    """
    instance = instance_of(task)
    modules, failing = instance.modules, set(instance.failing)
    return _written(task, [n for n in instance.faulty if failing.isdisjoint(modules[n].imports)])


def _written(task: Repair, repaired: Sequence[str]) -> float:
    """Outcome where the right patches of these modules are merged, one spoilt by the fault."""
    instance = instance_of(task)
    sources = {**instance.found, **{name: instance.modules[name].right for name in repaired}}
    if task.fault == "edit" and instance.culprit in repaired:
        sources[instance.culprit] = overfitted(sources[instance.culprit])
    wrong = _wrong(instance, sources).intersection(instance.failing)
    return 1 - len(wrong) / len(instance.failing)


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


def worker_values(task: Repair, trace: Trace) -> dict[str, float]:
    """As `agent_values`, and 0 of every worker that repaired nothing."""
    workers = [agent.id for agent in trace.agents if agent.role == WORKER]
    return {**dict.fromkeys(workers, 0.0), **agent_values(task, trace)}


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
    culprit = instance_of(task).culprit
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


def _alone(instance: Instance, name: str) -> float:
    edit = EDIT_SECONDS if name in instance.faulty else 0.0
    return READ_SECONDS + edit + instance.modules[name].seconds


def _look(task: Repair) -> int:
    """Units of the look at the results that has to follow every job."""
    return round(LIST_SECONDS / UNIT) if task.topology == "harness" else 0


@lru_cache(maxsize=64)
def _graph(task: Repair) -> tuple[list[int], list[set[int]]]:
    """Lengths of the jobs in units, and the jobs that each waits for."""
    instance, seconds = instance_of(task), jobs(task)
    number = {name: place for place, name in enumerate(seconds)}
    keeps = _kept_failing(instance) if task.topology == "harness" else {}
    before = [
        {
            number[job]
            for imported in instance.modules[name].imports
            for job in (imported, *keeps.get(imported, ()))
            if job in number
        }
        for name in seconds
    ]
    return [round(each / UNIT) for each in seconds.values()], before


def _kept_failing(instance: Instance) -> dict[str, list[str]]:
    """Module to the faults each of which alone makes its visible tests fail."""
    found: dict[str, list[str]] = {}
    for fault in instance.faulty:
        sources = {name: instance.modules[name].right for name in instance.above[fault]}
        sources[fault] = instance.modules[fault].found
        for name in _wrong(instance, sources, VISIBLE):
            found.setdefault(name, []).append(fault)
    return found


def _tails(lengths: Sequence[int], before: Sequence[Set[int]], look: int = 0) -> list[int]:
    """Length of the longest chain that begins with each job, with a look behind every one."""
    above = [0] * len(lengths)
    tails = [length + look for length in lengths]
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


def _wrong(
    instance: Instance, sources: Mapping[str, str], inputs: Sequence[int] = HIDDEN
) -> set[str]:
    """Which of these modules fail the suite of these inputs; all others are repaired."""
    right, found = instance.working, changed(instance.working, sources)
    return {name for name in sources if any(found[name](x) != right[name](x) for x in inputs)}


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All subsets, the smallest first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)
