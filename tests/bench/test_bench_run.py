"""Running an exam: paired, resumable, and nothing that was computed is lost."""

import json

import pytest
from tests.bench.exams import Counting, single, submitted, tiny

from stretto.bench import run as running
from stretto.bench.bands import make
from stretto.bench.baselines import Alone, Watched, again, memory, seat
from stretto.bench.play import Limits, play
from stretto.bench.results import ROWS, RUN, read_rows
from stretto.bench.run import run_baselines, run_exam
from stretto.bench.suite import FIRST, Cell
from stretto.bench.table import lines
from stretto.bench.text import BEGIN, END
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.policies.softmax import Softmax
from stretto.tasks.scripts import scripts_of
from stretto.team.replay import replay

NAMES = ("oracle", "random")


def rows_of(folder):
    return sorted(read_rows(folder), key=lambda row: row.key)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    exam = tiny(4)
    run_baselines(exam, tmp_path / "whole", NAMES)
    played = []

    def interrupted(job, work=running._work):
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(job.seed)
        return work(job)

    monkeypatch.setattr(running, "_work", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_baselines(exam, tmp_path / "part", NAMES)
    assert len(read_rows(tmp_path / "part")) == 4
    assert lines(read_rows(tmp_path / "part")), "partial results have a table"
    monkeypatch.undo()
    seen = []
    run_baselines(exam, tmp_path / "part", NAMES, show=lambda done, total: seen.append(total))
    assert seen == [2, 2]
    assert rows_of(tmp_path / "part") == rows_of(tmp_path / "whole")


def test_a_line_that_was_cut_is_played_again(tmp_path):
    run_baselines(tiny(2), tmp_path, NAMES)
    whole = rows_of(tmp_path)
    data = (tmp_path / ROWS).read_bytes()
    (tmp_path / ROWS).write_bytes(data[:-40])
    assert len(read_rows(tmp_path)) == 3
    run_baselines(tiny(2), tmp_path, NAMES)
    assert rows_of(tmp_path) == whole


def test_more_instances_are_added(tmp_path):
    run_baselines(tiny(1), tmp_path, NAMES)
    run_baselines(tiny(3), tmp_path, NAMES)
    assert {row.seed for row in read_rows(tmp_path)} == {FIRST, FIRST + 1, FIRST + 2}
    assert len((tmp_path / ROWS).read_text().splitlines()) == 6


def test_results_of_other_versions_do_not_mix(tmp_path):
    run_baselines(tiny(1), tmp_path, NAMES)
    said = json.loads((tmp_path / RUN).read_text())
    said["versions"]["generator"] = "0"
    (tmp_path / RUN).write_text(json.dumps(said))
    with pytest.raises(StrettoError, match="made with another generator"):
        run_baselines(tiny(2), tmp_path, NAMES)


def test_a_policy_that_breaks_is_an_error_of_its_own(tmp_path, monkeypatch):
    def broken(cell, seed, names, replays):
        raise ValueError("no such thing")

    monkeypatch.setattr(running, "sit", broken)
    run_baselines(tiny(1), tmp_path, NAMES)
    found = read_rows(tmp_path)
    assert [row.error for row in found] == ["ValueError: no such thing"] * 2
    assert all(line.episodes == 0 and line.errors == 1 for line in lines(found))
    monkeypatch.undo()
    run_baselines(tiny(1), tmp_path, NAMES)
    assert all(row.error is None for row in read_rows(tmp_path))


def test_processes_give_the_same_rows(tmp_path):
    run_baselines(tiny(2), tmp_path / "one", NAMES)
    run_baselines(tiny(2), tmp_path / "two", NAMES, workers=2)
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


def test_alone_sends_nobody_and_can_be_replayed():
    task = make("gather", {}, 3)
    watched = Watched(task)
    policies = dict.fromkeys(task.harness.roles, Alone(Softmax(), watched))
    (trace,) = play([watched], [3], policies, Limits())
    assert len(trace.agents) == 1
    assert replay(trace, task) is None
    team = dict.fromkeys(task.harness.roles, Softmax())
    sizes = [len(play([task], [seed], team, Limits())[0].agents) for seed in range(12)]
    assert max(sizes) > 1


def test_attempts_differ_and_the_first_is_the_policy_itself():
    cell = Cell("gather", "100", "centralized")
    met, policies = seat(cell, cell.task(FIRST), "slips")
    events = [play([met], [FIRST], again(policies, n), Limits())[0].events for n in (0, 0, 1)]
    assert events[0] == events[1] != events[2]


def test_memory_repeats_what_the_oracle_did_where_it_was():
    cell = Cell("scouts", "10", "centralized")
    task = cell.task(FIRST)
    table = memory(cell)
    policies = dict.fromkeys(task.harness.roles, table)
    seed = 5  # one that it has seen
    (own,) = play([task], [seed], policies, Limits())
    (shown,) = play([task], [seed], scripts_of(task)["oracle"], Limits())
    assert [e.decision.choice for e in own.events if e.decision] == [
        e.decision.choice for e in shown.events if e.decision
    ]


def test_an_episode_that_never_ends_is_a_forfeit(tmp_path):
    task = make("gather", {}, 3)
    (trace,) = play([task], [3], scripts_of(task)["oracle"], Limits(events=20))
    assert trace.attrs["ended"] == "limit"
    assert 20 < len(trace.events) < 60


def test_a_policy_sits_with_a_team_and_alone(tmp_path):
    submitted(tmp_path, attempts=2, topologies=["centralized", "swarm"])
    count = {}
    for row in read_rows(tmp_path):
        place = row.topology, row.policy
        count[place] = count.get(place, 0) + 1
    assert count == {
        ("centralized", "counting"): 2,
        ("swarm", "counting"): 2,
        ("centralized", "counting alone"): 4,
    }
    by = {(line.cell.topology, line.policy): line for line in lines(read_rows(tmp_path))}
    assert by["swarm", "counting"].gain is not None, "compared with itself alone"
    assert by["centralized", "counting alone"].passes.keys() == {"1", "2"}


def test_an_exam_goes_on_where_it_stopped(tmp_path):
    submitted(tmp_path, 1)
    seen = []
    who = single("counting", {"kind": "test"}, Counting())
    run_exam(tiny(3), tmp_path, who, attempts=0, show=lambda *told: seen.append(told))
    assert seen == [(0, 3, ""), (3, 3, "hops 10")]
    assert [row.seed for row in read_rows(tmp_path)] == [FIRST, FIRST + 1, FIRST + 2]


def cli(capsys, *words):
    code = main(["bench", *map(str, words)])
    return code, capsys.readouterr()


def test_commands(tmp_path, capsys):
    limits = ("--families", "hops", "--bands", "10", "--topologies", "swarm")
    words = ("run", tmp_path, *limits, "--conditions", "clean", "--instances", 2, "--workers", 1)
    code, said = cli(capsys, *words, "--policy", "script:oracle", "--json")
    assert code == 0
    assert {line["policy"] for line in json.loads(said.out)["lines"]} >= {"oracle", "script oracle"}
    assert cli(capsys, "show", tmp_path)[0] == 0
    code, said = cli(capsys, "show", tmp_path, "--markdown", tmp_path / "t.md")
    table = (tmp_path / "t.md").read_text()
    assert code == 0 and "| hops | swarm | 2 | 1.00 |" in table
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n")
    assert cli(capsys, "show", tmp_path, "--markdown", page)[0] == 0
    text = page.read_text()
    assert table in text and "old" not in text
    assert text.startswith("# Before") and text.endswith("after\n")
    page.write_text("no marks")
    assert cli(capsys, "show", tmp_path, "--markdown", page)[0] == 2
    code, said = cli(capsys, "submit-check", tmp_path / "submission")
    assert code == 0 and "2 episodes" in said.out
    board = tmp_path / "board"
    code, said = cli(capsys, "verify", tmp_path / "submission", "--json", "--out", board)
    assert [row.policy for row in read_rows(board)] == ["script oracle"] * 2
    assert code == 0 and json.loads(said.out)["verified"] == 2
    for words, status in (((), 2), (("--help",), 0)):
        with pytest.raises(SystemExit) as stopped:
            cli(capsys, *words)
        assert stopped.value.code == status


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "{}", "--families", "hopz"], 'did you mean "hops"?'),
        (["run", "{}", "--policy", "scripted"], "no policy"),
        (["run", "{}", "--policy", "lm", "--model", "http://x"], "not both"),
        (["run", "{}", "--instances", "5000"], "5000 instances"),
        (["show", "{}"], "holds no results.jsonl"),
        (["verify", "{}"], "no such file"),
        (["sho"], 'did you mean "show"?'),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, words, hint):
    code, said = cli(capsys, *(word.format(tmp_path) for word in words))
    assert code == 2
    assert hint in said.err and said.err.count("\n") == 1
