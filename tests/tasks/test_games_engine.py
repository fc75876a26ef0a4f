"""Games are ordinary tasks: they replay, can be changed anywhere, stored, measured, credited."""

from math import exp

import numpy as np
import pytest

import stretto
from stretto.errors import StrettoError
from stretto.store import write
from stretto.tasks import build
from stretto.tasks.games.chain import REGIMES, Chain
from stretto.tasks.games.fanout import Fanout
from stretto.tasks.games.truth import RULES, rules_of, truth_of
from stretto.tasks.gather import Gather
from stretto.team.engine import rollout
from stretto.team.interventions import ON, Force, Null, Remove, Replace, Resample
from stretto.team.replay import fork, replay
from stretto.team.what_if import what_if, what_ifs

from .games import GAMES, POLICIES, channel_of, decisions, played, truth

KINDS = {
    "branch": {"decision", "spawn", "tool_call", "tool_result", "return", "stop"},
    "chain": {"decision", "spawn", "message", "tool_call", "tool_result", "stop"},
    "exam": {"decision", "spawn", "tool_call", "tool_result", "return", "stop"},
    "fanout": {"decision", "spawn", "return", "aggregate", "stop"},
    "ladder": {"decision", "tool_call", "tool_result", "stop"},
    "proxies": {"decision", "spawn", "tool_call", "tool_result", "return", "stop"},
    "siege": {"decision", "spawn", "tool_call", "tool_result", "return", "stop"},
    "stragglers": {"decision", "spawn", "tool_call", "tool_result", "return", "stop"},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_game_has_the_events_of_its_kind(name):
    assert {event.kind for trace in played(name, 12) for event in trace.events} == KINDS[name]


@pytest.mark.parametrize("name", GAMES)
def test_episodes_stop_and_replay_also_from_a_file(name, tmp_path):
    for trace in played(name, 6):
        assert trace.attrs["ended"] == "stop"
        assert replay(trace, GAMES[name]) is None
    path = tmp_path / "trace.jsonl"
    write(path, played(name, 6)[5])
    assert replay(stretto.load(path), build(GAMES[name].spec)) is None


@pytest.mark.parametrize("name", GAMES)
def test_every_decision_states_its_probabilities(name):
    for trace in played(name, 6):
        for event in trace.events:
            assert (event.decision is None) == (event.kind != "decision")
            if event.decision is not None:
                assert len(event.decision.logprobs) == len(event.decision.candidates)
                assert sum(map(exp, event.decision.logprobs)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", sorted(GAMES.keys() - {"scouts"}))
def test_every_event_can_be_changed_in_every_way_that_fits(name):
    game = GAMES[name]
    for trace in played(name, 4):
        changes = [(event.id, do) for event in trace.events for do in changes_of(event)]
        worlds = what_ifs(trace, changes, task=game, policies=POLICIES)
        for (event, _), world in zip(changes, worlds, strict=True):
            assert replay(world.trace, game) is None, event
            assert world.trace.reward(channel_of(game)) is not None


def changes_of(event):
    forced = event.decision.candidates if event.decision else ("",)
    all_of_them = (Remove(), Null(), Replace("x", {"number": 3}), Resample(9), *map(Force, forced))
    return [do for do in all_of_them if event.kind in ON[type(do)]]


@pytest.mark.parametrize("name", GAMES)
def test_a_branch_with_the_same_seed_is_the_same_episode(name):
    trace = played(name, 3)[2]
    first = next(event.id for event in trace.events if event.kind == "decision")
    same = fork(trace, GAMES[name], first, POLICIES)
    assert (same.events, same.scores) == (trace.events, trace.scores)


@pytest.mark.parametrize("name", sorted(GAMES.keys() - {"scouts"}))
def test_branches_with_other_seeds_are_fresh_draws(name):
    """Their mean is the exact value after the choice that they share, to 4 sigma.

    Not so in `scouts`, whose branches keep the hidden colour.
    """
    trace = played(name, 3)[1]
    turns = decisions(trace)
    place = max(place for place, turn in enumerate(turns) if len(turn.decision.candidates) > 1)
    event, channel = turns[place], channel_of(GAMES[name])
    branches = [fork(trace, GAMES[name], event.id, POLICIES, seed=1000 + s) for s in range(150)]
    outcomes = np.array([branch.reward(channel) for branch in branches])
    exact = truth(name).action_values(trace)[place][event.decision.chosen]
    error = np.sqrt((outcomes.var() + 1 / 150) / 150)
    assert abs(outcomes.mean() - exact) < 4 * error


def test_a_branch_with_another_seed_is_graded_anew():
    """The noise of the grade belongs to the judge's call, not to the episode."""
    game = Chain(noise="gaussian")
    (trace,) = rollout(game, POLICIES, [1])
    call = next(event.id for event in trace.events if event.kind == "tool_call")
    before = trace.events[trace.columns.row[call] - 1].id
    grades = {fork(trace, game, before, POLICIES, seed=s).reward("outcome") for s in range(5, 8)}
    assert len(grades | {trace.reward("outcome")}) == 4


def test_a_vote_that_does_not_arrive_counts_as_no():
    game = Fanout(workers=2, rule="or", ignored=1)
    trace = next(t for t in rollout(game, POLICIES, range(20)) if t.reward("outcome") == 1)
    for event, do in (("0/0#1", Null()), ("0/0#1", Remove()), ("0#1", Remove())):
        found = what_if(trace, event, do, task=game, policies=POLICIES)
        assert found.difference == -1
        assert found.trace.reward("outcome") == 0
    ignored = what_if(trace, "0#2", Remove(), task=game, policies=POLICIES)
    assert ignored.difference == 0


def test_a_missing_speaker_is_passed_over_in_silence():
    game = Chain(agents=3)
    (trace,) = rollout(game, POLICIES, [0])
    found = what_if(trace, "0#2", Remove(), task=game, policies=POLICIES)
    judged = next(event for event in found.trace.events if event.kind == "tool_call")
    said = next(event for event in trace.events if event.kind == "tool_call").attrs["said"]
    assert judged.attrs["said"][:2] == [said[0], "nothing"]
    silent = what_if(trace, "0#1", Remove(), task=game, policies=POLICIES)
    judged = next(event for event in silent.trace.events if event.kind == "tool_call")
    assert judged.attrs["said"][0] == "nothing" != judged.attrs["said"][1]


@pytest.mark.parametrize("name", GAMES)
def test_a_game_can_be_measured_and_credited(name):
    traces = played(name, 6)
    assert stretto.measure(traces[0])
    scored = [trace for trace in traces if trace.reward("outcome") is not None]
    credit = stretto.assign_credit(scored, "rloo", unit="turn")
    decisions = sum(e.kind == "decision" for trace in scored for e in trace.events)
    assert len(credit.value) == decisions


@pytest.mark.parametrize("name", GAMES)
def test_a_game_is_rebuilt_from_its_specification(name):
    assert build(GAMES[name].spec) == GAMES[name]
    assert GAMES[name].spec["family"] in RULES


def test_names_say_what_is_not_default():
    assert Chain().id == "chain"
    assert Chain(**REGIMES["up"], seed=2).id == "chain,dominated=upstream,seed=2"


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"family": "chain", "agents": 6}, "task.agents"),
        ({"family": "chain", "words": 5}, "task.words"),
        ({"family": "chain", "noise": "loud"}, "task.noise"),
        ({"family": "fanout", "workers": 11}, "task.workers"),
        ({"family": "fanout", "ignored": 4}, "task.ignored"),
        ({"family": "branch", "helped": [0.5]}, "task.helped"),
        ({"family": "branch", "alone": [1.5] * 4}, "task.alone"),
        ({"family": "ladder", "up": 0.9}, "task.down"),
        ({"family": "ladder", "cost": float("nan")}, "task.cost"),
        ({"family": "stragglers", "slowness": [1.0, 2.0]}, "task.slowness"),
        ({"family": "proxies", "needed": 7}, "task.needed"),
        ({"family": "proxies", "ways": ["work", "work"]}, "task.ways"),
        ({"family": "exam", "kind": [0.5, 1.5]}, "task.kind"),
        ({"family": "siege", "false_alarm": 2}, "task.false_alarm"),
    ],
)
def test_rules_that_make_no_game_are_refused(spec, where):
    with pytest.raises(StrettoError, match=where):
        build(spec)


def test_a_family_without_truth_says_so():
    with pytest.raises(StrettoError, match='no exact truth is known for the family "gather"'):
        rules_of(Gather())


def test_a_channel_that_the_game_does_not_pay_is_named():
    with pytest.raises(StrettoError, match='nothing on the channel "outcom"'):
        truth_of(Fanout(), POLICIES, "outcom")
