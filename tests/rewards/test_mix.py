"""Channels are composed by name: weights, schedules, scales, balance."""

import numpy as np
import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.softmax import Softmax
from stretto.rewards.balance import factors, score_functions, spreads
from stretto.rewards.channels import CHANNELS, Term, read_term, weight_at, write_term
from stretto.rewards.mix import Mix, checked, mixed, pays_apart, score_agents, score_group, terms_of
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.team.protocols import Prices
from stretto.trace import Score

from ..examples import event, trace, turn

FREE = Prices()


def scored(name, outcome, **channels):
    """A rollout of one turn with values on team channels."""
    scores = tuple(Score(channel=channel, value=value) for channel, value in channels.items())
    return trace(turn("0#0"), scores=scores, outcome=outcome, id=name)


def judge(**more):
    return {"verifiers": {"channels": ["judge"], **more}}


def totals(mix, traces, step=0):
    return {n: s and s.total for n, s in score_group(mix, FREE, step, traces).items()}


PAIR = [scored("a", 1.0, judge=10.0), scored("b", 0.0, judge=14.0)]


# ---- what a recipe may say


def test_a_channel_is_a_weight_or_a_table():
    assert read_term("tool_use", 0.5) == Term(channel="tool_use", weight=0.5)
    table = {"weight": 2, "anneal": 9, "normalise": True, "channels": ["a", "b"], "combine": "mean"}
    parameters = {"channels": ("a", "b"), "combine": "mean"}
    expected = Term(
        channel="verifiers", weight=2.0, anneal=9, normalise=True, parameters=parameters
    )
    assert read_term("verifiers", table) == expected
    assert read_term("verifiers", write_term(expected)) == expected


@pytest.mark.parametrize(
    ("name", "value", "where", "told"),
    [
        ("tol_use", 1.0, "tol_use", 'did you mean "tool_use"?'),
        ("tool_use", {"wieght": 1.0}, "tool_use", 'did you mean "weight"?'),
        ("tool_use", {"mots": 1}, "tool_use", 'did you mean "most"?'),
        ("tool_use", {"most": "many"}, "tool_use.most", "expected `int`"),
        ("tool_use", "high", "tool_use.weight", "expected `float`"),
        ("tool_use", {"anneal": -1}, "tool_use.anneal", ">= 0"),
        ("tool_use", {"anneal": 1, "schedule": [[0, 1]]}, "tool_use", "both"),
        ("tool_use", {"schedule": [[2, 1], [1, 0]]}, "tool_use.schedule", "must rise"),
        ("role", 1.0, "role", '"role" is needed'),
    ],
)
def test_mistakes_are_told_by_their_key(name, value, where, told):
    with pytest.raises(StrettoError) as error:
        read_term(name, value)
    assert error.value.where == where
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("mix", "where", "told"),
    [
        (Mix(preset="prl"), "preset", 'did you mean "parl"?'),
        (Mix(preset="mae", balance="variance"), "preset", "it has no scale"),
        (Mix(channels={"cots": 1.0}), "channels.cots", 'did you mean "cost"?'),
    ],
)
def test_a_mix_is_checked_whole(mix, where, told):
    with pytest.raises(StrettoError) as error:
        checked(mix, ())
    assert error.value.where == where
    assert told in str(error.value)


def test_checking_twice_changes_nothing():
    once = checked(Mix(channels={"tool_use": 1, **judge(schedule=[[0, 1], [4, 0.5]])}), ())
    assert checked(once, ()) == once


def test_every_channel_says_what_it_pays():
    assert all(channel.__doc__ for channel in CHANNELS.values())


def test_a_mix_may_have_several_terms_of_one_channel():
    two = {
        "strict": {"of": "verifiers", "weight": 0.5, "channels": ["judge"]},
        "loose": {"of": "verifiers", "weight": 2.0, "channels": ["other"]},
    }
    given = [scored("a", 1.0, judge=10.0, other=1.0)]
    assert totals(Mix(channels=two), given) == {"a": 1.0 + 5.0 + 2.0}
    once = checked(Mix(channels=two), ())
    assert checked(once, ()).channels == once.channels
    with pytest.raises(StrettoError, match=r'strict: no reward channel "verifier".*"verifiers"'):
        read_term("strict", {"of": "verifier"})


def test_a_preset_that_pays_agents_apart_has_no_team_reward():
    assert pays_apart(Mix(preset="m_grpo"))
    assert not pays_apart(Mix(preset="parl"))
    with pytest.raises(StrettoError, match="pays agents apart"):
        score_group(Mix(preset="m_grpo"), FREE, 0, PAIR)


def test_agents_are_paid_their_share_and_the_prices_of_all():
    form = Score(channel="format", value=1.0, agent="0")
    given = trace(
        turn("0#0"), event("0#1", "spawn", to="1"), turn("1#0"), scores=(form,), outcome=1.0
    )
    found = score_agents(Mix(preset="m_grpo", cost=2.0), Prices(spawn=0.1), 0, [given])
    assert found["0"]["t"].total == pytest.approx(1.0 - 0.2)
    assert "1" not in found  # its format was not scored


def test_what_everybody_is_paid_more_does_not_touch_what_each_is_paid():
    """`sharp` pays R + Δ = 1.5; 50 R more for everybody is 51.5."""
    part = Score(channel="marginal", value=0.5, agent="0")
    given = [trace(turn("0#0"), scores=(part,), outcome=1.0)]
    more = {"success": {"of": "outcome", "weight": 50.0}}
    for channels, expected in (({}, 1.5), (more, 51.5)):
        found = score_agents(Mix(preset="sharp", channels=channels), FREE, 0, given)
        assert found["0"]["t"].total == expected


# ---- weights


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"weight": 2.0}, [2, 2, 2]),
        ({"weight": 2.0, "anneal": 10}, [2, 1, 0]),
        ({"weight": 2.0, "schedule": [[0, 0.0], [5, 1.0], [10, 0.5]]}, [0, 2, 1]),
        ({"weight": -1.0, "schedule": [[4, 1.0], [6, 0.0]]}, [-1, -0.5, 0]),
    ],
)
def test_weights_follow_their_schedule(term, expected):
    found = read_term("finish", term)
    assert [weight_at(found, step) for step in (0, 5, 10)] == pytest.approx(expected)


def test_a_mix_is_the_weighted_sum_of_its_channels():
    mix = Mix(channels=judge(weight=0.5, anneal=10))
    assert totals(mix, PAIR) == {"a": 6.0, "b": 7.0}
    assert totals(mix, PAIR, step=5) == {"a": 3.5, "b": 3.5}
    assert totals(mix, PAIR, step=10) == {"a": 1.0, "b": 0.0}


def test_the_outcome_may_have_another_weight_or_none():
    assert totals(Mix(channels={"outcome": 3.0}), PAIR) == {"a": 3.0, "b": 0.0}
    assert totals(Mix(channels={"outcome": 0.0, **judge()}), PAIR) == {"a": 10.0, "b": 14.0}


def test_a_preset_is_a_mix_whose_parts_can_be_named():
    gated = [scored("a", 1.0, format=1.0), scored("b", 1.0, format=0.0)]
    overlong = {"overlong": {"weight": 0.1, "optional": True}}
    mix = Mix(preset="wideseek_r1", channels=overlong)
    assert totals(mix, gated) == pytest.approx({"a": 1.1, "b": 0.0})
    assert [t.channel for t in terms_of(Mix(preset="parl"), FREE)] == [
        *("outcome", "parallel", "finish", "cost")
    ]
    louder = Mix(preset="parl", channels={"parallel": {"weight": 0.7, "most": 2}})
    assert {t.channel: t.weight for t in terms_of(louder, FREE)}["parallel"] == 0.7


def test_what_a_channel_cannot_score_is_refused_or_left_out_where_that_is_said():
    half = [PAIR[0], scored("c", 0.5)]
    with pytest.raises(StrettoError, match=r'c: not scored on the reward channel "verifiers"'):
        score_group(Mix(channels=judge()), FREE, 0, half)
    assert totals(Mix(channels=judge(optional=True)), half) == {"a": 11.0, "c": 0.5}


def test_a_trace_without_an_outcome_is_not_scored():
    given = [*PAIR, scored("n", None, judge=3.0)]
    assert totals(Mix(channels=judge()), given)["n"] is None


# ---- scales


def test_a_normalised_channel_counts_in_its_own_standard_deviations():
    """10 and 14 have a standard deviation of 2."""
    mix = Mix(channels=judge(weight=0.5, normalise=True))
    assert totals(mix, PAIR) == {"a": 1.0 + 0.5 * 5, "b": 0.5 * 7}


def test_the_unit_of_a_normalised_channel_does_not_matter():
    mix = Mix(channels=judge(normalise=True))
    large = [
        replace(t, scores=(*t.scores[:1], replace(t.scores[1], value=v)))
        for t, v in zip(PAIR, (1000.0, 1400.0), strict=True)
    ]
    assert totals(mix, large) == pytest.approx(totals(mix, PAIR))


def test_a_channel_without_spread_is_left_as_it_is():
    flat = [scored("a", 1.0, judge=3.0), scored("b", 0.0, judge=3.0)]
    for mix in (Mix(channels=judge(normalise=True)), Mix(balance="variance", channels=judge())):
        assert totals(mix, flat) == {"a": 4.0, "b": 3.0}


def test_what_follows_the_group_is_refused_for_a_single_trace():
    with pytest.raises(StrettoError, match="needs the group"):
        mixed(Mix(channels=judge(normalise=True)), FREE, 0)
    with pytest.raises(StrettoError, match="needs the group"):
        mixed(Mix(balance="gradient"), FREE, 0)


def test_spreads_leave_out_what_was_not_scored():
    table = np.array([[0.0, 2.0, 4.0], [np.nan, 1.0, 3.0], [np.nan] * 3])
    assert spreads(table).tolist() == pytest.approx([np.sqrt(8 / 3), 1.0, 0.0])


# ---- balance


def test_balance_by_variance_gives_every_channel_the_spread_of_the_outcome():
    """The outcome's spread is .5, the judge's 2: a factor of 1/4."""
    assert totals(Mix(balance="variance", channels=judge(weight=2.0)), PAIR) == {"a": 6.0, "b": 7.0}


@pytest.mark.parametrize("normalise", [False, True])
def test_a_balanced_channel_has_the_spread_of_the_outcome_normalised_or_not(normalise):
    """The utility's spread is .5: with λ = 2 the judge's is 1, whatever its own scale."""
    mix = Mix(balance="variance", channels=judge(weight=2.0, normalise=normalise))
    found = totals(mix, PAIR)
    assert found["b"] - (found["a"] - 1.0) == pytest.approx(2 * 1.0)


def flip(name, chosen, outcome, side):
    """A rollout of one even choice."""
    made = trace(turn("0#0", chosen=chosen), outcome=outcome, id=name)
    decision = replace(made.events[0].decision, logprobs=(-np.log(2), -np.log(2)))
    event = replace(made.events[0], decision=decision)
    return replace(made, events=(event,), scores=(*made.scores, Score(channel="s", value=side)))


FLIPS = [flip("a", 0, 1.0, 0.0), flip("b", 1, 0.0, 8.0)]


def test_score_functions_are_what_was_chosen_minus_its_probability():
    owner, place, score = score_functions(FLIPS)
    assert owner.tolist() == [0, 0, 1, 1]
    assert place.tolist() == [0, 1, 0, 1]
    assert score.tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5])


def test_balance_by_gradient_silences_what_pulls_against_the_outcome():
    totals = np.array([[0.0, 8.0], [10.0, 2.0], [3.0, 3.0]])
    utility = np.array([1.0, 0.0])
    assert factors("gradient", totals, utility, FLIPS).tolist() == pytest.approx([0, 1 / 8, 1])
    assert factors("none", totals, utility, FLIPS).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("price", "expected"), [(0.0, 1.0 + 1.0), (4.0, 1.0 - 4.0)])
def test_balance_holds_a_channel_against_the_outcome_less_prices(price, expected):
    """Spawning brings the outcome; at a price of 4 it is against the utility all the same."""
    spawned = flip("a", 0, 1.0, 0.0)
    spawned = replace(spawned, events=(*spawned.events, event("0#1", "spawn", to="1")))
    mix = Mix(balance="gradient", channels={"parallel": {"most": 4}})
    found = score_group(mix, Prices(spawn=price), 0, [spawned, FLIPS[1]])
    assert found["a"].total == pytest.approx(expected)


def test_balance_by_gradient_needs_probabilities():
    bare = trace(turn("0#0"), outcome=1.0)
    bare = replace(
        bare,
        events=(replace(bare.events[0], decision=replace(bare.events[0].decision, logprobs=())),),
    )
    with pytest.raises(StrettoError, match="without behaviour log-probabilities"):
        score_group(Mix(balance="gradient"), FREE, 0, [bare])


@pytest.mark.parametrize("kind", ["variance", "gradient"])
def test_a_balance_of_the_outcome_alone_changes_nothing(kind):
    game = Scouts(width=2, horizon=4)
    rollouts = rollout(game, {"lead": Softmax({})}, list(range(8)))
    plain, balanced = (
        score_group(Mix(cost=0.0, balance=each), game.prices, 0, rollouts)
        for each in ("none", kind)
    )
    assert {n: s.total for n, s in plain.items()} == {n: s.total for n, s in balanced.items()}
