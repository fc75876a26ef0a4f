"""Who aggregates, who flips, and how far a fault spreads: each on an episode one can work out."""

import pytest
from msgspec.structs import replace

from stretto.bench.aggregation import aggregation, milestones
from stretto.bench.facts import Brought, brought
from stretto.bench.spread import spread, wrong_events
from stretto.tasks.gather import Gather
from stretto.tasks.hops import Hops, instance_of
from stretto.tasks.jury import COLOURS, Jury
from stretto.tasks.jury.oracle import posterior, received
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.team.interventions import Force
from stretto.team.what_if import what_if
from stretto.trace import Decision, Event, Trace


def play(task, script="oracle", seed=3):
    (trace,) = rollout(task, scripts_of(task)[script], [seed])
    return trace


def found(task, trace):
    return aggregation(task, trace, brought(task, trace))


def answered(task, trace, wanted):
    """The same episode, where the lead's answer is one that `wanted` accepts."""
    last = next(e for e in reversed(trace.events) if e.kind == "decision" and e.agent == "0")
    choice = next(c for c in last.decision.candidates if wanted(c))
    scripts = scripts_of(task)["oracle"]
    return what_if(trace, last.id, Force(choice), task=task, policies=scripts).trace


def test_a_lead_that_knew_better():
    """All ends were reported, and the answer is another one: the whole outcome was lost."""
    task = Hops(width=4, depth=2)
    trace = play(task)
    right = instance_of(task).stages[0].answer
    assert found(task, trace)["aggregation_regret"] == 0.0
    wrong = answered(task, trace, lambda c: c.startswith("answer") and right not in c)
    assert wrong.reward("outcome") == 0.0
    assert found(task, wrong)["aggregation_regret"] == 1.0


def test_a_lead_that_could_not_know_better_has_no_regret():
    """The decisive report names a decoy; the lead believes it, as an exact receiver would."""
    task = Hops(width=4, depth=2, fault="report")
    trace = play(task)
    assert trace.reward("outcome") == 0.0
    assert found(task, trace)["aggregation_regret"] == 0.0


def test_who_is_alone_aggregates_nothing():
    task = Hops(width=4, depth=2)
    assert found(task, play(task, "solo"))["aggregation_regret"] is None


def test_a_judge_is_measured_by_what_it_heard():
    task = Jury(witnesses=3, copies=0, liars=0, seed=2)
    trace = play(task)
    belief = posterior(task, received(trace))
    worst = COLOURS[int(belief.argmin())]
    wrong = answered(task, trace, lambda c: c == f"vote {worst}")
    assert found(task, trace)["aggregation_regret"] == pytest.approx(0.0)
    assert found(task, wrong)["aggregation_regret"] == pytest.approx(belief.max() - belief.min())


def test_witnesses_that_knew_and_said_another_colour():
    """Nobody flips without liars; where everybody lies, everybody who knew does."""
    honest, lying = (Jury(witnesses=5, copies=0, liars=n) for n in (0, 5))
    assert found(honest, play(honest))["flips"] == 0.0
    assert found(lying, play(lying))["flips"] == 1.0
    assert found(lying, play(lying, "silent"))["flips"] is None


def test_a_table_that_is_worse_than_what_was_read():
    """With the first value of every cell: what is right was read, but not always believed."""
    task = Gather(entities=6, seed=5)
    hasty = found(task, play(task, "greedy"))
    assert found(task, play(task))["aggregation_regret"] == 0.0
    assert hasty["aggregation_regret"] >= 0.0
    assert found(task, play(task))["milestones"] == 1.0


def test_milestones_by_hand():
    """Of five needed facts three are known: two by `a` first, one by `b`."""
    brings = [
        Brought("1", "a", frozenset({("x",)})),
        Brought("2", "b", frozenset({("x",), ("y",)})),
        Brought("3", "a", frozenset({("z",)})),
    ]
    assert milestones(brings, 5) == {"milestones": 3 / 5, "largest_share": 2 / 3}
    assert milestones(brings, None) == {"milestones": None, "largest_share": None}
    assert milestones([], 5) == {"milestones": 0.0, "largest_share": None}


def event(id, kind, agent, start, to=None, content="same"):
    decision = Decision(type="act", candidates=("go",), chosen=0) if kind == "decision" else None
    return Event(
        id=id, kind=kind, agent=agent, start=start, to=to, content=content, decision=decision
    )


def test_spread_by_hand():
    """`a` reads something wrong and tells `b`; `b` tells `c`, which says the same as before."""

    def world(word):
        return Trace(
            id="t",
            events=(
                event("a#0", "tool_result", "a", 1.0, content=word),
                event("a#1", "message", "a", 2.0, to="b", content=word),
                event("b#0", "decision", "b", 4.0),
                event("b#1", "message", "b", 5.0, to="c", content=word),
                event("c#0", "stop", "c", 9.0),
            ),
        )

    clean, faulty = world("right"), world("wrong")
    assert wrong_events(clean, faulty) == {"a#0", "a#1", "b#1"}
    assert spread(clean, faulty) == {
        "wrong_events": 3.0,
        "tainted": 3 / 5,
        "blast": 2.0,  # a and b; c was told, and unmoved
        "reproduction": 1 / 2,  # a told b, b told c, and only b believed it
        "taint_seconds": 4.0,
    }
    none = spread(clean, clean)
    assert none["wrong_events"] == 0.0 and none["reproduction"] is none["taint_seconds"] is None


def test_one_agent_that_makes_all_others_wrong():
    """R₀ is 2: it is counted by those who pass it on, not by all who believe it."""

    def world(word):
        letters = (event(f"a#{n}", "message", "a", 1.0, to=to, content=word) for n, to in WRITES)
        ends = (event(f"{to}#0", "stop", to, 2.0, content=word) for _, to in WRITES)
        return Trace(id="t", events=(*letters, *ends))

    assert spread(world("right"), world("wrong"))["reproduction"] == 2.0


WRITES = ((0, "b"), (1, "c"))


def test_an_error_that_stands_in_the_facts_alone_is_seen():
    def world(value):
        one = replace(event("a#0", "tool_result", "a", 1.0), attrs={"written": value})
        return Trace(id="t", events=(one,))

    assert wrong_events(world("x"), world("y")) == {"a#0"}


def test_what_only_the_faulty_world_has_is_wrong():
    clean = Trace(id="t", events=(event("a#0", "stop", "a", 1.0),))
    longer = Trace(id="t", events=(*clean.events, event("a#1", "stop", "a", 2.0)))
    assert wrong_events(clean, longer) == {"a#1"}


def test_what_is_read_from_a_shared_memory_is_passed_on_by_who_wrote_it():
    def world(word):
        wrote = replace(event("a#0", "tool_result", "a", 1.0, content=word), tool="memory.write")
        read = replace(event("b#0", "tool_result", "b", 2.0, content=word), tool="memory.read")
        return Trace(id="t", events=(wrote, read))

    assert spread(world("right"), world("wrong"))["reproduction"] == 1.0
