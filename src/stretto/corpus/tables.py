"""The pool and the exclusion log as tables of text, each row with its line."""

import csv
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from msgspec import Struct

from stretto.corpus.vocabulary import FORMS, TAGS
from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes

POOL = Path(__file__).with_name("papers.csv")
EXCLUDED = Path(__file__).with_name("excluded.csv")

PAPER_FIELDS = ("key", "title", "first_author", "year", "identifier", *TAGS)
EXCLUDED_FIELDS = (
    "record_id",
    "title",
    "source",
    "query_family",
    "identifier",
    "date_screened",
    "stage",
    "reason",
)


class Row(Struct, frozen=True):
    """One record of a table."""

    line: int
    """The line of the file on which it ends, from 1."""
    values: dict[str, str]


class Table(Struct, frozen=True):
    """A file of records."""

    file: str
    fields: tuple[str, ...]
    rows: tuple[Row, ...]


class Pool(Struct, frozen=True):
    """What was kept, and what was looked at and left out."""

    papers: Table
    excluded: Table


def read_pool(papers: Path = POOL, excluded: Path = EXCLUDED) -> Pool:
    """Read the pool, ours or one in the survey's own columns.

    Raises `StrettoError` for a file that is no such table; `flaws` looks at the values.
    """
    return Pool(_read(papers, PAPER_FIELDS), _read(excluded, EXCLUDED_FIELDS))


def _read(path: Path, fields: Sequence[str]) -> Table:
    return parse_table(read_bytes(path), path, fields)


def parse_table(data: bytes, path: Path, fields: Sequence[str]) -> Table:
    """The table of a file that holds `data`; `path` stands for it in errors.

    Raises `StrettoError` for what is no such table.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise StrettoError(f"no UTF-8 at byte {error.start}", str(path)) from None
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(reader)
        rows = [(reader.line_num, values) for values in reader if values]
    except (csv.Error, StopIteration) as error:
        raise StrettoError(f"no CSV: {error}", f"{path}:{reader.line_num}") from None
    for line, values in rows:
        if len(values) != len(header):
            what = f"{len(values)} values in {len(header)} columns"
            raise StrettoError(what, f"{path}:{line}", "quote a value that holds a comma")
    found = [Row(line, _ours(dict(zip(header, values, strict=True)))) for line, values in rows]
    known = tuple(found[0].values) if found else tuple(header)
    _require(known, fields, path)
    return Table(str(path), tuple(name for name in fields if name in known), tuple(found))


def _ours(values: Mapping[str, str]) -> dict[str, str]:
    """A record in our columns, also where it came in the survey's."""
    ours = dict(values)
    ours.setdefault("title", values.get("screening_label", ""))
    arxiv, url = values.get("arxiv_id", ""), re.split(r"\s*;\s*", values.get("url", ""))[0]
    given = values.get("identifier") or (f"arXiv:{arxiv}" if arxiv else url)
    ours["identifier"] = given if FORMS["identifier"][0].fullmatch(given) else url or given
    return ours


def _require(header: Sequence[str], fields: Sequence[str], path: Path) -> None:
    for name in fields:
        if name not in header and name != "reason":  # the survey gives its reasons in prose
            hint = did_you_mean(name, header)
            raise StrettoError(f"there is no column {name}", f"{path}:1", hint)
