"""The survey's trace schema (arXiv 2605.02801, appendix C.7; `trace_schema.json`), as a target.

It has no stop or delegate event, no duration, no decision, no agent table and requires two costs.
What it cannot say goes into an extra field of the events, `stretto`, which it permits; importing
the file again gives the same trace. A trace that came from the survey's schema is
written back as it was.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from stretto.errors import StrettoError
from stretto.exporters.survey_agents import SPAWN, Cast, Role, said_role
from stretto.trace import LABELS, TOPOLOGIES, Agent, Edge, Event, Score, Trace

TYPE_OF_KIND = {
    "decision": "orchestrator_decision",
    "human": "human_intervention",
    "safety": "safety_event",
    **{kind: kind for kind in ("spawn", "despawn", "message", "return", "aggregate")},
    **{kind: kind for kind in ("tool_call", "tool_result")},
}
"""Event kind here to event type there; every other kind goes as an `orchestrator_decision`."""
EXTRA = "stretto"
"""Name of the extra event field."""
EXPLICIT = "survey_explicit"
"""Header attribute: optional fields that the survey file gave although they say nothing."""
AMOUNTS = ("tokens", "wall_clock_s", "tool_calls", "messages")
"""Costs that the schema names; none is below 0, and the first two are required."""
_TAKEN = {"id", "t", "type", "agent", "to", "tool", "content_ref", "trusted", EXTRA}


def to_survey(trace: Trace) -> dict[str, Any]:
    """The trace as the survey's schema has it, ready for a JSON encoder.

    Raises `StrettoError` for a trace without events: the schema requires one.
    """
    if not trace.events:
        raise StrettoError("the survey's schema requires at least one event", trace.id)
    roles = {agent.id: said_role(agent) for agent in trace.agents}
    events = [_event(event, roles.get(event.agent, UNSET)) for event in trace.events]
    costs, derived = _costs(trace)
    extra = _trace_extra(trace, derived)
    if trace.agents != _told(events):
        extra["agents"] = msgspec.to_builtins(trace.agents)
    if extra:
        events[0].setdefault(EXTRA, {})["trace"] = extra
    explicit = trace.attrs.get(EXPLICIT, ())
    explicit = explicit if isinstance(explicit, list | tuple) else ()
    document: dict[str, Any] = {"trace_id": trace.id, "task_id": trace.task}
    if trace.system is not None:
        document["system"] = trace.system
    if trace.topology != "unknown" or "topology" in explicit:
        document["topology"] = trace.topology if trace.topology in TOPOLOGIES else "mixed"
    edges = [{"src": edge.src, "dst": edge.dst, "type": _label(edge)} for edge in trace.edges]
    document |= {
        "events": events,
        "edges": edges,
        "rewards": _team(trace, "reward"),
        "costs": costs,
    }
    metrics = _team(trace, "metric")
    return document | ({"metrics": metrics} if metrics or "metrics" in explicit else {})


def _event(event: Event, own: Role) -> dict[str, Any]:
    """The event, where those of its agent say the role `own`."""
    plain, rest = _split(event.attrs, UNSET if event.kind == SPAWN else own)
    written: dict[str, Any] = {
        "id": event.id,
        "t": event.start or 0.0,
        "type": TYPE_OF_KIND.get(event.kind, "orchestrator_decision"),
        "agent": event.agent,
        **plain,
    }
    optional: dict[str, Any] = {"to": event.to, "tool": event.tool, "content_ref": event.content}
    optional["trusted"] = event.trusted
    written |= {name: value for name, value in optional.items() if value is not None}
    extra = _event_extra(event, rest)
    return written | ({EXTRA: extra} if extra else {})


def _split(attrs: Mapping[str, Any], own: Role) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes that fields of an event say, with its role; and the others."""
    plain = {name: value for name, value in attrs.items() if _fits(name, value)}
    rest = {name: value for name, value in attrs.items() if name not in plain}
    if own is not UNSET and "role" not in plain:
        if attrs.get("role", own) is None:
            del rest["role"]  # told by a field that is not there
        else:
            plain["role"] = own
    elif own is not UNSET and plain["role"] == own:
        rest["role"] = own  # the field alone is the agent's
    return plain, rest


def _told(events: list[dict[str, Any]]) -> tuple[Agent, ...]:
    """The agents as an importer of these events takes them."""
    cast = Cast()
    for each in events:
        cast.take(each["type"], each["agent"], each.get("to"), each.get("role", UNSET))
    return cast.agents()


def _fits(name: str, value: Any) -> bool:
    return name not in _TAKEN and (name not in ("role", "from") or isinstance(value, str))


def _event_extra(event: Event, rest: dict[str, Any]) -> dict[str, Any]:
    fields = ("duration", "decision", "tokens", "price", "label")
    extra = {name: getattr(event, name) for name in fields if getattr(event, name) is not None}
    if event.kind not in TYPE_OF_KIND:
        extra["kind"] = event.kind
    if event.start is None:
        extra["start"] = None
    return msgspec.to_builtins(extra | ({"attrs": rest} if rest else {}))


def _label(edge: Edge) -> str:
    return edge.label if edge.label in LABELS else "causal"


def _team(trace: Trace, kind: str) -> dict[str, float]:
    return {score.channel: score.value for score in _plain_scores(trace) if score.kind == kind}


def _plain_scores(trace: Trace) -> list[Score]:
    """The scores that the survey can hold: the team's, one a channel, kind by kind."""
    team = [score for score in trace.scores if score.agent is None and score.event is None]
    first = {(score.kind, score.channel): score for score in reversed(team)}
    kinds = ("reward", "cost", "metric")
    plain = [s for kind in kinds for s in team if s.kind == kind and first[kind, s.channel] is s]
    return plain if tuple(plain) == trace.scores[: len(plain)] else []


def _costs(trace: Trace) -> tuple[dict[str, float], list[str]]:
    """Recorded costs, the two required ones computed where absent, and the names of those."""
    costs = _team(trace, "cost")
    for name in AMOUNTS:
        if costs.get(name, 0) < 0:
            raise StrettoError(f"the cost {name} is negative", trace.id)
    derived = [name for name in AMOUNTS[:2] if name not in costs]
    if derived:
        from stretto.metrics.overhead import overhead
        from stretto.metrics.parallelism import makespan

        tokens = sum(measure.value or 0 for measure in overhead(trace).values())
        computed = {"tokens": tokens, "wall_clock_s": makespan(trace).value or 0.0}
        costs |= {name: computed[name] for name in derived}
    return costs, derived


def _trace_extra(trace: Trace, derived: list[str]) -> dict[str, Any]:
    header = {
        name: getattr(trace, name)
        for name in ("harness", "seed", "spec", "lineage")
        if getattr(trace, name) not in (None, {}, ())
    }
    attrs = {name: value for name, value in trace.attrs.items() if name != EXPLICIT}
    edges = {
        str(row): [edge.label, edge.evidence]
        for row, edge in enumerate(trace.edges)
        if edge.evidence != "recorded" or edge.label not in LABELS
    }
    own = trace.scores[len(_plain_scores(trace)) :]
    optional: dict[str, Any] = {"attrs": attrs, "derived_costs": derived, "edges": edges}
    optional["contents"] = dict(trace.contents)
    optional["scores"] = own
    if trace.topology not in TOPOLOGIES:
        optional["topology"] = trace.topology
    extra = header | {name: value for name, value in optional.items() if value}
    return msgspec.to_builtins(extra)
