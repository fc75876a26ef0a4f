"""Token tries: exact probabilities over legal choices, and prompts that share their beginnings.

Pure functions on token ids; `lm` runs a model over what they lay out.

A *choice trie* holds the token sequences of all legal candidates. A model restricted to them
decides only at nodes with more than one child, so the log-probability of a candidate is the sum,
over the branching nodes on its path, of the log-softmax restricted to the children of that node.
All other tokens are forced: they cost nothing, neither probability nor computation.

A *token tree* holds everything that a model has to read, each distinct prefix once. It is one row
of tokens with a mask that lets every token see its ancestors only.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError

Ids = tuple[int, ...]
"""Token ids, in reading order."""

IntArray = NDArray[np.int64]


class ChoiceTrie(Struct, frozen=True, eq=False):
    """The legal candidates as token sequences, laid out for a model."""

    ids: tuple[Ids, ...]
    """Tokens that write each candidate; they end with the end token where a longer one goes on."""
    nodes: tuple[Ids, ...]
    """Branching nodes, each as the tokens that lead to it."""
    children: IntArray
    """Legal next tokens at each node; shape (nodes, widest), padded with -1."""
    paths: IntArray
    """For each token of each candidate its place in `children.ravel()`, -1 for a forced token and
    for padding; shape (candidates, longest).
    """


def choice_trie(candidates: Sequence[Ids], end: int) -> ChoiceTrie:
    """Lay out candidates, given by their token ids; `end` is the token that ends a choice.

    Raises `StrettoError` where there is no candidate, two are the same, or one contains `end`.
    """
    _check(candidates, end)
    ended = [(*ids, end) for ids in candidates]
    follow: dict[Ids, set[int]] = {}
    for ids in ended:
        for depth, token in enumerate(ids):
            follow.setdefault(ids[:depth], set()).add(token)
    nodes = {node: sorted(tokens) for node, tokens in sorted(follow.items()) if len(tokens) > 1}
    width = max(map(len, nodes.values()), default=0)
    place: dict[Ids, int] = {
        (*node, token): row * width + column
        for row, (node, tokens) in enumerate(nodes.items())
        for column, token in enumerate(tokens)
    }
    written = tuple(ids if ids[:-1] in nodes else ids[:-1] for ids in ended)
    paths = [[place.get(ids[:depth], -1) for depth in range(1, len(ids) + 1)] for ids in written]
    return ChoiceTrie(written, tuple(nodes), _table(list(nodes.values())), _table(paths))


def _check(candidates: Sequence[Ids], end: int) -> None:
    if not candidates:
        raise StrettoError("a decision needs at least one candidate", "candidates")
    first: dict[Ids, int] = {}
    for index, ids in enumerate(candidates):
        if end in ids:
            hint = "leave special tokens out of candidates"
            raise StrettoError("contains the end token", f"candidates[{index}]", hint)
        if first.setdefault(ids, index) != index:
            what = f"is written with the same tokens as candidates[{first[ids]}]"
            raise StrettoError(what, f"candidates[{index}]", "give each candidate its own words")


def _table(rows: Sequence[Sequence[int]]) -> IntArray:
    table = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int64)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


class TokenTree(Struct, frozen=True, eq=False):
    """Sequences that share their beginnings, as one row of tokens; parents come first."""

    tokens: IntArray
    """Token ids; shape (size,)."""
    positions: IntArray
    """Distance of each token from the beginning of its sequence."""
    parents: IntArray
    """Place of the token before it, -1 for a first token."""
    ends: dict[Ids, int]
    """Where each sequence that was asked for ends: the place whose output predicts what follows."""

    @property
    def size(self) -> int:
        """Number of tokens that a model has to read."""
        return len(self.tokens)


def token_tree(sequences: Sequence[Ids]) -> TokenTree:
    """Merge sequences of at least one token each into a tree."""
    place: dict[tuple[int, int], int] = {}
    positions: list[int] = []
    ends: dict[Ids, int] = {}
    for ids in sequences:
        here = -1
        for depth, token in enumerate(ids):
            here = place.setdefault((here, token), len(place))
            if here == len(positions):
                positions.append(depth)
        ends[ids] = here
    edges = np.array(list(place), dtype=np.int64).reshape(-1, 2)
    return TokenTree(edges[:, 1], np.array(positions, dtype=np.int64), edges[:, 0], ends)


def tree_mask(tree: TokenTree) -> NDArray[np.bool_]:
    """Which token (row) sees which (column): itself and its ancestors; shape (size, size)."""
    mask = np.eye(tree.size, dtype=np.bool_)
    for row, parent in enumerate(tree.parents):
        if parent >= 0:
            mask[row] |= mask[parent]
    return mask


def cut(units: Sequence[Sequence[Ids]], budget: int) -> Iterator[slice]:
    """Cut a sorted list of units into runs that are read as one tree each.

    A unit (the sequences of one decision) is never split. A run ends once it holds `budget` tokens
    beyond its first sequence, so a long shared beginning does not by itself cause a cut.
    """
    start, own, before = 0, 0, Ids()
    for index, unit in enumerate(units):
        if own >= budget:
            yield slice(start, index)
            start, own, before = index, 0, Ids()
        for ids in unit:
            own += _new_tokens(before, ids) if before else 0
            before = ids
    if units:
        yield slice(start, len(units))


def _new_tokens(before: Ids, ids: Ids) -> int:
    pairs = enumerate(zip(before, ids, strict=False))
    shared = next((depth for depth, (a, b) in pairs if a != b), min(len(before), len(ids)))
    return len(ids) - shared
