"""Traces from the logs of other programs.

An importer is a module with two functions:

- `recognise(head: bytes) -> Likeness`: how much the beginning of a file looks like the format;
- `import_files(paths: Sequence[Path]) -> Imported`: the traces of files and folders.

It is named in `IMPORTERS`, and loaded when it is needed.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from stretto.errors import StrettoError, did_you_mean
from stretto.importers.report import FileReport, Imported, Likeness, Notice

__all__ = [
    "IMPORTERS",
    "FileReport",
    "Imported",
    "Importer",
    "Likeness",
    "Notice",
    "detect",
    "import_paths",
]

IMPORTERS = {
    "claude-code": "stretto.importers.claude_code.importer",
    "survey": "stretto.importers.survey_files",
}
"""Format to the module that reads it."""

HEAD = 1 << 18
"""Bytes of a file that are looked at to tell its format; more where its first line is longer."""

MATCH = 0.5


class Importer(Protocol):
    """What a module in `IMPORTERS` offers."""

    def recognise(self, head: bytes) -> Likeness:
        """How much the beginning of a file looks like the format."""
        ...

    def import_files(self, paths: Sequence[Path]) -> Imported:
        """The traces of files and folders."""
        ...


def import_paths(paths: Sequence[str | Path], format: str | None = None) -> Imported:
    """Read the traces of files and folders, in any mix of the formats that are known.

    Raises `StrettoError` for a path that is missing or holds nothing of the kind.
    """
    if not paths:
        raise StrettoError("nothing to import", hint="name a transcript or a folder of them")
    groups: dict[str, list[Path]] = {}
    for path in map(Path, paths):
        groups.setdefault(format or detect(path), []).append(path)
    parts = [_importer(name).import_files(group) for name, group in groups.items()]
    return Imported(
        tuple(trace for part in parts for trace in part.traces),
        tuple(file for part in parts for file in part.report),
    )


def detect(path: str | Path) -> str:
    """Tell the format of a file, or of the first file of a folder that has one, by its content.

    Raises `StrettoError` that says what was looked for and what came closest.
    """
    path = Path(path)
    closest, name = Likeness(0.0), ""
    for file in _files(path):
        head = _head(file)
        for candidate in IMPORTERS:
            likeness = _importer(candidate).recognise(head)
            if likeness.score >= MATCH:
                return candidate
            if likeness.score > closest.score or not name:
                closest, name = likeness, candidate
    near = f"closest is {name}, but" if closest.score else f"nothing comes close: as {name},"
    hint = f"{near} {closest.why}"
    raise StrettoError(f"no known format; looked for {', '.join(IMPORTERS)}", str(path), hint)


def _importer(name: str) -> Importer:
    if name not in IMPORTERS:
        raise StrettoError(f'no format "{name}"', hint=did_you_mean(name, IMPORTERS))
    return cast(Importer, import_module(IMPORTERS[name]))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    files = sorted(path.rglob("*.json")) + sorted(path.rglob("*.jsonl"))
    files = [file for file in files if file.is_file() and file.stat().st_size]
    if not files:
        raise StrettoError("a folder without .json or .jsonl files", str(path), "check the path")
    yield from files


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            head = head if b"\n" in head else head + file.readline()
            head = head.removeprefix(b"\xef\xbb\xbf")
    except FileNotFoundError:
        raise StrettoError("no such file", str(path), "check the path") from None
    except OSError as error:
        raise StrettoError(f"cannot be read: {error.strerror}", str(path)) from None
    if not head.strip():
        raise StrettoError("the file is empty", str(path))
    return head
