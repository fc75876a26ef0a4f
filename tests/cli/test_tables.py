"""How tables look: numbers keep their digits, reasons stand once, wide rows become records."""

import io

import pytest
from rich.console import Console

from stretto.cli.arguments import number
from stretto.cli.measured import show_measures
from stretto.cli.tables import mark, plain_table, print_notes, print_table
from stretto.metrics import Measure, load_prices


def page(width=80):
    return Console(file=io.StringIO(), width=width, highlight=False)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "unknown"),
        (12345.0, "12,345"),
        (-0.0, "0"),
        (0.7654, "0.765"),
        (1234.5678, "1,234.568"),
        (0.0004, "0.00040"),
        (-0.00042, "-0.00042"),
        (0.0000123, "0.000012"),
        (4.2e-9, "4.2e-09"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_keeps_two_digits_however_small_it_is(value, said):
    assert number(value) == said


def test_digits_are_those_that_are_asked_for_where_they_show_something():
    assert number(0.76543, 4) == "0.7654"
    assert number(0.04, 1) == "0.040"  # not 0.0


def lines(out):
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_a_table_that_fits_is_a_table():
    table = plain_table("name", "s")
    table.add_row("a", "1")
    table.add_row("b", "12")
    out = page()
    print_table(out, table)
    assert lines(out) == ["name   s", "a      1", "b     12"]


def test_a_wide_table_becomes_records_that_lose_nothing():
    names = [f"column_{place}" for place in range(157)]
    table = plain_table(*names)
    table.add_row(*map(str, range(157)))
    table.add_row(*map(str, range(157, 314)))
    out = page()
    print_table(out, table)
    said = lines(out)
    assert len(said) == 2 * 158
    assert said[0] == "row 1" and said[158] == "row 2"
    assert [line.split() for line in said[1:158]] == [[n, str(i)] for i, n in enumerate(names)]
    assert max(map(len, said)) <= 80


def test_the_first_column_may_be_folded_before_that():
    table = plain_table("agent", "s")
    table.add_row("0/0 explorer of files", "1,234.5")
    out = page(width=20)
    print_table(out, table, least=12)
    assert lines(out) == ["agent              s", "0/0 explorer 1,234.5", "of files"]
    narrow = page(width=19)
    print_table(narrow, table, least=12)
    assert lines(narrow)[0] == "row 1"


def test_a_reason_has_one_number_and_is_told_once():
    notes = {}
    assert [mark(notes, reason) for reason in ("a", "", "b", "a")] == [" [1]", "", " [2]", " [1]"]
    out = page()
    print_notes(out, notes)
    assert lines(out) == ["[1] a", "[2] b"]


def test_measures_share_reasons_whether_they_are_known_or_not(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    missing = "3 of 24 agents left no transcript: a lower bound"
    groups = {
        "structure": {"agents": Measure(24.0)},
        "E2 parallelism": {
            "work": Measure(1.5, "derived", missing),
            "span": Measure(1.0, "derived", missing),
            "blocked": Measure(None, reason="no event has a time"),
            "idle": Measure(None, reason="no event has a time"),
        },
        "E4 overhead": {"price": Measure(None, reason="no turn has a price")},
    }
    show_measures(groups, load_prices())
    said = capsys.readouterr().out
    assert said.count(missing) == 1 and said.count("derived [1]") == 2
    assert "unknown: blocked, idle (no event has a time)" in said
    assert "E4" not in said and "$" not in said  # nothing of it is known: no unit of nothing
    assert "unknown: price (no turn has a price)" in said
