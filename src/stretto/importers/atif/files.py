"""ATIF files, stage one: trajectories, and which one refers to which.

| version | a reference names its trajectory by |
|---|---|
| 1.0 to 1.6 | `session_id`, or the path of its file |
| 1.7 and later | `trajectory_id`, or the path of its file; `session_id` means the run |
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from msgspec import Struct

from stretto.files import read_bytes
from stretto.importers.kit.fields import list_at, text_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.reading import parse_document, parse_lines
from stretto.importers.kit.report import Likeness, Notice

_VERSION = re.compile(r"ATIF-v(\d+)\.(\d+)")
_REFERENCES = re.compile(rb'"subagent_trajectory_ref"\s*:\s*(\[[^\]]*)')
_NAMED = re.compile(rb'"(session_id|trajectory_id|trajectory_path)"\s*:\s*"([^"]*)"')
_CONTINUED = re.compile(rb'"continued_trajectory_ref"\s*:\s*"([^"]*)"')
_BY_SESSION = re.compile(rb'"ATIF-v1\.[0-6]"')
LATEST = (1, 8)
"""The newest version that is known here."""


class Trajectory(Struct, eq=False):
    """What one agent did, as one document has it."""

    key: str
    """Unique in the import."""
    file: Path
    line: int
    record: dict[str, Any]
    version: tuple[int, int]
    inside: str | None
    """Key of the trajectory that it is embedded in."""

    @property
    def steps(self) -> list[Any]:
        """Its steps."""
        return list_at(self.record, "steps")


def recognise(head: Head) -> Likeness:
    """Look for a schema version and steps, at the top or one level below."""
    near = 0.0
    for record in _candidates(head.document):
        version = text_at(record, "schema_version")
        if version is not None and _VERSION.match(version):
            if "agent" in record or "steps" in record:
                return Likeness(1.0)
            near = 0.4
        elif version is not None and version.startswith("ATIF"):
            return Likeness(0.4, f'its version is "{version}", and "ATIF-v1.7" is how one looks')
    steps = [step for each in _candidates(head.document) for step in list_at(each, "steps")[:1]]
    if any(text_at(step, "source") and "step_id" in step for step in steps):
        return Likeness(0.4, 'no "schema_version" that begins with ATIF')
    return Likeness(near, 'neither "agent" nor "steps"' if near else "")


def _candidates(document: Any) -> Iterator[dict[str, Any]]:
    """Places where a trajectory may stand: the document, its items, its fields."""
    below: Iterable[Any] = ()
    if isinstance(document, dict):
        yield document
        below = () if "schema_version" in document else document.values()
    elif isinstance(document, list):
        below = document
    yield from (each for each in below if isinstance(each, dict))


def sessions(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Join the files of one run: those that refer to each other."""
    ordered = sorted(files)
    by_name = by_basename(ordered)
    named: dict[str, list[Path]] = {}
    wanted: list[tuple[Path, bool, str]] = []
    for file in ordered:
        data = read_bytes(file)
        wanted += [(file, is_path, name) for is_path, name in set(_referred(data))]
        for name in _own(data):
            named.setdefault(name, []).append(file)
    links = [
        (file, other)
        for file, is_path, name in wanted
        for other in ([located(file, name, by_name)] if is_path else named.get(name, ()))
    ]
    return _joined(ordered, links)


def by_basename(files: Iterable[Path]) -> dict[str, list[Path]]:
    """Files by the last part of their path."""
    found: dict[str, list[Path]] = {}
    for file in dict.fromkeys(files):
        found.setdefault(file.name, []).append(file)
    return found


def located(home: Path, path: str, files: dict[str, list[Path]]) -> Path | None:
    """The file that a path in `home` means: exactly, else of that name in the folder, else alone.

    Trajectories are moved after they were written, so their paths seldom hold as they stand.
    """
    found = files.get(PurePosixPath(path).name, [])
    exact = normpath(home.parent / path)
    order = (
        [file for file in found if normpath(file) == exact],
        [file for file in found if file.parent == home.parent],
        found if len(found) == 1 else [],
    )
    return next((group[0] for group in order if group), None)


class _Names(Struct):
    """What a trajectory is called; fields of any type, the others are passed over."""

    session_id: Any = None
    trajectory_id: Any = None


def _own(data: bytes) -> set[str]:
    try:
        names = msgspec.json.decode(data, type=_Names)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set()
    return {name for name in (names.session_id, names.trajectory_id) if isinstance(name, str)}


def _referred(data: bytes) -> Iterator[tuple[bool, str]]:
    """What a file refers to, and whether that is a path."""
    by_session = _BY_SESSION.search(data) is not None
    for found in _REFERENCES.finditer(data):
        for field, name in _NAMED.findall(found[1]):
            if by_session or field != b"session_id":
                yield field == b"trajectory_path", name.decode(errors="replace")
    for name in _CONTINUED.findall(data):
        yield True, name.decode(errors="replace")


def _joined(
    files: Sequence[Path], links: Iterable[tuple[Path, Path | None]]
) -> list[Sequence[Path]]:
    leader = {file: file for file in files}

    def lead(file: Path) -> Path:
        while leader[file] != file:
            file = leader[file]
        return file

    for file, other in links:
        if other is not None:
            first, second = sorted((lead(file), lead(other)))
            leader[second] = first
    groups: dict[Path, list[Path]] = {}
    for file in files:
        groups.setdefault(lead(file), []).append(file)
    return list(groups.values())


def read_trajectories(file: Path) -> tuple[list[Trajectory], tuple[Notice, ...]]:
    """All trajectories of a file, embedded ones after the one that holds them.

    Raises `StrettoError` where nothing is whole.
    """
    data = read_bytes(file)
    if _is_lines(data):
        lines = parse_lines(data, str(file))
        documents: list[tuple[int, Any]] = [(line.number, line.value) for line in lines.records]
        warnings = lines.warnings
    else:
        value, warnings = parse_document(data, str(file))
        documents = [(1, value)]
    found: list[Trajectory] = []
    for line, document in documents:
        for record in _candidates(document):
            found += _with_embedded(record, file, line, len(found))
    newer = max((each.version for each in found), default=LATEST)
    if newer > LATEST:
        what = f"is ATIF {newer[0]}.{newer[1]}; versions to {LATEST[0]}.{LATEST[1]} are known"
        warnings = (*warnings, Notice(str(file), what))
    return found, warnings


def _is_lines(data: bytes) -> bool:
    first, _, rest = data.strip().partition(b"\n")
    return first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")


def _with_embedded(record: dict[str, Any], file: Path, line: int, count: int) -> list[Trajectory]:
    found: list[Trajectory] = []
    waiting: list[tuple[dict[str, Any], Trajectory | None]] = [(record, None)]
    for each, home in waiting:  # grows while it is read
        match = _VERSION.match(text_at(each, "schema_version") or "")
        if match is None and home is None:
            continue
        version = (int(match[1]), int(match[2])) if match else (1, 7)
        key = f"{file}:{count + len(found)}"
        found.append(Trajectory(key, file, line, each, version, home.key if home else None))
        inner = list_at(each, "subagent_trajectories")
        waiting += [(child, found[-1]) for child in inner if isinstance(child, dict)]
    return found


class Links:
    """Finds trajectories by reference."""

    def __init__(self, found: Sequence[Trajectory]) -> None:
        """`found` are all trajectories of the run."""
        self._by_id: dict[str, list[Trajectory]] = {}
        self._by_session: dict[str, Trajectory] = {}
        self._files = by_basename(each.file for each in found)
        self._by_file: dict[Path, Trajectory] = {}
        for each in found:
            self._by_id.setdefault(text_at(each.record, "trajectory_id") or "", []).append(each)
            self._by_session.setdefault(text_at(each.record, "session_id") or "", each)
            if each.inside is None:
                self._by_file.setdefault(each.file, each)

    def child(self, home: Trajectory, reference: Any) -> Trajectory | None:
        """The trajectory of a sub-agent that `home` refers to, if it is there."""
        found = self._embedded(home, text_at(reference, "trajectory_id"))
        found = found or self._in_file(home, text_at(reference, "trajectory_path"))
        session = text_at(reference, "session_id")
        if found is None and session is not None and home.version < (1, 7):
            found = self._by_session.get(session)
        return None if found is home else found

    def continued(self, home: Trajectory) -> Trajectory | None:
        """The trajectory in which another goes on."""
        return self._in_file(home, text_at(home.record, "continued_trajectory_ref"))

    def _in_file(self, home: Trajectory, path: str | None) -> Trajectory | None:
        file = located(home.file, path, self._files) if path is not None else None
        return self._by_file.get(file) if file is not None else None

    def _embedded(self, home: Trajectory, name: str | None) -> Trajectory | None:
        """By id: inside the one that refers, else beside it, else anywhere."""
        found = self._by_id.get(name or "", []) if name is not None else []
        order = (
            [each for each in found if each.inside == home.key],
            [each for each in found if each.inside is not None and each.inside == home.inside],
            [each for each in found if each is not home],
        )
        return next((group[0] for group in order if group), None)
