"""Agents whose own record an import did not find: what lacks them says so."""

import pytest
from msgspec.structs import replace

from stretto.metrics import breakdown, measure
from stretto.trace import Agent, Tokens

from ..examples import event, trace, turn

HIDDEN = "1 of 4 agents left no transcript"
LOWER = ": a lower bound"

TOKENS = Tokens(input=10, output=5)
EVENTS = (
    *(
        turn("0#0", 0.0, 1.0, tokens=TOKENS),
        event("0#1", "tool_call", 1.0, 1.0, tool="t", content="x"),
    ),
    *(event("0#2", "tool_result", 2.0, tool="t", content="y", trusted=False),),
    *(event("0#3", "message", 2.0, 1.0, to="1", content="z"), turn("1#0", 3.0, 2.0)),
    *(event("1#1", "return", 5.0, to="0"), turn("0#4", 5.0, 1.0), event("0#5", "stop", 6.0)),
    turn("3#0", 3.0, 2.0),
)
EDGES = [
    *(("0#0", "0#1"), ("0#1", "0#2"), ("0#0", "0#3"), ("0#3", "1#0"), ("1#0", "1#1")),
    *(("1#1", "0#4", "return"), ("0#4", "0#5")),
]


def team(**attrs):
    """A lead, a worker, one of which there is no event, and a tester."""
    agents = (
        Agent(id="0", role="lead", model="big"),
        Agent(id="1", parent="0", role="worker", model="small"),
        Agent(id="2", parent="0", role="worker", model="other", attrs=attrs),
        Agent(id="3", parent="0", role="tester", model="small"),
    )
    return replace(trace(*EVENTS, edges=EDGES), agents=agents)


PARTLY, WHOLE = measure(team(transcript=False)), measure(team())


@pytest.mark.parametrize(
    "name",
    [
        *("tool_redundancy", "message_redundancy", "unread_messages", "unused_returns"),
        *("unconnected_agents", "unconnected_work_share", "messages_per_turn"),
        *("pseudo_parallelism", "free_riding", "communication_padding", "tool_spam"),
        *("untrusted_share", "untrusted_output", "coordination_share", "parallelism"),
    ],
)
def test_shares_and_what_rests_on_paths_say_so_and_are_no_bound(name):
    assert PARTLY[name].value is not None
    assert HIDDEN in PARTLY[name].reason
    assert LOWER not in PARTLY[name].reason
    assert "transcript" not in WHOLE[name].reason


@pytest.mark.parametrize(
    "name", ["repeated_actions", "untrusted_sources", "untrusted_events", "untrusted_agents"]
)
def test_counts_that_can_only_grow_are_lower_bounds(name):
    assert PARTLY[name].reason == HIDDEN + LOWER
    assert WHOLE[name].reason == ""


def test_a_share_of_untrusted_events_may_fall_with_every_event_that_is_not():
    """Of the lead's three events two are reached; with a trusted one of the worker, of four."""
    seen = event("0#0", "tool_result", trusted=False), turn("0#1"), turn("0#2")
    agents = Agent(id="0"), Agent(id="1", attrs={"transcript": False})
    partly = measure(trace(*seen, edges=[("0#0", "0#1")], agents=agents))["untrusted_share"]
    whole = measure(trace(*seen, turn("1#0"), edges=[("0#0", "0#1")]))["untrusted_share"]
    assert (partly.value, whole.value) == (2 / 3, 2 / 4)
    assert partly.reason == "1 of 2 agents left no transcript"


def test_a_repeated_action_is_no_bound_where_an_answer_is_not_known():
    given = team(transcript=False)
    silent = event("0#9", "tool_call", 5.0, 0.0, tool="t", content="x")
    found = measure(replace(given, events=(*given.events, silent)))["repeated_actions"]
    assert found.reason == f"1 of 2 calls have no known arguments or answer; {HIDDEN}"


def test_overhead_in_turns_lacks_those_of_agents_without_a_record():
    solo = trace(turn("0#0", 0.0, 1.0), agents=[Agent(id="0")])
    found = measure(team(transcript=False), baseline=solo)["turn_overhead"]
    assert (found.value, found.reason) == (3.0, HIDDEN + LOWER)


# ---- rows


def reasons(by):
    """What a row says more than it says of the same trace where all left a record."""
    whole = {row.key: row.reason for row in breakdown(team(), by)}
    found = breakdown(team(transcript=False), by)
    return {row.key: row.reason.removeprefix(whole.get(row.key, "")) for row in found}


def test_a_row_says_how_many_of_its_agents_left_no_record():
    alone, half = "1 of 1 agents left no transcript", "; 1 of 2 agents left no transcript"
    assert reasons("agent") == {"0": "", "1": "", "2": alone, "3": ""}
    assert reasons("role") == {"lead": "", "worker": half, "tester": ""}
    assert reasons("model") == {
        "big": "",
        "small": "",
        "other": alone,
    }


def test_the_row_of_an_agent_without_a_record_knows_nothing():
    row = breakdown(team(transcript=False))[2]
    assert (row.events, row.input_tokens, row.price, row.work, row.idle) == (0, *[None] * 4)


@pytest.mark.parametrize("by", ["kind", "decision", "tool"])
def test_sums_over_all_agents_say_that_some_are_missing(by):
    found = [row.reason for row in breakdown(team(transcript=False), by)]
    assert all(reason.endswith(HIDDEN) for reason in found)


def test_the_row_of_an_event_lacks_nothing_of_other_agents():
    assert set(reasons("event").values()) == {""}
