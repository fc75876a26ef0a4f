import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.trace import KINDS, LABELS, Tokens, Trace

from .examples import event, trace, turn
from .strategies import examples

NAN = float("nan")


def assert_equal(column, expected):
    np.testing.assert_array_equal(column, np.array(expected, dtype=np.float64))


def test_rows_follow_the_record():
    columns = trace(event("b#0"), event("a#0")).columns
    assert columns.row == {"b#0": 0, "a#0": 1}


def test_known_and_unknown_kinds_get_codes():
    columns = trace(event("a", "stop"), event("b", "gossip"), event("c", "stop")).columns
    assert columns.kinds == (*KINDS, "gossip")
    assert [columns.kinds[code] for code in columns.kind] == ["stop", "gossip", "stop"]


def test_kinds_can_be_asked_for():
    columns = trace(event("a", "stop"), event("b", "gossip"), event("c", "spawn")).columns
    assert columns.is_kind("gossip", "spawn").tolist() == [False, True, True]
    assert columns.is_kind("never-seen").tolist() == [False, False, False]


def test_agents_are_coded_in_the_order_of_the_agent_table():
    columns = trace(event("1#0"), event("0#0"), roles={"0": "lead", "1": "scout"}).columns
    assert columns.agents == ("0", "1")
    assert columns.agent.tolist() == [1, 0]


def test_unknown_times_are_nan_and_known_zeros_are_zero():
    columns = trace(event("a", start=0.0, duration=2.5), event("b")).columns
    assert_equal(columns.start, [0.0, NAN])
    assert_equal(columns.duration, [2.5, NAN])


def test_input_tokens_are_all_prompt_tokens_cached_or_not():
    columns = trace(
        event("a", tokens=Tokens(input=5, cache_read=100, cache_write=20, output=3)),
        event("b", tokens=Tokens(input=5)),
        event("c", tokens=Tokens(output=3)),
        event("d"),
    ).columns
    assert_equal(columns.input_tokens, [125, 5, NAN, NAN])
    assert_equal(columns.output_tokens, [3, NAN, 3, NAN])


def test_output_that_the_source_gets_wrong_is_unknown():
    tokens = Tokens(input=7, output=1, unreliable=("output",))
    columns = trace(event("a", tokens=tokens)).columns
    assert_equal(columns.output_tokens, [NAN])
    assert_equal(columns.input_tokens, [7])


@pytest.mark.parametrize("field", ["input", "cache_read"])
def test_input_that_the_source_gets_wrong_is_unknown(field):
    tokens = Tokens(input=7, cache_read=2, output=1, unreliable=(field,))
    columns = trace(event("a", tokens=tokens)).columns
    assert_equal(columns.input_tokens, [NAN])
    assert_equal(columns.output_tokens, [1])


def test_parents_by_hand():
    edges = [("c", "d", "gossip"), ("a", "c", "spawn"), ("a", "d", "return"), ("b", "c")]
    parents = trace(event("a"), event("b"), event("c"), event("d"), edges=edges).columns.parents
    assert parents.offsets.tolist() == [0, 0, 0, 2, 4]
    assert parents.source.tolist() == [0, 1, 2, 0]
    assert parents.edge.tolist() == [1, 3, 0, 2]
    assert parents.labels == (*LABELS, "gossip")
    names = [parents.labels[code] for code in parents.label]
    assert names == ["spawn", "causal", "gossip", "return"]


def test_a_trace_without_events_has_empty_columns():
    columns = Trace(id="t").columns
    assert len(columns.kind) == len(columns.start) == len(columns.input_tokens) == 0
    assert columns.parents.offsets.tolist() == [0]
    assert columns.is_kind("spawn").tolist() == []


@pytest.mark.parametrize("edge", [("a", "nowhere"), ("nowhere", "a")])
def test_an_edge_to_nowhere_names_the_trace_and_the_event(edge):
    with pytest.raises(StrettoError, match=r"^t: .*'nowhere'"):
        _ = trace(event("a"), edges=[edge]).columns


@examples(60)
@given(st.data())
def test_parents_hold_exactly_the_edges_of_the_trace(data):
    ids = [f"e{index}" for index in range(data.draw(st.integers(1, 5)))]
    end = st.sampled_from(ids)
    edges = data.draw(st.lists(st.tuples(end, end, st.sampled_from(["causal", "odd"])), max_size=8))
    columns = trace(*map(event, ids), edges=edges).columns
    parents = columns.parents
    for row, name in enumerate(ids):
        own = slice(parents.offsets[row], parents.offsets[row + 1])
        expected = [place for place, edge in enumerate(edges) if edge[1] == name]
        assert parents.edge[own].tolist() == expected
        assert [ids[source] for source in parents.source[own]] == [edges[e][0] for e in expected]
        assert [parents.labels[c] for c in parents.label[own]] == [edges[e][2] for e in expected]


def test_a_number_of_hundreds_of_digits_is_unknown():
    given = trace(turn("0#0", tokens=Tokens(input=10**400)), turn("0#1", tokens=Tokens(input=3)))
    assert str(given.columns.input_tokens.tolist()) == "[nan, 3.0]"
