"""Every measure on small traces that can be worked out by hand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.metrics import measure
from stretto.trace import Tokens, Trace

from ..examples import event, trace, turn
from ..strategies import examples
from ..team.toy import crew

COUNTS = ("agents", "events", "spawns", "returns")
TIMES = (
    *("makespan", "work", "span", "parallelism", "average_width", "peak_width", "peak_agents"),
    *("critical_events", "critical_agents", "blocked", "idle"),
)

#  0     |== 2 ==|spawn spawn             |= 1 =|
#  0/0           |= 1 =|==== 3 ====|return
#  0/1           |= 1 =|== 2 ==|               (never returns)
TEAM = trace(
    turn("0#0", 10.0, 2.0, tokens=Tokens(input=100, cache_read=50, output=10)),
    event("0#1", "spawn", 12.0, 0.0, to="0/0"),
    event("0#2", "spawn", 12.0, 0.0, to="0/1"),
    turn("0/0#0", 12.0, 1.0, tokens=Tokens(input=20, output=5)),
    turn("0/1#0", 12.0, 1.0, tokens=Tokens(input=30, output=6)),
    event("0/0#1", "tool_call", 13.0, 3.0),
    event("0/1#1", "tool_call", 13.0, 2.0),
    event("0/0#2", "tool_result", 16.0, 0.0),
    event("0/0#3", "return", 16.0, 0.0, to="0"),
    turn("0#3", 16.0, 1.0, tokens=Tokens(input=7, output=1)),
    edges=[
        *(("0#0", "0#1"), ("0#0", "0#2"), ("0#1", "0/0#0"), ("0#2", "0/1#0")),
        *(("0/0#0", "0/0#1"), ("0/1#0", "0/1#1"), ("0/0#1", "0/0#2"), ("0/0#2", "0/0#3")),
        ("0/0#3", "0#3"),
    ],
)


def value(given, name):
    return measure(given)[name].value


def unknown(given, name):
    """The reason why a measure is not known."""
    found = measure(given)[name]
    assert found.value is None
    assert found.reason
    return found.reason


def test_all_measures_by_hand():
    """Five turns and calls are work: 2 + 1 + 1 + 3 + 2 + 1 s, of which 0 to 7 s take 7."""
    found = measure(TEAM)
    values = {name: each.value for name, each in found.items() if each.value is not None}
    assert values == {
        "agents": 3,
        "events": 10,
        "spawns": 2,
        "returns": 1,
        "unpaired_spawns": 1,
        "makespan": 7.0,
        "work": 10.0,
        "span": 7.0,
        "parallelism": pytest.approx(10 / 7),
        "average_width": pytest.approx(10 / 7),  # something is under way all the time
        "peak_width": 2.0,
        "peak_agents": 2.0,
        "critical_events": 4.0,  # turn 2 s, turn 1 s, call 3 s, turn 1 s
        "critical_agents": 2.0,
        "critical_turn_share": pytest.approx(4 / 7),
        "critical_tool_share": pytest.approx(3 / 7),
        "critical_transit_share": 0.0,
        "critical_steps": 3.0,  # two of the lead, one of either child
        "straggler_ratio": pytest.approx(4 / 3.5),  # 0/0 lives 4 s, 0/1 lives 3 s
        "stragglers": 0.0,
        "blocked": 4.0,  # the lead, from 12 to 16
        "idle": 0.0,
        "unread_messages": 0.0,
        "unused_returns": 0.0,
        "unconnected_agents": 1.0,  # 0/1 never returns
        "unconnected_work_share": pytest.approx(3 / 10),
        "input_tokens": 207.0,
        "output_tokens": 22.0,
        "coordination_share": pytest.approx(160 / 229),  # the lead's first turn
        "messages_per_turn": 0.0,
        "pseudo_parallelism": 1.0,  # 0/0 ran beside 0/1 alone, of which nothing came
        "free_riding": 0.5,
        "tool_spam": 0.5,
    }
    told = {name for name, each in found.items() if each.value is not None and each.reason}
    assert told == {"tool_spam"}  # the calls of this trace have no arguments to compare
    assert all(each.reason for each in found.values() if each.value is None)


def test_counts_are_recorded_and_the_rest_is_derived():
    recorded = (*COUNTS, "input_tokens", "output_tokens")
    for name, found in measure(TEAM).items():
        if found.value is not None:
            assert found.how == ("recorded" if name in recorded else "derived"), name


def test_the_empty_trace_has_counts_and_nothing_else():
    found = measure(Trace(id="t"))
    zero = {*COUNTS, "unpaired_spawns", "unread_messages", "unused_returns"}
    assert {name for name, each in found.items() if each.value == 0} == zero
    assert all(each.reason for name, each in found.items() if name not in zero)


def test_a_trace_of_no_length_has_no_parallelism():
    instant = trace(turn("0#0", 3.0, 0.0))
    assert value(instant, "makespan") == 0.0
    assert "takes no time" in unknown(instant, "parallelism")
    assert "takes no time" in unknown(instant, "peak_width")


# ---- unknown is None with a reason, never 0


def test_unknown_starts():
    no_times = trace(turn("0#0", None, 2.0), turn("0#1", None, 1.0), edges=[("0#0", "0#1")])
    assert (value(no_times, "work"), value(no_times, "span")) == (3.0, 3.0)
    assert "no event has a time" in unknown(no_times, "makespan")
    assert "no event has a time" in unknown(no_times, "parallelism")
    assert "takes no time" not in unknown(no_times, "peak_width")


def test_unknown_durations():
    no_durations = trace(turn("0#0", 0.0), event("0#1", "tool_call", 4.0))
    assert value(no_durations, "makespan") == 4.0
    for name in TIMES[1:]:
        assert "no turn or tool call has a duration" in unknown(no_durations, name)


def test_one_time_without_a_duration_is_no_makespan():
    assert value(trace(turn("0#0", 5.0, 0.0)), "makespan") == 0.0
    unknown(trace(turn("0#0", 5.0)), "makespan")


def test_some_unknown_durations_make_a_lower_bound_and_say_so():
    partly = trace(turn("0#0", 0.0, 2.0), turn("0#1", 2.0), turn("0#2", 3.0, 1.0))
    for name in ("work", "span", "peak_width"):
        found = measure(partly)[name]
        assert "1 of 3 durations are unknown: a lower bound" in found.reason
    assert value(partly, "work") == 3.0


def test_a_wait_does_not_make_unknown_work_known():
    waiting = event("0#1", "tool_call", 0.0, 9.0, attrs={"waiting": True})
    unknown(trace(turn("0#0", 0.0), waiting), "work")


def test_unknown_tokens():
    silent = trace(turn("0#0", 0.0, 1.0), turn("0#1", 1.0, 1.0))
    for name in ("input_tokens", "output_tokens"):
        assert "no turn says how many" in unknown(silent, name)


def test_some_unknown_tokens_make_a_lower_bound_and_say_so():
    half = trace(turn("0#0", tokens=Tokens(input=3, output=1)), turn("0#1"))
    found = measure(half)["input_tokens"]
    assert (found.value, found.how) == (3.0, "derived")
    assert "1 of 2 turns do not say: a lower bound" in found.reason


def test_tokens_that_the_source_gets_wrong_are_not_counted():
    wrong = Tokens(input=3, output=1, unreliable=("output",))
    given = trace(turn("0#0", tokens=wrong))
    assert value(given, "input_tokens") == 3.0
    assert "gets them wrong" in unknown(given, "output_tokens")


def test_tokens_are_those_of_turns():
    given = trace(turn("0#0", tokens=Tokens(input=3, output=1)), event("0#1", "message"))
    counted = trace(*given.events, event("0#2", "return", tokens=Tokens(input=9, output=9)))
    assert value(counted, "input_tokens") == 3.0


# ---- what is work


def test_waiting_is_no_work():
    waiting = event("0#1", "tool_call", 1.0, 9.0, attrs={"waiting": True})
    given = trace(turn("0#0", 0.0, 1.0), waiting, edges=[("0#0", "0#1")])
    assert value(given, "makespan") == 10.0
    assert (value(given, "work"), value(given, "span"), value(given, "peak_width")) == (1, 1, 1)
    assert value(given, "parallelism") == 0.1


@pytest.mark.parametrize("kind", ["message", "delegate", "spawn", "return", "human", "gossip"])
def test_only_turns_and_tool_calls_are_work(kind):
    given = trace(turn("0#0", 0.0, 1.0), event("1#0", kind, 0.0, 5.0))
    assert (value(given, "work"), value(given, "peak_width")) == (1.0, 1.0)


@pytest.mark.parametrize(("kind", "span"), [("message", 4.0), ("delegate", 4.0), ("human", 2.0)])
def test_a_message_in_transit_is_on_the_span(kind, span):
    events = turn("0#0", 0.0, 1.0), event("0#1", kind, 1.0, 2.0), turn("1#0", 3.0, 1.0)
    given = trace(*events, edges=[("0#0", "0#1"), ("0#1", "1#0")])
    assert value(given, "span") == span
    assert value(given, "work") == 2.0


# ---- peak width


def width(name, *intervals):
    """A width of turns (agent, start, end)."""
    events = [turn(f"{a}#{i}", s, e - s) for i, (a, s, e) in enumerate(intervals)]
    return value(trace(*events), name)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([("a", 0.0, 1.0)], 1),
        ([("a", 0.0, 1.0), ("b", 1.0, 2.0)], 1),
        ([("a", 0.0, 1.0), ("b", 0.5, 2.0)], 2),
        ([("a", 0.0, 1.0), ("b", 0.5, 2.0), ("c", 1.0, 3.0)], 2),
        ([("a", 0.0, 4.0), ("b", 0.0, 1.0), ("c", 1.0, 2.0), ("d", 2.0, 3.0)], 2),
        ([("a", 0.0, 2.0), ("a", 1.0, 3.0)], 1),
        ([("a", 0.0, 5.0), ("a", 1.0, 2.0), ("b", 3.0, 4.0)], 2),
        ([("a", 0.0, 1.0), ("a", 1.0, 2.0), ("b", 0.5, 1.5)], 2),
        ([("c", 0.0, 2.0), ("b", 0.0, 2.0), ("a", 0.0, 2.0), ("d", 2.0, 3.0)], 3),
    ],
)
def test_peak_agents_counts_agents_and_touching_is_no_overlap(intervals, expected):
    assert width("peak_agents", *intervals) == expected


def test_peak_width_counts_activities():
    """One agent with two things under way."""
    both = ("a", 0.0, 2.0), ("a", 1.0, 3.0)
    assert (width("peak_width", *both), width("peak_agents", *both)) == (2.0, 1.0)
    assert width("average_width", *both) == pytest.approx(4 / 3)


@examples(60)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 8), st.integers(1, 4)),
        min_size=1,
        max_size=7,
    )
)
def test_widths_are_those_of_a_scan_of_all_moments(rows):
    intervals = [(agent, float(start), float(start + length)) for agent, start, length in rows]
    moments = [start + 0.5 for start in range(13)]
    under_way = [[a for a, s, e in intervals if s <= moment < e] for moment in moments]
    assert width("peak_agents", *intervals) == max(len(set(agents)) for agents in under_way)
    assert width("peak_width", *intervals) == max(map(len, under_way))
    some = [len(agents) for agents in under_way if agents]
    assert width("average_width", *intervals) == pytest.approx(sum(some) / len(some))
    assert width("parallelism", *intervals) <= width("average_width", *intervals) + 1e-12
    assert width("average_width", *intervals) <= width("peak_width", *intervals) + 1e-12


# ---- bounds


def test_two_calls_of_one_agent_are_two_pieces_of_work_and_one_agent_at_work():
    both = event("0#0", "tool_call", 0.0, 3.0), event("0#1", "tool_call", 0.0, 3.0)
    assert value(trace(*both), "peak_agents") == 1.0
    assert value(trace(*both), "peak_width") == 2.0
    assert value(trace(*both), "parallelism") == 2.0


def test_what_a_sum_of_floats_adds_to_an_end_is_no_overlap():
    given = trace(turn("a#0", 0.0, 0.1 + 0.2), turn("b#0", 0.3, 1.0))
    assert value(given, "peak_width") == 1.0


def test_work_without_a_start_is_not_seen_side_by_side():
    given = trace(turn("a#0", 0.0, 1.0), turn("b#0", None, 9.0))
    assert (value(given, "work"), value(given, "parallelism")) == (10.0, 1.0)
    assert "1 of 2 starts are unknown" in measure(given)["parallelism"].reason


def test_the_span_is_that_of_the_causes_and_not_of_the_clock():
    """Two independent turns that happened to run one after the other."""
    given = trace(turn("0#0", 0.0, 2.0), turn("1#0", 2.0, 3.0))
    assert (value(given, "makespan"), value(given, "span")) == (5.0, 3.0)


NEED_NO_LOOP = (
    *("span", "critical_events", "critical_agents"),
    *("critical_turn_share", "critical_tool_share", "critical_transit_share"),
)


def test_a_loop_is_named_and_takes_only_what_needs_a_graph_without():
    turns = turn("a", 0.0, 1.0), turn("b", 1.0, 1.0)
    looped = trace(*turns, edges=[("a", "b"), ("b", "a")])
    straight = trace(*turns, edges=[("a", "b")])
    for name in NEED_NO_LOOP:
        assert re.search("loop: (a → b → a|b → a → b)", unknown(looped, name))
    for name, found in measure(straight).items():
        if name not in NEED_NO_LOOP:
            assert (measure(looped)[name].value is None) == (found.value is None), name


@pytest.mark.parametrize("seed", range(4))
def test_span_work_and_makespan_bound_each_other_on_a_real_episode(seed):
    (done,) = crew([seed])
    found = {name: each.value for name, each in measure(done).items()}
    assert found["span"] <= found["makespan"] + 1e-9
    assert found["span"] <= found["work"] + sum(
        e.duration for e in done.events if e.kind in ("message", "delegate")
    )
    assert found["peak_agents"] <= found["agents"]
    assert found["parallelism"] <= found["average_width"] <= found["peak_width"]


def test_measures_do_not_depend_on_the_order_of_the_record():
    backwards = Trace(id="t", agents=TEAM.agents, events=TEAM.events[::-1], edges=TEAM.edges[::-1])
    assert measure(backwards) == measure(TEAM)


def test_an_unknown_spawn_is_unpaired():
    given = trace(event("0#0", "spawn", to=None), event("0#1", "spawn", to="1"), event("1#0"))
    assert value(given, "unpaired_spawns") == 2
