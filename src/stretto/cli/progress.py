"""What a person sees while a policy trains: a live table on a terminal, plain lines elsewhere."""

import sys
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from stretto.cli.arguments import number

if TYPE_CHECKING:  # torch takes a second to import, and --help needs none
    from stretto.learn.loop import Run

Metrics = dict[str, Any]
ROWS = 12
"""Steps that the live table shows."""

COLUMNS = {
    "step": "step",
    "reward": "reward",
    "value": "exact value",
    "optimum": "optimum",
    "proxy": "proxy",
    "utility": "utility",
    "correlation": "correlation",
    "entropy": "entropy",
    "tokens": "tokens",
    "seconds": "seconds",
}
WATCHED = ("proxy", "utility", "correlation")
"""Columns that only a run has whose reward pays for more than the outcome and prices."""


@contextmanager
def show_progress(run: "Run", plain: bool) -> Generator[Callable[[Metrics], None]]:
    """Yield what shows one step's metrics; `plain` forces lines on standard error."""
    console = Console(stderr=plain, highlight=False)
    console.print(_header(run), markup=False, soft_wrap=True)
    if plain or not sys.stdout.isatty():
        yield lambda metrics: console.print(_line(_row(run, metrics)), markup=False, soft_wrap=True)
        return
    recent: deque[dict[str, str]] = deque(maxlen=ROWS)
    with Live(_table(recent, run), console=console, auto_refresh=False) as live:

        def show(metrics: Metrics) -> None:
            recent.append(_row(run, metrics))
            live.update(_table(recent, run), refresh=True)

        yield show


def _header(run: "Run") -> str:
    about = run.policy.about
    policy = about.get("model", about["kind"])
    size = f"{about['parameters']:,} parameters, " if about["parameters"] else ""
    parts = [
        f"{run.task.id}: training {policy}, {size}{about['dtype']}",
        f"seed {run.recipe.seed}",
        f"{run.recipe.train.steps} steps of {run.recipe.train.episodes} episodes",
        str(run.folder),
    ]
    return " · ".join(parts)


def _row(run: "Run", metrics: Metrics) -> dict[str, str]:
    optimum = run.oracle.optimum if run.oracle else None
    tokens = metrics["tokens_generated"] + metrics["tokens_trained"]
    found = {
        "step": f"{metrics['step']}/{run.recipe.train.steps}",
        "reward": number(metrics["reward"], 4),
        "value": number(metrics["value"], 4),
        "optimum": number(optimum, 4),
        "entropy": number(metrics["entropy"]),
        "tokens": number(tokens),
        "seconds": number(metrics["seconds"], 1),
        "proxy": number(metrics["proxy"]),
        "utility": number(metrics["utility"]),
        "correlation": number(metrics["proxy_correlation"], 2),
    }
    return {key: found[key] for key in _keys(run)}


def _keys(run: "Run") -> list[str]:
    from stretto.learn.channels import KNOWN
    from stretto.rewards.watch import pays_proxies

    watched = pays_proxies(run.recipe.reward, run.task.prices, 0, KNOWN)
    return [key for key in COLUMNS if watched or key not in WATCHED]


def _line(row: dict[str, str]) -> str:
    return "  ".join(f"{COLUMNS[key]} {value}" for key, value in row.items())


def _table(rows: deque[dict[str, str]], run: "Run") -> Table:
    table = Table(box=None, pad_edge=False)
    for key in _keys(run):
        table.add_column(COLUMNS[key], justify="right", min_width=9)
    for row in rows:
        table.add_row(*row.values())
    return table
