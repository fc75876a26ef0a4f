"""Work in several processes outlives those that die; what was being measured is named."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stretto import store
from stretto.errors import StrettoError
from stretto.metrics.pool import run_each
from stretto.metrics.table import measure_paths

from ..examples import event, trace

DEADLY = '''
"""Stretto's own format; reading some files ends the process."""
import os
import signal
from stretto.importers import own
from stretto.importers.own import *

def import_files(files):
    if files[0].stem == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return own.import_files(files)
'''


def test_an_item_on_which_its_process_dies_is_none_and_the_others_are_done():
    items = [str(n) for n in range(12)]
    items[5] = "exit"
    found = dict(run_each(exit_or_number, items, workers=2))
    assert found == {n: None if n == 5 else n for n in range(12)}


def test_where_every_process_dies_it_is_an_error_that_says_what_to_do():
    with pytest.raises(StrettoError, match="one worker"):
        list(run_each(exit_or_number, ["exit"] * 3, workers=2))


def test_who_wants_no_more_waits_for_nobody(tmp_path):
    """Two processes would sleep for a minute; the first result is enough."""
    begun = time.monotonic()
    results = run_each(sleep_or_end, [str(tmp_path), *[f"{tmp_path}/{n}" for n in "ab"]], 2)
    assert next(results)[0] == 0
    ids = ids_of_two(tmp_path)
    results.close()
    assert time.monotonic() - begun < 30
    assert are_gone(ids)


def test_an_interrupt_ends_the_processes(tmp_path):
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in run_each(sleep_or_end, [str(tmp_path), *[f"{tmp_path}/{n}" for n in "ab"]], 2):
            ids = ids_of_two(tmp_path)
            raise KeyboardInterrupt
    assert time.monotonic() - begun < 30
    assert are_gone(ids)


def test_processes_end_with_the_one_that_started_them(tmp_path):
    """It is killed, so that it can tell nobody."""
    items = [f"{tmp_path}/{n}" for n in "ab"]
    code = (
        "from stretto.metrics.pool import run_each\n"
        "from tests.metrics.test_pool_table import sleep_or_end\n"
        f'if __name__ == "__main__": list(run_each(sleep_or_end, {items!r}, 2))'
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = str(Path(__file__).parents[2])
    first = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root})
    ids = ids_of_two(tmp_path)
    first.kill()
    first.wait()
    assert are_gone(ids)


def sleep_or_end(item: str) -> int:
    """Nothing for a folder; else write who does it to a file, and sleep."""
    if Path(item).is_dir():
        return 0
    Path(f"{item}.new").write_text(str(os.getpid()))
    Path(f"{item}.new").rename(item)
    time.sleep(60)
    return 1


def ids_of_two(folder):
    """Who is at work in both processes, as soon as they are."""
    wait_until(lambda: all((folder / name).exists() for name in "ab"))
    return [int((folder / name).read_text()) for name in "ab"]


def are_gone(ids):
    return wait_until(lambda: not any(is_alive(each) for each in ids))


def is_alive(id):
    try:
        return Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def exit_or_number(item: str) -> int:
    if item == "exit":
        os.kill(os.getpid(), signal.SIGKILL)
    return int(item)


def test_a_session_that_kills_its_process_is_told_and_the_rows_of_the_others_stay(
    tmp_path, monkeypatch
):
    (tmp_path / "code" / "formats").mkdir(parents=True)
    (tmp_path / "code" / "formats" / "deadly.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(tmp_path / "code")
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name in ("a", "b", "deadly", "e", "f"):
        store.write(folder / f"{name}.jsonl", [trace(event("0#0"), id=name)])
    seen = []
    found = measure_paths(
        [folder],
        format="formats.deadly",
        workers=2,
        show=lambda done, total: seen.append((done, total)),
    )
    assert [row["trace"] for row in found.rows] == ["a", "b", "e", "f"]
    (unread,) = found.unread
    assert Path(unread.file).name == "deadly.jsonl"
    assert "not read: the process that measured it died" in str(unread.warnings[0])
    assert seen == [(done, 5) for done in range(1, 6)]
