"""Who acts in a document of the survey's schema: it has no table of agents, but its events tell.

- An agent has the role of its first event. An event that says another has it as attribute `role`,
  which is `None` where it says none.
- The `role` of a spawn is that of the new agent. An agent whose first event is silent has that
  role, or else the first that a later event says, and the attribute `survey_silent`.
- An agent that was spawned before it acts has the spawner as its parent, so parents form a tree.
"""

from msgspec import UNSET, Struct, UnsetType

from stretto.trace import Agent

SPAWN = "spawn"
"""Type of the events that tell of another agent."""

SILENT = "survey_silent"
"""Attribute of an agent whose role its first event does not say."""

Role = str | UnsetType


class Cast(Struct, frozen=True):
    """The agents of the events so far, in order of appearance."""

    known: dict[str, tuple[str, Role] | None] = {}
    """Agent to its name (one text, however many events have it) and the role of its first event;
    `None` for one that has only spawned."""
    parent: dict[str, str] = {}
    told: dict[str, Role] = {}
    """Roles that the spawn of an agent says, or an event after a silent first one."""

    def take(self, kind: str, agent: str, to: str | None, role: Role) -> None:
        """Learn from the next event, whose type is `kind`."""
        if kind == SPAWN:
            self.spawn(agent, to, role)
        elif self.known.get(agent) is None:
            self.enter(agent, role)
        elif role is not UNSET:
            self.told.setdefault(agent, role)

    def enter(self, agent: str, role: Role) -> tuple[str, Role]:
        """Learn from the first event of an agent that is no spawn."""
        self.known[agent] = pair = (agent, role)
        return pair

    def spawn(self, agent: str, to: str | None, role: Role) -> None:
        """Learn from a spawn."""
        self.known.setdefault(agent)
        if to is not None and to not in self.known:
            self.parent.setdefault(to, agent)
            if role is not UNSET:
                self.told.setdefault(to, role)

    def agents(self) -> tuple[Agent, ...]:
        """The table of agents."""
        return tuple(self._agent(name, pair) for name, pair in self.known.items())

    def _agent(self, name: str, pair: tuple[str, Role] | None) -> Agent:
        own = UNSET if pair is None else pair[1]
        role = self.told.get(name, UNSET) if own is UNSET else own
        return Agent(
            id=name,
            role=None if role is UNSET else role,
            parent=self.parent.get(name),
            attrs={SILENT: True} if role is not own else {},
        )


def said_role(agent: Agent) -> Role:
    """The role that an event of this agent has by saying it, or by saying none."""
    return UNSET if agent.role is None or agent.attrs.get(SILENT) else agent.role


def role_attr(role: Role, own: Role) -> dict[str, str | None]:
    """What an event that says `role` has as an attribute, if those of its agent say `own`."""
    if role == own:
        return {}
    return {"role": None if role is UNSET else role}
