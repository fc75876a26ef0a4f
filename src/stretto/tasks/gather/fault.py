"""What the planted faults of `gather` spoil: one cell, and the best source on it."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stretto.tasks.gather.instance import VOCABULARY, Document, Instance, standing
from stretto.tasks.menus import shuffled


class Flaw(Struct, frozen=True):
    """One wrong value in the place of the right one."""

    cell: str
    document: str
    """Name of the best source on the cell."""
    value: str
    """What is stated or written in the place of the truth."""


def flaw(instance: Instance, seed: int) -> Flaw:
    """The flaw of an instance: the same for every fault and topology.

    Of a cell that has one best source, and with a value that no document states of it, so that
    whoever believes it has it from the fault; any cell and value where there is no such.
    """
    stated: dict[str, list[Document]] = {}
    for document in instance.documents.values():
        for cell in document.statements:
            stated.setdefault(cell, []).append(document)
    cells = shuffled(instance.truth, seed, "flaw")
    clear = (found for cell in cells for found in _clear(cell, stated[cell], seed))
    return next(clear, None) or _flaw(cells[0], stated[cells[0]], _wrong(instance, cells[0], seed))


def spoilt(document: Document, flaw: Flaw, cells: Collection[str]) -> Document:
    """What is told to a reader who has these cells to fill: the document, or its flawed copy."""
    if document.name != flaw.document or flaw.cell not in cells:
        return document
    return replace(document, statements={**document.statements, flaw.cell: flaw.value})


def _clear(cell: str, documents: Sequence[Document], seed: int) -> Iterator[Flaw]:
    """The flaw of a cell, unless its best source or the origin of its wrong value is in doubt."""
    ranks = sorted(standing(document.title) for document in documents)
    said = {document.statements[cell] for document in documents}
    free = [value for value in _values(cell, seed) if value not in said]
    if free and ranks[-1:] != ranks[-2:-1]:
        yield _flaw(cell, documents, free[0])


def _flaw(cell: str, documents: Sequence[Document], value: str) -> Flaw:
    best = max(documents, key=lambda document: standing(document.title))
    return Flaw(cell, best.name, value)


def _wrong(instance: Instance, cell: str, seed: int) -> str:
    return next(value for value in _values(cell, seed) if value != instance.truth[cell])


def _values(cell: str, seed: int) -> list[str]:
    return shuffled(VOCABULARY[cell.split()[1]], seed, f"flaw {cell}")
