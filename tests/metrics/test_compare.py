"""Two traces side by side."""

import pytest

from stretto.errors import StrettoError
from stretto.metrics.compare import causal_depth, compare, worst
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.team.interventions import Remove
from stretto.team.what_if import what_if
from stretto.trace import Agent

from ..examples import chain, event, trace, turn


def lead(first):
    return {"lead": Scripted(lambda ask: first if "none" in ask.prompt else "stop")}


def work(name, tool, start, **fields):
    return event(name, "tool_call", start, 1.0, tool=tool, **fields)


def test_depth_is_the_longest_chain_of_causes():
    """a before b and c, both before d; c also before b."""
    names = [f"0#{n}" for n in range(4)]
    a, b, c, d = names
    given = trace(*map(event, names), edges=[(a, b), (a, c), (c, b), (b, d), (c, d)])
    assert causal_depth(given) == [0, 2, 1, 3]


def test_what_is_inserted_for_one_agent_does_not_shift_another():
    one = trace(work("0#0", "a", 0.0), work("1#0", "x", 0.0), edges=())
    two = trace(
        work("0#0", "b", 0.0), work("0#1", "a", 1.0), work("1#0", "x", 0.0),
        edges=chain("0#0", "0#1"),
    )  # fmt: skip
    found = compare(one, two)
    assert found.agents == {"0": (1, 2), "1": (1, 1)}
    assert found.common == 1
    assert [(s.agent, s.depth, s.first, s.second) for s in found.steps] == [
        ("0", 0, ("tool_call a",), ("tool_call b",)),
        ("0", 1, (), ("tool_call a",)),
    ]
    assert found.measures["work"].difference == 1.0
    assert found.measures["price"].difference is None


def test_a_world_without_one_scout_lacks_its_events_only():
    policies = lead("three")
    (before,) = rollout(Scouts(), policies, [3])
    after = what_if(before, "0#2", Remove(), task=Scouts(), policies=policies).trace
    found = compare(before, after)
    assert {step.agent for step in found.steps} >= {"0/1"}
    assert "0/0" not in {step.agent for step in found.steps}
    assert compare(before, before).steps == ()


def test_a_loop_has_no_depth():
    """Measures and agents can be compared all the same; steps cannot, and the reason names it."""
    looped = trace(
        turn("0#0", 0.0, 1.0), turn("0#1", 1.0, 1.0), edges=[("0#0", "0#1"), ("0#1", "0#0")]
    )
    with pytest.raises(StrettoError, match="loop"):
        causal_depth(looped)
    straight = trace(turn("0#0", 0.0, 5.0))
    for pair in ((looped, straight), (straight, looped)):
        found = compare(*pair)
        assert (found.steps, found.common) == (None, None)
        assert "loop: 0#0 → 0#1 → 0#0" in found.reason
        assert set(found.agents["0"]) == {2, 1}
    assert found.measures["work"].difference == 2.0 - 5.0
    assert compare(straight, straight).reason == ""


def test_a_change_is_known_as_the_worse_of_both_is_and_tells_what_is_missing_from_either():
    hidden = (Agent(id="0"), Agent(id="0/0", parent="0", attrs={"transcript": False}))
    seen = trace(turn("0#0", 0.0, 1.0))
    unseen = trace(turn("0#0", 0.0, 2.0), agents=hidden)
    gone = "1 of 2 agents left no transcript: a lower bound"
    found = compare(seen, unseen).measures["work"]
    assert (found.difference, found.how) == (1.0, "derived")
    assert found.reason == f"in the second: {gone}"
    assert compare(unseen, unseen).measures["work"].reason == f"on both sides: {gone}"
    price = compare(seen, unseen).measures["price"]
    assert price.how is None and price.reason
    agents = compare(seen, unseen).measures["agents"]
    assert (agents.how, agents.reason) == ("recorded", "")


def test_the_worst_of_several_ways_to_know():
    assert worst(["recorded", "heuristic", "derived"]) == "heuristic"
    assert worst(["recorded", "derived"]) == "derived"
    assert worst(["recorded"]) == "recorded"
