"""Critical Steps, stragglers, and agents of which only the return is recorded."""

import pytest

from stretto.metrics import breakdown, measure
from stretto.trace import Agent

from ..examples import chain, event, trace, turn


def value(given, name):
    return measure(given)[name].value


def agents(*names):
    """Agents whose parent is the path before their last number."""
    return tuple(Agent(id=name, parent=name.rpartition("/")[0] or None) for name in names)


def family(stages, lead_turns=None):
    """A lead of one turn a stage and one at the end; `stages` are turns of every child."""
    events, edges, names = [], [], ["0"]
    for stage, team in enumerate(stages):
        asked = turn(f"0#{stage}t")
        events.append(asked)
        for turns in team:
            child = f"0/{len(names) - 1}"
            names.append(child)
            events.append(event(f"0#s{child}", "spawn", to=child))
            edges.append((asked.id, f"0#s{child}"))
            events += [turn(f"{child}#{number}") for number in range(turns)]
    return trace(*events, turn("0#end"), edges=edges, agents=agents(*names))


@pytest.mark.parametrize(
    ("stages", "steps"),
    [
        ([], 1),
        ([[4]], 1 + 4 + 1),
        ([[4, 2, 3]], 1 + 4 + 1),
        ([[4], [2]], 1 + 4 + 1 + 2 + 1),
        ([[1, 5], [2, 2]], 1 + 5 + 1 + 2 + 1),
    ],
)
def test_critical_steps_add_the_longest_child_of_every_stage(stages, steps):
    assert value(family(stages), "critical_steps") == steps


def test_critical_steps_of_children_of_children():
    given = trace(
        *(turn("0#0"), event("0#1", "spawn", to="0/0"), turn("0/0#0")),
        *(event("0/0#1", "spawn", to="0/0/0"), turn("0/0/0#0"), turn("0/0/0#1"), turn("0/0#2")),
        edges=[("0#0", "0#1"), ("0/0#0", "0/0#1")],
        agents=agents("0", "0/0", "0/0/0"),
    )
    assert value(given, "critical_steps") == 1 + (2 + 2)


def test_without_a_main_agent_there_are_no_critical_steps():
    two = measure(trace(turn("a#0"), turn("b#0")))["critical_steps"]
    assert two.value is None
    assert "2 agents" in two.reason


def test_a_spawn_without_its_turn_leaves_them_unknown():
    given = trace(turn("0#0"), event("0#1", "spawn", to="0/0"), turn("0/0#0"))
    found = measure(trace(*given.events, agents=agents("0", "0/0")))["critical_steps"]
    assert found.value is None
    assert "1 spawns" in found.reason


def test_a_guessed_spawn_makes_them_a_guess():
    given = trace(
        *(turn("0#0"), event("0#1", "spawn", to="0/0"), turn("0/0#0")),
        edges=[("0#0", "0#1", "causal", "heuristic")],
        agents=agents("0", "0/0"),
    )
    assert measure(given)["critical_steps"].how == "heuristic"


def test_stragglers_are_measured_against_the_median_of_their_siblings():
    """Lives of 2, 2 and 5 s: 2.5 times the median; only the last takes more than 1.5 times."""
    lives = {"0/0": 2.0, "0/1": 2.0, "0/2": 5.0}
    spawns = [event(f"0#s{name}", "spawn", 1.0, to=name) for name in lives]
    given = trace(
        turn("0#t", 0.0, 1.0),
        *spawns,
        *(turn(f"{name}#0", 1.0, seconds) for name, seconds in lives.items()),
        edges=[("0#t", spawn.id) for spawn in spawns],
        agents=agents("0", *lives),
    )
    assert value(given, "straggler_ratio") == 2.5
    assert value(given, "stragglers") == 1.0


def test_an_only_child_has_no_siblings():
    found = measure(family([[2], [3]]))["straggler_ratio"]
    assert found.value is None
    assert "two agents or more" in found.reason


# ---- agents without a transcript

#  0     |= 1 =| spawn at 1               |= 1 =|
#  0/0          (no record)   return at 9: "I ran 6 s"
UNSEEN = trace(
    turn("0#0", 0.0, 1.0),
    event("0#1", "spawn", 1.0, 0.0, to="0/0"),
    event("0/0#0", "return", 9.0, to="0", attrs={"total_duration_ms": 6000}),
    turn("0#2", 9.0, 1.0),
    edges=chain("0#0", "0#1", "0/0#0", "0#2"),
    agents=(Agent(id="0"), Agent(id="0/0", parent="0", attrs={"transcript": False})),
)


def test_what_a_return_states_is_the_work_of_an_agent_without_turns():
    found = measure(UNSEEN)
    values = {name: found[name].value for name in ("makespan", "work", "span", "blocked", "idle")}
    assert values == {"makespan": 10.0, "work": 8.0, "span": 8.0, "blocked": 8.0, "idle": 0.0}
    assert found["work"].how == "derived"
    assert "the returns of 1 agents state" in found["work"].reason
    assert "lower bound" not in found["work"].reason
    rows = {row.key: row for row in breakdown(UNSEEN)}
    assert rows["0/0"].work == 6.0
    assert rows["0/0"].input_tokens is None


def test_an_agent_with_turns_of_its_own_needs_no_stated_time():
    given = trace(*UNSEEN.events, turn("0/0#x", 2.0, 3.0), agents=UNSEEN.agents)
    assert value(given, "work") == 5.0


def test_an_agent_that_says_nothing_leaves_a_lower_bound():
    events = [e for e in UNSEEN.events if e.kind != "return"]
    found = measure(trace(*events, agents=UNSEEN.agents))["work"]
    assert found.value == 2.0
    assert "1 of 2 agents left no transcript: a lower bound" in found.reason


# ---- blocked and idle


def test_blocked_is_what_waits_for_a_call_or_for_a_return():
    """Turn 0-1, marked wait 1-4 (a call runs beside it 2-3), gap to 6 before a human's turn."""
    given = trace(
        turn("0#0", 0.0, 1.0),
        event("0#1", "tool_call", 1.0, 3.0, attrs={"waiting": True}),
        event("0#2", "tool_call", 2.0, 1.0),
        turn("0#3", 6.0, 1.0),
        event("0#4", "stop", 8.0),
    )
    assert (value(given, "work"), value(given, "blocked"), value(given, "idle")) == (3.0, 2.0, 3.0)
    (row,) = breakdown(given)
    assert (row.work, row.blocked, row.idle) == (3.0, 2.0, 3.0)


def test_a_message_that_ends_a_gap_makes_it_no_blocking_wait():
    given = trace(
        *(turn("0#0", 0.0, 1.0), event("1#0", "message", 4.0, to="0"), turn("0#1", 5.0, 1.0)),
        edges=[("1#0", "0#1", "message")],
    )
    assert (value(given, "blocked"), value(given, "idle")) == (0.0, 4.0)


def test_an_agent_of_which_only_messages_are_known_is_not_idle():
    events = turn("0#0", 0.0, 1.0), event("1#0", "message", 0.0, to="0")
    given = trace(*events, event("1#1", "message", 9.0, to="0"))
    assert value(given, "idle") == 0.0
    assert {row.key: row.idle for row in breakdown(given)} == {"0": 0.0, "1": None}


def test_shares_and_means_of_a_part_are_no_bounds():
    events = [e for e in UNSEEN.events if e.kind != "return"]
    found = measure(trace(*events, edges=[("0#0", "0#2")], agents=UNSEEN.agents))
    for name in (
        "average_width",
        "critical_turn_share",
        "critical_agents",
        "unconnected_work_share",
    ):
        assert found[name].reason == "1 of 2 agents left no transcript", name
    for name in ("work", "span", "peak_width"):
        assert found[name].reason.endswith("a lower bound"), name


def test_waits_for_a_guessed_return_are_guesses():
    edges = ("0#0", "0#1"), ("0#1", "0/0#0"), ("0/0#0", "0#2", "return", "heuristic")
    guessed = trace(*UNSEEN.events, edges=edges, agents=UNSEEN.agents)
    assert measure(guessed)["blocked"].how == "heuristic"
    assert {row.how for row in breakdown(guessed)} == {"heuristic"}
