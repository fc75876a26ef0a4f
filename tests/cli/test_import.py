"""`stretto import`: what it never replaces or reads twice; standard output; ends by a signal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stretto import store
from stretto.cli.main import main

from ..exporters.sample import sample
from .test_commands import fails_in_one_line
from .test_output import STDOUT, SURVEY


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one transcript, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("session.json").write_text(json.dumps(SURVEY))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("session.json", "session.json"),
        ("session.json", "x/../session.json"),
        (".", "session.json"),
        (".", "notes.txt"),
    ],
)
def test_a_file_that_is_read_is_never_replaced(folder, capsys, source, output):
    Path("x").mkdir()
    Path("notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    said = fails_in_one_line(["import", source, "-o", output], capsys)
    assert "would replace" in said
    assert output in said
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_what_an_earlier_import_wrote_is_not_read_again(folder, capsys):
    for _ in range(2):
        assert main(["import", ".", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["traces"] == 1
    assert main(["import", "."]) == 0
    said = capsys.readouterr().out
    assert "traces.jsonl: not read: this is where the traces go" in said
    assert ".partial" not in said


def test_a_folder_that_holds_nothing_but_the_output_keeps_it(folder, capsys):
    assert main(["import", "session.json"]) == 0
    Path("session.json").unlink()
    capsys.readouterr()
    before = Path("traces.jsonl").read_bytes()
    assert "there is no trace" in fails_in_one_line(["import", "."], capsys)
    assert Path("traces.jsonl").read_bytes() == before


def test_traces_of_another_folder_are_read_and_those_beside_the_output_too(folder, capsys):
    store.write("older.jsonl", sample())
    assert main(["import", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traces"] == 2


@pytest.mark.skipif(not STDOUT.exists(), reason="no /dev/stdout here")
@pytest.mark.parametrize(
    "command",
    [
        ("import", "session.json", "-o", "-"),
        ("import", "session.json", "-o", "/dev/stdout"),
        ("redact", "session.json", "-o", "-"),
        ("export", "session.json", "--to", "otlp", "-o", "-"),
    ],
)
def test_a_dash_is_standard_output_also_where_that_is_a_file(folder, command):
    with Path("out").open("w") as out:
        out.write("first\n")
        out.flush()
        line = [sys.executable, "-m", "stretto.cli.main", *command]
        done = subprocess.run(line, stdout=out, stderr=subprocess.PIPE, text=True, check=True)
    first, *rest = Path("out").read_text().splitlines()
    assert first == "first"
    assert all(json.loads(line) for line in rest) and rest
    assert "wrote" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["out", "session.json"]


ENDLESS = """
import sys, time
from stretto.cli import import_
from stretto.cli.main import main
from stretto.importers import Imported
from stretto import load

def endless(paths, format):
    yield Imported((load(paths[0]),), ())
    print("under way", flush=True)
    time.sleep(60)

import_.import_each = endless
sys.exit(main(["import", "session.json", "-o", "t.jsonl"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_leaves_no_half_written_file(folder, name, code):
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "under way\n"
        assert len(list(folder.glob(".*.partial"))) == 1
        process.send_signal(getattr(signal, name))
        _, said = process.communicate(timeout=20)
    assert process.returncode == code
    assert len(said.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["session.json"]


def test_signals_are_as_they_were_afterwards(folder):
    before = signal.getsignal(signal.SIGTERM)
    assert main(["import", "session.json", "--json"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before
