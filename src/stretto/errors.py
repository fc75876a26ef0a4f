"""The errors that Stretto raises for a person to read.

Every message says *what* is wrong, *where* (file, line, field) and *what to do*. The command line
prints it as one line and exits with code 2.
"""

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 20
"""Known names that an error lists."""

MOST_LETTERS = 80
"""Letters of a name that an error shows."""


class StrettoError(Exception):
    """A mistake in the input, the configuration or the surroundings, told in one line."""

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        """Join the three parts: `where: what (hint)`; only `what` is required."""
        self.what = what
        self.where = where
        self.hint = hint
        prefix = f"{where}: " if where else ""
        suffix = f" ({hint})" if hint else ""
        super().__init__(f"{prefix}{what}{suffix}")

    def __reduce__(self) -> tuple[type["StrettoError"], tuple[str, str, str]]:
        """Survive pickling between processes with all three parts."""
        return type(self), (self.what, self.where, self.hint)


class SourceWarning(UserWarning):
    """What is to know about a file of others that was read: it was cut, or says too little."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `did you mean "x"?` for the nearest known name, else the first known names.

    Upper and lower case are alike.
    """
    names = sorted(known)
    folded = {known_name.casefold(): known_name for known_name in names}
    close = get_close_matches(name.casefold(), folded, n=1)
    if close:
        return f'did you mean "{folded[close[0]]}"?'
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"known: {', '.join(names[:MOST_NAMES])}{more}"


def short(name: str) -> str:
    """A name as an error shows it: of a long one both ends."""
    half = MOST_LETTERS // 2
    return name if len(name) <= MOST_LETTERS else f"{name[:half]}…{name[-half:]}"
