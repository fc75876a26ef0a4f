"""Nest: many instances of other families in one episode, under one lead; 10³ to 10⁵ events.

The lead has `jobs`, each an instance of one of the `inner` templates. It sends sub-leads, at most
`abreast` at once; each solves one job with workers of its own, by the rules of its family, and
returns. The lead may also do a job itself, while nobody is out. It sees what kinds of job are
open, out and done, nothing of what goes on inside. The outcome is the mean of the jobs' outcomes;
a job that nobody answered earns nothing. So the team learns O1 on two levels, in which order to
give work out (long jobs first), and O5 within every job, over a thousand events and more.

Utility is additive, so optimum, Shapley values and bounds on the makespan are exact where those of
the inner families are: see `nest.oracle`. A nest can be a template of a nest, for deeper trees.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Any, Literal

from msgspec import Struct, structs
from msgspec.json import encode

from stretto.errors import StrettoError
from stretto.tasks import build
from stretto.tasks.faults import with_fault
from stretto.tasks.nest.leaf import (
    Leaf,
    agent_inside,
    begin_leaf,
    child_inside,
    effects_outside,
    event_inside,
    join,
    result_outside,
    team_inside,
)
from stretto.tasks.parameters import spec_of
from stretto.tasks.topology import require_topology
from stretto.tasks.words import number_word
from stretto.team.noise import key_of
from stretto.team.protocols import (
    Aggregate,
    Choice,
    Delegate,
    Effect,
    Harness,
    Prices,
    Spawn,
    Stop,
    Task,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event, content_hash

MOST_AGENTS = 1_000_000
"""Most agents alive at once."""
MOST_EVENTS = 10_000_000
LEAD = "lead"


class Nest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """Many instances, and the rules of giving them out."""

    inner: tuple[dict[str, Any], ...] = ({"family": "gather"}, {"family": "hops"})
    """Specifications of the templates; the jobs take them in turn, each with a seed of its own."""
    jobs: int = 6
    """Number of instances."""
    abreast: int = 4
    """Most sub-leads that are out at once."""
    topology: str = "hierarchical"
    """One of `stretto.tasks.topology.NAMES`: that of every template which has one and names none.
    """
    worker_cost: float = 0.0
    """Price of one spawned agent, in units of a perfect outcome."""
    second_cost: float = 0.0
    """Price of one virtual second, in units of a perfect outcome."""
    fault: Literal["job"] | None = None
    """A planted fault: one job, the same in every topology, has the first fault of its family."""
    seed: int = 0
    """What the seeds of the instances are drawn from."""

    def __post_init__(self) -> None:
        """Refuse templates that are none, and rules that give nothing out."""
        require_topology(self.topology)
        checks = {
            "inner": bool(self.inner),
            "jobs": 1 <= self.jobs <= 999,
            "abreast": 1 <= self.abreast <= 999,
            "worker_cost": self.worker_cost >= 0,
            "second_cost": self.second_cost >= 0,
        }
        for name, fine in checks.items():
            if not fine:
                what = f"{getattr(self, name)} makes no nest"
                raise StrettoError(what, f"task.{name}", _LIMITS)
        if len({task.harness.message_latency for task in self.templates.values()}) > 1:
            what = "templates whose messages take different times cannot share a clock"
            raise StrettoError(what, "task.inner")
        if self.fault and self.faulty is None:
            hint = "take a template whose family has faults, and name none there"
            raise StrettoError("no job of this nest can have a fault", "task.fault", hint)

    def __hash__(self) -> int:
        """By name: the templates are dictionaries."""
        return hash(self.id)

    @cached_property
    def id(self) -> str:
        """Seed, and a digest of the other parameters where one differs from its default."""
        rest = structs.replace(self, seed=0)
        if rest == Nest():
            return f"nest/{self.seed}"
        return f"nest/{self.seed},{content_hash(encode(rest, order='sorted').decode())[:12]}"

    @property
    def spec(self) -> dict[str, Any]:
        """Name and parameters."""
        return spec_of(self)

    @cached_property
    def templates(self) -> Mapping[str, Task]:
        """The kinds of job: name to a task of that family.

        The name is that of the family, with a number from the second template of a family on.
        """
        found: dict[str, Task] = {}
        for number, spec in enumerate(self.inner):
            task = _template(number, spec, self.topology)
            family = task.spec["family"]
            same = sum(kind.partition("-")[0] == family for kind in found)
            found[f"{family}-{number_word(same + 1)}" if same else family] = task
        return found

    @cached_property
    def harness(self) -> Harness:
        """A lead, and under it all roles and tools of the templates, named `template.role`."""
        return _harness(self)

    @property
    def prices(self) -> Prices:
        """Spawned agents and time."""
        return Prices(spawn=self.worker_cost, second=self.second_cost)

    def kind_of(self, job: int) -> str:
        """The template of a job."""
        kinds = tuple(self.templates)
        return kinds[job % len(kinds)]

    def job(self, job: int) -> Task:
        """One instance: the template with a seed of its own, where it has one."""
        template: Any = self.templates[self.kind_of(job)]
        if "seed" in template.__struct_fields__:
            template = structs.replace(template, seed=key_of(self.seed, f"job {job}") % 2**31)
        return with_fault(template) or template if job == self.faulty else template

    @cached_property
    def faulty(self) -> int | None:
        """The job with the planted fault; `None` where there is none."""
        if self.fault is None:
            return None
        able = {kind for kind, template in self.templates.items() if with_fault(template)}
        jobs = [job for job in range(self.jobs) if self.kind_of(job) in able]
        return jobs[key_of(self.seed, "faulty") % len(jobs)] if jobs else None

    def begin(self, seed: int) -> "World":
        """All jobs are open."""
        open_jobs = {kind: deque[int]() for kind in self.templates}
        for job in range(self.jobs):
            open_jobs[self.kind_of(job)].append(job)
        return World(seed, open_jobs)

    def apply(self, world: "World", event: Event) -> None:
        """Tell the job that the event belongs to, or the lead."""
        tell(self, world, event)

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The lead decides while it can give work out; in a job its family says what is open."""
        leaf = world.at[agent.id]
        if leaf is None:
            return self._offer(world, agent)
        if leaf.end is not None:
            return None
        inside = agent_inside(leaf, agent)
        choice = leaf.task.choose(leaf.world, team_inside(leaf, team), inside)
        if choice is None or agent.id != ROOT:
            return choice
        return structs.replace(choice, observation=f"Job: {leaf.kind}.\n{choice.observation}")

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Send sub-leads, begin a job, wait or stop; in a job, what its family says."""
        leaf = world.at[agent.id]
        if leaf is not None:
            inside = agent_inside(leaf, agent)
            effects = leaf.task.act(leaf.world, team_inside(leaf, team), inside, choice)
            return effects_outside(leaf, effects)
        verb, _, kind = choice.partition(" ")
        match verb:
            case "send":
                jobs = _first(world, self.abreast - agent.open_children, kind)
                return [self._sublead(job) for job in jobs]
            case "work":
                return (Delegate(ROOT, f"Solve {kind}.", {"job": world.open[kind][0]}),)
            case "stop":
                done = f"Done: {number_word(world.done)}."
                merged = (Aggregate(done),) if agent.returns else ()
                return (*merged, Stop(done, {"done": world.done}))
            case _:
                return ()

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """What the family of a running job says; nothing where a job begins or ends."""
        leaf = world.at[event.agent]
        if leaf is None or leaf.end is not None or _gives_out(event):
            return ()
        inside = event_inside(leaf, event)
        effects = leaf.task.react(leaf.world, team_inside(leaf, team), inside)
        return effects_outside(leaf, effects) if effects else ()

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """As the family of the job answers."""
        leaf = world.at[event.agent]
        if leaf is None:  # left over from a job that is answered: nobody reads it
            return ToolResult("")
        return result_outside(leaf, leaf.task.call(leaf.world, event_inside(leaf, event), key))

    def scores(self, world: "World") -> Mapping[str, float]:
        """Mean outcome of all jobs, and whether all succeeded; absent unless the lead stopped."""
        if not world.stopped:
            return {}
        found = [leaf.scores for leaf in world.leaves]
        outcomes = [scores.get("outcome", 0.0) for scores in found]
        succeeded = [
            scores.get("success", float(outcome >= 1))
            for scores, outcome in zip(found, outcomes, strict=True)
        ]
        return {
            "outcome": sum(outcomes) / self.jobs,
            "success": float(sum(succeeded) == self.jobs),
            "jobs_succeeded": sum(succeeded) / self.jobs,
        }

    def _offer(self, world: "World", agent: AgentState) -> Choice | None:
        """Which job the lead may give out or do; `None` while it can only wait."""
        out = agent.open_children
        kinds = [kind for kind, jobs in world.open.items() if jobs]
        slots = self.abreast - out
        if out and (world.waits or not kinds or slots < 1):
            return None
        options = [("spawn", f"send {kind}") for kind in kinds]
        if slots > 1 and sum(map(len, world.open.values())) > 1:
            options.append(("spawn", "send all"))
        if not out:
            own = (kind for kind in kinds if not isinstance(self.templates[kind], Nest))
            options += [("delegate", f"work {kind}") for kind in own]
        options.append(("act", "wait") if out else ("stop", "stop"))
        types, candidates = zip(*options, strict=True)
        waiting = (
            ", ".join(f"{number_word(len(world.open[kind]))} {kind}" for kind in kinds) or "none"
        )
        text = f"Jobs open: {waiting}.\nOut: {number_word(out)}.\nDone: {number_word(world.done)}."
        return Choice(text, candidates, types)

    def _sublead(self, job: int) -> Spawn:
        kind = self.kind_of(job)
        role = f"{kind}.{self.templates[kind].harness.root}"
        return Spawn(role, f"Solve {kind}.", {"job": job})


@dataclass(slots=True)
class World:
    """One episode."""

    seed: int
    open: dict[str, deque[int]]
    """Kind to the jobs of it that nobody has begun, first one first."""
    at: dict[str, Leaf | None] = field(default_factory=lambda: {ROOT: None})
    """The job of every agent; `None` for the lead while it gives work out."""
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    """Jobs that were begun."""
    waits: bool = False
    """Whether the lead waits until somebody returns."""
    born: int = 0
    """Children that the lead has had."""
    done: int = 0
    """Jobs whose answer reached the lead."""
    stopped: bool = False


def tell(task: Nest, world: World, event: Event) -> tuple[Leaf, Event] | None:
    """Tell the job that an event belongs to; return the job, and the event as it reads there.

    Keeps count of who belongs where, and of what the lead knows. `None` for the lead's own events
    and for what happens in a job after its answer.
    """
    routed = _route(task, world, event)
    if routed is not None:
        leaf, inside = routed
        leaf.task.apply(leaf.world, inside)
        if leaf.end is not None:  # at once, while the instance is still at hand
            leaf.scores = leaf.task.scores(leaf.world)
    return routed


def _route(task: Nest, world: World, event: Event) -> tuple[Leaf, Event] | None:
    leaf = world.at[event.agent]
    if event.kind == "spawn" and event.agent == ROOT:
        world.born = 1 + int((event.to or "").rpartition("/")[2])
    if leaf is None:
        _lead(task, world, event)
        return None
    if leaf.end is not None:
        return None
    if event.kind == "spawn" and event.to is not None:
        join(leaf, event.to, child_inside(leaf, event.agent, event.to))
        world.at[event.to] = leaf
    inside = event_inside(leaf, event)
    if event.kind == "despawn":
        leaf.alive.pop(event.to or "", None)
    if not answers(leaf, event):
        return leaf, inside
    _finish(world, leaf, event)
    attrs = event.attrs["answer"] if leaf.lead == ROOT else event.attrs
    return leaf, structs.replace(inside, kind="stop", to=None, attrs=attrs)


def answers(leaf: Leaf, event: Event) -> bool:
    """Whether an event of the leaf's lead hands over the answer of the job."""
    if event.agent != leaf.lead:
        return False
    if leaf.lead == ROOT:
        return event.kind == "aggregate" and "job" in event.attrs
    return event.kind == "return"


def _gives_out(event: Event) -> bool:
    """Whether the lead begins a job of its own by this event."""
    return event.agent == ROOT and event.kind == "delegate" and "job" in event.attrs


def _lead(task: Nest, world: World, event: Event) -> None:
    """What the lead does itself."""
    match event.kind:
        case "spawn" | "delegate":
            _begin(task, world, event)
        case "decision":
            world.waits = event.decision is not None and event.decision.choice == "wait"
        case "stop":
            world.stopped = True
        case _:
            pass


def _begin(task: Nest, world: World, event: Event) -> None:
    job: int = event.attrs["job"]
    kind = task.kind_of(job)
    world.open[kind].remove(job)  # the first one, so found at once
    lead = event.to or ROOT
    seed = key_of(world.seed, f"job {job}")
    start = event.start or 0.0
    elder = world.born if lead == ROOT else 0
    world.leaves.append(begin_leaf(job, kind, task.job(job), seed, start, lead, elder))
    world.at[lead] = world.leaves[-1]


def _finish(world: World, leaf: Leaf, event: Event) -> None:
    leaf.end = event.start
    world.done += 1
    world.waits = False
    if leaf.lead == ROOT:
        world.at[ROOT] = None


def _first(world: World, slots: int, kind: str) -> list[int]:
    """The open jobs that are given out next: one of a kind, or as many as may be out."""
    if kind != "all":
        return [world.open[kind][0]]
    return list(islice(merge(*world.open.values()), slots))


def _template(number: int, spec: Mapping[str, Any], topology: str) -> Task:
    """The task of a specification, in the nest's topology unless it names its own."""
    try:
        task: Any = build(spec)
        if "topology" in task.__struct_fields__ and "topology" not in spec:
            task = structs.replace(task, topology=topology)
    except StrettoError as error:
        where = error.where.replace("task", f"task.inner[{number}]", 1)
        raise StrettoError(error.what, where, error.hint) from None
    return task


def _harness(task: Nest) -> Harness:
    roles = {LEAD: "sends sub-leads or does jobs itself, and stops when all is done"}
    tools: dict[str, ToolSpec] = {}
    thinking: dict[str, float] = {}
    system = ["You lead a team that has many jobs. Long jobs should begin first."]
    for kind, template in task.templates.items():
        inner = template.harness
        roles |= {f"{kind}.{role}": text for role, text in inner.roles.items()}
        tools |= {f"{kind}.{tool}": spec for tool, spec in inner.tools.items()}
        thinking |= {f"{kind}.{role}": seconds for role, seconds in inner.thinking.items()}
        system.append(f"{kind}: {inner.system}")
    return Harness(
        system="\n".join(system),
        root=LEAD,
        roles=roles,
        tools=tools,
        thinking=thinking,
        message_latency=next(iter(task.templates.values())).harness.message_latency,
        capacity=MOST_AGENTS,
        topology=task.topology,
        max_events=MOST_EVENTS,
    )


_LIMITS = "at least one template, jobs and abreast 1 to 999, costs at least 0"
