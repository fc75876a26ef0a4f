"""Jobs in processes: every result arrives, and no process outlives whoever wanted it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto.bench.workers import done_by
from stretto.errors import StrettoError

SLEEPER = """
import sys
from pathlib import Path
from stretto.bench.workers import done_by
from tests.bench.test_bench_workers import sleep

if __name__ == "__main__":
    list(done_by(sleep, [Path(sys.argv[1]) / name for name in ("one", "two")], 2))
"""


def double(number):
    return 2 * number


def die(number):
    os._exit(number)


def sleep(path):
    """Say who sleeps, unless that is known; tidy up when woken."""
    if path.name == "none":
        return path
    path.write_text(str(os.getpid()))
    try:
        time.sleep(60)
    finally:
        path.with_suffix(".tidy").touch()
    return path


def wait_for(what):
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < 20
        time.sleep(0.02)


def alive(process):
    """Whether there is such a process, and it is no zombie."""
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_is_done(workers):
    assert sorted(done_by(double, range(5), workers)) == [0, 2, 4, 6, 8]
    assert list(done_by(double, [], workers)) == []


def test_a_process_that_dies_is_told():
    with pytest.raises(StrettoError, match="a worker process died"):
        list(done_by(die, [1, 2], 2))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes by /proc")
def test_who_stops_early_leaves_no_process_behind(tmp_path):
    results = done_by(sleep, [tmp_path / "long", tmp_path / "none"], 2)
    assert next(results).name == "none"
    wait_for((tmp_path / "long").exists)
    begun = time.monotonic()
    results.close()
    assert time.monotonic() - begun < 10
    assert not alive((tmp_path / "long").read_text())
    assert (tmp_path / "long.tidy").exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes by /proc")
def test_workers_end_with_a_parent_that_was_killed(tmp_path):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    root = Path(__file__).parents[2]
    command = [sys.executable, str(script), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    parent = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    pids = [tmp_path / name for name in ("one", "two")]
    wait_for(lambda: all(path.exists() and path.read_text() for path in pids))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not any(alive(path.read_text()) for path in pids))
