"""What a task with computable truth offers: its optimum, and the exact value of any policy."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stretto.tasks import imported
from stretto.team.protocols import Ask, Choice, Policy, Task

Probabilities = Sequence[NDArray[np.float64]]
"""One distribution over the candidates for each choice, in the order of `Oracle.choices`."""


class Oracle(Protocol):
    """The exact side of a task. Values are expected cost-adjusted returns of an episode."""

    @property
    def role(self) -> str:
        """Whose decisions it judges."""
        ...

    @property
    def choices(self) -> Sequence[Choice]:
        """Every distinct decision that this role can meet."""
        ...

    @property
    def optimum(self) -> float:
        """Value of the best policy."""
        ...

    @property
    def baselines(self) -> Mapping[str, float]:
        """Values of simpler policies, each optimised exactly within its kind."""
        ...

    def value(self, probabilities: Probabilities) -> float:
        """Value of the policy that decides with these probabilities."""
        ...

    def optimal(self) -> Probabilities:
        """An optimal policy, as seen through the observations.

        States that read alike may want different decisions: they are weighed by how often the
        optimum visits them.
        """
        ...

    def visits(self, probabilities: Probabilities) -> NDArray[np.float64]:
        """Expected number of visits an episode to each of `choices` under a policy."""
        ...


def policy_probabilities(task: Task, oracle: Oracle, policy: Policy) -> Probabilities:
    """How `policy` decides at each of the oracle's choices.

    Raises `ValueError` for a policy that states no log-probabilities.
    """
    asks = [
        Ask("oracle", task.harness.system, choice.observation, choice.candidates, oracle.role, 0)
        for choice in oracle.choices
    ]
    answers = policy.decide(asks)
    if not all(answer.logprobs for answer in answers):
        raise ValueError("this policy states no log-probabilities: its value is not computable")
    return [np.exp(np.array(answer.logprobs)) for answer in answers]


ORACLES = {
    "branch": "stretto.tasks.games.oracle:game_oracle",
    "ladder": "stretto.tasks.games.oracle:game_oracle",
    "scouts": "stretto.tasks.scouts.oracle:scouts_oracle",
}
"""Family to the function that makes the oracle of a task."""


def oracle_of(task: Task) -> Oracle | None:
    """The oracle of a task, or `None` for a family without a computable value."""
    home = ORACLES.get(task.spec["family"])
    if home is None:
        return None
    return imported(home)(task)
