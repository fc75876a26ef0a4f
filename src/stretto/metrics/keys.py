"""What the rows of a table are of: a code an event, and the word of every code."""

from collections.abc import Callable, Sequence

import numpy as np

from stretto.columns import Columns, Ints
from stretto.trace import Agent, Trace

Keys = tuple[Ints, tuple[str | None, ...]]

OF_AGENTS: dict[str, Callable[[Agent], str | None]] = {
    "role": lambda agent: agent.role,
    "model": lambda agent: agent.model,
}


def of_agents(trace: Trace, by: str) -> Keys:
    """By what is said of an event's agent, one of `OF_AGENTS`."""
    of_agent, known = agent_keys(trace, by)
    return of_agent[trace.columns.agent], known


def agent_keys(trace: Trace, by: str) -> Keys:
    """A code an agent: of itself for `agent`, else of what one of `OF_AGENTS` says of it."""
    names = trace.columns.agents
    if by not in OF_AGENTS:
        return np.arange(len(names)), names
    words = [OF_AGENTS[by](agent) for agent in trace.agents]
    return _encoded(words + [None] * (len(names) - len(words)))


def models(trace: Trace) -> Keys:
    """By model: a turn's own (`Event.model`), where it says one; else that of the event's agent."""
    (code, words), turns = of_agents(trace, "model"), _turns(trace.columns)
    events = [trace.events[row] for row in turns.tolist()]
    said = [event.model if event.attrs else None for event in events]
    places = [place for place, model in enumerate(said) if model is not None]
    own, known = _encoded([said[place] for place in places], words)
    code[turns[places]] = own
    return code, known


def decisions(trace: Trace) -> Keys:
    """By type of decision; `None` for what is none."""
    return _encoded([e.decision.type if e.decision is not None else None for e in trace.events])


def _turns(columns: Columns) -> Ints:
    return np.flatnonzero(columns.is_kind("decision"))


def _encoded(words: Sequence[str | None], known: Sequence[str | None] = ()) -> Keys:
    """A code for each word, after those that have one already."""
    codes = {word: code for code, word in enumerate(known)}
    found = [codes.setdefault(word, len(codes)) for word in words]
    return np.array(found, dtype=np.int64), tuple(codes)
