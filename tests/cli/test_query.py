"""`stretto query`: names that SQL takes, suggestions, and what JSON cannot say."""

import json
from pathlib import Path

import polars as pl
import pytest

from stretto.cli.main import main
from stretto.cli.query_ import run_sql
from stretto.errors import StrettoError
from stretto.metrics.table import table_name

from .test_commands import fails_in_one_line


def table(path: Path, **columns) -> Path:
    path.parent.mkdir(exist_ok=True)
    pl.DataFrame(columns or {"makespan": [1.0]}).write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("measures.parquet", "measures"),
        ("a b-c.parquet", "a_b_c"),
        ("2026-11-29.parquet", "t_2026_11_29"),
        ("table.parquet", "t_table"),
        ("order.parquet", "t_order"),
        ("null.parquet", "t_null"),
        ("Läufe.parquet", "Läufe"),
        ("x².parquet", "x_"),
        (".parquet", "_parquet"),
    ],
)
def test_a_table_has_a_name_that_sql_takes(tmp_path, file, name):
    path = table(tmp_path / file)
    assert table_name(path) == name
    sql = f"SELECT {name}.makespan FROM {name} WHERE makespan > 0"
    assert run_sql(sql, [path]) == (["makespan"], [(1.0,)])


WORDS = (
    *("where", "group", "having", "order", "limit", "offset", "fetch", "union", "except"),
    *("intersect", "select", "with", "values", "end", "any", "explain", "cluster", "distribute"),
    *("sort", "returning", "into", "left", "natural", "window", "sample", "first", "date"),
)
"""Some alone are names, and none in a join."""


@pytest.mark.parametrize("word", WORDS)
def test_a_table_can_be_joined_whatever_its_file_is_called(tmp_path, word):
    paths = [table(tmp_path / f"{name}.parquet", trace=["a"], n=[1]) for name in (word, "runs")]
    name = table_name(paths[0])
    for sql in (
        f"SELECT runs.trace, {name}.n FROM runs JOIN {name} ON runs.trace = {name}.trace",
        f"SELECT {name}.trace, runs.n FROM {name} LEFT JOIN runs USING (trace)",
    ):
        assert run_sql(sql, paths) == (["trace", "n"], [("a", 1)])


@pytest.mark.parametrize("sql", ["DROP TABLE m", "delete from m", "", "  ", "-- SELECT 1", "SELCT"])
def test_sql_that_asks_nothing_is_refused(tmp_path, sql, capsys):
    path = str(table(tmp_path / "m.parquet"))
    assert "asks nothing of a table" in fails_in_one_line(["query", sql, path], capsys)


@pytest.mark.parametrize(
    "sql",
    ["/* x */ -- y\n (SELECT makespan FROM m)", "with a as (select * from m) select * from a"],
)
def test_sql_that_asks_may_begin_with_remarks(tmp_path, sql):
    assert run_sql(sql, [table(tmp_path / "m.parquet")]) == (["makespan"], [(1.0,)])


def test_tables_can_be_listed_and_no_column_is_no_table(tmp_path, capsys):
    path = str(table(tmp_path / "m.parquet"))
    assert run_sql("SHOW TABLES", [Path(path)]) == (["name"], [("m",)])
    assert main(["query", "SELECT * EXCLUDE (makespan) FROM m", path]) == 0
    assert capsys.readouterr().out == ""


def test_a_number_that_is_not_there_is_unknown_and_a_text_is_a_dash(tmp_path, capsys):
    path = table(tmp_path / "m.parquet", n=[None, 1.0], why=["no times", None], none=[None, None])
    assert main(["query", "SELECT n, why FROM m", str(path)]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert said == [["n", "why"], ["unknown", "no", "times"], ["1", "-"]]


def test_two_tables_of_one_name_are_refused(tmp_path, capsys):
    paths = [str(table(tmp_path / folder / "m.parquet")) for folder in "ab"]
    said = fails_in_one_line(["query", "SELECT * FROM m", *paths], capsys)
    assert paths[1] in said and "both would be m" in said


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT m.makespam FROM measures m", 'did you mean "makespan"?'),
        ("SELECT measures.makespam FROM measures", 'did you mean "makespan"?'),
        ("SELECT makespan FROM measurs", 'did you mean "measures"?'),
        ("SELECT measurs.makespan FROM measures", 'did you mean "measures"?'),
        ("SELECT makespan FROM zzz", "tables: measures"),
    ],
)
def test_what_is_not_there_gets_a_suggestion(tmp_path, sql, said):
    with pytest.raises(StrettoError) as caught:
        run_sql(sql, [table(tmp_path / "measures.parquet")])
    assert caught.value.hint == said


def test_json_has_no_infinity_and_says_so(tmp_path, capsys):
    path = table(tmp_path / "m.parquet", x=[1.0, 0.0], y=[0.0, 0.0])
    argv = ["query", "SELECT x / y AS a, x, 0.5 AS b FROM m", str(path), "--json"]
    assert main(argv) == 0
    out = capsys.readouterr()
    rows = [json.loads(line, parse_constant=pytest.fail) for line in out.out.splitlines()]
    assert rows == [{"a": None, "x": 1.0, "b": 0.5}, {"a": None, "x": 0.0, "b": 0.5}]
    assert "2 values are infinite or not a number" in out.err


def test_columns_that_do_not_fit_are_told_row_by_row(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = table(tmp_path / "m.parquet", **{f"measure_{i}": [float(i)] for i in range(157)})
    assert main(["query", "SELECT * FROM m", str(path)]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert said[0] == ["row", "1"]
    assert said[1:] == [[f"measure_{i}", str(i)] for i in range(157)]
