"""Every script of every family can play with less on its menu, as a policy alone does."""

import pytest
from msgspec.structs import replace

from stretto.bench.bands import SIZES, make, topologies_of
from stretto.bench.baselines import Watched, alone
from stretto.tasks.scouts import Scouts
from stretto.tasks.scripts import NAMES, SCRIPTS, scripts_of
from stretto.team.engine import rollout
from stretto.team.noise import key_of

CASES = [(family, band) for family in SCRIPTS for band in ("10", "100")]


@pytest.mark.parametrize(("family", "band"), CASES)
def test_nobody_to_send(family, band):
    """Scripts of one instance play others, too, as the benchmark has them do."""
    for topology in topologies_of(family):
        tasks = [make(family, SIZES[family][band], seed, topology=topology) for seed in range(2)]
        for name in NAMES:
            policies = scripts_of(tasks[0])[name]
            for task in tasks:
                watched = Watched(task)
                (trace,) = rollout(watched.as_task, alone(policies, watched), [1])
                assert trace.attrs["ended"] == "stop"


class Fewer:
    """A policy that is offered `stop`, and any of the others that a key leaves."""

    def __init__(self, policy):
        self.policy = policy

    def decide(self, asks):
        return [self.answer(ask) for ask in asks]

    def answer(self, ask):
        kept = [c for c in ask.candidates if c == "stop" or key_of(ask.key, c) % 3 == 0]
        answer = self.policy.decide([replace(ask, candidates=tuple(kept))])[0]
        place = ask.candidates.index(kept[answer.chosen])
        return replace(answer, chosen=place, logprobs=())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", ["all", "doubling"])
def test_scouts_play_any_menu_that_holds_stop(name, sizes):
    task = Scouts(width=16, horizon=24, scout_cost=0.002, sizes=sizes)
    policies = {"lead": Fewer(scripts_of(task)[name]["lead"])}
    for trace in rollout(task, policies, range(12)):
        assert trace.attrs["ended"] == "stop"


def test_who_may_send_one_only_sends_one():
    """Where the oracle wants more, the largest team below that is the nearest to it."""
    task = Scouts(width=16, horizon=24, scout_cost=0.002)
    watched = Watched(task)
    for trace in rollout(watched.as_task, alone(scripts_of(task)["oracle"], watched), range(8)):
        chosen = [event.decision.choice for event in trace.events if event.decision]
        assert chosen[0] == "one"
        assert set(chosen) == {"one", "stop"}
