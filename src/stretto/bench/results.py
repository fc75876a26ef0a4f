"""Results of an exam: one row an episode, appended as soon as it is known."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct

from stretto.bench.suite import CLEAN, Cell, Suite, require_cell, to_json
from stretto.errors import StrettoError
from stretto.files import read_bytes, write_whole

ROWS, RUN = "results.jsonl", "run.json"
_APPENDING = Lock()


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One episode."""

    family: str
    band: str
    topology: str
    condition: str = CLEAN
    policy: str
    seed: int
    attempt: int = 0
    values: dict[str, float | None] = {}
    """Metric to value; `None` where it is not known. Empty for an error."""
    answer: str | None = None
    """Digest of what was answered."""
    ended: str = ""
    """Why the episode ended; `limit` and `invalid` are forfeits, which score 0."""
    error: str | None = None
    """Why there is no episode: not scored."""

    @property
    def cell(self) -> Cell:
        """Where it belongs."""
        return Cell(self.family, self.band, self.topology, self.condition)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What no two rows share."""
        return self.cell.name, self.policy, self.seed, self.attempt


class _Run(Struct):
    """What `run.json` must say; it says more."""

    versions: dict[str, Any]


_DECODER = msgspec.json.Decoder(Row)


def open_folder(folder: Path, suite: Suite) -> list[Row]:
    """Begin a folder of results, or go on with one; the rows that it has already.

    Raises `StrettoError` for a folder whose rows were made by other versions, and for one that
    cannot be made.
    """
    make_folder(folder)
    said = to_json(suite)
    if (folder / RUN).exists():
        _require_versions(folder, said["versions"])
    rows, whole = _read(folder / ROWS)
    write_whole(folder / RUN, [msgspec.json.format(msgspec.json.encode(said)) + b"\n"])
    with _reached(folder / ROWS), (folder / ROWS).open("ab") as file:
        file.truncate(whole)  # a line that was cut when the run died
    return [row for row in rows if row.error is None]


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it.

    Raises `StrettoError` where that cannot be.
    """
    with _reached(folder):
        folder.mkdir(parents=True, exist_ok=True)


def append(folder: Path, rows: Iterable[Row]) -> None:
    """Add rows to the results; threads may do so at once."""
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    with _APPENDING, _reached(folder / ROWS), (folder / ROWS).open("ab") as file:
        file.write(data)


def read_rows(folder: Path) -> list[Row]:
    """All rows of a folder, partial or not; of rows with one key the last counts.

    Raises `StrettoError` where there are none.
    """
    if not (folder / ROWS).exists():
        raise StrettoError(f"holds no {ROWS}", str(folder), "stretto bench run writes one")
    rows, _ = _read(folder / ROWS)
    if not rows:
        raise StrettoError("no episode is finished yet", str(folder))
    return latest(rows)


def latest(rows: Sequence[Row]) -> list[Row]:
    """The last row of every key, in the order in which the keys came first."""
    return list({row.key: row for row in rows}.values())


def _require_versions(folder: Path, own: dict[str, Any]) -> None:
    try:
        before = msgspec.json.decode(read_bytes(folder / RUN), type=_Run).versions
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "take a new folder: which versions made these results is not known"
        raise StrettoError(f"not what a run writes: {error}", str(folder / RUN), hint) from None
    changed = [name for name in own if before.get(name) != own[name]]
    if changed:
        what = f"the results here were made with another {', '.join(changed)}"
        raise StrettoError(what, str(folder), "take a new folder; numbers do not mix")


@contextmanager
def _reached(path: Path) -> Generator[None]:
    """Tell in one line what the file system does not allow."""
    try:
        yield
    except FileExistsError:
        raise StrettoError("is a file, not a folder", str(path), "results need a folder") from None
    except OSError as error:
        what = f"cannot be used for results: {error.strerror}"
        raise StrettoError(what, str(path), "name another folder") from None


def _read(path: Path) -> tuple[list[Row], int]:
    """The whole rows of a file, and how many bytes they take; none where there is no file."""
    with _reached(path):
        data = path.read_bytes() if path.exists() else b""
    whole = data.rfind(b"\n") + 1
    return [
        _row(line, f"{path}:{number}")
        for number, line in enumerate(data[:whole].splitlines(), start=1)
    ], whole


def _row(line: bytes, where: str) -> Row:
    try:
        row = _DECODER.decode(line)
        _require_cell(row.cell)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StrettoError(f"not a row of results: {error}", where) from None
    except StrettoError as error:
        raise StrettoError(error.what, where, error.hint) from None
    return row


_require_cell = lru_cache(maxsize=4096)(require_cell)
