"""Table scores, smallest covers and shortest schedules, against hand and brute force."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.tasks.gather import Gather, instance_of
from stretto.tasks.gather import oracle as gather_oracle
from stretto.tasks.gather.oracle import (
    minimum_cover,
    optimal_makespan,
    optimal_reading,
    right_cells,
    score_table,
)

TRUTH = {"ada colour": "red", "ada metal": "tin", "bo colour": "blue", "bo metal": "gold"}


def test_a_perfect_table() -> None:
    score = score_table(TRUTH, TRUTH)
    assert (score.item.f1, score.row.f1, score.success) == (1.0, 1.0, True)


def test_an_empty_table_scores_nothing() -> None:
    score = score_table(TRUTH, {})
    assert (score.item.precision, score.item.recall, score.item.f1) == (0.0, 0.0, 0.0)
    assert (score.row.f1, score.success) == (0.0, False)


def test_an_absent_row_costs_recall_only() -> None:
    score = score_table(TRUTH, {"ada colour": "red", "ada metal": "tin"})
    assert (score.item.precision, score.item.recall) == (1.0, 0.5)
    assert score.item.f1 == pytest.approx(2 / 3)
    assert (score.row.precision, score.row.recall) == (1.0, 0.5)
    assert not score.success


def test_an_empty_cell_of_a_predicted_row_is_a_wrong_one() -> None:
    table = {"ada colour": "red", "ada metal": "tin", "bo colour": "blue"}
    score = score_table(TRUTH, table)
    assert (score.item.precision, score.item.recall) == (0.75, 0.75)
    assert (score.row.precision, score.row.recall) == (0.5, 0.5)


def test_a_wrong_cell_spoils_its_row() -> None:
    score = score_table(TRUTH, TRUTH | {"bo metal": "tin"})
    assert (score.item.f1, score.row.f1, score.success) == (0.75, 0.5, False)


def test_cells_that_are_not_asked_for_are_ignored() -> None:
    assert score_table(TRUTH, TRUTH | {"cy metal": "tin"}).success


def test_the_smallest_cover_beats_the_greedy_one() -> None:
    # Greedy takes the four cells in the middle first, and then needs both halves anyway.
    covers = {"middle": set("bcde"), "left": set("abc"), "right": set("def")}
    assert sorted(minimum_cover(covers, set("abcdef"))) == ["left", "right"]


def test_a_known_cover_that_meets_the_bound_is_taken() -> None:
    covers = {"left": set("ab"), "other": set("bc"), "right": set("cd")}
    assert minimum_cover(covers, set("abcd"), ["right", "left"]) == ("right", "left")


def test_a_known_cover_above_the_bound_is_improved() -> None:
    covers = {"a": {"a"}, "b": {"b"}, "c": {"c"}, "ab": {"a", "b"}}
    assert sorted(minimum_cover(covers, set("abc"), ["a", "b", "c"])) == ["ab", "c"]


def test_nothing_is_covered_by_nothing() -> None:
    assert minimum_cover({}, set()) == ()
    assert minimum_cover({"a": {"a"}}, set(), ["a"]) == ()


def test_an_impossible_cover_is_refused() -> None:
    with pytest.raises(StrettoError, match="no choice of documents states every cell"):
        minimum_cover({"a": {"a"}}, {"a", "b"})


@pytest.mark.parametrize("limit", ["SEARCH_NODES", "SEARCH_DEPTH"])
def test_an_unsettled_cover_is_refused(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(gather_oracle, limit, 1)
    covers = {"middle": set("bcde"), "left": set("abc"), "right": set("def")}
    with pytest.raises(StrettoError, match="the smallest cover is not settled"):
        minimum_cover(covers, set("abcdef"))


CELLS = "abcdefg"
COVERS = st.dictionaries(
    st.text("xyz", min_size=1, max_size=3), st.sets(st.sampled_from(CELLS)), max_size=7
)


@given(COVERS)
def test_cover_equals_brute_force(covers: dict[str, set[str]]) -> None:
    cells: set[str] = set().union(*covers.values())
    found = minimum_cover(covers, cells)
    assert cells <= set().union(*(covers[name] for name in found))
    assert len(found) == _smallest(covers, cells)


@given(COVERS)
def test_cover_does_not_depend_on_order(covers: dict[str, set[str]]) -> None:
    cells: set[str] = set().union(*covers.values())
    backwards = dict(reversed(covers.items()))
    assert len(minimum_cover(covers, cells)) == len(minimum_cover(backwards, cells))


def _smallest(covers: dict[str, set[str]], cells: set[str]) -> int:
    for size in range(len(covers) + 1):
        for names in combinations(covers, size):
            if cells <= set().union(*(covers[name] for name in names)):
                return size
    raise AssertionError("no cover")


@pytest.mark.parametrize(
    ("jobs", "workers", "value"),
    [
        ([], 3, 0),
        ([4], 3, 4),
        ([2] * 7, 3, 6),  # seven documents in three rounds
        ([3, 3, 2, 2, 2], 2, 6),  # longest first gives 7
        ([5, 5, 4, 4, 3, 3, 3], 3, 9),  # longest first gives 11
        ([1] * 5000, 7, 715),
    ],
)
def test_makespan_by_hand(jobs: list[int], workers: int, value: int) -> None:
    makespan = optimal_makespan(jobs, workers)
    assert (makespan.value, makespan.certified) == (value, True)


@given(st.lists(st.integers(1, 9), max_size=6), st.integers(1, 3))
def test_makespan_equals_brute_force(jobs: list[int], workers: int) -> None:
    assignments = product(range(workers), repeat=len(jobs))
    best = min(max(_loads(jobs, workers, assignment)) for assignment in assignments)
    makespan = optimal_makespan(jobs, workers)
    assert (makespan.value, makespan.certified) == (best, True)


def _loads(jobs: list[int], workers: int, assignment: tuple[int, ...]) -> list[int]:
    loads = [0] * workers
    for job, worker in zip(jobs, assignment, strict=True):
        loads[worker] += job
    return loads


@pytest.mark.parametrize("limit", ["SEARCH_NODES", "SEARCH_DEPTH"])
def test_an_unsettled_makespan_says_so(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(gather_oracle, limit, 2)
    makespan = optimal_makespan([3, 3, 2, 2, 2], 2)
    assert (makespan.value, makespan.certified) == (7, False)


@pytest.mark.parametrize(("jobs", "workers"), [([1], 0), ([0], 1), ([-1], 1)])
def test_jobs_and_workers_are_positive(jobs: list[int], workers: int) -> None:
    with pytest.raises(StrettoError, match="must be positive"):
        optimal_makespan(jobs, workers)


def test_optimal_reading_by_hand() -> None:
    # 18 cells in documents of at most 3: six documents, two rounds for four workers.
    reading = optimal_reading(instance_of(Gather()), workers=4, seconds=2.0)
    assert len(reading.documents) == 6
    assert (reading.seconds, reading.certified) == (4.0, True)


@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))
def test_the_planted_cover_is_a_smallest_one(
    seed: int, entities: int, attributes: int, size: int
) -> None:
    task = Gather(entities=entities, attributes=attributes, cells_per_document=size, seed=seed)
    instance = instance_of(task)
    covers = {name: set(right_cells(instance, name)) for name in instance.documents}
    found = optimal_reading(instance, 2, 2.0).documents
    assert len(found) == len(instance.planted) == _smallest(covers, set(instance.truth))
