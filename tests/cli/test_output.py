"""Where output goes: files whole or not at all, pipes clean, mistakes told before long work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.metrics import table

from .test_commands import fails_in_one_line

SURVEY = {
    "trace_id": "t",
    "task_id": "x",
    "edges": [],
    "rewards": {},
    "costs": {},
    "events": [{"id": "a", "t": 0, "type": "message", "agent": "0"}],
}
STDOUT = Path("/dev/stdout")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.json"
    path.write_text(json.dumps(SURVEY))
    return path


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "stretto.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not STDOUT.exists(), reason="no /dev/stdout here")
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_pipe_holds_the_traces_alone(source: Path, flags: tuple[str, ...]) -> None:
    done = run("import", source, "-o", STDOUT, *flags)
    records = [json.loads(line)["record"] for line in done.stdout.splitlines()]
    assert (records[0], records[-1], done.returncode) == ("trace", "end", 0)
    assert "1 traces" in done.stderr or '"traces":1' in done.stderr


@pytest.mark.skipif(not STDOUT.exists(), reason="no /dev/stdout here")
def test_a_reader_that_leaves_is_no_mistake(source: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "stretto.cli.main", "measure", str(source)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_told_in_one_line(source: Path, capsys: pytest.CaptureFixture[str]):
    said = fails_in_one_line(["import", str(source), "-o", "/dev/full"], capsys)
    assert "cannot be written" in said


def test_a_pipe_is_not_called_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe" in fails_in_one_line(["import", str(tmp_path / "pipe")], capsys)


def test_what_a_table_needs_is_asked_for_before_anything_is_measured(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(table, "measure_paths", lambda *_, **__: pytest.fail("measured"))
    absent = str(tmp_path / "absent" / "m.parquet")
    assert "no such folder" in fails_in_one_line(["measure", str(source), "-o", absent], capsys)
    folder = ["measure", str(source), "-o", str(tmp_path)]
    assert "is a folder" in fails_in_one_line(folder, capsys)
    monkeypatch.setitem(sys.modules, "polars", None)
    output = str(tmp_path / "m.parquet")
    assert "stretto[polars]" in fails_in_one_line(["measure", str(source), "-o", output], capsys)
    again = ["export", str(source), "--to", "parquet"]
    monkeypatch.delitem(sys.modules, "stretto.exporters.parquet", raising=False)
    assert "stretto[polars]" in fails_in_one_line(again, capsys)


def test_the_query_that_is_proposed_works(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a b-c.parquet"
    assert main(["measure", str(source), "-o", str(path)]) == 0
    assert main(["measure", str(source), "-o", str(path)]) == 0  # over the first
    said = capsys.readouterr().out
    assert f"'SELECT trace, makespan FROM a_b_c' '{path}'" in said
    assert main(["query", "SELECT trace FROM a_b_c", str(path)]) == 0


def test_unknown_files_of_a_folder_are_told_in_short(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text("{}")
    assert main(["import", str(tmp_path), "-o", str(tmp_path / "t.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "other.json: not read: no known format (" in said and "looked for" not in said
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "a.json").write_text("{}")
    (tmp_path / "only" / "b.json").write_text('[{"trajectory_id": "x"}]')
    said = fails_in_one_line(["import", str(tmp_path / "only")], capsys)
    assert "b.json: no known format; looked for" in said and "closest is agentrx" in said


def test_a_file_whose_name_is_no_text_is_told_and_the_others_are_read(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    try:
        odd.write_bytes(source.read_bytes())
    except OSError:
        pytest.skip("this file system wants names in UTF-8")
    output = tmp_path / "t.jsonl"
    assert main(["import", str(tmp_path), "-o", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["traces"], told["report"][-1]["warnings"][0]["what"]) == (
        1,
        "not read: its name is not UTF-8 (rename it)",
    )
    assert "rename it" in fails_in_one_line(["import", str(odd)], capsys)


@pytest.mark.skipif(not STDOUT.exists(), reason="no /dev/stdout here")
def test_a_table_may_go_through_a_pipe_whose_name_has_no_ending(source: Path) -> None:
    command = [sys.executable, "-m", "stretto.cli.main", "measure", source, "-o", STDOUT]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout[:4], done.stdout[-4:]) == (0, b"PAR1", b"PAR1")


@pytest.mark.parametrize("verb", [("report",), ("redact",), ("export", "--to", "survey")])
def test_no_command_replaces_what_it_reads(tmp_path: Path, verb: tuple[str, ...]) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    kept = folder / "one.json"
    kept.write_text(json.dumps(SURVEY))
    for read in (kept, folder):
        done = run(verb[0], read, *verb[1:], "-o", kept)
        assert (done.returncode, json.loads(kept.read_text())) == (2, SURVEY)
        assert "would replace" in done.stderr


def test_a_page_does_not_take_the_place_of_results(tmp_path: Path) -> None:
    done = run("bench", "show", tmp_path, "--html", tmp_path / "results.jsonl")
    assert done.returncode == 2
    assert "would stand among the results" in done.stderr
