"""The leaderboard: one file, no script, all the plots."""

import re
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.exams import tiny

from stretto.bench.page import ONE, PLOTS, leaderboard
from stretto.bench.plots import Axis, Point, Scale, Series, plot, ticks
from stretto.bench.results import read_rows
from stretto.bench.run import run_baselines
from stretto.bench.table import lines
from stretto.bench.text import cells, interval, number
from stretto.cli.main import main

X, Y = Axis("x"), Axis("y")


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    exam = tiny(3, bands=["10", "100"], topologies=["centralized", "swarm"])
    run_baselines(exam, folder, ("oracle", "greedy", "solo", "slips", "random"))
    return folder, lines(read_rows(folder))


def test_the_page_holds_every_plot_and_line(board):
    folder, found = board
    page = leaderboard(found, folder, 1234)
    assert page.count('class="plot"') == len(PLOTS) + 2 == 7
    for title in (*(title for title, _, _ in PLOTS), "gain, 10¹", "gain, 10²"):
        assert title in page
    assert page.count("<tr><td>") == len(found)
    assert not re.search(r"(src|href)=|url\(|@import", page), "it loads nothing"
    assert "nan" not in page
    assert "1 families, 4 cells, 1,234 episodes" in page
    assert all(f">{family}</text>" in page for family in {line.cell.family for line in found})


@pytest.mark.parametrize("said", ["{", "[]", '{"split": 3}', "[" * 100_000, "\udcff"])
def test_a_folder_that_does_not_say_what_made_it_has_no_page(board, tmp_path, capsys, said):
    folder, _ = board
    shutil.copy(folder / "results.jsonl", tmp_path)
    (tmp_path / "run.json").write_text(said, "utf-8", "surrogateescape")
    assert main(["bench", "show", str(tmp_path), "--html", str(tmp_path / "x.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "run.json: not what a run writes" in line


def test_best_of_n_and_majority_have_lines(board):
    _, found = board
    names = {(line.cell.band, line.policy) for line in found}
    assert {("100", "best-of-n"), ("100", "majority")} <= names
    assert "slips" not in {line.policy for line in found}
    by = {(line.cell.name, line.policy): line for line in found}
    best = by["hops-100-centralized-clean", "best-of-n"].means["score"].mean
    assert best >= by["hops-100-centralized-clean", "majority"].means["score"].mean


def test_lines_never_pool_bands(board):
    _, found = board
    assert len({(line.cell, line.policy) for line in found}) == len(found)
    assert all(line.episodes <= 3 for line in found)


def test_a_team_is_compared_with_one_agent_in_every_topology(board):
    _, found = board
    swarm = next(x for x in found if (x.cell.topology, x.policy) == ("swarm", "oracle"))
    assert swarm.gain is not None and swarm.retention == 1.0 and swarm.curve is not None
    assert not any(x.policy == "solo" for x in found if x.cell.topology == "swarm")


def test_what_is_unknown_is_a_dash(board):
    _, found = board
    solo = next(line for line in found if line.policy == "solo")
    assert "-" in cells(solo) and "None" not in "".join(cells(solo))
    assert (number(None), number(0.5), number(-0.001), number(-0.2)) == (
        "-",
        "0.50",
        "0.00",
        "-0.20",
    )
    assert interval(None) == "-"


def test_ticks_are_round():
    assert ticks(0.0, 1.0, log=False) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(5, 2000, log=True) == [10, 100, 1000]
    assert ticks(20, 30, log=True) == [20, 22, 24, 26, 28, 30]
    assert ticks(10.435, 405.2, log=True) == [20, 50, 100, 200]
    assert ticks(0.87, 2.3, log=True) == [1, 1.5, 2]
    assert ticks(1, 1e12, log=True) == [1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]


@given(st.floats(1e-3, 1e9), st.floats(1.2, 1e6))
def test_ticks_are_few_and_within(low, ratio):
    found = ticks(low, low * ratio, log=True)
    assert 2 <= len(found) <= 10
    assert all(low * (1 - 1e-9) <= tick <= low * ratio * (1 + 1e-9) for tick in found)


def test_numbers_are_short():
    drawn = plot([Series("a", (Point(20.0, 1.0), Point(3e5, 2.0)))], Axis("x"), Axis("y"), "p")
    assert ">10⁵<" in drawn and ">2·10⁵<" in drawn
    fine = plot([Series("a", (Point(2e-5, 1.0), Point(3e-4, 2.0)))], Axis("x"), Axis("y"), "p")
    assert ">10⁻⁴<" in fine and ">2·10⁻⁴<" in fine


def test_places_with_names():
    axis = Axis("family", low=0.5, high=2.5, names=("hops", "a<b"))
    drawn = plot([Series("a", (Point(1.0, 1.0),))], axis, Axis("y"), "p")
    assert ">hops</text>" in drawn and ">a&lt;b</text>" in drawn


def test_baselines_look_different():
    marks = {plot([Series("", (Point(1.0, 1.0),), colour=n)], X, Y, "") for n in range(len(ONE))}
    assert len(marks) == len(ONE)


def test_places():
    assert Scale(0, 10, 100, 200, log=False).at(5) == 150
    assert Scale(1, 100, 0, 200, log=True).at(10) == pytest.approx(100)


def test_a_plot_survives_one_point_and_hostile_names():
    name = "<script>alert(1)</script>"
    drawn = plot([Series(name, (Point(1.0, 2.0, name),))], Axis("x", log=True), Axis("y"), name)
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn
    assert "Nothing" in plot([], Axis("x"), Axis("y"), "empty")
    zero = plot([Series("a", (Point(0.0, 2.0),))], Axis("x", log=True), Axis("y"), "none on a log")
    assert "Nothing" in zero


def test_the_order_in_which_rows_came_changes_nothing(board):
    folder, found = board
    rows = read_rows(folder)
    assert lines(rows[::-1]) == found


def test_chance_is_the_mean_of_many_plays(board):
    folder, _ = board
    known = [row.values.get("chance") for row in read_rows(folder) if row.policy == "random"]
    assert None not in known and all(0 <= value < 0.5 for value in known)
