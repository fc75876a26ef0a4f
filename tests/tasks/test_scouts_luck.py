"""Scores without luck: by hand, constant for the oracle, and right on average for everybody."""

import numpy as np
import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.tasks.scouts.luck import expected_outcome, expected_score
from stretto.tasks.scouts.oracle import blame, scouts_oracle
from stretto.tasks.scripts import score, scripts_of, yardstick_of
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout

GAME = Scouts(reliability=0.7, scout_cost=0.02, round_cost=0.03, width=3, horizon=7)
ROUTES = [replace(GAME, topology=name) for name in NAMES]
GAMES = [*ROUTES, Scouts(width=6, horizon=13, sizes="doubling", most_lead=4)]
BENCH = [
    Scouts(width=4, horizon=4),
    Scouts(width=16, scout_cost=0.002),
    Scouts(reliability=0.56, scout_cost=0.0003, round_cost=0.02, width=128, horizon=256,
           sizes="doubling", most_lead=64),
]  # fmt: skip
ODD = ["centralized", "hierarchical", "harness"]


def play(task, *choices, seed=0):
    by_turn = iter(choices)
    (trace,) = rollout(task, {"lead": Scripted(lambda ask: next(by_turn))}, [seed])
    return trace


def standard_error(values):
    return float(np.std(values) / len(values) ** 0.5)


# ---- by hand


def test_a_guess_is_right_half_the_time_whether_it_was_or_not():
    for seed in range(6):
        trace = play(GAME, "stop", seed=seed)
        assert expected_outcome(GAME, trace) == 0.5
        assert expected_score(GAME, trace) == pytest.approx(0.5)


def test_one_scout_is_right_as_often_as_it_is_reliable():
    for seed in range(6):
        trace = play(GAME, "one", "stop", seed=seed)
        assert expected_outcome(GAME, trace) == pytest.approx(0.7)
        assert expected_outcome(replace(GAME, fault="lie"), trace) == pytest.approx(0.7)


def test_whoever_knows_of_a_lie_expects_the_other_colour():
    task = replace(GAME, fault="lie")
    for seed in range(6):
        trace = play(task, "one", "stop", seed=seed)
        assert expected_outcome(task, trace) == pytest.approx(0.3)


def test_a_policy_of_one_round_is_worth_its_value_and_what_it_saw():
    """Sending one scout and stopping is worth .7 - .05; what is left is the luck of no later vote.

    Every term is an advantage over the best: that of `one`, and that of stopping at a lead of one.
    """
    oracle = scouts_oracle(GAME)
    trace = play(GAME, "one", "stop")
    loss = oracle.q_after(0)[2, 0] - oracle.q_after(0)[1, 0]
    late = oracle.q_after(1)[:, 1].max() - 0.7
    assert oracle.optimum - loss - late == pytest.approx(0.7 - 0.05)
    assert expected_score(GAME, trace) == pytest.approx(0.65)


def test_without_an_answer_nothing_is_scored():
    trace = play(GAME, "one", "stop")
    cut = replace(trace, events=trace.events[:-1])
    assert expected_outcome(GAME, cut) is None
    assert expected_score(GAME, cut) is None


# ---- the oracle


@pytest.mark.parametrize("task", [*GAMES, *BENCH])
def test_every_episode_of_the_oracle_is_worth_the_yardstick(task):
    traces = rollout(task, scripts_of(task)["oracle"], range(12))
    best = yardstick_of(task).best
    assert [expected_score(task, trace) for trace in traces] == pytest.approx([best] * 12, abs=1e-9)


@pytest.mark.parametrize("task", [replace(task, fault="lie") for task in GAMES])
def test_under_a_lie_every_episode_of_the_oracle_is_worth_the_same(task):
    traces = rollout(task, scripts_of(task)["oracle"], range(400))
    worth = [expected_score(task, trace) for trace in traces]
    assert worth == pytest.approx([worth[0]] * 400, abs=1e-9)
    assert worth[0] < yardstick_of(task).best - 0.01
    plain = [score(task, trace, priced=True) for trace in traces]
    assert abs(np.mean(plain) - worth[0]) < 4 * standard_error(plain)


# ---- everybody else


@pytest.mark.parametrize("task", GAMES)
def test_the_mean_of_chance_is_its_exact_value(task):
    traces = rollout(task, scripts_of(task)["random"], range(400))
    worth = [expected_score(task, trace) for trace in traces]
    assert abs(np.mean(worth) - yardstick_of(task).random) < 4 * standard_error(worth)


@pytest.mark.parametrize("name", ["blind", "greedy", "solo"])
@pytest.mark.parametrize("topology", ODD)
def test_the_mean_of_a_script_is_its_exact_value(name, topology):
    task = replace(GAME, topology=topology)
    policies, oracle = scripts_of(task)[name], scouts_oracle(task)
    traces = rollout(task, policies, range(400))
    worth = [expected_score(task, trace) for trace in traces]
    if name != "blind":  # it goes by its turn, and so has no probabilities by what it reads
        rows = [np.zeros(len(choice.candidates)) for choice in oracle.choices]
        for row, choice in zip(rows, oracle.choices, strict=True):
            row[decided(policies, choice)] = 1.0
        assert abs(np.mean(worth) - oracle.value(rows)) < 4 * standard_error(worth) + 1e-9
    plain = [score(task, trace, priced=True) for trace in traces]
    gaps = np.subtract(plain, worth)
    assert abs(gaps.mean()) < 4 * standard_error(gaps)
    assert np.std(worth) < 0.5 * np.std(plain)


def decided(policies, choice):
    class Asked:
        event, prompt, candidates, key = "0#1", choice.observation, choice.candidates, 0

    (answer,) = policies["lead"].decide([Asked()])
    return answer.chosen


@pytest.mark.parametrize("topology", ODD)
def test_under_a_lie_chance_scores_the_same_on_average(topology):
    task = replace(GAME, topology=topology, fault="lie")
    traces = rollout(task, scripts_of(task)["random"], range(500))
    worth = [expected_score(task, trace) for trace in traces]
    gaps = np.subtract([score(task, trace, priced=True) for trace in traces], worth)
    assert abs(gaps.mean()) < 4 * standard_error(gaps)


@pytest.mark.parametrize("task", [GAME, replace(GAME, fault="lie"), GAMES[-1]])
def test_the_expected_outcome_is_the_outcome_on_average(task):
    traces = rollout(task, scripts_of(task)["random"], range(500))
    gaps = [trace.reward("outcome") - expected_outcome(task, trace) for trace in traces]
    assert abs(np.mean(gaps)) < 4 * standard_error(gaps)


# ---- edited traces


def twice(trace, wanted):
    """Every wanted event twice, the copy with a new id right behind it."""
    events = []
    for event in trace.events:
        events += [event, replace(event, id=f"{event.id}x")] if wanted(event) else [event]
    return replace(trace, events=tuple(events))


@pytest.mark.parametrize("topology", NAMES)
@pytest.mark.parametrize("script", ["oracle", "random"])
def test_a_report_that_is_there_twice_is_one_vote(topology, script):
    task = replace(GAME, topology=topology, width=4, horizon=12)
    for seed in range(4):
        (trace,) = rollout(task, scripts_of(task)[script], [seed])
        for wanted in (
            lambda event: event.kind in ("return", "message"),
            lambda event: event.tool in ("memory.write", "memory.read"),
        ):
            copied = twice(trace, wanted)
            assert expected_score(task, copied) == expected_score(task, trace)
            assert expected_outcome(task, copied) == expected_outcome(task, trace)
            lied = replace(task, fault="lie")
            (false,) = rollout(lied, scripts_of(lied)[script], [seed])
            assert blame(lied, twice(false, wanted)) == blame(lied, false)


def test_a_decision_that_was_not_on_offer_is_named():
    task = BENCH[0]
    (trace,) = rollout(task, scripts_of(task)["oracle"], [0])
    first = next(event for event in trace.events if event.decision)
    late = replace(trace, events=(*(e for e in trace.events if e is not first), first))
    with pytest.raises(StrettoError, match=first.id):
        expected_score(task, late)
