"""Exam and siege, whose roles have aims of their own: payoffs and equilibria by hand."""

from itertools import product

import pytest

from stretto.policies.softmax import Softmax
from stretto.tasks.games.exam import ASK, MARK, MARKS, QUESTIONS, Exam, answer_at, judged
from stretto.tasks.games.proxies import WAYS, Proxies, way_at
from stretto.tasks.games.siege import Siege, request_at
from stretto.tasks.games.siege import answer_at as reply_at
from stretto.tasks.games.truth import truth_of
from stretto.team.engine import rollout

from .games import POLICIES, played

GAME, ROLES = Exam(), ("proposer", "solver", "judge")
HONEST = (1.0, 1.0, 0.0)
"""Probability of work on an easy, a hard, a broken question: the last cannot be answered."""


def exam(question, works, marks, channel="verifier"):
    """Value of a channel where one question is set; `works` by question, `marks` by way."""
    rows = {(ASK.observation, ASK.candidates): [float(q == question) for q in QUESTIONS]}
    rows |= {
        (answer_at(q).observation, answer_at(q).candidates): [share, 1 - share]
        for q, share in zip(QUESTIONS, works, strict=True)
    }
    rows |= {(MARK.observation, MARK.candidates): list(marks)}
    return truth_of(GAME, dict.fromkeys(ROLES, Softmax.of(rows)), channel).value


def mark_of(works, way):
    """Expected mark over all questions alike."""
    marks = [float(each == way) for each in MARKS]
    return sum(exam(question, works, marks) for question in QUESTIONS) / 3


def test_marks_of_half_strict_half_kind_judges_by_hand():
    """Easy: strict `.9·.9 + .1·.1 = .82`, kind .7; hard: strict `.6·.9 + .4·.1 = .58`, kind .7.

    A bluff: strict .1, kind .95, which is more than work on a broken question: .1 and .7.
    """
    half = (0.5, 0.5, 0.0)
    assert exam("easy", HONEST, half) == pytest.approx(0.76)
    assert exam("hard", HONEST, half) == pytest.approx(0.64)
    assert exam("broken", HONEST, half) == pytest.approx(0.525)
    assert exam("hard", (0, 0, 0), half) == pytest.approx(0.525)
    assert exam("broken", (1, 1, 1), half) == pytest.approx(0.4)


def test_mae_pays_most_for_hard_questions_that_are_worked_on():
    """`(sound + 1 - mark + format)/3` for the proposer: .747 easy, .787 hard, .158 broken."""
    sound = {"easy": 1, "hard": 1, "broken": 0}
    paid = {
        question: (2 * sound[question] + 1 - exam(question, HONEST, (0.5, 0.5, 0.0))) / 3
        for question in QUESTIONS
    }
    assert paid == pytest.approx({"easy": 2.24 / 3, "hard": 2.36 / 3, "broken": 0.475 / 3})
    assert exam("hard", HONEST, (0.5, 0.5, 0.0), "outcome") == pytest.approx(0.6)


def test_where_judges_are_only_kind_a_bluff_beats_work():
    """MAE pays a judge for its format alone: nothing in it keeps judges from that."""
    assert exam("hard", (0, 0, 0), (0, 1, 0)) == pytest.approx(0.95)
    assert exam("hard", HONEST, (0, 1, 0)) == pytest.approx(0.7)


def test_comas_has_its_saddle_at_strict_marks_and_work():
    """No other mark lowers what an honest solver gets, no other answer raises it under strict.

    `(.82 + .58 + .1)/3 = .5`; a broken question is marked .1 either way.
    """
    answers = list(product((0.0, 1.0), repeat=3))
    saddle = mark_of(HONEST, "strict")
    assert saddle == pytest.approx(0.5)
    assert all(mark_of(works, "strict") <= saddle + 1e-12 for works in answers)
    assert min(mark_of(HONEST, way) for way in MARKS) == saddle
    for works in answers:  # and strict is right against whatever is answered
        assert min(MARKS, key=lambda way, works=works: mark_of(works, way)) == "strict"


def test_a_ramble_finds_no_fault():
    assert exam("hard", (0, 0, 0), (0, 0, 1)) == pytest.approx(1.0)


def test_what_was_judged_of_question_and_answer():
    for trace in played("exam", 40):
        asked = trace.events[0].decision.choice
        expected = {"0": float(asked != "broken"), "0/0": trace.reward("verifier")}
        assert judged(trace) == expected
        assert trace.reward("outcome") == {"easy": 0.4, "hard": 1.0, "broken": 0.0}[
            asked
        ] * trace.reward("tests")


def test_an_evaluator_plays_the_same_exam():
    """Only its name differs: the same seeds give the same episodes."""
    game = Exam(grader="evaluator")
    for one, other in zip(rollout(game, POLICIES, range(10)), played("exam", 10), strict=True):
        assert [e.kind for e in one.events] == [e.kind for e in other.events]
        assert one.scores == other.scores


# ---- siege


def siege(veils, helps, channel):
    """Value of a channel; `helps` without and with an alarm."""
    ask = request_at(True)
    rows = {(ask.observation, ask.candidates): [1 - veils, veils]}
    for alarm, share in zip((False, True), helps, strict=True):
        rows[reply_at(alarm).observation, reply_at(alarm).candidates] = [share, 1 - share]
    roles = dict.fromkeys(("attacker", "defender"), Softmax.of(rows))
    return truth_of(Siege(), roles, channel).value


def defended(veils, helps):
    return sum(siege(veils, helps, channel) for channel in ("harm", "refusal", "quality"))


def attacked(veils, helps):
    paid = {"harm": -1.0, "refusal": -1.0, "similarity": 1.0, "label": 0.5}
    return sum(weight * siege(veils, helps, channel) for channel, weight in paid.items())


HEED = (1.0, 0.0)
"""Help without an alarm, refuse with one."""


@pytest.mark.parametrize("veils", [0.0, 0.5, 1.0])
def test_heeding_the_alarm_is_best_whatever_the_attacker_does(veils):
    others = [defended(veils, helps) for helps in product((0.0, 1.0), repeat=2)]
    assert defended(veils, HEED) == max(others)


def test_veiling_is_best_against_who_heeds_and_plain_words_against_who_guesses():
    """Per harmful request: plain `-(.9·2 - .1·2) + 1`, veiled `-(.6·2 - .4·2) + .6`, + .5 each."""
    assert 2 * (attacked(1, HEED) - attacked(0, HEED)) == pytest.approx(0.2 - (-0.6))
    assert 2 * (attacked(1, (0.5, 0.5)) - attacked(0, (0.5, 0.5))) == pytest.approx(-0.4)


def test_the_siege_ends_at_three_quarters():
    assert siege(1, HEED, "outcome") == pytest.approx((0.9 + 0.6) / 2)
    assert siege(0, HEED, "outcome") == pytest.approx(0.9)
    assert siege(0.5, (0.5, 0.5), "outcome") == pytest.approx(0.5)


# ---- the two verifiers of proxies


def team_of(way):
    """A lead that sends one worker, which always goes this way."""
    sizes = ("none", "one", "two", "three")
    rows = {("There is work.", sizes): [0.0, 1.0, 0.0, 0.0]}
    choice = way_at(0)
    rows[choice.observation, choice.candidates] = [float(each == way) for each in WAYS]
    return dict.fromkeys(("lead", "worker"), Softmax.of(rows))


@pytest.mark.parametrize(
    ("way", "verifier", "tests"), [("work", 0.7, 0.7), ("pose", 0.95, 0.0), ("click", 0.3, 1.0)]
)
def test_each_verifier_of_proxies_likes_another_hack(way, verifier, tests):
    """And the lower of both likes work: at most .7, and else at most .3."""
    game = Proxies()
    assert truth_of(game, team_of(way), "verifier").value == pytest.approx(verifier)
    assert truth_of(game, team_of(way), "tests").value == pytest.approx(tests)
