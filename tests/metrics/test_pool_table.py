"""Work in several processes outlives those that die; what was being measured is named."""

import os
import signal
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
