"""The survey's trace schema, as a source; see `stretto.exporters.survey` for what it lacks."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from stretto.errors import StrettoError
from stretto.exporters.survey import AMOUNTS, EXPLICIT
from stretto.exporters.survey_agents import SPAWN, Cast, Role, role_attr, said_role
from stretto.garbage import paused_collector
from stretto.importers.survey.bare import KIND_OF_TYPE, take_edges, take_events
from stretto.importers.survey.records import (
    AnyTrace,
    BareTrace,
    PlainTrace,
    SurveyEdge,
    SurveyEvent,
    SurveyTrace,
    TraceExtra,
)
from stretto.order import Hashes, by_hashes, is_large, keep_order
from stretto.trace import Agent, Edge, Event, Score, Trace
from stretto.validate import contradictions, dangling, false_hashes

T = TypeVar("T")

_BARE = msgspec.json.Decoder(BareTrace)
_PLAIN = msgspec.json.Decoder(PlainTrace)
_ANY = msgspec.json.Decoder(AnyTrace)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_MARK = b'"trace_id"'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TYPED = {each.encode_name for each in msgspec.structs.fields(SurveyEvent)}
"""Fields of an event that have a place of their own here."""


def from_survey(data: bytes, name: str) -> Trace:
    """Read a file of the survey's schema; `name` stands for the file in errors.

    Raises `StrettoError` with the field (for broken JSON with line and column) for the first thing
    that is wrong.
    """
    with paused_collector():
        bare = _read_bare(data)
        trace = _read_more(data, name) if bare is None else bare
        thorough = chain(contradictions(trace), false_hashes(trace))
        for problem in thorough if bare is None else dangling(trace):
            where = f"{name}: {problem.part}s[{problem.index}].{problem.field}"
            raise StrettoError(problem.what, where, problem.hint)
    for score in trace.scores:
        if score.kind == "cost" and score.channel in AMOUNTS and score.value < 0:
            what = f"{score.value:g} is below 0"
            raise StrettoError(
                what, f"{name}: costs.{score.channel}", "leave out what is not known"
            )
    return trace


def documents(data: bytes, name: str) -> list[tuple[bytes, str]]:
    """The documents of a file, with what stands for each in errors: one, one a line, or a list."""
    if data.lstrip().startswith(b"["):
        items = _typed(lambda: _LIST.decode(data), data, name, "")
        return [(bytes(item), f"{name}: [{place}]") for place, item in enumerate(items)]
    if not _has_lines(data):
        return [(data, name)]
    lines = enumerate(data.split(b"\n"), 1)
    return [(line, f"{name}:{number}") for number, line in lines if line.strip()]


def _has_lines(data: bytes) -> bool:
    """Whether some line, but not all of the file, is a document."""
    place = data.find(_MARK)
    while place >= 0:
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        line = data[data.rfind(b"\n", 0, place) + 1 : end].strip()
        if line.startswith(b"{") and line.endswith(b"}") and len(line) < len(data.strip()):
            with suppress(*_UNREADABLE):
                return "trace_id" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        place = data.find(_MARK, end)
    return False


def _read_bare(data: bytes) -> Trace | None:
    """The trace of a file that keeps to the schema; `None` for another, whatever it has."""
    try:
        document = _BARE.decode(data)
    except _UNREADABLE:
        return None
    cast = Cast()
    ids = Hashes() if is_large(len(document.events) + len(document.edges)) else None
    events = take_events(document.events, cast, ids)
    edges = take_edges(document.edges, ids)
    trace = _trace(document, TraceExtra(), events, edges, cast.agents())
    if ids is not None:
        keep_order(trace, by_hashes(ids))
    return trace


def _read_more(data: bytes, name: str) -> Trace:
    """Events with our own field; or with any; or whatever made the quick ways fail."""
    try:
        plain = _PLAIN.decode(data)
    except _UNREADABLE:
        return _read_any(data, name)
    return _with_extra(plain, plain.events, [{}] * len(plain.events))


def _read_any(data: bytes, name: str) -> Trace:
    document = _typed(lambda: _ANY.decode(data), data, name, "")
    typed = _typed(
        lambda: msgspec.convert(document.events, list[SurveyEvent]), data, name, "events"
    )
    return _with_extra(document, typed, [_without(raw, _TYPED) for raw in document.events])


def _without(fields: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _typed(read: Callable[[], T], data: bytes, name: str, place: str) -> T:
    """What `read` returns; an error names the file, and the field under `place` or the line."""
    try:
        return read()
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `")  # of a value, or of a `key` in a value
        field = f"{place}{path.partition('$')[2].rstrip('`')}".strip(".") or "document"
        raise StrettoError(_uncapitalised(what), f"{name}: {field}") from None
    except RecursionError:
        raise StrettoError("the document is nested too deeply", name) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what, where = _fault(data, error)
        raise StrettoError(what, f"{name}:{where}", "this is not JSON; was it cut?") from None


def _fault(data: bytes, error: Exception) -> tuple[str, str]:
    """What is wrong with the JSON, and in which line and column, both from 1."""
    what, _, rest = str(error).partition(" (byte ")
    at = int(number[0]) if (number := re.match(r"\d+", rest)) else len(data)
    try:
        data.decode()
    except UnicodeDecodeError as bad:
        what, at = "this is no UTF-8", bad.start
    line = data.count(b"\n", 0, at) + 1
    column = at - data.rfind(b"\n", 0, at)
    return _uncapitalised(what), f"{line}:{column}"


def _uncapitalised(what: str) -> str:
    return what if what[:2].isupper() else f"{what[0].lower()}{what[1:]}"


def _with_extra(
    document: SurveyTrace, events: Sequence[SurveyEvent], others: Sequence[dict[str, Any]]
) -> Trace:
    """The trace of these events, with the `others` of their fields as attributes."""
    extra = events[0].stretto.trace
    agents = extra.agents or _told(events)
    role = {agent.id: said_role(agent) for agent in agents}
    made = tuple(
        [
            _event(event, _attrs(event, role.get(event.agent, UNSET)) | more)
            for event, more in zip(events, others, strict=True)
        ]
    )
    return _trace(document, extra, made, _edges(document.edges, extra), agents)


def _told(events: Sequence[SurveyEvent]) -> tuple[Agent, ...]:
    cast = Cast()
    for event in events:
        cast.take(event.type, event.agent, event.to, _role(event))
    return cast.agents()


def _role(event: SurveyEvent) -> Role:
    return UNSET if event.role is None else event.role


def _attrs(event: SurveyEvent, own: Role) -> dict[str, Any]:
    """The fields of the schema that an event of ours has no place for."""
    attrs: dict[str, Any] = {} if event.sender is UNSET else {"from": event.sender}
    return attrs | role_attr(_role(event), UNSET if event.type == SPAWN else own)


def _trace(
    document: SurveyTrace,
    extra: TraceExtra,
    events: tuple[Event, ...],
    edges: tuple[Edge, ...],
    agents: tuple[Agent, ...],
) -> Trace:
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
        agents=agents,
        events=events,
        edges=edges,
        scores=_scores(document, extra),
        contents=extra.contents,
    )


def _edges(edges: Sequence[SurveyEdge], extra: TraceExtra) -> tuple[Edge, ...]:
    if not extra.edges:
        return tuple([Edge(edge.src, edge.dst, edge.type) for edge in edges])
    return tuple(
        Edge(edge.src, edge.dst, *extra.edges.get(str(row), (edge.type, "recorded")))
        for row, edge in enumerate(edges)
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


def _event(event: SurveyEvent, attrs: dict[str, Any]) -> Event:
    """The event, with the fields that have no other place as `attrs`."""
    extra = event.stretto
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
        attrs=attrs | extra.attrs,
    )
