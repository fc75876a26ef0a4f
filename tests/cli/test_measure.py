"""`stretto measure`: parts of a trace, the critical path, baselines, tables."""

import json

import pytest

from stretto import store
from stretto.cli.main import main

from ..examples import event, trace
from .test_commands import fails_in_one_line


def team(id="team", **fields):
    """A lead of two seconds and a helper of three, one after the other."""
    return trace(
        event("0#0", start=0.0, duration=2.0),
        event("0#1", "spawn", start=2.0, to="0/0"),
        event("0/0#0", "tool_call", start=2.0, duration=3.0, tool="look"),
        event("0#2", "stop", start=5.0),
        edges=[("0#0", "0#1"), ("0#1", "0/0#0"), ("0/0#0", "0#2")],
        roles={"0": "lead", "0/0": "helper"},
        id=id,
        **fields,
    )


def alone(id="alone", seconds=10.0, **fields):
    return trace(event("0#0", start=0.0, duration=seconds), id=id, **fields)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.jsonl"
    store.write(path, [team()])
    return path


def objects(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("by", "work"),
    [
        ("agent", {"0": 2.0, "0/0": 3.0}),
        ("role", {"lead": 2.0, "helper": 3.0}),
        ("kind", {"decision": 2.0, "tool_call": 3.0, "spawn": None, "stop": None}),
        ("tool", {"look": 3.0, None: 2.0}),
        ("model", {None: 5.0}),
    ],
)
def test_work_by_every_part(file, by, work, capsys):
    assert main(["measure", str(file), "--by", by, "--json"]) == 0
    (found,) = objects(capsys)
    assert found["by"] == by and "measures" not in found
    assert {row["key"]: row["work"] for row in found["rows"]} == work


def test_a_person_sees_the_parts_as_a_table(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["measure", str(file), "--by", "agent"]) == 0
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if line.startswith("0")]
    assert [row[:3] for row in rows[:2]] == [["0", "lead", "[1]"], ["0/0", "helper", "1"]]
    assert "2" in rows[0] and "40" in rows[0]  # seconds of work, and per cent of it
    assert "price" not in said.splitlines()[1], "a column of nothing is left out"


def test_the_critical_path_with_its_events_and_shares(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["measure", str(file), "--path", "--json"]) == 0
    (found,) = objects(capsys)
    path = found["critical_path"]
    assert (path["seconds"], path["how"]) == (5.0, "derived")
    assert path["by_agent"] == {"0": 0.4, "0/0": 0.6}
    busy = {each["event"]: each["seconds"] for each in path["events"] if each["seconds"]}
    assert busy == {"0#0": 2.0, "0/0#0": 3.0}
    assert main(["measure", str(file), "--path"]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["0/0", "helper", "3", "60"] in said
    assert ["0/0#0", "0/0", "tool_call", "look", "3", "60"] in said


def test_a_path_that_is_not_known_says_why(tmp_path, capsys):
    path = tmp_path / "loop.jsonl"
    store.write(path, [trace(event("a"), event("b"), edges=[("a", "b"), ("b", "a")])])
    assert main(["measure", str(path), "--path", "--json"]) == 0
    found = objects(capsys)[0]["critical_path"]
    assert found["seconds"] is None and found["how"] is None and found["reason"]
    assert main(["measure", str(path), "--path"]) == 0
    assert f"unknown ({found['reason']})" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_part_gets_a_suggestion(file, capsys):
    said = fails_in_one_line(["measure", str(file), "--by", "agnet"], capsys)
    assert 'did you mean "agent"?' in said


def test_parts_do_not_go_into_a_table(file, tmp_path, capsys):
    argv = ["measure", str(file), "--by", "agent", "-o", str(tmp_path / "m.parquet")]
    assert "leave out -o" in fails_in_one_line(argv, capsys)


def test_nobody_knows_how_an_unknown_measure_is_known(file, capsys):
    assert main(["measure", str(file), "--json"]) == 0
    measures = objects(capsys)[0]["measures"]
    assert measures["speedup"]["value"] is None and measures["speedup"]["how"] is None
    assert all((m["value"] is None) == (m["how"] is None) for m in measures.values())


def speedups(argv, capsys):
    assert main(["measure", *argv, "--json"]) == 0
    out = capsys.readouterr()
    lines = [json.loads(line) for line in out.out.splitlines()]
    return [line["measures"]["speedup"]["value"] for line in lines], out.err


def test_one_baseline_is_that_of_all_traces(tmp_path, file, capsys):
    store.write(tmp_path / "solo.jsonl", [alone()])
    argv = [str(file), "--baseline", str(tmp_path / "solo.jsonl")]
    assert speedups(argv, capsys) == ([2.0], "")  # ten seconds alone, five together


def test_of_several_baselines_it_is_that_of_the_same_task_and_seed(tmp_path, capsys):
    traces = [team(f"t{seed}", task="x", seed=seed) for seed in (1, 2, 3)]
    store.write(tmp_path / "t.jsonl", traces)
    solos = [alone(f"s{s}", 5.0 * s, task="x", seed=s) for s in (2, 1)]
    store.write(tmp_path / "solos.jsonl", solos)
    argv = [str(tmp_path / "t.jsonl"), "--baseline", str(tmp_path / "solos.jsonl")]
    found, said = speedups(argv, capsys)
    assert found == [1.0, 2.0, None]
    why = "no baseline is of the same task and seed"
    assert said.splitlines() == [f"stretto: 1 trace has no baseline in {argv[2]}: {why}"]


def test_a_baseline_of_another_task_is_none(tmp_path, capsys):
    store.write(tmp_path / "t.jsonl", [team(task="x")])
    store.write(tmp_path / "solo.jsonl", [alone(task="y")])
    argv = [str(tmp_path / "t.jsonl"), "--baseline", str(tmp_path / "solo.jsonl")]
    found, said = speedups(argv, capsys)
    assert found == [None] and "no baseline" in said and "is of another task" in said


def test_a_baseline_that_does_not_fit_says_so_in_the_measures(tmp_path, capsys):
    """Of one seed there are two baselines, of another none."""
    store.write(tmp_path / "t.jsonl", [team(f"t{seed}", task="x", seed=seed) for seed in (1, 2)])
    solos = [alone(name, task="x", seed=1) for name in ("s", "s2")]
    store.write(tmp_path / "solos.jsonl", solos)
    argv = [str(tmp_path / "t.jsonl"), "--baseline", str(tmp_path / "solos.jsonl")]
    whys = [f"{what} of the same task and seed" for what in ("2 baselines are", "no baseline is")]
    assert main(["measure", *argv, "--json"]) == 0
    out = capsys.readouterr()
    lines = [json.loads(line) for line in out.out.splitlines()]
    assert [line["measures"]["turn_overhead"]["reason"] for line in lines] == whys
    assert [line["measures"]["speedup"]["reason"] for line in lines] == whys
    assert all(why in said for why, said in zip(whys, out.err.splitlines(), strict=True))
    table = tmp_path / "m.parquet"
    assert main(["measure", *argv, "-o", str(table)]) == 0
    assert capsys.readouterr().err == out.err
    assert main(["query", "SELECT speedup_reason FROM m", str(table), "--json"]) == 0
    assert [row["speedup_reason"] for row in objects(capsys)] == whys


@pytest.mark.parametrize("asked", [["--by", "agent"], ["--path"]])
def test_a_baseline_is_not_ignored_where_it_says_nothing(tmp_path, file, asked, capsys):
    store.write(tmp_path / "solo.jsonl", [alone()])
    argv = ["measure", str(file), "--baseline", str(tmp_path / "solo.jsonl"), *asked]
    assert "leave it out, or --by and --path" in fails_in_one_line(argv, capsys)


def test_a_table_has_the_baseline_too(tmp_path, file, capsys):
    store.write(tmp_path / "solo.jsonl", [alone()])
    table = tmp_path / "m.parquet"
    argv = ["--baseline", str(tmp_path / "solo.jsonl"), "-o", str(table)]
    assert main(["measure", str(file), *argv]) == 0
    capsys.readouterr()
    assert main(["query", "SELECT speedup FROM m", str(table), "--json"]) == 0
    assert objects(capsys) == [{"speedup": 2.0}]


@pytest.mark.parametrize("name", ["x.csv", "x", "x.parquet.gz"])
def test_a_table_is_no_file_that_promises_another_format(tmp_path, file, name, capsys):
    argv = ["measure", str(file), "-o", str(tmp_path / name)]
    assert "is a Parquet file" in fails_in_one_line(argv, capsys)
    assert not (tmp_path / name).exists()


def test_without_a_path_there_is_nothing_to_measure(capsys):
    assert "nothing to measure (name a file" in fails_in_one_line(["measure"], capsys)
