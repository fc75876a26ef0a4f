"""Which event is the final output, also where times are missing."""

from itertools import permutations

import pytest

from stretto.metrics import measure
from stretto.metrics.output import BY_RECORD, FinalOutput, final_output
from stretto.trace import Agent

from ..examples import event, trace, turn

#  the survey's own example: the lead decides, hands out, and merges what comes back
MERGED = trace(
    turn("0#0", 0.0),
    event("0#1", "spawn", 1.0, to="1"),
    event("1#0", "tool_result", 2.0, trusted=False),
    event("1#1", "return", 3.0, to="0"),
    event("0#2", "aggregate", 4.0),
    edges=[("0#0", "0#1"), ("0#1", "1#0"), ("1#0", "1#1"), ("1#1", "0#2", "aggregate")],
)


def chosen(*events, **fields):
    given = trace(*events, **fields)
    found = final_output(given)
    return None if found.row is None else given.events[found.row].id, found.note


def test_an_aggregate_after_the_last_turn_is_the_output():
    found = measure(MERGED)
    assert found["unconnected_agents"].value == 0
    assert found["untrusted_output"].value == 1


def test_a_turn_after_the_last_aggregate_is_the_output():
    assert chosen(event("0#0", "aggregate", 1.0), turn("0#1", 2.0)) == ("0#1", "")
    assert chosen(event("0#0", "aggregate", 2.0), turn("0#1", 2.0)) == ("0#1", "")  # by record


def test_a_stop_comes_before_all_and_children_have_no_say():
    assert chosen(event("0#0", "stop", 1.0), event("0#1", "aggregate", 2.0)) == ("0#0", "")
    agents = Agent(id="0"), Agent(id="1", parent="0")
    merged = event("1#0", "aggregate", 9.0)
    assert chosen(turn("0#0", 1.0), merged, agents=agents) == ("0#0", "")
    assert final_output(trace(event("0#0", "gossip"))) == FinalOutput(None)


def test_a_last_turn_without_a_time_comes_after_what_its_agent_did_before():
    """Its agent's tool answered at 8; the other root's turn was at 5."""
    events = turn("a#0", 0.0), event("a#1", "tool_result", 8.0), turn("a#2"), turn("b#0", 5.0)
    assert chosen(*events) == ("a#2", BY_RECORD)
    assert chosen(*events[:3], turn("b#0", 9.0)) == ("b#0", BY_RECORD)


def test_a_turn_without_a_time_before_the_last_one_is_not_the_last():
    assert chosen(turn("0#0", 0.0), turn("0#1"), turn("0#2", 4.0)) == ("0#2", BY_RECORD)


def test_where_no_turn_has_a_time_the_last_of_the_record_is_the_last():
    assert chosen(turn("0#0"), turn("0#1"), event("0#2", "tool_result", 3.0)) == ("0#1", "")


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_with_times_no_order_of_the_record_changes_it(order):
    turns = [turn(f"0#{number}", float(number)) for number in range(3)]
    assert chosen(*(turns[number] for number in order)) == ("0#2", "")


def test_measures_say_that_the_record_told_the_output():
    """Both turns did something; by the record the second is the output."""
    given = trace(
        *(turn("0#0", 0.0, 1.0), event("0#1", "message", 1.0, 0.0, to="1")),
        *(event("0#2", "tool_result", 2.0, trusted=False), turn("0#3", None, 1.0)),
        edges=[("0#2", "0#3")],
    )
    found = measure(given)
    for name in ("unconnected_agents", "untrusted_output", "communication_padding"):
        assert (BY_RECORD in found[name].reason, found[name].how) == (True, "heuristic"), name
    assert found["untrusted_output"].value == 1
    assert BY_RECORD not in found["untrusted_events"].reason
