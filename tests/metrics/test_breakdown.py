"""What a row says of time that is not known."""

import pytest
from hypothesis import given

from stretto.metrics import breakdown, measure
from stretto.trace import Tokens

from ..examples import event, trace, turn
from ..strategies import examples, traces


def rows_of(trace, by="agent"):
    return {row.key: row for row in breakdown(trace, by)}


def test_unknown_durations_are_counted():
    """One of two durations of agent 0, none of agent 1's."""
    given = trace(
        turn("0#0", 0.0, 1.0, price=1.0),
        event("0#1", "tool_call", 1.0, tool="grep"),
        turn("1#0", 0.0, 1.0, price=1.0),
    )
    silent = "1 of 1 turns do not say all their tokens"
    found = {key: row.reason for key, row in rows_of(given).items()}
    assert found == {"0": f"{silent}; 1 of 2 durations are unknown", "1": silent}
    assert rows_of(given, "kind")["tool_call"].reason == "1 of 1 durations are unknown"
    assert rows_of(given, "tool")["grep"].reason == "1 of 1 durations are unknown"
    assert rows_of(given, "event")["1#0"].reason == silent


def test_a_turn_that_makes_several_calls_of_a_tool_is_one_turn():
    """One turn, three calls of bash and one of grep; each tool says it of that one."""
    calls = [event(f"0#{n}", "tool_call", 1.0, 1.0, tool="bash") for n in (1, 2, 3)]
    given = trace(
        turn("0#0", 0.0, 1.0, price=1.0),
        *calls,
        event("0#4", "tool_call", 1.0, 1.0, tool="grep"),
        edges=[("0#0", f"0#{n}") for n in (1, 2, 3, 4)],
    )
    found = rows_of(given, "tool")
    assert (found["bash"].events, found["bash"].price, found["grep"].price) == (3, 0.75, 0.25)
    silent = "1 of 1 turns do not say all their tokens"
    assert [found[key].reason for key in ("bash", "grep")] == [silent, silent]


def test_without_any_duration_nothing_is_known_of_idle_time():
    """The measure says so, and each row says the same."""
    given = trace(turn("0#0", 0.0), turn("0#1", 5.0))
    assert measure(given)["idle"].value is None
    (row,) = breakdown(given)
    assert (row.idle, row.blocked, row.work) == (None, None, None)


@examples(80, shrink=False)
@given(traces())
def test_rows_and_measures_know_the_same_of_lives(given):
    found = measure(given)
    for by in ("agent", "role", "model"):
        for name in ("blocked", "idle"):
            parts = [getattr(row, name) for row in breakdown(given, by)]
            known = [part for part in parts if part is not None]
            assert sum(known) == pytest.approx(found[name].value or 0.0), (by, name)
            assert bool(known) == (found[name].value is not None), (by, name)


def test_the_time_of_a_turn_that_made_calls_is_in_the_row_of_no_tool():
    """Its tokens are those of its call; it thought for two seconds, the call took three."""
    made = turn("0#0", 0.0, 2.0, tokens=Tokens(input=4, output=1))
    call = event("0#1", "tool_call", 2.0, 3.0, tool="grep")
    rows = breakdown(trace(made, call, edges=[("0#0", "0#1")]), "tool")
    found = {row.key: (row.events, row.input_tokens, row.work) for row in rows}
    assert found == {"grep": (1, 4.0, 3.0), None: (0, None, 2.0)}
