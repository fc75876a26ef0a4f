"""What agents did between their first event and their last: no order of the record changes it."""

from itertools import permutations

import pytest

from stretto.metrics import breakdown, measure
from stretto.metrics.intervals import activities
from stretto.metrics.waits import times

from ..examples import event, trace, turn


def values(given):
    found = measure(given)
    return found["blocked"].value, found["idle"].value


def test_who_reads_a_return_does_not_depend_on_the_order_of_the_record():
    """The lead's turn that reads the return begins at 5 together with a call that does not."""
    events = (
        turn("0#0", 0.0, 1.0),
        turn("1#0", 1.0, 4.0),
        event("1#1", "return", 5.0, to="0"),
        event("0#1", "tool_call", 5.0, 1.0),
        turn("0#2", 5.0, 2.0),
    )
    edges = ("0#0", "1#0"), ("1#0", "1#1"), ("1#1", "0#2", "return")
    orders = [trace(*order, edges=edges) for order in permutations(events)]
    assert {values(given) for given in orders} == {(4.0, 0.0)}


def test_a_reader_of_no_length_ends_a_wait_too():
    events = turn("0#0", 0.0, 1.0), event("1#0", "return", 5.0, to="0"), turn("0#1", 5.0, 0.0)
    given = trace(*events, turn("0#2", 5.0, 1.0), edges=[("1#0", "0#1", "return")])
    assert values(given) == (4.0, 0.0)


def test_a_reader_within_work_ends_no_wait():
    """It reads at 5, but is at work from 3 on; the gap before is idle."""
    events = turn("0#0", 0.0, 1.0), event("1#0", "return", 5.0, to="0")
    reader = event("0#2", "tool_call", 5.0, 1.0)
    given = trace(*events, turn("0#1", 3.0, 4.0), reader, edges=[("1#0", "0#2", "return")])
    assert values(given) == (0.0, 2.0)


def test_what_a_sum_of_floats_leaves_is_no_time():
    """A tenth of a millisecond from 0 and one from its half on: as floats they leave 2.7e-20 s."""
    assert values(trace(turn("0#0", 0.0, 1e-4), turn("0#1", 5e-5, 1e-4))) == (0.0, 0.0)


def test_where_no_duration_is_known_no_agent_has_a_known_wait():
    given = trace(turn("0#0", 0.0), turn("0#1", 4.0))
    found = times(given.columns, activities(given.columns))
    for seconds in (found.busy, found.blocked, found.idle):
        assert str(seconds.tolist()) == "[nan]"
    assert values(given) == (None, None)
    assert [(row.blocked, row.idle) for row in breakdown(given)] == [(None, None)]


def test_where_no_life_is_known_waits_are_unknown():
    """The call has no start; of the agent that has a time no work is recorded."""
    given = trace(event("0#0", "tool_call", None, 2.0), event("1#0", "return", 1.0))
    found = measure(given)
    for name in ("blocked", "idle"):
        assert found[name].value is None
        assert found[name].reason == "no agent has work at a known time"


def test_a_call_that_waits_for_the_one_before_it_does_not_work_meanwhile():
    """Both are asked for at 2; the second one stands in line from 2 to 5 and runs from 5 to 10."""
    events = (
        turn("0#0", 0.0, 2.0),
        event("0#1", "tool_call", 2.0, 3.0),
        event("0#2", "tool_call", 2.0, 8.0, attrs={"waited": 3.0}),
        turn("0#3", 10.0, 2.0),
    )
    edges = [(a, b) for a, b in (("0#0", "0#1"), ("0#0", "0#2"), ("0#1", "0#3"), ("0#2", "0#3"))]
    found = measure(trace(*events, edges=edges))
    expected = {"work": 12, "makespan": 12, "parallelism": 1, "peak_width": 1, "span": 9}
    assert {name: found[name].value for name in expected} == expected
    assert (found["blocked"].value, found["idle"].value) == (0, 0)
    assert found["work"].how == found["parallelism"].how == found["span"].how == "heuristic"
    assert found["work"].reason == "1 calls waited for the call before them"


@pytest.mark.parametrize("waited", [-1, "3", None, True, float("inf"), 99.0])
def test_a_wait_that_is_none_takes_nothing_away_and_a_long_one_no_more_than_all(waited):
    call = event("0#0", "tool_call", 0.0, 8.0, attrs={"waited": waited})
    found = measure(trace(call, turn("0#1", 8.0, 1.0)))
    assert found["work"].value == (1.0 if waited == 99.0 else 9.0)
