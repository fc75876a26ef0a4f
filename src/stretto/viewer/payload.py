"""Traces as the columns that the page reads: compressed JSON, a few bytes an event.

Strings are stored once, in `words`; longer texts once, in `texts`, as [text, its full length].
Codes count from 0, and `null` stands for what is unknown; so it does for a whole column.
"""

import gzip
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from math import exp
from typing import Any

import msgspec
from msgspec import Struct

from stretto.trace import Agent, Event, Header, Trace
from stretto.viewer.facts import trace_facts
from stretto.viewer.lanes import causal_steps, critical_rows, tree_order

SCHEMA = 1
"""Version of the payload; the page refuses another."""
MOST_EVENTS = 200_000
"""Events in one page."""
MOST_TEXT = 20_000
"""Characters of one text in a page."""
MOST_TEXTS = 20_000_000
"""Characters of all texts in a page."""

Column = list[Any] | None


class Shown(Struct, frozen=True):
    """How much of what there is went into a page."""

    traces_shown: int
    traces: int
    events_shown: int
    events: int
    """Of all traces."""


def pack(traces: Sequence[Trace], of: Sequence[Trace]) -> tuple[str, Shown]:
    """As many of `traces` as fit, as gzip in base64; `of` is all that there was to show.

    At least one trace is always there; a longer one than fits is cut to its first events.
    """
    fitting = traces[: _fitting(traces)]
    document, shown = build(fitting), sum(min(len(t.events), MOST_EVENTS) for t in fitting)
    packed = gzip.compress(msgspec.json.encode(document), 6, mtime=0)
    everything = sum(len(trace.events) for trace in of)
    return b64encode(packed).decode(), Shown(len(fitting), len(of), shown, everything)


def _fitting(traces: Sequence[Trace]) -> int:
    """How many of the first traces fit into a page, at least one."""
    room = MOST_EVENTS
    for count, trace in enumerate(traces):
        room -= len(trace.events)
        if room < 0:
            return max(count, 1)
    return len(traces)


def build(traces: Sequence[Trace]) -> dict[str, Any]:
    """The document that the page reads."""
    words, texts = Words(), Texts()
    built = [_trace(trace, words, texts) for trace in traces]
    return {"schema": SCHEMA, "words": words.all, "texts": texts.all, "traces": built}


class Words:
    """Short strings, each stored once."""

    def __init__(self) -> None:
        """Start with none."""
        self.all: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, word: str | None) -> int | None:
        """The place of a word, which may be new."""
        if not word:
            return None
        code = self._codes.setdefault(word, len(self.all))
        if code == len(self.all):
            self.all.append(clean(word))
        return code


class Texts:
    """Longer texts, each stored once, cut to what fits into a page."""

    def __init__(self) -> None:
        """Start with none."""
        self.all: list[tuple[str, int]] = []
        self._codes: dict[str, int] = {}
        self._room = MOST_TEXTS

    def code(self, text: str | None) -> int | None:
        """The place of a text, which may be new."""
        if text is None:
            return None
        code = self._codes.setdefault(text, len(self.all))
        if code == len(self.all):
            kept = text[: min(MOST_TEXT, self._room)]
            self._room -= len(kept)
            self.all.append((clean(kept), len(text)))
        return code


def clean(text: str) -> str:
    """Replace what UTF-8 cannot carry (halves of surrogate pairs)."""
    return text.encode("utf-8", "replace").decode()


def column(values: Iterable[Any]) -> Column:
    """A column, or `None` where nothing in it is known."""
    found = list(values)
    return found if any(value is not None for value in found) else None


def _trace(trace: Trace, words: Words, texts: Texts) -> dict[str, Any]:
    known = {agent.id: agent for agent in trace.agents}
    agents = [known.get(name) or Agent(id=name) for name in trace.columns.agents]
    order = tree_order(agents)
    steps, loop = causal_steps(trace)
    lane = {agents[index].id: position for position, (index, _) in enumerate(order)}
    events = trace.events[:MOST_EVENTS]
    return {
        "id": clean(trace.id),
        "facts": trace_facts(trace),
        "about": _about(trace),
        "notes": _notes(trace, loop),
        "agents": _agents(agents, order, words),
        "events": _events(events, lane, words)
        | _decisions(events, words)
        | _texts(trace, events, words, texts)
        | {"step": steps[: len(events)]},
        "edges": _edges(trace, len(events), words),
        "scores": _scores(trace, words),
        "critical": [row for row in critical_rows(trace) if row < len(events)],
    }


def _notes(trace: Trace, loop: str) -> list[str]:
    """What the page has to say about itself."""
    notes: list[str] = []
    if len(trace.events) > MOST_EVENTS:
        notes.append(f"Showing the first {MOST_EVENTS:,} of {len(trace.events):,} events.")
    if loop:
        notes.append(f"{loop[0].upper()}{loop[1:]}. Causal order is the order of the record.")
    return [clean(note) for note in notes]


def _about(header: Header) -> list[tuple[str, str]]:
    rows = {
        "task": header.task,
        "system": header.system,
        "topology": header.topology,
        "seed": header.seed,
        "harness": header.harness,
        "forked from": ", ".join(f"{fork.parent} at {fork.event}" for fork in header.lineage),
        **header.attrs,
    }
    return [(clean(name), _plain(value)) for name, value in rows.items() if value not in (None, "")]


def _plain(value: Any) -> str:
    return clean(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=repr).decode()


def _agents(
    agents: Sequence[Agent], order: Sequence[tuple[int, int]], words: Words
) -> dict[str, Any]:
    """Agents in the order of their lanes."""
    lanes = [agents[index] for index, _ in order]
    return {
        "id": [clean(agent.id) for agent in lanes],
        "depth": [depth for _, depth in order],
        "role": column(words.code(agent.role) for agent in lanes),
        "name": column(words.code(agent.name) for agent in lanes),
        "model": column(words.code(agent.model) for agent in lanes),
    }


def _events(events: Sequence[Event], lane: dict[str, int], words: Words) -> dict[str, Column]:
    def tokens(field: str) -> Column:
        return column(getattr(event.tokens, field, None) for event in events)

    return {
        "id": [clean(event.id) for event in events],
        "kind": [words.code(event.kind) for event in events],
        "lane": [lane[event.agent] for event in events],
        "start": column(event.start for event in events),
        "duration": column(event.duration for event in events),
        "to": column(words.code(event.to) for event in events),
        "tool": column(words.code(event.tool) for event in events),
        "price": column(event.price for event in events),
        "trusted": column(event.trusted for event in events),
        "label": column(words.code(_safety(event)) for event in events),
        **{name: tokens(name) for name in ("input", "output", "cache_read", "cache_write")},
        "unreliable": column(words.code(_unreliable(event)) for event in events),
    }


def _safety(event: Event) -> str | None:
    label = event.label
    return label and ", ".join(filter(None, (label.integrity, label.confidentiality)))


def _unreliable(event: Event) -> str | None:
    return event.tokens and ", ".join(event.tokens.unreliable)


def _decisions(events: Sequence[Event], words: Words) -> dict[str, Column]:
    decisions = [event.decision for event in events]
    sets: dict[tuple[str, ...], list[int | None]] = {}  # equal lists are one object: quick to build
    for decision in decisions:
        if decision and decision.candidates not in sets:
            sets[decision.candidates] = [words.code(each) for each in decision.candidates]
    return {
        "type": column(d and words.code(d.type) for d in decisions),
        "candidates": column(d and (sets[d.candidates] or None) for d in decisions),
        "probabilities": column(d and (_probabilities(d.logprobs) or None) for d in decisions),
        "chosen": column(d and d.chosen for d in decisions),
        "policy": column(d and words.code(d.policy) for d in decisions),
    }


def _probabilities(logprobs: Sequence[float]) -> list[float]:
    return [round(exp(value), 6) for value in logprobs]


def _texts(trace: Trace, events: Sequence[Event], words: Words, texts: Texts) -> dict[str, Column]:
    """Contents, what was observed, and attributes; a text that is not there leaves its name."""

    def both(name: str, reference: Callable[[Event], str | None]) -> dict[str, Column]:
        names = [reference(event) for event in events]
        found = [trace.text(each) for each in names]
        absent = (each if text is None else None for each, text in zip(names, found, strict=True))
        return {
            name: column(map(texts.code, found)),
            f"{name}_absent": column(map(words.code, absent)),
        }

    return {
        **both("content", lambda event: event.content),
        **both("observation", lambda event: event.decision and event.decision.observation),
        "attrs": column(texts.code(_json(e.attrs) if e.attrs else None) for e in events),
    }


def _edges(trace: Trace, limit: int, words: Words) -> dict[str, Column]:
    row = trace.columns.row
    edges = [edge for edge in trace.edges if row[edge.src] < limit and row[edge.dst] < limit]
    return {
        "src": [row[edge.src] for edge in edges],
        "dst": [row[edge.dst] for edge in edges],
        "label": [words.code(edge.label) for edge in edges],
        "evidence": [words.code(edge.evidence) for edge in edges],
    }


def _scores(trace: Trace, words: Words) -> dict[str, Column]:
    return {
        "channel": [words.code(score.channel) for score in trace.scores],
        "value": [score.value for score in trace.scores],
        "kind": [words.code(score.kind) for score in trace.scores],
        "agent": [words.code(score.agent) for score in trace.scores],
        "event": [words.code(score.event) for score in trace.scores],
    }
