"""E1: how well the task was solved (benchmark-and-safety §4)."""

from collections.abc import Sequence
from math import comb

import numpy as np

from stretto.bench.luck import Fair
from stretto.columns import Floats
from stretto.tasks.scripts import Yardstick, score
from stretto.team.protocols import Task
from stretto.trace import Trace

Values = dict[str, float | None]


def success(task: Task, yard: Yardstick, trace: Trace, fair: Fair) -> Values:
    """Outcome, success, and utility `U = S - c_spawn·spawns - c_t·T_P` of one episode.

    - `score`: the outcome, in expectation where the family knows the chances
    - `judged`: what regret is taken of: the score, less prices where the family counts them
    - `luck`: by how much the world of the episode was kind to the oracle
    """
    outcome, utility = trace.reward("outcome"), score(task, trace, priced=True)
    told = trace.reward("success")
    solved = told if told is not None or outcome is None else float(outcome >= 1 - 1e-9)
    expected = outcome if fair.outcome is None else fair.outcome
    judged = expected
    if yard.priced and expected is not None and outcome is not None and utility is not None:
        judged = expected - (outcome - utility)
    return {
        "outcome": outcome,
        "score": expected,
        "success": solved,
        "utility": utility,
        "judged": judged,
        "luck": None if fair.score is None or judged is None else judged - fair.score,
        "best": yard.best,
        "chance": yard.random,
    }


def regret(judged: Floats, best: Floats, chance: Floats) -> Floats:
    """`ρ = (U* - U) / (U* - U_rand)` of means, clipped to [0, 1]; NaN where chance is best.

    Of means and not of episodes: a single episode of chance may be as good as the best. Shapes are
    (..., episodes), and (...) of what is returned.
    """
    best = best.mean(axis=-1)
    scale = best - chance.mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.clip((best - judged.mean(axis=-1)) / scale, 0.0, 1.0)
    return np.where(scale > 0, lost, np.nan)


def pass_hat(attempts: Sequence[int], successes: Sequence[int], k: int) -> float | None:
    """`pass^k`: the chance that `k` attempts drawn from those of an instance all succeed.

    The mean over instances of `C(c, k) / C(n, k)` with `c` successes of `n` attempts (τ-bench).
    `None` where some instance has fewer than `k` attempts.
    """
    if not attempts or min(attempts) < k:
        return None
    shares = [comb(c, k) / comb(n, k) for n, c in zip(attempts, successes, strict=True)]
    return float(np.mean(shares))
