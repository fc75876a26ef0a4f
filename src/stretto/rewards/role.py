"""R3: the agents of a role are paid by the rubric of that role (survey §6, Table 10).

The value of a role is the *mean* over its agents, so that a rollout with more workers earns no
more. Hacked where the rubric does not match what the team needs.
"""

from stretto.rewards.derived import of_agents, of_events
from stretto.rewards.individual import pay_last
from stretto.rewards.stream import Stream
from stretto.trace import Trace


def role(trace: Trace, role: str, channel: str = "role", flip: bool = False) -> Stream | None:
    """Mean value on `channel` of the agents of `role`, an equal share with the last event of each.

    An agent's value is its own score, else the mean of those of its events. With `flip`, 1 minus
    that (what one side of a zero-sum pair is paid). `None` where none of them was scored.
    """
    values = _values(trace, channel)
    members = [agent.id for agent in trace.agents if agent.role == role and agent.id in values]
    if not members:
        return None
    paid = {name: (1 - values[name] if flip else values[name]) / len(members) for name in members}
    return pay_last(trace, paid)


def _values(trace: Trace, channel: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    owner = {event.id: event.agent for event in trace.events}
    for event, value in of_events(trace, channel).items():
        if event in owner:
            found.setdefault(owner[event], []).append(value)
    means = {agent: sum(values) / len(values) for agent, values in found.items()}
    return {**means, **of_agents(trace, channel)}
