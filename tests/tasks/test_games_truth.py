"""The truth about games: by hand, by its identities, and by brute force with the engine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.policies.softmax import Softmax
from stretto.tasks.games.chain import BEGIN, WORDS, Chain, choice_at, worth
from stretto.tasks.games.fanout import Fanout, vote_at
from stretto.tasks.games.noisy import histories, noisy
from stretto.tasks.games.tree import Decide, best_values, explore, optimal, optimum, walk
from stretto.tasks.games.truth import rules_of, truth_of
from stretto.team.engine import rollout
from stretto.team.interventions import Force, Null
from stretto.team.noise import key_of, uniform
from stretto.team.what_if import what_if

from ..strategies import examples
from .games import GAMES, POLICIES, channel_of, decisions, played, truth, voting

# ---- by hand


def test_two_voters_of_whom_one_suffices():
    """P(yes) is 0.5 and 0.2. V = 1 - 0.5 * 0.8 = 0.6. First vote: Q(no) = 0.2, Q(yes) = 1.

    Second vote: after a no Q = (0, 1), V = 0.2; after a yes Q = (1, 1), V = 1.
    Gradient by the first logits: 0.5 * (0.2 - 0.6) = -0.2 and 0.5 * 0.4 = 0.2.
    By the second, which counts only after a no: 0.5 * 0.8 * (0 - 0.2) = -0.08 and 0.08.
    """
    game, policies = Fanout(workers=2, rule="or"), voting(0.5, 0.2)
    exact = truth_of(game, policies)
    assert exact.value == pytest.approx(0.6)
    first, second = (exact.gradient[vote_at(s).observation, ("no", "yes")] for s in (0, 1))
    assert first == pytest.approx([-0.2, 0.2])
    assert second == pytest.approx([-0.08, 0.08])
    traces = rollout(game, policies, range(40))
    trace = next(t for t in traces if t.reward("outcome") == 0)
    assert exact.state_values(trace) == pytest.approx([0.6, 0.6, 0.2, 0.0])
    assert [list(row) for row in exact.action_values(trace)] == [
        pytest.approx(row) for row in ([0.6], [0.2, 1], [0, 1], [0])
    ]
    assert exact.advantages(trace) == pytest.approx([0, -0.4, -0.2, 0])
    assert exact.message_effects(trace) == pytest.approx({"0/0#1": -0.4, "0/1#1": -0.2})


def test_a_sentence_is_worth_the_weighted_sum_over_its_beginnings():
    """Weights 1 and 1/4 upstream, 1 and 4 downstream."""
    game = Chain(dominated="upstream", seed=5)
    parts = [uniform(key_of(5, "worth"), start) for start in ("red", "red blue")]
    assert worth(game, ("red", "blue")) == pytest.approx((parts[0] + parts[1] / 4) / 1.25)
    game = Chain(dominated="downstream", seed=5)
    assert worth(game, ("red", "blue")) == pytest.approx((parts[0] + 4 * parts[1]) / 5)


def test_a_chain_of_two_is_a_table():
    """Uniform speakers: V = mean of the table, Q of the first word = mean of its row."""
    game = Chain(words=3, noise="bernoulli")
    exact = truth_of(game, {"lead": Softmax(), "speaker": Softmax()})
    words = WORDS[:3]
    table = np.array([[worth(game, (a, b)) for b in words] for a in words])
    assert exact.value == pytest.approx(table.mean())
    (trace,) = rollout(game, {"lead": Softmax(), "speaker": Softmax()}, [0])
    start, first, second = exact.action_values(trace)
    assert start == pytest.approx([table.mean()])
    assert first == pytest.approx(table.mean(axis=1))
    chosen = [e.decision.chosen for e in trace.events if e.decision][1]
    assert second == pytest.approx(table[chosen])
    situation = choice_at(game, ())
    row = exact.gradient[situation.observation, situation.candidates]
    assert row == pytest.approx((table.mean(axis=1) - table.mean()) / 3)
    assert exact.gradient[BEGIN.observation, BEGIN.candidates] == pytest.approx([0])


# ---- identities


@pytest.mark.parametrize("name", GAMES)
def test_advantages_vanish_under_the_policy_and_gradients_over_candidates(name):
    exact = truth(name)
    for trace in played(name, 40):
        values, rows = exact.state_values(trace), exact.action_values(trace)
        for event, value, q in zip(decisions(trace), values, rows, strict=True):
            assert np.exp(event.decision.logprobs) @ q == pytest.approx(value, abs=1e-12)
    for row in exact.gradient.values():
        assert row.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["chain", "fanout", "fanout_teams"])
def test_without_chance_the_advantages_add_up_to_the_outcome(name):
    """R = V(start) + sum of advantages + luck, and there is no luck."""
    for trace in played(name, 40):
        parts = truth(name).advantages(trace).sum()
        assert truth(name).value + parts == pytest.approx(trace.reward("outcome"), abs=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_the_gradient_is_that_of_the_value(name):
    """Against central differences, for three logits of every game."""
    game, channel, exact = GAMES[name], channel_of(GAMES[name]), truth(name)
    table = {situation: POLICIES["lead"].logits(*situation) for situation in exact.gradient}
    wide = [situation for situation in table if len(situation[1]) > 1]
    for situation in wide[:: max(1, len(wide) // 3)][:3]:
        values = []
        for step in (1e-5, -1e-5):
            moved = table[situation] + step * np.eye(len(table[situation]))[0]
            policy = Softmax({**table, situation: moved})
            values.append(truth_of(game, dict.fromkeys(POLICIES, policy), channel).value)
        assert exact.gradient[situation][0] == pytest.approx(
            (values[0] - values[1]) / 2e-5, abs=1e-8
        )


@pytest.mark.parametrize("name", sorted(GAMES.keys() - {"siege"}))  # whose state is not all seen
def test_no_policy_beats_the_optimum_and_one_reaches_it(name):
    rules, channel = rules_of(GAMES[name]), channel_of(GAMES[name])
    best = dict.fromkeys(POLICIES, optimal(rules, channel))
    assert truth(name).value <= optimum(rules, channel)
    assert best_values(rules, channel)[rules.start] == optimum(rules, channel)
    assert truth_of(GAMES[name], best, channel).value == pytest.approx(optimum(rules, channel))


@pytest.mark.parametrize("name", GAMES)
def test_reach_is_a_distribution_over_ends(name):
    exact, tree = truth(name), explore(rules_of(GAMES[name]))
    ends = [state for state, moves in tree.moves.items() if not moves]
    assert sum(exact.reach[state] for state in ends) == pytest.approx(1)
    lead = [s for s, node in tree.nodes.items() if isinstance(node, Decide)]
    assert max(exact.reach[state] for state in lead) <= 1 + 1e-12


# ---- what is refused


def test_a_policy_without_probabilities_has_no_exact_value():
    scripted = Scripted(lambda ask: ask.candidates[0])
    with pytest.raises(StrettoError, match="states no log-probabilities"):
        truth_of(Fanout(), dict.fromkeys(POLICIES, scripted))


def test_a_role_without_a_policy_is_named():
    with pytest.raises(StrettoError, match='no policy for role "worker"'):
        truth_of(Fanout(), {"lead": Softmax()})


def test_truth_follows_forced_choices_but_not_other_rules():
    game, trace = GAMES["fanout"], played("fanout", 1)[0]
    other = "no" if decisions(trace)[1].decision.choice == "yes" else "yes"
    forced = what_if(trace, "0/0#0", Force(other), task=game, policies=POLICIES).trace
    assert truth("fanout").advantages(forced).shape == (5,)
    silent = what_if(trace, "0/0#1", Null(), task=game, policies=POLICIES).trace
    with pytest.raises(StrettoError, match="Null has changed the rules"):
        truth("fanout").state_values(silent)


def test_a_trace_of_another_game_is_refused():
    with pytest.raises(StrettoError, match="know no such decision here"):
        walk(rules_of(GAMES["ladder"]), played("branch", 1)[0])


# ---- oracle plus noise


@pytest.mark.parametrize("name", ["chain_bernoulli", "fanout"])
def test_noise_is_a_function_of_history(name):
    """Episodes that share their beginning share its error, though their seeds differ."""
    exact = truth(name)
    blurred = noisy(exact, sd=0.1, seed=4)
    found = {}
    for trace in played(name, 200):
        rows = zip(
            histories(trace.events),
            blurred.state_values(trace),
            blurred.action_values(trace),
            strict=True,
        )
        for history, value, q in rows:
            assert found.setdefault(history, (value, tuple(q))) == (value, tuple(q))
    again = noisy(exact, sd=0.1, seed=5)
    trace = played(name, 1)[0]
    assert not np.allclose(again.state_values(trace), blurred.state_values(trace))


def test_noise_has_the_size_that_was_asked_for():
    exact = truth_of(Chain(agents=5, words=4), POLICIES)
    traces = rollout(Chain(agents=5, words=4), POLICIES, range(400))
    blurred = noisy(exact, sd=0.08, seed=0)
    errors = {}
    for trace in traces:
        gap = blurred.state_values(trace) - exact.state_values(trace)
        errors.update(zip(histories(trace.events), gap.tolist(), strict=True))
    values = np.array(list(errors.values()))
    assert len(values) > 200
    assert abs(values.mean()) < 4 * 0.08 / np.sqrt(len(values))
    assert values.std() == pytest.approx(0.08, rel=0.15)


def test_without_noise_it_is_the_oracle():
    trace = played("ladder", 1)[0]
    same = noisy(truth("ladder"), sd=0.0, seed=0)
    assert (same.state_values(trace) == truth("ladder").state_values(trace)).all()


@given(st.integers(0, 2**32), st.floats(0, 3))
@examples(20)
def test_every_random_policy_has_a_value_between_the_extremes(seed, spread):
    policy = Softmax(spread=spread, seed=seed)
    game = Chain()
    value = truth_of(game, {"lead": policy, "speaker": policy}).value
    table = [worth(game, (a, b)) for a in WORDS[:3] for b in WORDS[:3]]
    assert min(table) <= value <= max(table)
