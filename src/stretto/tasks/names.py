"""Invented names: what they stand for cannot be known from elsewhere."""

_NAME = ("bdfghjklmnprtv", "aeiou", "bdfghjklmnprtv", "aeiou", "kpstxz")
"""The letters at each place of an invented name."""
NAMES = 14 * 5 * 14 * 5 * 6
"""How many names can be invented."""
_STRIDE = 10_007
"""Prime to `NAMES`, so that steps of it meet every name once."""


def name_at(base: int, index: int) -> str:
    """The invented name with this number: distinct for every index below `NAMES`."""
    rest = (base + index * _STRIDE) % NAMES
    letters: list[str] = []
    for place in _NAME:
        rest, letter = divmod(rest, len(place))
        letters.append(place[letter])
    return "".join(letters)
