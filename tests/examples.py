"""Small traces made by hand, for tests that say what they expect in numbers."""

from itertools import pairwise

from stretto.trace import Agent, Decision, Edge, Event, Score, Trace, content_hash


def event(name, kind="decision", start=None, duration=None, **fields):
    """An event whose agent is what stands before the `#` of its id."""
    fields.setdefault("agent", name.partition("#")[0])
    return Event(id=name, kind=kind, start=start, duration=duration, **fields)


def turn(name, start=None, duration=None, seen="", candidates=("a", "b"), chosen=0, **fields):
    """A decision that saw the text `seen` and chose evenly among two."""
    decision = Decision(
        candidates=candidates,
        chosen=chosen,
        logprobs=tuple([-0.7] * len(candidates)),
        observation=content_hash(seen),
    )
    return event(name, "decision", start, duration, decision=decision, **fields)


def trace(*events, edges=(), roles=None, outcome=None, **fields):
    """A trace of these events; `edges` are tuples, `roles` maps agents to roles."""
    roles = roles or {}
    names = dict.fromkeys([*roles, *(each.agent for each in events)])
    fields.setdefault("id", "t")
    fields.setdefault("agents", tuple(Agent(id=name, role=roles.get(name)) for name in names))
    if outcome is not None:
        fields["scores"] = (Score(channel="outcome", value=outcome), *fields.get("scores", ()))
    return Trace(events=events, edges=tuple(Edge(*edge) for edge in edges), **fields)


def chain(*names):
    """Edges from each name to the next."""
    return tuple(pairwise(names))
