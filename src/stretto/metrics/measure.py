"""A number, and how it is known."""

from msgspec import Struct

from stretto.trace import Evidence, Trace


class Measure(Struct, frozen=True):
    """One measure of a trace."""

    value: float | None
    """`None` where it cannot be known."""
    how: Evidence = "recorded"
    reason: str = ""
    """Why it is unknown, or what is missing from it."""


def unseen(trace: Trace) -> str:
    """What to say of agents whose own record an import did not find; empty where there are none."""
    missing = sum(agent.attrs.get("transcript") is False for agent in trace.agents)
    return f"{missing} of {len(trace.agents)} agents left no transcript" if missing else ""


def lower_bound(*missing: str) -> str:
    """The reason of a sum that lacks something; empty where nothing is missing."""
    said = "; ".join(filter(None, missing))
    return f"{said}: a lower bound" if said else ""
