"""Blame on labelled failures: exact match, honest chance."""

import json

import pytest
from tests.importers.transcripts import DATA

from stretto.bench.blame import METHODS, Case, Guess, evaluate, method, read_cases
from stretto.cli.main import main
from stretto.errors import StrettoError

REAL = DATA / "who_and_when"


def case(step, agent="b", texts=("go", "x", "Traceback: bad", "x", "done")):
    return Case("1", "s", ("human", "a", "b", "a", "c"), texts, agent, step)


def run(name, **labels):
    (score,) = evaluate([case(**labels)], name, method(name))
    return score.agent.mean, score.step.mean


def test_chance_is_computed_not_drawn():
    """Of four steps of agents, one is labelled; `a` speaks in two of them."""
    assert run("random", step=2) == (1 / 4, 1 / 4)
    assert run("random", step=1, agent="a") == (2 / 4, 1 / 4)


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("first", Guess("a", 1)),
        ("last", Guess("c", 4)),
        ("busiest", Guess("a", 1)),
        ("first-error", Guess("a", 1)),
        ("repeat", Guess("a", 3)),
    ],
)
def test_methods(name, guess):
    assert METHODS[name](case(2)) == [guess]
    assert run(name, step=guess.step, agent=guess.agent) == (1.0, 1.0)


def test_a_part_of_a_label_is_no_match():
    """Step 1 is not step 12, and `Web` is not `WebSurfer`."""
    speakers = ("human", *["Web", "WebSurfer"] * 6)
    long = Case("1", "s", speakers, ("",) * 13, "WebSurfer", 12)
    (score,) = evaluate([long], "first", METHODS["first"])
    assert (score.agent.mean, score.step.mean) == (0.0, 0.0)


def write(folder, **changes):
    document = {
        "history": [
            {"role": "human", "content": "do"},
            {"role": "Orchestrator (thought)", "content": "plan"},
        ],
        "mistake_agent": "Orchestrator",
        "mistake_step": "1",
    }
    path = folder / "1.json"
    path.write_text(json.dumps({**document, **changes}))
    return path


def test_files_are_read(tmp_path):
    write(tmp_path)
    (found,) = read_cases(tmp_path)
    assert found.speakers == ("human", "Orchestrator")
    assert (found.agent, found.step, found.subset) == ("Orchestrator", 1, "hand-crafted")
    (score,) = evaluate([found], "last", METHODS["last"])
    assert (score.agent.mean, score.step.mean) == (1.0, 1.0)


def test_a_label_beyond_the_history_is_never_hit(tmp_path):
    (found,) = read_cases(write(tmp_path, mistake_step=7))
    assert all(
        score.step.mean == 0
        for name, guess in METHODS.items()
        for score in evaluate([found], name, guess)
    )


@pytest.mark.parametrize("broken", [{"history": 3}, {"mistake_step": None}, {"mistake_agent": 1}])
def test_other_files_are_refused(tmp_path, broken):
    with pytest.raises(StrettoError, match="not a labelled run"):
        read_cases(write(tmp_path, **broken))


@pytest.mark.parametrize("history", [[], [{"role": "human", "content": "do"}]])
def test_where_only_a_person_speaks_nobody_is_blamed(tmp_path, capsys, history):
    write(tmp_path, history=history)
    assert main(["bench", "blame", str(tmp_path)]) == 2
    assert "no agent speaks in this run" in capsys.readouterr().err
    alone = Case("1", "s", ("human",), ("do",), "a", 0)
    assert all(guess(alone) == [] for guess in METHODS.values())


def test_a_file_too_deep_is_one_line(tmp_path, capsys):
    (tmp_path / "1.json").write_text("[" * 100_000)
    assert main(["bench", "blame", str(tmp_path)]) == 2
    assert "not JSON" in capsys.readouterr().err


def test_mistakes_are_one_line(tmp_path, capsys):
    assert main(["bench", "blame", str(tmp_path)]) == 2
    assert "holds no JSON file" in capsys.readouterr().err
    write(tmp_path)
    assert main(["bench", "blame", str(tmp_path), "--method", "lost"]) == 2
    assert 'did you mean "last"?' in capsys.readouterr().err


def test_command(tmp_path, capsys):
    write(tmp_path)
    assert main(["bench", "blame", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {score["method"] for score in said["scores"]} == METHODS.keys()
    assert said["published"][0]["agent"] == 0.535


@pytest.mark.skipif(not REAL.is_dir(), reason="the samples of Who&When are not here")
def test_real_samples():
    cases = read_cases(REAL)
    assert {c.subset for c in cases} == {"algorithm-generated", "hand-crafted"}
    for each in cases:
        assert each.agent in each.speakers
        assert each.step < len(each.speakers)
    scores = {s.subset: s for s in evaluate(cases, "random", METHODS["random"])}
    assert 0 < scores["hand-crafted"].step.mean < 0.5
