"""One event changed: both worlds share whatever the change does not reach."""

import pytest

import stretto
from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks.gather import Gather
from stretto.tasks.gather.scripts import team
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.team.interventions import ON, Force, Null, Remove, Replace, Resample
from stretto.team.protocols import Answer
from stretto.team.replay import replay
from stretto.team.what_if import what_if, what_ifs

from .toy import Crew, Dice

GAME = Scouts(horizon=9, width=3)
THREE = {"lead": Scripted(lambda ask: "three" if "none" in ask.prompt else "stop")}


def votes(trace):
    return [event.attrs["colour"] for event in trace.events if event.kind == "return"]


@pytest.fixture(scope="module")
def split():
    """An episode in which two of three scouts are for one colour."""
    traces = rollout(GAME, THREE, range(20))
    return next(trace for trace in traces if len(set(votes(trace))) == 2)


def ask(trace, event, do, **given):
    return what_if(trace, event, do, task=GAME, policies=THREE, **given)


def test_a_scout_that_never_went_leaves_the_others_as_they_are(split):
    """Ids: 0#0 decides, 0#1 to 0#3 spawn 0/0 to 0/2; each looks, reports and leaves."""
    found = ask(split, "0#2", Remove())
    assert [agent.id for agent in found.trace.agents][:3] == ["0", "0/0", "0/2"]
    gone = next(event for event in found.trace.events if event.id == "0#2")
    assert (gone.kind, gone.attrs) == ("removed", {"was": "spawn"})
    assert votes(found.trace)[:2] == [votes(split)[0], votes(split)[2]]
    untouched = {f"0/{n}#{k}" for n in (0, 2) for k in range(4)} | {"0#0", "0#1", "0#3"}
    assert not untouched & found.changed
    assert {"0#2", *(f"0/1#{k}" for k in range(4))} <= found.changed


def test_what_the_difference_is(split):
    """Stopping at once leaves the coin: its worth minus what the episode earned."""
    found = ask(split, "0#0", Force("stop"))
    assert [event.kind for event in found.trace.events] == ["decision", "stop"]
    assert found.difference == found.trace.reward("outcome") - split.reward("outcome")
    assert (found.policy_tokens, found.decisions) == (0, 0)
    counted = ask(split, "0#0", Force("stop"), value=lambda trace: float(len(trace.agents)))
    assert counted.difference == 1 - 4


def test_the_lead_is_asked_again_only_if_it_sees_something_else(split):
    """Of three votes, one is the minority: without it the lead of the majority grows."""
    colours = votes(split)
    lone = next(n for n, colour in enumerate(colours) if colours.count(colour) == 1)
    other = next(colour for colour in colours if colour != colours[lone])
    turned = ask(split, f"0/{lone}#1", Replace(f"It looks {other}.", {"colour": other}))
    assert votes(turned.trace) == [other] * 3
    assert turned.decisions == 1
    same = ask(split, f"0/{lone}#1", Replace("Seen.", {"colour": colours[lone]}))
    assert same.decisions == 0
    assert same.changed == {f"0/{lone}#1"}  # the report says the same, and nothing else moves


def test_a_report_that_says_nothing_counts_as_none(split):
    found = ask(split, "0/1#2", Null())
    event = next(event for event in found.trace.events if event.id == "0/1#2")
    assert found.trace.text(event.content) == ""
    assert event.attrs == {"null": True}
    assert found.trace.events[-1].kind == "stop"


def test_a_look_that_is_drawn_again_keeps_everybody_elses(split):
    seen = set()
    for seed in range(12):
        found = ask(split, "0/0#1", Resample(seed))
        assert votes(found.trace)[1:] == votes(split)[1:]
        seen.add(votes(found.trace)[0])
    assert seen == {"red", "blue"}
    own = ask(split, "0/0#1", Resample(split.seed))
    assert not own.changed


def test_every_world_can_be_replayed_and_changed_again(split):
    once = ask(split, "0#2", Remove()).trace
    assert replay(once, GAME) is None
    twice = ask(once, "0#3", Remove()).trace
    assert [agent.id for agent in twice.agents] == ["0", "0/0"]
    assert set(twice.attrs["interventions"]) == {"0#2", "0#3"}
    assert replay(twice, GAME) is None
    assert stretto.what_if is what_if


# ---- any event of any crew


class Free(Crew):
    """A crew whose members see no more than what reached them."""

    def __init__(self):
        super().__init__(capacity=1000)


def crews():
    dice = Dice()
    policies = {"lead": dice, "worker": dice}
    return policies, rollout(Free(), policies, range(8))


def changes_of(event):
    for do in (Remove(), Null(), Replace("x", {"number": 3}), Resample(9), Force("ask")):
        forced = isinstance(do, Force)
        if event.kind in ON[type(do)] and not (forced and "ask" not in event.decision.candidates):
            yield do


def causes(trace):
    found = {}
    for edge in trace.edges:
        found.setdefault(edge.dst, set()).add(edge.src)
    return found


def test_only_what_descends_from_a_change_changes():
    """Or what only happens because the episode now lasts longer.

    Of a removed event the agent itself may take notice (a child that is not there), so whatever
    that agent does later may change too.
    """
    policies, traces = crews()
    tried = 0
    for trace in traces:
        for event in trace.events:
            for do in changes_of(event):
                found = what_if(trace, event.id, do, task=Free(), policies=policies)
                loose = loose_ends(trace, event, found)
                if isinstance(do, Remove):
                    loose = [each for each in loose if not each.agent.startswith(event.agent)]
                assert not loose, (trace.id, event.id, do)
                tried += 1
    assert tried > 200


def loose_ends(trace, event, found):
    """Changed events without a changed cause in either world, before either world ends.

    An agent that is removed in one world only goes on in the other, which no edge says.
    """
    before, after = causes(trace), causes(found.trace)
    ends = min(trace.events[-1].start, found.trace.events[-1].start)
    old = {each.id: each for each in trace.events}
    new = {each.id: each for each in found.trace.events}
    left = (each for each in (*trace.events, *found.trace.events) if each.kind == "despawn")
    gone = {each.to for each in left if each.id in found.changed}
    loose = []
    for name in found.changed - {event.id}:
        why = before.get(name, set()) | after.get(name, set())
        one_world = (name in old) != (name in new)
        each = old.get(name) or new[name]
        late = one_world and each.start >= ends
        goes_on = one_world and each.agent in gone
        if not why & (found.changed | {event.id}) and not late and not goes_on:
            loose.append(each)
    return loose


def test_whatever_is_changed_the_world_replays_and_costs_no_more_than_its_changed_decisions():
    policies, traces = crews()
    spent = total = 0
    for trace in traces:
        changes = [(event.id, do) for event in trace.events for do in changes_of(event)]
        for (name, _), found in zip(
            changes, what_ifs(trace, changes, task=Free(), policies=policies), strict=True
        ):
            assert replay(found.trace, Free()) is None, name
            decisions = {each.id for each in found.trace.events if each.kind == "decision"}
            assert found.decisions <= len(decisions & (found.changed | {name}))
            spent += found.decisions
            total += len(decisions)
    assert spent < 0.25 * total


def test_changes_together_are_the_changes_one_by_one():
    policies, (trace, *_) = crews()
    changes = [(event.id, do) for event in trace.events for do in changes_of(event)]
    together = what_ifs(trace, changes, task=Free(), policies=policies)
    for (event, do), found in zip(changes, together, strict=True):
        alone = what_if(trace, event, do, task=Free(), policies=policies)
        assert alone.trace == found.trace
        assert (alone.changed, alone.difference) == (found.changed, found.difference)


def test_a_table_without_one_workers_report_is_as_full():
    """The worker has written to the shared table: its report tells only the lead."""
    task = Gather(entities=8, workers=4)
    policies = team()
    (trace,) = rollout(task, policies, [0])
    report = next(event for event in trace.events if event.kind == "return")
    found = what_if(trace, report.id, Null(), task=task, policies=policies)
    assert found.difference == 0.0


# ---- errors


class Renamed(Dice):
    """The same dice under another name."""

    @staticmethod
    def _answer(ask):
        answer = Dice._answer(ask)
        return Answer(answer.chosen, "other", answer.logprobs)


def test_what_cannot_be_changed_is_named(split):
    with pytest.raises(StrettoError, match=r'no event "0#99"'):
        ask(split, "0#99", Remove())
    with pytest.raises(StrettoError, match=r"^0#0: a decision cannot be changed by Remove"):
        ask(split, "0#0", Remove())
    with pytest.raises(StrettoError, match="Null applies to message, delegate, return"):
        ask(split, "0#1", Null())
    with pytest.raises(StrettoError, match=r'"stopp" cannot be forced.*did you mean "stop"'):
        ask(split, "0#0", Force("stopp"))


def test_another_policy_than_that_of_the_record_is_refused():
    policies, (trace, *_) = crews()
    other = dict.fromkeys(policies, Renamed())
    with pytest.raises(StrettoError, match=r"made by policy 'dice', not by 'other'"):
        what_if(trace, "0#0", Resample(1), task=Free(), policies=other)
