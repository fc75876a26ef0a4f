"""How agents of any family hand up what they know: to their parent, or to the shared memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from stretto.tasks.topology import CRITIC, copied_to
from stretto.team.protocols import Call, Choice, Despawn, Effect, Return, ToolSpec
from stretto.team.state import AgentState, Team
from stretto.trace import Event

MEMORY_SECONDS = 0.1
"""Virtual seconds of writing to the shared memory, or reading it."""
MEMORY = {
    "memory.write": ToolSpec(latency=MEMORY_SECONDS),
    "memory.read": ToolSpec(latency=MEMORY_SECONDS),
}
"""The tools of the shared memory."""


def hand_up(
    topology: str, agent: AgentState, text: str, facts: Mapping[str, Any]
) -> tuple[Effect, ...]:
    """Return to the parent and leave, or write to the shared memory first."""
    if topology == "harness":
        return (Call("memory.write", facts),)
    return (Return(text, facts), Despawn(agent.id))


def peers(topology: str, team: Team, agent: AgentState, number: int, size: int) -> list[str]:
    """Paths of the team mates that may read what a worker reports.

    `number` is its place among the `size` workers of its team; a lead may send several teams.
    """
    parent, _, own = agent.id.rpartition("/")
    first = int(own) - number
    paths = (f"{parent}/{first + peer}" for peer in copied_to(topology, size, number))
    return [path for path in paths if path in team.agents]


def say_nothing(agent: AgentState) -> tuple[Effect, ...]:
    """Leave with an empty return: it says that the agent is done, and nothing else."""
    return (Return("Nothing to report."), Despawn(agent.id))


def written_down(event: Event) -> Sequence[Effect]:
    """Who has written to the shared memory is done."""
    if event.kind == "tool_result" and event.tool == "memory.write":
        return (Return("Written down."), Despawn(event.agent))
    return ()


def report_choice(agent: AgentState, observation: str) -> Choice:
    """Whether to hand up what one knows."""
    words = ("pass", "drop") if agent.role == CRITIC else ("report", "leave")
    return Choice(observation, words, ("communicate", "communicate"))
