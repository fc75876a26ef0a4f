"""`stretto export` and `stretto redact`: what they write, what they say, and their mistakes."""

import json
from pathlib import Path

import pytest

from stretto import store
from stretto.cli.main import main

from ..exporters.sample import sample


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of two traces, in the working directory."""
    monkeypatch.chdir(tmp_path)
    store.write("run.jsonl", [sample(), sample(attrs={"who": "ann@example.org"})])
    return Path("run.jsonl")


def said(capsys):
    return json.loads(capsys.readouterr().out)


def mistake(argv, capsys):
    """The one line of a command that must fail."""
    assert main(argv) == 2
    out = capsys.readouterr()
    assert not out.out
    (line,) = out.err.strip().splitlines()
    return line


def test_export_names_the_file_after_the_source_and_says_what_is_left_out(file, capsys):
    assert main(["export", str(file), "--to", "chrome"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wrote run.trace.json"
    assert lines[1].startswith("warning: chrome cannot hold everything; left out: ")
    assert "events without a time: 2" in lines[1]
    assert json.loads(Path("run.trace.json").read_text())["traceEvents"]


def test_a_format_of_one_trace_a_file_writes_one_each(file, capsys):
    assert main(["export", str(file), "--to", "atif", "-o", "out.json", "--json"]) == 0
    found = said(capsys)
    assert found["files"] == ["out-1.json", "out-2.json"]
    assert (found["trace_ids"], found["left_out"]) == (["t", "t"], {})
    assert all(json.loads(Path(name).read_text())["steps"] for name in found["files"])


def test_files_sort_as_their_traces_and_say_which_is_which(file, capsys):
    store.write("many.jsonl", [sample(attrs={"n": n}) for n in range(12)])
    assert main(["export", "many.jsonl", "--to", "graphml", "-o", "g/x.graphml"]) == 2
    assert main(["export", "many.jsonl", "--to", "graphml", "-o", "x.graphml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wrote x-01.graphml: t"
    assert [f"wrote {path}: t" for path in sorted(Path().glob("x-*"))] == lines[:12]


def test_several_files_go_into_no_stream(file, capsys):
    before = set(Path("/dev").iterdir())
    for name in ("atif", "graphml"):
        said = mistake(["export", str(file), "--to", name, "-o", "/dev/null"], capsys)
        assert "2 files cannot go into one stream" in said
    assert "stream" in mistake(["export", str(file), "--to", "atif", "-o", "-"], capsys)
    assert set(Path("/dev").iterdir()) == before


def test_none_of_several_files_replaces_the_source(file, capsys):
    file.rename("run-2.jsonl")
    argv = ["export", "run-2.jsonl", "--to", "atif", "-o", "run.jsonl"]
    assert "would replace the file" in mistake(argv, capsys)


@pytest.mark.parametrize("verb", [("export", "--to", "otlp"), ("redact",)])
def test_of_a_file_that_was_cut_the_error_says_how_to_go_on(file, capsys, verb):
    data = file.read_bytes()
    file.write_bytes(data[:-30])
    said = mistake([verb[0], str(file), *verb[1:]], capsys)
    assert f"`stretto import {file}` takes the traces that are whole" in said
    assert main(["import", str(file), "-o", "whole.jsonl"]) == 0
    assert store.read("whole.jsonl") == [sample()]
    file.write_bytes(data[: len(data) // 3])  # nothing of it is whole
    capsys.readouterr()
    assert "stretto import" not in mistake([verb[0], str(file), *verb[1:]], capsys)


def test_a_format_that_holds_everything_warns_of_nothing(file, capsys):
    assert main(["export", str(file), "--to", "otlp"]) == 0
    assert capsys.readouterr().out == "wrote run.otlp.jsonl\n"
    assert len(Path("run.otlp.jsonl").read_text().splitlines()) == 2


def test_help_says_what_becomes_of_several_traces(capsys):
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    text = capsys.readouterr().out
    assert "put all traces of a file into one" in text
    assert "OUT-1" in text


def test_mistakes_of_export_are_one_line_and_write_nothing(file, capsys):
    before = set(Path().iterdir())
    run = ["export", str(file), "--to"]
    assert 'did you mean "graphml"' in mistake([*run, "grapml"], capsys)
    assert "no such folder" in mistake([*run, "otlp", "-o", "nowhere/x"], capsys)
    assert "would replace the file" in mistake([*run, "otlp", "-o", "run.jsonl"], capsys)
    assert "no such file" in mistake(["export", "none.jsonl", "--to", "otlp"], capsys)
    assert set(Path().iterdir()) == before


def test_redact_writes_and_reports(file, capsys):
    argv = ["redact", str(file), "-o", "safe.jsonl", "--contents", "keep", "--json"]
    assert main(argv) == 0
    found = said(capsys)
    assert (found["output"], found["traces"]) == ("safe.jsonl", 2)
    assert found["report"]["replaced"] == {"e-mail": {"trace.attrs": 1}}
    one, other = store.read("safe.jsonl")
    assert one == sample()
    assert other.attrs["who"].startswith("<e-mail:")


def test_redact_takes_the_texts_out_unless_told_otherwise(file, capsys):
    assert main(["redact", str(file)]) == 0
    assert "texts hashed: 14" in capsys.readouterr().out
    assert "ann@" not in Path("redacted.jsonl").read_text()
    assert [run.contents for run in store.read("redacted.jsonl")] == [{}, {}]


def test_mistakes_of_redact_are_one_line(file, capsys):
    assert "would replace the file" in mistake(["redact", str(file), "-o", str(file)], capsys)
    assert "--contents" in mistake(["redact", str(file), "--contents", "burn"], capsys)
