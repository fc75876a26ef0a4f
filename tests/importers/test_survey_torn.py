"""A file of the survey's schema that was cut still tells what stands before the cut."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from stretto.errors import StrettoError
from stretto.exporters.survey import to_survey
from stretto.importers import detect, import_paths
from stretto.importers.survey.torn import read_torn
from stretto.trace import Agent, Edge, Event, Score, Trace

from ..strategies import examples

TRACE = Trace(
    id="t",
    agents=(Agent(id="a", role="lead"), Agent(id="b", parent="a", model="m")),
    events=(
        Event(id="e0", kind="spawn", agent="a", start=0.0, to="b", attrs={"role": "worker"}),
        Event(id="e1", kind="stop", agent="b", start=1.0, duration=0.5),
        Event(id="e2", kind="return", agent="b", start=2.0, to="a"),
    ),
    edges=(
        Edge("e0", "e1", "spawn", "derived"),
        Edge("e1", "e2", "causal"),
        Edge("e0", "e2", "causal", "heuristic"),
    ),
    scores=(Score(channel="r", value=1.0), Score(channel="r", value=0.5, event="e2")),
)
DOCUMENT = to_survey(TRACE)
WHOLE = json.dumps(DOCUMENT, indent=1).encode()
ORDER = ("trace_id", "edges", "events", "task_id", "rewards", "costs")
TURNED = json.dumps({name: DOCUMENT[name] for name in ORDER}, indent=1).encode()
"""With the edges before the events, and the task behind."""


def cut_before(data, mark):
    return data[: data.index(mark.encode())]


def test_events_before_the_cut_are_read_and_the_line_is_told(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(cut_before(WHOLE, '"id": "e2"'))
    imported = import_paths([path])
    (found,) = imported.traces
    assert found.events == TRACE.events[:2]
    assert found.agents == TRACE.agents
    assert (found.edges, found.scores) == ((), ())
    (notice,) = imported.report[0].warnings
    line = WHOLE.count(b"\n", 0, WHOLE.index(b'"id": "e2"')) + 1
    assert str(notice).startswith(f"{path}:{line}: the document is cut")


def test_edges_before_the_cut_are_read():
    found, _ = read_torn(cut_before(WHOLE, '"rewards"'), "f.json")
    assert found.events == TRACE.events
    assert found.edges == TRACE.edges
    assert found.scores == TRACE.scores[1:]


def test_edges_whose_events_are_lost_are_left_out_and_the_others_keep_their_evidence():
    found, _ = read_torn(cut_before(TURNED, '"id": "e1"'), "f.json")
    assert (found.events, found.edges) == (TRACE.events[:1], ())
    swapped = {**deepcopy(DOCUMENT), "edges": [*DOCUMENT["edges"][1:], DOCUMENT["edges"][0]]}
    extra = swapped["events"][0]["stretto"]["trace"]
    extra["edges"] = {"1": ["causal", "heuristic"], "2": ["spawn", "derived"]}
    data = json.dumps({name: swapped[name] for name in ORDER}, indent=1).encode()
    found, _ = read_torn(cut_before(data, '"id": "e2"'), "f.json")
    assert found.edges == TRACE.edges[:1]


def test_a_file_that_is_whole_is_not_torn():
    assert read_torn(WHOLE, "f.json") is None
    assert read_torn(json.dumps({**DOCUMENT, "task_id": 5}).encode(), "f.json") is None


def test_where_no_event_is_whole_nothing_is_read():
    with pytest.raises(StrettoError, match=r"f\.json: events"):
        read_torn(cut_before(WHOLE, '"id": "e0"'), "f.json")


def test_documents_can_stand_one_a_line(tmp_path):
    path = tmp_path / "t.jsonl"
    line = json.dumps(DOCUMENT).encode()
    path.write_bytes(b"\n".join([line, b"", line, line]) + b"\n")
    assert stretto.load_all(path) == [TRACE] * 3
    path.write_bytes(b"\n".join([line, line[:-200]]))
    imported = import_paths([path])
    assert imported.traces[0] == TRACE
    assert imported.traces[1].events == TRACE.events
    (notice,) = imported.report[0].warnings
    assert notice.where.startswith(f"{path}:2:")
    with pytest.raises(StrettoError, match=r"t\.jsonl:2:1:\d+: .*cut"):
        stretto.load_all(path)


def test_a_long_file_with_its_name_at_the_end_is_known(tmp_path):
    events = [{"id": f"e{row}", "t": row, "type": "return", "agent": "a"} for row in range(6000)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({**DOCUMENT, "events": events}, sort_keys=True))
    assert len(stretto.load(path).events) == 6000


@pytest.mark.parametrize("data", [WHOLE, TURNED], ids=["as written", "turned"])
def test_who_loads_a_file_gets_all_of_it_or_an_error(tmp_path, data):
    """An import says what it left out; `load` has nobody to tell."""
    path = tmp_path / "t.json"
    path.write_bytes(data)
    assert stretto.load(path) == TRACE
    path.write_bytes(cut_before(data, '"id": "e2"'))
    with pytest.raises(StrettoError, match=r"t\.json:\d+:\d+: .*cut"):
        stretto.load(path)


@examples(150)
@given(st.sampled_from([WHOLE, TURNED]), st.data())
def test_wherever_it_is_cut_what_is_read_is_part_of_the_trace(data, draw):
    cut = data[: draw.draw(st.integers(1, len(data) - 2))]
    try:
        read = read_torn(cut, "f.json")
    except StrettoError as error:
        assert error.where.startswith("f.json")
        return
    assert read is not None
    found, notices = read
    ids = [event.id for event in TRACE.events]
    assert [event.id for event in found.events] == ids[: len(found.events)]
    assert found.events[:-1] == TRACE.events[: len(found.events) - 1]
    assert {(e.src, e.dst) for e in found.edges} <= {(e.src, e.dst) for e in TRACE.edges}
    assert len(notices) == 1


def test_a_last_event_that_the_cut_went_through_is_no_event():
    for mark in ('"duration"', '"to": "a"', '"type": "return"'):
        found, _ = read_torn(cut_before(WHOLE, mark), "f.json")
        assert found.events == TRACE.events[: len(found.events)]


def test_documents_that_are_whole_are_read_whatever_stands_around_them(tmp_path):
    path = tmp_path / "t.jsonl"
    line = json.dumps(DOCUMENT).encode()
    for around in ([line[:300], line, line], [b"", b"noise", line, line[:60]], [line, b"{}"]):
        path.write_bytes(b"\n".join(around))
        imported = import_paths([path])
        assert [trace for trace in imported.traces if trace == TRACE]
        assert imported.report[0].warnings
        with pytest.raises(StrettoError):
            stretto.load_all(path)


def test_documents_can_stand_in_a_list(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([DOCUMENT, {**DOCUMENT, "trace_id": "u"}], indent=2))
    assert [trace.id for trace in stretto.load_all(path)] == ["t", "u"]


def test_every_layout_of_a_document_is_known(tmp_path):
    """Also one whose last edge is a line of its own, as in the survey's example."""
    path = tmp_path / "t.json"
    edges = ",\n".join(json.dumps(edge) for edge in DOCUMENT["edges"])
    rest = json.dumps({**DOCUMENT, "edges": []}, indent=1)
    path.write_text(rest.replace('"edges": []', f'"edges": [\n{edges}\n]'))
    assert detect(path) == "survey"
    assert import_paths([path]).traces == (TRACE,)
