"""`stretto diff A B`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from msgspec import Struct, structs
from rich.console import Console
from rich.text import Text

from stretto.cli.arguments import console, number, parse, print_json
from stretto.cli.measured import plain
from stretto.cli.tables import mark, plain_table, print_notes, print_table
from stretto.loading import load_all
from stretto.metrics.compare import Comparison, compare
from stretto.metrics.groups import GroupChange, GroupComparison, compare_groups

MOST_STEPS = 12
"""Steps that are shown to a person; `--json` has all."""

MOST_AGENTS = 40
"""Agents that are shown to a person; `--json` has all."""


class Diff(Struct, frozen=True, kw_only=True):
    """Compare two traces, or two groups of traces.

    Traces are aligned by agent and causal depth. Groups are paired by task and seed; without any
    pair, their means are compared.
    """

    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A")]
    """A file of traces, or a transcript."""
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B")]
    """Another one."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Compare two files."""
    arguments = parse(Diff, "diff", argv)
    first, second = load_all(arguments.first), load_all(arguments.second)
    if len(first) == len(second) == 1:
        found = compare(first[0], second[0])
        if arguments.json:
            print_json(_plain(found))
        else:
            _show(found)
        return 0
    groups, counts = compare_groups(first, second), (len(first), len(second))
    if arguments.json:
        print_json({"traces": counts, **structs.asdict(groups)})
    else:
        _show_groups(groups, counts)
    return 0


def _plain(found: Comparison) -> dict[str, Any]:
    measures = {
        name: {side: plain(each, each.value) for side, each in structs.asdict(change).items()}
        for name, change in found.measures.items()
    }
    return {**structs.asdict(found), "measures": measures}


def _show(found: Comparison) -> None:
    out, notes = console(), dict[str, int]()
    table = plain_table("measure", "A", "B", "B - A", "known how", left=("known how",))
    for name, change in found.measures.items():
        values, gap = (change.first.value, change.second.value), change.difference
        if values[0] != values[1]:
            how = Text((change.how or "") + mark(notes, change.reason))
            table.add_row(name.replace("_", " "), *map(number, (*values, gap)), how)
    if table.row_count:
        print_table(out, table)
        print_notes(out, notes)
    else:
        out.print("all measures are equal")
    _show_agents(out, found)
    _show_steps(out, found)


def _show_agents(out: Console, found: Comparison) -> None:
    """Agents of which the two have not as many events."""
    unlike = {name: counts for name, counts in found.agents.items() if counts[0] != counts[1]}
    table = plain_table("agent", "events A", "events B")
    for name, counts in list(unlike.items())[:MOST_AGENTS]:
        table.add_row(Text(name), *(f"{count:,}" for count in counts))
    if table.row_count:
        print_table(out, table)
    if len(unlike) > MOST_AGENTS:
        out.print(f"showing {MOST_AGENTS} of {len(unlike):,} agents; --json prints all")


def _show_steps(out: Console, found: Comparison) -> None:
    if found.steps is None or found.common is None:
        out.print(Text(f"steps are not compared: {found.reason}"))
        return
    out.print(f"{found.common:,} events in common")
    for step in found.steps[:MOST_STEPS]:
        sides = [", ".join(side) for side in (step.first, step.second)]
        told = f"agent {step.agent}, depth {step.depth}: A {sides[0] or '-'} | B {sides[1] or '-'}"
        out.print(Text(told))
    if len(found.steps) > MOST_STEPS:
        out.print(f"showing {MOST_STEPS} of {len(found.steps):,} steps; --json prints all")


def _show_groups(found: GroupComparison, counts: tuple[int, int]) -> None:
    out, notes = console(), dict[str, int]()
    signs = ("pairs", "more", "less") if found.paired else ("traces",)
    heads = ("measure", "A", "B", "B - A", "95 % interval", *signs, "known how")
    table = plain_table(*heads, left=("known how",))
    for name, change in found.measures.items():
        cells = map(number, (change.first, change.second, change.difference))
        told = _signs(change) if found.paired else ["{} and {}".format(*change.traces)]
        interval = Text(_interval(change, notes))
        how = Text(change.how + mark(notes, change.reason))
        table.add_row(name.replace("_", " "), *cells, interval, *told, how)
    print_table(out, table)
    print_notes(out, notes)
    out.print("{} and {} traces, ".format(*counts) + _how_compared(found))


def _interval(change: GroupChange, notes: dict[str, int]) -> str:
    if change.low is None or change.high is None:
        return "unknown" + mark(notes, change.no_interval)
    return f"{number(change.low)} to {number(change.high)}"


def _signs(change: GroupChange) -> list[str]:
    return [str(change.traces[0]), str(change.greater), str(change.less)]


def _how_compared(found: GroupComparison) -> str:
    if not found.paired:
        return f"not paired: {found.reason}"
    left = zip(found.left_out, "AB", strict=True)
    lonely = ", ".join(f"{count:,} of {side}" for count, side in left if count)
    return "paired by task and seed" + (f"; without a partner: {lonely}" if lonely else "")
