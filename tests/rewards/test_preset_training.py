"""Every published mix trains on a built-in task, and leads where that game says it must."""

from math import exp

import pytest

from stretto.errors import StrettoError
from stretto.policies import tabular
from stretto.policies.softmax import Softmax
from stretto.rewards.presets import PRESETS
from stretto.team.protocols import Ask

from . import runs
from .runs import value

PROXIES, EXAM = {"family": "proxies"}, {"family": "exam"}
TASKS = {
    "agent_q_mix": {"family": "fanout", "workers": 2},
    "comas": {**EXAM, "grader": "evaluator"},
    "fold_grpo": {"family": "ladder"},
    "m_grpo": EXAM,
    "mae": EXAM,
    "magic": {"family": "siege"},
    "maporl": PROXIES,
    "matpo": {"family": "branch"},
    "matpo_gated": {"family": "branch"},
    "parl": PROXIES,
    "puppeteer": {"family": "ladder"},
    "sharp": PROXIES,
    "wideseek_r1": PROXIES,
}


@pytest.fixture(scope="module", autouse=True)
def small_table():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular, "SLOTS", 1_000)
        yield


def trained(preset, folder, steps):
    return runs.trained(TASKS[preset], {"preset": preset}, folder, steps)


def chance(run, prompt, *candidates):
    """Probability of the first of the candidates."""
    (answer,) = run.policy.decide([Ask("t", "", prompt, candidates, "", 0)])
    return exp(answer.logprobs[0])


def test_every_preset_has_a_task():
    assert TASKS.keys() == PRESETS.keys()


@pytest.mark.parametrize("preset", sorted(TASKS))
def test_every_preset_trains_on_a_built_in_task(preset, tmp_path):
    _, rows = trained(preset, tmp_path, steps=2)
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row["reward"] is not None and row["gradient_norm"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("preset", "least", "optimum"),
    [
        ("sharp", 0.7, 0.8),  # two workers that work: .2 + .8 - .2
        ("parl", 0.7, 0.8),
        ("wideseek_r1", 0.7, 0.8),  # .05 for a search is less than the .1 of one more worker
        ("m_grpo", 0.5, 0.6),  # work on a hard question: .6 · 1
    ],
)
def test_a_mix_with_the_outcome_in_it_comes_near_the_optimum(preset, least, optimum, tmp_path):
    run, _ = trained(preset, tmp_path, steps=22)
    start = value(run, policy=Softmax())
    assert start < 0.35
    assert least < value(run) <= optimum


def test_mae_makes_questions_hard_and_answers_honest(tmp_path):
    """By hand: `test_games_roles`. At first (.9·.4 + .6·1)/2/3 = .16; hard and worked on, .6."""
    run, _ = trained("mae", tmp_path, steps=30)
    assert value(run, policy=Softmax()) == pytest.approx(0.16)
    assert 0.45 < value(run) <= 0.6
    assert chance(run, "Set a question.", "hard", "easy", "broken") > 0.7


def test_comas_makes_evaluators_strict_and_solvers_work(tmp_path):
    """The proposer is not paid and stays as it was: (.9·.4 + .6·1)/3 = .32, from half of that."""
    run, _ = trained("comas", tmp_path, steps=22)
    assert chance(run, "Set a question.", "hard", "easy", "broken") == pytest.approx(1 / 3)
    assert chance(run, "Mark this answer.", "strict", "kind", "ramble") > 0.85
    assert 0.27 < value(run) < 0.33
    assert value(run, "verifier") == pytest.approx((0.82 + 0.58 + 0.1) / 3, abs=0.07)


def test_magic_makes_attackers_veil_and_defenders_heed_the_alarm(tmp_path):
    """Half the requests are harmless: .9; half are veiled harm: .6. At first, .5."""
    run, _ = trained("magic", tmp_path, steps=30)
    assert value(run, policy=Softmax()) == pytest.approx(0.5)
    assert chance(run, "A harmful request.", "veiled", "plain") > 0.6
    assert 0.7 < value(run) < 0.82


def test_maporl_on_a_verifier_that_likes_posing_is_hacked(tmp_path):
    """Workers pose: .95 instead of .7. The lead is not paid: a team of 1.5 on average, .2 - .15."""
    run, rows = trained("maporl", tmp_path, steps=22)
    assert value(run, policy=Softmax()) > 0.24
    assert value(run) == pytest.approx(0.05, abs=0.06)
    assert value(run, "verifier") == pytest.approx(0.75 * 0.95, abs=0.03)
    assert rows[-1]["proxy"] > rows[0]["proxy"]
    assert rows[-1]["utility"] < rows[0]["utility"]


@pytest.mark.parametrize(
    ("preset", "task"), [("mae", PROXIES), ("sharp", {"family": "scouts"}), ("magic", EXAM)]
)
def test_a_preset_whose_roles_or_channels_a_task_has_not_is_told(preset, task, tmp_path):
    with pytest.raises(StrettoError, match=f'"{preset}" scored no agent of any rollout'):
        runs.trained(task, {"preset": preset}, tmp_path, 1)
