import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.policies.trie import choice_trie, cut, token_tree, tree_mask

END = 0
IDS = st.lists(st.integers(1, 4), max_size=4).map(tuple)
CANDIDATES = st.lists(IDS, min_size=1, max_size=8, unique=True)
SEQUENCES = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5).map(tuple), max_size=8)


def score(node, token):
    """A stand-in for a model: any fixed function of what was read and what may follow."""
    return float(np.sin(hash((node, token)) % 1000))


def table_of(trie):
    rows = []
    for node, children in zip(trie.nodes, trie.children, strict=True):
        scores = np.array([score(node, token) if token >= 0 else -np.inf for token in children])
        rows.append(scores - np.log(np.exp(scores).sum()))
    return np.concatenate([*rows, [0.0]])


def by_hand(candidates):
    """Score whole sequences, renormalising over the legal tokens at every step."""
    ended = [(*ids, END) for ids in candidates]
    result = []
    for ids in ended:
        total = 0.0
        for depth, token in enumerate(ids):
            legal = {other[depth] for other in ended if other[:depth] == ids[:depth]}
            scores = {each: score(ids[:depth], each) for each in legal}
            total += scores[token] - np.log(sum(np.exp(list(scores.values()))))
        result.append(total)
    return np.array(result)


def test_layout_of_three_candidates():
    trie = choice_trie([(7, 5), (7, 3), (9,)], END)
    assert trie.ids == ((7, 5), (7, 3), (9,))
    assert trie.nodes == ((), (7,))
    assert trie.children.tolist() == [[7, 9], [3, 5]]
    assert trie.paths.tolist() == [[0, 3], [0, 2], [1, -1]]


def test_forced_tokens_are_no_decisions():
    trie = choice_trie([(7, 1, 5), (7, 1, 3, 8)], END)
    assert trie.nodes == ((7, 1),)
    assert trie.paths.tolist() == [[-1, -1, 1, -1], [-1, -1, 0, -1]]


def test_a_candidate_that_another_continues_ends_with_the_end_token():
    trie = choice_trie([(7,), (7, 5)], END)
    assert trie.ids == ((7, END), (7, 5))
    assert trie.nodes == ((7,),)
    assert trie.children.tolist() == [[END, 5]]


def test_a_single_candidate_needs_no_node():
    trie = choice_trie([(7, 5)], END)
    assert trie.nodes == ()
    assert trie.paths.tolist() == [[-1, -1]]


@given(CANDIDATES)
def test_probabilities_are_those_of_enumeration_and_sum_to_one(candidates):
    trie = choice_trie(candidates, END)
    logprobs = table_of(trie)[trie.paths].sum(axis=1)
    np.testing.assert_allclose(logprobs, by_hand(candidates), atol=1e-12)
    assert np.exp(logprobs).sum() == pytest.approx(1.0)


@given(CANDIDATES)
def test_written_tokens_tell_candidates_apart(candidates):
    trie = choice_trie(candidates, END)
    for ids, written in zip(candidates, trie.ids, strict=True):
        assert written in (ids, (*ids, END))
    for first in trie.ids:
        assert not any(other[: len(first)] == first for other in trie.ids if other is not first)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "at least one"),
        ([(1,), (2,), (1,)], r"candidates\[2\]: is written with the same tokens as .*0\]"),
        ([(1, END)], r"candidates\[0\]: contains the end token"),
    ],
)
def test_wrong_candidates_are_named(candidates, message):
    with pytest.raises(StrettoError, match=message):
        choice_trie(candidates, END)


@given(SEQUENCES)
def test_a_tree_holds_every_prefix_once_and_every_sequence(sequences):
    tree = token_tree(sequences)
    prefixes = {ids[:depth] for ids in sequences for depth in range(1, len(ids) + 1)}
    assert tree.size == len(prefixes)
    for ids in sequences:
        read, here = [], tree.ends[ids]
        while here >= 0:
            assert tree.positions[here] == len(ids) - 1 - len(read)
            read.append(int(tree.tokens[here]))
            here = int(tree.parents[here])
        assert tuple(reversed(read)) == ids


@given(SEQUENCES)
def test_a_token_sees_itself_and_its_ancestors(sequences):
    tree = token_tree(sequences)
    mask = tree_mask(tree)
    for row in range(tree.size):
        seen, here = set(), row
        while here >= 0:
            seen.add(here)
            here = int(tree.parents[here])
        assert set(np.flatnonzero(mask[row])) == seen


@given(st.lists(SEQUENCES, max_size=6), st.integers(1, 20))
def test_cuts_keep_all_units_in_order(units, budget):
    runs = list(cut(units, budget))
    assert [index for run in runs for index in range(len(units))[run]] == list(range(len(units)))


def test_a_long_shared_beginning_alone_causes_no_cut():
    shared = tuple(range(1, 1001))
    units = [[(*shared, token)] for token in range(1, 11)]
    assert list(cut(units, 10)) == [slice(0, 10)]
    assert list(cut(units, 3)) == [slice(0, 4), slice(4, 8), slice(8, 10)]
