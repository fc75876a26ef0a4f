"""The shortest schedule of jobs with few lengths: by hand, by brute force, and by what it says."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.tasks.gather.oracle import Makespan, optimal_makespan
from stretto.tasks.nest import schedule as nest_schedule
from stretto.tasks.nest.schedule import shortest_schedule


def brute_force(jobs: list[int], machines: int) -> int:
    def makespan(place: tuple[int, ...]) -> int:
        loads = [0] * machines
        for job, machine in zip(jobs, place, strict=True):
            loads[machine] += job
        return max(loads)

    return min(map(makespan, product(range(machines), repeat=len(jobs))))


@pytest.mark.parametrize(
    ("jobs", "machines", "best"),
    [
        ([], 3, 0),
        ([5], 3, 5),
        ([3, 3, 2, 2, 2], 2, 6),  # longest first takes 7
        ([6, 4, 4, 4], 3, 8),  # neither the work over the machines nor the longest job
        ([3_000_000_000] * 7, 3, 9_000_000_000),
    ],
)
def test_by_hand(jobs: list[int], machines: int, best: int) -> None:
    assert shortest_schedule(jobs, machines) == Makespan(best, certified=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([2, 3, 5, 9]), min_size=1, max_size=7), st.integers(1, 3))
def test_by_brute_force(jobs: list[int], machines: int) -> None:
    found = shortest_schedule(jobs, machines)
    assert found == Makespan(brute_force(jobs, machines), certified=True)


def test_many_jobs_of_few_lengths_are_settled() -> None:
    """Longest first is not the best here, and branch and bound over the jobs does not end."""
    jobs = [136, 125, *[116] * 13, *[96] * 5, *[40] * 20]
    assert not optimal_makespan(jobs, 20).certified
    assert shortest_schedule(jobs, 20) == Makespan(176, certified=True)


def test_what_the_search_does_not_settle_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [136, 125, *[116] * 13, *[96] * 5, *[40] * 20]
    monkeypatch.setattr(nest_schedule, "MOST_STEPS", 1)
    assert shortest_schedule(jobs, 20) == optimal_makespan(jobs, 20)
