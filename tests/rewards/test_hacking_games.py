"""Every detector has games that are hacked without it, and are not with it as a penalty."""

import numpy as np
import pytest

from stretto.metrics import measure
from stretto.metrics.hacking import hacking
from stretto.metrics.intervals import activities
from stretto.policies import tabular
from stretto.rewards.mix import Mix
from stretto.rewards.orchestration import parallel
from stretto.rewards.watch import Sighting, flat_speedup, hacked

from .hackable import CROWD, FLATTERY, RIDERS, SPAM, TALK, learn, play, train, utility
from .runs import trained, value


@pytest.fixture(scope="module", autouse=True)
def small_table():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular, "SLOTS", 1_000)
        yield


GAMES = {
    "pseudo_parallelism": (CROWD, "crowd", "together", {"parallel": 1.4}),
    "free_riding": (RIDERS, "riders", "all", {"verifiers": {"channels": ["busy"]}}),
    "communication_padding": (TALK, "cheer", "report", {"verifiers": {"channels": ["talk"]}}),
    "tool_spam": (SPAM, "spam", "once", {"tool_calls": 1.0}),
    "verifier_collusion": (FLATTERY, "flatter", "honest", {"verifiers": 3.0}),
}
PENALTY = {
    **dict.fromkeys(GAMES, -1.0),
    "pseudo_parallelism": {"weight": -1.0, "optional": True},  # who is alone cannot be judged
    "verifier_collusion": -3.0,
}


def found(game, option, name):
    trace = play(game, option)
    return hacking(trace, activities(trace.columns))[name].value


@pytest.mark.parametrize("name", GAMES)
def test_a_reward_is_hacked_without_the_detector_and_not_with_it(name):
    game, hack, honest, proxy = GAMES[name]
    hacked = train(game, Mix(channels=proxy))
    penalised = train(game, Mix(channels={**proxy, name: PENALTY[name]}))
    assert hacked[hack] > 0.95
    assert penalised[honest] > 0.95
    assert utility(game, penalised) > utility(game, hacked) + 0.15


@pytest.mark.parametrize("name", GAMES)
def test_the_plain_outcome_is_not_hacked(name):
    game, _, honest, _ = GAMES[name]
    assert train(game, Mix(), steps=2000)[honest] > 0.95


@pytest.mark.parametrize(
    ("name", "hack", "honest"),
    [
        ("pseudo_parallelism", 1.0, 0.0),
        ("free_riding", 0.75, 0.0),
        ("communication_padding", 7 / 8, 0.0),  # of eight equal messages to the lead, one is new
        ("tool_spam", 7 / 8, 0.0),
        ("verifier_collusion", 0.9, 0.0),
    ],
)
def test_what_a_detector_finds(name, hack, honest):
    game, hacking_option, honest_option, _ = GAMES[name]
    assert found(game, hacking_option, name) == pytest.approx(hack)
    assert found(game, honest_option, name) == pytest.approx(honest)


def test_several_verifiers_are_not_hacked_where_one_is():
    pair = ["verifier", "verifier_tests"]
    both = {"verifiers": {"weight": 3.0, "channels": pair, "combine": "min"}}
    assert train(FLATTERY, Mix(channels=both))["honest"] > 0.95


def test_a_tool_reward_that_waits_for_the_outcome_is_not_spammed():
    assert train(SPAM, Mix(channels={"tool_use": 1.0}))["once"] > 0.95


# ---- a built-in game, through the training loop


def said(channel):
    return {"verifiers": {"weight": 2.0, "channels": [channel]}}


IN_PROXIES = {
    "pseudo_parallelism": ("rest", {"parallel": {"weight": 0.45, "most": 3}, **said("haste")}),
    "free_riding": ("rest", said("haste")),
    "communication_padding": ("chat", said("talk")),
    "tool_spam": ("spam", {"tool_calls": {"weight": 3.0, "most": 15, "optional": True}}),
    "verifier_collusion": ("pose", said("verifier")),
}
"""What a worker may do beside work, and what pays it."""


@pytest.mark.parametrize("name", IN_PROXIES)
def test_a_trained_team_is_hacked_without_the_detector_and_not_with_it(name, tmp_path):
    """Habits that are paid .667 or .6 more than work costs .4, and are fined; `pose` .25 to .5."""
    way, paid = IN_PROXIES[name]
    game = {"family": "proxies", "ways": ["work", way]}
    fined = {**paid, name: {"weight": -3.0, "optional": True}}
    without, _ = trained(game, {"channels": paid}, tmp_path / "off", 14, "rloo")
    with_it, _ = trained(game, {"channels": fined}, tmp_path / "on", 14, "rloo")
    assert value(with_it) > 0.4
    assert value(with_it) > value(without) + 0.1


# ---- PARL's traps (Kimi K2.5), by step of training


def course(game, mix):
    """`r_parallel`, work over critical path and true outcome, expected at every step."""
    traces = [play(game, option) for option in game.options]
    measures = [measure(trace) for trace in traces]
    spawning = np.array([parallel(trace).total for trace in traces])
    speedup = np.array([each["work"].value / each["span"].value for each in measures])
    truth = np.array([trace.reward("outcome") for trace in traces])
    policies = np.array(list(learn(game, mix, steps=30)))
    return policies @ spawning, policies @ speedup, policies @ truth


def test_an_unannealed_weight_for_spawning_is_hacked_and_an_annealed_one_is_not():
    assert train(CROWD, Mix(parallel=1.4))["crowd"] > 0.95
    assert train(CROWD, Mix(parallel=1.4, anneal=10))["together"] > 0.95


def test_instantiation_goes_up_while_speedup_is_flat():
    spawning, speedup, _ = course(CROWD, Mix(parallel=1.4))
    assert spawning[-1] > 0.9
    assert flat_speedup(spawning, speedup)


def test_instantiation_that_brings_speedup_is_not_flagged():
    spawning, speedup, _ = course(CROWD, Mix(parallel=0.5))
    assert spawning[-1] == pytest.approx(3 / 8, abs=0.05)
    assert not flat_speedup(spawning, speedup)


def test_the_first_steps_of_a_hack_are_seen_as_one():
    spawning, _, truth = course(CROWD, Mix(parallel=1.4))
    seen = [Sighting(p, u) for p, u in zip(spawning, truth, strict=True)]
    assert hacked(seen)
