"""Spans with attributes, as they are recorded, before a convention gives them a meaning."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from stretto.importers.kit.fields import count_at, number_at
from stretto.importers.kit.loom import Source

_DEPTH = 40
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,15})?", re.ASCII)


class Moment(NamedTuple):
    """Something that a span records at a time."""

    name: str
    time: int | None
    attributes: dict[str, Any]


class Record(Struct, frozen=True, kw_only=True):
    """One span of OTLP or of a Phoenix export."""

    id: str
    trace: str
    source: Source
    name: str = ""
    kind: str | None = None
    """Kind in the sense of OpenInference, where it stands beside the attributes."""
    parent: str | None = None
    links: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    attributes: dict[str, Any] = {}
    """By dotted name, none of them nested."""
    moments: tuple[Moment, ...] = ()
    error: str | None = None
    scope: str = ""
    """Name and version of what recorded it."""
    resource: dict[str, Any] = {}

    def text(self, *names: str) -> str | None:
        """The first of these attributes that is a text."""
        found = (self.attributes[name] for name in names if name in self.attributes)
        return next((value for value in found if isinstance(value, str) and value), None)

    def count(self, *names: str) -> int | None:
        """The first of these attributes that is a count."""
        found = (_numeric(self.attributes[name]) for name in names if name in self.attributes)
        counts = (count_at([value], 0) for value in found)
        return next((count for count in counts if count is not None), None)

    def number(self, *names: str) -> float | None:
        """The first of these attributes that is a number and not negative."""
        found = (_numeric(self.attributes[name]) for name in names if name in self.attributes)
        numbers = (number_at([value], 0) for value in found)
        return next((number for number in numbers if number is not None and number >= 0), None)

    def value(self, *names: str) -> Any:
        """The first of these attributes that is there and not empty."""
        found = (self.attributes[name] for name in names if name in self.attributes)
        return next(filter(None, found), None)

    def below(self, prefix: str) -> Any:
        """All attributes below a dotted name as one nested value; `None` where there are none."""
        return nested(self.attributes, prefix)

    def without(self, *prefixes: str) -> dict[str, Any]:
        """The attributes that none of these dotted names covers."""
        heads = tuple(f"{prefix}." for prefix in prefixes)
        return {
            name: value
            for name, value in self.attributes.items()
            if name not in prefixes and not name.startswith(heads)
        }


def _numeric(value: Any) -> Any:
    """A number that stands as a text, as where a store keeps texts only."""
    is_text = isinstance(value, str) and _NUMBER.fullmatch(value) is not None
    return float(value) if is_text else value


def flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested attributes by dotted name; lists of plain values stay lists."""
    found: dict[str, Any] = {}

    def collect(prefix: str, value: Any, depth: int) -> None:
        if isinstance(value, dict) and value and depth < _DEPTH:
            for name, inner in value.items():
                collect(f"{prefix}.{name}" if prefix else str(name), inner, depth + 1)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            for place, inner in enumerate(value):
                collect(f"{prefix}.{place}", inner, depth + 1)
        elif value is not None and prefix and value != {}:
            found[prefix] = value

    collect("", dict(attributes), 0)
    return found


def nested(attributes: Mapping[str, Any], prefix: str) -> Any:
    """What stands below a dotted name, with numbered names as lists."""
    head = f"{prefix}."
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(head):
            _insert(tree, name[len(head) :].split("."), value)
    return _listed(tree) if tree else attributes.get(prefix)


def _insert(tree: dict[str, Any], steps: list[str], value: Any) -> None:
    for step in steps[:_DEPTH][:-1]:
        inner = tree.get(step)
        tree[step] = inner if isinstance(inner, dict) else {}
        tree = tree[step]
    tree[steps[:_DEPTH][-1]] = value


def _listed(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(name.isdigit() and len(name) < 10 for name in tree):
        return [_listed(tree[name]) for name in sorted(tree, key=int)]
    return {name: _listed(value) for name, value in tree.items()}
