"""Near-duplicate texts in time linear in their length.

A text is the set of its shingles, runs of three words (Broder 1997, *On the resemblance and
containment of documents*). Resemblance is the Jaccard index of two sets. Candidates come from
MinHash signatures cut into bands (Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*,
§3.4): a text is compared exactly with the texts before it that share a bucket, at most nine a
bucket, the last eight and the first, so that the cost stays linear. With five bands of two, a pair
of resemblance 0.8 shares a bucket with probability 0.994, one of 0.9 with 0.9998. Texts of one form
crowd a bucket: those are put into buckets once more, by the shingles that the fewest of them share
(the prefix filter of Bayardo, Ma and Srikant 2007, *Scaling up all pairs similarity search*, cut to
three). What is said to repeat does so; what repeats may still be missed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.columns import Flags, Floats, Ints
from stretto.hashing import hash_pieces

Hashes = NDArray[np.uint64]

RESEMBLANCE = 0.8
"""Texts that share this much of their shingles are near-duplicates."""
BANDS, ROWS = 5, 2
RECENT = 8
"""Last texts of a bucket with which the next one is compared."""
RARE = 3
"""Shingles of a text of a crowded bucket that are looked up, the rarest first."""
NO_SIGNATURE = np.zeros((BANDS * ROWS, 0), dtype=np.uint32)
CHUNK = 1 << 18
"""Characters of text that are hashed at once: they fit in a cache."""

BATCH = 1 << 18
"""Shingles that are compared at once."""

ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
PAIR_BITS = np.uint64(40)
"""Bits of a shingle that are kept beside the number of a pair."""
SHINGLE = (np.uint64(1) << PAIR_BITS) - np.uint64(1)
"""Those bits."""


@dataclass(frozen=True)
class Shingles:
    """The shingles of text `i` are `hashes[offsets[i]:offsets[i + 1]]`."""

    hashes: Hashes
    offsets: Ints


def near_duplicates(texts: Sequence[str], text: Ints, group: Ints) -> Flags:
    """Mark items whose text nearly repeats that of an earlier item of the same group.

    Args:
        texts: Distinct texts.
        text: The text of each item, a place in `texts`.
        group: The group of each item, any whole number.
    """
    parts = [_shingle_chunk(chunk) for chunk in _chunks(texts)]
    shingles = _joined(parts)
    signature = np.concatenate([NO_SIGNATURE, *map(_signature, parts)], axis=1)
    repeats, tried = np.zeros(len(text), dtype=bool), np.zeros(0, dtype=np.int64)
    for items, buckets in _all_buckets(shingles, signature, text, group):
        compared = [tried]
        for later, earlier in _candidates(buckets):
            item, model = items[later], items[earlier]
            pair = item * len(text) + model
            fresh = ~repeats[item]
            fresh[fresh] = ~_among(tried, pair[fresh])
            item, model = item[fresh], model[fresh]
            repeats[item[_resemble(shingles, text[item], text[model])]] = True
            compared.append(pair[fresh])
        tried = np.sort(np.concatenate(compared))
    return repeats


def _all_buckets(
    shingles: Shingles, signature: NDArray[np.uint32], text: Ints, group: Ints
) -> Iterator[tuple[Ints, "_Buckets"]]:
    """Items and their buckets: those of each band, then those of crowded ones by rare shingles."""
    worded = np.flatnonzero(np.diff(shingles.offsets)[text] > 0)
    crowded = np.zeros(len(text), dtype=bool)
    for band in range(BANDS):
        rows = slice(band * ROWS, (band + 1) * ROWS)
        buckets = _buckets(_band_key(signature[rows, text[worded]], group[worded]))
        crowded[worded[buckets.order[buckets.size > RECENT + 1]]] = True
        yield worded, buckets
    items = np.flatnonzero(crowded)
    for owner, key in _rare(shingles, text[items], group[items]):
        yield items[owner], _buckets(key)


def _rare(shingles: Shingles, texts: Ints, group: Ints) -> Iterator[tuple[Ints, Hashes]]:
    """The rarest shingle of each text that another of its group has, then the next, up to `RARE`.

    Comes as the places of the texts that have so many, and a key of shingle and group.
    """
    sets = _sets(shingles, texts)
    owner = (sets >> PAIR_BITS).astype(np.int64)
    keys = _mix((sets & SHINGLE) * ODD[2] + group[owner].astype(np.uint64))
    _, which, count = np.unique(keys, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(count[which] > 1)
    shared = shared[np.lexsort((keys[shared], count[which[shared]], owner[shared]))]
    first = np.searchsorted(owner[shared], owner[shared])
    for place in range(RARE):
        here = shared[np.arange(len(shared)) - first == place]
        yield owner[here], keys[here]


def _among(ordered: Ints, values: Ints) -> Flags:
    """Mark the values that are among those of an ordered array."""
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[place] == values if len(ordered) else np.zeros(len(values), dtype=bool)


@dataclass(frozen=True)
class _Buckets:
    """Places that share a key with another, bucket by bucket."""

    order: Ints
    """The places, in increasing order within a bucket."""
    first: Ints
    """Where in `order` the bucket of each begins."""
    size: Ints
    """How many places the bucket of each has."""


def _buckets(key: Hashes) -> _Buckets:
    order = np.argsort(key)
    same = key[order[1:]] == key[order[:-1]]
    order = order[np.append(same, False) | np.append(False, same)] if len(key) else order
    order = order[np.lexsort((order, key[order]))]  # few are left, most are alone
    begins = np.append(True, key[order[1:]] != key[order[:-1]])[: len(order)]
    opens = np.flatnonzero(begins)
    sizes = np.diff(np.append(opens, len(order)))
    return _Buckets(order, np.repeat(opens, sizes), np.repeat(sizes, sizes))


def _candidates(buckets: _Buckets) -> Iterator[tuple[Ints, Ints]]:
    """Places, each with one before it of its bucket: one before, two before, … and the first."""
    order, rank = buckets.order, np.arange(len(buckets.order)) - buckets.first
    for back in range(1, RECENT + 1):
        later = np.flatnonzero(rank >= back)
        yield order[later], order[later - back]
    later = np.flatnonzero(rank > RECENT)
    yield order[later], order[buckets.first[later]]


def shingle(texts: Sequence[str]) -> Shingles:
    """Hashes of all runs of three words; of all words together in a shorter text."""
    return _joined([_shingle_chunk(chunk) for chunk in _chunks(texts)])


def _joined(parts: Sequence[Shingles]) -> Shingles:
    counts = [np.diff(part.offsets) for part in parts]
    hashes = [np.zeros(0, dtype=np.uint64), *(part.hashes for part in parts)]
    return Shingles(np.concatenate(hashes), np.concatenate([[0], *counts]).cumsum())


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


INSIDE = np.array([b >= 128 or chr(b).isalnum() for b in range(256)], dtype=bool)
"""Whether a byte belongs to a word: letters, digits and what is beyond ASCII."""
IDEOGRAPH = 0xE3
"""From this lead byte on (Chinese, Japanese, Korean), every character is a word."""
LONGEST = 64
"""Bytes of a word; a longer run of letters (base64, say) is several."""


def _folded(texts: list[str]) -> tuple[NDArray[np.uint8], Ints]:
    """Texts without case as UTF-8, one after another, and where each ends."""
    whole = "\n".join([*texts, ""])
    if whole.isascii():  # case and bytes leave every length as it is
        data, sizes = whole.lower().encode(), [len(text) for text in texts]
    else:
        parts = [text.casefold().encode("utf-8", "surrogatepass") for text in texts]
        data, sizes = b"\n".join([*parts, b""]), [len(part) for part in parts]
    return np.frombuffer(data, dtype=np.uint8), np.cumsum(np.array(sizes) + 1)


def _shingle_chunk(texts: list[str]) -> Shingles:
    text, stops = _folded(texts)
    words, begins = _words(text)
    ends = np.searchsorted(begins, stops)
    counts = np.diff(ends, prepend=0)
    mixed = words * ODD[0]
    mixed[:-1] += words[1:] * ODD[1]
    mixed[:-2] += words[2:] * ODD[2]
    kept = np.repeat(ends, counts) - np.arange(len(words)) > 2
    short = (counts > 0) & (counts < 3)  # one shingle of all words, and of no other text's
    first = (ends - counts)[short]
    kept[first], mixed[first] = True, words[first] * ODD[0]
    two = first[counts[short] == 2]
    mixed[two] += words[two + 1] * ODD[1]
    sizes = np.where(counts < 3, np.minimum(counts, 1), counts - 2)
    return Shingles(_mix(mixed[kept]), np.concatenate([[0], sizes.cumsum()]))


def _words(text: NDArray[np.uint8]) -> tuple[Hashes, Ints]:
    """A hash of every word, and where it begins."""
    inside = INSIDE[text]
    before = np.zeros_like(inside)
    before[1:] = inside[:-1]
    turns = np.flatnonzero(inside != before)
    turns = np.append(turns, len(text)) if len(turns) % 2 else turns
    begins, ends = turns[0::2], turns[1::2]
    for cuts in (_ideographs(text, inside & before), _overlong(begins, ends)):
        if len(cuts):
            begins, ends = (np.sort(np.append(each, cuts)) for each in (begins, ends))
    return hash_pieces(text.tobytes() + bytes(8), begins, ends - begins, ODD[1]), begins


def _ideographs(text: NDArray[np.uint8], within: Flags) -> Ints:
    """Where words are cut before a character that is one."""
    if not len(text) or text.max() < IDEOGRAPH:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(within & (text >= IDEOGRAPH))


def _overlong(begins: Ints, ends: Ints) -> Ints:
    """Where words that are too long are cut."""
    cuts = (ends - begins - 1) // LONGEST
    first = np.repeat(np.cumsum(cuts) - cuts, cuts)
    return np.repeat(begins, cuts) + LONGEST * (np.arange(len(first)) - first + 1)


def _mix(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(32))) * ODD[1]
    return hashes ^ (hashes >> np.uint64(29))


def _signature(shingles: Shingles) -> NDArray[np.uint32]:
    """The least of every hash function over each text's shingles; all ones for a text of none."""
    count = len(shingles.offsets) - 1
    signature = np.full((BANDS * ROWS, count), np.uint32(0xFFFFFFFF))
    some = np.diff(shingles.offsets) > 0
    begins = shingles.offsets[:-1][some]
    short = (shingles.hashes >> np.uint64(32)).astype(np.uint32)
    random = np.random.default_rng(0)
    for line in range(len(signature) if len(begins) else 0):
        factor, shift = random.integers(1 << 31, dtype=np.uint32, size=2)
        values = short * (factor * np.uint32(2) + np.uint32(1)) + shift
        signature[line, some] = np.minimum.reduceat(values, begins)
    return signature


def _band_key(rows: NDArray[np.uint32], group: Ints) -> Hashes:
    key = group.astype(np.uint64)
    for row in rows:
        key = _mix(key * ODD[2] + row)
    return key


def _resemble(shingles: Shingles, one: Ints, other: Ints) -> Flags:
    """Whether pairs of texts share enough; a pair of very unlike lengths is not looked at."""
    alike = np.zeros(len(one), dtype=bool)
    sizes = np.diff(shingles.offsets)
    small, large = (bound(sizes[one], sizes[other]) for bound in (np.minimum, np.maximum))
    close = np.flatnonzero(4 * small >= large)
    work = np.cumsum(sizes[one[close]] + sizes[other[close]])
    if len(close):
        for pairs in np.split(close, np.searchsorted(work, np.arange(BATCH, work[-1], BATCH))):
            alike[pairs] = _jaccard(shingles, one[pairs], other[pairs]) >= RESEMBLANCE
    return alike


def _jaccard(shingles: Shingles, one: Ints, other: Ints) -> Floats:
    here, there = (_sets(shingles, side) for side in (one, other))
    both = np.sort(np.concatenate([here, there]))
    shared = both[1:][both[1:] == both[:-1]]
    common, left, right = (
        np.bincount((found >> PAIR_BITS).astype(np.int64), minlength=len(one))
        for found in (shared, here, there)
    )
    return common / np.maximum(left + right - common, 1)


def _sets(shingles: Shingles, texts: Ints) -> Hashes:
    """The distinct shingles of each text, each with the place of the text above `PAIR_BITS`."""
    begins, sizes = shingles.offsets[texts], np.diff(shingles.offsets)[texts]
    pair = np.repeat(np.arange(len(texts)), sizes)
    steps = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found = shingles.hashes[np.repeat(begins, sizes) + steps]
    keys = np.sort((pair.astype(np.uint64) << PAIR_BITS) | (found >> np.uint64(24)))
    return keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
