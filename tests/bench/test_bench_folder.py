"""A folder of results: one submission a policy, one set of settings, and mistakes in one line."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.bench.exams import Counting, single, tiny

from stretto.bench.examinee import script
from stretto.bench.play import Limits, play
from stretto.bench.results import ROWS, RUN, append, open_folder, read_rows
from stretto.bench.run import run_exam
from stretto.bench.submission import MANIFEST, TRACES, home_of, read_manifest
from stretto.bench.suite import FIRST, read_split, suite, to_json
from stretto.bench.tokens import counted, turn_tokens
from stretto.bench.verify import check, verify
from stretto.errors import StrettoError
from stretto.policies.softmax import Softmax
from stretto.team.protocols import Answer
from stretto.trace import Tokens

COUNTING = single("counting", {"kind": "test"}, Counting())


def sit(folder, who=COUNTING, instances=2, attempts=0, tokens=None, **only):
    run_exam(tiny(instances, **only), folder, who, attempts=attempts, tokens=tokens)
    return home_of(folder, who.name)


def test_policies_share_results_but_no_traces(tmp_path):
    """Each is verified with what it did itself, whoever sat last."""
    oracle, random = script("oracle"), script("random")
    for who in (oracle, random, oracle):
        sit(tmp_path, who)
    rows = read_rows(tmp_path)
    for who in (oracle, random):
        home = home_of(tmp_path, who.name)
        assert read_manifest(home).policy == who.name
        assert verify(home) == [row for row in rows if row.policy == who.name]
    assert [row.values["outcome"] for row in rows] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"tokens": 50.0}, "another tokens"),
        ({"attempts": 2}, "another attempts"),
        ({"who": replace(COUNTING, about={"kind": "test", "address": "b"})}, "another about"),
        ({"who": replace(COUNTING, name="counting-")}, "another policy"),
    ],
)
def test_other_settings_get_no_old_rows(tmp_path, changes, match):
    home = sit(tmp_path)
    before = (home / MANIFEST).read_bytes(), (tmp_path / ROWS).read_bytes()
    with pytest.raises(StrettoError, match=match):
        sit(tmp_path, **changes)
    assert before == ((home / MANIFEST).read_bytes(), (tmp_path / ROWS).read_bytes())


def test_settings_hold_from_the_first_episode_on(tmp_path):
    class Stopped:
        def decide(self, asks):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sit(tmp_path, replace(single("counting", {"kind": "test"}, Stopped())))
    with pytest.raises(StrettoError, match="another tokens"):
        sit(tmp_path, tokens=50.0)
    check(sit(tmp_path))


def test_rows_without_traces_are_no_submission(tmp_path):
    home = sit(tmp_path / "own")
    open_folder(tmp_path / "board", tiny())
    append(tmp_path / "board", verify(home))
    with pytest.raises(StrettoError, match='rows of "counting" are here without its traces'):
        sit(tmp_path / "board")


def test_a_submission_grows(tmp_path):
    home = sit(tmp_path)
    sit(tmp_path, families=["scouts"], topologies=["centralized"])
    assert {each.cell for each in read_manifest(home).episodes} == set(read_manifest(home).cells)
    assert len(verify(home)) == 4
    sit(tmp_path, instances=3)
    with pytest.raises(StrettoError, match="no episode of scouts"):
        check(home)
    sit(tmp_path, families=["scouts"], topologies=["centralized"], instances=3)
    sit(tmp_path, instances=1)
    assert len(verify(home)) == 6


def test_what_a_kill_leaves_is_removed(tmp_path):
    home = sit(tmp_path)
    (cell,) = (home / TRACES).iterdir()
    whole = sorted(path.name for path in cell.iterdir())
    (home / f".{MANIFEST}.1.partial").touch()
    (cell / f".{FIRST}.jsonl.1.partial").touch()
    (cell / f"{FIRST + 7}.jsonl").write_text("played, but no row was written")
    sit(tmp_path)
    assert sorted(path.name for path in cell.iterdir()) == whole
    check(home)


def test_a_trace_that_is_gone_is_played_again(tmp_path):
    home = sit(tmp_path)
    next(home.glob(f"{TRACES}/*/{FIRST}.jsonl")).unlink()
    sit(tmp_path)
    check(home)


class Odd:
    """Breaks at some instances, as nobody expected."""

    def __init__(self, error):
        self._error = error

    def decide(self, asks):
        if any(ask.key % 10 == 0 for ask in asks):
            raise self._error
        return Counting().decide(asks)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    "error", [ValueError("\ud800"), TypeError(), AttributeError("x"), RecursionError("deep")]
)
def test_whatever_a_policy_raises_is_an_error_of_its_episode(tmp_path, error, threads):
    sit(tmp_path, single("odd", {"kind": "test"}, Odd(error), threads), 6)
    rows = read_rows(tmp_path)
    errors = [row for row in rows if row.error is not None]
    assert 0 < len(errors) < 6 == len(rows)
    assert all(type(error).__name__ in row.error and row.values == {} for row in errors)


class Absurd:
    """Answers one choice; reads more tokens than there are."""

    def __init__(self, chosen):
        self._chosen = chosen

    def decide(self, asks):
        return [Answer(self._chosen, "p", tokens=Tokens(input=10**30)) for _ in asks]


def test_an_answer_beyond_the_menu_is_an_error(tmp_path):
    sit(tmp_path, single("absurd", {"kind": "test"}, Absurd(99), 1))
    assert all(row.error for row in read_rows(tmp_path))


def test_tokens_that_nobody_has_are_not_counted(tmp_path):
    home = sit(tmp_path, single("absurd", {"kind": "test"}, Absurd(0), 1))
    assert all(0 < row.values["tokens"] < 10**9 for row in verify(home))


class Slow:
    """Answers quickly until it has been asked `most` times; then nobody gets an answer in time."""

    def __init__(self, most):
        self._left = most
        self.stuck = threading.Event()
        self.late = 0

    def decide(self, asks):
        self._left -= 1
        if self._left < 0:
            self.stuck.set()
            time.sleep(0.3)
            self.late += 1
        return Counting().decide(asks)


@pytest.mark.parametrize("place", ["waiting", "showing"])
def test_an_interrupt_keeps_what_was_paid_for(tmp_path, place):
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in background has none
    try:
        _interrupted(tmp_path, place)
    finally:
        signal.signal(signal.SIGINT, heard)


def _interrupted(tmp_path, place):
    slow = Slow(60)
    who = single("slow", {"kind": "test"}, slow, 4)

    def show(done, total, where):
        if place == "showing" and done:
            raise KeyboardInterrupt

    def interrupt():
        slow.stuck.wait()
        signal.raise_signal(signal.SIGINT)

    if place == "waiting":
        threading.Thread(target=interrupt, daemon=True).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_exam(tiny(30), tmp_path, who, attempts=0, show=show)
    assert time.monotonic() - begun < 5
    assert slow.late <= 4, "only calls under way end"
    home = home_of(tmp_path, "slow")
    traces = {int(path.stem) for path in home.glob(f"{TRACES}/*/*.jsonl")}
    rows = {row.seed for row in read_rows(tmp_path)}
    assert 0 < len(rows) < 30 and traces == rows
    assert {each.seed for each in read_manifest(home).episodes} == rows
    told = []
    who = single("slow", {"kind": "test"}, Counting(), 4)
    run_exam(tiny(30), tmp_path, who, attempts=0, show=lambda *each: told.append(each[:2]))
    assert told[0] == (0, 30 - len(rows))
    assert len(verify(home)) == 30


STUCK = """
import signal, sys, time
from pathlib import Path
from stretto.bench.run import run_exam
from tests.bench.exams import single, tiny

class Stuck:
    def decide(self, asks):
        Path(sys.argv[1]).touch()
        time.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)
run_exam(tiny(4), Path(sys.argv[2]), single("stuck", {"kind": "test"}, Stuck(), 2), attempts=0)
"""


def test_a_call_that_hangs_keeps_no_process_alive(tmp_path):
    command = [sys.executable, "-c", STUCK, str(tmp_path / "called"), str(tmp_path / "out")]
    child = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    begun = time.monotonic()
    while not (tmp_path / "called").exists():
        assert time.monotonic() - begun < 20
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    try:
        child.wait(timeout=10)
    finally:
        child.kill()


@pytest.mark.parametrize("said", ["xx", "[]", "{}", '{"versions": 3}', ""])
def test_a_description_that_is_none(tmp_path, said):
    sit(tmp_path)
    (tmp_path / RUN).write_text(said)
    with pytest.raises(StrettoError, match=r"run\.json") as error:
        sit(tmp_path)
    assert "\n" not in str(error.value)


def test_places_that_hold_no_results(tmp_path):
    (tmp_path / "afile").touch()
    (tmp_path / "odd" / ROWS).mkdir(parents=True)
    places = [tmp_path / "afile", tmp_path / "afile" / "x", tmp_path / "odd"]
    for folder in (*places, Path("/dev/null"), Path("/proc/nope")):
        with pytest.raises(StrettoError) as error:
            open_folder(folder, tiny())
        assert str(folder) in str(error.value) and "\n" not in str(error.value)
        with pytest.raises(StrettoError):
            read_rows(folder)
        with pytest.raises(StrettoError):
            append(folder, [])


@pytest.mark.parametrize(
    ("field", "value"),
    [("band", "77"), ("family", "hopz"), ("topology", "sworm"), ("condition", "curse")],
)
def test_rows_of_cells_that_no_exam_has(tmp_path, field, value):
    sit(tmp_path)
    first, *others = (tmp_path / ROWS).read_text().splitlines()
    broken = {**json.loads(first), field: value}
    (tmp_path / ROWS).write_text("\n".join([json.dumps(broken), *others, ""]))
    with pytest.raises(StrettoError, match=rf'results\.jsonl:1: no .* "{value}"'):
        read_rows(tmp_path)


def test_conditions_are_known_ones():
    with pytest.raises(StrettoError, match=r'no condition "lies" \(did you mean "lie"'):
        suite(only={"conditions": ["lies"]})
    with pytest.raises(StrettoError, match=r'"x" \(known: clean, lookup, remark, report'):
        suite(only={"families": ["hops"], "conditions": ["x"]})
    with pytest.raises(StrettoError, match="planted in the band 100 only"):
        suite(only={"families": ["hops"], "bands": ["10"], "conditions": ["lookup"]})


def test_a_private_split_has_no_name_of_its_own(tmp_path):
    (tmp_path / "secret-plan.json").write_text("[7, 8, 9]")
    split = read_split(tmp_path / "secret-plan.json")
    exam = replace(tiny(2), split=split)
    assert "secret" not in json.dumps(to_json(exam)) and split.name == "private"
    run_exam(exam, tmp_path / "out", COUNTING, attempts=0)
    home = home_of(tmp_path / "out", "counting")
    assert "secret" not in (home / MANIFEST).read_text()
    assert [row.seed for row in verify(home, split)] == [7, 8]


def half(trace, tokens):
    """Tokens at every second turn only."""
    turns = [event.id for event in trace.events if event.kind == "decision"]
    told = dict(zip(turns, tokens, strict=False))
    return replace(trace, events=tuple(replace(e, tokens=told.get(e.id)) for e in trace.events))


@pytest.mark.parametrize("absurd", [None, Tokens(input=-1), Tokens(input=10**30, output=1)])
def test_words_and_tokens_have_no_sum(absurd):
    """One turn without a credible count, and all turns are counted in words."""
    (cell,) = tiny().cells
    task = cell.task(FIRST)
    policies = dict.fromkeys(task.harness.roles, Softmax())
    (trace,) = play([task], [FIRST], policies, Limits())
    count = len(turn_tokens(counted(trace)))
    words = turn_tokens(counted(half(trace, [])))
    assert turn_tokens(counted(half(trace, [absurd] + [Tokens(input=1)] * (count - 1)))) == words
    assert set(turn_tokens(counted(half(trace, [Tokens(input=1)] * count))).values()) == {1}
