"""Branch and stragglers: effects, propensities, deadlines; proxies: what hacking does."""

from math import exp

import numpy as np
import pytest

from stretto.policies.softmax import Softmax
from stretto.tasks.games.branch import Branch, behaviour, choice_at, outcome_ranges, spawn_effects
from stretto.tasks.games.proxies import Proxies, World, channels, hacking
from stretto.tasks.games.stragglers import (
    Stragglers,
    completion_probabilities,
    naive_effects,
)
from stretto.tasks.games.stragglers import (
    spawn_effects as straggler_effects,
)
from stretto.tasks.games.truth import truth_of
from stretto.team.engine import rollout
from stretto.team.replay import replay

from .games import POLICIES, played

SURE = (0.0, 1.0, 0.5, 0.25)


def test_effects_of_a_spawn():
    """0.8 - 0.3 - 0.1, 0.6 - 0.5 - 0.1, 0.5 - 0.2 - 0.1, 0.6 - 0.7 - 0.1."""
    assert spawn_effects(Branch()) == pytest.approx([0.4, 0.0, 0.2, -0.2])
    assert outcome_ranges(Branch()) == ((0, 1), (-0.1, 0.9))


def test_the_effect_is_the_difference_of_the_exact_values():
    game = Branch()
    policies = {"lead": behaviour(game, SURE)}
    exact = truth_of(game, policies)
    for trace in rollout(game, policies, range(30)):
        first = next(event for event in trace.events if event.decision)
        context = context_of(first)
        q = exact.action_values(trace)[0]
        assert q[1] - q[0] == pytest.approx(spawn_effects(game)[context])
        assert np.exp(first.decision.logprobs)[1] == pytest.approx(SURE[context])


def context_of(event):
    from stretto.trace import content_hash

    seen = [content_hash(choice_at(context).observation) for context in range(4)]
    return seen.index(event.decision.observation)


def test_propensities_of_nought_and_one_are_exact():
    """A propensity of 0 is an exact 0, is never drawn, and survives a replay."""
    game = Branch()
    policies = {"lead": behaviour(game, SURE)}
    chosen = {context: set() for context in range(4)}
    for trace in rollout(game, policies, range(400)):
        first = next(event for event in trace.events if event.decision)
        chosen[context_of(first)].add(first.decision.choice)
    assert chosen == {0: {"alone"}, 1: {"spawn"}, 2: {"alone", "spawn"}, 3: {"alone", "spawn"}}
    seen = choice_at(0)
    assert list(behaviour(game, SURE).probabilities(seen.observation, seen.candidates)) == [1, 0]
    assert replay(rollout(game, policies, [0])[0], game) is None


def test_the_value_of_a_behaviour():
    """Mean over contexts of alone + e * tau: (0.3 + 0 + 0.5 + 0 + 0.2 + 0.1 + 0.7 - 0.05) / 4."""
    exact = truth_of(Branch(), {"lead": behaviour(Branch(), SURE)})
    assert exact.value == pytest.approx(1.75 / 4)


# ---- stragglers


def test_who_finishes_by_the_deadline():
    """One piece alone, mean 1 and deadline 4: 1 - e^-4; three workers of mean 1.5, all in time."""
    found = completion_probabilities(Stragglers())
    assert found.shape == (3, 2)
    assert found[0] == pytest.approx([1 - exp(-4), (1 - exp(-4 / 1.5)) ** 3])
    assert found[2, 1] == pytest.approx((1 - exp(-4 / 4.5)) ** 3)
    assert (np.diff(found, axis=0) < 0).all()


def test_counting_a_timeout_as_nothing_turns_the_sign():
    found = naive_effects(Stragglers())
    assert straggler_effects(Stragglers()) == pytest.approx([0.1, 0.2, 0.2])
    assert found["true"] == pytest.approx(0.5 / 3)
    assert found["timeout_as_zero"] < -0.05
    assert found["finished_only"] > found["true"] + 0.03


def test_what_estimators_see_in_the_engine():
    """A fair coin spawns; 6,000 episodes agree with the exact limits to 4 sigma."""
    game, fair = Stragglers(), {"lead": Softmax()}
    traces = rollout(game, fair, range(6000))
    first = [next(e for e in trace.events if e.decision) for trace in traces]
    spawned = np.array([event.decision.choice == "spawn" for event in first])
    outcome = np.array([trace.reward("outcome") for trace in traces], dtype=float)
    eventual = np.array([trace.reward("eventual") for trace in traces])
    finished = ~np.isnan(outcome)
    assert (finished == [trace.reward("finished") == 1 for trace in traces]).all()
    limits = naive_effects(game)
    for name, values in (
        ("true", eventual),
        ("timeout_as_zero", np.nan_to_num(outcome)),
        ("finished_only", outcome),
    ):
        arms = [values[(spawned == arm) & ~np.isnan(values)] for arm in (False, True)]
        gap = arms[1].mean() - arms[0].mean()
        error = np.sqrt(sum(arm.var() / len(arm) for arm in arms))
        assert abs(gap - limits[name]) < 4 * error, name
    share = finished[spawned].mean()
    exact = completion_probabilities(game)[:, 1].mean()
    assert abs(share - exact) < 4 * 0.5 / np.sqrt(spawned.sum())


def test_weights_by_the_exact_probabilities_undo_the_selection():
    """E over the exact law: sum of p * (1 / p) * success is the success itself."""
    game = Stragglers()
    success = np.stack([game.alone, game.together], axis=1)
    finished = completion_probabilities(game)
    weighted = (finished * success / finished).mean(axis=0)
    assert weighted[1] - weighted[0] == pytest.approx(naive_effects(game)["true"])


def test_work_is_cut_off_at_the_deadline():
    late = 0
    for trace in played("stragglers", 60):
        seconds = [e.duration for e in trace.events if (e.kind, e.tool) == ("tool_call", "work")]
        assert max(seconds) <= 4.0
        cut = 4.0 in seconds
        assert cut == (trace.reward("outcome") is None) == (trace.reward("finished") == 0)
        late += cut
    assert 0 < late < 60


# ---- proxies


def test_channels_by_hand():
    """Three workers: one works, two click, one is passed; the tests are met by .7 + 1 + 1."""
    found = channels(Proxies(), World(spawned=3, worked=1, clicked=2, passed=1))
    assert found == pytest.approx(
        {
            "outcome": 0.2 + 0.4 - 0.3,
            "parallel": 1.0,
            "verifier": 1 / 3,
            "tests": 2.7 / 3,
            "tool_bonus": 2 / 3,
            "proxy": 0.2 + 0.6 / 3 + 0.2 * 2 / 3,
            "haste": 0.0,
            "talk": 0.0,
        }
    )


def test_hacking_raises_the_proxy_and_lowers_the_outcome():
    """Honest: two work, 0.2 + 0.8 - 0.2, proxy 0.2 * 2/3 + 0.6 * 0.7.

    Hacked: three pose, 0.2 - 0.3, proxy 0.2 + 0.6 * 0.95.
    """
    found = hacking(Proxies())
    assert found["outcome"] == pytest.approx({"outcome": 0.8, "proxy": 0.4 / 3 + 0.42})
    assert found["proxy"] == pytest.approx({"outcome": -0.1, "proxy": 0.77})


def test_every_channel_has_its_truth():
    traces = played("proxies", 3000)
    for channel in ("outcome", "parallel", "verifier", "tool_bonus", "proxy"):
        exact = truth_of(Proxies(most=2), POLICIES, channel).value
        values = np.array([trace.reward(channel) for trace in traces])
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(values))
