"""Where the events of a trace go on the page: one lane an agent, one step a cause."""

from collections.abc import Sequence

from stretto.errors import StrettoError
from stretto.graph import critical_path, topological_order
from stretto.metrics.parallelism import span_seconds
from stretto.trace import Agent, Trace


def tree_order(agents: Sequence[Agent]) -> list[tuple[int, int]]:
    """Agents as (index, depth) in spawn-tree order: every agent stands right above its children.

    Agents without a known parent are roots; whoever sits in a loop of parents comes last, as one.
    """
    place = {agent.id: index for index, agent in enumerate(agents)}
    children: dict[int | None, list[int]] = {}
    for index, agent in enumerate(agents):
        children.setdefault(place.get(agent.parent or ""), []).append(index)
    order: list[tuple[int, int]] = []
    waiting = [(index, 0) for index in reversed(children.get(None, []))]
    while waiting:
        index, depth = waiting.pop()
        order.append((index, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(index, []))]
    reached = {index for index, _ in order}
    return order + [(index, 0) for index in range(len(agents)) if index not in reached]


def causal_steps(trace: Trace) -> tuple[list[int], str]:
    """Lamport clock of every event: one more than all its causes and its agent's event before it.

    The second value says why it is only the order of the record, where causes form a loop.
    """
    try:
        order = topological_order(trace).tolist()
    except StrettoError as error:
        return list(range(len(trace.events))), error.what
    parents, agent = trace.columns.parents, trace.columns.agent.tolist()
    offsets, source = parents.offsets.tolist(), parents.source.tolist()
    steps = [0] * len(order)
    last = [-1] * len(trace.columns.agents)
    for row in order:
        causes = source[offsets[row] : offsets[row + 1]]
        steps[row] = 1 + max([last[agent[row]], *(steps[cause] for cause in causes)])
        last[agent[row]] = steps[row]
    return steps, ""


def critical_rows(trace: Trace) -> list[int]:
    """Event rows of the critical path as `span` weighs it; empty where there is none."""
    try:
        path = critical_path(trace, span_seconds(trace))
    except StrettoError:
        return []
    return list(path.rows) if path.seconds else []
