"""Counter-based randomness, keyed by (seed, event id).

A draw depends on nothing but its key, so every branch of an episode re-uses each draw that it
shares with its parent, in whatever order agents happen to run. Choices are sampled by Gumbel-max
(argmax of log-probability plus keyed Gumbel noise): when probabilities change a little, the choice
changes only where it must.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import log

_MASK = (1 << 64) - 1


def key_of(seed: int, name: str) -> int:
    """64-bit key of everything that is random about the event `name` in the episode `seed`."""
    return _hash64(f"{seed}:{name}")


def uniform(key: int, purpose: str = "") -> float:
    """A number in the open interval (0, 1), fixed by `key` and what it is for."""
    # 52 bits and a half fill a double exactly, so neither 0 nor 1 can come out.
    return ((_mix(key ^ _cached_hash64(purpose)) >> 12) + 0.5) / 2.0**52


def gumbel_argmax(key: int, candidates: Sequence[str], logprobs: Sequence[float]) -> int:
    """Sample an index with the given log-probabilities (nats, need not be normalised).

    The noise belongs to the candidate's text, not to its place in the list.
    """
    best, winner = float("-inf"), 0
    for index, (candidate, logprob) in enumerate(zip(candidates, logprobs, strict=True)):
        value = logprob - log(-log(uniform(key, candidate)))
        if value > best:
            best, winner = value, index
    return winner


def _mix(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _hash64(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


_cached_hash64 = lru_cache(maxsize=65_536)(_hash64)
