"""A trace as numpy columns, so that a million events are ordinary."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.trace import KINDS, LABELS, Event, Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Parents:
    """The causes of every event in compressed sparse row form.

    The causes of event row `i` are `source[offsets[i]:offsets[i + 1]]`, in the order of the
    trace's edges; `edge` holds the row of the edge itself, `label` its code in `labels`.
    """

    offsets: Ints
    source: Ints
    edge: Ints
    label: Ints
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Events in record order, one entry an event; unknown numbers are NaN, never 0."""

    row: dict[str, int]
    """Event id to row."""
    kind: Ints
    """Codes into `kinds`."""
    kinds: tuple[str, ...]
    agent: Ints
    """Codes into `agents`."""
    agents: tuple[str, ...]
    start: Floats
    """Seconds."""
    duration: Floats
    """Seconds."""
    input_tokens: Floats
    """All prompt tokens, whether computed or cached."""
    output_tokens: Floats
    """Sampled tokens; NaN where the source gets them wrong."""
    parents: Parents

    @cached_property
    def last_end(self) -> float:
        """Seconds at which the last event ends; NaN where no times are known."""
        ends = self.start + np.where(np.isnan(self.duration), 0.0, self.duration)
        known = ends[~np.isnan(ends)]
        return float(known.max()) if len(known) else float("nan")

    def is_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Mark the events whose kind is one of `kinds`."""
        wanted = np.array([kind in kinds for kind in self.kinds], dtype=bool)
        return wanted[self.kind]


def build_columns(trace: Trace) -> Columns:
    """Lay out a trace in columns.

    Raises `StrettoError` for an edge whose end is no event.
    """
    events = trace.events
    row = {event.id: index for index, event in enumerate(events)}
    kind, kinds = _encode((event.kind for event in events), KINDS)
    agent, agents = _encode((e.agent for e in events), tuple(a.id for a in trace.agents))
    return Columns(
        row=row,
        kind=kind,
        kinds=kinds,
        agent=agent,
        agents=agents,
        start=_floats([event.start for event in events]),
        duration=_floats([event.duration for event in events]),
        input_tokens=_tokens(events, _input_tokens),
        output_tokens=_tokens(events, _output_tokens),
        parents=_parents(trace, row),
    )


def _encode(words: Iterable[str], known: tuple[str, ...]) -> tuple[Ints, tuple[str, ...]]:
    codes = {word: code for code, word in enumerate(known)}
    column = np.array([codes.setdefault(word, len(codes)) for word in words], dtype=np.int64)
    return column, tuple(codes)


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _tokens(events: Sequence[Event], count: Callable[[Event], float | None]) -> Floats:
    values = np.full(len(events), np.nan)
    for row, event in enumerate(events):
        if event.tokens is not None:  # most events are no turns
            values[row] = count(event)
    return values


def _input_tokens(event: Event) -> float | None:
    tokens = event.tokens
    if tokens is None or tokens.input is None or set(tokens.unreliable) - {"output"}:
        return None
    return tokens.input + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def _output_tokens(event: Event) -> float | None:
    tokens = event.tokens
    return None if tokens is None or "output" in tokens.unreliable else tokens.output


def _parents(trace: Trace, row: dict[str, int]) -> Parents:
    try:
        source = np.array([row[edge.src] for edge in trace.edges], dtype=np.int64)
        target = np.array([row[edge.dst] for edge in trace.edges], dtype=np.int64)
    except KeyError as error:
        raise StrettoError(f"an edge names no event: {error.args[0]!r}", trace.id) from None
    label, labels = _encode((edge.label for edge in trace.edges), LABELS)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=len(row))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Parents(offsets, source[order], order.astype(np.int64), label[order], labels)
