"""Words as 64-bit numbers, so that a million of them are compared at once.

A dict of as many misses the processor's cache at every look. Hashes are equal for equal words, in
this process only: like Python's own they differ from run to run, so that no file can be made to
fit.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

UNKNOWN = -1
"""Row of what is not known."""

LONG = 40
"""Letters of a word that Python hashes as fast."""

_FACTOR = np.uint64((hash("a word") & (1 << 63) - 1) | 1)
_FIRST = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)
"""The first so many bytes of eight."""


def hashes(words: Sequence[str | None]) -> Ints:
    """A 64-bit hash of every word, by Python's `hash`."""
    return np.fromiter(map(hash, words), dtype=np.int64, count=len(words))


def id_hashes(ids: Sequence[str]) -> Ints:
    """A 64-bit hash of every id, twice as fast for short ones: eight bytes of all at a time."""
    if ids and len(ids[0]) > LONG:  # then most are, and need not be laid side by side
        if min(map(len, ids)) > LONG:
            return hashes(ids)
        maybe: Iterable[int] = range(len(ids))
        text, ends = _side_by_side(["" if len(each) > LONG else each for each in ids])
    else:
        text, ends = _side_by_side(ids)
        maybe = np.flatnonzero(np.diff(ends, prepend=-1) > LONG).tolist()
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    length = ends - starts
    long = [row for row in maybe if len(ids[row]) > LONG]
    length[long] = 0
    found = hash_pieces(text, starts, length, _FACTOR).view(np.int64)
    found[long] = hashes([ids[row] for row in long])
    return found


def _side_by_side(words: Sequence[str]) -> tuple[bytes, Ints]:
    """All words with a byte between them, and where each ends; eight more bytes can be read."""
    text = "\0".join(words).encode("utf-8", "surrogatepass") + bytes(9)
    ends = np.flatnonzero(np.frombuffer(text, np.uint8)[:-8] == 0)
    if len(ends) != len(words):  # some hold what divides them here
        sizes = [len(each.encode("utf-8", "surrogatepass")) + 1 for each in words]
        ends = np.cumsum(np.array(sizes, dtype=np.int64)) - 1
    return text, ends


def hash_pieces(text: bytes, starts: Ints, length: Ints, factor: np.uint64) -> Words:
    """A 64-bit hash of every piece of a text; the cost grows with the longest one.

    Args:
        text: The bytes, and eight more.
        starts: Where each piece begins.
        length: How many bytes each has.
        factor: Any odd number; another gives other hashes.
    """
    eight = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))
    hashed = length.astype(np.uint64) * factor
    _mix(hashed, eight[starts] & _FIRST[np.minimum(length, 8)], factor)
    for at in range(8, length.max(initial=0), 8):
        rows = np.flatnonzero(length > at)
        more = hashed[rows]
        _mix(more, eight[starts[rows] + at] & _FIRST[np.minimum(length[rows] - at, 8)], factor)
        hashed[rows] = more
    return hashed


def _mix(hashed: Words, eight: Words, factor: np.uint64) -> None:
    """Let every bit of eight bytes reach every bit, so that the next eight cannot undo it.

    The steps are those of the SplitMix64 finalizer (Steele et al. 2014, "Fast splittable
    pseudorandom number generators").
    """
    hashed ^= eight
    for shift in (32, 29):
        hashed ^= hashed >> np.uint64(shift)
        hashed *= factor
    hashed ^= hashed >> np.uint64(32)


def find_rows(names: Ints, wanted: Ints) -> Ints:
    """The row of every wanted name, or `UNKNOWN`; all of them are hashes.

    A table of their low bits finds most, ten times as fast as a dict of 100,000. What shares its
    place there with another name is joined in sorted order.
    """
    mask = (4 << len(names).bit_length()) - 1
    table, own = np.full(mask + 1, UNKNOWN), np.arange(len(names))
    table[names & mask] = own
    rows = table[wanted & mask]
    left = np.flatnonzero((rows != UNKNOWN) & (names[rows] != wanted)) if len(names) else own
    hidden = np.flatnonzero(table[names & mask] != own)
    rows[left] = _join(names[hidden], hidden, wanted[left])
    return rows


def _join(names: Ints, rows: Ints, wanted: Ints) -> Ints:
    """The row of every wanted name among these of these rows, or `UNKNOWN`."""
    found = np.full(len(wanted), UNKNOWN)
    if len(names):
        ranked, order = np.argsort(names), np.argsort(wanted)
        place = np.searchsorted(names[ranked], wanted[order])
        found[order] = ranked[np.minimum(place, len(names) - 1)]
        found = np.where(names[found] == wanted, rows[found], UNKNOWN)
    return found
