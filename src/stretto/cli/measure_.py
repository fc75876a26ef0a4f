"""`stretto measure PATH…`."""

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from msgspec import Meta, Struct
from rich.text import Text

from stretto.cli.arguments import console, is_stdout, parse, print_json
from stretto.cli.measured import (
    plain,
    plain_measures,
    show_breakdown,
    show_measures,
    show_path,
)
from stretto.cli.progress_bar import progress
from stretto.errors import StrettoError, did_you_mean
from stretto.files import output_path, require_writable
from stretto.importers import FileReport, import_each
from stretto.loading import load_all
from stretto.metrics import (
    Prices,
    breakdown,
    critical_path,
    load_prices,
    measure,
    measure_by_group,
)
from stretto.metrics.baselines import find_baseline, load_baselines
from stretto.trace import Trace

MOST_SHOWN = 20
"""Traces that are shown to a person; `--json` has all."""

PARQUET = ".parquet"

BY = ("agent", "role", "kind", "decision", "tool", "model", "event")
"""What a trace can be broken down by."""


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
    baseline: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The same task done by a single agent, for overhead and speed-up; of several traces there, the
    one of the same task and seed."""
    by: Annotated[str | None, tyro.conf.arg(metavar="PART")] = None
    """By agent, role, kind, decision, tool, model or event: show tokens, price, work, blocked and
    idle time part by part instead."""
    path: tyro.conf.FlagCreatePairsOff[bool] = False
    """Show the critical path instead: its events, and what every kind and agent takes of it."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object a trace."""


def main(argv: Sequence[str]) -> int:
    """Measure every trace, for a person, a program or a table."""
    arguments = parse(MeasureCommand, "measure", argv)
    if not arguments.paths:
        hint = "name a file of traces, a transcript, or a folder of them"
        raise StrettoError("there is nothing to measure", "measure", hint)
    if arguments.by is not None and arguments.by not in BY:
        what = f'cannot break a trace down by "{arguments.by}"'
        raise StrettoError(what, "measure: --by", did_you_mean(arguments.by, BY))
    if arguments.baseline is not None and (arguments.by is not None or arguments.path):
        what = "a baseline is for overhead and speed-up, which are no parts of a trace"
        raise StrettoError(what, "measure: --baseline", "leave it out, or --by and --path")
    prices = load_prices(arguments.prices)
    if arguments.output is not None:
        return _write(arguments, output_path(arguments.output), prices)
    baselines = () if arguments.baseline is None else load_baselines(arguments.baseline)
    count, alone = 0, Counter[str]()
    for trace in _traces(arguments):
        count += 1
        baseline = find_baseline(trace, baselines) if baselines else None
        alone.update([baseline] if isinstance(baseline, str) else ())
        if arguments.json:
            print_json(_plain(trace, arguments, prices, baseline))
        elif count <= MOST_SHOWN:
            console().print("\n" * (count > 1), end="")
            _show(trace, arguments, prices, baseline)
    _tell_alone(alone, arguments.baseline)
    if count > MOST_SHOWN and not arguments.json:
        hint = "--json prints all, -o FILE.parquet writes a table"
        console().print(f"showing {MOST_SHOWN} of {count:,} traces; {hint}")
    return 0


def _plain(
    trace: Trace, arguments: MeasureCommand, prices: Prices, baseline: Trace | str | None
) -> dict[str, Any]:
    """What is asked of a trace, for a program."""
    said: dict[str, Any] = {"trace": trace.id}
    if arguments.by is not None:
        said |= {"by": arguments.by, "rows": breakdown(trace, arguments.by, prices)}
    if arguments.path:
        path = critical_path(trace)
        said["critical_path"] = plain(path, path.seconds)
    if arguments.by is None and not arguments.path:
        found = measure(trace, baseline=baseline, prices=prices)
        said["measures"] = plain_measures(found)
    return said


def _show(
    trace: Trace, arguments: MeasureCommand, prices: Prices, baseline: Trace | str | None
) -> None:
    """What is asked of a trace, for a person."""
    console().print(Text(trace.id, style="italic"))
    if arguments.by is not None:
        show_breakdown(trace, arguments.by, breakdown(trace, arguments.by, prices))
    if arguments.path:
        show_path(trace, critical_path(trace))
    if arguments.by is None and not arguments.path:
        show_measures(measure_by_group(trace, baseline=baseline, prices=prices), prices)


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

    if arguments.by is not None or arguments.path:
        hint = "leave out -o, or --by and --path"
        raise StrettoError("a table holds measures, no parts of a trace", str(path), hint)
    import_polars()
    require_writable(path)
    _require_parquet(path)
    with progress("sessions") as show:
        found = measure_paths(
            arguments.paths,
            format=arguments.format,
            workers=arguments.workers,
            prices=prices,
            baseline=arguments.baseline,
            show=show,
        )
    write_table(found.rows, path)
    for file in found.unread:
        _tell_unread(file)
    _tell_warned(found.warned)
    _tell_alone(found.alone, arguments.baseline)
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


def _require_parquet(path: Path) -> None:
    """Refuse a file whose ending promises another format; what is no file of its own has none."""
    is_device = is_stdout(path) or (path.exists() and not path.is_file())
    if path.suffix.lower() != PARQUET and not is_device:
        name = (path.name.partition(".")[0] or "measures") + PARQUET
        raise StrettoError("a table of measures is a Parquet file", str(path), f"call it {name}")


def _is_unread(file: FileReport) -> bool:
    return any(notice.what.startswith("not read") for notice in file.warnings)


def _tell_unread(file: FileReport) -> None:
    for notice in file.warnings if _is_unread(file) else ():
        print(f"stretto: {notice}", file=sys.stderr)


def _tell_warned(files: int) -> None:
    if files:
        what = f"{files:,} file{' was' if files == 1 else 's were'} read with warnings"
        print(f"stretto: {what}; stretto import --report lists them", file=sys.stderr)


def _tell_alone(alone: Mapping[str, int], path: Path | None) -> None:
    for reason, traces in alone.items():
        what = f"{traces:,} trace{' has' if traces == 1 else 's have'} no baseline in {path}"
        print(f"stretto: {what}: {reason}", file=sys.stderr)
