"""The rules of scouts by hand, and its oracle against enumeration and simulation."""

from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.rewards.mix import Mix, mixed
from stretto.tasks import build
from stretto.tasks.scouts import Scouts, choice_at
from stretto.tasks.words import number_word
from stretto.team.engine import fingerprint, rollout

GAME = Scouts(reliability=0.65, scout_cost=0.004, round_cost=0.01, width=8, horizon=60)
SMALL = Scouts(reliability=0.7, scout_cost=0.02, round_cost=0.03, width=3, horizon=7)


def scripted(*choices):
    """A lead that makes these choices, one after the other."""
    by_turn = iter(choices)
    return {"lead": Scripted(lambda ask: next(by_turn))}


def play(*choices, game=GAME, seed=0):
    (done,) = rollout(game, scripted(*choices), [seed])
    return done


def votes(done):
    return [event.attrs["colour"] for event in done.events if event.kind == "return"]


def payoff(game, done):
    """The cost-adjusted return of an episode, from its trace alone."""
    return mixed(Mix(), game.prices, step=0)(done).total


# ---- the rules


def test_scouts_look_side_by_side_and_a_round_takes_a_second():
    done = play("three", "stop")
    kinds = [(event.agent, event.kind, event.start) for event in done.events]
    looks = [(f"0/{n}", "tool_call", 0.0) for n in range(3)]
    assert kinds == [
        ("0", "decision", 0.0),
        *(row for n in range(3) for row in (("0", "spawn", 0.0), looks[n])),
        *((f"0/{n}", kind, 1.0) for n in range(3) for kind in ("tool_result", "return", "despawn")),
        ("0", "decision", 1.0),
        ("0", "stop", 1.0),
    ]


def test_the_lead_waits_for_all_scouts_and_then_reads_the_lead():
    for seed in range(30):
        done = play("two", "one", "stop", seed=seed)
        asked = [done.text(e.decision.observation) for e in done.events if e.decision]
        red = [vote == "red" for vote in votes(done)]
        leads = [0, 2 * sum(red[:2]) - 2, 2 * sum(red) - 3]
        assert asked == [choice_at(GAME, 0, lead).observation for lead in leads]
        assert all(number_word(abs(lead)) in text for lead, text in zip(leads, asked, strict=True))


def test_the_answer_is_the_majority_and_pays_one_if_it_is_right():
    outcomes = set()
    for seed in range(40):
        done = play("three", "stop", seed=seed)
        (stop,) = [event for event in done.events if event.kind == "stop"]
        assert stop.attrs["colour"] == max(("red", "blue"), key=votes(done).count)
        right = stop.attrs["colour"] == ("red", "blue")[GAME.begin(seed).hidden]
        assert done.reward("outcome") == float(right)
        outcomes.add(right)
    assert outcomes == {True, False}


def test_an_episode_that_was_never_answered_has_no_outcome():
    world = GAME.begin(0)
    assert GAME.scores(world) == {}
    world.answer = world.hidden
    assert GAME.scores(world) == {"outcome": 1.0, "success": 1.0}
    world.answer = 1 - world.hidden
    assert GAME.scores(world) == {"outcome": 0.0, "success": 0.0}


def test_a_guess_is_a_fair_coin():
    outcomes = [play("stop", seed=seed).reward("outcome") for seed in range(2_000)]
    assert abs(np.mean(outcomes) - 0.5) < 4 * 0.5 / 2_000**0.5


def test_where_votes_tie_either_colour_may_be_the_answer():
    answers = [play("stop", seed=seed).events[-1].attrs["colour"] for seed in range(200)]
    assert 60 < answers.count("red") < 140


def test_a_scout_is_right_as_often_as_it_is_reliable():
    right = [
        vote == ("red", "blue")[GAME.begin(seed).hidden]
        for seed in range(400)
        for vote in votes(play("eight", "stop", seed=seed))
    ]
    assert abs(np.mean(right) - 0.65) < 4 * (0.65 * 0.35 / len(right)) ** 0.5


def test_hidden_colours_and_coins_are_fair_and_independent():
    drawn = [(w.hidden, w.coin) for w in map(GAME.begin, range(4_000))]
    for cell in product((0, 1), repeat=2):
        assert abs(drawn.count(cell) - 1_000) < 4 * (4_000 * 0.25 * 0.75) ** 0.5


def test_effort_is_paid_for_each_scout_and_each_round():
    done = play("three", "two", "one", "stop")
    assert payoff(GAME, done) == pytest.approx(done.reward("outcome") - 6 * 0.004 - 3 * 0.01)
    assert payoff(GAME, play("stop")) in (0.0, 1.0)


def test_no_more_scouts_than_the_width_and_the_horizon():
    assert choice_at(SMALL, 0, 0).candidates == ("stop", "one", "two", "three")
    assert choice_at(SMALL, 5, 1).candidates == ("stop", "one", "two")
    assert choice_at(SMALL, 7, 1).candidates == ("stop",)
    assert choice_at(SMALL, 7, 1).types == ("stop",)
    assert choice_at(SMALL, 5, 1).types == ("stop", "spawn", "spawn")


def test_the_lead_learns_by_how_much_and_neither_which_colour_nor_after_how_many():
    assert choice_at(GAME, 10, 4) == choice_at(GAME, 20, -4)
    assert choice_at(GAME, 10, 4) != choice_at(GAME, 10, 2)
    assert choice_at(GAME, 40, 12) == choice_at(GAME, 40, 30)


def test_a_short_menu_has_doublings_and_the_width():
    game = Scouts(width=12, horizon=30, sizes="doubling", most_lead=25)
    assert choice_at(game, 0, 0).candidates == ("stop", "one", "two", "four", "eight", "twelve")
    assert choice_at(game, 20, 4).candidates == ("stop", "one", "two", "four", "eight")
    assert choice_at(game, 29, 25).candidates == ("stop", "one")
    assert choice_at(game, 30, 28).observation == "The lead is twenty-five."
    assert choice_at(game, 24, 24).observation == "The lead is twenty-four."
    assert game.harness.system.endswith("send, one, two, four, eight, twelve.")
    assert Scouts(width=4, horizon=4, sizes="doubling").harness.system.endswith("one, two, four.")


def test_the_harness_of_the_plain_game_stays_what_it_was():
    """Policies are trained on it: another text would be another game."""
    assert fingerprint(Scouts()) == "6ba5e8fc67132f2a38f9e71f4a9483e4"
    assert fingerprint(replace(GAME, width=3)) == "b3a941e9929407626546c883195c970a"
    assert fingerprint(replace(GAME, most_lead=40, fault="lie")) == fingerprint(GAME)


def test_a_game_can_be_rebuilt_from_its_traces():
    done = play("one", "stop", game=SMALL)
    assert build(done.spec) == SMALL
    assert (done.task, done.topology) == ("scouts", "centralized")


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"reliability": 0.49}, "reliability"),
        ({"reliability": 1.0}, "reliability"),
        ({"reliability": float("nan")}, "reliability"),
        ({"scout_cost": -0.1}, "scout_cost"),
        ({"round_cost": -0.1}, "round_cost"),
        ({"round_cost": float("nan")}, "round_cost"),
        ({"round_cost": float("inf")}, "round_cost"),
        ({"width": 0}, "width"),
        ({"width": 9, "horizon": 8}, "width"),
        ({"horizon": 2_001}, "horizon"),
        ({"width": 901, "horizon": 2_000}, "width"),
        ({"most_lead": 0}, "most_lead"),
        ({"most_lead": 901}, "most_lead"),
    ],
)
def test_rules_that_make_no_game_are_refused_by_name(rules, field):
    with pytest.raises(StrettoError) as error:
        Scouts(**rules)
    assert error.value.where == f"task.{field}"
    assert str(rules[field]) in error.value.what
    assert "1 <= width <= horizon" in error.value.hint


def test_numbers_are_spelt():
    words = {0: "none", 8: "eight", 13: "thirteen", 20: "twenty", 42: "forty-two", 90: "ninety"}
    words |= {100: "one hundred", 309: "three hundred nine", 999: "nine hundred ninety-nine"}
    assert {number: number_word(number) for number in words} == words
    assert len({number_word(number) for number in range(1_000)}) == 1_000
    for number in (-1, 1_000):
        with pytest.raises(ValueError, match=f"got {number}"):
            number_word(number)
