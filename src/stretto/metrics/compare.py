"""Two traces side by side.

They are aligned by agent (its path in the spawn tree) and by causal depth (the length of the
longest chain of causes before an event), never by index: what one world inserts does not shift the
rest.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.graph import topological_order
from stretto.metrics import Measure, measure
from stretto.metrics.measure import join
from stretto.trace import Event, Evidence, Trace

Places = Mapping[tuple[str, int], Counter[str]]
"""What every agent did at every causal depth."""


class Step(Struct, frozen=True):
    """One step of an agent in both traces."""

    agent: str
    depth: int
    """Causal depth."""
    first: tuple[str, ...]
    """What it did there in the first trace: kind and tool or receiver of each event."""
    second: tuple[str, ...]


class Change(Struct, frozen=True):
    """A measure of both traces."""

    first: Measure
    second: Measure

    @property
    def difference(self) -> float | None:
        """Second minus first; `None` where one is unknown."""
        if self.first.value is None or self.second.value is None:
            return None
        return self.second.value - self.first.value

    @property
    def how(self) -> Evidence | None:
        """How the worse known of both is known; `None` where one is unknown."""
        return None if self.difference is None else worst((self.first.how, self.second.how))

    @property
    def reason(self) -> str:
        """Why one is unknown, or what is missing from either."""
        return both_sides(self.first.reason, self.second.reason)


def worst(known: Iterable[Evidence]) -> Evidence:
    """How something is known that rests on all of these."""
    found = set(known)
    if "heuristic" in found:
        return "heuristic"
    return "derived" if "derived" in found else "recorded"


def both_sides(first: str, second: str) -> str:
    """What there is to say of both sides of a comparison; empty where that is nothing."""
    if first == second:
        return first and f"on both sides: {first}"
    sides = {"in the first": first, "in the second": second}
    return join(*(f"{side}: {said}" for side, said in sides.items() if said))


class Comparison(Struct, frozen=True):
    """How two traces differ."""

    measures: Mapping[str, Change]
    agents: Mapping[str, tuple[int, int]]
    """Events of every agent in the first and in the second trace; 0 where it is not there."""
    steps: tuple[Step, ...] | None
    """Steps at which the two did not do the same, agent by agent, from the first on.

    `None` where the events of one form a loop: they have no causal depth.
    """
    common: int | None
    """Events that both have; `None` as for `steps`."""
    reason: str = ""
    """Why the steps are not known."""


def compare(first: Trace, second: Trace) -> Comparison:
    """Align two traces and compare their measures."""
    measures = _changes(measure(first), measure(second))
    counts = Counter(e.agent for e in first.events), Counter(e.agent for e in second.events)
    names = sorted({a.id for a in (*first.agents, *second.agents)}, key=_path)
    agents = {name: (counts[0][name], counts[1][name]) for name in names}
    try:
        here, there = _by_place(first), _by_place(second)
    except StrettoError as error:
        reason = f"in {error.where} {error.what}: there is no causal depth to align by"
        return Comparison(measures, agents, None, None, reason)
    return Comparison(measures, agents, *_aligned(here, there))


def _aligned(here: Places, there: Places) -> tuple[tuple[Step, ...], int]:
    """Steps that differ, and how many events are common."""
    places = sorted(here.keys() | there.keys(), key=lambda place: (_path(place[0]), place[1]))
    steps: list[Step] = []
    common = 0
    for agent, depth in places:
        own, other = here.get((agent, depth), Counter()), there.get((agent, depth), Counter())
        common += (own & other).total()
        if own != other:
            extra, missing = sorted((own - other).elements()), sorted((other - own).elements())
            steps.append(Step(agent, depth, tuple(extra), tuple(missing)))
    return tuple(steps), common


def _changes(first: Mapping[str, Measure], second: Mapping[str, Measure]) -> dict[str, Change]:
    return {name: Change(first[name], second[name]) for name in first if name in second}


def _path(agent: str) -> tuple[tuple[int, str], ...]:
    """Sort paths by number: `0/10` after `0/9`."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in agent.split("/"))


def _by_place(trace: Trace) -> Places:
    depths = causal_depth(trace)
    found: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for event, depth in zip(trace.events, depths, strict=True):
        found[event.agent, depth][_what(event)] += 1
    return found


def _what(event: Event) -> str:
    """Kind, with the tool, the receiver or the choice."""
    choice = event.decision.choice if event.decision is not None else None
    detail = event.tool or event.to or choice
    return f"{event.kind} {detail}" if detail else event.kind


def causal_depth(trace: Trace) -> list[int]:
    """Length of the longest chain of causes before every event, in record order.

    Raises `StrettoError` for a loop, and names it.
    """
    parents = trace.columns.parents
    depth = [0] * len(trace.events)
    offsets, source = parents.offsets.tolist(), parents.source.tolist()
    for row in topological_order(trace).tolist():
        causes = source[offsets[row] : offsets[row + 1]]
        depth[row] = 1 + max(depth[cause] for cause in causes) if causes else 0
    return depth
