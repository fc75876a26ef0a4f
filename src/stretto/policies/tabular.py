"""One logit for every pair of observation and choice: exact, fast, and knows nothing in advance."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import torch
from torch import Tensor
from torch.nn import Parameter

from stretto.errors import StrettoError
from stretto.files import read_bytes, write_whole
from stretto.team.noise import gumbel_argmax
from stretto.team.protocols import Answer, Ask

SLOTS = 20_000
"""Most pairs of observation and choice."""


class Tabular:
    """A softmax policy over the legal candidates; starts out uniform."""

    def __init__(self) -> None:
        self._logits = Parameter(torch.zeros(SLOTS, dtype=torch.float64))
        self._slot: dict[tuple[str, str], int] = {}
        self._version = 0
        self._known: dict[tuple[str, tuple[str, ...]], tuple[float, ...]] = {}

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read what `export` wrote."""
        table: dict[str, dict[str, float]] = msgspec.json.decode(read_bytes(folder / "table.json"))
        rows = [
            (prompt, choice, logit) for prompt in table for choice, logit in table[prompt].items()
        ]
        pairs = [[prompt, choice] for prompt, choice, _ in rows]
        logits = torch.tensor([logit for _, _, logit in rows], dtype=torch.float64)
        policy = cls()
        policy.restore({"pairs": pairs, "logits": logits, "version": 0})
        return policy

    @property
    def about(self) -> dict[str, Any]:
        """Kind, and how many pairs it has met."""
        return {"kind": "tabular", "parameters": len(self._slot), "dtype": "float64"}

    @property
    def tokens_generated(self) -> int:
        """A table reads no tokens."""
        return 0

    @property
    def tokens_trained(self) -> int:
        """A table reads no tokens."""
        return 0

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Sample by Gumbel-max; each distinct situation is computed once a version."""
        fresh = {(ask.prompt, ask.candidates): ask for ask in asks}
        missing = [ask for situation, ask in fresh.items() if situation not in self._known]
        with torch.no_grad():
            for ask, log_probs in zip(missing, self.log_probs(missing), strict=True):
                self._known[ask.prompt, ask.candidates] = tuple(log_probs.tolist())
        return [self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Answer:
        logprobs = self._known[ask.prompt, ask.candidates]
        chosen = gumbel_argmax(ask.key, ask.candidates, logprobs)
        return Answer(chosen, f"tabular@{self._version}", logprobs)

    def log_probs(self, asks: Sequence[Ask]) -> list[Tensor]:
        """Log-softmax over the logits of each ask's candidates."""
        slots = [self._slots(ask) for ask in asks]
        # One gather for all asks: the gradient of each gather is as long as the whole table.
        logits = self._logits[[slot for own in slots for slot in own]]
        each = logits.split([len(own) for own in slots])
        return [torch.log_softmax(own, dim=0) for own in each]

    def _slots(self, ask: Ask) -> list[int]:
        slots = [
            self._slot.setdefault((ask.prompt, candidate), len(self._slot))
            for candidate in ask.candidates
        ]
        if len(self._slot) > SLOTS:
            hint = "use a language model, or a task with fewer observations"
            raise StrettoError(f"more than {SLOTS} pairs of observation and choice", hint=hint)
        return slots

    def parameters(self) -> Iterable[Parameter]:
        """The logits."""
        return (self._logits,)

    def updated(self) -> None:
        """Forget what was computed for the old logits."""
        self._version += 1
        self._known.clear()

    def state(self) -> dict[str, Any]:
        """Logits and what they stand for."""
        pairs = [list(pair) for pair in self._slot]
        logits = self._logits.detach()[: len(pairs)].clone()
        return {"logits": logits, "pairs": pairs, "version": self._version}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        self._slot = {(pair[0], pair[1]): slot for slot, pair in enumerate(state["pairs"])}
        with torch.no_grad():
            self._logits.zero_()
            self._logits[: len(self._slot)] = state["logits"]
        self._version = state["version"]
        self._known.clear()

    def export(self, folder: Path) -> None:
        """Write `table.json`: observation to choice to logit."""
        table: dict[str, dict[str, float]] = {}
        for (prompt, candidate), logit in zip(self._slot, self._logits.tolist(), strict=False):
            table.setdefault(prompt, {})[candidate] = logit
        folder.mkdir(exist_ok=True)
        write_whole(folder / "table.json", [msgspec.json.format(msgspec.json.encode(table))])
