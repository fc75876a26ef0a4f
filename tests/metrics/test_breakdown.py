"""What a row says of time that is not known."""

import pytest
from hypothesis import given

from stretto.metrics import breakdown, measure

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
