"""Command lines from structs, and output for people and for programs."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from io import StringIO
from math import floor, log10
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import tyro
from rich.console import Console

from stretto.errors import StrettoError

T = TypeVar("T")

TINY = 1e-6
"""Numbers nearer to 0 are written with an exponent."""


def parse(kind: type[T], verb: str, argv: Sequence[str], default: T | None = None) -> T:
    """Read a command line into `kind`.

    Raises `StrettoError` for a mistake, in one line; `--help` ends the program.
    """
    said = StringIO()
    try:
        with redirect_stderr(said):
            given: dict[str, Any] = {} if default is None else {"default": default}
            found = tyro.cli(kind, prog=f"stretto {verb}", args=list(argv), **given)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise StrettoError(_first_words(said.getvalue()), verb, "--help says more") from None
    _require_limits(found, kind, verb)
    return found


def _require_limits(found: Any, kind: type[Any], verb: str) -> None:
    """Hold a command line to the limits of its annotations, of which the parser knows nothing."""
    try:
        plain = msgspec.to_builtins(found, enc_hook=str)
        msgspec.convert(plain, kind, dec_hook=lambda wanted, value: wanted(value))
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        flag = path.strip("`").replace("_", "-")
        raise StrettoError(f"{what[0].lower()}{what[1:]}", f"{verb}: --{flag}") from None


def _first_words(box: str) -> str:
    """What a framed message says, up to its first rule."""
    framed = re.sub(r"\x1b\[[0-9;]*m", "", box).splitlines()  # without the colours of a terminal
    lines = [line.strip(" │╭╮╰╯─") for line in framed]
    words = [line for line in lines if line]
    told = next((n for n, line in enumerate(framed[1:]) if "──" in line), len(words))
    return " ".join(words[1 : max(told + 1, 2)]) or "the arguments do not fit"


def print_json(value: Any, beside: Path | None = None) -> None:
    """Print one JSON object on one line; `beside` as in `console`."""
    out = sys.stderr if is_stdout(beside) else sys.stdout
    out.write(msgspec.json.encode(value).decode() + "\n")
    out.flush()


def console(beside: Path | None = None) -> Console:
    """Where people read results; lines are only folded on a terminal.

    Args:
        beside: A file that was written: where that is standard output, people read on standard
            error, so that a pipe holds the file alone.
    """
    stderr = is_stdout(beside)
    stream = sys.stderr if stderr else sys.stdout
    return _Console(highlight=False, soft_wrap=not stream.isatty(), stderr=stderr)


def is_stdout(path: Path | None) -> bool:
    """Whether a path is this program's standard output, as `/dev/stdout`."""
    try:
        return path is not None and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # nothing is there yet, or nobody hears us
        return False


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which ends in peace."""
        raise BrokenPipeError


def number(value: float | None, digits: int = 3) -> str:
    """A number for people: `12,345`, `0.765`, `0.00042`, `unknown`.

    What `digits` decimals would blur keeps two significant digits.
    """
    if value is None:
        return "unknown"
    if float(value).is_integer():
        return f"{int(value):,}"
    size = abs(value)
    if not size < 10.0 ** (1 - digits):
        return f"{value:,.{digits}f}"
    return f"{value:.1e}" if size < TINY else f"{value:.{1 - floor(log10(size))}f}"
