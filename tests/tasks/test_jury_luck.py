"""The score of a jury without its luck: as right on average as the outcome, with less noise."""

import numpy as np
import pytest
from msgspec.structs import replace

from stretto.tasks.jury import KINDS, Jury, case_of
from stretto.tasks.jury.accuracy import accuracy
from stretto.tasks.jury.luck import expected_outcome, expected_score
from stretto.tasks.jury.robust import robustness
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.trace import Trace

from .juries import run

EPISODES = 200
TASKS = [
    Jury(),
    Jury(topology="debate", copies=3, liars=2, seed=5),
    Jury(topology="harness", classes=2, liars=3, seed=3),
    Jury(topology="hierarchical", fault="lie"),
    Jury(topology="swarm", fault="two_lies", liars=0),
    Jury(topology="planner_executor_critic", fault="remark", seed=2),
    Jury(classes=2, witnesses=14, copies=3, liars=2, faint=6, topology="swarm"),
]


def test_a_lone_witness_by_hand():
    task = Jury(classes=3, witnesses=1, copies=0, liars=0)
    r = KINDS[case_of(task).kinds[0]]
    for seed in range(5):
        assert expected_outcome(task, run(task, seed=seed)) == pytest.approx(r)
        assert expected_score(task, run(task, seed=seed)) == pytest.approx(r)
        assert expected_outcome(task, run(task, "solo", seed)) == pytest.approx(1 / 3)
    guesses = {round(expected_outcome(task, run(task, "silent", seed)), 9) for seed in range(20)}
    assert guesses == {round(r, 9), round((1 - r) / 2, 9)}  # right by luck, or not


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_has_no_luck(task):
    planted = case_of(task).strongest[: task.lies]
    known = robustness(task, planted).weighed if planted else accuracy(task)
    for trace in rollout(task, scripts_of(task)["oracle"], range(20)):
        assert expected_score(task, trace) == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("script", ["oracle", "greedy", "random", "silent", "solo"])
def test_the_mean_is_that_of_the_outcome(task, script):
    traces = rollout(task, scripts_of(task)[script], range(EPISODES))
    won = np.array([trace.reward("outcome") for trace in traces])
    for measure in (expected_outcome, expected_score):
        gaps = won - [measure(task, trace) for trace in traces]
        assert abs(gaps.mean()) < 4 * gaps.std() / EPISODES**0.5 + 1e-9


def test_it_is_less_noisy_where_weighing_and_counting_are_compared():
    task = Jury(copies=3, seed=4)
    traces = rollout(task, scripts_of(task)["greedy"], range(EPISODES))
    won = np.std([trace.reward("outcome") for trace in traces])
    assert np.std([expected_outcome(task, trace) for trace in traces]) < won
    assert np.std([expected_score(task, trace) for trace in traces]) < 0.7 * won


def test_a_trace_that_lacks_what_is_needed_has_none():
    task = Jury()
    trace = run(task)
    cut = replace(trace, events=trace.events[:-1])
    assert expected_outcome(task, cut) is None
    assert expected_score(task, cut) is None
    assert expected_outcome(task, Trace(id="imported")) is None
    for other in (replace(trace, seed=None), replace(trace, spec={})):
        assert expected_score(task, other) is None
        assert expected_outcome(task, other) == expected_outcome(task, trace)
    calls = [event for event in trace.events if event.kind == "tool_call"]
    blind = replace(trace, events=tuple(e for e in trace.events if e not in calls))
    assert expected_outcome(task, blind) is None
