"""The survey's trace schema, as a source; see `stretto.exporters.survey` for what it lacks."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from stretto.errors import StrettoError
from stretto.exporters.survey import EXPLICIT, EXTRA, TYPE_OF_KIND, agents_of
from stretto.trace import (
    Agent,
    Decision,
    Edge,
    Event,
    Evidence,
    Lineage,
    SafetyLabel,
    Score,
    Tokens,
    Trace,
)
from stretto.validate import problems

T = TypeVar("T")
Text = Annotated[str, Meta(min_length=1)]
Amount = Annotated[float, Meta(ge=0)]

KIND_OF_TYPE = {name: kind for kind, name in TYPE_OF_KIND.items()}


class SurveyEvent(Struct, frozen=True):
    """The fields that the survey gives a type; an event may carry any other."""

    id: Text
    t: Amount
    type: str
    agent: Text
    role: str = ""
    to: str | None = None
    tool: str | None = None
    content_ref: str | None = None
    trusted: bool | None = None


class SurveyEdge(Struct, frozen=True, forbid_unknown_fields=True):
    """An edge as the survey writes it."""

    src: Text
    dst: Text
    type: Text


class SurveyTrace(Struct, frozen=True, forbid_unknown_fields=True):
    """A trace as the survey writes it."""

    trace_id: Text
    task_id: Text
    events: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    edges: list[SurveyEdge]
    rewards: dict[str, float]
    costs: dict[str, float]
    system: str | None = None
    topology: str | None = None
    metrics: dict[str, float] | None = None


class TraceExtra(Struct, frozen=True):
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


class EventExtra(Struct, frozen=True):
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


def is_survey(document: Any) -> bool:
    """Whether a JSON document looks like the survey's schema."""
    return isinstance(document, dict) and {"trace_id", "events", "edges"} <= document.keys()


def from_survey(data: bytes, name: str) -> Trace:
    """Read a file of the survey's schema; `name` stands for the file in errors.

    Raises `StrettoError` with the field for the first thing that is wrong.
    """
    document = _typed(lambda: msgspec.json.decode(data, type=SurveyTrace), name, "")
    typed = _typed(lambda: msgspec.convert(document.events, list[SurveyEvent]), name, "events")
    extras = [
        _typed(lambda raw=raw: _extra(raw), name, f"events[{row}].{EXTRA}")
        for row, raw in enumerate(document.events)
    ]
    rows = zip(typed, document.events, extras, strict=True)
    trace = _trace(document, extras[0].trace, tuple(_event(*row) for row in rows))
    for problem in problems(trace):
        where = f"{name}: {problem.part}s[{problem.index}].{problem.field}"
        raise StrettoError(problem.what, where, problem.hint)
    return trace


def _extra(raw: dict[str, Any]) -> EventExtra:
    return msgspec.convert(raw.get(EXTRA, {}), EventExtra)


def _typed(read: Callable[[], T], name: str, place: str) -> T:
    """What `read` returns; an error names the file and the field under `place`."""
    try:
        return read()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what, _, path = str(error).partition(" - at `$")
        field = f"{place}{path.rstrip('`')}".strip(".") or "document"
        raise StrettoError(f"{what[0].lower()}{what[1:]}", f"{name}: {field}") from None


def _trace(document: SurveyTrace, extra: TraceExtra, events: tuple[Event, ...]) -> Trace:
    explicit = [
        field
        for field, empty in (("topology", "unknown"), ("metrics", {}))
        if getattr(document, field) == empty
    ]
    return Trace(
        id=document.trace_id,
        task=document.task_id,
        system=document.system,
        topology=extra.topology or document.topology or "unknown",
        harness=extra.harness,
        seed=extra.seed,
        spec=extra.spec,
        lineage=extra.lineage,
        attrs=extra.attrs | ({EXPLICIT: explicit} if explicit else {}),
        agents=extra.agents or agents_of(event.agent for event in events),
        events=events,
        edges=tuple(
            Edge(edge.src, edge.dst, *extra.edges.get(str(row), (edge.type, "recorded")))
            for row, edge in enumerate(document.edges)
        ),
        scores=_scores(document, extra),
    )


def _scores(document: SurveyTrace, extra: TraceExtra) -> tuple[Score, ...]:
    costs = {k: v for k, v in document.costs.items() if k not in extra.derived_costs}
    rewards = [Score(channel=name, value=value) for name, value in document.rewards.items()]
    spent = [Score(channel=name, value=value, kind="cost") for name, value in costs.items()]
    metrics = [
        Score(channel=name, value=value, kind="metric")
        for name, value in (document.metrics or {}).items()
    ]
    return (*rewards, *spent, *metrics, *extra.scores)


def _event(event: SurveyEvent, raw: dict[str, Any], extra: EventExtra) -> Event:
    known = {"id", "t", "type", "agent", "to", "tool", "content_ref", "trusted", EXTRA}
    return Event(
        id=event.id,
        kind=extra.kind or KIND_OF_TYPE.get(event.type, event.type),
        agent=event.agent,
        start=None if extra.start is None else event.t,
        duration=extra.duration,
        to=event.to,
        tool=event.tool,
        content=event.content_ref,
        decision=extra.decision,
        tokens=extra.tokens,
        price=extra.price,
        trusted=event.trusted,
        label=extra.label,
        attrs={name: value for name, value in raw.items() if name not in known} | extra.attrs,
    )
