"""What the engine needs from a task and from a policy, and what they exchange."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from stretto.team.state import AgentState, Team
from stretto.trace import Event, Tokens


class Choice(Struct, frozen=True, gc=False):
    """An open decision, as the task puts it to an agent."""

    observation: str
    """Everything that the agent sees, as text."""
    candidates: tuple[str, ...]
    """The legal choices; never empty."""
    types: tuple[str, ...] = ()
    """Which of `stretto.trace.DECISIONS` each candidate is; empty where all are `act`."""


class Ask(Struct, frozen=True, gc=False):
    """One open decision, as the engine puts it to a policy."""

    event: str
    """Id of the decision event."""
    system: str
    """System prompt of the harness."""
    prompt: str
    """What the agent sees."""
    candidates: tuple[str, ...]
    role: str
    key: int
    """64-bit key of this decision's randomness: the same in every branch of the episode."""


class Answer(Struct, frozen=True, gc=False):
    """What a policy chose, and what is needed to train on it."""

    chosen: int
    """Index into the candidates."""
    policy: str
    """Version of the policy that answers; changes when its parameters do."""
    logprobs: tuple[float, ...] = ()
    """Log-probability of every candidate (nats); empty for a policy that has none."""
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    completion_logprobs: tuple[float, ...] = ()
    tokens: Tokens | None = None


class Policy(Protocol):
    """Who decides. Called once for all open decisions of all running episodes."""

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Answer every ask, in order; the answer depends on nothing but its own ask."""
        ...


class Spawn(Struct, frozen=True, gc=False):
    """Start a new agent under the acting one."""

    role: str
    text: str | None = None
    """The brief that the child starts with."""
    attrs: Mapping[str, Any] = {}


class Delegate(Struct, frozen=True, gc=False):
    """Give a piece of work to an agent that lives already."""

    to: str
    text: str
    attrs: Mapping[str, Any] = {}


class Message(Struct, frozen=True, gc=False):
    """Write to another agent; it arrives after the harness's message latency."""

    to: str
    text: str
    attrs: Mapping[str, Any] = {}


class Call(Struct, frozen=True, gc=False):
    """Call a tool; the agent waits for all calls of its turn, which run side by side."""

    tool: str
    arguments: Mapping[str, Any] = {}
    latency: float | None = None
    """Virtual seconds that this call takes; what the tool declares where absent."""


class Return(Struct, frozen=True, gc=False):
    """Hand a result to the parent."""

    text: str
    attrs: Mapping[str, Any] = {}


class Aggregate(Struct, frozen=True, gc=False):
    """Merge what came back into one text."""

    text: str
    attrs: Mapping[str, Any] = {}


class Despawn(Struct, frozen=True, gc=False):
    """Remove an agent (the acting one, or one of its descendants) from the team."""

    agent: str


class Stop(Struct, frozen=True, gc=False):
    """End the episode with an answer."""

    text: str
    attrs: Mapping[str, Any] = {}


Effect = Spawn | Delegate | Message | Call | Return | Aggregate | Despawn | Stop


class ToolResult(Struct, frozen=True, gc=False):
    """What a tool answers."""

    text: str
    attrs: Mapping[str, Any] = {}
    """Facts for the task's own state, recorded with the event; the task must not change them."""
    trusted: bool | None = None
    """Whether this answer can be relied on; what the tool declares where absent."""
    causes: tuple[str, ...] = ()
    """Ids of events of other agents that the answer reflects, as of a shared memory's writes."""


class ToolSpec(Struct, frozen=True, gc=False):
    """What a tool declares about itself."""

    latency: float
    """Virtual seconds from call to result."""
    trusted: bool = True
    """Whether what it returns can be relied on."""
    price: float = 0.0
    """US dollars a call."""


class Harness(Struct, frozen=True):
    """Everything around the policy that is frozen while it trains."""

    system: str
    """System prompt of the deciding roles."""
    root: str
    """Role of the first agent."""
    roles: Mapping[str, str]
    """Role to one sentence about what it does."""
    tools: Mapping[str, ToolSpec] = {}
    thinking: Mapping[str, float] = {}
    """Role to virtual seconds that one decision takes; 0 where absent."""
    message_latency: float = 0.0
    """Virtual seconds from sending to arrival."""
    capacity: int = 10_000
    """Most agents alive at once; a spawn beyond it is refused with an error."""
    topology: str = "centralized"
    max_events: int = 1_000_000
    """An episode that grows beyond it is ended, and says so."""


class Prices(Struct, frozen=True):
    """What effort costs, in units of the outcome."""

    spawn: float = 0.0
    """A spawned agent."""
    second: float = 0.0
    """A (virtual) second until the episode ends."""


class Task(Protocol):
    """A family of instances with rules: pure functions of the world, the team and the event.

    `world` is the task's own mutable state of one episode. Only `apply` changes it, and only from
    recorded events, so that folding a trace rebuilds it. What an agent observes may depend only on
    what reached that agent by its own events, so that the edges of the trace are the whole truth.
    """

    @property
    def id(self) -> str:
        """Name of the instance, as in `gather/7`: episodes of one id form a group."""
        ...

    @property
    def spec(self) -> dict[str, Any]:
        """What `stretto.tasks.build` needs to make this task again."""
        ...

    @property
    def harness(self) -> Harness:
        """Prompts, tools, roles and clock: frozen during training."""
        ...

    @property
    def prices(self) -> Prices:
        """What effort costs where the reward is cost-adjusted."""
        ...

    def begin(self, seed: int) -> Any:
        """Draw what chance decides before the first event; return the world at time 0."""
        ...

    def apply(self, world: Any, event: Event) -> None:
        """Change the world as this event says."""
        ...

    def choose(self, world: Any, team: Team, agent: AgentState) -> Choice | None:
        """The decision that is open to this agent, or `None` while it has nothing to decide.

        Asked whenever something reached the agent and it neither thinks nor waits for a tool.
        """
        ...

    def act(self, world: Any, team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """What follows from a choice."""
        ...

    def react(self, world: Any, team: Team, event: Event) -> Sequence[Effect]:
        """What follows from an event without a decision; effects of the agent that it reached.

        That is the child for a `spawn`, the receiver for a `delegate`, else the event's own agent.
        """
        ...

    def call(self, world: Any, event: Event, key: int) -> ToolResult:
        """Answer a `tool_call` event; `key` is all the randomness that it may use."""
        ...

    def scores(self, world: Any) -> Mapping[str, float]:
        """Reward channels of the team once the episode is over, the larger the better."""
        ...
