"""The rules that every task family keeps, and tasks that break one each."""

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks import build, conformance, scripts, shortcuts
from stretto.tasks.conformance import check_task
from stretto.tasks.gather import Gather
from stretto.tasks.hops import Hops
from stretto.tasks.hops.scripts import scripts as hops_scripts
from stretto.tasks.hops.scripts import yardstick
from stretto.tasks.jury import Jury
from stretto.tasks.repair import Repair
from stretto.tasks.scouts import Scouts
from stretto.tasks.scripts import (
    NAMES,
    SCRIPTS,
    Yardstick,
    anybody,
    blind,
    normalised,
    score,
    scripts_of,
    yardstick_of,
)
from stretto.team.engine import rollout
from stretto.team.protocols import Ask

TASK = Hops(width=2, depth=2)


@pytest.mark.parametrize(
    "task", [Gather(entities=4), Gather(seed=2, entities=3, wrong=0.8), TASK, Jury()]
)
def test_families_conform(task):
    found = check_task(task, episodes=24)
    assert set(NAMES) <= found.normalised.keys()
    assert found.normalised["oracle"] > found.normalised["random"]


@pytest.mark.parametrize("task", [Scouts(), Scouts(reliability=0.8, width=3, horizon=9)])
def test_games_of_chance_conform_within_their_error(task):
    found = check_task(task, episodes=200)
    assert found.normalised["silent"] < found.normalised["oracle"]
    assert found.chance == yardstick_of(task).random


def test_every_family_with_scripts_has_all_of_them():
    for family in SCRIPTS:
        policies = scripts_of(build({"family": family}))
        assert set(NAMES) <= policies.keys()


def test_an_unknown_family_is_named():
    with pytest.raises(StrettoError, match='did you mean "hops"'):
        scripts_of(SimpleNamespace(spec={"family": "hopps"}))


def test_scores_are_outcomes_less_prices():
    task = Hops(width=4, depth=3, worker_cost=0.05, second_cost=0.01)
    (trace,) = rollout(task, scripts_of(task)["solo"], [0])
    assert score(task, trace, priced=False) == 1.0
    assert score(task, trace, priced=True) == pytest.approx(1 - 13 * 0.01)
    assert normalised(0.75, 0.5, 1.0) == 0.5


def test_the_blind_see_the_number_of_their_turn_only():
    def ask(event, prompt):
        return Ask(event, "", prompt, ("a", "b", "c"), "lead", 0)

    turns = [blind(ask(f"0#{n}", "x")) for n in range(30)]
    assert turns == [blind(ask(f"0/7#{n}", "y")) for n in range(30)]
    assert set(turns) == {"a", "b", "c"}


def test_anybody_is_fair():
    chosen = [anybody(Ask("0#0", "", "", ("a", "b"), "lead", key * 7919)) for key in range(2_000)]
    assert abs(chosen.count("a") - 1_000) < 4 * 500**0.5


# ---- tasks that break a rule


def patched(monkeypatch, rules=None, yard=None):
    """Let the checks see other scripts, or another yardstick, of hops."""

    def found(task):
        changed = {name: _everyone(task, rule) for name, rule in (rules or {}).items()}
        return {**hops_scripts(task), **changed}

    monkeypatch.setattr(conformance, "scripts_of", found)
    monkeypatch.setattr(conformance, "yardstick_of", yard or yardstick)


def _everyone(task, rule):
    return scripts.everyone(task.harness.roles, Scripted(rule, "changed"))


def refused(task=TASK):
    with pytest.raises(StrettoError) as caught:
        check_task(task, episodes=8)
    assert caught.value.where == task.id
    return caught.value.what


def test_an_oracle_that_errs(monkeypatch):
    patched(monkeypatch, {"oracle": anybody})
    assert refused().startswith("the oracle scores")


def test_chance_that_is_too_good(monkeypatch):
    patched(monkeypatch, yard=lambda task: Yardstick(best=1.0, random=-4.0))
    assert refused().startswith("chance scores")


def test_silence_that_solves(monkeypatch):
    found = scripts_of(TASK)["solo"]["lead"]
    patched(monkeypatch, {"silent": lambda ask: ask.candidates[found.decide([ask])[0].chosen]})
    assert refused() == "silent solves it (1.000)"


def test_the_blind_are_tried_on_other_instances_too():
    """One plan happens to answer this question, and none of its siblings."""
    lucky = Hops(seed=142, query="meet", topology="debate", width=5)
    policies = scripts_of(lucky)["blind"]
    assert rollout(lucky, policies, [0])[0].reward("success") == 1.0
    assert check_task(lucky, episodes=16).scores["blind"] == 1 / 8


def test_a_control_that_is_not_solved(monkeypatch):
    patched(monkeypatch, yard=lambda task: Yardstick(best=1.0, solved_by=frozenset({"silent"})))
    assert refused().startswith("silent does not solve it")


def test_an_answer_that_can_be_read_at_first(monkeypatch):
    patched(monkeypatch, yard=lambda task: Yardstick(best=1.0, hidden=frozenset({"open"})))
    assert refused() == "0#0 shows ['open'] at first"


def test_a_script_that_goes_by_names(monkeypatch):
    def by_name(ask):
        return max(ask.candidates)

    patched(monkeypatch, {"greedy": by_name})
    assert refused(Hops(width=2, depth=2, seed=1)) == "greedy goes by names"


def test_a_script_that_goes_by_the_path_of_its_agent(monkeypatch):
    def by_path(ask):
        return ask.candidates[-1 if ask.event.startswith("0#") else 0]

    patched(monkeypatch, {"greedy": by_path})
    assert refused() == "greedy goes by names"


def test_a_script_with_a_memory_gives_other_traces(monkeypatch):
    turns = []

    def remembers(ask):
        turns.append(ask)
        return ask.candidates[len(turns) % len(ask.candidates)]

    patched(monkeypatch, {"greedy": remembers})
    assert "the same seed gives another trace" in refused()


def test_scripts_that_are_missing(monkeypatch):
    monkeypatch.setattr(conformance, "scripts_of", lambda task: {"oracle": {}})
    assert refused().startswith("no script ['blind', ")


@dataclass
class Gossip:
    """A task whose agents see how many look-ups anybody made: an edge that no trace records."""

    inner: Hops = field(default_factory=lambda: Hops(width=3, depth=3, worker_cost=0.0))

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def choose(self, world, team, agent):
        found = self.inner.choose(world, team, agent)
        if found is None or agent.id == "0":
            return found
        return replace(found, observation=f"{found.observation}\nLooked: {len(world.looked)}.")


def test_observations_that_leak_between_agents(monkeypatch):
    task = Gossip()
    monkeypatch.setattr(conformance, "build", lambda spec: task)
    patched(monkeypatch)
    with pytest.raises(StrettoError, match="which did not reach it"):
        check_task(task, episodes=4)


# ---- shortcuts


@dataclass(frozen=True)
class Telling:
    """A table whose menus have the right choice first."""

    inner: Gather

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def choose(self, world, team, agent):
        found = self.inner.choose(world, team, agent)
        if found is None:
            return None
        ask = Ask("0#0", "", found.observation, found.candidates, agent.role, 0)
        (answer,) = scripts_of(self.inner)["oracle"][agent.role].decide([ask])
        right = found.candidates[answer.chosen]
        order = sorted(range(len(found.candidates)), key=lambda n: found.candidates[n] != right)
        candidates = tuple(found.candidates[place] for place in order)
        return replace(found, candidates=candidates, types=tuple(found.types[n] for n in order))


@dataclass(frozen=True)
class Biased:
    """A case whose hidden colour is always red."""

    inner: Jury

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def begin(self, seed):
        worlds = (self.inner.begin(number) for number in count(100 * seed))
        return next(world for world in worlds if world.hidden == 0)


@pytest.mark.parametrize(
    ("kind", "inner", "name"),
    [
        (Telling, Gather(entities=2), "first"),
        (Biased, Jury(classes=4, seed=6), "always red"),
    ],
)
def test_a_shortcut_is_named(monkeypatch, kind, inner, name):
    assert name in check_task(inner, episodes=8).shortcuts
    monkeypatch.setattr(conformance, "build", lambda spec: kind(build(spec)))
    with pytest.raises(StrettoError, match=rf'the shortcut "{name}" solves it \(\d') as caught:
        check_task(kind(inner), episodes=8)
    assert caught.value.where == inner.id


@pytest.mark.parametrize("control", ["always red", "blind"])
def test_a_shortcut_may_be_a_control(monkeypatch, control):
    task = Biased(Jury(classes=4, seed=6))
    known = yardstick_of(task)
    declared = replace(known, solved_by=frozenset({control}))
    monkeypatch.setattr(conformance, "build", lambda spec: Biased(build(spec)))
    monkeypatch.setattr(conformance, "yardstick_of", lambda task: declared)
    if control == "blind":
        with pytest.raises(StrettoError, match="blind does not solve it"):
            check_task(task)
    else:
        assert check_task(task).shortcuts["always red"] > 1


def test_common_words_are_those_of_both_instances():
    one, other = (
        rollout(Gather(seed=seed), scripts_of(Gather(seed=seed))["oracle"], [0]) for seed in (1, 2)
    )
    words = shortcuts.common_words(one, other)
    assert len(words) <= shortcuts.WORDS
    assert {"is", "colour", "fruit"} <= set(words)
    assert not yardstick_of(Gather(seed=1)).names & set(words)


def test_who_always_takes_one_word_takes_any_in_the_end():
    def ask(turn, *candidates):
        return Ask(f"0/3#{turn}", "", "", candidates, "worker", 7 * turn)

    rule = shortcuts.shortcuts(["red"], patience=50)["always red"]
    assert {rule(ask(turn, "say blue", "say red", "wait")) for turn in range(50)} == {"say red"}
    assert rule(ask(1, "vote red", "vote blue")) == "vote red"
    assert {rule(ask(turn, "a", "b")) for turn in range(50)} == {"a", "b"}
    assert {rule(ask(turn, "red", "wait")) for turn in range(50, 90)} == {"red", "wait"}


@pytest.mark.parametrize(
    "task",
    [
        Scouts(width=1, horizon=1, scout_cost=0.05, round_cost=0.1),
        Jury(classes=2, witnesses=2, copies=1, liars=1, faint=1),
        Repair(layers=1, wide=1, healthy=0, fault="edit"),
    ],
)
def test_a_task_in_which_nothing_can_be_gained_is_told(task):
    with pytest.raises(StrettoError, match="chance is as good as the oracle") as caught:
        check_task(task)
    assert caught.value.where == task.id
