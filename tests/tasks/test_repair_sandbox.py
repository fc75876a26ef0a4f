"""The sandbox: real tests, and everything that they must not do."""

import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from stretto.tasks.repair import forks as repair_forks
from stretto.tasks.repair import sandbox as repair_sandbox
from stretto.tasks.repair.sandbox import (
    Limits,
    Ran,
    cached_batch,
    cached_tests,
    isolation,
    run_tests,
)

QUICK = Limits(cpu_seconds=1, wall_seconds=20.0)
SUITE = "from low import low\ndef test_low():\n    assert low() == {}\n"


def body(code: str, limits: Limits = QUICK) -> Ran:
    """The result of one test with this body."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return run_tests({"test_it.py": f"def test_one():\n{lines}"}, limits)


def test_tests_pass_and_fail_by_name() -> None:
    ran = run_tests(
        {
            "tavok.py": "def tavok(x):\n    return x + 1\n",
            "test_tavok.py": "from tavok import tavok\n"
            "def test_a():\n    assert tavok(1) == 2\n"
            "def test_b():\n    assert tavok(1) == 3\n"
            "def helper():\n    assert False\n",
            "test_broken.py": "import nothing_of_that_name\n",
        }
    )
    assert ran == Ran(
        passed=("test_tavok.test_a",), failed=("test_broken", "test_tavok.test_b"), error=""
    )


def test_what_it_prints_changes_nothing() -> None:
    assert body("print('{\"passed\": []}')") == Ran(passed=("test_it.test_one",))


@pytest.mark.parametrize(
    "code",
    [
        "import socket\nsocket.socket()",
        "import _socket\n_socket.socket()",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')",
        "import subprocess\nsubprocess.run(['true'])",
        "import os\nos.fork()",
        "import os\nos.system('true')",
        "import ctypes",
        "import os\nopen('own', 'w').close()\nos.remove('own')",
        "open('large', 'w').write('x' * 100_000)",
        "x = bytearray(2**31)",
        "for number in range(100):\n    globals()[f'f{number}'] = open('own', 'w')",
        "import os\nassert os.environ.get('PATH')",
    ],
)
def test_what_it_must_not_do_fails(code: str) -> None:
    assert body(code).failed or body(code).error


def test_it_cannot_write_outside_of_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "escaped"
    ran = body(f"open({str(target)!r}, 'w').write('x')")
    assert ran.failed == ("test_it.test_one",)
    assert not target.exists()
    assert body("open('inside', 'w').write('x')").passed


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("while True:\n    pass", "was killed by signal"),
        ("import os, signal\nos.abort()", "was killed by signal"),
        ("import os\nos._exit(3)", "said nothing readable, exit code 3"),
        ("raise SystemExit", "said nothing readable, exit code 0"),
    ],
)
def test_a_run_that_does_not_end_well_is_an_error(code: str, error: str) -> None:
    ran = body(code)
    assert ran.error.startswith(error)
    assert not ran.passed and not ran.failed


def test_a_run_that_sleeps_is_an_error() -> None:
    ran = body("import time\ntime.sleep(30)", Limits(wall_seconds=0.5))
    assert ran == Ran(error="did not end within 0.5 seconds")


def test_without_namespaces_the_hook_alone_refuses_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_forks, "unshare", lambda: ())
    monkeypatch.setattr(repair_forks, "_forks", {})
    assert body("import socket\nsocket.socket()").failed
    assert body("assert 1 + 1 == 2").passed
    repair_forks.close()


def test_no_run_leaves_anything_behind_for_another_one() -> None:
    spoil = "import builtins, json, sys\nbuiltins.max = None\nsys.modules['kept'] = json"
    assert body(spoil).passed
    assert body("import sys\nassert max(1, 2) == 2 and 'kept' not in sys.modules").passed
    assert body("import os\nopen('left', 'w').close()").passed
    assert body("import os\nassert os.listdir('.') == []").passed


def test_a_run_holds_no_file_of_the_clean_process() -> None:
    assert body("import os\nassert set(os.listdir('/proc/self/fd')) <= {'0', '1', '2', '3'}").passed
    assert body("import sys\nassert sys.stdin.read() == ''").passed


def test_a_clean_process_that_is_gone_is_an_error_and_started_again() -> None:
    assert body("assert True").passed
    forks = repair_forks._forks[os.getpid()]
    forks._process.kill()
    forks._process.wait()
    assert body("assert True") == Ran(error="did not start")
    assert body("assert True").passed
    assert repair_forks._forks[os.getpid()] is not forks


def test_an_answer_that_nobody_read_is_not_that_of_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert body("assert True").passed

    def interrupted(line, type):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repair_forks, "decode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            body("assert True")
    assert os.getpid() not in repair_forks._forks
    assert body("assert False").failed


def test_a_process_that_is_forked_off_has_a_clean_process_of_its_own() -> None:
    assert body("assert True").passed
    with get_context("fork").Pool(1) as pool:
        ran, own = pool.apply(_elsewhere)
    assert ran.passed
    assert own != repair_forks._forks[os.getpid()]._process.pid
    assert body("assert True").passed


def _elsewhere() -> tuple[Ran, int]:
    ran = body("assert True")
    return ran, repair_forks._forks[os.getpid()]._process.pid


SUITES = {
    "one": {"low.py": "def low():\n    return 1\n", "test_one.py": SUITE.format(1)},
    "two": {"low.py": "def low():\n    return 1\n", "test_two.py": SUITE.format(2)},
    "bad": {"test_bad.py": "import nothing_of_that_name\n"},
}


def test_a_batch_says_what_its_suites_say_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {name: run_tests(files) for name, files in SUITES.items()}
    assert alone["one"].passed == ("test_one.test_low",)
    assert alone["two"].failed == ("test_two.test_low",)
    assert alone["bad"].failed == ("test_bad",)
    runs: list[int] = []

    def counted(files, limits=None):
        runs.append(len(files))
        return run_tests(files, limits)

    monkeypatch.setattr(repair_sandbox, "_kept", {})
    monkeypatch.setattr(repair_sandbox, "run_tests", counted)
    assert cached_batch(SUITES) == alone
    assert runs == [4]
    assert cached_batch(SUITES) == {name: cached_tests(SUITES[name]) for name in SUITES} == alone
    assert runs == [4]


def test_a_suite_that_breaks_the_batch_breaks_no_other_one(monkeypatch) -> None:
    monkeypatch.setattr(repair_sandbox, "_kept", {})
    loop = {"test_loop.py": "import os\ndef test_it():\n    os._exit(3)\n"}
    found = cached_batch({**SUITES, "loop": loop})
    assert found["one"].passed == ("test_one.test_low",)
    assert found["loop"] == Ran(error="said nothing readable, exit code 3")


def test_the_oldest_result_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair_sandbox, "_kept", {})
    monkeypatch.setattr(repair_sandbox, "MOST_KEPT", 2)
    for name in SUITES:
        cached_tests(SUITES[name])
    keys = [repair_sandbox._key(SUITES[name]) for name in ("two", "bad")]
    assert list(repair_sandbox._kept) == keys


def test_it_says_how_the_network_is_kept_away() -> None:
    assert isolation() in ("namespace", "hook")
    if isolation() == "namespace":
        lines = "[line.split(':')[0].strip() for line in open('/proc/self/net/dev') if ':' in line]"
        assert body(f"assert set({lines}) <= {{'lo'}}").passed
