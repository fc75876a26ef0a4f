"""Counts: who was there, and what came back."""

from collections import Counter

from stretto.metrics.measure import Measure
from stretto.trace import Trace


def structure(trace: Trace) -> dict[str, Measure]:
    """Agents, events, spawns, returns, and spawns that never returned."""
    kinds = Counter(event.kind for event in trace.events)
    returned = {event.agent for event in trace.events if event.kind == "return"}
    spawned = [event.to for event in trace.events if event.kind == "spawn"]
    unpaired = sum(agent is None or agent not in returned for agent in spawned)
    return {
        "agents": Measure(len(trace.agents)),
        "events": Measure(len(trace.events)),
        "spawns": Measure(kinds["spawn"]),
        "returns": Measure(kinds["return"]),
        "unpaired_spawns": Measure(unpaired, "derived"),
    }
