"""The language model as a policy of a team: renders, samples, and says what training needs."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from stretto.policies.lm import Distribution, LanguageModel, Pair
from stretto.team.noise import gumbel_argmax
from stretto.team.protocols import Answer, Ask
from stretto.trace import Tokens


class LmPolicy:
    """Chooses among the legal candidates with exact probabilities."""

    def __init__(self, model: str) -> None:
        """`model` is `smollm2`, a local folder or the name of a model on a hub."""
        self._name = model
        self._model = LanguageModel.open(model)
        self._version = 0

    @property
    def about(self) -> dict[str, Any]:
        """Kind, model, number of parameters and precision of the arithmetic."""
        count = sum(parameter.numel() for parameter in self.parameters())
        dtype = self._model.dtype_name
        return {"kind": "lm", "model": self._name, "parameters": count, "dtype": dtype}

    @property
    def tokens_generated(self) -> int:
        """Tokens read to decide, so far; each distinct prefix once a version."""
        return self._model.tokens_generated

    @property
    def tokens_trained(self) -> int:
        """Tokens read forward and backward, so far; each distinct prefix once an update."""
        return self._model.tokens_trained

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Sample by Gumbel-max over the keyed noise of each ask."""
        found = self._model.distributions([self._pair(ask) for ask in asks])
        return [self._answer(ask, each) for ask, each in zip(asks, found, strict=True)]

    def log_probs(self, asks: Sequence[Ask]) -> list[Tensor]:
        """Differentiable log-probabilities over the candidates of each ask."""
        return self._model.differentiable([self._pair(ask) for ask in asks])

    def parameters(self) -> Iterable[Parameter]:
        """All weights."""
        return self._model.parameters()

    def updated(self) -> None:
        """Forget what was computed with the old weights."""
        self._version += 1
        self._model.updated()

    def forget(self) -> None:
        """Choose from now on as a policy would that was just opened, rounding included."""
        self._model.forget()

    def state(self) -> dict[str, Any]:
        """Weights and version."""
        return {"weights": self._model.state(), "version": self._version}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self._model.restore(state["weights"])
        self._version = state["version"]

    def export(self, folder: Path) -> None:
        """Write weights and tokenizer as a folder that `LmPolicy` opens."""
        self._model.save(folder)

    def _pair(self, ask: Ask) -> Pair:
        return self._model.render(ask.system, ask.prompt), ask.candidates

    def _answer(self, ask: Ask, found: Distribution) -> Answer:
        logprobs = _as_tuple(found)
        chosen = gumbel_argmax(ask.key, ask.candidates, logprobs)
        completion = found.trie.ids[chosen]
        return Answer(
            chosen=chosen,
            policy=f"{self._name}@{self._version}",
            logprobs=logprobs,
            prompt_ids=found.prompt_ids,
            completion_ids=completion,
            completion_logprobs=found.token_logprobs(chosen),
            tokens=Tokens(input=len(found.prompt_ids), output=len(completion)),
        )


@lru_cache(maxsize=4096)
def _as_tuple(found: Distribution) -> tuple[float, ...]:
    # A sum of probabilities may exceed 1 by rounding; a log-probability may not exceed 0.
    return tuple(min(value, 0.0) for value in found.logprobs.tolist())
