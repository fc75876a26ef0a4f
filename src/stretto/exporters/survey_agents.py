"""Who acts in a document of the survey's schema: it has no table of agents, but its events tell.

- An agent has the role of its first event. An event that says another has it as attribute `role`,
  which is `None` where it says none. The `role` of a spawn is that of the new agent, and only an
  attribute.
- An agent that was spawned before it acts has the spawner as its parent, so parents form a tree.
"""

from msgspec import UNSET, Struct, UnsetType

from stretto.trace import Agent

SPAWN = "spawn"
"""Type of the events that tell of another agent."""

Role = str | UnsetType


class Cast(Struct, frozen=True):
    """The agents of the events so far, in order of appearance."""

    known: dict[str, tuple[str, Role] | None] = {}
    """Agent to its name (one text, however many events have it) and its role; `None` for one that
    has only spawned."""
    parent: dict[str, str] = {}

    def take(self, kind: str, agent: str, to: str | None, role: Role) -> None:
        """Learn from the next event, whose type is `kind`."""
        if kind == SPAWN:
            self.spawn(agent, to)
        elif self.known.get(agent) is None:
            self.enter(agent, role)

    def enter(self, agent: str, role: Role) -> tuple[str, Role]:
        """Learn from the first event of an agent that is no spawn."""
        self.known[agent] = pair = (agent, role)
        return pair

    def spawn(self, agent: str, to: str | None) -> None:
        """Learn from a spawn."""
        self.known.setdefault(agent)
        if to is not None and to not in self.known:
            self.parent.setdefault(to, agent)

    def agents(self) -> tuple[Agent, ...]:
        """The table of agents."""
        return tuple(
            Agent(
                id=name,
                role=None if pair is None or pair[1] is UNSET else pair[1],
                parent=self.parent.get(name),
            )
            for name, pair in self.known.items()
        )


def role_attr(role: Role, own: Role) -> dict[str, str | None]:
    """What an event that says `role` has as an attribute, if its agent has the role `own`."""
    if role == own:
        return {}
    return {"role": None if role is UNSET else role}
