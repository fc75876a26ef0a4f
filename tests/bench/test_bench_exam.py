"""A policy that sits the exam: batches, interrupts, processes, and runs that were trained."""

from hashlib import blake2b

import pytest
import torch
from msgspec.structs import replace
from tests.bench.exams import single, tiny

from stretto.bench import run as running
from stretto.bench.examinee import LearnedTable, examinee
from stretto.bench.results import read_rows
from stretto.bench.run import run_exam
from stretto.bench.submission import TRACES, home_of, read_manifest
from stretto.bench.suite import FIRST
from stretto.bench.verify import verify
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.learn.recipe import Recipe, dump
from stretto.policies.config import PolicyConfig
from stretto.policies.softmax import Softmax
from stretto.policies.tabular import Tabular
from stretto.team.protocols import Answer, Ask

from ..tiny import make_tiny


class Company:
    """As a model whose rounding depends on company, but grossly: remembers its first answers."""

    def __init__(self, most=10**9):
        self._known = {}
        self._left = most

    def decide(self, asks):
        """Break off, as ^C does, after `most` calls."""
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        company = blake2b("".join(sorted(a.prompt for a in asks)).encode()).digest()
        return [Answer(self._chosen(ask, company[0]), "company") for ask in asks]

    def _chosen(self, ask, company):
        return self._known.setdefault((ask.prompt, ask.candidates), company % len(ask.candidates))

    def forget(self):
        self._known.clear()


def company(most=10**9):
    policy = Company(most)
    who = single("company", {"kind": "test"}, policy)
    return replace(who, forget=policy.forget)


def rows_of(folder):
    return sorted(read_rows(folder), key=lambda row: row.key)


def traces_of(folder):
    (home,) = (folder / "submission").glob(f"*/{TRACES}")
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*.jsonl")}


@pytest.mark.parametrize("calls", [1, 9, 14, 20, 26])
def test_an_interrupt_changes_no_byte_and_costs_one_batch(tmp_path, monkeypatch, calls):
    monkeypatch.setattr(running, "BATCH", 2)
    exam = tiny(5, topologies=["centralized"])
    run_exam(exam, tmp_path / "whole", company())
    with pytest.raises(KeyboardInterrupt):
        run_exam(exam, tmp_path / "part", company(calls))
    told = []
    run_exam(exam, tmp_path / "part", company(), show=lambda *each: told.append(each[:2]))
    assert told[0] == (0, told[-1][1]) and told[-1][0] == told[-1][1]
    assert rows_of(tmp_path / "part") == rows_of(tmp_path / "whole")
    assert traces_of(tmp_path / "part") == traces_of(tmp_path / "whole")
    assert len(read_manifest(home_of(tmp_path / "part", "company")).episodes) == 10


class Broken:
    """Fails at some decisions, whoever is asked along with them."""

    def decide(self, asks):
        if any(ask.key % 10 == 0 for ask in asks):
            raise StrettoError("too long", "prompt")
        return Softmax().decide(asks)


def test_an_episode_that_fails_is_an_error_of_its_own(tmp_path):
    who = single("broken", {"kind": "test"}, Broken())
    run_exam(tiny(6), tmp_path, who, attempts=0)
    rows = read_rows(tmp_path)
    errors = [row.seed for row in rows if row.error is not None]
    assert 0 < len(errors) < 6 and {row.seed for row in rows} == set(range(FIRST, FIRST + 6))
    whole = single("broken", {"kind": "test"}, Softmax())
    run_exam(tiny(6), tmp_path, whole, attempts=0)
    assert not any(row.error for row in read_rows(tmp_path))


def test_a_longer_exam_is_that_exam(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "BATCH", 4)
    for count in (1, 3, 6):
        run_exam(tiny(count), tmp_path / "grown", company(), attempts=0)
    run_exam(tiny(6), tmp_path / "whole", company(), attempts=0)
    assert rows_of(tmp_path / "grown") == rows_of(tmp_path / "whole")


@pytest.mark.parametrize("name", ["oracle", "slips", "mine alone"])
def test_a_policy_has_a_name_of_its_own(tmp_path, name):
    with pytest.raises(StrettoError, match="is the name of a baseline"):
        run_exam(tiny(), tmp_path, single(name, {}, Softmax()))


@pytest.fixture
def trained(tmp_path):
    """A folder as a finished run leaves it: a table that knows nothing, of `scouts`."""
    folder = tmp_path / "mine"
    folder.mkdir()
    recipe = Recipe(task={"family": "scouts"}, policy=PolicyConfig(kind="tabular"))
    (folder / "config.toml").write_text(dump(recipe))
    Tabular().export(folder / "weights")
    return folder


def test_a_learned_table_answers_as_the_trained_one(tmp_path):
    trained = Tabular()
    logits = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    pairs = [["red", "go"], ["red", "stop"], ["blue", "go"]]
    trained.restore({"logits": logits, "pairs": pairs, "version": 0})
    trained.export(tmp_path)
    table = LearnedTable(tmp_path / "table.json")
    assert table.size == 3
    asks = [
        Ask(f"0#{key}", "", prompt, candidates, "lead", key)
        for prompt in ("red", "blue", "green")
        for candidates in (("go", "stop"), ("stop", "wait", "go"))
        for key in range(20)
    ]
    for one, other in zip(trained.decide(asks), table.decide(asks), strict=True):
        assert one.chosen == other.chosen
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-12)
    assert table.size == 3, "what it met is not added"


LIMITS = ("--families", "scouts", "--bands", "10", "--topologies", "centralized")
WORDS = (*LIMITS, "--conditions", "clean", "--instances", "2", "--no-baselines", "--json")


def test_a_trained_table_sits_the_exam_in_processes(tmp_path, trained, capsys):
    for workers in ("1", "2"):
        words = ("run", tmp_path / workers, "--policy", trained, "--workers", workers, *WORDS)
        assert main(["bench", *map(str, words)]) == 0
    assert rows_of(tmp_path / "1") == rows_of(tmp_path / "2")
    assert traces_of(tmp_path / "1") == traces_of(tmp_path / "2")
    rows = verify(tmp_path / "2" / "submission")
    assert sorted(rows, key=lambda row: row.key) == rows_of(tmp_path / "2")
    assert {row.policy for row in rows} == {"mine", "mine alone"}


def test_a_trained_model_is_slow_and_can_be_made_again(trained):
    recipe = Recipe(task={"family": "scouts"}, policy=PolicyConfig(kind="lm"))
    (trained / "config.toml").write_text(dump(recipe))
    make_tiny(trained / "weights")
    who = examinee(str(trained))
    assert (who.name, who.source, who.home) == ("mine", str(trained), True)
    assert who.about["kind"] == "lm" and who.forget is not None


def test_a_run_without_weights_is_refused(trained):
    (trained / "weights" / "table.json").unlink()
    (trained / "weights").rmdir()
    with pytest.raises(StrettoError, match="the run left no weights"):
        examinee(str(trained))
