"""Records of the schema alone, as events and edges: most files come from elsewhere, and are large.

What takes the time is memory that is touched first. So records are turned batch by batch, and
dropped: the next ones stand where they stood.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeVar

from msgspec import UNSET

from stretto.exporters.survey import TYPE_OF_KIND
from stretto.importers.survey.records import BareEdge, BareEvent, SchemaEvent
from stretto.order import Hashes
from stretto.trace import Edge, Event

T = TypeVar("T")

BATCH = 1024
"""Records that are turned while they are in the processor's cache."""

KIND_OF_TYPE = {name: kind for kind, name in TYPE_OF_KIND.items()}


def take_events(
    records: list[BareEvent], agents: dict[str, str], ids: Hashes | None
) -> tuple[Event, ...]:
    """The events of these records, which are used up.

    `agents` gets the agents they name, and `ids` their own, which are at hand here.
    """
    return tuple(chain.from_iterable(_events(b, agents, ids) for b in _used_up(records)))


def take_edges(records: list[BareEdge], ids: Hashes | None) -> tuple[Edge, ...]:
    """The edges of these records, which are used up; `ids` gets their ends."""
    return tuple(chain.from_iterable(_edges(batch, ids) for batch in _used_up(records)))


def attrs_of(event: SchemaEvent) -> dict[str, Any]:
    """The fields of the schema that an event of ours has no place for."""
    attrs: dict[str, Any] = {}
    if event.role is not UNSET:
        attrs["role"] = event.role
    if event.sender is not UNSET:
        attrs["from"] = event.sender
    return attrs


def _used_up(records: list[T]) -> Iterator[list[T]]:
    records.reverse()  # a list gives up its last records cheaply
    while records:
        batch = records[: -BATCH - 1 : -1]
        del records[-BATCH:]
        yield batch


def _events(batch: list[BareEvent], agents: dict[str, str], ids: Hashes | None) -> list[Event]:
    if ids is not None:
        ids.add_events([event.id for event in batch])
    agent = agents.setdefault  # one text an agent, not one an event
    return [
        Event(
            id=event.id,
            kind=KIND_OF_TYPE[event.type],
            agent=agent(event.agent, event.agent),
            start=event.t,
            to=event.to,
            tool=event.tool,
            content=event.content_ref,
            trusted=event.trusted,
            attrs=attrs_of(event),
        )
        for event in batch
    ]


def _edges(batch: list[BareEdge], ids: Hashes | None) -> list[Edge]:
    if ids is not None:
        ids.add_edges([edge.src for edge in batch], [edge.dst for edge in batch])
    return [Edge(edge.src, edge.dst, edge.type) for edge in batch]
