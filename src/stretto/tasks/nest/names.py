"""The paths of agents whose names in a trace are others, so that its jobs can be followed.

Who an agent is follows from who spawned it, and in which order; a name says nothing.
"""

from collections.abc import Mapping
from dataclasses import replace

from msgspec import Struct, structs

from stretto.tasks.nest.leaf import Leaf
from stretto.team.state import ROOT
from stretto.trace import Event, Trace


class Names(Struct, frozen=True):
    """How the agents of a trace are called."""

    paths: Mapping[str, str]
    """Name in the trace to path in the spawn tree."""
    names: Mapping[str, str]
    """The inverse."""

    def plain(self, event: Event) -> Event:
        """An event as it would read if agents were called by their paths."""
        agent = self.paths.get(event.agent, event.agent)
        to = None if event.to is None else self.paths.get(event.to, event.to)
        own = event.id.startswith(f"{agent}#")
        if own and (agent, to) == (event.agent, event.to):
            return event
        number = event.id.rpartition("#")[2]
        return structs.replace(event, id=f"{agent}#{number}", agent=agent, to=to)

    def outside(self, leaf: Leaf, ids: Mapping[str, str]) -> Leaf:
        """A leaf whose outer names are those of the trace; `ids`: event to its inner id."""
        outer = {inner: self.names.get(path, path) for inner, path in leaf.outer.items()}
        renamed = {
            inside: event for event, inside in ids.items() if not _follows(outer, inside, event)
        }
        return replace(leaf, outer=outer, events=renamed)


def names_of(trace: Trace) -> Names:
    """The path of every agent, by the order in which its parent spawned it.

    Numbers that a parent's children have as paths stay: some of those it spawned may never have
    come.
    """
    root = next((agent.id for agent in trace.agents if not agent.parent), ROOT)
    children: dict[str, dict[str, None]] = {}
    for event in trace.events:
        if event.kind == "spawn" and event.to:
            children.setdefault(event.agent, {})[event.to] = None
    paths = {root: ROOT}
    left = [root]
    while left:
        parent = left.pop()
        born = [child for child in children.get(parent, ()) if child not in paths]
        numbers = _numbers(parent, born)
        paths |= {c: f"{paths[parent]}/{n}" for c, n in zip(born, numbers, strict=True)}
        left += born
    return Names(paths, {path: name for name, path in paths.items()})


def _numbers(parent: str, children: list[str]) -> list[int]:
    """The numbers of siblings, in the order of their spawns."""
    parts = [child.rpartition("/") for child in children]
    if all(above == parent and last.isdecimal() for above, _, last in parts):
        return sorted(int(last) for _, _, last in parts)
    return list(range(len(children)))


def _follows(outer: Mapping[str, str], inside: str, event: str) -> bool:
    """Whether the id of an event outside follows from the one inside."""
    agent, _, number = inside.rpartition("#")
    return event == f"{outer[agent]}#{number}"
