"""Scores without luck, for families whose outcome is a draw.

Thirty draws of right or wrong are a noisy mean: the better of two policies often looks the worse
one. Where a family knows the chances exactly, an episode counts with what it was worth in
expectation, given what was seen in it, and the luck of its world is a control variate: what the
oracle would have made of it, less what the oracle makes on average. Means stay what they are, with
far less noise; that of the oracle has none (as DIVAT for poker: Billings and Kan, ICGA Journal,
2006).
"""

from collections.abc import Mapping
from importlib import import_module

import numpy as np
from msgspec import Struct

from stretto.columns import Floats
from stretto.errors import StrettoError
from stretto.team.protocols import Task
from stretto.trace import Trace


class Fair(Struct, frozen=True):
    """What an episode was worth in expectation; `None` where nothing is drawn, or not known."""

    outcome: float | None = None
    """Probability that the answer is right, given all that was seen."""
    score: float | None = None
    """The same less prices and the luck of the world: the oracle always has the best one."""


def fair(task: Task, trace: Trace) -> Fair:
    """The values without luck of an episode."""
    module = LUCK.get(task.spec["family"])
    if module is None:
        return Fair()
    family = import_module(module)
    outcome = family.expected_outcome(task, trace)
    try:
        return Fair(outcome, family.expected_score(task, trace))
    except StrettoError:  # too many cases to enumerate
        return Fair(outcome)


LUCK: Mapping[str, str] = {
    "jury": "stretto.tasks.jury.luck",
    "scouts": "stretto.tasks.scouts.luck",
}
"""Family to the module that takes luck out: `expected_outcome` and `expected_score` of a trace."""


def without_luck(judged: Floats, best: Floats, luck: Floats) -> Floats:
    """Judged scores less `β` times the luck of their worlds, with the `β` that leaves least noise.

    `β` is the regression of what a policy lost against the best on its luck (control variates with
    an estimated coefficient; Owen, *Monte Carlo theory, methods and examples*, §8.9). It is 1 for
    the oracle, whose luck is all that moves it, and near 0 for a policy that sees nothing.

    Args:
        judged: Score of every episode; shape (..., episodes), as of all others.
        best: Expected score of the oracle in it.
        luck: By how much its world was kind to the oracle; NaN where that is not known, as of a
            forfeit, which is left as it is.
    """
    known = ~np.isnan(luck)
    kind = np.where(known, luck, 0.0)
    count = np.maximum(known.sum(axis=-1, keepdims=True), 1)
    spread = np.where(known, kind - kind.sum(axis=-1, keepdims=True) / count, 0.0)
    power = (spread**2).sum(axis=-1, keepdims=True)
    slope = (spread * (judged - best)).sum(axis=-1, keepdims=True)
    beta = np.divide(slope, power, out=np.ones_like(power), where=power > TINY)
    return judged - beta * kind


TINY = 1e-18
"""Luck that varies less is none."""
