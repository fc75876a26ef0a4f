"""Tokens of a turn: what the source counted, else words read plus words written.

A script has no tokenizer. What it read is the words of what it saw and of what it could choose,
what it wrote is the words of its choice. Words and tokens of a model are never compared: a team is
compared with one agent of the same kind.
"""

from msgspec.structs import replace

from stretto.rewards.tokens import words_of_turn
from stretto.trace import Event, Tokens, Trace

MOST = 10**9
"""Tokens that a turn can credibly take; who reports more does not know."""


def counted(trace: Trace) -> Trace:
    """The same trace, where every turn says how many tokens it took.

    Where the source says so of every turn, they are left as they are. Where it leaves out some, or
    says what cannot be, the words of every turn are counted: tokens and words have no sum.
    """
    if all(_credible(event.tokens) for event in trace.events if event.kind == "decision"):
        return trace
    return replace(trace, events=tuple(_counted(trace, event) for event in trace.events))


def turn_tokens(trace: Trace) -> dict[str, int]:
    """Event of a turn to the tokens that it read and wrote; `trace` must be `counted`."""
    turns = (event for event in trace.events if event.kind == "decision")
    return {e.id: sum(_parts(e.tokens)) for e in turns if e.tokens is not None}


def _parts(spent: Tokens) -> tuple[int, ...]:
    parts = (spent.input, spent.output, spent.cache_read, spent.cache_write)
    return tuple(part or 0 for part in parts)


def _credible(spent: Tokens | None) -> bool:
    return spent is not None and all(0 <= part <= MOST for part in _parts(spent))


def _counted(trace: Trace, event: Event) -> Event:
    decision = event.decision
    if event.kind != "decision" or decision is None:
        return event
    read, written = words_of_turn(trace.text(decision.observation) or "", decision)
    return replace(event, tokens=Tokens(input=read, output=written))
