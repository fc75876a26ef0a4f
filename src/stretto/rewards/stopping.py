"""R7: what going on costs, so that stopping in time pays.

`stopping` is `U = R - c·cost` at the level of turns. `step_costs` is Puppeteer's logarithmic price,
`token_budget` Agent Q-Mix's, `overlong` WideSeek-R1's. Where no turn of a rollout of ours says its
tokens, they are words: see `tokens`.
"""

import numpy as np

from stretto.errors import StrettoError
from stretto.rewards.outcome import outcome
from stretto.rewards.ranges import Count, NonNegative, NonPositive, Positive
from stretto.rewards.stream import Floats, Stream, end_of, final
from stretto.rewards.tokens import read_and_written
from stretto.trace import Trace

PAPERS = ("puppeteer",)
SCALE, PER_TOKENS, BONUS = 0.1, 1e5, 0.5


def stopping(trace: Trace, turn: NonNegative = 0.0, token: NonNegative = 0.0) -> Stream | None:
    """Minus `turn` for every turn and `token` for every token read or sampled, with the turn.

    The turn that stops is free of `turn`: stopping costs nothing, going on does. `None` where
    tokens have a price and a turn does not say how many it took.
    """
    tokens = _tokens(trace) if token else np.zeros(len(trace.events))
    if tokens is None:
        return None
    turns = trace.columns.is_kind("decision")
    stops = np.array(
        [e.decision is not None and e.decision.type == "stop" for e in trace.events], dtype=bool
    )
    at = -turn * (turns & ~stops) - token * tokens
    return Stream(at, end=end_of(trace))


def step_cost(step: int, max_steps: int, growth: float = 1.0) -> float:
    """Puppeteer's price of step `step` (from 0): `.1·ln(1 + g·ŝ) / ln(1 + g)`, `ŝ = (s+1)/(S+1)`.

    It reaches .1 at `step = max_steps`.
    """
    place = (step + 1) / (max_steps + 1)
    return float(SCALE * np.log1p(growth * place) / np.log1p(growth))


def step_costs(trace: Trace, max_steps: Count, factor: NonPositive = -1.0) -> Stream | None:
    """Puppeteer's reward of steps, and its bonus at the end (arXiv 2505.19591, and its code).

    A turn earns `factor · c(s) · tokens / 10⁵` in step `s`, the number of turns of agents without
    a parent before it; the end earns `c/2` for a success (`R > 0`) and `-c/2` for a failure, so a
    late success earns slightly more. The last turn is the end, and pays no tokens. The code has
    `factor` -1.5 for web search. `None` without an outcome, and where tokens are not known.
    """
    earned, tokens = outcome(trace), _tokens(trace)
    rows = np.flatnonzero(trace.columns.is_kind("decision"))
    if earned is None or tokens is None or not len(rows):
        return None
    spawned = {event.to for event in trace.events if event.kind == "spawn"}
    lead = np.array([trace.events[row].agent not in spawned for row in rows.tolist()])
    step = np.maximum(np.cumsum(lead) - 1, 0)
    costs = np.array([step_cost(each, max_steps) for each in step.tolist()])
    at = np.zeros(len(trace.events))
    at[rows[:-1]] = factor * costs[:-1] * tokens[rows[:-1]] / PER_TOKENS
    bonus = BONUS * float(costs[-1])
    return Stream(at, end=end_of(trace), final=bonus if earned.total > 0 else -bonus)


def token_budget(trace: Trace, budget: Positive = 1e4) -> Stream | None:
    """Minus the share of `budget` tokens that were read or sampled, at most 1, at the end.

    `None` where a turn does not say how many it took.
    """
    tokens = _tokens(trace)
    return None if tokens is None else final(trace, -min(float(tokens.sum()) / budget, 1.0))


def overlong(trace: Trace, soft: NonNegative = 3000, hard: Positive = 5000) -> Stream | None:
    """Minus how far the most sampled tokens of a turn lie between `soft` and `hard`, from 0 to 1.

    `None` where no turn says how many it sampled.

    Raises `StrettoError` where `soft` is not less than `hard`.
    """
    if soft >= hard:
        raise StrettoError(f"soft = {soft:g} must be less than hard = {hard:g}", "soft")
    sampled = read_and_written(trace)[1, trace.columns.is_kind("decision")]
    if not len(sampled) or np.isnan(sampled).all():
        return None
    longest = float(np.nanmax(sampled))
    return final(trace, -min(max((longest - soft) / (hard - soft), 0.0), 1.0))


def _tokens(trace: Trace) -> Floats | None:
    """Tokens read and sampled with every event, 0 for what is no turn; `None` where unknown."""
    turns = trace.columns.is_kind("decision")
    spent = read_and_written(trace).sum(axis=0)
    return None if np.isnan(spent[turns]).any() else np.where(turns, spent, 0.0)
