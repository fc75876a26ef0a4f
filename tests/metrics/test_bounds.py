"""What a measure says of what is missing, and that it says "bound" only of what is one."""

import pytest
from msgspec.structs import replace

from stretto.metrics import breakdown, measure
from stretto.trace import Agent

from ..examples import event, trace, turn

LOWER = "a lower bound"
HIDDEN = {"transcript": False}


def reason(given, name):
    return measure(given)[name].reason


def reader(call, *, wait=1.0, agents=None):
    """Agent 0 waits from 1 to 5 for the return of 1, while a call of unknown length may run."""
    given = trace(
        turn("0#0", 0.0, 1.0),
        event("0#1", "tool_call", 1.0, call),
        event("0#3", "tool_call", 1.0, wait, attrs={"waiting": True}),
        turn("1#0", 1.0, 4.0),
        event("1#1", "return", 5.0, to="0"),
        turn("0#2", 5.0, 1.0),
        edges=[("1#1", "0#2", "return")],
    )
    return given if agents is None else replace(given, agents=agents)


CREW = (Agent(id="0"), Agent(id="1", parent="0"), Agent(id="2", parent="0", attrs=HIDDEN))


# ---- makespan and parallelism


@pytest.mark.parametrize("seconds", [None, 100.0])
def test_parallelism_is_no_bound_where_a_duration_is_unknown(seconds):
    """Two turns of a second side by side, then one: 2 / 1, or if it took 100 s, 102 / 101."""
    given = trace(turn("0#0", 0.0, 1.0), turn("1#0", 0.0, 1.0), turn("0#1", 1.0, seconds))
    found = measure(given)["parallelism"]
    if seconds is None:
        assert (found.value, found.reason) == (
            2.0,
            "1 of 3 durations are unknown; the last duration of 1 agents is unknown",
        )
    else:
        assert (found.value, found.reason) == (pytest.approx(102 / 101), "")


def test_parallelism_is_no_bound_where_only_the_work_is_incomplete():
    """A call in the background may have taken longer than all that is known."""
    given = trace(turn("0#0", 0.0, 2.0), event("0#1", "tool_call", 2.0), turn("0#2", 3.0, 1.0))
    assert reason(given, "makespan") == ""
    assert reason(given, "parallelism") == "1 of 3 durations are unknown"


def test_makespan_lacks_what_has_no_time():
    given = trace(turn("0#0", 0.0, 1.0), turn("0#1", None, 5.0), turn("0#2", None, 5.0))
    assert reason(given, "makespan") == f"2 of 3 events have no time: {LOWER}"
    assert LOWER not in reason(given, "parallelism")
    assert LOWER in reason(given, "peak_width")  # more at once can only be more


def test_makespan_lacks_an_unknown_last_duration():
    given = trace(turn("0#0", 0.0, 1.0), turn("0#1", 3.0))
    assert reason(given, "makespan") == f"the last duration of 1 agents is unknown: {LOWER}"
    assert reason(trace(*given.events, event("0#2", "stop", 4.0)), "makespan") == ""


@pytest.mark.parametrize("seconds", [None, 1.0])
def test_makespan_lacks_a_last_message_of_unknown_length_that_nobody_read(seconds):
    """It is sent at 5, when the turns are over; one that was read at 6 had arrived."""
    events = turn("0#0", 0.0, 5.0), event("0#1", "message", 5.0, seconds, to="1")
    said = "" if seconds else f"the last duration of 1 agents is unknown: {LOWER}"
    assert reason(trace(*events), "makespan") == said
    read = trace(*events, turn("1#0", 6.0, 1.0), edges=[("0#1", "1#0", "message")])
    assert reason(read, "makespan") == ""
    assert reason(trace(*events, event("0#2", "stop", 6.0)), "makespan") == ""


def test_makespan_may_lack_an_agent_that_left_no_record_and_never_came_back():
    events = turn("0#0", 0.0, 1.0), event("0#1", "spawn", 1.0, to="2")
    assert reason(trace(*events, agents=CREW), "makespan") == (
        f"when 1 agents ended is unknown: {LOWER}"
    )
    back = event("2#0", "return", 9.0, to="0")
    assert reason(trace(*events, back, agents=CREW), "makespan") == ""


def test_a_ratio_over_what_is_incomplete_is_no_bound():
    """The speed-up over a baseline: its time over this run's, which may be longer."""
    whole, partly = trace(turn("0#0", 0.0, 8.0)), trace(turn("0#0", 0.0, 2.0), turn("0#1", 2.0))
    found = measure(partly, baseline=whole)["speedup"]
    assert (found.value, found.reason) == (4.0, "the last duration of 1 agents is unknown")
    assert LOWER in measure(whole, baseline=partly)["speedup"].reason
    assert LOWER not in measure(partly, baseline=partly)["speedup"].reason


# ---- blocked and idle


@pytest.mark.parametrize("seconds", [None, 4.0])
def test_blocked_is_no_bound_where_a_duration_is_unknown(seconds):
    """The call may have run all the time: 4 s, or nothing."""
    found = measure(reader(seconds))
    assert found["blocked"].value == (4.0 if seconds is None else 0.0)
    said = "" if seconds else "1 of 4 durations are unknown"
    assert found["blocked"].reason == said


def split(seconds, *, waiting, start=6.0):
    """Agent a works to 5 and reads at 10 what b returns; something of its own begins at 6."""
    return trace(
        *(turn("a#0", 0.0, 5.0), turn("b#0", 1.0, 9.0), event("b#1", "return", 10.0, to="a")),
        event("a#1", "tool_call", start, seconds, attrs={"waiting": True} if waiting else {}),
        turn("a#2", 10.0, 1.0),
        edges=[("b#1", "a#2", "return")],
    )


def test_lost_work_splits_a_gap_so_that_idle_time_has_no_bound():
    """Of the gap from 5 to 10 a call from 6 to 7 leaves the part before it idle."""
    partly, whole = (measure(split(seconds, waiting=False)) for seconds in (None, 1.0))
    assert [found["blocked"].value for found in (partly, whole)] == [5.0, 3.0]
    assert [found["idle"].value for found in (partly, whole)] == [0.0, 1.0]
    assert partly["idle"].reason == partly["blocked"].reason == "1 of 4 durations are unknown"


def test_a_lost_wait_splits_a_gap_so_that_blocked_time_has_no_bound():
    """Of the gap from 5 to 10 a wait from 6 to 8 leaves the part before it idle."""
    partly, whole = (measure(split(seconds, waiting=True)) for seconds in (None, 2.0))
    assert [found["blocked"].value for found in (partly, whole)] == [5.0, 4.0]
    assert [found["idle"].value for found in (partly, whole)] == [0.0, 1.0]
    assert partly["idle"].reason == partly["blocked"].reason == "1 of 1 waits have no known time"
    (row, _) = breakdown(split(None, waiting=True))
    assert row.reason.endswith("1 of 1 waits have no known time")


@pytest.mark.parametrize("moment", [None, 10.0])
def test_an_event_without_a_time_may_read_a_return(moment):
    """Where the result that brings it is at 10, the gap from 5 to 10 was a wait."""
    given = trace(
        *(turn("a#0", 0.0, 5.0), turn("b#0", 1.0, 9.0), event("b#1", "return", 10.0, to="a")),
        *(event("a#1", "tool_result", moment), turn("a#2", 10.0, 1.0)),
        edges=[("b#1", "a#1", "return")],
    )
    found = measure(given)
    values = found["blocked"].value, found["idle"].value
    assert values == ((0.0, 5.0) if moment is None else (5.0, 0.0))
    said = "1 of 5 events have no time" if moment is None else ""
    assert found["blocked"].reason == found["idle"].reason == said
    assert breakdown(given)[0].reason.endswith("of 3 events have no time") == (moment is None)


@pytest.mark.parametrize("moment", [None, 10.0])
def test_a_last_event_without_a_time_may_end_a_life_later(moment):
    found = measure(trace(turn("0#0", 0.0, 5.0), event("0#1", "tool_result", moment)))
    assert found["idle"].value == (0.0 if moment is None else 5.0)
    assert found["idle"].reason == ("1 of 2 events have no time" if moment is None else "")


def test_a_wait_of_unknown_length_counts_as_idle():
    given = trace(
        turn("0#0", 0.0, 1.0),
        event("0#1", "tool_call", 1.0, attrs={"waiting": True}),
        turn("0#2", 3.0, 1.0),
    )
    found = measure(given)
    assert (found["blocked"].value, found["idle"].value) == (0.0, 2.0)
    assert found["blocked"].reason == "1 of 1 waits have no known time"
    assert found["idle"].reason == "1 of 1 waits have no known time"


def test_agents_that_left_no_record_make_waits_lower_bounds_unless_more_is_missing():
    whole, partly = (measure(reader(seconds, agents=CREW)) for seconds in (4.0, None))
    hidden = "1 of 3 agents left no transcript"
    assert whole["blocked"].reason == f"{hidden}: {LOWER}"
    assert whole["idle"].reason == hidden  # one may have waited for the return of the third
    assert partly["idle"].reason == f"1 of 4 durations are unknown; {hidden}"
    assert partly["blocked"].reason == partly["idle"].reason


def test_idle_is_a_lower_bound_where_all_without_a_record_came_back():
    given = reader(4.0, agents=CREW)
    back = event("2#0", "return", 5.0, to="0")
    found = measure(replace(given, events=(*given.events, back)))
    assert found["idle"].reason == f"1 of 3 agents left no transcript: {LOWER}"


def test_what_returns_state_as_work_is_no_bound():
    """The two seconds may hold pauses."""
    events = turn("0#0", 0.0, 1.0), turn("0#1", 1.0)
    back = event("2#0", "return", 4.0, to="0", attrs={"total_duration_ms": 2000})
    found = measure(trace(*events, back, agents=CREW, edges=[("0#0", "2#0")]))
    assert found["work"].value == 3.0
    for name in ("work", "span", "peak_width"):
        assert "1 of 3 durations are unknown; the time that" in found[name].reason
        assert LOWER not in found[name].reason


def test_work_without_a_start_leaves_no_bound_of_waits():
    given = trace(turn("0#0", 0.0, 1.0), turn("0#1", None, 1.0), turn("0#2", 3.0, 1.0))
    assert reason(given, "idle") == reason(given, "blocked") == "1 of 3 events have no time"


# ---- siblings


def family(*seconds):
    """A lead that spawns workers by one turn; each has one turn, or left nothing (`...`)."""
    names = [f"0/{number}" for number in range(len(seconds))]
    seen = [(name, each) for name, each in zip(names, seconds, strict=True) if each is not ...]
    return trace(
        turn("0#t", 0.0, 1.0),
        *(event(f"0#{name}", "spawn", 1.0, to=name) for name in names),
        *(turn(f"{name}#0", 1.0, each) for name, each in seen),
        edges=[("0#t", f"0#{name}") for name in names],
        agents=(Agent(id="0"), *(Agent(id=name, parent="0") for name in names)),
    )


def test_stragglers_say_of_how_many_siblings_the_life_is_not_known():
    """Lives of 1, 4 and 9 s, one without a record, one whose turn may go on: it counts 0."""
    found = measure(family(1.0, 4.0, 9.0, ..., None))
    assert found["straggler_ratio"].value == 9.0 / 2.5
    assert found["straggler_ratio"].reason == "the lives of 2 of 5 siblings are not all known"
    assert found["stragglers"].reason == found["straggler_ratio"].reason
    assert measure(family(1.0, 4.0, 9.0))["straggler_ratio"].reason == ""


def test_a_life_with_an_event_without_a_time_is_not_all_known():
    given = family(1.0, 4.0, 9.0)
    found = measure(replace(given, events=(*given.events, event("0/1#1", "tool_result"))))
    assert found["stragglers"].reason == "the lives of 1 of 3 siblings are not all known"


def test_stragglers_say_that_agents_may_have_spawned_others_of_which_nothing_is_known():
    given = family(1.0, 4.0, 9.0)
    hidden = Agent(id="1", attrs=HIDDEN)
    found = measure(replace(given, agents=(*given.agents, hidden)))
    assert found["stragglers"].reason == "1 of 5 agents left no transcript"


def test_a_median_of_nothing_is_not_an_unknown_time():
    assert reason(family(0.0, 0.0, 9.0), "straggler_ratio") == "the median life of siblings is 0"
    assert "no two siblings are known" in reason(family(..., 1.0), "straggler_ratio")
