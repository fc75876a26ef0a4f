"""The state of a team, folded from its events: who lives, who waits, what has come in."""

from dataclasses import dataclass, field

from stretto.trace import Event

ROOT = "0"
"""Path of the first agent."""


@dataclass(slots=True)
class AgentState:
    """One agent as the events so far have left it."""

    id: str
    """Path in the spawn tree."""
    role: str
    parent: str | None
    brief: str | None = None
    """Content hash of what it was spawned with."""
    born: float = 0.0
    counter: int = 0
    """Number of its next event."""
    children: int = 0
    """How many it has spawned so far."""
    open_children: int = 0
    """How many of those have neither returned nor left."""
    pending_calls: int = 0
    alive: bool = True
    returned: bool = False
    thinking: bool = False
    last_decision: str | None = None
    arrived: list[Event] = field(default_factory=list)
    """What reached it since its last decision: results, returns, messages, delegations."""
    returns: list[str] = field(default_factory=list)
    """Ids of the returns that it has received and not yet aggregated."""

    @property
    def free(self) -> bool:
        """Whether it could decide now."""
        return self.alive and not self.thinking and not self.pending_calls


@dataclass(slots=True)
class Team:
    """All agents of an episode at one moment."""

    agents: dict[str, AgentState]
    time: float = 0.0
    alive: int = 1
    stopped: bool = False

    def __getitem__(self, agent: str) -> AgentState:
        """The agent with this path."""
        return self.agents[agent]


def new_team(root_role: str) -> Team:
    """A team of one."""
    return Team({ROOT: AgentState(ROOT, root_role, parent=None)})


def child_path(agent: AgentState) -> str:
    """Path of the next child of this agent."""
    return f"{agent.id}/{agent.children}"


def apply(team: Team, event: Event) -> None:
    """Fold one event into the team, in place.

    Deliveries take effect with the event here; what a message's latency delays is only *when* the
    engine lets the receiver look (`deliver`).
    """
    agent = team.agents[event.agent]
    agent.counter += 1
    match event.kind:
        case "decision":
            agent.thinking = True
            agent.last_decision = event.id
            agent.arrived.clear()
        case "spawn":
            _spawn(team, agent, event)
        case "tool_call":
            agent.pending_calls += 1
        case "tool_result":
            agent.pending_calls -= 1
            agent.arrived.append(event)
        case "return":
            _return(team, agent, event)
        case "aggregate":
            agent.returns.clear()
        case "despawn":
            _despawn(team, event)
        case "stop":
            team.stopped = True
        case _:
            pass


def deliver(team: Team, event: Event) -> None:
    """Let a message or a delegation reach its receiver, in place."""
    receiver = team.agents.get(event.to or "")
    if receiver is not None and receiver.alive:
        receiver.arrived.append(event)


def _spawn(team: Team, parent: AgentState, event: Event) -> None:
    path = child_path(parent)
    parent.children += 1
    parent.open_children += 1
    team.alive += 1
    child = AgentState(path, event.attrs["role"], parent.id, event.content, event.start or 0.0)
    team.agents[path] = child


def _return(team: Team, agent: AgentState, event: Event) -> None:
    if agent.parent is None:
        return
    parent = team.agents[agent.parent]
    if not agent.returned:
        agent.returned = True
        parent.open_children -= 1
    parent.arrived.append(event)
    parent.returns.append(event.id)


def _despawn(team: Team, event: Event) -> None:
    gone = team.agents[event.to or event.agent]
    if not gone.alive:
        return
    gone.alive = False
    team.alive -= 1
    if gone.parent is not None and not gone.returned:
        team.agents[gone.parent].open_children -= 1
