"""The published mixes of rewards, by name: data that `compose` reads.

Formulas are those of the papers or of their released code; `docs/rewards.md` has each beside its
source. Where a source leaves a weight open, `open_weights` says so, and the number here is ours.
"""

from collections.abc import Mapping

from msgspec import Struct

from stretto.rewards.channels import Term

PAPERS = (
    "agent-qmix2026",
    "comas2026",
    "context-folding",
    "kimi-k2-5",
    "m-grpo",
    "mae",
    "magic2026",
    "maporl",
    "matpo",
    "puppeteer",
    "sharp",
    "wideseek-r1-2026",
)
TEAM, AGENTS = "team", "agents"


class Share(Struct, frozen=True, kw_only=True):
    """What one kind of recipient is paid."""

    to: str = TEAM
    """`team`, `agents` (each its own), or a role."""
    terms: tuple[Term, ...]
    gate: Term | None = None
    """A channel whose total multiplies everything."""


class Preset(Struct, frozen=True, kw_only=True):
    """A published mix."""

    paper: str
    """Key of the paper in the pool."""
    shares: tuple[Share, ...]
    open_weights: str = ""
    """Which numbers the source does not give."""


def _term(
    channel: str, weight: float = 1.0, /, optional: bool = False, **parameters: object
) -> Term:
    return Term(channel=channel, weight=weight, optional=optional, parameters=parameters)


def _scored(channel: str, weight: float = 1.0, /, optional: bool = False) -> Term:
    """A value that is recorded on a channel."""
    return _term("verifiers", weight, optional=optional, channels=(channel,))


OUTCOME = Term(channel="outcome")

PRESETS: Mapping[str, Preset] = {
    "parl": Preset(
        paper="kimi-k2-5",
        shares=(
            Share(
                terms=(
                    OUTCOME,
                    Term(channel="parallel", weight=0.2, anneal=40, parameters={"most": 8}),
                    Term(channel="finish", weight=0.2, anneal=40, optional=True),
                )
            ),
        ),
        open_weights="λ1, λ2, the scale of r_parallel, the schedule",
    ),
    "sharp": Preset(
        paper="sharp",
        shares=(
            Share(
                to=AGENTS,
                terms=(
                    OUTCOME,
                    _term("individual", channel="marginal"),
                    _term("individual", optional=True, channel="process"),
                ),
            ),
        ),
        open_weights="λ_s, λ_p",
    ),
    "wideseek_r1": Preset(
        paper="wideseek-r1-2026",
        shares=(
            Share(
                terms=(
                    OUTCOME,
                    _scored("format", 0.1),
                    _term("used_tool", 0.05, tools=("search",)),
                    _term("overlong", 0.1, soft=3000.0, hard=5000.0),
                ),
                gate=_scored("format"),
            ),
        ),
    ),
    "matpo": Preset(
        paper="matpo",
        shares=(
            Share(terms=(Term(channel="outcome", weight=0.9), _term("tool_format", 0.1, True))),
        ),
        open_weights="w_acc, w_fmt",
    ),
    "matpo_gated": Preset(
        paper="matpo",
        shares=(
            Share(
                terms=(Term(channel="constant", weight=0.9), _term("tool_format", 0.1, True)),
                gate=OUTCOME,
            ),
        ),
        open_weights="w_acc, w_fmt",
    ),
    "m_grpo": Preset(
        paper="m-grpo",
        shares=(
            Share(
                to=AGENTS,
                terms=(_term("constant", 0.1), Term(channel="outcome", weight=0.9)),
                gate=_term("individual", channel="format"),
            ),
        ),
    ),
    "mae": Preset(
        paper="mae",
        shares=(
            Share(
                to="proposer",
                terms=(
                    _term("role", 1 / 3, role="proposer", channel="judge"),
                    _term("role", 1 / 3, role="proposer", channel="format"),
                    _term("role", 1 / 3, True, role="solver", channel="judge", flip=True),
                ),
            ),
            Share(
                to="solver",
                terms=(
                    _term("role", 1 / 2, role="solver", channel="judge"),
                    _term("role", 1 / 2, role="solver", channel="format"),
                ),
            ),
            Share(to="judge", terms=(_term("role", role="judge", channel="format"),)),
        ),
    ),
    "comas": Preset(
        paper="comas2026",
        shares=(
            Share(to="solver", terms=(_term("role", role="solver", channel="judge"),)),
            Share(
                to="evaluator", terms=(_term("role", role="solver", channel="judge", flip=True),)
            ),
        ),
    ),
    "magic": Preset(
        paper="magic2026",
        shares=(
            Share(
                to="defender",
                terms=(
                    *(_scored("harm"), _scored("refusal"), _scored("quality")),
                    _term("role", 1.0, True, role="defender", channel="format"),
                ),
            ),
            Share(
                to="attacker",
                terms=(
                    *(_scored("harm", -1.0), _scored("refusal", -1.0)),
                    *(_scored("similarity"), _scored("label", 0.5)),
                    _term("role", 1.0, True, role="attacker", channel="format"),
                ),
            ),
        ),
    ),
    "maporl": Preset(
        paper="maporl",
        shares=(
            Share(
                to=AGENTS,
                terms=(
                    _term("discounted", channel="verifier", gamma=0.3),
                    _term("process", -10.0, True, channel="invalid"),
                ),
            ),
        ),
    ),
    "fold_grpo": Preset(
        paper="context-folding",
        shares=(Share(terms=(OUTCOME, _term("folding", limit=32_000))),),
    ),
    "puppeteer": Preset(
        paper="puppeteer",
        shares=(Share(terms=(OUTCOME, _term("step_costs", max_steps=6, factor=-1.0))),),
    ),
    "agent_q_mix": Preset(
        paper="agent-qmix2026",
        shares=(Share(terms=(OUTCOME, _term("token_budget", 0.1, budget=1e4))),),
    ),
}
"""Every published mix by its name."""
