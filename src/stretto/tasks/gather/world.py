"""What the agents of a `gather` episode know, folded from its events."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stretto.tasks.gather.instance import Instance, standing
from stretto.team.state import ROOT
from stretto.trace import Event

Notes = dict[str, dict[str, str]]
"""Cell to each value that was read, with the title of the best source that says so."""


@dataclass(slots=True)
class Mind:
    """What one agent knows: only what its own events told it."""

    open: dict[str, None] = field(default_factory=dict)
    """Cells of its share that have no value yet (an ordered set)."""
    unsearched: OrderedDict[str, None] = field(default_factory=OrderedDict)
    """Those of them that it has not searched for; a linked list, whose head is found at once."""
    focus: str = ""
    """The cell that it searched for last, until it is written."""
    hits: dict[str, str] = field(default_factory=dict)
    """Unread documents that the last search found, with their titles."""
    skip: int = 0
    """Hits that have been shown, where there are more; 0 where there are none."""
    read: set[str] = field(default_factory=set)
    """Documents that it has read."""
    notes: Notes = field(default_factory=dict)
    """What was read of open cells."""
    spare: Notes = field(default_factory=dict)
    """What it read of cells of others, where it has peers that it could tell."""
    filled: dict[str, str] = field(default_factory=dict)
    """Values that it wrote, or that its workers returned."""
    sent: int = 0
    """How many workers it sent, or had sent."""
    untold: bool = False
    """Whether those whom it sent last may have written to the shared memory."""
    number: int = 0
    """Its place in its team."""
    team: int = 0
    """Size of its team, where it has peers that it could tell."""
    turns: int = 0
    """How often it has decided."""


@dataclass(slots=True)
class World:
    """One episode."""

    instance: Instance
    minds: dict[str, Mind]
    """What each agent knows, by its path."""
    table: dict[str, str] = field(default_factory=dict)
    """The shared table: cell to value."""
    memory: list[Event] = field(default_factory=list)
    """What was written to the shared memory since it was read."""
    submitted: bool = False


def new_world(instance: Instance) -> World:
    """An empty table; the lead knows which cells it has."""
    return World(instance, {ROOT: _mind(instance.truth)})


def apply(world: World, event: Event) -> None:
    """Tell the agent that the event reached what it says, and fill the shared table."""
    match event.kind:
        case "decision":
            world.minds[event.agent].turns += 1
        case "spawn":
            _delegated(world, event)
        case "tool_result":
            _RESULTS[event.tool or ""](world, world.minds[event.agent], event)
        case "return":
            _told(world.minds[event.to or ""], event.attrs)
        case "message":
            _heard(world.minds[event.to or ""], event.attrs)
        case "stop":
            world.submitted = True
        case _:
            pass


def _mind(cells: Mapping[str, Any] | Sequence[str], number: int = 0, team: int = 0) -> Mind:
    mind = Mind(number=number, team=team)
    _entrust(mind, cells)
    return mind


def _entrust(mind: Mind, cells: Mapping[str, Any] | Sequence[str]) -> None:
    mind.open.update(dict.fromkeys(cells))
    mind.unsearched.update(dict.fromkeys(cells))


def _delegated(world: World, event: Event) -> None:
    """Move cells from the sender's share to that of who was sent."""
    attrs = event.attrs
    cells: list[str] = attrs["cells"]
    world.minds[event.to or ""] = _mind(cells, attrs.get("number", 0), attrs.get("team", 0))
    sender = world.minds[event.agent]
    sender.sent += attrs.get("below", 1)
    sender.untold = True
    for cell in cells:
        _close(sender, cell)


def _told(mind: Mind, facts: Mapping[str, Any]) -> None:
    """Know what others filled; what they left is open again."""
    mind.filled.update(facts.get("filled", {}))
    _entrust(mind, facts.get("left", ()))


def _found(world: World, mind: Mind, event: Event) -> None:
    facts = event.attrs
    mind.focus = facts["q"]
    mind.hits = {name: title for name, title in facts["hits"].items() if name not in mind.read}
    mind.skip = facts.get("more", 0)
    mind.unsearched.pop(mind.focus, None)


def _noted(world: World, mind: Mind, event: Event) -> None:
    facts = event.attrs
    title: str = facts["title"]
    mind.read.add(facts["doc"])
    mind.hits.pop(facts["doc"], None)
    for cell, value in facts["statements"].items():
        if cell in mind.open:
            _add(mind.notes, cell, value, title)
        elif mind.team and cell not in mind.filled:
            _add(mind.spare, cell, value, title)


def _heard(mind: Mind, facts: Mapping[str, Any]) -> None:
    """Know what a peer read of cells that are open here; it is passed on to nobody."""
    for cell, sources in facts.get("read", {}).items():
        if cell in mind.open:
            for value, title in sources.items():
                _add(mind.notes, cell, value, title)


def _add(notes: Notes, cell: str, value: str, title: str) -> None:
    sources = notes.setdefault(cell, {})
    known = sources.get(value)
    if known is None or standing(title) > standing(known):
        sources[value] = title


def _written(world: World, mind: Mind, event: Event) -> None:
    cell, value = event.attrs["cell"], event.attrs["value"]
    world.table[cell] = mind.filled[cell] = value
    _close(mind, cell)


def _remembered(world: World, mind: Mind, event: Event) -> None:
    world.memory.append(event)


def _recalled(world: World, mind: Mind, event: Event) -> None:
    mind.untold = False
    _told(mind, event.attrs)
    world.memory.clear()


def _submitted(world: World, mind: Mind, event: Event) -> None:
    """Learn nothing that would matter: the episode ends."""


def _close(mind: Mind, cell: str) -> None:
    mind.open.pop(cell, None)
    mind.unsearched.pop(cell, None)
    mind.notes.pop(cell, None)
    if mind.focus == cell:
        mind.focus, mind.hits, mind.skip = "", {}, 0


_RESULTS = {
    "search": _found,
    "read": _noted,
    "write_cell": _written,
    "submit": _submitted,
    "memory.write": _remembered,
    "memory.read": _recalled,
}
