"""What is exact about an episode, whatever its family: plans, messages, agents, answers.

Every entry is computed from the instance and the trace by the family's own oracle. What a family
has no exact value for is `None`: not scored, never 0.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.tasks.exact import MESSAGES, PARALLEL, SERIAL, SHAPLEY, exact_function
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
    family = task.spec["family"]
    if family == "nest":
        return _nest_plans(task)
    serial, parallel = exact_function(SERIAL, family), exact_function(PARALLEL, family)
    return Plans(serial and serial(task), parallel and partial(parallel, task))


def exact(task: Task, trace: Trace) -> Exact:
    """What is exact about an episode."""
    family = task.spec["family"]
    if family == "nest":
        return _nest(task, trace)
    messages = exact_function(MESSAGES, family)
    return Exact(messages and messages(task, trace), _shapley(task, trace))


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


def _shapley(task: Task, trace: Trace) -> Values | None:
    """The lead alone is no coalition: only those whom it sent are judged."""
    finds = exact_function(SHAPLEY, task.spec["family"])
    try:
        values = finds and finds(task, trace)
    except StrettoError:  # too many agents to enumerate, or two that wrote one cell
        return None
    return values and {agent: value for agent, value in values.items() if agent != ROOT}
