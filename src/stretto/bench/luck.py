"""Scores without luck, for families whose outcome is a draw.

Thirty draws of right or wrong are a noisy mean: the better of two policies often looks the worse
one. Where a family knows the chances exactly, an episode counts with what it was worth in
expectation, given what was seen in it. Both numbers below have the mean that the plain ones have,
and far less noise; that of the oracle has none (control variates; as DIVAT for poker, Billings and
Kan, ICGA Journal 2006).
"""

from collections.abc import Mapping
from importlib import import_module

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.team.protocols import Task
from stretto.trace import Trace


class Fair(Struct, frozen=True):
    """What an episode was worth in expectation; `None` where nothing is drawn, or not known."""

    outcome: float | None = None
    """Probability that the answer is right, given all that was seen."""
    score: float | None = None
    """Estimate of the policy's expected score, in which the oracle always has the best one."""


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
    "jury": "stretto.tasks.jury_luck",
    "scouts": "stretto.tasks.scouts_luck",
}
"""Family to the module that takes luck out: `expected_outcome` and `expected_score` of a trace."""
