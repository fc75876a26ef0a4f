"""`stretto diff`: what is known is told, what is left out is said."""

import json

import pytest

from stretto import store
from stretto.cli.main import main
from stretto.trace import Agent

from ..examples import event, trace


def one(id, seconds, **fields):
    return trace(event("0#0", start=0.0, duration=seconds), id=id, **fields)


def loop(id):
    events = (event("a", start=0.0, duration=1.0), event("b", start=1.0, duration=1.0))
    return trace(*events, edges=[("a", "b"), ("b", "a")], id=id)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def write(first, second):
        for name, traces in (("a", first), ("b", second)):
            store.write(tmp_path / f"{name}.jsonl", traces)
        return [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]

    return write


def told(argv, capsys):
    assert main(["diff", *argv, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert main(["diff", *argv]) == 0
    return data, capsys.readouterr().out


def test_loops_are_compared_by_measures_and_agents_and_the_steps_say_why_not(files, capsys):
    data, said = told(files([loop("x")], [one("y", 5.0)]), capsys)
    assert data["measures"]["makespan"]["first"]["value"] == 2.0
    assert data["measures"]["makespan"]["second"]["value"] == 5.0
    assert data["measures"]["span"]["first"] == {
        "value": None,
        "how": None,
        "reason": data["measures"]["span"]["first"]["reason"],
    }
    assert data["agents"] == {"0": [0, 1], "a": [1, 0], "b": [1, 0]}
    assert data["steps"] is None and data["common"] is None and "loop" in data["reason"]
    assert ["makespan", "2", "5", "3", "derived"] in [line.split() for line in said.splitlines()]
    assert ["a", "1", "0"] in [line.split() for line in said.splitlines()]
    assert "steps are not compared" in said and "loop" in said


def test_pairs_and_those_without_a_partner_are_counted(files, capsys):
    first = [one(f"a{s}", 1.0, task="x", seed=s) for s in (1, 2, 3)]
    second = [one(f"b{s}", 1.0 + s, task="x", seed=s) for s in (1, 2, 4, 5)]
    data, said = told(files(first, second), capsys)
    assert (data["traces"], data["paired"], data["left_out"]) == ([3, 4], True, [1, 2])
    assert data["measures"]["makespan"]["difference"] == 1.5  # the mean of 1 and 2
    assert "paired by task and seed; without a partner: 1 of A, 2 of B" in said


def test_one_pair_has_no_interval_and_says_so_once(files, capsys):
    both = [one("a1", 1.0, task="x", seed=1), one("a2", 1.0, task="x", seed=2)]
    data, said = told(files(both, [one("b", 4.0, task="x", seed=1)]), capsys)
    assert data["measures"]["makespan"]["low"] is None
    assert "unknown [1]" in said
    assert said.count("[1] fewer than 6 pairs") == 1


def test_groups_that_are_not_paired_say_why(files, capsys):
    data, said = told(files([one("a", 1.0), one("b", 3.0)], [one("c", 4.0), one("d", 6.0)]), capsys)
    assert data["paired"] is False and data["measures"]["makespan"]["difference"] == 3.0
    assert f"2 and 2 traces, not paired: {data['reason']}" in said
    assert "2 and 2" in next(line for line in said.splitlines() if line.startswith("makespan"))


def test_what_is_missing_from_either_is_a_note(files, capsys, monkeypatch):
    """The helper of the second left no transcript: what it worked is not known."""
    monkeypatch.setenv("COLUMNS", "120")
    hidden = (Agent(id="0"), Agent(id="0/0", parent="0", attrs={"transcript": False}))
    gone = "in the second: 1 of 2 agents left no transcript"
    _, said = told(files([one("a", 1.0)], [one("b", 3.0, agents=hidden)]), capsys)
    work = next(line.split() for line in said.splitlines() if line.startswith("work"))
    assert work[:5] == ["work", "1", "3", "2", "derived"]
    assert f"{work[5]} {gone}: a lower bound" in said.splitlines()
    groups = [
        [one(f"{side}{seed}", seconds, task="x", seed=seed, **more) for seed in (1, 2)]
        for side, seconds, more in (("a", 1.0, {}), ("b", 3.0, {"agents": hidden}))
    ]
    data, said = told(files(*groups), capsys)
    known = data["measures"]["work"]
    assert known["how"] == "derived" and known["no_interval"] == "fewer than 6 pairs"
    assert known["reason"] == gone.replace("1 of 2 agents", "2 of 2 traces: 1 of 2 agents")
    assert known["reason"] in said
