"""`stretto measure FILE`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from stretto.cli.arguments import console, number, parse, print_json
from stretto.loading import load_all
from stretto.metrics import Measure, measure

MOST_SHOWN = 20
"""Traces that are shown to a person; `--json` has all."""


class MeasureCommand(Struct, frozen=True, kw_only=True):
    """Measure traces: makespan, work, critical path, parallelism, tokens."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of traces, or a transcript (a file or its folder)."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object a trace."""


def main(argv: Sequence[str]) -> int:
    """Measure every trace of a file."""
    arguments = parse(MeasureCommand, "measure", argv)
    traces = load_all(arguments.file)
    for index, trace in enumerate(traces):
        if arguments.json:
            print_json({"trace": trace.id, "measures": measure(trace)})
        elif index < MOST_SHOWN:
            console().print(_table(trace.id, measure(trace)))
    if len(traces) > MOST_SHOWN and not arguments.json:
        console().print(f"showing {MOST_SHOWN} of {len(traces)} traces; --json prints all")
    return 0


UNITS = {"makespan": "s", "work": "s", "span": "s"}
NAMES = {"span": "span (critical path)"}


def _table(name: str, measures: dict[str, Measure]) -> Table:
    table = Table(title=Text(name), title_justify="left", box=None, pad_edge=False)
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("")
    table.add_column("known how")
    for key, value in measures.items():
        note = value.how if value.value is not None else "unknown"
        note += f": {value.reason}" if value.reason else ""
        unit = UNITS.get(key, "")
        table.add_row(NAMES.get(key, key.replace("_", " ")), number(value.value), unit, Text(note))
    return table
