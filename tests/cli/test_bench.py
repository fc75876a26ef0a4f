"""`stretto bench`: what cannot end well does not begin, and what went wrong is said."""

import json

import pytest
from tests.bench.endpoints import said, serving

from stretto.bench.text import BEGIN, END
from stretto.cli.main import main

SMALL = ["--families", "hops", "--bands", "10", "--topologies", "swarm", "--instances", "2"]
FAST = ["--workers", "1", "--retries", "0", "--timeout", "5"]


@pytest.fixture
def server():
    with serving() as found:
        yield found


def run(folder, *flags):
    return main(["bench", "run", str(folder), *SMALL, *FAST, *map(str, flags)])


def refused(capsys, folder):
    """The one line of an exam that did not begin."""
    (line,) = capsys.readouterr().err.splitlines()
    rows = folder / "results.jsonl"
    assert not rows.exists() or not rows.read_bytes(), "something was played"
    return line


class TestEndpoint:
    pytest.importorskip("httpx2", reason="the extra `endpoint` is not installed")

    @pytest.mark.parametrize("url", ["nonsense", "ftp://x", "", "http://[::1"])
    def test_no_address(self, url, tmp_path, capsys):
        assert run(tmp_path / "r", "--model", url) == 2
        assert "as in http://localhost" in refused(capsys, tmp_path / "r")

    def test_nobody_there(self, tmp_path, capsys):
        assert run(tmp_path / "r", "--model", "http://127.0.0.1:1/v1") == 2
        line = refused(capsys, tmp_path / "r")
        assert "http://127.0.0.1:1/v1" in line and "check the address" in line

    def test_wrong_key(self, server, tmp_path, capsys):
        server.answer = lambda number, body: (401, {})
        assert run(tmp_path / "r", "--model", server.url) == 2
        assert "status 401" in refused(capsys, tmp_path / "r")
        assert len(server.asked) == 1

    def test_the_name_of_a_baseline(self, server, tmp_path, capsys):
        assert run(tmp_path / "r", "--model", server.url, "--name", "oracle") == 2
        assert "is the name of a baseline" in refused(capsys, tmp_path / "r")
        assert server.asked == []

    def test_a_model_sits_the_exam(self, server, tmp_path, capsys):
        assert run(tmp_path / "r", "--model", server.url, "--json") == 0
        assert json.loads(capsys.readouterr().out)["errors"] == []
        for verb in ("submit-check", "verify"):
            assert main(["bench", verb, str(tmp_path / "r" / "submission")]) == 0
            assert "too few for a result" in capsys.readouterr().out

    def test_room_for_thoughts_is_a_flag(self, server, tmp_path, capsys):
        server.answer = lambda number, body: (
            200,
            {"choices": [{"message": {"content": None}, "finish_reason": "length"}]},
        )
        assert run(tmp_path / "r", "--model", server.url, "--answer-tokens", 40) == 2
        assert "cut after 40 tokens" in refused(capsys, tmp_path / "r")
        assert server.asked[0][1]["max_tokens"] == 40

    def test_only_errors_are_no_success(self, server, tmp_path, capsys):
        server.answer = lambda number, body: said("1") if number == 1 else (500, {})
        flags = "--model", server.url, "--no-baselines"
        assert run(tmp_path / "r", *flags) == 2
        told = capsys.readouterr()
        assert "2 errors (not scored)" in told.out
        assert "most frequent error, 2 times" in told.out and "status 500" in told.out
        assert 'every episode of "default" is an error' in told.err
        server.answer = lambda number, body: said("1")
        assert run(tmp_path / "r", *flags) == 0


class TestPages:
    @pytest.fixture
    def pages(self, tmp_path):
        (tmp_path / "unmarked.md").write_text("# Mine\n")
        (tmp_path / "latin.md").write_bytes(b"caf\xe9\n")
        (tmp_path / "empty.md").touch()
        (tmp_path / "marked.md").write_text(f"before\n{BEGIN}\n{END}\nafter\n")
        return tmp_path

    @pytest.mark.parametrize(
        ("flag", "name", "words"),
        [
            ("--html", "lost/x.html", "no such folder"),
            ("--html", ".", "is a folder"),
            ("--markdown", ".", "is a folder"),
            ("--markdown", "lost/x.md", "no such folder"),
            ("--markdown", "latin.md", "not a page of UTF-8"),
            ("--markdown", "unmarked.md", "does not mark where the table stands"),
        ],
    )
    def test_a_page_that_cannot_be_written_is_told_first(self, pages, capsys, flag, name, words):
        assert run(pages / "r", flag, pages / name) == 2
        assert words in refused(capsys, pages / "r")

    def test_pages_are_written(self, pages, capsys):
        assert run(pages / "r", "--html", pages / "r" / "x.html") == 0
        assert (pages / "r" / "x.html").read_text("utf-8").startswith("<!doctype html>")
        for name in ("empty.md", "new.md", "marked.md"):
            assert main(["bench", "show", str(pages / "r"), "--markdown", str(pages / name)]) == 0
            assert "| hops | swarm |" in (pages / name).read_text("utf-8")
        assert (pages / "marked.md").read_text("utf-8").endswith("after\n")
        for name in (".", "latin.md", "unmarked.md"):
            assert main(["bench", "show", str(pages / "r"), "--markdown", str(pages / name)]) == 2


@pytest.mark.parametrize("policy", ["", "nobody"])
def test_no_policy(policy, tmp_path, capsys):
    assert run(tmp_path / "r", "--policy", policy) == 2
    line = refused(capsys, tmp_path / "r")
    assert f'no policy "{policy}"' in line and "script:" in line


def test_a_folder_that_is_no_training_run(tmp_path, capsys):
    assert run(tmp_path / "r", "--policy", tmp_path) == 2
    line = refused(capsys, tmp_path / "r")
    assert "holds no training run" in line and "stretto train" in line
