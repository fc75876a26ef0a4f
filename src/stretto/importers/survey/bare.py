"""Records of the schema alone, as events and edges: most files come from elsewhere, and are large.

What takes the time is memory that is touched first. So records are turned batch by batch, and
dropped: the next ones stand where they stood.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeVar

from msgspec import UNSET

from stretto.exporters.survey import TYPE_OF_KIND
from stretto.exporters.survey_agents import SPAWN, Cast, role_attr
from stretto.importers.survey.records import BareEdge, BareEvent
from stretto.order import Hashes
from stretto.trace import Edge, Event

T = TypeVar("T")

BATCH = 2048
"""Records that are turned while they are in the processor's cache."""

KIND_OF_TYPE = {name: kind for kind, name in TYPE_OF_KIND.items()}


def take_events(records: list[BareEvent], cast: Cast, ids: Hashes | None) -> tuple[Event, ...]:
    """The events of these records, which are used up.

    `cast` gets the agents they tell of, and `ids` their own, which are at hand here.
    """
    return tuple(chain.from_iterable(_events(batch, cast, ids) for batch in _used_up(records)))


def take_edges(records: list[BareEdge], ids: Hashes | None) -> tuple[Edge, ...]:
    """The edges of these records, which are used up; `ids` gets their ends."""
    return tuple(chain.from_iterable(_edges(batch, ids) for batch in _used_up(records)))


def _used_up(records: list[T]) -> Iterator[list[T]]:
    records.reverse()  # a list gives up its last records cheaply
    while records:
        batch = records[: -BATCH - 1 : -1]
        del records[-BATCH:]
        yield batch


def _events(batch: list[BareEvent], cast: Cast, ids: Hashes | None) -> list[Event]:
    known = cast.known.get
    names, events = list[str](), list[Event]()
    for event in batch:
        names.append(event.id)
        attrs: dict[str, Any] = {} if event.sender is UNSET else {"from": event.sender}
        agent, role = event.agent, event.role
        if event.type == SPAWN:
            cast.spawn(agent, event.to, role)
            attrs |= role_attr(role, UNSET)
        else:
            agent, own = known(agent) or cast.enter(agent, role)  # one text an agent
            if role != own:
                attrs |= role_attr(role, own)
                cast.take(event.type, agent, None, role)
        made = Event(
            id=event.id,
            kind=KIND_OF_TYPE[event.type],
            agent=agent,
            start=event.t,
            to=event.to,
            tool=event.tool,
            content=event.content_ref,
            trusted=event.trusted,
            attrs=attrs,
        )
        events.append(made)
    if ids is not None:
        ids.add_events(names)
    return events


def _edges(batch: list[BareEdge], ids: Hashes | None) -> list[Edge]:
    ends, edges = list[str](), list[Edge]()
    for edge in batch:
        src, dst = edge.src, edge.dst
        ends += (src, dst)
        edges.append(Edge(src, dst, edge.type))
    if ids is not None:
        ids.add_edges(ends)
    return edges
