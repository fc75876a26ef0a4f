"""What is exact about an episode, whatever its family: plans, messages, agents, answers.

Every entry is computed from the instance and the trace by the family's own oracle. What a family
has no exact value for is `None`: not scored, never 0.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.team.protocols import Task
from stretto.team.state import ROOT
from stretto.trace import Trace

Values = Mapping[str, float]


class Plans(Struct, frozen=True):
    """How fast an instance can be solved, in virtual seconds."""

    serial: float | None = None
    """`T*_serial`: the best plan of one agent."""
    parallel: Callable[[int], float] | None = None
    """`T*_P`: the best plan of so many agents, or a lower bound on it."""


class Exact(Struct, frozen=True):
    """What is exact about an episode."""

    messages: Values | None = None
    """Event of a report to what an exact receiver loses without it."""
    agents: Values | None = None
    """Spawned agent to its Shapley value."""


def plans(task: Task) -> Plans:
    """How fast the instance can be solved; empty where its family does not know."""
    found = _PLANS.get(task.spec["family"])
    return found(task) if found else Plans()


def exact(task: Task, trace: Trace) -> Exact:
    """What is exact about an episode."""
    family = task.spec["family"]
    if family == "nest":
        return _nest(task, trace)
    messages, agents = _MESSAGES.get(family), _AGENTS.get(family)
    return Exact(
        messages(task, trace) if messages else None,
        _spawned(agents(task, trace)) if agents else None,
    )


def answer(task: Task, trace: Trace) -> str | None:
    """What the team answered, as a text that is equal for equal answers; `None` for none.

    This is what a majority vote counts.
    """
    stop = next((event for event in trace.events if event.kind == "stop"), None)
    if stop is None:
        return None
    fields = WRITES.get(task.spec["family"])
    if fields is None:
        return trace.text(stop.content)
    tool, place, value = fields
    written = {
        event.attrs[place]: event.attrs[value]
        for event in trace.events
        if event.kind == "tool_result" and event.tool == tool and not event.attrs.get("refused")
    }
    return repr(sorted(written.items()))


WRITES: Mapping[str, tuple[str, str, str]] = {
    "gather": ("write_cell", "cell", "value"),
    "repair": ("edit", "module", "written"),
}
"""Family whose answer is what a tool wrote: the tool, and where in its facts place and value are.
"""


def _hops_plans(task: Any) -> Plans:
    from stretto.tasks.hops import oracle as hops_oracle

    return Plans(hops_oracle.work(task), lambda agents: hops_oracle.makespan(task, agents))


def _gather_plans(task: Any) -> Plans:
    """Reading alone: a lower bound on what a team of so many needs."""
    from stretto.tasks.gather import READ_SECONDS, instance_of
    from stretto.tasks.gather.oracle import optimal_reading

    instance = instance_of(task)
    return Plans(
        None, lambda agents: optimal_reading(instance, max(agents, 1), READ_SECONDS).seconds
    )


def _repair_plans(task: Any) -> Plans:
    from stretto.tasks.repair import LIST_SECONDS
    from stretto.tasks.repair.oracle import least_seconds, work

    return Plans(LIST_SECONDS + work(task), lambda agents: least_seconds(task, agents))


def _agree_plans(task: Any) -> Plans:
    """Nobody can do it alone; no team is done before the farthest input has come."""
    from stretto.tasks.agree import rounds_needed

    return Plans(None, lambda agents: float(rounds_needed(task)))


def _nest_plans(task: Any) -> Plans:
    """The best schedule of its jobs' shortest times: a lower bound for a team of any size."""
    from stretto.tasks.nest.oracle import least_seconds

    least = least_seconds(task)
    return Plans(None, None if least is None else lambda agents: least)


def _nest(task: Any, trace: Trace) -> Exact:
    """As within each job, over the number of jobs: utility is additive. Leads are no players."""
    from stretto.tasks.nest.leaf import outer_id
    from stretto.tasks.nest.oracle import agent_values, message_values, played

    messages: dict[str, float] = {}
    agents: dict[str, float] = {}
    for job in played(task, trace):
        leaf = job.leaf
        messages |= {outer_id(leaf, e): v / task.jobs for e, v in message_values(job).items()}
        values = agent_values(job).items()
        agents |= {leaf.outer[path]: v / task.jobs for path, v in values if path != ROOT}
    return Exact(messages, agents)


def _gather_agents(task: Any, trace: Trace) -> Values | None:
    from stretto.tasks.gather.shapley import gather_shapley

    try:
        return gather_shapley(trace)
    except StrettoError:  # two agents wrote one cell: their game has no closed form
        return None


def _hops_agents(task: Any, trace: Trace) -> Values | None:
    """Of those whose reports named ends, where the question has one stage."""
    from stretto.tasks.nest.oracle import hops_values

    try:
        return hops_values(task, trace) or None
    except StrettoError:  # too many agents to enumerate
        return None


def _hops_messages(task: Any, trace: Trace) -> Values:
    from stretto.tasks.hops.oracle import report_values

    return report_values(task, trace)


def _jury_messages(task: Any, trace: Trace) -> Values:
    from stretto.tasks.jury.oracle import claim_values

    return claim_values(task, trace)


def _agree_messages(task: Any, trace: Trace) -> Values:
    """Facts that a message told its reader first: more than none is worth something."""
    from stretto.tasks.agree.oracle import new_facts

    return {event: float(count) for event, count in new_facts(trace).items()}


def _repair_messages(task: Any, trace: Trace) -> Values:
    from stretto.tasks.repair.oracle import report_values

    return report_values(task, trace)


def _repair_agents(task: Any, trace: Trace) -> Values | None:
    """Whoever repaired nothing is worth nothing."""
    from stretto.tasks.repair.oracle import agent_values

    try:
        values = agent_values(task, trace)
    except StrettoError:  # too many agents to enumerate
        return None
    workers = [agent.id for agent in trace.agents if agent.role == "worker"]
    return {**dict.fromkeys(workers, 0.0), **values}


def _spawned(values: Values | None) -> Values | None:
    """The lead alone is no coalition: only those whom it sent are judged."""
    if values is None:
        return None
    return {agent: value for agent, value in values.items() if agent != ROOT}


_PLANS: Mapping[str, Callable[[Any], Plans]] = {
    "agree": _agree_plans,
    "gather": _gather_plans,
    "hops": _hops_plans,
    "nest": _nest_plans,
    "repair": _repair_plans,
}
_MESSAGES: Mapping[str, Callable[[Any, Trace], Values | None]] = {
    "agree": _agree_messages,
    "hops": _hops_messages,
    "jury": _jury_messages,
    "repair": _repair_messages,
}
_AGENTS: Mapping[str, Callable[[Any, Trace], Values | None]] = {
    "gather": _gather_agents,
    "hops": _hops_agents,
    "repair": _repair_agents,
}
