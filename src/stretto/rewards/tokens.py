"""Tokens of a turn: what the source counted, else words, where a policy of ours counts none.

A table or a script has no tokenizer. What it read is the words of what it saw and of what it could
choose, what it wrote is the words of its choice. An import that does not say stays unknown.
"""

from functools import lru_cache

import numpy as np

from stretto.rewards.stream import Floats
from stretto.trace import Decision, Event, Trace


def read_and_written(trace: Trace) -> Floats:
    """Tokens read and written with every event; NaN where not known; shape (2, events)."""
    columns = trace.columns
    found = np.stack([columns.input_tokens, columns.output_tokens])
    turns = columns.is_kind("decision")
    if not trace.spec or not np.isnan(found[:, turns]).all():
        return found
    for row in np.flatnonzero(turns).tolist():
        found[:, row] = _words_of(trace, trace.events[row])
    return found


def _words_of(trace: Trace, event: Event) -> tuple[float, float]:
    decision = event.decision
    seen = trace.text(decision.observation) if decision is not None else None
    if decision is None or seen is None:
        return np.nan, np.nan
    return words_of_turn(seen, decision)


def words_of_turn(seen: str, decision: Decision) -> tuple[int, int]:
    """Words that a turn read (what it saw, and its menu) and wrote, split at white space."""
    return _words(seen) + _menu(decision.candidates), _words(decision.choice or "")


@lru_cache(maxsize=16_384)
def _menu(candidates: tuple[str, ...]) -> int:
    return sum(map(_words, candidates))


@lru_cache(maxsize=65_536)
def _words(text: str) -> int:
    return len(text.split())
