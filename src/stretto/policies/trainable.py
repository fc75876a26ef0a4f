"""What the training loop needs from a policy, beyond that it decides."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor
from torch.nn import Parameter

from stretto.team.protocols import Answer, Ask


class Trainable(Protocol):
    """A policy with parameters in torch."""

    @property
    def about(self) -> dict[str, Any]:
        """Facts for the run's header: kind, model, number of parameters, data type."""
        ...

    @property
    def tokens_generated(self) -> int:
        """Tokens that went through the policy to decide, so far; each distinct prompt once."""
        ...

    @property
    def tokens_trained(self) -> int:
        """Tokens that went forward and backward in updates, so far; each distinct prompt once."""
        ...

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Sample by Gumbel-max over the keyed noise of each ask; states all log-probabilities."""
        ...

    def log_probs(self, asks: Sequence[Ask]) -> list[Tensor]:
        """Differentiable log-probabilities over the candidates of each ask."""
        ...

    def parameters(self) -> Iterable[Parameter]:
        """What the optimiser changes."""
        ...

    def updated(self) -> None:
        """Say that the parameters changed: a new version."""
        ...

    def state(self) -> dict[str, Any]:
        """Tensors and numbers that `restore` brings back exactly."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        ...

    def export(self, folder: Path) -> None:
        """Write the learned policy for use elsewhere, whole or not at all."""
        ...
