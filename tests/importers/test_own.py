"""Stretto's own files among those of an import."""

import json

import pytest

import stretto
from stretto import store
from stretto.errors import StrettoError
from stretto.importers import import_paths
from stretto.importers.conformance import check_importer

from ..examples import event, trace

TRACES = [trace(event("0#0", start=0.0), id=name) for name in ("a", "b")]


def test_traces_are_read_as_they_are(tmp_path):
    store.write(tmp_path / "t.jsonl", TRACES)
    imported = import_paths([tmp_path])
    assert list(imported.traces) == TRACES
    assert imported.report[0].records == 8  # for each trace: itself, an agent, an event, the end
    check_importer("stretto", [tmp_path / "t.jsonl"])


def test_of_a_cut_file_the_whole_traces_are_read(tmp_path):
    path = tmp_path / "t.jsonl"
    store.write(path, TRACES)
    path.write_bytes(path.read_bytes()[:-20])
    imported = import_paths([path])
    assert list(imported.traces) == TRACES[:1]
    (notice,) = imported.report[0].warnings
    assert notice.where.endswith("t.jsonl:8")
    path.write_bytes(path.read_bytes().split(b"\n")[0][:-5])
    with pytest.raises(StrettoError):
        import_paths([path])


def test_one_trace_may_be_saved_as_it_is(tmp_path):
    store.write(tmp_path / "t.jsonl", TRACES[0])
    assert store.read(tmp_path / "t.jsonl") == TRACES[:1]


def test_records_that_another_program_wrote_again_are_read(tmp_path):
    """With blanks, and with the fields in another order."""
    path = tmp_path / "t.jsonl"
    lines = [json.loads(line) for line in store.encode(TRACES[0]).splitlines()]
    for keys in (False, True):
        path.write_text("".join(json.dumps(each, sort_keys=keys) + "\n" for each in lines))
        assert stretto.load(path) == TRACES[0]
        assert list(import_paths([path]).traces) == TRACES[:1]
        path.write_bytes(path.read_bytes() + path.read_bytes()[:-9])
        assert list(import_paths([path]).traces) == TRACES[:1]
        with pytest.raises(StrettoError):
            stretto.load(path)
