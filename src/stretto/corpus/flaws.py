"""What is wrong with the pool: values outside of the vocabulary, doubled records."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from stretto.corpus.identifiers import canonical, plain_title
from stretto.corpus.tables import Pool, Row, Table
from stretto.corpus.vocabulary import FORMS, SCREENING, TAGS
from stretto.errors import StrettoError, did_you_mean

UNIQUE: dict[str, Callable[[str], str]] = {
    "key": str,
    "record_id": str,
    "identifier": canonical,
    "title": plain_title,
}
"""Field that no two records share to what is compared of it."""


class Flaw(Struct, frozen=True):
    """One value that cannot stay."""

    file: str
    line: int
    field: str
    what: str
    hint: str = ""

    def error(self) -> StrettoError:
        """The flaw as an error that names file, line and field."""
        return StrettoError(self.what, f"{self.file}:{self.line}: {self.field}", self.hint)


def flaws(pool: Pool) -> Iterator[Flaw]:
    """All flaws of the pool, file by file and line by line."""
    first: dict[tuple[str, str], str] = {}
    for table in (pool.papers, pool.excluded):
        for row in table.rows:
            yield from _values(table, row)
            yield from _doubled(table, row, first)


def require_flawless(pool: Pool) -> Pool:
    """Return the pool.

    Raises `StrettoError` for the flaws of the first record that has any.
    """
    found = list(flaws(pool))
    if found:
        record = (found[0].file, found[0].line)
        raise _together([flaw for flaw in found if (flaw.file, flaw.line) == record])
    return pool


def _together(found: Sequence[Flaw]) -> StrettoError:
    """The flaws of one record."""
    if len(found) == 1:
        return found[0].error()
    said = (f"{each.field}: {StrettoError(each.what, hint=each.hint)}" for each in found)
    return StrettoError("; ".join(said), f"{found[0].file}:{found[0].line}")


def _values(table: Table, row: Row) -> Iterator[Flaw]:
    for field in table.fields:
        value = row.values[field]
        words = TAGS.get(field) or SCREENING.get(field)
        if words is not None:
            if value not in words:
                what, hint = f'no such value "{value}"', did_you_mean(value, words)
                yield Flaw(table.file, row.line, field, what, hint)
        elif not FORMS[field][0].fullmatch(value):
            yield Flaw(table.file, row.line, field, f'not in form: "{value}"', FORMS[field][1])


def _doubled(table: Table, row: Row, first: dict[tuple[str, str], str]) -> Iterator[Flaw]:
    for field, compared in UNIQUE.items():
        if field in table.fields:
            here = f"{table.file}:{row.line}"
            known = first.setdefault((field, compared(row.values[field])), here)
            if known != here:
                what = f'"{row.values[field]}" is taken'
                yield Flaw(table.file, row.line, field, what, f"by {known}")
