"""The exact side of `nest`: what its jobs are worth and how fast they can be, job by job.

The outcome is the mean over jobs and no job changes another one. So with `n` jobs the optimum is
the mean of the jobs' optima; a Shapley value (of the game in which leads are always there) or the
value of a message is that within its job, over `n`; and no team finishes before the best schedule
of the jobs' shortest times on `abreast` machines (P‖C_max). What a family has no exact value for is
absent.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.garbage import paused_collector
from stretto.tasks.agree import Agree
from stretto.tasks.agree import oracle as agree_oracle
from stretto.tasks.gather import blame as gather_blame
from stretto.tasks.gather.reading import least_reading
from stretto.tasks.gather.shapley import agent_values as gather_values
from stretto.tasks.hops import Hops
from stretto.tasks.hops import oracle as hops_oracle
from stretto.tasks.jury import Jury
from stretto.tasks.jury import accuracy as jury_accuracy
from stretto.tasks.jury import oracle as jury_oracle
from stretto.tasks.nest import Nest, World, tell
from stretto.tasks.nest.leaf import Leaf, bare, event_inside, outer_id
from stretto.tasks.nest.names import names_of
from stretto.tasks.nest.schedule import shortest_schedule
from stretto.tasks.repair import Repair
from stretto.tasks.repair import oracle as repair_oracle
from stretto.tasks.scouts import Scouts
from stretto.tasks.scouts import oracle as scouts_oracle
from stretto.tasks.scripts import yardstick_of
from stretto.tasks.topology import WORKER
from stretto.team.interventions import is_void
from stretto.team.protocols import Task
from stretto.team.replay import seed_of
from stretto.team.state import ROOT
from stretto.trace import Agent, Edge, Event, Score, Trace

NANOSECONDS = 1_000_000_000
"""The unit of schedules: the virtual clock's smallest step."""


class Job(Struct, frozen=True):
    """One job of an episode."""

    leaf: Leaf
    trace: Trace
    """What happened in it, as a trace of its family; it names no harness: it cannot be replayed."""


class Schedule(Struct, frozen=True):
    """How well the lead gave its jobs out."""

    seconds: float
    """From the begin of the first job to the end of the last one."""
    best: float
    """Shortest time in which `abreast` sub-leads do jobs that take as long as these took."""
    serial: float
    """The jobs one after the other."""
    certified: bool
    """Whether `best` is the optimum; else an upper bound on it."""


class Exact(Struct, frozen=True):
    """What is exact about an episode. What a family has no exact value for is absent."""

    optimum: float
    """As of `optimum`."""
    agents: Mapping[str, float]
    """Outer path to the Shapley value of the agent, in a game in which leads are always there."""
    messages: Mapping[str, float]
    """Event to what an exact receiver loses without that report."""
    blame: Mapping[int, tuple[str, str]]
    """Job to the agent and the event of the planted fault that decided it."""
    schedule: Schedule
    """The lead's schedule beside the best one, over the jobs that were answered."""


def optimum(task: Nest) -> float:
    """Expected outcome of the jobs' oracles: `1/n Σ best_i`.

    Raises `StrettoError` where a family knows only its outcome less prices.
    """
    return sum(_best(task.job(job)) for job in range(task.jobs)) / task.jobs


def exact(task: Nest, trace: Trace) -> Exact:
    """All exact values of an episode, in one pass over its events.

    Raises `StrettoError` where a family knows only its outcome less prices.
    """
    best: dict[int, float] = {}
    agents: dict[str, float] = {}
    messages: dict[str, float] = {}
    culprits: dict[int, tuple[str, str]] = {}
    leaves: list[Leaf] = []
    with paused_collector():
        for job in played(task, trace):
            leaf = job.leaf
            best[leaf.index] = _best(leaf.task)
            agents |= {
                leaf.outer[path]: value / task.jobs for path, value in agent_values(job).items()
            }
            messages |= {outer_id(leaf, e): v / task.jobs for e, v in message_values(job).items()}
            culprits |= _blame(job)
            leaves.append(leaf)
    idle = [job for job in range(task.jobs) if job not in best]
    total = sum(best.values()) + sum(_best(task.job(job)) for job in idle)
    return Exact(total / task.jobs, agents, messages, culprits, _schedule(task, leaves))


def played(task: Nest, trace: Trace) -> Iterator[Job]:
    """The jobs of an episode as traces of their own, each as soon as its answer comes.

    Those without an answer come last, and have no scores. Takes time linear in the number of
    events. Whatever agents are called in the trace, their jobs are found by who spawned them.

    Raises `StrettoError` that names the event where one does not fit those before it.
    """
    world: World = task.begin(seed_of(trace))
    into, names = _by_target(trace.edges), names_of(trace)
    roles = {agent.id: agent.role or "" for agent in trace.agents}
    kept: dict[int, dict[str, Event]] = {}

    def job(leaf: Leaf) -> Job:
        events = kept.pop(leaf.index, {})
        named = names.outside(leaf, {event: inside.id for event, inside in events.items()})
        return Job(named, _trace(trace, named, events, into, roles))

    for event in trace.events:
        routed = _routed(task, world, names.plain(event), event.id)
        if routed is None:
            continue
        leaf, inside = routed
        kept.setdefault(leaf.index, {})[event.id] = inside
        if leaf.end is not None:
            yield job(leaf)
    yield from (job(leaf) for leaf in world.leaves if leaf.end is None)


def least_seconds(task: Nest) -> float | None:
    """No team is done sooner, in virtual seconds; `None` where a family knows no such bound.

    The best schedule of every job's own lower bound: the least reading of `gather`, the makespan of
    `hops` with a worker a branch, the span or the shared work of `repair`.
    """
    known = [seconds_of(task.job(job)) for job in range(task.jobs)]
    seconds = [each for each in known if each is not None]
    if len(seconds) < len(known):
        return None
    units = _units(seconds)
    best = shortest_schedule(units, task.abreast)
    bound = max(max(units), ceil(sum(units) / task.abreast))
    return (best.value if best.certified else bound) / NANOSECONDS


def seconds_of(task: Task) -> float | None:
    """No team solves this instance sooner; `None` where its family knows no such bound."""
    if isinstance(task, Nest):
        return least_seconds(task)
    bound = _SECONDS.get(task.spec["family"])
    return None if bound is None else bound(task)


def _best(task: Task) -> float:
    if isinstance(task, Scouts):
        free = scouts_oracle.scouts_oracle(replace(task, scout_cost=0.0, round_cost=0.0))
        return free.value(scouts_oracle.scouts_oracle(task).optimal())
    if isinstance(task, Hops):
        return 1.0  # as its yardstick, which would have to spell all of its names
    yard = yardstick_of(task)
    if yard.priced:
        raise StrettoError("only its outcome less prices is known", task.id, "a nest has one price")
    return yard.best


def _routed(task: Nest, world: World, event: Event, called: str) -> tuple[Leaf, Event] | None:
    """As `tell`; what an intervention took away stays where it was."""
    try:
        if not is_void(event):
            return tell(task, world, event)
        leaf = world.at.get(event.agent)
        return None if leaf is None or leaf.end is not None else (leaf, event_inside(leaf, event))
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        what = f"this event does not fit those before it ({type(error).__name__}: {error})"
        hint = "only an episode as it was played can be followed, up to the names of its agents"
        raise StrettoError(what, called, hint) from error


def _by_target(edges: Iterable[Edge]) -> Mapping[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for edge in edges:
        found.setdefault(edge.dst, []).append(edge)
    return found


def _trace(
    trace: Trace,
    leaf: Leaf,
    events: Mapping[str, Event],
    into: Mapping[str, list[Edge]],
    roles: Mapping[str, str],
) -> Trace:
    """A job's events, by the ids that they have outside, as a trace."""
    edges = tuple(
        Edge(events[edge.src].id, inside.id, edge.label)
        for event, inside in events.items()
        for edge in into.get(event, ())
        if edge.src in events
    )
    agents = [
        Agent(id=inner, role=bare(roles[outer]), parent=inner.rpartition("/")[0])
        for inner, outer in leaf.outer.items()
        if inner != ROOT
    ]
    return Trace(
        id=f"{trace.id}/{leaf.index}",
        task=leaf.task.id,
        system=trace.system,
        topology=leaf.task.harness.topology,
        seed=leaf.seed,
        spec=leaf.task.spec,
        agents=(Agent(id=ROOT, role=leaf.task.harness.root), *agents),
        events=tuple(events.values()),
        edges=edges,
        scores=tuple(Score(channel=name, value=value) for name, value in leaf.scores.items()),
        contents=trace.contents,
    )


def agent_values(job: Job) -> Mapping[str, float]:
    """Shapley value of each agent of a job, by its path within the job; empty where unknown."""
    values = _AGENTS.get(_family(job))
    if values is None or job.leaf.end is None:
        return {}
    return values(job.leaf.task, job.trace) or {}


def message_values(job: Job) -> Mapping[str, float]:
    """Exact value of each report of a job, by its event within the job; empty where unknown."""
    values = _MESSAGES.get(_family(job))
    return values(job.leaf.task, job.trace) if values else {}


def _blame(job: Job) -> dict[int, tuple[str, str]]:
    finds = _BLAME.get(_family(job))
    culprit = finds(job.leaf.task, job.trace) if finds else None
    if culprit is None:
        return {}
    agent = job.leaf.outer[culprit.agent]
    return {job.leaf.index: (agent, outer_id(job.leaf, culprit.event))}


def _schedule(task: Nest, leaves: Iterable[Leaf]) -> Schedule:
    times = [(leaf.start, leaf.end) for leaf in leaves if leaf.end is not None]
    spans = [end - start for start, end in times]
    best = shortest_schedule(_units(spans), task.abreast)
    first = min((start for start, _ in times), default=0.0)
    last = max((end for _, end in times), default=0.0)
    return Schedule(last - first, best.value / NANOSECONDS, sum(spans), best.certified)


def _units(seconds: Iterable[float]) -> list[int]:
    """Whole nanoseconds; what takes no time needs no machine."""
    units = [round(each * NANOSECONDS) for each in seconds]
    return [each for each in units if each]


def _family(job: Job) -> str:
    return job.trace.spec["family"]


def _repair_values(task: Repair, trace: Trace) -> Mapping[str, float]:
    """Of those who repaired something, where the agents are few."""
    few = len(trace.agents) <= repair_oracle.MOST_PLAYERS
    return repair_oracle.agent_values(task, trace) if few else {}


def _member_values(task: Agree, trace: Trace) -> Mapping[str, float]:
    """Of the members' inputs, where they are few and agree on a function of them."""
    few = task.members <= agree_oracle.MOST_PLAYERS
    if not few or task.problem not in agree_oracle.CONSENSUS:
        return {}
    values = agree_oracle.member_values(task).tolist()
    return {f"{ROOT}/{member}": value for member, value in enumerate(values)}


def _witness_values(task: Jury, trace: Trace) -> Mapping[str, float]:
    """Of the witnesses who made a claim, before it is known what they see; where they are few."""
    if task.witnesses > jury_accuracy.MOST_PLAYERS:
        return {}
    values = jury_accuracy.witness_values(task).tolist()
    roles = {agent.id: agent.role for agent in trace.agents}
    claims = (event for event in trace.events if roles[event.agent] == WORKER)
    return {
        event.agent: values[int(witness)]
        for event in claims
        for witness in event.attrs.get("claims", {})
    }


def _jury_blame(task: Jury, trace: Trace) -> Any:
    return jury_oracle.blame(task, trace, task.begin(seed_of(trace)).hidden)


_SECONDS: Mapping[str, Callable[[Any], float]] = {
    "gather": lambda task: least_reading(task, task.workers),
    "hops": lambda task: hops_oracle.makespan(task, task.width),
    "repair": repair_oracle.quick_bound,
}
"""Family to a lower bound on the time that any team needs."""
_AGENTS: Mapping[str, Callable[[Any, Trace], Mapping[str, float] | None]] = {
    "agree": _member_values,
    "gather": gather_values,
    "hops": hops_oracle.reporter_values,
    "jury": _witness_values,
    "nest": lambda task, trace: exact(task, trace).agents,
    "repair": _repair_values,
}
"""Family to its exact Shapley values."""
_MESSAGES: Mapping[str, Callable[[Any, Trace], Mapping[str, float]]] = {
    "hops": hops_oracle.report_values,
    "jury": jury_oracle.claim_values,
    "nest": lambda task, trace: exact(task, trace).messages,
    "repair": repair_oracle.report_values,
}
"""Family to the exact value of every message."""
_BLAME: Mapping[str, Callable[[Any, Trace], Any]] = {
    "agree": agree_oracle.blame,
    "gather": gather_blame.blame,
    "hops": hops_oracle.blame,
    "jury": _jury_blame,
    "repair": repair_oracle.blame,
    "scouts": scouts_oracle.blame,
}
"""Family to who made the planted mistake."""
