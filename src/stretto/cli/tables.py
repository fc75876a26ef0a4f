"""Tables for people: plain columns, records where those do not fit, reasons as notes below."""

from collections.abc import Iterable, Mapping

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDEST = 100_000
"""Columns that no table needs."""

WIDE, NARROW = (0, 2, 0, 0), (0, 1, 0, 0)
"""Space around a cell: to its right alone; less of it where a table is wide."""


def plain_table(*columns: str, left: Iterable[str] = ()) -> Table:
    """A table without lines; numbers stand to the right in all columns but the first and `left`."""
    table = Table(box=None, pad_edge=False, padding=WIDE)
    for index, column in enumerate(columns):
        side = "left" if index == 0 or column in left else "right"
        table.add_column(Text(column), justify=side, no_wrap=index > 0, overflow="fold")
    return table


def fits(out: Console, table: Table) -> bool:
    """Whether a table is not wider than the page, if need be with narrow spaces."""
    for padding in WIDE, NARROW:
        table.padding = padding
        if _width(out, table) <= out.width:
            return True
    return False


def _width(out: Console, table: Table) -> int:
    return Measurement.get(out, out.options.update(max_width=WIDEST), table).maximum


def print_table(out: Console, table: Table, least: int | None = None) -> None:
    """Print a table; where it is wider than the page, a record a row, one column a line.

    Args:
        out: Where it goes.
        table: One of `plain_table`.
        least: The width to which its first column may be folded before that.
    """
    if not table.columns:
        return
    widest = max((cell_len(str(cell)) for cell in table.columns[0].cells), default=0)
    foldable = 0 if least is None else max(widest - least, 0)
    if fits(out, table) or _width(out, table) - foldable <= out.width:
        out.print(table)
    else:
        _print_records(out, table)


def _print_records(out: Console, table: Table) -> None:
    cells = [list(column.cells) for column in table.columns]
    for row in range(table.row_count):
        record = Table.grid(padding=WIDE)
        for column, values in zip(table.columns, cells, strict=True):
            record.add_row(Text(str(column.header).replace("\n", " ")), values[row])
        out.print(Text(f"row {row + 1:,}", style="bold"))
        out.print(record)


def mark(notes: dict[str, int], reason: str) -> str:
    """What points to a reason below the table, as ` [2]`; one reason has one number."""
    return f" [{notes.setdefault(reason, len(notes) + 1)}]" if reason else ""


def print_notes(out: Console, notes: Mapping[str, int]) -> None:
    """Print every reason that was marked, once."""
    for reason, place in notes.items():
        out.print(Text(f"[{place}] {reason}"))
