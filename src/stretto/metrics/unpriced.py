"""Why turns have no price, cause by cause."""

from collections.abc import Sequence
from datetime import date

import numpy as np
from msgspec import Struct

from stretto.columns import Columns, Flags, Ints

MOST_NAMES = 3
"""Models that are named."""


class Lost(Struct, frozen=True):
    """The turns that have no price."""

    rows: Ints
    """Their events."""
    model: Ints
    """Codes of their models into `models`."""
    models: Sequence[str | None]
    in_table: Flags
    """By model: whether the table has a price for it."""
    too_long: Flags
    """By turn: whether its prompt is longer than the prices of its model hold for."""


def why(columns: Columns, lost: Lost, of: date) -> str:
    """The causes with the number of turns of each; a turn counts for the first that holds.

    Tokens come first: without them no table helps. `of` is the date of the table.
    """
    silent = np.isnan(columns.input_tokens[lost.rows]) | np.isnan(columns.output_tokens[lost.rows])
    wrong, absent = _unreliable(columns, lost.rows), ~lost.in_table[lost.model]
    nameless = np.array([not model for model in lost.models], dtype=bool)[lost.model]
    left = np.ones(len(lost.rows), dtype=bool)
    said: list[str] = []
    for cause, holds in (
        ("tokens unknown", silent & ~wrong),
        ("tokens unreliable", silent),
        ("model unknown", nameless),
        (f"the table of {of} has no price for {_names(lost, ~silent & absent)}", absent),
        ("prompt longer than the prices hold for", lost.too_long),
        ("no price for cached tokens", left),
    ):
        here = left & holds
        said += [f"{cause} ({int(here.sum())})"] if here.any() else []
        left = left & ~here
    return ", ".join(said)


def _unreliable(columns: Columns, rows: Ints) -> Flags:
    tokens = [columns.events[row].tokens for row in rows.tolist()]
    return np.array([each is not None and bool(each.unreliable) for each in tokens], dtype=bool)


def _names(lost: Lost, which: Flags) -> str:
    words = sorted(filter(None, (lost.models[code] for code in np.unique(lost.model[which]))))
    return ", ".join(words[:MOST_NAMES]) + (", …" if len(words) > MOST_NAMES else "")
