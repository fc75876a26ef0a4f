"""Measures of a folder as a table, and SQL on it."""

import json

import polars as pl
import pytest

import stretto
from stretto import store
from stretto.cli.query_ import run_sql
from stretto.errors import StrettoError
from stretto.metrics.table import WHO, measure_paths, write_table

from ..examples import event, trace


@pytest.fixture
def folder(tmp_path):
    """Three files of two, one and one traces, and one that is none."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, seconds in (("a", (1.0, 2.0)), ("b", (4.0,))):
        traces = [
            trace(event("0#0", start=0.0, duration=s), id=f"{name}{s:.0f}", system=name)
            for s in seconds
        ]
        store.write(folder / f"{name}.jsonl", traces)
    said = {"type": "user", "sessionId": "S", "uuid": "u", "message": {"content": "hi"}}
    (folder / "S.jsonl").write_text(json.dumps(said) + "\n")
    (folder / "notes.json").write_text('{"no": "trace"}')
    return folder


def test_a_row_a_trace_with_every_measure_and_how_it_is_known(folder):
    seen = []
    found = measure_paths([folder], show=lambda done, total: seen.append((done, total)))
    assert [row["trace"] for row in found.rows] == ["S", "a1", "a2", "b4"]
    assert [row["makespan"] for row in found.rows] == [None, 1.0, 2.0, 4.0]
    assert found.rows[1]["makespan_how"] == "derived"
    assert found.rows[0]["makespan_how"] is None and found.rows[0]["makespan_reason"]
    assert set(found.rows[0]) >= {*WHO, *stretto.measure(trace(event("0#0")))}
    assert seen == [(1, 3), (2, 3), (3, 3)]
    (unread,) = found.unread
    assert unread.file.endswith("notes.json")


def test_several_processes_give_the_same_rows(folder):
    assert measure_paths([folder], workers=2) == measure_paths([folder])


def test_a_session_that_cannot_be_read_does_not_stop_the_others(folder):
    whole = store.encode(trace(event("0#0"))).decode()
    (folder / "b.jsonl").write_text(whole.replace("0#0", "", 1))
    found = measure_paths([folder])
    assert [row["trace"] for row in found.rows] == ["S", "a1", "a2"]
    assert any("not read" in str(n) for report in found.unread for n in report.warnings)


def test_nothing_that_can_be_read_is_an_error(tmp_path):
    (tmp_path / "notes.json").write_text('{"no": "trace"}')
    with pytest.raises(StrettoError, match="no known format"):
        measure_paths([tmp_path])


def test_the_table_can_be_asked_in_sql(folder, tmp_path):
    path = tmp_path / "measures.parquet"
    write_table(measure_paths([folder]).rows, path)
    frame = pl.read_parquet(path)
    assert frame.schema["makespan"] == pl.Float64
    assert frame.schema["unpaired_spawns_reason"] == pl.String  # even where all are empty
    sql = "SELECT system, avg(makespan) AS m FROM measures GROUP BY system ORDER BY m DESC"
    columns, rows = run_sql(sql, [path])
    assert columns == ["system", "m"]
    assert [row for row in rows if row[0] in ("a", "b")] == [("b", 4.0), ("a", 1.5)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT makespam FROM measures", 'did you mean "makespan"'),
        ("SELECT * FROM other", "tables: measures"),
        ("SELECT FROM WHERE", "tables: measures"),
    ],
)
def test_sql_that_does_not_run_is_one_line_with_a_hint(folder, tmp_path, sql, said):
    path = tmp_path / "measures.parquet"
    write_table(measure_paths([folder]).rows, path)
    with pytest.raises(StrettoError) as caught:
        run_sql(sql, [path])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_table_is_named(tmp_path):
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(StrettoError, match="no Parquet table"):
        run_sql("SELECT 1", [tmp_path / "bad.parquet"])
    with pytest.raises(StrettoError, match="no such table"):
        run_sql("SELECT 1", [tmp_path / "none.parquet"])
