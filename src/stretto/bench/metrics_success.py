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

    `score` is the outcome without luck. `judged` is what regret is taken of: the utility where the
    family counts prices, else the outcome, without luck.
    """
    outcome = trace.reward("outcome")
    told = trace.reward("success")
    solved = told if told is not None or outcome is None else float(outcome >= 1 - 1e-9)
    return {
        "outcome": outcome,
        "score": outcome if fair.outcome is None else fair.outcome,
        "success": solved,
        "utility": score(task, trace, priced=True),
        "judged": score(task, trace, yard.priced) if fair.score is None else fair.score,
        "best": yard.best,
        "chance": yard.random,
    }


def regret(judged: Floats, best: Floats, chance: Floats) -> float:
    """`ρ = (U* - U) / (U* - U_rand)` of means, clipped to [0, 1]; NaN where chance is best.

    Of means and not of episodes: a single episode of chance may be as good as the best.
    """
    scale = float(np.mean(best) - np.mean(chance))
    if scale <= 0:
        return float("nan")
    return float(np.clip((np.mean(best) - np.mean(judged)) / scale, 0.0, 1.0))


def pass_hat(attempts: Sequence[int], successes: Sequence[int], k: int) -> float | None:
    """`pass^k`: the chance that `k` attempts drawn from those of an instance all succeed.

    The mean over instances of `C(c, k) / C(n, k)` with `c` successes of `n` attempts (τ-bench).
    `None` where some instance has fewer than `k` attempts.
    """
    if not attempts or min(attempts) < k:
        return None
    shares = [comb(c, k) / comb(n, k) for n, c in zip(attempts, successes, strict=True)]
    return float(np.mean(shares))
