"""What is to know about a file that was read is told to whoever loads it."""

import subprocess
import sys
import warnings

import pytest

import stretto
from stretto.cli.main import main
from stretto.errors import SourceWarning

from .importers.transcripts import assistant, user, write


@pytest.fixture
def cut(tmp_path):
    path = write(
        tmp_path / "lead.jsonl", user("Go.", 0), assistant("m1", 1, "Yes."), user("On.", 2)
    )
    path.write_bytes(path.read_bytes()[:-30])
    return path


@pytest.mark.parametrize("load", [stretto.load, stretto.load_all])
def test_a_file_that_is_cut_is_read_with_a_warning_at_the_caller(cut, load):
    with pytest.warns(SourceWarning, match=r"lead\.jsonl:\d+: the file is cut") as told:
        load(cut)
    assert [warning.filename for warning in told] == [__file__]


def test_a_whole_file_is_read_without_a_warning(tmp_path):
    whole = tmp_path / "t.jsonl"
    stretto.save(whole, [stretto.Trace(id="t")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stretto.load(whole)


@pytest.mark.parametrize("verb", ["measure", "check"])
def test_the_command_line_tells_it_in_one_line(cut, verb):
    command = [sys.executable, "-m", "stretto.cli.main", verb, str(cut)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"stretto: {cut}:")
    assert "the file is cut" in line


def test_measuring_a_folder_counts_the_files_with_warnings(cut, capsys):
    assert main(["measure", str(cut.parent)]) == 0
    said = "stretto: 1 file was read with warnings; stretto import --report lists them\n"
    assert capsys.readouterr().err == said
    assert main(["measure", str(cut.parent), "-o", str(cut.parent / "t.parquet")]) == 0
    assert capsys.readouterr().err == said
