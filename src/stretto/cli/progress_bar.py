"""How far something is that takes a while: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0
"""Seconds between plain lines, and before the first."""


class Show(Protocol):
    """Takes note of how many of how many are done, and where the work is."""

    def __call__(self, done: int, total: int, where: str = "") -> None:
        """Show it, unless something was shown a moment ago."""
        ...


@contextmanager
def progress(what: str) -> Generator[Show]:
    """Yield what takes note of progress; `what` names the things that are done."""
    if not sys.stderr.isatty():
        yield _plain(what)
        return
    from rich.console import Console

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, where: str = "") -> None:
            bar.update(task, completed=done, total=total, description=where)

        yield show


def _plain(what: str) -> Show:
    begun = told = time.monotonic()

    def show(done: int, total: int, where: str = "") -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= PATIENCE:
            told = now
            left = f"about {(now - begun) / done * (total - done):,.0f} s left" if done else ""
            parts = [f"{done:,} of {total:,} {what}", where, left]
            print(", ".join(part for part in parts if part), file=sys.stderr)

    return show
