"""What is whole of a file of the survey's schema that was cut or damaged."""

from collections.abc import Iterable, Sequence, Set
from typing import Any

import msgspec

from stretto.importers.kit.fields import list_at, record_at, text_at
from stretto.importers.kit.reading import parse_torn
from stretto.importers.kit.report import Notice
from stretto.importers.survey.schema import from_survey
from stretto.trace import Trace

REQUIRED: dict[str, Any] = {"task_id": "unknown", "edges": [], "rewards": {}, "costs": {}}
"""Fields that may stand behind the cut, and what is read instead."""
INSIDE = 2
"""Brackets that are open between two records: of the document and of the list."""
_EVENT = ("id", "t", "type", "agent")
_EDGE = ("src", "dst", "type")


def read_torn(data: bytes, name: str) -> tuple[Trace, tuple[Notice, ...]] | None:
    """The trace of what is whole, and notices of where it was cut; `None` for a file that is not.

    Raises `StrettoError` where no event is whole, and for whatever else is wrong with the rest.
    """
    document, notices, depth = parse_torn(data, name)
    if not notices or not isinstance(document, dict):
        return None
    if depth > INSIDE and (last := list_at(document, next(reversed(document)))):
        last.pop()  # the cut went through it
    events = _whole(list_at(document, "events"), _EVENT)
    ids = {text_at(event, "id") for event in events.values()}
    edges = {
        row: edge
        for row, edge in _whole(list_at(document, "edges"), _EDGE).items()
        if {text_at(edge, "src"), text_at(edge, "dst")} <= ids
    }
    if events:
        _forget(record_at(next(iter(events.values())), "stretto", "trace"), ids, list(edges))
    left = {"events": list(events.values()), "edges": list(edges.values())}
    return from_survey(msgspec.json.encode({**REQUIRED, **document, **left}), name), notices


def _whole(records: Iterable[Any], names: tuple[str, ...]) -> dict[int, dict[str, Any]]:
    """The records that have all these fields, by their place."""
    return {
        row: each
        for row, each in enumerate(records)
        if isinstance(each, dict) and all(name in each for name in names)
    }


def _forget(extra: dict[str, Any], ids: Set[str | None], edges: Sequence[int]) -> None:
    """Make what we wrote about the whole trace fit these events, and the edges of these rows."""
    if "scores" in extra:
        scores = list_at(extra, "scores")
        extra["scores"] = [each for each in scores if text_at(each, "event") in {None, *ids}]
    if "edges" in extra:
        said = record_at(extra, "edges")
        rows = {str(old): str(new) for new, old in enumerate(edges)}
        extra["edges"] = {rows[row]: value for row, value in said.items() if row in rows}
