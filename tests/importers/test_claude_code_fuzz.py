"""Damaged transcripts: a trace, or one clear error; never anything else."""

import json
import tempfile
from copy import deepcopy
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import import_paths
from stretto.metrics import measure
from stretto.store import decode, encode
from stretto.validate import problems

from .transcripts import (
    LEAD,
    NEWS,
    PARENT,
    answer,
    assistant,
    background,
    call,
    child,
    progress,
    queued,
    spawn,
    user,
)

RECORDS = [
    *PARENT[:2],
    *(progress("t1", "x1", entry, at) for at, entry in enumerate(child(), 3)),
    *PARENT[2:],
    *background(queued(NEWS, 7), user(NEWS, 9))[1:],
    *LEAD[1:],
    assistant("z1", 20, call("z", "TaskOutput", task_id="x1"), spawn("z2", "again", resume="x1")),
    answer("z", 21, "<status>completed</status>", {"task": {"status": "completed"}}),
]
DATA = b"".join(json.dumps(entry).encode() + b"\n" for entry in RECORDS)


def check(data):
    """Import the bytes; whatever comes out is a valid trace that can be stored and measured."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "S.jsonl"
        path.write_bytes(data)
        try:
            traces = import_paths([path]).traces
        except StrettoError as error:
            assert "S.jsonl" in str(error)
            return
    for trace in traces:
        assert not list(problems(trace))
        assert decode(encode(trace), "x") == [trace]
        assert all(event.duration is None or event.duration >= 0 for event in trace.events)
        try:
            measure(trace)
        except StrettoError as error:
            assert "loop" in str(error)


places = st.integers(0, len(DATA) - 1)


@settings(deadline=None)
@given(places)
def test_a_file_cut_at_any_byte(place):
    check(DATA[:place])


@settings(deadline=None)
@given(st.lists(st.tuples(places, st.integers(0, 255)), max_size=20))
def test_bytes_that_flipped(changes):
    data = bytearray(DATA)
    for place, value in changes:
        data[place] = value
    check(bytes(data))


@settings(deadline=None)
@given(places, st.integers(0, 2000))
def test_a_stretch_that_is_missing(place, length):
    check(DATA[:place] + DATA[place + length :])


@settings(deadline=None)
@given(st.permutations(RECORDS))
def test_records_in_any_order(records):
    check(b"".join(json.dumps(entry).encode() + b"\n" for entry in records))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 10**20),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([[], {}, [1], [[]], {"a": 1}, "\ud800", "0001-01-01T00:00:00+23:59", "x1"]),
)


@settings(deadline=None)
@given(st.data())
def test_values_of_other_types_anywhere(data):
    records = json.loads(json.dumps(RECORDS))
    for _ in range(data.draw(st.integers(1, 6))):
        node = data.draw(st.sampled_from(records))
        while True:
            inside = [(k, v) for k, v in _items(node) if isinstance(v, dict | list) and v]
            if not inside or data.draw(st.booleans()):
                break
            node = data.draw(st.sampled_from(inside))[1]
        key = data.draw(st.sampled_from([key for key, _ in _items(node)]))
        node[key] = deepcopy(data.draw(ODD))
    check(b"".join(json.dumps(entry).encode() + b"\n" for entry in records))


def _items(node):
    return list(node.items()) if isinstance(node, dict) else list(enumerate(node))
