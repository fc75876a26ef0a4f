"""A causal language model that chooses among legal candidates, with exact probabilities.

Every distinct prefix of all prompts of a call is computed once, forward and backward: the prompts
are laid out as token trees (`trie`). On prompts that share most of their words this is three to
four times as fast as a padded batch, and the gradient is the same to rounding.

Weights are 32-bit: a 16-bit weight cannot hold the small steps of training. The arithmetic is
16-bit only on a processor with matrix units for it, where it is faster; else `lm_linear` does it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from msgspec import Struct
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

from stretto.errors import StrettoError
from stretto.policies import models
from stretto.policies.lm_linear import use_onednn
from stretto.policies.trie import (
    ChoiceTrie,
    Ids,
    TokenTree,
    choice_trie,
    cut,
    token_tree,
    tree_mask,
)

Pair = tuple[str, tuple[str, ...]]
"""A rendered prompt and the legal candidates."""

BUDGET = 512
"""Tokens of one tree beyond its first prompt: more would share more, but attention is quadratic."""


class Distribution(Struct, frozen=True, eq=False):
    """What the model would choose at one prompt."""

    logprobs: NDArray[np.float64]
    """Log-probability of each candidate (nats)."""
    prompt_ids: Ids
    trie: ChoiceTrie
    """Holds the tokens of each candidate."""
    table: NDArray[np.float64]
    """Log-probability of each entry of `trie.children.ravel()` at its node."""

    def token_logprobs(self, candidate: int) -> tuple[float, ...]:
        """Log-probabilities of the tokens `trie.ids[candidate]`; 0 for a forced token."""
        path = self.trie.paths[candidate, : len(self.trie.ids[candidate])]
        return tuple(float(self.table[place]) if place >= 0 else 0.0 for place in path)


class LanguageModel:
    """A causal model and its tokenizer. Not safe for several threads at once."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """`model` is a causal model of transformers with full attention, in 32-bit weights.

        Raises `StrettoError` for a model whose layers do not all see the whole prompt.
        """
        _require_full_attention(model.config)
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._half = model.device.type == "cpu" and _has_bf16_units()
        self._known: dict[Pair, Distribution] = {}
        self._encode = lru_cache(maxsize=4096)(self._encoded)
        self._trie = lru_cache(maxsize=4096)(self._build_trie)
        self.render = lru_cache(maxsize=4096)(partial(render, tokenizer))
        self.tokens_generated = 0
        """Tokens read to decide, so far; each distinct prefix of a call once."""
        self.tokens_trained = 0
        """Tokens read forward and backward, so far; each distinct prefix of a call once."""

    @classmethod
    def open(cls, name: str) -> Self:
        """Load `smollm2`, a local folder or a model of a hub; fetches what is not there yet."""
        model, tokenizer = models.load(models.resolve(name), "float32")
        if not _has_bf16_units():
            use_onednn(model)
        return cls(model, tokenizer)

    @property
    def dtype_name(self) -> str:
        """Precision of the arithmetic; weights are always 32-bit."""
        return "bfloat16" if self._half else "float32"

    def parameters(self) -> Iterable[Parameter]:
        """All weights, tied ones once."""
        return self._model.parameters()

    def distributions(self, pairs: Sequence[Pair]) -> list[Distribution]:
        """What the model would choose, for every pair in order.

        Each distinct pair is computed once until `updated` is called. Order and duplicates do not
        change a bit of the result; which other pairs are computed along changes rounding only.
        """
        missing = set(pairs) - self._known.keys()
        with torch.no_grad():
            tables, read = self._tables(missing)
        self.tokens_generated += read
        for pair in missing:
            self._known[pair] = self._distribution(pair, tables[pair])
        return [self._known[pair] for pair in pairs]

    def differentiable(self, pairs: Sequence[Pair]) -> list[Tensor]:
        """Log-probabilities of the candidates of every pair, as tensors with gradients.

        One float64 tensor of shape (candidates,) a pair, in order; equal pairs share one tensor.
        """
        tables, read = self._tables(set(pairs))
        self.tokens_trained += read
        logprobs = {pair: _sum_paths(tables[pair], self._trie(pair[1])) for pair in tables}
        return [logprobs[pair] for pair in pairs]

    def updated(self) -> None:
        """Forget what was computed with the old weights."""
        self.forget()

    def forget(self) -> None:
        """Forget what was computed, so that what comes next does not depend on what came before.

        It does so by rounding only: a pair is computed with the company of its first call.
        """
        self._known.clear()

    def state(self) -> dict[str, Tensor]:
        """The weights by name; they are the live ones, not copies."""
        return self._model.state_dict()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Take over saved weights."""
        self._model.load_state_dict(state)
        self.updated()

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer as a folder that `open` reads, whole or not at all."""
        models.write_folder(folder, partial(models.save, self._model, self._tokenizer))

    def _encoded(self, prompt: str) -> Ids:
        ids = tuple(self._tokenizer.encode(prompt, add_special_tokens=False))
        most = getattr(self._model.config, "max_position_embeddings", len(ids))
        if not 0 < len(ids) <= most:
            hint = "shorten what the agent sees, or take a model with a longer context"
            raise StrettoError(f"{len(ids)} tokens; the model reads 1 to {most}", "prompt", hint)
        return ids

    def _build_trie(self, candidates: tuple[str, ...]) -> ChoiceTrie:
        ids = [tuple(self._tokenizer.encode(c, add_special_tokens=False)) for c in candidates]
        return choice_trie(ids, self._tokenizer.eos_token_id)

    def _distribution(self, pair: Pair, table: Tensor) -> Distribution:
        trie = self._trie(pair[1])
        logprobs = _sum_paths(table, trie).cpu().numpy()
        logprobs.flags.writeable = False
        return Distribution(logprobs, self._encode(pair[0]), trie, table.cpu().numpy().ravel())

    def _tables(self, pairs: Iterable[Pair]) -> tuple[dict[Pair, Tensor], int]:
        """Log-probabilities at the branching nodes of each pair, and how many tokens were read."""
        order = sorted(pairs, key=lambda pair: (self._encode(pair[0]), pair[1]))
        tries = [self._trie(pair[1]) for pair in order]
        units = [
            [self._encode(pair[0]) + node for node in trie.nodes]
            for pair, trie in zip(order, tries, strict=True)
        ]
        tables: dict[Pair, Tensor] = {}
        read = 0
        for run in cut(units, BUDGET):
            tree = token_tree([ids for unit in units[run] for ids in unit])
            logits = self._logits(tree)
            row = {ids: index for index, ids in enumerate(tree.ends)}
            read += tree.size
            for pair, trie, unit in zip(order[run], tries[run], units[run], strict=True):
                tables[pair] = _restrict(logits[[row[ids] for ids in unit]], trie)
        return tables, read

    def _logits(self, tree: TokenTree) -> Tensor:
        """Next-token logits at the ends of a tree; shape (ends, vocabulary)."""
        device = self._model.device
        if not tree.size:
            return torch.zeros(0, 1, device=device)
        mask = torch.from_numpy(tree_mask(tree))
        with torch.autocast(device.type, torch.bfloat16, enabled=self._half):
            output = self._model(
                input_ids=torch.from_numpy(tree.tokens)[None].to(device),
                attention_mask=mask[None, None].to(device),
                position_ids=torch.from_numpy(tree.positions)[None].to(device),
                logits_to_keep=torch.tensor(list(tree.ends.values()), device=device),
                use_cache=False,
            )
        return output.logits[0]


def render(tokenizer: Any, system: str, user: str) -> str:
    """Write a prompt as the model was trained to read it.

    A model with a chat template gets a system and a user message and the beginning of its answer;
    any other gets plain text. An empty `system` is left out.
    """
    if tokenizer.chat_template is None:
        start = tokenizer.bos_token if tokenizer.encode("") == [tokenizer.bos_token_id] else ""
        return start + (f"{system}\n" if system else "") + f"{user}\n"
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": user})
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def _restrict(logits: Tensor, trie: ChoiceTrie) -> Tensor:
    """Log-softmax over the children of each node; shape (nodes, widest), -inf where padded."""
    children = torch.from_numpy(trie.children).to(logits.device)
    legal = logits.gather(1, children.clamp(min=0)).double()
    return torch.log_softmax(legal.masked_fill(children < 0, float("-inf")), dim=1)


def _sum_paths(table: Tensor, trie: ChoiceTrie) -> Tensor:
    """Log-probability of each candidate: the sum of its decisions; shape (candidates,)."""
    nothing = table.new_zeros(1)  # what the padding, -1, points at
    return torch.cat([table.flatten(), nothing])[torch.from_numpy(trie.paths)].sum(dim=1)


def _require_full_attention(config: Any) -> None:
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    if kinds:
        what = f"layers of the kind {', '.join(sorted(kinds))} cannot read prompts as a tree"
        raise StrettoError(what, "model", "take a model with full attention in every layer")


def _has_bf16_units() -> bool:
    """Whether 16-bit matrix products have units of their own.

    Vector instructions for them (`avx512_bf16`) are not enough: there a step took half as long
    again as in 32 bits.
    """
    flags = Path("/proc/cpuinfo")
    return flags.exists() and "amx_bf16" in flags.read_text()
