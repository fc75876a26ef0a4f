"""The oracle of scouts: numbers, full enumeration, simulation, consistency."""

from itertools import product
from math import ceil, comb, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.rewards.mix import Mix, mixed
from stretto.tasks.oracle import oracle_of, policy_probabilities
from stretto.tasks.scouts import Scouts, choice_at
from stretto.tasks.scouts.oracle import ScoutsOracle, scouts_oracle
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout
from stretto.team.noise import gumbel_argmax
from stretto.team.protocols import Answer

from ..strategies import examples
from ..team.toy import Dice

GAME = Scouts(reliability=0.65, scout_cost=0.004, round_cost=0.01, width=8, horizon=60)
ORACLE = ScoutsOracle(GAME)
SMALL = Scouts(reliability=0.7, scout_cost=0.02, round_cost=0.03, width=3, horizon=7)


def scripted(*choices):
    """A lead that makes these choices, one after the other."""
    by_turn = iter(choices)
    return {"lead": Scripted(lambda ask: next(by_turn))}


def votes(done):
    return [event.attrs["colour"] for event in done.events if event.kind == "return"]


def payoff(game, done):
    """The cost-adjusted return of an episode, from its trace alone."""
    return mixed(Mix(), game.prices, step=0)(done).total


# ---- the oracle, in numbers


def test_the_optimum_and_the_baselines_of_the_standard_game():
    assert pytest.approx(0.8671, abs=5e-5) == ORACLE.optimum
    found = {name: round(value, 3) for name, value in ORACLE.baselines.items()}
    assert {name: found[name] for name in ("one_shot", "adaptive_serial", "fixed_serial")} == {
        "one_shot": 0.762,
        "adaptive_serial": 0.765,
        "fixed_serial": 0.702,
    }
    assert found["guess"] == 0.5


def test_one_scout_by_hand():
    """With room for one scout: ask it (.8 - .1 - .05) or guess (.5)."""
    game = Scouts(reliability=0.8, scout_cost=0.1, round_cost=0.05, width=1, horizon=1)
    oracle = ScoutsOracle(game)
    assert oracle.optimum == pytest.approx(0.65)
    assert oracle.q_values[0, 1].tolist() == pytest.approx([0.5, 0.65])
    assert oracle.q_values[1, 2].tolist() == pytest.approx([0.8, -np.inf])
    assert oracle.baselines["random"] == pytest.approx((0.5 + 0.65) / 2)
    assert oracle.baselines["one_shot"] == oracle.baselines["adaptive_serial"] == 0.65


def test_where_scouts_cost_too_much_the_optimum_is_to_guess():
    oracle = ScoutsOracle(Scouts(scout_cost=0.5, width=3, horizon=9))
    assert oracle.optimum == 0.5
    exact = ("adaptive_serial", "one_shot", "fixed_serial", "guess")
    assert [oracle.baselines[name] for name in exact] == [0.5] * 4


def test_useless_scouts_are_not_worth_asking():
    assert ScoutsOracle(Scouts(reliability=0.5, width=3, horizon=9)).optimum == 0.5


def test_fixed_plans_have_binomial_accuracy():
    def accuracy(count):
        parts = [comb(count, k) * 0.7**k * 0.3 ** (count - k) for k in range(count + 1)]
        ties = parts[count // 2] / 2 if count % 2 == 0 else 0.0
        return sum(part for k, part in enumerate(parts) if 2 * k > count) + ties

    oracle = ScoutsOracle(SMALL)
    batch = max(accuracy(n) - 0.02 * n - 0.03 for n in range(1, 4))
    serial = max(accuracy(n) - 0.05 * n for n in range(8))
    assert oracle.baselines["one_shot"] == pytest.approx(batch)
    assert oracle.baselines["fixed_serial"] == pytest.approx(serial)


# ---- the oracle, against full enumeration


BETWEEN = {
    "hierarchical": lambda count: ceil(sqrt(count)),
    "planner_executor_critic": lambda count: 1,
}
"""Agents that a topology puts between the lead and so many scouts."""


def price(game, count):
    spawns = count + BETWEEN.get(game.topology, lambda count: 0)(count)
    seconds = 1.2 if game.topology == "harness" else 1.0
    return game.scout_cost * spawns + game.round_cost * seconds


def menu(game, asked):
    most = min(game.width, game.horizon - asked)
    sizes = range(1, most + 1)
    if game.sizes == "all":
        return list(sizes)
    return [size for size in sizes if size.bit_count() == 1 or size == game.width]


def enumerate_games(game):
    """Q of every decision after every sequence of votes, by expectimax over vote sequences."""
    q, table = game.reliability, {}

    def chance(seen):
        """Probability of these votes, with either colour hidden."""
        red = sum(seen)
        blue = len(seen) - red
        return 0.5 * q**red * (1 - q) ** blue, 0.5 * q**blue * (1 - q) ** red

    def best(seen):
        if_red, if_blue = chance(seen)
        q_row = [max(if_red, if_blue) / (if_red + if_blue)]
        for count in menu(game, len(seen)):
            value = -price(game, count)
            for new in product((0, 1), repeat=count):
                share = sum(chance(seen + new)) / (if_red + if_blue)
                value += share * best(seen + new)
            q_row.append(value)
        table[seen] = q_row
        return max(q_row)

    return best(()), table


TINY = [
    Scouts(reliability=0.65, scout_cost=0.004, round_cost=0.01, width=2, horizon=4),
    Scouts(reliability=0.8, scout_cost=0.05, round_cost=0.0, width=3, horizon=4),
    Scouts(reliability=0.6, scout_cost=0.0, round_cost=0.02, width=4, horizon=4),
    Scouts(reliability=0.9, scout_cost=0.01, round_cost=0.1, width=1, horizon=3),
    Scouts(reliability=0.5, scout_cost=0.0, round_cost=0.0, width=2, horizon=3),
    Scouts(reliability=0.7, scout_cost=0.01, width=5, horizon=6, sizes="doubling", most_lead=2),
    *(Scouts(scout_cost=0.01, round_cost=0.03, width=3, horizon=5, topology=n) for n in NAMES),
]


@pytest.mark.parametrize("game", TINY)
def test_dynamic_programming_equals_enumeration(game):
    optimum, table = enumerate_games(game)
    oracle = ScoutsOracle(game)
    assert oracle.optimum == pytest.approx(optimum, abs=1e-12)
    for seen, expected in table.items():
        row = oracle.q_values[len(seen), 2 * sum(seen) - len(seen) + game.horizon]
        assert row[: len(expected)] == pytest.approx(expected, abs=1e-12)
        assert np.isneginf(row[len(expected) :]).all()


def enumerate_value(game, probabilities):
    """Value of a policy given by observation, by the same enumeration."""
    place = {choice: index for index, choice in enumerate(ScoutsOracle(game).choices)}
    q = game.reliability

    def value(seen, if_red, if_blue):
        """Weighted by the probability of what was seen."""
        lead = 2 * sum(seen) - len(seen)
        policy = probabilities[place[choice_at(game, len(seen), lead)]]
        total = policy[0] * max(if_red, if_blue)
        for count, share in zip(menu(game, len(seen)), policy[1:], strict=True):
            total -= share * price(game, count) * (if_red + if_blue)
            for new in product((0, 1), repeat=count):
                red, blue = sum(new), count - sum(new)
                ahead = if_red * q**red * (1 - q) ** blue, if_blue * q**blue * (1 - q) ** red
                total += share * value(seen + new, *ahead)
        return total

    return value((), 0.5, 0.5)


def random_policy(oracle, seed):
    dice = np.random.default_rng(seed)
    return [dice.dirichlet(np.ones(len(choice.candidates))) for choice in oracle.choices]


@pytest.mark.parametrize("game", TINY)
def test_the_value_of_any_policy_equals_enumeration(game):
    oracle = ScoutsOracle(game)
    for seed in range(3):
        policy = random_policy(oracle, seed)
        expected = enumerate_value(game, policy)
        assert oracle.value(policy) == pytest.approx(expected, abs=1e-12)
        assert oracle.value(policy) <= oracle.optimum + 1e-12


# ---- the oracle, against simulation


class Table:
    """Decides with given probabilities."""

    def __init__(self, oracle, probabilities):
        with np.errstate(divide="ignore"):
            rows = [tuple(np.log(row).tolist()) for row in probabilities]
        self._logprobs = dict(zip(oracle.choices, rows, strict=True))
        self._by_text = {(c.observation, c.candidates): row for c, row in self._logprobs.items()}

    def decide(self, asks):
        rows = [self._by_text[ask.prompt, ask.candidates] for ask in asks]
        return [
            Answer(gumbel_argmax(ask.key, ask.candidates, row), "table", row)
            for ask, row in zip(asks, rows, strict=True)
        ]


def assert_simulated(game, policy, expected, episodes=2_000):
    returns = [payoff(game, done) for done in rollout(game, {"lead": policy}, range(episodes))]
    error = np.std(returns) / episodes**0.5
    assert abs(np.mean(returns) - expected) < 4 * error
    assert error < 0.02


def test_the_uniform_policy_earns_what_the_oracle_says():
    assert_simulated(SMALL, Dice(), ScoutsOracle(SMALL).baselines["random"], 3_000)


@pytest.mark.parametrize("seed", range(2))
def test_a_random_policy_earns_what_the_oracle_says(seed):
    oracle = ScoutsOracle(SMALL)
    policy = random_policy(oracle, seed)
    assert_simulated(SMALL, Table(oracle, policy), oracle.value(policy))


def test_the_optimal_policy_earns_the_optimum():
    assert_simulated(GAME, Table(ORACLE, ORACLE.optimal()), ORACLE.optimum, 800)


def test_expected_visits_are_those_of_episodes():
    oracle = ScoutsOracle(SMALL)
    done = rollout(SMALL, {"lead": Dice()}, range(2_000))
    uniform = [np.full(len(c.candidates), 1 / len(c.candidates)) for c in oracle.choices]
    expected = oracle.visits(uniform)
    counts = np.zeros((len(done), len(expected)))
    place = {(c.observation, c.candidates): i for i, c in enumerate(oracle.choices)}
    for row, each in enumerate(done):
        for event in each.events:
            if event.decision:
                key = each.text(event.decision.observation), event.decision.candidates
                counts[row, place[key]] += 1
    error = counts.std(axis=0) / len(done) ** 0.5
    assert (np.abs(counts.mean(axis=0) - expected) <= 4 * error + 0.002).all()


# ---- the oracle, consistent with itself


def test_an_episode_begins_once_and_ends_once():
    stop = [np.eye(len(choice.candidates))[0] for choice in ORACLE.choices]
    visits = ORACLE.visits(stop)
    assert ORACLE.value(stop) == 0.5
    assert visits.sum() == pytest.approx(1.0)
    assert visits[ORACLE.choices.index(choice_at(GAME, 0, 0))] == pytest.approx(1.0)
    assert (visits @ [row[0] for row in ORACLE.optimal()]) == pytest.approx(0.0, abs=1e-9)
    optimal = ORACLE.optimal()
    assert (ORACLE.visits(optimal) @ [row[0] for row in optimal]) == pytest.approx(1.0)


@pytest.mark.parametrize(("horizon", "gap"), [(60, 2e-4), (200, 2e-9)])
def test_the_greedy_policy_of_q_is_worth_the_optimum(horizon, gap):
    """But for what the lead does not see: how many scouts are still to be had."""
    oracle = ScoutsOracle(Scouts(horizon=horizon))
    assert oracle.value(oracle.optimal()) == pytest.approx(oracle.optimum, abs=gap)
    assert all(row.sum() == pytest.approx(1.0) for row in oracle.optimal())


@pytest.mark.parametrize("game", [GAME, *TINY])
def test_greedy_in_every_state_is_worth_exactly_the_optimum(game):
    """Forwards from the start: chance of each state times what is paid there."""
    oracle = ScoutsOracle(game)
    ahead = np.arange(-game.horizon, game.horizon + 1)
    odds = ((1 - game.reliability) / game.reliability) ** ahead
    red = 1 / (1 + odds)
    reach = {(0, 0): 1.0}
    total = 0.0
    for asked in range(game.horizon + 1):
        for (n, lead), chance in [item for item in reach.items() if item[0][0] == asked]:
            count = int(oracle.q_values[n, lead + game.horizon].argmax())
            if not count:
                total += chance * max(red[lead + game.horizon], 1 - red[lead + game.horizon])
                continue
            count = menu(game, asked)[count - 1]
            total -= chance * price(game, count)
            for k in range(count + 1):
                p, q, rest = red[lead + game.horizon], game.reliability, count - k
                share = p * q**k * (1 - q) ** rest + (1 - p) * (1 - q) ** k * q**rest
                state = n + count, lead + 2 * k - count
                reach[state] = reach.get(state, 0.0) + chance * comb(count, k) * share
    assert total == pytest.approx(oracle.optimum, abs=1e-12)


@pytest.mark.parametrize("game", [GAME, SMALL, *TINY])
def test_the_optimum_beats_every_baseline(game):
    oracle = ScoutsOracle(game)
    baselines = oracle.baselines
    assert all(value <= oracle.optimum + 1e-12 for value in baselines.values())
    assert oracle.value(oracle.optimal()) <= oracle.optimum + 1e-12
    assert baselines["adaptive_serial"] >= baselines["fixed_serial"] - 1e-12
    assert baselines["fixed_serial"] >= baselines["guess"] - 1e-12


def reachable(oracle, game):
    """Q of the states after each number of votes that still leave a choice."""
    for asked in range(game.horizon):
        for lead in range(-asked, asked + 1, 2):
            yield oracle.q_values[asked, lead + game.horizon]


def test_where_waiting_is_free_one_at_a_time_is_optimal():
    game = Scouts(reliability=0.65, scout_cost=0.004, round_cost=0.0, width=5, horizon=30)
    oracle = ScoutsOracle(game)
    for q in reachable(oracle, game):
        assert q[1] >= q[2:].max() - 1e-12
    assert oracle.optimum == pytest.approx(oracle.baselines["adaptive_serial"])


def test_where_scouts_are_free_more_at_once_is_never_worse():
    game = Scouts(reliability=0.65, scout_cost=0.0, round_cost=0.01, width=5, horizon=30)
    for q in reachable(ScoutsOracle(game), game):
        legal = q[1:][np.isfinite(q[1:])]
        assert legal[-1] >= legal.max() - 1e-12


def test_colours_are_alike():
    np.testing.assert_allclose(ORACLE.q_values, ORACLE.q_values[:, ::-1])


def test_waiting_for_scouts_is_never_worth_more_than_certainty():
    q = ORACLE.q_values
    assert q[np.isfinite(q)].max() <= 1.0
    for asked in range(GAME.horizon + 1):
        assert (ORACLE.q_after(asked)[0] >= 0.5).all()


games = st.builds(
    lambda q, ck, ct, width, more: Scouts(
        reliability=q, scout_cost=ck, round_cost=ct, width=width, horizon=width + more
    ),
    st.floats(0.5, 0.95),
    st.floats(0, 0.2),
    st.floats(0, 0.2),
    st.integers(1, 3),
    st.integers(0, 4),
)


@examples(30)
@given(games, st.floats(0, 0.2))
def test_the_optimum_moves_the_right_way(game, more):
    optimum = ScoutsOracle(game).optimum
    assert 0.5 - 1e-12 <= optimum <= 1 + 1e-12
    dearer = replace(game, scout_cost=game.scout_cost + more)
    slower = replace(game, round_cost=game.round_cost + more)
    longer = replace(game, horizon=game.horizon + 1)
    wider = replace(game, width=min(game.width + 1, game.horizon))
    assert ScoutsOracle(dearer).optimum <= optimum + 1e-12
    assert ScoutsOracle(slower).optimum <= optimum + 1e-12
    assert ScoutsOracle(longer).optimum >= optimum - 1e-12
    assert ScoutsOracle(wider).optimum >= optimum - 1e-12


def test_the_choices_of_the_oracle_are_all_that_a_lead_can_meet():
    oracle = ScoutsOracle(SMALL)
    met = {
        (each.text(event.decision.observation), event.decision.candidates)
        for each in rollout(SMALL, {"lead": Dice()}, range(500))
        for event in each.events
        if event.decision
    }
    known = {(choice.observation, choice.candidates) for choice in oracle.choices}
    assert met <= known
    assert len(known) == len(oracle.choices)
    first = oracle.choices[0]
    assert len(first.candidates) == SMALL.width + 1


def test_a_policy_is_valued_by_its_own_probabilities():
    oracle = oracle_of(SMALL)
    probabilities = policy_probabilities(SMALL, oracle, Table(oracle, random_policy(oracle, 0)))
    assert oracle.value(probabilities) == pytest.approx(oracle.value(random_policy(oracle, 0)))
    with pytest.raises(ValueError, match="states no log-probabilities"):
        policy_probabilities(SMALL, oracle, Scripted(lambda ask: "stop"))
    assert log(probabilities[0][0]) < 0


def test_the_oracle_of_a_game_is_built_once():
    assert oracle_of(SMALL) is oracle_of(replace(SMALL))


def test_faults_and_topologies_that_cost_the_same_share_an_oracle():
    plain = scouts_oracle(SMALL)
    assert scouts_oracle(replace(SMALL, topology="debate", fault="lie")) is plain
    assert scouts_oracle(replace(SMALL, topology="harness")) is not plain


# ---- long games


def plain_optimum(game):
    """The optimum by a dictionary of (votes, votes for red) and binomials that are cut nowhere."""
    q, best = game.reliability, {}

    def chance(count, red, belief):
        odds = q**red * (1 - q) ** (count - red), (1 - q) ** red * q ** (count - red)
        return comb(count, red) * (belief * odds[0] + (1 - belief) * odds[1])

    for asked in range(game.horizon, -1, -1):
        for red in range(asked + 1):
            belief = 1 / (1 + ((1 - q) / q) ** (2 * red - asked))
            values = [max(belief, 1 - belief)]
            for count in menu(game, asked):
                after = [best[asked + count, red + more] for more in range(count + 1)]
                draws = [chance(count, more, belief) for more in range(count + 1)]
                values.append(float(np.dot(draws, after)) - price(game, count))
            best[asked, red] = max(values)
    return best[0, 0]


@pytest.mark.parametrize("topology", ["centralized", "hierarchical", "harness"])
def test_big_rounds_are_those_of_plain_dynamic_programming(topology):
    rules = {"reliability": 0.6, "scout_cost": 0.001, "round_cost": 0.02, "width": 60}
    game = Scouts(**rules, horizon=90, sizes="doubling", most_lead=40, topology=topology)
    assert ScoutsOracle(game).optimum == pytest.approx(plain_optimum(game), abs=1e-12)


def test_a_game_of_hundreds_of_scouts_has_exact_values():
    rules = {"reliability": 0.56, "scout_cost": 0.0003, "round_cost": 0.02, "most_lead": 64}
    oracle = ScoutsOracle(Scouts(**rules, width=128, horizon=256, sizes="doubling"))
    assert oracle.optimum == pytest.approx(0.8924, abs=5e-5)
    assert oracle.best == pytest.approx(oracle.optimum, abs=1e-6)
    assert oracle.baselines["one_shot"] < oracle.optimum - 0.03
    assert oracle.visits(oracle.by_sight) @ [row[0] for row in oracle.by_sight] == (
        pytest.approx(1.0)
    )


def test_what_the_script_plays_is_worth_what_the_yardstick_says():
    for game in (GAME, Scouts(width=4, horizon=4), Scouts(width=16, scout_cost=0.002)):
        oracle = ScoutsOracle(game)
        assert oracle.best == pytest.approx(oracle.value(oracle.by_sight), abs=1e-12)
        assert oracle.best <= oracle.optimum + 1e-12
        assert oracle.best == pytest.approx(oracle.optimum, abs=1e-4)
