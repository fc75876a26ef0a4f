"""R2: every agent is paid for its own part (survey §6, Table 10).

The value is recorded beside the trace: by the task, or by a credit method that was run before, as
SHARP's leave-one-out differences are. Hacked by the lazy agent: one that is paid for looking busy.
"""

from collections.abc import Mapping

import numpy as np

from stretto.rewards.derived import of_agents
from stretto.rewards.stream import Stream, end_of, final
from stretto.trace import Trace


def individual(
    trace: Trace, channel: str = "individual", agent: str | None = None
) -> Stream | None:
    """The values of all agents (or of one) on `channel`, each paid with the agent's last event.

    An agent without events is paid at the end. `None` where nobody was scored.
    """
    values = of_agents(trace, channel)
    if agent is not None:
        values = {agent: values[agent]} if agent in values else {}
    return pay_last(trace, values) if values else None


def pay_last(trace: Trace, values: Mapping[str, float]) -> Stream:
    """Pay each agent its value with its last event in record order."""
    last = {event.agent: row for row, event in enumerate(trace.events)}
    at = np.zeros(len(trace.events))
    silent = 0.0
    for agent, value in values.items():
        if agent in last:
            at[last[agent]] += value
        else:
            silent += value
    return Stream(at, end=end_of(trace), final=silent)


def constant(trace: Trace) -> Stream:
    """One, at the end: a part of a formula that pays for showing up."""
    return final(trace, 1.0)
