"""Instances of `gather`: a table, the documents that state its cells, and their full-text index.

An instance is drawn from its seed by counter-based keys, so it is the same on every machine and
under every version of Python. A *cell* is named by its entity and attribute, as in `tavok colour`.
First a minimal cover is planted: runs of cells cut into documents that state them rightly. The
other documents state runs that straddle the planted ones. A statement may be wrong only where the
planted document on its cell is the better source, so the best source on a cell is always right:
which copy to believe can be told from the text.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.tasks.names import name_at
from stretto.tasks.words import number_word
from stretto.team.noise import key_of, uniform

SOURCES = ("rumour", "letter", "survey", "register")
"""Kinds of documents, worst first."""
PLANTED_SOURCES = 2
"""How many of the best kinds a planted document may be."""
YEARS = 9
VOCABULARY: Mapping[str, tuple[str, ...]] = {
    "colour": ("red", "blue", "green", "black", "white", "brown", "grey", "pink"),
    "metal": ("iron", "copper", "silver", "gold", "tin", "nickel", "zinc", "steel"),
    "fruit": ("apple", "pear", "plum", "grape", "fig", "cherry", "peach", "orange"),
    "beast": ("horse", "goat", "sheep", "dog", "cat", "cow", "hen", "duck"),
    "trade": ("baker", "smith", "weaver", "potter", "mason", "tanner", "cook", "fisher"),
    "sky": ("rain", "snow", "wind", "fog", "hail", "sun", "storm", "frost"),
    "sound": ("flute", "drum", "harp", "horn", "bell", "lute", "pipe", "fiddle"),
    "wood": ("oak", "ash", "elm", "pine", "beech", "birch", "maple", "willow"),
}
"""Attribute to the values that it can have."""


class Document(Struct, frozen=True):
    """One text: where it comes from, and what it states."""

    name: str
    source: int
    """Index into `SOURCES`: the larger, the more reliable."""
    year: int
    """1 to `YEARS`; of two equal sources the newer is right."""
    statements: Mapping[str, str]
    """Cell to the value that this document gives it."""

    @property
    def title(self) -> str:
        """Kind and year, as in `register seven`."""
        return f"{SOURCES[self.source]} {number_word(self.year)}"

    @property
    def text(self) -> str:
        """The whole text."""
        lines = (f"{cell} {value}." for cell, value in self.statements.items())
        return f"{self.title}: {' '.join(lines)}"


class Instance(Struct, frozen=True):
    """One table and its documents."""

    truth: Mapping[str, str]
    """Cell to its right value, row by row."""
    documents: Mapping[str, Document]
    """Name to document, by name."""
    planted: tuple[str, ...]
    """Documents that together state every cell rightly; no fewer documents do."""


class Index:
    """A full-text index of documents, in memory; it is only read once it is built."""

    def __init__(self, documents: Iterable[Document]) -> None:
        """Raises `StrettoError` where Python's SQLite has no full-text search."""
        # A serialized SQLite lets any thread read it.
        same_thread = sqlite3.threadsafety < 3
        self._connection = sqlite3.connect(":memory:", check_same_thread=same_thread)
        try:
            self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(name UNINDEXED, body)")
        except sqlite3.OperationalError as error:
            hint = "use a Python whose sqlite3 has the FTS5 extension"
            raise StrettoError(f"gather needs full-text search: {error}", "sqlite3", hint) from None
        rows = ((document.name, document.text) for document in documents)
        with self._connection:
            self._connection.executemany("INSERT INTO texts VALUES (?, ?)", rows)
            # Uncommitted or unmerged, a search in thousands of texts would take five times longer.
            self._connection.execute("INSERT INTO texts(texts) VALUES ('optimize')")

    def search(self, query: str, most: int, skip: int = 0) -> list[str]:
        """Names of up to `most` documents that hold the words of `query` in a row, by BM25.

        Of two alike the first of the index comes first; the best `skip` are left out.
        """
        phrase = '"' + query.replace('"', " ") + '"'
        rows = self._connection.execute(
            "SELECT name FROM texts WHERE texts MATCH ? "
            "ORDER BY bm25(texts), rowid LIMIT ? OFFSET ?",
            (phrase, most, skip),
        )
        return [name for (name,) in rows]

    def __del__(self) -> None:
        self._connection.close()


def generate(
    *,
    entities: int,
    attributes: int,
    cells_per_document: int,
    redundancy: float,
    wrong: float,
    seed: int,
) -> Instance:
    """Draw the instance of these parameters; see `stretto.tasks.gather.Gather` for their meaning.

    Takes time linear in the number of cells and documents.
    """
    base = key_of(seed, "gather")
    attribute_names = tuple(VOCABULARY)[:attributes]
    rows = [name_at(base, index) for index in range(entities)]
    truth = {
        f"{row} {attribute}": _pick(seed, f"{row} {attribute}", VOCABULARY[attribute])
        for row in rows
        for attribute in attribute_names
    }
    count = document_count(len(truth), cells_per_document, redundancy)
    names = [name_at(base, entities + index) for index in range(count)]
    planted = _plant(seed, truth, names, cells_per_document)
    best = {cell: document for document in planted for cell in document.statements}
    cells = tuple(truth)
    surplus = [
        _straddle(seed, name, cells, cells_per_document, wrong, best)
        for name in names[len(planted) :]
    ]
    documents = sorted((*planted, *surplus), key=lambda document: document.name)
    return Instance(
        truth,
        {document.name: document for document in documents},
        tuple(document.name for document in planted),
    )


def document_count(cells: int, cells_per_document: int, redundancy: float) -> int:
    """Number of documents about so many cells: `redundancy` times the size of the planted cover."""
    return round(ceil(cells / cells_per_document) * redundancy)


@lru_cache(maxsize=64)
def standing(title: str) -> tuple[int, int]:
    """How good the source with this title is: the larger of two is right where they disagree."""
    source, year = title.split()
    return SOURCES.index(source), _YEAR_WORDS.index(year)


def _plant(
    seed: int, truth: Mapping[str, str], names: Sequence[str], size: int
) -> tuple[Document, ...]:
    """Cut the cells into runs of `size`, each stated rightly by a document of a good source."""
    cells = tuple(truth)
    documents: list[Document] = []
    for name, start in zip(names, range(0, len(cells), size), strict=False):
        source = len(SOURCES) - 1 - key_of(seed, f"{name} source") % PLANTED_SOURCES
        run = cells[start : start + size]
        statements = {cell: truth[cell] for cell in run}
        documents.append(Document(name, source, _year(seed, name), statements))
    return tuple(documents)


def _straddle(
    seed: int,
    name: str,
    cells: Sequence[str],
    size: int,
    wrong: float,
    best: Mapping[str, Document],
) -> Document:
    """A document about up to `size` cells in a row; worse sources than the best may be wrong."""
    source = key_of(seed, f"{name} source") % len(SOURCES)
    year = _year(seed, name)
    start = key_of(seed, f"{name} start") % len(cells)
    length = 1 + key_of(seed, f"{name} length") % size
    statements: dict[str, str] = {}
    for cell in cells[start : start + length]:
        planted = best[cell]
        worse = (source, year) < (planted.source, planted.year)
        errs = worse and uniform(key_of(seed, f"{name} {cell}")) < wrong
        statements[cell] = _other(seed, name, cell, planted) if errs else planted.statements[cell]
    return Document(name, source, year, statements)


def _other(seed: int, name: str, cell: str, planted: Document) -> str:
    """A wrong value for a cell."""
    values = VOCABULARY[cell.split()[1]]
    rest = [value for value in values if value != planted.statements[cell]]
    return _pick(seed, f"{name} {cell} error", rest)


def _pick(seed: int, what: str, values: Sequence[str]) -> str:
    return values[key_of(seed, what) % len(values)]


def _year(seed: int, name: str) -> int:
    return 1 + key_of(seed, f"{name} year") % YEARS


_YEAR_WORDS = tuple(number_word(year) for year in range(YEARS + 1))
