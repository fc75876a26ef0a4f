"""The records of the survey's schema, from the strictest to the most lenient.

| document | its events | how it is read |
|---|---|---|
| `BareTrace` | the schema's fields, types and labels alone | fastest |
| `PlainTrace` | also our own `stretto`, and any label of an edge | fast |
| `AnyTrace` | any field of any type; each is a `SurveyEvent` | slowest |
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from stretto.trace import (
    Agent,
    Decision,
    Evidence,
    Lineage,
    SafetyLabel,
    Score,
    Tokens,
)

Text = Annotated[str, Meta(min_length=1)]
Amount = Annotated[float, Meta(ge=0)]

Type = Literal[
    "orchestrator_decision",
    "spawn",
    "despawn",
    "message",
    "tool_call",
    "tool_result",
    "return",
    "aggregate",
    "human_intervention",
    "safety_event",
]
"""The types of events that the schema has."""

Label = Literal[
    "temporal",
    "causal",
    "spawn",
    "message",
    "tool_dependency",
    "return",
    "aggregate",
    "safety_flow",
]
"""The types of edges that the schema has."""


class TraceExtra(Struct, frozen=True, forbid_unknown_fields=True):
    """What the survey's schema could not say about a trace that was exported from here."""

    harness: str | None = None
    seed: int | None = None
    spec: dict[str, Any] = {}
    lineage: tuple[Lineage, ...] = ()
    attrs: dict[str, Any] = {}
    topology: str | None = None
    agents: tuple[Agent, ...] | None = None
    edges: dict[str, tuple[str, Evidence]] = {}
    scores: tuple[Score, ...] = ()
    derived_costs: tuple[str, ...] = ()
    contents: dict[str, str] = {}


class EventExtra(Struct, frozen=True, forbid_unknown_fields=True):
    """What it could not say about an event."""

    kind: str | None = None
    start: float | None = 0.0
    duration: Amount | None = None
    decision: Decision | None = None
    tokens: Tokens | None = None
    price: Amount | None = None
    label: SafetyLabel | None = None
    attrs: dict[str, Any] = {}
    trace: TraceExtra = TraceExtra()


class SchemaEvent(Struct, frozen=True, gc=False):
    """The fields that the schema gives a type."""

    id: Text
    t: Amount
    type: str
    agent: Text
    role: str | UnsetType = UNSET
    sender: Any = field(default=UNSET, name="from")
    to: str | None = None
    tool: str | None = None
    content_ref: str | None = None
    trusted: bool | None = None


class BareEvent(SchemaEvent, frozen=True, gc=False, forbid_unknown_fields=True):
    """An event that says nothing which the schema does not know."""

    type: Type  # pyright: ignore[reportIncompatibleVariableOverride]


class SurveyEvent(SchemaEvent, frozen=True, gc=False):
    """An event that may carry our own field, and any other."""

    role: str | UnsetType | None = UNSET  # pyright: ignore[reportIncompatibleVariableOverride]
    stretto: EventExtra = EventExtra()


class PlainEvent(SurveyEvent, frozen=True, gc=False, forbid_unknown_fields=True):
    """An event that carries our own field, but no other."""

    type: Type  # pyright: ignore[reportIncompatibleVariableOverride]


class SurveyEdge(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An edge as the survey writes it."""

    src: Text
    dst: Text
    type: Text


class BareEdge(SurveyEdge, frozen=True, gc=False, forbid_unknown_fields=True):
    """An edge whose label the schema knows."""

    type: Label  # pyright: ignore[reportIncompatibleVariableOverride]


class SurveyTrace(Struct, frozen=True, forbid_unknown_fields=True):
    """A trace as the survey writes it, all but its events."""

    trace_id: Text
    task_id: Text
    edges: list[SurveyEdge]
    rewards: dict[Text, float]
    costs: dict[Text, float]
    system: str | None = None
    topology: str | None = None
    metrics: dict[Text, float] | None = None


class BareTrace(SurveyTrace, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A trace that is no more than the schema's graph."""

    events: Annotated[list[BareEvent], Meta(min_length=1)]
    edges: list[BareEdge]  # pyright: ignore[reportIncompatibleVariableOverride]


class PlainTrace(SurveyTrace, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A trace of which some records carry more, in known places."""

    events: Annotated[list[PlainEvent], Meta(min_length=1)]


class AnyTrace(SurveyTrace, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A trace whose events have any field."""

    events: Annotated[list[dict[str, Any]], Meta(min_length=1)]
