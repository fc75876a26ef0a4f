"""`stretto query "SELECT …" TABLE…`."""

import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tyro
from msgspec import Struct
from rich.text import Text

from stretto.cli.arguments import console, number, parse
from stretto.cli.tables import plain_table, print_table
from stretto.errors import StrettoError, did_you_mean
from stretto.metrics.table import import_polars, table_name

MOST_SHOWN = 100
"""Rows that are shown to a person; `--json` has all."""

NUMBER = (int, float, Decimal)
"""What SQL gives for a number."""


class Query(Struct, frozen=True, kw_only=True):
    """Run SQL on tables of measures.

    Each table has the name of its file: `measures.parquet` is `measures`; what SQL takes for
    something else begins with `t_` (`t_2026`). The rows are traces, the columns the measures;
    `makespan_how` and `makespan_reason` say how `makespan` is known.
    """

    sql: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SQL")]
    """As in `SELECT system, avg(makespan) FROM measures GROUP BY system`."""
    tables: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")] = (
        Path("measures.parquet"),
    )
    """Parquet files, as `stretto measure FOLDER -o measures.parquet` writes them."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object a row."""


def main(argv: Sequence[str]) -> int:
    """Run the query and print its rows."""
    arguments = parse(Query, "query", argv)
    columns, rows = run_sql(arguments.sql, arguments.tables)
    if arguments.json:
        _print_objects(columns, rows)
        return 0
    texts = [name for place, name in enumerate(columns) if not _is_number(place, rows)]
    table = plain_table(*columns, left=texts)
    for row in rows[:MOST_SHOWN]:
        table.add_row(*(Text(_cell(value)) for value in row))
    print_table(console(), table)
    if len(rows) > MOST_SHOWN:
        console().print(f"showing {MOST_SHOWN} of {len(rows):,} rows; --json prints all")
    return 0


def _print_objects(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")
    for row in rows:
        print(encoder.encode(dict(zip(columns, row, strict=True))).decode())
    lost = sum(isinstance(v, float) and not isfinite(v) for row in rows for v in row)
    if lost:
        what = "infinite or not a number: JSON has null for it"
        print(f"stretto: {lost:,} value{' is' if lost == 1 else 's are'} {what}", file=sys.stderr)


def run_sql(sql: str, tables: Sequence[Path]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a query over Parquet files.

    Raises `StrettoError` for a file that is missing or no table, and for SQL that does not run.
    """
    polars = import_polars()
    frames: dict[str, Any] = {}
    for path in tables:
        name = table_name(path)
        if name in frames:
            hint = f"both would be {name}; give one of them another name"
            raise StrettoError("a second table of one name", str(path), hint)
        frames[name] = _read(path)
    context = polars.SQLContext(frames)
    try:
        found = context.execute(sql, eager=True)
    except polars.exceptions.PolarsError as error:
        raise StrettoError(_first_line(error), "SQL", _hint(str(error), frames)) from None
    return found.columns, found.rows()


def _read(path: Path) -> Any:
    polars = import_polars()
    try:
        return polars.read_parquet(path)
    except FileNotFoundError:
        hint = "write one with: stretto measure FOLDER -o measures.parquet"
        raise StrettoError("no such table", str(path), hint) from None
    except (polars.exceptions.PolarsError, OSError) as error:
        raise StrettoError(f"is no Parquet table: {_first_line(error)}", str(path)) from None


def _hint(said: str, frames: Mapping[str, Any]) -> str:
    """The nearest column or table for one that is not there, else the names of the tables."""
    if column := re.search(r"""(?:find column "|no column named ')([^"']+)""", said):
        return did_you_mean(
            column[1], {name for frame in frames.values() for name in frame.columns}
        )
    near = ""
    if table := re.search(r"""relation '([^']+)'|table or struct column named '([^']+)'""", said):
        near = did_you_mean(table[1] or table[2], frames)
    return near if near.startswith("did") else f"tables: {', '.join(frames)}"


def _first_line(error: Exception) -> str:
    said = str(error).strip() or type(error).__name__
    return said.splitlines()[0].partition("; valid columns")[0]


def _is_number(place: int, rows: Sequence[tuple[Any, ...]]) -> bool:
    return any(isinstance(row[place], NUMBER) for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return "unknown"
    return number(float(value)) if isinstance(value, NUMBER) else str(value)
