"""A number, and how it is known."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from stretto.trace import Evidence, Trace

LOWER = ": a lower bound"


class Measure(Struct, frozen=True):
    """One measure of a trace."""

    value: float | None
    """`None` where it cannot be known."""
    how: Evidence = "recorded"
    reason: str = ""
    """Why it is unknown, or what is missing from it."""


def unknown(reason: str) -> Measure:
    """A measure that cannot be known."""
    return Measure(None, reason=reason)


def unseen(trace: Trace) -> str:
    """What to say of agents whose own record an import did not find; empty where there are none."""
    missing = sum(agent.attrs.get("transcript") is False for agent in trace.agents)
    return f"{missing} of {len(trace.agents)} agents left no transcript" if missing else ""


def lower_bound(*missing: str) -> str:
    """The reason of a sum that lacks something; empty where nothing is missing."""
    said = join(*missing)
    return f"{said}{LOWER}" if said else ""


def no_bound(reason: str) -> str:
    """What is missing from a share or a mean, which is no bound because of that."""
    return reason.replace(LOWER, "")


def join(*parts: str) -> str:
    """Reasons as one; empty ones are left out."""
    return "; ".join(dict.fromkeys(filter(None, parts)))


def by_evidence(guessed: bool) -> Evidence:
    """How a measure is known that follows from edges; `guessed` where one of them is a guess."""
    return "heuristic" if guessed else "derived"


def ratio(above: Measure, below: Measure, nothing: str) -> Measure:
    """One measure over another; `nothing` says why there is none over 0.

    Over a number that lacks something it is no bound.
    """
    if above.value is None or below.value is None:
        return unknown(above.reason if above.value is None else below.reason)
    if not below.value:
        return unknown(nothing)
    how = "heuristic" if "heuristic" in (above.how, below.how) else "derived"
    over = no_bound(above.reason) if below.reason else above.reason
    return Measure(above.value / below.value, how, join(over, no_bound(below.reason)))


def all_unknown(names: Sequence[str], reason: str) -> Mapping[str, Measure]:
    """Several measures that cannot be known for one reason."""
    return dict.fromkeys(names, unknown(reason))
