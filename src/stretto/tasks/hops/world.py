"""What the agents of a `hops` episode know, folded from its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stretto.tasks.hops.instance import Instance
from stretto.tasks.topology import WORKER
from stretto.team.state import ROOT
from stretto.trace import Event


@dataclass(slots=True)
class Trail:
    """A branch that is being followed."""

    at: str
    """The entity that was reached."""
    left: tuple[str, ...]
    """The relations that are still to be looked up."""


@dataclass(slots=True)
class Mind:
    """What one agent knows: only what its own events told it."""

    open: dict[str, Trail] = field(default_factory=dict)
    """Branches of its share that have no end yet, by number."""
    ends: dict[str, list[str]] = field(default_factory=dict)
    """Branch to what it ends in, as found or as reported."""
    begun: bool = False
    """Whether it looked up anything in this stage."""
    sent: bool = False
    """Whether it sent workers in this stage."""
    read_memory: bool = False
    remark: str = ""
    """What was said besides the ends, last."""
    richest: str = ""
    """What the comparison of this stage said."""
    number: int = 0
    """Its place in its team."""
    team: int = 0
    """Size of its team."""
    done: bool = False
    """Whether it has nothing more to do."""

    @property
    def focus(self) -> str:
        """The branch that it follows now."""
        return next(iter(self.open))


@dataclass(slots=True)
class World:
    """One episode."""

    instance: Instance
    minds: dict[str, Mind]
    """What each agent knows, by its path."""
    answers: list[str] = field(default_factory=list)
    """What each stage so far was joined to."""
    memory: list[tuple[str, tuple[tuple[str, list[str]], ...]]] = field(default_factory=list)
    """The shared memory: the event that wrote, and branches with their ends."""
    remark: str = ""
    """What the shared memory says besides."""
    looked: set[tuple[str, str]] = field(default_factory=set)
    """Facts that anybody looked up."""
    stopped: bool = False

    @property
    def decoy(self) -> str:
        """The entity that a planted fault names: none of the question's own."""
        own = {name for stage in self.instance.stages for end in stage.ends for name in end}
        return next(name for name in self.instance.names if name not in own)


def new_world(instance: Instance) -> World:
    """Before the first event: the lead knows the question."""
    world = World(instance, {ROOT: Mind()})
    _open_stage(world, instance.stages[0].starts)
    return world


def apply(world: World, event: Event) -> None:
    """Tell the agent that the event reached what it says."""
    if event.kind in _LEARN:
        _LEARN[event.kind](world, event)


def _open_stage(world: World, starts: Sequence[str]) -> None:
    """Let the lead begin with the branches of the next stage."""
    stage = world.instance.stages[len(world.answers)]
    trails = {
        str(number): Trail(start, path)
        for number, (start, path) in enumerate(zip(starts, stage.paths, strict=True))
    }
    world.minds[ROOT] = Mind(open=trails)


def _spawned(world: World, event: Event) -> None:
    attrs = event.attrs
    trails = {b: Trail(at, tuple(left)) for b, (at, left) in attrs["trails"].items()}
    works = attrs["role"] == WORKER
    child = Mind(number=attrs["number"], team=attrs["team"], open=trails if works else {})
    world.minds[event.to or ""] = child
    parent = world.minds[event.agent]
    parent.sent = True
    for branch in trails:
        parent.open.pop(branch, None)


def _resulted(world: World, event: Event) -> None:
    mind = world.minds[event.agent]
    attrs = event.attrs
    match event.tool:
        case "lookup" | "search":
            world.looked.add((attrs["of"], attrs["relation"]))
            _hopped(mind, attrs)
        case "compare":
            mind.richest = attrs["richest"]
        case "memory.read":
            mind.read_memory = True
            mind.ends.update(attrs["ends"])
            mind.remark = attrs.get("remark", "")
        case _:
            world.remark = attrs.get("remark", world.remark)
            world.memory.append((event.id, tuple(attrs["ends"].items())))


def _hopped(mind: Mind, attrs: Mapping[str, Any]) -> None:
    """Follow the branch; what is asked again, of where it has been, leads nowhere."""
    branch, found = attrs["branch"], attrs["found"]
    trail = mind.open.get(branch)
    if trail is None or trail.at != attrs["of"]:
        return
    mind.begun = True
    trail.at, trail.left = found[0], trail.left[1:]
    if not trail.left:
        del mind.open[branch]
        mind.ends[branch] = list(found)


def _returned(world: World, event: Event) -> None:
    world.minds[event.agent].done = True
    parent = world.minds[event.to or ROOT]
    parent.ends.update(event.attrs.get("ends", {}))
    parent.remark = event.attrs.get("remark", parent.remark)


def _joined(world: World, event: Event) -> None:
    world.answers.append(event.attrs["answer"])
    world.memory.clear()
    world.remark = ""
    if len(world.answers) < len(world.instance.stages):
        width = len(world.instance.stages[0].paths)
        _open_stage(world, (event.attrs["answer"],) * width)


def _stopped(world: World, event: Event) -> None:
    world.stopped = world.minds[event.agent].done = True


_LEARN = {
    "spawn": _spawned,
    "tool_result": _resulted,
    "return": _returned,
    "aggregate": _joined,
    "stop": _stopped,
}
