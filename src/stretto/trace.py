"""The orchestration trace: what a team of agents did, as a typed temporal event graph.

Read this page first. A `Trace` holds facts only: agents, events, edges and the texts they refer to.
Rewards, credit and metrics are derived from it by pure functions and kept beside it.

| part | what it is |
|---|---|
| `Event` | something that happened at a time, to one agent |
| `Decision` | the part of a `decision` event that says what was chosen, among what, how likely |
| `Edge` | why an event could happen: a labelled arrow from a cause to its effect |
| `Agent` | who acts; agents appear (`spawn`) and leave (`despawn`) while the trace runs |
| `Score` | a value on a named channel (reward, cost, metric) of the team, an agent, an event |

Definition 3 of arXiv 2605.02801 is the subset with `V = orch, spawn, msg, tool, ret, agg`; here
every event also carries what replay, off-policy credit and stop credit need.
"""

from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from stretto.columns import Columns

SCHEMA = 1
"""Version of the record format; a reader refuses a newer one."""

KINDS = (
    "decision",
    "spawn",
    "despawn",
    "delegate",
    "message",
    "tool_call",
    "tool_result",
    "return",
    "aggregate",
    "stop",
    "human",
    "safety",
)
"""The event kinds that Stretto gives a meaning to; any other kind is kept as it came."""

LABELS = (
    "temporal",
    "causal",
    "spawn",
    "message",
    "tool_dependency",
    "return",
    "aggregate",
    "safety_flow",
)
"""The edge labels that Stretto gives a meaning to; any other label is kept as it came."""

DECISIONS = ("spawn", "delegate", "communicate", "aggregate", "stop", "act")
"""The five orchestration decisions (survey §8, O1 to O5), and `act` for everything else."""

TOPOLOGIES = (
    "centralized",
    "planner_executor_critic",
    "debate",
    "swarm",
    "hierarchical",
    "harness",
    "mixed",
    "unknown",
)

Evidence = Literal["recorded", "derived", "heuristic"]
"""How a fact is known: the source says so, it follows from what the source says, or it is a guess
by a rule that can be wrong."""

Identifier = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Tokens(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Tokens of one policy call, each `None` where the source does not say."""

    input: Count | None = None
    """Prompt tokens that were computed (neither read from a cache nor written to one)."""
    output: Count | None = None
    """Sampled tokens."""
    cache_read: Count | None = None
    """Prompt tokens that were served from a cache."""
    cache_write: Count | None = None
    """Prompt tokens that were computed and put into a cache."""
    unreliable: tuple[str, ...] = ()
    """Names of the fields above whose value the source is known to get wrong: do not price them."""


class Decision(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """What a policy chose in one turn."""

    type: str = "act"
    """Which decision this is, one of `DECISIONS`."""
    candidates: tuple[str, ...] = ()
    """What it chose from; empty where the source does not say."""
    logprobs: tuple[Annotated[float, Meta(le=0)], ...] = ()
    """Behaviour log-probability of each candidate (nats); empty where unknown."""
    chosen: Count | None = None
    """Index into `candidates`."""
    policy: str = ""
    """Version of the policy that chose."""
    observation: str | None = None
    """Content hash of the text that the policy saw."""
    prompt_ids: tuple[Count, ...] = ()
    """Prompt token ids of a trainable turn."""
    completion_ids: tuple[Count, ...] = ()
    """Sampled token ids of a trainable turn."""
    completion_logprobs: tuple[Annotated[float, Meta(le=0)], ...] = ()
    """Log-probability of each sampled token (nats)."""

    @property
    def choice(self) -> str | None:
        """The chosen candidate, or `None` where it is not known."""
        known = self.chosen is not None and self.chosen < len(self.candidates)
        return self.candidates[self.chosen or 0] if known else None


class SafetyLabel(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A point in the lattice of information flow."""

    integrity: str | None = None
    confidentiality: str | None = None


class Record(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    tag_field="record",
):
    """What a line of a file holds; `record` there says which kind it is."""


class Event(Record, frozen=True, kw_only=True, tag="event"):
    """Something that happened.

    A *turn* is an event of kind `decision`: one call of a policy. What it did follows as effect
    events that name it as their cause by an edge.
    """

    id: Identifier
    """Stable name, unique in the trace: agent path and that agent's counter, as in `0/2#7`."""
    kind: Identifier
    """One of `KINDS`, or any other word that an import brings."""
    agent: Identifier
    """Id of the agent to whom it happened."""
    start: Seconds | None = None
    """Seconds since the start of the trace; `None` where unknown."""
    duration: Seconds | None = None
    """Seconds; `None` where unknown."""
    to: str | None = None
    """The agent that is spawned, written to, returned to."""
    tool: str | None = None
    """Name of the tool that is called or answers."""
    content: str | None = None
    """Hash of the text (see `content_hash`), or the reference that an import brought."""
    decision: Decision | None = None
    """What was chosen, for an event of kind `decision`."""
    tokens: Tokens | None = None
    price: Annotated[float, Meta(ge=0)] | None = None
    """US dollars."""
    trusted: bool | None = None
    """Whether the content comes from a trusted source; `None` where unknown."""
    label: SafetyLabel | None = None
    attrs: dict[str, Any] = {}
    """Everything else that a source says; survives a round trip."""

    @property
    def model(self) -> str | None:
        """The model of a turn, where its agent has another (`attrs["model"]`)."""
        own = self.attrs.get("model") if self.kind == "decision" else None
        return own if isinstance(own, str) and own else None


class Edge(Record, frozen=True, tag="edge"):
    """A labelled arrow from a cause to its effect."""

    src: Identifier
    dst: Identifier
    label: Identifier = "causal"
    """One of `LABELS`, or any other word that an import brings."""
    evidence: Evidence = "recorded"


class Agent(Record, frozen=True, kw_only=True, tag="agent"):
    """Somebody who acts."""

    id: Identifier
    """Path in the spawn tree: the second child of agent `0` is `0/1`; imports may bring others."""
    role: str | None = None
    parent: str | None = None
    """Id of the agent that spawned it; `None` for a root, or where unknown."""
    name: str | None = None
    """What the source calls it."""
    model: str | None = None
    attrs: dict[str, Any] = {}


class Score(Record, frozen=True, kw_only=True, tag="score"):
    """A value on a named channel. What was not scored is absent, never 0."""

    channel: Identifier
    value: float
    kind: Literal["reward", "cost", "metric"] = "reward"
    agent: str | None = None
    """The agent it belongs to; with `event` absent too, it belongs to the team."""
    event: str | None = None


class Lineage(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Where a forked trace left its parent."""

    parent: Identifier
    """Id of the parent trace."""
    event: Identifier
    """The last event that both share."""
    seed: int
    """Seed of everything random after that event."""


class Header(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What is true of a whole trace."""

    id: Identifier
    task: str = "unknown"
    """Id of the task instance; episodes of one id form a group."""
    system: str | None = None
    """The harness or program that ran, as in `claude-code 2.1.29`."""
    topology: str = "unknown"
    """One of `TOPOLOGIES`."""
    harness: str | None = None
    """Fingerprint of prompts, tools and action grammar; batches never mix two."""
    seed: int | None = None
    spec: dict[str, Any] = {}
    """What rebuilds the task for a replay; empty for imports."""
    lineage: tuple[Lineage, ...] = ()
    """The forks that led here, oldest first; empty for a trace that was never forked."""
    attrs: dict[str, Any] = {}


class Trace(Header, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """One episode of a team."""

    agents: tuple[Agent, ...] = ()
    events: tuple[Event, ...] = ()
    edges: tuple[Edge, ...] = ()
    scores: tuple[Score, ...] = ()
    contents: Mapping[str, str] = {}
    """Text by hash; may be dropped without touching the graph."""

    @cached_property
    def columns(self) -> "Columns":
        """The events as numpy columns, built once; what algorithms run on."""
        from stretto.columns import build_columns

        return build_columns(self)

    def text(self, reference: str | None) -> str | None:
        """The text behind a content reference, or `None` where it was dropped or never known."""
        return None if reference is None else self.contents.get(reference)

    def reward(self, channel: str) -> float | None:
        """The team's value on a reward channel, or `None` where it was not scored."""
        for score in self.scores:
            team = score.agent is None and score.event is None
            if team and score.kind == "reward" and score.channel == channel:
                return score.value
        return None


def content_hash(text: str) -> str:
    """Name a text by its BLAKE2b digest: 128 bits as 32 hex digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
