"""Adding a record, by the pool's update protocol.

A record is added to one of the two files, the whole pool is checked, the counts are taken again,
and whoever adds it is told which of them changed: that is what a reviewer wants to know.
"""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path

from msgspec import Struct

from stretto.corpus.flaws import require_flawless
from stretto.corpus.statistics import Statistics, statistics
from stretto.corpus.tables import (
    EXCLUDED,
    EXCLUDED_FIELDS,
    PAPER_FIELDS,
    POOL,
    Pool,
    parse_table,
    read_pool,
)
from stretto.errors import StrettoError
from stretto.files import read_bytes, write_whole


class Change(Struct, frozen=True):
    """A count that a new record changed."""

    cell: str
    """Which count, as in `reward_type x credit_granularity: shared x agent`."""
    before: int
    after: int


def add(
    record: Mapping[str, str], papers: Path = POOL, excluded: Path = EXCLUDED
) -> tuple[Change, ...]:
    """Add a paper (or an excluded record, which has a `record_id`) to its file, and count again.

    Raises `StrettoError` for a record that has a flaw, or is there already: nothing is written.
    """
    kept = "record_id" not in record
    path, fields = (papers, PAPER_FIELDS) if kept else (excluded, EXCLUDED_FIELDS)
    pool = require_flawless(read_pool(papers, excluded))
    old = read_bytes(path)
    if old.split(b"\n", 1)[0].decode().strip().split(",") != list(fields):
        raise StrettoError(f"the columns are not {','.join(fields)}", f"{path}:1")
    line = StringIO()
    csv.writer(line, lineterminator="\n").writerow([record[field] for field in fields])
    separator = b"" if old.endswith(b"\n") else b"\n"
    new = b"".join((old, separator, line.getvalue().encode()))
    table = parse_table(new, path, fields)
    grown = Pool(table, pool.excluded) if kept else Pool(pool.papers, table)
    after = statistics(require_flawless(grown))
    write_whole(path, [new])
    return tuple(_changes(statistics(pool), after))


def _changes(before: Statistics, after: Statistics) -> Iterator[Change]:
    old, new = dict(_cells(before)), dict(_cells(after))
    for cell, count in new.items():
        if old.get(cell, 0) != count:
            yield Change(cell, old.get(cell, 0), count)


def _cells(found: Statistics) -> Iterator[tuple[str, int]]:
    for name in ("retained", "excluded", "audited"):
        yield name, getattr(found, name)
    for field, counts in (found.counts | found.screening).items():
        yield from ((f"{field}: {word}", count) for word, count in counts.items())
    for table in found.cross:
        for row, counts in table.counts.items():
            for column, count in counts.items():
                yield f"{table.rows} x {table.columns}: {row} x {column}", count
