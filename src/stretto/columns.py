"""A trace as numpy columns, so that a million events are ordinary."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.hashing import UNKNOWN, Ints, find_rows, hashes, id_hashes
from stretto.trace import KINDS, LABELS, Edge, Event, Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TOKENS: tuple[str, ...] = ("input", "cache_read", "cache_write", "output")

NONE, SEVERAL = -1, -2
"""In place of the one neighbour of an event that has none, or several (see `Walk`)."""

LARGEST = 10**300
"""Beyond it a number counts nothing, and is unknown."""

BATCH = 4096
"""Events or edges that are read for all columns while they are in the processor's cache."""


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
    is_guess: Flags
    """Whether the edge is heuristic."""

    @cached_property
    def target(self) -> Ints:
        """The effect of every cause in `source`."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def walk(self) -> "Walk":
        """For a walk towards causes."""
        return _walk(self.offsets, self.source)

    @cached_property
    def effects(self) -> "Effects":
        """The same edges by their causes."""
        order = np.argsort(self.source, kind="stable")
        counts = np.bincount(self.source, minlength=len(self.offsets) - 1)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return Effects(offsets, self.target[order])


@dataclass(frozen=True)
class Effects:
    """The effects of event row `i` are `target[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    target: Ints

    @cached_property
    def walk(self) -> "Walk":
        """For a walk towards effects."""
        return _walk(self.offsets, self.target)


@dataclass(frozen=True)
class Walk:
    """The neighbours of every event, for a walk in plain Python: most events have at most one."""

    only: Ints
    """The one neighbour; `NONE`; `SEVERAL - k` for the `k`-th of those that have several."""
    places: Ints
    """Where the neighbours of those stand, one after another."""
    begins: Ints
    """Where in `places` those of each begin, and the end of the last."""


def _walk(offsets: Ints, neighbour: Ints) -> Walk:
    count = np.diff(offsets)
    only = np.full(len(count), NONE)
    only[count == 1] = neighbour[offsets[:-1][count == 1]]
    only[count > 1] = SEVERAL - np.arange((count > 1).sum())
    places = np.flatnonzero(np.repeat(count > 1, count))
    return Walk(only, places, np.concatenate([[0], np.cumsum(count[count > 1])]))


@dataclass(frozen=True)
class Words:
    """A column of words."""

    code: Ints
    """Codes into `words`; `UNKNOWN` where an event has none."""
    words: tuple[str, ...]


@dataclass(frozen=True)
class Columns:
    """Events in record order, one entry an event; unknown numbers are NaN, never 0."""

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
    prompt_tokens: Floats
    """Prompt tokens that were computed, read from a cache, written to one: a line each.

    NaN where the source gets them wrong.
    """
    tool: Words
    """Name of the tool that is called or answers."""
    to: Words
    """Who is spawned, written to, returned to; it may be nobody of the agents."""
    receiver: Ints
    """Codes into `agents` of who is spawned, written to, returned to; `UNKNOWN` for nobody."""
    content: Ints
    """A 64-bit hash of every content reference: equal for equal ones, in this process only."""
    has_content: Flags
    """Whether an event has a content reference."""
    waiting: Flags
    """Whether an event just waits (`attrs.waiting`)."""
    waited: Floats
    """Seconds of its duration in which an event could not run yet (`attrs.waited`); 0 for none."""
    price: Floats
    """US dollars as recorded."""
    trusted: Floats
    """1 for trusted content, 0 for untrusted, NaN where unknown."""
    parents: Parents
    events: tuple[Event, ...] = field(repr=False)

    @cached_property
    def row(self) -> dict[str, int]:
        """Event id to row."""
        return {event.id: row for row, event in enumerate(self.events)}

    @cached_property
    def last_end(self) -> float:
        """Seconds at which the last event ends; NaN where no times are known."""
        ends = self.start + np.where(np.isnan(self.duration), 0.0, self.duration)
        known = ends[~np.isnan(ends)]
        return float(known.max()) if len(known) else float("nan")

    def is_kind(self, *kinds: str) -> Flags:
        """Mark the events whose kind is one of `kinds`."""
        wanted = np.array([kind in kinds for kind in self.kinds], dtype=bool)
        return wanted[self.kind]


def build_columns(trace: Trace) -> Columns:
    """Lay out a trace in columns.

    Raises `StrettoError` for an edge whose end is no event.
    """
    agents = _numbered(agent.id for agent in trace.agents)
    codes = _Codes(agents, kind=_numbered(KINDS), tool={None: 0}, to={None: 0})
    begins = range(0, max(len(trace.events), 1), BATCH)
    parts = [_read_events(trace.events[begin : begin + BATCH], codes) for begin in begins]
    columns = {name: np.concatenate([p[name] for p in parts], axis=-1) for name in parts[0]}
    receivers = [codes.agent.get(word or "", UNKNOWN) for word in codes.to]
    columns["receiver"] = np.array(receivers, dtype=np.int64)[columns["to"]]
    return Columns(
        kinds=tuple(codes.kind),
        agents=tuple(codes.agent),
        tool=_words(columns.pop("tool"), codes.tool),
        to=_words(columns.pop("to"), codes.to),
        parents=_parents(trace, columns.pop("name")),
        events=trace.events,
        **columns,
    )


def _numbered(words: Iterable[str]) -> dict[str, int]:
    return {word: code for code, word in enumerate(dict.fromkeys(words))}


def _words(code: Ints, codes: dict[str | None, int]) -> Words:
    return Words(code - 1, tuple(word for word in codes if word is not None))  # `None` has code 0


Word = TypeVar("Word", str, str | None)


class _Codes(Struct):
    """Word to code, by column; `None` comes first where an event may have no word."""

    agent: dict[str, int]
    kind: dict[str, int]
    tool: dict[str | None, int]
    to: dict[str | None, int]


def _read_events(events: Sequence[Event], codes: _Codes) -> dict[str, NDArray[Any]]:
    content = hashes([event.content for event in events])
    attrs = [event.attrs for event in events]
    return {
        "name": id_hashes([event.id for event in events]),
        "kind": _encode([event.kind for event in events], codes.kind),
        "agent": _encode([event.agent for event in events], codes.agent),
        "tool": _encode([event.tool for event in events], codes.tool),
        "to": _encode([event.to for event in events], codes.to),
        "start": _floats([event.start for event in events]),
        "duration": _floats([event.duration for event in events]),
        "price": _floats([event.price for event in events]),
        "trusted": _floats([event.trusted for event in events]),
        "content": content,
        "has_content": content != hash(None),
        "waiting": np.array([bool(each and each.get("waiting")) for each in attrs], dtype=bool),
        "waited": _floats([_waited(each) if each else 0.0 for each in attrs]),
        **_tokens(events),
    }


def _waited(attrs: dict[str, Any]) -> float:
    value = attrs.get("waited")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e300 else 0.0


def _encode(words: Sequence[Word], codes: dict[Word, int]) -> Ints:
    try:
        return np.array([codes[word] for word in words], dtype=np.int64)
    except KeyError:  # a new word, which is rare after the first batches
        return np.array([codes.setdefault(word, len(codes)) for word in words], dtype=np.int64)


def _floats(values: Sequence[float | None]) -> Floats:
    try:
        return np.array(values, dtype=np.float64)  # None becomes NaN
    except OverflowError:  # whole numbers of hundreds of digits, which count nothing
        held = [None if value is not None and abs(value) > LARGEST else value for value in values]
        return np.array(held, dtype=np.float64)


def _tokens(events: Sequence[Event]) -> dict[str, Floats]:
    """Prompt tokens of each kind, all prompt tokens, and sampled tokens of every event."""
    everywhere = [event.tokens for event in events]
    rows = [row for row, tokens in enumerate(everywhere) if tokens is not None]
    turns = [tokens for tokens in everywhere if tokens is not None]
    counts, places = np.full((4, len(events)), np.nan), np.array(rows, dtype=np.int64)
    for line, name in enumerate(TOKENS):
        counts[line, places] = _floats(list(map(attrgetter(name), turns)))
    total = counts[0] + np.nan_to_num(counts[1]) + np.nan_to_num(counts[2])
    for row, each in [pair for pair in zip(rows, turns, strict=True) if pair[1].unreliable]:
        wrong = set(each.unreliable)
        counts[[name in wrong for name in TOKENS], row] = np.nan
        total[row] = np.nan if wrong - {"output"} else total[row]
    return {"prompt_tokens": counts[:3], "input_tokens": total, "output_tokens": counts[3]}


def _parents(trace: Trace, name: Ints) -> Parents:
    labels = _numbered(LABELS)
    begins = range(0, max(len(trace.edges), 1), BATCH)
    parts = [_read_edges(trace.edges[begin : begin + BATCH], labels) for begin in begins]
    from_, to, label, is_guess = (np.concatenate(part) for part in zip(*parts, strict=True))
    source, target = (find_rows(name, each) for each in (from_, to))
    lost = np.flatnonzero((source == UNKNOWN) | (target == UNKNOWN))
    if len(lost):
        edge = trace.edges[lost[0]]
        missing = edge.src if source[lost[0]] == UNKNOWN else edge.dst
        raise StrettoError(f"an edge names no event: {missing!r}", trace.id)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=len(name))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Parents(offsets, source[order], order, label[order], tuple(labels), is_guess[order])


def _read_edges(edges: Sequence[Edge], labels: dict[str, int]) -> tuple[Ints, Ints, Ints, Flags]:
    """Hashes of both ends, code of the label, and whether it is a guess."""
    source = id_hashes([edge.src for edge in edges])
    target = id_hashes([edge.dst for edge in edges])
    label = _encode([edge.label for edge in edges], labels)
    guesses = np.array([edge.evidence == "heuristic" for edge in edges], dtype=bool)
    return source, target, label, guesses


def sums_by(code: Ints, values: Floats, count: int) -> Floats:
    """The sum of the values of every code below `count`; 0 for a code of which there is none."""
    return np.bincount(code, values, minlength=count).astype(np.float64)  # whole when empty
