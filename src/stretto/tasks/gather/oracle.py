"""The exact side of `gather`: how good a table is, and the least reading that fills it rightly.

All of it is exact. The smallest set of documents and the shortest schedule are NP-hard in general;
where neither a bound nor a bounded search settles them, `minimum_cover` refuses, and
`optimal_makespan` says that its value is only an upper bound.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from heapq import heapify, heapreplace
from itertools import chain
from math import ceil, gcd

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.tasks.gather.instance import Instance

SEARCH_NODES = 200_000
"""Most nodes that a search visits."""
SEARCH_DEPTH = 200
"""Most documents in a cover, and most jobs, that a search takes on."""


class Agreement(Struct, frozen=True):
    """How two sets agree, each value between 0 and 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of both; 0 where both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


class TableScore(Struct, frozen=True):
    """What a table is worth."""

    item: Agreement
    """By cell."""
    row: Agreement
    """By row; a row is right if all of its cells are."""
    success: bool
    """Whether the table is perfect."""


class Makespan(Struct, frozen=True):
    """How long the best schedule takes."""

    value: int
    """In the unit of the jobs."""
    certified: bool
    """Whether it is the optimum; else an upper bound on it."""


class Reading(Struct, frozen=True):
    """The least reading that fills the table rightly."""

    documents: tuple[str, ...]
    """A smallest set of documents that states every cell rightly."""
    seconds: float
    """Virtual seconds in which the workers can read them."""
    certified: bool
    """Whether no schedule is faster."""


def score_table(truth: Mapping[str, str], table: Mapping[str, str]) -> TableScore:
    """Compare a table with the right one, cell by cell and row by row.

    As in WideSearch (arXiv 2508.07999), a row is predicted if it has any cell, and then counts with
    all of its cells: an empty one is a wrong one. The key column, which is right wherever a row is
    predicted, is not counted here. `truth` names every cell; others in `table` are ignored.
    """
    rows: dict[str, list[tuple[bool, bool]]] = {}
    for cell, value in truth.items():
        entity = cell.partition(" ")[0]
        rows.setdefault(entity, []).append((cell in table, table.get(cell) == value))
    predicted = [row for row in rows.values() if any(filled for filled, _ in row)]
    right_rows = sum(all(right for _, right in row) for row in predicted)
    right_cells = sum(right for row in predicted for _, right in row)
    return TableScore(
        item=_agreement(right_cells, sum(map(len, predicted)), len(truth)),
        row=_agreement(right_rows, len(predicted), len(rows)),
        success=right_cells == len(truth),
    )


def optimal_reading(instance: Instance, workers: int, seconds: float) -> Reading:
    """The fewest documents that state every cell rightly, read by `workers` side by side.

    Every document takes `seconds` of virtual time. Exact for every generated instance, whatever
    its size: its planted cover meets the bound of `minimum_cover`.
    """
    covers = {name: right_cells(instance, name) for name in instance.documents}
    documents = minimum_cover(covers, instance.truth.keys(), instance.planted)
    makespan = optimal_makespan([1] * len(documents), workers)
    return Reading(documents, makespan.value * seconds, makespan.certified)


def right_cells(instance: Instance, document: str) -> frozenset[str]:
    """The cells whose right value this document states."""
    statements = instance.documents[document].statements.items()
    return frozenset(cell for cell, value in statements if instance.truth[cell] == value)


def minimum_cover(
    covers: Mapping[str, Set[str]], cells: Set[str], known: Sequence[str] = ()
) -> tuple[str, ...]:
    """A smallest choice of names whose sets together hold every cell.

    Exact: either the `known` cover is as small as ⌈cells / largest set⌉, at any size, or branch and
    bound leaves out no cover that could be smaller than the best one found.

    Raises `StrettoError` where no choice holds the cells, where a first cover takes more than
    `SEARCH_DEPTH` names, and where the search would visit more than `SEARCH_NODES` nodes: no
    approximation is ever returned.
    """
    held = {name: frozenset(cells) & own for name, own in covers.items()}
    if not cells <= _union(held.values()):
        raise StrettoError("no choice of documents states every cell", "minimum_cover")
    complete = cells <= _union(held[name] for name in known)
    if complete and len(known) == _least_sets(len(cells), held.values()):
        return tuple(known)
    bits = {cell: 1 << index for index, cell in enumerate(sorted(cells))}
    masks = {name: sum(bits[cell] for cell in own) for name, own in held.items()}
    everything = (1 << len(cells)) - 1
    start = tuple(known) if complete else _greedy_cover(masks, everything)
    if len(start) > SEARCH_DEPTH:
        raise _unsettled(f"{len(start)} documents are too many to search")
    return _CoverSearch(masks, everything, start).best


def optimal_makespan(jobs: Sequence[int], workers: int) -> Makespan:
    """Shortest time in which identical workers finish independent jobs (P‖C_max).

    `jobs` are lengths in whole units, all positive. Certified at any size where longest-first list
    scheduling (LPT, Graham 1969) meets the bound max(longest job, ⌈sum / workers⌉); else by branch
    and bound for up to `SEARCH_DEPTH` jobs, unless that visits more than `SEARCH_NODES` nodes.

    Raises `StrettoError` for a job that is not positive, and for less than one worker.
    """
    if workers < 1 or any(job < 1 for job in jobs):
        raise StrettoError("workers and jobs must be positive", "optimal_makespan")
    if not jobs:
        return Makespan(0, certified=True)
    unit = gcd(*jobs)
    lengths = sorted((job // unit for job in jobs), reverse=True)
    bound = max(lengths[0], ceil(sum(lengths) / workers))
    upper = _longest_first(lengths, workers)
    if upper == bound or len(lengths) > SEARCH_DEPTH:
        return Makespan(upper * unit, certified=upper == bound)
    search = _ScheduleSearch(lengths, workers, bound, upper)
    return Makespan(search.best * unit, search.finished)


class _CoverSearch:
    """Branch and bound for the smallest cover, on bit masks of cells.

    Branches on the open cell that the fewest sets hold, and leaves a branch that could not beat the
    best cover even if every further set were as large as the largest.
    """

    def __init__(self, masks: Mapping[str, int], everything: int, start: Sequence[str]) -> None:
        self.best = tuple(start)
        self._masks = masks
        self._nodes = 0
        cells = [1 << index for index in range(everything.bit_length())]
        holders = {cell: [name for name in masks if masks[name] & cell] for cell in cells}
        self._holders = sorted(holders.items(), key=lambda item: len(item[1]))
        self._visit(everything, ())

    def _visit(self, open_cells: int, chosen: tuple[str, ...]) -> None:
        if not open_cells:
            if len(chosen) < len(self.best):
                self.best = chosen
            return
        self._count()
        gain = max((mask & open_cells).bit_count() for mask in self._masks.values())
        if len(chosen) + ceil(open_cells.bit_count() / gain) >= len(self.best):
            return
        names = next(names for cell, names in self._holders if cell & open_cells)
        for name in sorted(names, key=lambda name: -(self._masks[name] & open_cells).bit_count()):
            self._visit(open_cells & ~self._masks[name], (*chosen, name))

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > SEARCH_NODES:
            raise _unsettled(f"the search did not end within {SEARCH_NODES} nodes")


class _ScheduleSearch:
    """Branch and bound for the shortest schedule: longest job first, to every distinct load."""

    def __init__(self, jobs: Sequence[int], workers: int, bound: int, upper: int) -> None:
        self.best = upper
        self._jobs = jobs
        self._bound = bound
        self._nodes = 0
        self._visit(0, [0] * workers)
        self.finished = self._nodes <= SEARCH_NODES or self.best == bound

    def _visit(self, job: int, loads: list[int]) -> None:
        self._nodes += 1
        if self._nodes > SEARCH_NODES or self.best == self._bound:
            return
        if job == len(self._jobs):
            self.best = min(self.best, max(loads))
            return
        tried: set[int] = set()
        for worker, load in enumerate(loads):
            if load in tried or load + self._jobs[job] >= self.best:
                continue
            tried.add(load)  # workers with equal loads are alike
            loads[worker] += self._jobs[job]
            self._visit(job + 1, loads)
            loads[worker] = load


def _greedy_cover(masks: Mapping[str, int], everything: int) -> tuple[str, ...]:
    """A cover, not always a smallest: again and again the set that holds most open cells."""
    chosen: list[str] = []
    open_cells = everything
    while open_cells:
        remaining = open_cells
        name = max(masks, key=lambda name: (masks[name] & remaining).bit_count())
        chosen.append(name)
        open_cells &= ~masks[name]
    return tuple(chosen)


def _longest_first(jobs: Sequence[int], workers: int) -> int:
    """Makespan of list scheduling, each job (longest first) to the least loaded worker."""
    loads = [0] * min(workers, len(jobs))
    heapify(loads)
    for job in jobs:
        heapreplace(loads, loads[0] + job)
    return max(loads)


def _agreement(right: int, predicted: int, actual: int) -> Agreement:
    return Agreement(right / predicted if predicted else 0.0, right / actual)


def _least_sets(cells: int, sets: Iterable[frozenset[str]]) -> int:
    """No fewer sets than this can hold so many cells."""
    return ceil(cells / max(map(len, sets))) if cells else 0


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(chain.from_iterable(sets))


def _unsettled(what: str) -> StrettoError:
    hint = "give a known cover that meets the bound, or fewer cells"
    return StrettoError(f"the smallest cover is not settled: {what}", "minimum_cover", hint)
