"""Every published mix on a trace small enough to compute by hand."""

import pytest

from stretto.corpus import read_pool
from stretto.errors import StrettoError
from stretto.rewards.channels import CHANNELS, parameters_of
from stretto.rewards.compose import preset_of, preset_rewards
from stretto.rewards.presets import PRESETS
from stretto.rewards.stopping import step_cost
from stretto.trace import Score, Tokens

from ..examples import event, trace, turn


def team(**values):
    return tuple(Score(channel=channel, value=value) for channel, value in values.items())


def of(channel, **values):
    return tuple(Score(channel=channel, value=v, agent=a) for a, v in values.items())


def episode(*scores, outcome=1.0, roles=None):
    """A lead `l` with two workers, one of which returns; 4,000 tokens sampled, 6,000 read."""
    return trace(
        turn("l#0", 0.0, 1.0, tokens=Tokens(input=3000, output=4000)),
        event("l#1", "spawn", to="w"),
        event("l#2", "spawn", to="v"),
        event("w#0", "tool_call", tool="search", content="x"),
        event("w#1", "tool_result", tool="search"),
        event("v#0", "tool_call", tool="read", content="x"),
        event("v#1", "tool_result", tool="read", attrs={"is_error": True}),
        event("w#2", "return", to="l"),
        turn("l#3", 1.0, 1.0, tokens=Tokens(input=3000, output=0)),
        event("l#4", "stop"),
        scores=scores,
        roles=roles or {"l": "lead", "w": "worker", "v": "worker"},
        outcome=outcome,
    )


def paid(name, given, step=0):
    return {to: stream and stream.total for to, stream in preset_rewards(name, given, step).items()}


def test_parl_anneals_what_it_pays_for_spawning_and_finishing():
    """`R + λ1·2/8 + λ2·1/2`, with both λ = .2 (ours) falling to 0 over 40 steps."""
    assert paid("parl", episode()) == pytest.approx({"team": 1 + 0.2 * 0.25 + 0.2 * 0.5})
    assert paid("parl", episode(), step=20) == pytest.approx({"team": 1 + 0.1 * 0.25 + 0.1 * 0.5})
    assert paid("parl", episode(), step=40) == {"team": 1.0}
    alone = trace(turn("l#0"), outcome=0.5)
    assert paid("parl", alone) == {"team": 0.5}


def test_sharp_adds_each_agents_own_part():
    """`R + λ_s·Δ_m + λ_p·P_m`; who has no Δ is not scored."""
    marginal = of("marginal", l=0.5, w=0.25)
    found = paid("sharp", episode(*marginal, *of("process", w=0.1)))
    assert found == {"l": 1.5, "w": pytest.approx(1.35), "v": None}


def test_wideseek_r1_pays_format_and_search_and_not_length():
    """`R + .1 format + .05 search - .1·(4000 - 3000)/(5000 - 3000)`; 0 for a bad format."""
    assert paid("wideseek_r1", episode(*team(format=1.0), outcome=0.4)) == pytest.approx(
        {"team": 0.4 + 0.1 + 0.05 - 0.05}
    )
    assert paid("wideseek_r1", episode(*team(format=0.0))) == {"team": 0.0}
    assert paid("wideseek_r1", episode()) == {"team": 0.0}  # not recorded: a call failed
    assert paid("wideseek_r1", episode(outcome=None)) == {"team": None}


def test_matpo_pays_accuracy_and_the_format_of_tool_calls():
    """One of two results is an error; gated, the format counts only where the answer is right."""
    assert paid("matpo", episode()) == pytest.approx({"team": 0.9 + 0.1 * 0.5})
    assert paid("matpo", episode(outcome=0.0)) == pytest.approx({"team": 0.05})
    assert paid("matpo_gated", episode()) == pytest.approx({"team": 0.95})
    assert paid("matpo_gated", episode(outcome=0.0)) == {"team": 0.0}
    assert paid("matpo", trace(turn("l#0"), outcome=1.0)) == {"team": 0.9}  # nothing was called


def test_m_grpo_is_0_or_a_tenth_or_1():
    form = of("format", l=1.0, w=1.0, v=0.0)
    assert paid("m_grpo", episode(*form)) == {"l": 1.0, "w": 1.0, "v": 0.0}
    assert paid("m_grpo", episode(*form, outcome=0.0)) == {"l": 0.1, "w": 0.1, "v": 0.0}


def test_mae_pays_the_proposer_for_what_the_solver_fails():
    roles = {"l": "proposer", "w": "solver", "v": "judge"}
    form = of("format", l=1.0, w=0.5, v=1.0)
    found = paid("mae", episode(*form, *of("judge", l=0.6, w=0.4), roles=roles))
    assert found == pytest.approx({"l": (0.6 + 0.6 + 1) / 3, "w": (0.4 + 0.5) / 2, "v": 1.0})
    unsolved = paid("mae", episode(*form, *of("judge", l=0.6), roles=roles))
    assert unsolved == {"l": pytest.approx(1.6 / 3), "w": None, "v": 1.0}


def test_comas_shares_one_between_solution_and_evaluation():
    roles = {"l": "solver", "w": "evaluator", "v": "worker"}
    assert paid("comas", episode(*of("judge", l=0.75), roles=roles)) == {"l": 0.75, "w": 0.25}


def test_magic_pays_the_attacker_for_what_the_defender_lets_through():
    roles = {"l": "defender", "w": "attacker", "v": "worker"}
    said = team(harm=0.5, refusal=0.25, quality=0.2, similarity=0.8, label=1.0)
    found = paid("magic", episode(*said, *of("format", l=1.0), roles=roles))
    assert found == pytest.approx({"l": 0.75 + 0.2 + 1.0, "w": -0.75 + 0.8 + 0.5})


def test_maporl_looks_ahead_and_punishes_the_invalid():
    """Two rounds of the lead: `(.5 + .3·1)/1.3 + 1`; the second answer is invalid: -10."""
    verdicts = {"l#0": 0.5, "l#3": 1.0}
    scores = tuple(Score(channel="verifier", value=v, event=e) for e, v in verdicts.items())
    found = paid("maporl", episode(*scores))
    assert found == {"l": pytest.approx(0.8 / 1.3 + 1), "w": None, "v": None}
    invalid = Score(channel="invalid", value=1.0, event="l#3")
    assert paid("maporl", episode(*scores, invalid))["l"] == pytest.approx(0.8 / 1.3 + 1 - 10)


def test_fold_grpo_takes_off_what_breaks_the_rules():
    given = trace(
        turn("l#0", tokens=Tokens(input=17_000, output=1)),
        turn("l#1", tokens=Tokens(input=100, output=1)),
        outcome=1.0,
    )
    stream = preset_rewards("fold_grpo", given)["team"]
    assert stream.at.tolist() == [-1.0, 0.0]
    assert stream.final == 1.0


def test_puppeteer_pays_for_tokens_by_a_price_that_rises():
    """The first turn costs c(0)·7000/10⁵; the end earns R + c(1)/2."""
    expected = 1 - step_cost(0, 6) * 0.07 + step_cost(1, 6) / 2
    assert paid("puppeteer", episode()) == pytest.approx({"team": expected})
    failed = -step_cost(0, 6) * 0.07 - step_cost(1, 6) / 2
    assert paid("puppeteer", episode(outcome=0.0)) == pytest.approx({"team": failed})


def test_agent_q_mix_takes_off_a_tenth_for_ten_thousand_tokens():
    assert paid("agent_q_mix", episode()) == pytest.approx({"team": 1 - 0.1})


def test_every_preset_names_its_paper_and_only_channels_and_keys_that_exist():
    pool = {row.values["key"] for row in read_pool().papers.rows}
    for preset in PRESETS.values():
        assert preset.paper in pool
        for share in preset.shares:
            for term in (*share.terms, *([share.gate] if share.gate else [])):
                assert set(term.parameters) <= set(parameters_of(CHANNELS[term.channel]))


def test_an_unknown_preset_gets_a_suggestion():
    with pytest.raises(StrettoError, match=r'did you mean "puppeteer"\?'):
        preset_of("pupeteer")


def test_what_was_not_scored_is_not_0():
    silent = episode(outcome=None)
    for name in ("parl", "matpo", "fold_grpo", "puppeteer", "agent_q_mix"):
        assert paid(name, silent) == {"team": None}
