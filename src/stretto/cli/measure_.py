"""`stretto measure PATH…`."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Meta, Struct
from rich.table import Table
from rich.text import Text

from stretto.cli.arguments import console, number, parse, print_json
from stretto.cli.progress_bar import progress
from stretto.files import require_writable
from stretto.importers import FileReport, import_each
from stretto.loading import load_all
from stretto.metrics import Measure, Prices, load_prices, measure, measure_by_group
from stretto.trace import Trace

MOST_SHOWN = 20
"""Traces that are shown to a person; `--json` has all."""

SHARED_REASON = 3
"""From so many measures on that are unknown for one reason, the reason is said once."""


class MeasureCommand(Struct, frozen=True, kw_only=True):
    """Measure traces: where time, tokens and money went, what was parallel, what was in vain."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
    """Files of traces or transcripts, or folders of them."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="TABLE")] = None
    """Write one Parquet table, a row a trace, for `stretto query`."""
    workers: Annotated[int, Meta(ge=1)] = os.cpu_count() or 1
    """Processes that measure for the table."""
    format: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The format of all paths; detected by content where absent."""
    prices: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A table of prices (TOML); without it, the dated one that comes with Stretto."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object a trace."""


def main(argv: Sequence[str]) -> int:
    """Measure every trace, for a person, a program or a table."""
    arguments = parse(MeasureCommand, "measure", argv)
    prices = load_prices(arguments.prices)
    if arguments.output is not None:
        return _write(arguments, arguments.output, prices)
    count = 0
    for trace in _traces(arguments):
        count += 1
        if arguments.json:
            print_json({"trace": trace.id, "measures": measure(trace, prices=prices)})
        elif count <= MOST_SHOWN:
            _show(trace.id, measure_by_group(trace, prices=prices), prices)
    if count > MOST_SHOWN and not arguments.json:
        hint = "--json prints all, -o FILE.parquet writes a table"
        console().print(f"showing {MOST_SHOWN} of {count:,} traces; {hint}")
    return 0


def _traces(arguments: MeasureCommand) -> Iterator[Trace]:
    """Traces one by one; what is not read is told on standard error."""
    if len(arguments.paths) == 1 and arguments.format is None and arguments.paths[0].is_file():
        yield from load_all(arguments.paths[0])
        return
    warned = 0
    for part in import_each(arguments.paths, arguments.format):
        yield from part.traces
        for file in part.report:
            _tell_unread(file)
        warned += sum(bool(file.warnings) and not _is_unread(file) for file in part.report)
    _tell_warned(warned)


def _write(arguments: MeasureCommand, path: Path, prices: Prices) -> int:
    """Measure into a table, with progress."""
    from stretto.metrics.table import import_polars, measure_paths, table_name, write_table

    import_polars()
    require_writable(path)
    with progress("sessions") as show:
        found = measure_paths(
            arguments.paths,
            format=arguments.format,
            workers=arguments.workers,
            prices=prices,
            show=show,
        )
    write_table(found.rows, path)
    for file in found.unread:
        _tell_unread(file)
    _tell_warned(found.warned)
    said = {"output": str(path), "traces": len(found.rows), "unread": len(found.unread)}
    said["warned"] = found.warned
    if arguments.json:
        print_json(said, path)
    else:
        sql = f"SELECT trace, makespan FROM {table_name(path)}"
        query = shlex.join(["stretto", "query", sql, str(path)])
        told = f"wrote {path}: {len(found.rows):,} traces; ask it with: {query}"
        console(path).print(told, markup=False)
    return 0


def _is_unread(file: FileReport) -> bool:
    return any(notice.what.startswith("not read") for notice in file.warnings)


def _tell_unread(file: FileReport) -> None:
    for notice in file.warnings if _is_unread(file) else ():
        print(f"stretto: {notice}", file=sys.stderr)


def _tell_warned(files: int) -> None:
    if files:
        what = f"{files:,} file{' was' if files == 1 else 's were'} read with warnings"
        print(f"stretto: {what}; stretto import --report lists them", file=sys.stderr)


UNITS = {
    **dict.fromkeys(("makespan", "work", "span", "blocked", "idle"), "s"),
    "price": "$",
}
NAMES = {"span": "span (critical path)"}


def _show(name: str, groups: Mapping[str, Mapping[str, Measure]], prices: Prices) -> None:
    out = console()
    table = Table(title=Text(name), title_justify="left", box=None, pad_edge=False)
    for column in ("measure", "value", "", "known how"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for group, measures in groups.items():
        table.add_row(Text(group, style="bold"), "", "", "")
        _add_rows(table, measures)
    out.print(table)
    if groups["E4 overhead"]["price"].how == "derived":
        out.print(f"prices are those of {prices.date}")


def _add_rows(table: Table, measures: Mapping[str, Measure]) -> None:
    """Add a row a measure; several that are unknown for one reason share a row."""
    silent: dict[str, list[str]] = {}
    for key, found in measures.items():
        if found.value is None:
            silent.setdefault(found.reason, []).append(key)
    for key, found in measures.items():
        together = silent.get(found.reason, []) if found.value is None else []
        if len(together) < SHARED_REASON:
            note = found.how if found.value is not None else "unknown"
            note += f": {found.reason}" if found.reason else ""
            table.add_row(_name(key), number(found.value), UNITS.get(key, ""), Text(note))
        elif key == together[0]:
            names = ", ".join(_name(each) for each in together)
            table.add_row("", "unknown", "", Text(f"{names}: {found.reason}"))


def _name(key: str) -> str:
    return NAMES.get(key, key.replace("_", " "))
