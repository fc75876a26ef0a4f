"""Whose lie misled members of `agree`: where it is blamed, honest twins mend the outcome."""

from collections import Counter

import pytest
from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks import topology
from stretto.tasks.agree import Agree, culprit, instance_of, own_fact
from stretto.tasks.agree.oracle import blame, lies_told
from stretto.tasks.agree.scripts import yardstick
from stretto.tasks.agree.solve import agreed
from stretto.tasks.conformance import check_task
from stretto.tasks.faults import Blame
from stretto.tasks.menus import size_of
from stretto.tasks.nest import Nest
from stretto.tasks.nest.oracle import exact
from stretto.tasks.scripts import everyone, normalised, scripts_of, yardstick_of
from stretto.team.engine import rollout
from stretto.team.interventions import Null, Replace
from stretto.team.what_if import what_if


def run(task, policies):
    return rollout(task, policies, [0])[0]


def mended(task, policies, trace, events):
    """The world in which all of these say what is so, one change after the other."""
    liar = culprit(task)
    for each in events:
        event = trace.events[trace.columns.row[each.id]]
        facts = {**event.attrs["facts"], str(liar): own_fact(task, liar)}
        honest = Replace(" ".join(facts.values()), {**event.attrs, "facts": facts})
        trace = what_if(trace, event.id, honest, task=task, policies=policies).trace
    return trace


@pytest.mark.parametrize("problem", ["majority", "maximum"])
@pytest.mark.parametrize("name", topology.NAMES)
def test_the_blamed_events_set_right_set_the_outcome_right(problem, name):
    for seed in range(6):
        task = Agree(problem=problem, members=5, topology=name, fault="lie", seed=seed)
        for script in ("oracle", "greedy"):
            policies = scripts_of(task)[script]
            trace = run(task, policies)
            clean = run(replace(task, fault=None), policies)
            found = blame(task, trace)
            harmed = trace.reward("right") < clean.reward("right")
            assert harmed or found is None
            if found is None:
                assert script == "greedy" or not harmed  # votes that tie without the lie: a coin
                continue
            told = lies_told(task, trace)
            assert found.event == told[0].id
            assert {event.agent for event in told} == {found.agent}
            other = mended(task, policies, trace, told)
            assert other.scores == clean.scores
            assert blame(task, other) is None


def test_all_neighbours_are_lied_to_in_messages_of_their_own():
    task = Agree(members=5, topology="debate", fault="lie")
    assert len(lies_told(task, run(task, scripts_of(task)["oracle"]))) == 4


def test_in_the_shared_memory_it_is_the_entry():
    task = Agree(members=5, topology="harness", fault="lie")
    trace = run(task, scripts_of(task)["oracle"])
    (event,) = lies_told(task, trace)
    assert event.kind == "tool_result"
    assert blame(task, trace) == Blame(event.agent, event.id)


def test_who_believes_no_lie_is_not_misled():
    task = Agree(members=5, topology="debate", fault="lie")
    policies = scripts_of(task)["oracle"]
    trace = run(task, policies)
    for event in lies_told(task, trace):  # nobody hears of it
        trace = what_if(trace, event.id, Null(), task=task, policies=policies).trace
    assert blame(task, trace) is None


def test_whoever_commits_against_what_it_knows_was_not_misled():
    task = Agree(problem="maximum", members=4, topology="debate", fault="lie")

    def least(ask):
        commits = [c for c in ask.candidates if c.startswith("commit ")]
        if "share" in ask.candidates and len(commits) < 4:
            return "share"
        return min(commits, key=lambda c: size_of(c.removeprefix("commit ")), default="call")

    policies = everyone(task.harness.roles, Scripted(least))
    trace = run(task, {**policies, "lead": Scripted(lambda ask: ask.candidates[0])})
    assert trace.reward("right") == 0.0
    assert blame(task, trace) is None


def test_any_member_with_the_colour_of_most_may_be_the_liar():
    tasks = [Agree(members=7, seed=seed, fault="lie") for seed in range(200)]
    liars = Counter(culprit(task) for task in tasks)
    assert set(liars) == set(range(7))
    assert max(liars.values()) < 60
    for task in tasks[:20]:
        inputs = instance_of(task).inputs
        assert inputs[culprit(task)] == agreed("majority", inputs)
        assert instance_of(task) == instance_of(replace(task, fault=None))


def test_a_nest_names_the_first_of_them():
    inner = {"family": "agree", "members": 5, "fault": "lie"}
    task = Nest(inner=(inner,), jobs=2, topology="debate")
    trace = run(task, scripts_of(task)["oracle"])
    for agent, event in exact(task, trace).blame.values():
        assert trace.events[trace.columns.row[event]].agent == agent


# ---- a common guess


def always(word):
    """Call, read nothing, write nothing, and commit to one colour."""
    commits = (f"commit {word}", "commit")
    return Scripted(
        lambda ask: (
            next((c for w in commits for c in ask.candidates if c.startswith(w)), None)
            or ask.candidates[0]
        )
    )


@pytest.mark.parametrize("members", [7, 41])
def test_a_constant_answer_is_worth_what_chance_is(members):
    scores = []
    for seed in range(24):
        task = Agree(members=members, topology="harness", seed=seed)
        red, blue = (run(task, everyone(task.harness.roles, always(w))) for w in ("red", "blue"))
        assert red.reward("outcome") + blue.reward("outcome") == 1.0  # one of them is right
        assert not any(event.kind == "message" for event in red.events)
        scores += [red.reward("outcome"), blue.reward("outcome")]
    yard = yardstick(Agree(members=members))
    assert normalised(sum(scores) / len(scores), yard.random, yard.best) == 0.0


def test_no_constant_answer_is_a_maximum():
    for seed in range(5):
        task = Agree(problem="maximum", members=7, seed=seed)
        for word in ("one", "ninety nine"):
            trace = run(task, everyone(task.harness.roles, always(word)))
            assert trace.reward("outcome") == 0.0
    assert yardstick(Agree(problem="maximum")).random is None


def test_a_nest_of_majorities_has_the_chance_of_its_jobs():
    inner = {"family": "agree", "members": 3}
    assert yardstick_of(Nest(inner=(inner,), jobs=3)).random == 0.5
    assert yardstick_of(Nest(inner=(inner, {"family": "hops"}), jobs=2)).random is None
    check_task(Nest(inner=(inner,), jobs=2), episodes=8)


@pytest.mark.parametrize("members", [5, 7, 9])
def test_who_knows_its_own_prices_only_does_not_solve_the_kind(members):
    """By luck the cheapest colours fit some instance; not its siblings."""
    for seed in range(3):
        found = check_task(Agree(problem="cost", members=members, seed=seed), episodes=8)
        assert found.normalised["silent"] < 0.95
