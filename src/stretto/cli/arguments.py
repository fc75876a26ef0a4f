"""Command lines from structs, and output for people and for programs."""

import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import tyro
from rich.console import Console

T = TypeVar("T")


def parse(kind: type[T], verb: str, argv: Sequence[str]) -> T:
    """Read a command line into `kind`; a mistake ends the program with exit code 2."""
    return tyro.cli(kind, prog=f"stretto {verb}", args=list(argv))


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
