"""Command lines from structs, and output for people and for programs."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from typing import Any, TypeVar

import msgspec
import tyro
from rich.console import Console

from stretto.errors import StrettoError

T = TypeVar("T")


def parse(kind: type[T], verb: str, argv: Sequence[str], default: T | None = None) -> T:
    """Read a command line into `kind`.

    Raises `StrettoError` for a mistake, in one line; `--help` ends the program.
    """
    said = StringIO()
    try:
        with redirect_stderr(said):
            given: dict[str, Any] = {} if default is None else {"default": default}
            return tyro.cli(kind, prog=f"stretto {verb}", args=list(argv), **given)
    except SystemExit as stop:
        if not stop.code:
            raise
    raise StrettoError(_first_words(said.getvalue()), verb, "--help says more")


def _first_words(box: str) -> str:
    """What a framed message says, up to its first rule."""
    lines = [line.strip(" │╭╮╰╯─") for line in box.splitlines()]
    words = [line for line in lines if line]
    told = next((n for n, line in enumerate(box.splitlines()[1:]) if "──" in line), len(words))
    return " ".join(words[1 : max(told + 1, 2)]) or "the arguments do not fit"


def print_json(value: Any) -> None:
    """Print one JSON object on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def console() -> Console:
    """Where people read results; lines are only folded on a terminal."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def number(value: float | None, digits: int = 3) -> str:
    """A number for people: `12,345`, `0.765`, `unknown`."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.{digits}f}"
