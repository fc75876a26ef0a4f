"""The shortest schedule of many jobs with few distinct lengths on machines alike: P‖C_max, exact.

The jobs of a nest come from few templates, so most take equally long. Then not the jobs have to be
told apart, but how many of each length are left. Whether all fit into a given time is a search over
these numbers, machine after machine. Each is begun with the longest job that is left, and filled up
until nothing fits any more: a machine with room for a job that is left can only be worse. The least
time is found by bisection.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil, gcd

from stretto.tasks.gather.oracle import SEARCH_DEPTH, Makespan, optimal_makespan

MOST_STEPS = 20_000
"""Most steps of the search for an answer to whether all fits."""

Left = tuple[int, ...]
"""How many jobs of each length are left, the longest first."""


def shortest_schedule(jobs: Sequence[int], machines: int) -> Makespan:
    """Shortest time in which machines alike finish jobs, given in whole units, all positive.

    Exact and certified for few distinct lengths, up to `SEARCH_DEPTH` machines; else as
    `stretto.tasks.gather.oracle.optimal_makespan`, which may be an upper bound only.
    """
    if len(jobs) <= machines or machines > SEARCH_DEPTH:
        return optimal_makespan(jobs, machines)
    unit = gcd(*jobs)
    counts = Counter(job // unit for job in jobs)
    lengths = sorted(counts, reverse=True)
    left = tuple(counts[length] for length in lengths)
    low = max(lengths[0], ceil(sum(jobs) // unit / machines))
    high = low + lengths[0]  # list scheduling takes no longer (Graham 1966)
    while low < high:
        middle = (low + high) // 2
        fits = _Packing(lengths, middle).fits(left, machines)
        if fits is None:
            return optimal_makespan(jobs, machines)
        low, high = (low, middle) if fits else (middle + 1, high)
    return Makespan(low * unit, certified=True)


class _Packing:
    """Whether jobs fit on machines within a time."""

    def __init__(self, lengths: Sequence[int], time: int) -> None:
        self._lengths = lengths
        self._time = time
        self._failed: dict[Left, int] = {}
        self._steps = 0

    def fits(self, left: Left, machines: int) -> bool | None:
        """Whether these fit on so many machines; `None` where the search does not end."""
        found = self._search(left, machines)
        return None if not found and self._steps > MOST_STEPS else found

    def _search(self, left: Left, machines: int) -> bool:
        total = sum(count * length for count, length in zip(left, self._lengths, strict=True))
        if not total:
            return True
        if total > machines * self._time or self._failed.get(left, -1) >= machines:
            return False
        first = next(place for place, count in enumerate(left) if count)
        rest = (*left[:first], left[first] - 1, *left[first + 1 :])
        room = self._time - self._lengths[first]
        if any(self._search(after, machines - 1) for after in self._filled(rest, first, room)):
            return True
        self._failed[left] = machines
        return False

    def _filled(self, left: Left, place: int, room: int) -> Iterator[Left]:
        """What is left after each way to fill the room so that nothing more fits."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            return
        if place == len(left):
            if not any(n and length <= room for n, length in zip(left, self._lengths, strict=True)):
                yield left
            return
        length = self._lengths[place]
        for taken in range(min(left[place], room // length), -1, -1):
            after = (*left[:place], left[place] - taken, *left[place + 1 :])
            yield from self._filled(after, place + 1, room - taken * length)
