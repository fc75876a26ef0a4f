"""What was said to an agent or asked of a tool, as numbers to compare."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stretto.columns import Flags, Ints
from stretto.rewards.tool_use import arguments_of
from stretto.trace import Event, Trace


@dataclass(frozen=True)
class Said:
    """What every event says, or asks a tool."""

    content: Ints
    """A 64-bit hash: equal for equal ones, in this process only."""
    known: Flags
    """Whether there is anything to compare."""


def said(trace: Trace, wanted: Flags) -> Said:
    """Contents; for those of the `wanted` events of our own rollouts that have none, arguments."""
    columns = trace.columns
    rows = np.flatnonzero(wanted & ~columns.has_content)
    arguments = [arguments_of(trace, trace.events[row]) for row in rows.tolist()]
    own = rows[[each is not None for each in arguments]]
    if not len(own):
        return Said(columns.content, columns.has_content)
    content, known = columns.content.copy(), columns.has_content.copy()
    content[own] = [hash(each) for each in arguments if each is not None]
    known[own] = True
    return Said(content, known)


def texts_of(trace: Trace, events: Iterable[Event]) -> list[str | None]:
    """The text of what each event says; `None` where it was dropped or never known."""
    text = trace.contents.get
    return [
        arguments_of(trace, event) if event.content is None else text(event.content)
        for event in events
    ]
