"""The quick ways to read a file of the survey's schema agree with the thorough one.

The thorough way reads events one by one as objects and looks every id up in a dict.
"""

import json
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto import hashing, order
from stretto.errors import StrettoError
from stretto.exporters.survey import TYPE_OF_KIND
from stretto.importers.survey import schema
from stretto.order import Order, by_dict, by_hashes, hashes_of
from stretto.trace import LABELS
from stretto.validate import find_loop, problems

from .examples import chain, event, trace
from .strategies import damaged, examples

IDS = ("e", "f", "é", "e0")
EVENT = {"id": "e", "t": 0, "type": "spawn", "agent": "a"}
ODD = [None, "", "z", -1, 0.5, True, 2**70, [], {}, {"duration": 1}, {"duration": -1}, [{"a": 1}]]


@contextmanager
def patched(**changes):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setattr(schema if name.startswith("_") else order, name, value)
        patch.setattr(schema, "is_large", order.is_large)
        yield


def outcome(data):
    """The trace that these bytes hold, or all parts of the error."""
    try:
        given = schema.from_survey(data, "f.json")
    except StrettoError as error:
        return error.what, error.where, error.hint
    return given, find_loop(given), [each.what for each in problems(given)]


def assert_all_ways_agree(data):
    with patched(_read_bare=lambda _: None, _read_more=schema._read_any, is_large=lambda _: False):
        expected = outcome(data)
    for large in (False, True):
        with patched(is_large=lambda _, large=large: large):
            assert outcome(data) == expected
        with patched(_read_bare=lambda _: None, is_large=lambda _, large=large: large):
            assert outcome(data) == expected


optional = {
    "role": st.sampled_from(["lead", "worker"]),
    "from": st.sampled_from(["a", "b", 5]),
    "to": st.sampled_from(["a", "b", None]),
    "tool": st.just("search"),
    "content_ref": st.just("c"),
    "trusted": st.booleans(),
    "stretto": st.sampled_from([{}, {"duration": 2}, {"trace": {"seed": 3}}]),
    "mood": st.just([1, {"x": None}]),
}


@st.composite
def documents(draw):
    """A file that may be sound; ids and ends are few, so that they clash."""
    extra = draw(st.lists(st.sampled_from(list(optional)), max_size=3, unique=True))
    records = st.fixed_dictionaries(
        {
            "id": st.sampled_from(IDS),
            "t": st.sampled_from([0, 1.5, 10**18]),
            "type": st.sampled_from(sorted(TYPE_OF_KIND.values())),
            "agent": st.sampled_from("ab"),
        },
        optional={name: optional[name] for name in extra},
    )
    ends = st.sampled_from(IDS)
    edges = st.fixed_dictionaries({"src": ends, "dst": ends, "type": st.sampled_from(LABELS)})
    by_id = (lambda each: each["id"]) if draw(st.booleans()) else None
    return {
        "trace_id": "t",
        "task_id": "q",
        "events": draw(st.lists(records, min_size=1, max_size=4, unique_by=by_id)),
        "edges": draw(st.lists(edges, max_size=3)),
        "rewards": {"team": 1},
        "costs": {"tokens": 5, "wall_clock_s": 2},
    }


@st.composite
def broken(draw, document):
    """The file with one thing changed: a field lost, put in, or of another value."""
    part = draw(st.sampled_from([document, *document["events"], *document["edges"]]))
    name = draw(st.sampled_from([*part, *optional, "verdict"]))
    if draw(st.booleans()) and name in part:
        del part[name]
    else:
        part[name] = draw(st.sampled_from(ODD))
    return document


@examples(150)
@given(documents())
def test_files_are_the_same_trace_or_the_same_error_in_all_ways(document):
    assert_all_ways_agree(json.dumps(document).encode())


@examples(300)
@given(documents().flatmap(broken))
def test_files_with_something_wrong_are_the_same_error_in_all_ways(document):
    assert_all_ways_agree(json.dumps(document).encode())


@examples(150)
@given(documents().flatmap(lambda given: damaged(json.dumps(given).encode())))
def test_damaged_files_are_the_same_error_in_all_ways(data):
    assert_all_ways_agree(data)


def test_records_beyond_a_batch_keep_their_order():
    events = [{**EVENT, "id": f"e{n}", "agent": f"a{n % 7}"} for n in range(3000)]
    edges = [{"src": f"e{n}", "dst": f"e{n + 1}", "type": "causal"} for n in range(2999)]
    rest = {"trace_id": "t", "task_id": "q", "rewards": {}, "costs": {}}
    given = schema.from_survey(json.dumps({**rest, "events": events, "edges": edges}).encode(), "f")
    assert [each.id for each in given.events] == [each["id"] for each in events]
    assert [(each.src, each.dst) for each in given.edges] == [(e["src"], e["dst"]) for e in edges]
    assert [each.id for each in given.agents] == [f"a{n}" for n in range(7)]


def test_events_share_no_attributes():
    events = [{**EVENT, "id": name, "role": "lead"} for name in "ef"]
    rest = {"trace_id": "t", "task_id": "q", "rewards": {}, "costs": {}, "edges": []}
    first, second = schema.from_survey(json.dumps({**rest, "events": events}).encode(), "f").events
    assert first.attrs == second.attrs == {"role": "lead"}
    assert first.attrs is not second.attrs


# ---- the order of a trace


SOUND = trace(event("0#0"), event("0#1"), event("0#2"), edges=[*chain("0#0", "0#1", "0#2")])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (trace(), Order(unique=True, known=True, forward=True)),
        (SOUND, Order(unique=True, known=True, forward=True)),
        (
            trace(*SOUND.events, edges=chain("0#2", "0#1")),
            Order(unique=True, known=True, forward=False),
        ),
        (
            trace(event("0#0"), edges=chain("0#0", "0#0")),
            Order(unique=True, known=True, forward=False),
        ),
        (trace(event("0#0"), event("0#0")), Order(unique=False, known=True, forward=False)),
        (trace(edges=chain("0#0", "0#1")), Order(unique=True, known=False, forward=False)),
        (
            trace(event("0#0"), event("0#0"), edges=chain("0#0", "x")),
            Order(unique=False, known=False, forward=False),
        ),
    ],
)
def test_the_order_of_a_trace_is_known_in_both_ways(given, expected):
    assert by_dict(given) == expected
    assert by_hashes(hashes_of(given)) == expected


@examples(200)
@given(
    st.lists(st.sampled_from(IDS), max_size=5),
    st.lists(st.tuples(st.sampled_from([*IDS, "x"]), st.sampled_from(IDS)), max_size=4),
)
def test_both_ways_say_the_same_order(ids, edges):
    given = trace(*(event(name) for name in ids), edges=edges)
    assert by_dict(given) == by_hashes(hashes_of(given))


def test_ids_that_share_a_hash_are_no_doubled_ids(monkeypatch):
    monkeypatch.setattr(hashing, "id_hashes", lambda words: np.zeros(len(words), dtype=np.int64))
    monkeypatch.setattr(order, "is_large", lambda _: True)
    given = trace(event("0#0"), event("0#1"), edges=chain("0#0", "0#1"))
    assert not order.order_of(given).unique
    assert list(problems(given)) == []


def test_numpy_is_imported_only_where_it_is_worth_it(monkeypatch):
    assert [order.is_large(count) for count in (10_000, 50_000, 500_000)] == [False, True, True]
    monkeypatch.setattr(order, "sys", type("", (), {"modules": {}}))
    monkeypatch.setattr(order, "SPENT", order.Spent())
    assert [order.is_large(count) for count in (10_000, 50_000, 500_000)] == [False, False, True]


def test_who_has_looked_up_many_ids_takes_the_other_way_from_then_on(monkeypatch):
    monkeypatch.setattr(order, "sys", type("", (), {"modules": {}}))
    monkeypatch.setattr(order, "SPENT", order.Spent(399_000))
    assert not order.is_large(100)
    by_dict(trace(*(event(f"0#{number}") for number in range(1000))))
    assert order.is_large(100)
