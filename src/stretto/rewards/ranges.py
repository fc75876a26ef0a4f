"""Ranges of the numbers that a recipe may say of a channel; `channels.read_term` checks them."""

from typing import Annotated

from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
NonPositive = Annotated[float, Meta(le=0)]
Discount = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1, le=10**15)]
"""What floats hold exactly."""
