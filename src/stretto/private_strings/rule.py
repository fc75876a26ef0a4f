"""What a rule is, and the pieces that patterns of several rules share."""

import re
from collections.abc import Callable, Iterable
from re import Match, Pattern

from msgspec import Struct

START = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Where a word begins: also behind an escaped line break, for texts are often JSON in JSON."""
SEPARATOR = r"(?:\\{1,8}|/)"
"""Between the parts of a path; backslashes come doubled in JSON, and doubled again in that."""
QUOTE = r"""\\*["']"""
IS = r"\s*(?:=>|:=|[:=])\s*"
"""Between a name and its value."""

Name = Callable[[str, str], str]
"""Gives what stands in the place of a private string, from its kind and the string."""


def always(_: Match[str]) -> bool:
    """For a rule whose pattern says all."""
    return True


class Rule(Struct, frozen=True):
    """A kind of private string and how it looks."""

    kind: str
    hints: tuple[str, ...]
    """Lower-case words one of which is near: looked for first, for that is fast."""
    pattern: Pattern[str]
    """Its group `it` is what is replaced."""
    is_private: Callable[[Match[str]], bool] = always
    """Looks closer at what the pattern found."""
    gate: Pattern[str] | None = None
    """A part of the pattern that is found faster than the whole."""

    def may_be_in(self, text: str, lower: str) -> bool:
        """Whether it is worth looking; `lower` is the text in lower case."""
        for hint in self.hints:
            if hint in lower:
                return self.gate is None or self.gate.search(text) is not None
        return False

    def replace(self, text: str, name: Name) -> str:
        """Replace every private string of this kind."""

        def renamed(match: Match[str]) -> str:
            if not self.is_private(match):
                return match[0]
            begin, end = (place - match.start() for place in match.span("it"))
            return match[0][:begin] + name(self.kind, match["it"]) + match[0][end:]

        return self.pattern.sub(renamed, text)


def in_any_case(words: Iterable[tuple[str, str]]) -> str:
    """A pattern for words in capitals or not, each given in two parts.

    The match is the second part; the first one stands before it. `re` looks for any of the letters
    with which second parts begin, which is fast where those are rare.
    """
    pairs = list(words)
    first = {case for _, tail in pairs for case in (tail[0].lower(), tail[0].upper())}
    letters = "".join(re.escape(letter) for letter in sorted(first) if len(letter) == 1)
    rest = (f"(?<={re.escape(head + tail[0])}){re.escape(tail[1:])}" for head, tail in pairs)
    return f"[{letters}](?i:{'|'.join(rest)})"
