"""The critical path: which events, agents and kinds it takes, and whether it rests on guesses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.graph import critical_path as chain_of
from stretto.metrics import critical_path, measure
from stretto.metrics.parallelism import span_seconds

from ..examples import event, trace, turn
from ..strategies import examples

#  0   |== 2 ==|~ message 1 ~|            1   |=== 3 ===|
#      |= call 2.5, from 1.5 =|
CROSSING = trace(
    turn("0#0", 0.0, 2.0),
    event("0#1", "tool_call", 1.5, 2.5),
    event("0#2", "message", 2.0, 1.0, to="1"),
    turn("1#0", 3.0, 3.0),
    edges=[("0#0", "0#1"), ("0#0", "0#2"), ("0#2", "1#0")],
)


def test_events_and_shares_by_hand():
    path = critical_path(CROSSING)
    assert [(each.event, each.kind, each.seconds) for each in path.events] == [
        ("0#0", "decision", 2.0),
        ("0#2", "message", 1.0),
        ("1#0", "decision", 3.0),
    ]
    assert path.seconds == 6.0
    assert path.by_kind == {"decision": pytest.approx(5 / 6), "message": pytest.approx(1 / 6)}
    assert path.by_agent == {"0": 0.5, "1": 0.5}
    found = measure(CROSSING)
    assert found["critical_transit_share"].value == pytest.approx(1 / 6)
    assert found["critical_turn_share"].value == pytest.approx(5 / 6)
    assert found["critical_events"].value == 3


def test_time_that_both_ran_is_left_out_of_the_cause():
    given = trace(
        turn("0#0", 0.0, 2.0), event("0#1", "tool_call", 1.5, 2.5), edges=[("0#0", "0#1")]
    )
    assert [each.seconds for each in critical_path(given).events] == [1.5, 2.5]
    assert critical_path(given).seconds == 4.0


@pytest.mark.parametrize(
    ("evidence", "how"),
    [
        (("recorded", "recorded"), "derived"),
        (("heuristic", "recorded"), "heuristic"),
        (("recorded", "heuristic"), "derived"),
    ],
)
def test_a_guess_counts_only_on_the_path(evidence, how):
    """0#0 to 1#0 is the long way, 0#0 to 0#1 the short one."""
    turns = turn("0#0", 0.0, 1.0), turn("0#1", 1.0, 1.0), turn("1#0", 1.0, 5.0)
    edges = ("0#0", "1#0", "causal", evidence[0]), ("0#0", "0#1", "causal", evidence[1])
    given = trace(*turns, edges=edges)
    assert critical_path(given).how == how
    assert measure(given)["span"].how == how


def test_a_step_that_is_also_recorded_is_no_guess():
    turns = turn("0#0", 0.0, 1.0), turn("0#1", 1.0, 1.0)
    edges = ("0#0", "0#1", "causal", "heuristic"), ("0#0", "0#1", "temporal", "recorded")
    assert critical_path(trace(*turns, edges=edges)).how == "derived"


def test_a_loop_is_named():
    looped = trace(turn("a", 0.0, 1.0), turn("b", 1.0, 1.0), edges=[("a", "b"), ("b", "a")])
    path = critical_path(looped)
    assert path.seconds is None
    assert "loop" in path.reason
    assert path.events == ()


def test_an_empty_trace_has_no_path():
    assert critical_path(trace()).events == ()


def test_where_no_duration_is_known_neither_span_nor_path_is():
    given = trace(turn("0#0", 0.0), turn("0#1", 4.0), edges=[("0#0", "0#1")])
    path = critical_path(given)
    assert (path.seconds, path.events) == (None, ())
    assert path.reason == measure(given)["span"].reason == "no turn or tool call has a duration"


# ---- events without a time


def sandwich(middle=None, after=2.0):
    """A turn from 0 to 10, an event without a time, and a call of five seconds."""
    between = event("0#1", "spawn", to="1") if middle is None else turn("0#1", None, middle)
    return trace(
        *(turn("0#0", 0.0, 10.0), between, event("1#0", "tool_call", after, 5.0)),
        edges=[("0#0", "0#1"), ("0#1", "1#0")],
    )


@pytest.mark.parametrize(
    ("middle", "after", "span"),
    [
        (None, 2.0, 10.0),  # the call begins beside the turn, which is the longer chain
        (None, 8.0, 13.0),  # 8 s of the turn, then 5 s
        (None, 12.0, 15.0),  # it begins when the turn is over
        (1.0, 12.0, 16.0),  # the middle fits between them
        (9.0, 12.0, 19.0),  # it goes on from 10 and ends after the call
        (9.0, 4.0, 13.0),  # it begins as late as it can, at 4 with the call
    ],
)
def test_time_that_both_ran_counts_once_through_events_without_a_time(middle, after, span):
    assert measure(sandwich(middle, after))["span"].value == span


def test_a_chain_of_events_without_a_time_is_placed_as_one():
    """Turn from 0 to 10, two events without a time, a turn from 4 to 16: 4 s and 12 s."""
    given = trace(
        *(turn("0#0", 0.0, 10.0), event("0#1", "spawn"), event("1#0", "message")),
        turn("1#1", 4.0, 12.0),
        edges=[("0#0", "0#1"), ("0#1", "1#0"), ("1#0", "1#1")],
    )
    found = measure(given)
    assert found["span"].value == found["makespan"].value == 16.0
    assert found["span"].reason == (
        "1 of 1 messages have no duration; 2 of 4 events on the critical path have no time"
    )
    assert [each.seconds for each in critical_path(given).events] == [4.0, 0.0, 0.0, 12.0]


@st.composite
def timed_traces(draw, marks=False):
    """Turns whose effects begin no earlier than their causes; `marks` between have no time."""
    count = draw(st.integers(1, 8))
    starts = sorted(draw(st.integers(0, 9)) for _ in range(count))
    turns = [
        event(f"a#{row}", "spawn")
        if marks and draw(st.booleans())
        else turn(
            f"{draw(st.sampled_from('abc'))}#{row}", float(start), float(draw(st.integers(0, 5)))
        )
        for row, start in enumerate(starts)
    ]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    chosen = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=12))}
    edges = [(turns[a].id, turns[b].id) for a, b in sorted(chosen) if a != b]
    return trace(*turns, edges=edges)


@examples(150)
@given(timed_traces())
def test_span_is_within_makespan_and_is_that_of_the_plain_graph(given):
    """The shares add up, and the way of a million events agrees with the plain recursion."""
    found = {name: each.value for name, each in measure(given).items()}
    if found["work"] is None or found["makespan"] is None:
        return
    assert found["span"] <= found["makespan"] + 1e-9
    assert found["span"] <= found["work"] + 1e-9
    assert found["span"] == pytest.approx(chain_of(given, span_seconds(given)).seconds)
    path = critical_path(given)
    assert sum(each.seconds for each in path.events) == pytest.approx(found["span"])
    if found["span"]:
        assert sum(path.by_kind.values()) == pytest.approx(1)
        assert sum(path.by_agent.values()) == pytest.approx(1)
    if found["peak_width"] is not None:
        assert found["parallelism"] <= found["peak_width"] + 1e-9


@examples(150)
@given(timed_traces(marks=True))
def test_events_without_a_time_do_not_make_a_span_longer_than_the_makespan(given):
    found = {name: each.value for name, each in measure(given).items()}
    if found["span"] is not None and found["makespan"] is not None:
        assert found["span"] <= found["makespan"] + 1e-9


def letter(first, second):
    """A turn of 2 s, a message of `first` seconds, a turn of 3 s; beside it one of `second`."""
    return trace(
        *(turn("0#0", 0.0, 2.0), event("0#1", "message", 2.0, first, to="1")),
        *(event("0#2", "delegate", 2.0, second, to="1"), turn("1#0", 4.0, 3.0)),
        edges=[("0#0", "0#1"), ("0#0", "0#2"), ("0#1", "1#0")],
    )


def test_messages_without_a_duration_leave_the_span_a_lower_bound():
    """The second one ends a chain of its own, which may be the longest."""
    found = measure(letter(2.0, None))
    assert found["span"].value == 7.0
    assert found["span"].reason == "1 of 2 messages have no duration: a lower bound"
    assert found["critical_transit_share"].value == 2 / 7
    assert found["critical_transit_share"].reason == "1 of 2 messages have no duration"
    assert critical_path(letter(2.0, None)).reason == found["span"].reason
    assert measure(letter(2.0, 1.0))["span"].reason == ""


def test_without_any_duration_of_a_message_its_share_is_unknown():
    found = measure(letter(None, None))
    assert found["span"].value == 5.0
    assert found["critical_transit_share"].value is None
    assert found["critical_transit_share"].reason == "no message has a duration"
    assert found["critical_turn_share"].reason == "2 of 2 messages have no duration"
    assert measure(trace(turn("0#0", 0.0, 2.0)))["critical_transit_share"].value == 0.0
