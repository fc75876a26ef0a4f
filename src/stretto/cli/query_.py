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

ASKS = ("select", "with", "show", "explain")
"""How SQL begins that only asks; what changes tables would change none that is left."""

NOISE = r"(?:\s|\(|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
"""What may stand before its first word."""


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
    found = _run(arguments.sql, arguments.tables)
    columns, rows = found.columns, found.rows()
    if arguments.json:
        _print_objects(columns, rows)
        return 0
    numeric = [kind.is_numeric() for kind in found.dtypes]
    texts = [name for name, is_number in zip(columns, numeric, strict=True) if not is_number]
    table = plain_table(*columns, left=texts)
    for row in rows[:MOST_SHOWN]:
        table.add_row(*(Text(_cell(*cell)) for cell in zip(row, numeric, strict=True)))
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

    Raises `StrettoError` for a file that is missing or no table, and for SQL that does not run or
    does more than ask.
    """
    found = _run(sql, tables)
    return found.columns, found.rows()


def _run(sql: str, tables: Sequence[Path]) -> Any:
    polars = import_polars()
    _require_question(sql)
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
    return found


def _require_question(sql: str) -> None:
    first = re.match(NOISE + r"(\w*)", sql, re.DOTALL)
    word = first[1] if first else ""
    if word.lower() not in ASKS:
        what = f'"{word}" asks nothing of a table'
        raise StrettoError(what, "SQL", did_you_mean(word.lower(), ASKS))


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


def _cell(value: Any, is_number: bool) -> str:
    if value is None:
        return "unknown" if is_number else "-"
    return number(float(value)) if isinstance(value, NUMBER) else str(value)
