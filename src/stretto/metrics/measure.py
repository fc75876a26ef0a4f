"""A number, and how it is known."""

from msgspec import Struct

from stretto.trace import Evidence


class Measure(Struct, frozen=True):
    """One measure of a trace."""

    value: float | None
    """`None` where it cannot be known."""
    how: Evidence = "recorded"
    reason: str = ""
    """Why it is unknown, or what is missing from it."""
