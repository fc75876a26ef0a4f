"""An instance of another family inside a larger episode: what it is told, and what it does.

The inner task sees a team of its own: its lead is agent `0`, its clock starts at 0, its roles and
tools have their own names. So a family needs to know nothing of the episode around it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from msgspec import structs

from stretto.team.protocols import (
    Aggregate,
    Call,
    Delegate,
    Despawn,
    Effect,
    Message,
    Return,
    Spawn,
    Stop,
    Task,
    ToolResult,
)
from stretto.team.state import ROOT, AgentState, Team, later
from stretto.trace import Event


class Members(Mapping[str, AgentState]):
    """The agents of a leaf by their inner paths."""

    def __init__(self, leaf: "Leaf") -> None:
        self._leaf = leaf

    def __getitem__(self, path: str) -> AgentState:
        """An agent as the inner task sees it."""
        return agent_inside(self._leaf, self._leaf.around[self._leaf.outer[path]])

    def __contains__(self, path: object) -> bool:
        """Whether there is such an agent, without looking at it."""
        return path in self._leaf.outer

    def __iter__(self) -> Iterator[str]:
        return iter(self._leaf.outer)

    def __len__(self) -> int:
        return len(self._leaf.outer)


@dataclass(slots=True)
class Leaf:
    """One inner instance while it is played."""

    index: int
    kind: str
    """Name of its template; what its roles and tools are called by outside."""
    task: Task
    world: Any
    seed: int
    start: float
    """When it was begun."""
    lead: str
    """Outer path of its lead."""
    elder: int
    """Children that its lead had before."""
    inner: dict[str, str] = field(default_factory=dict)
    """Outer path to inner path of each of its agents."""
    outer: dict[str, str] = field(default_factory=dict)
    """The inverse."""
    alive: dict[str, None] = field(default_factory=dict)
    """Outer paths of those who have not left."""
    around: Team = field(default_factory=lambda: Team({}))
    """The team of the whole episode."""
    end: float | None = None
    """When it was answered."""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """What its answer earned."""
    events: Mapping[str, str] = field(default_factory=dict[str, str])
    """Inner to outer id of events that are not called after their agents in the episode."""


def begin_leaf(
    index: int, kind: str, task: Task, seed: int, start: float, lead: str, elder: int
) -> Leaf:
    """A leaf before its first event."""
    leaf = Leaf(index, kind, task, task.begin(seed), seed, start, lead, elder)
    join(leaf, lead, ROOT)
    return leaf


def join(leaf: Leaf, outer: str, inner: str) -> None:
    """Make an agent of the episode one of the leaf's."""
    leaf.inner[outer], leaf.outer[inner] = inner, outer
    leaf.alive[outer] = None


def child_inside(leaf: Leaf, parent: str, child: str) -> str:
    """Inner path of a child that an agent of the leaf spawns; both are given by outer paths."""
    number = int(child.rpartition("/")[2])
    return f"{leaf.inner[parent]}/{number - (leaf.elder if parent == leaf.lead else 0)}"


def event_inside(leaf: Leaf, event: Event) -> Event:
    """An event of one of the leaf's agents, as the inner task sees it."""
    agent = leaf.inner[event.agent]
    attrs = event.attrs
    if event.kind == "spawn":
        attrs = {**attrs, "role": bare(attrs["role"])}
    return structs.replace(
        event,
        id=agent + event.id[len(event.agent) :],
        agent=agent,
        start=_since(leaf, event.start or 0.0),
        to=None if event.to is None else leaf.inner.get(event.to),
        tool=None if event.tool is None else bare(event.tool),
        attrs=attrs,
    )


def agent_inside(leaf: Leaf, agent: AgentState) -> AgentState:
    """An agent as the inner task sees it; what happens to it later does not show."""
    is_lead = agent.id == leaf.lead
    return replace(
        agent,
        id=leaf.inner[agent.id],
        role=leaf.task.harness.root if is_lead else bare(agent.role),
        parent=None if is_lead else leaf.inner[agent.parent or ""],
        children=agent.children - (leaf.elder if is_lead else 0),
        busy_until=_since(leaf, agent.busy_until),
    )


def team_inside(leaf: Leaf, team: Team) -> Team:
    """The leaf's agents as a team."""
    leaf.around = team
    agents = cast(dict[str, AgentState], Members(leaf))
    return Team(agents, time=_since(leaf, team.time), alive=len(leaf.alive))


def result_outside(leaf: Leaf, result: ToolResult) -> ToolResult:
    """A tool's answer, with the outer ids of what it reflects."""
    if not result.causes:
        return result
    return structs.replace(result, causes=tuple(outer_id(leaf, each) for each in result.causes))


def effects_outside(leaf: Leaf, effects: Sequence[Effect]) -> list[Effect]:
    """What the leaf's agents do, as effects of the whole episode."""
    found: list[Effect] = []
    for effect in effects:
        found += _OUTSIDE[type(effect)](leaf, effect)
    return found


def _spawn(leaf: Leaf, effect: Spawn) -> list[Effect]:
    return [structs.replace(effect, role=f"{leaf.kind}.{effect.role}")]


def _call(leaf: Leaf, effect: Call) -> list[Effect]:
    return [structs.replace(effect, tool=f"{leaf.kind}.{effect.tool}")]


def _written(leaf: Leaf, effect: Message | Delegate) -> list[Effect]:
    return [structs.replace(effect, to=leaf.outer[effect.to])]


def _despawn(leaf: Leaf, effect: Despawn) -> list[Effect]:
    return [Despawn(leaf.outer[effect.agent])]


def _stop(leaf: Leaf, effect: Stop) -> list[Effect]:
    """The answer goes to whoever gave the work out, and everybody leaves."""
    others: list[Effect] = [Despawn(agent) for agent in leaf.alive if agent != leaf.lead]
    if leaf.lead == ROOT:
        answer = {"job": leaf.index, "answer": dict(effect.attrs)}
        return [*others, Aggregate(effect.text, answer)]
    return [*others, Return(effect.text, effect.attrs), Despawn(leaf.lead)]


def _same(leaf: Leaf, effect: Effect) -> list[Effect]:
    return [effect]


_OUTSIDE: dict[type[Effect], Callable[[Leaf, Any], list[Effect]]] = {
    Spawn: _spawn,
    Call: _call,
    Message: _written,
    Delegate: _written,
    Despawn: _despawn,
    Stop: _stop,
    Return: _same,
    Aggregate: _same,
}


def bare(name: str) -> str:
    """A role or a tool without the name of its template."""
    return name.partition(".")[2] or name


def _since(leaf: Leaf, time: float) -> float:
    return later(time, -leaf.start)


def outer_id(leaf: Leaf, event: str) -> str:
    """The id that an event of the leaf has in the episode."""
    if event in leaf.events:
        return leaf.events[event]
    agent, _, number = event.rpartition("#")
    return f"{leaf.outer[agent]}#{number}"
