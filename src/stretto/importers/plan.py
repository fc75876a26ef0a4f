"""Which files are read as which format, and which belong together."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from msgspec import Struct

from stretto.errors import StrettoError, did_you_mean
from stretto.importers.kit.heads import Head, read_head
from stretto.importers.kit.report import FileReport, Imported, Likeness, Notice
from stretto.importers.mistakes import given, mistakes_told, raised

IMPORTERS = {
    "adk": "stretto.importers.adk",
    "agentdojo": "stretto.importers.agentdojo",
    "agentrx": "stretto.importers.agentrx",
    "atif": "stretto.importers.atif.importer",
    "autogen": "stretto.importers.autogen.importer",
    "chatdev": "stretto.importers.chatdev.importer",
    "claude-code": "stretto.importers.claude_code.importer",
    "codex": "stretto.importers.codex.importer",
    "copilot-cli": "stretto.importers.copilot_cli.importer",
    "gemini-cli": "stretto.importers.gemini_cli.importer",
    "inspect": "stretto.importers.inspect.importer",
    "langsmith": "stretto.importers.langsmith",
    "mast": "stretto.importers.mast.importer",
    "openai-agents": "stretto.importers.openai_agents",
    "opencode": "stretto.importers.opencode.importer",
    "otlp": "stretto.importers.otlp",
    "phoenix": "stretto.importers.phoenix",
    "stretto": "stretto.importers.own",
    "survey": "stretto.importers.survey.importer",
    "swe-agent": "stretto.importers.swe_agent.importer",
    "tau-bench": "stretto.importers.tau_bench",
    "verifiers": "stretto.importers.verifiers.importer",
    "who-and-when": "stretto.importers.who_and_when",
}
"""Format to the module that reads it."""

SUFFIXES = (".json", ".jsonl", ".ndjson", ".eval", ".traj", ".log", ".txt")
"""Files of a folder that are looked at, in capitals too; one that is named is in any case."""

TABLES = ("annotations.csv",)
"""Files of a folder with another ending that are looked at (the labels of MAST)."""

MOST_ENDINGS = 6
"""Endings of files that are not looked at that a report names."""

FUNCTIONS = ("recognise", "sessions", "import_files")
"""What an importer has."""

MATCH = 0.5
"""The likeness from which a file is taken for a format."""


class Importer(Protocol):
    """What a module in `IMPORTERS` offers."""

    def recognise(self, head: Head) -> Likeness:
        """How much the beginning of a file looks like the format."""
        ...

    def sessions(self, files: Sequence[Path]) -> Iterable[Sequence[Path]]:
        """Group files into what is imported together; files that belong to them may be added."""
        ...

    def import_files(self, files: Sequence[Path]) -> Imported:
        """The traces of one group."""
        ...


class Session(Struct, frozen=True):
    """Files that are imported together, and only together."""

    format: str
    files: tuple[Path, ...]


class Plan(Struct, frozen=True):
    """What an import will read, in order."""

    sessions: tuple[Session, ...]
    skipped: tuple[FileReport, ...]
    """Files of folders that no importer knows, with the reason."""


def plan(paths: Sequence[str | Path], format: str | None = None) -> Plan:
    """Find what is to be imported from files and folders, in any mix of formats.

    Args:
        paths: Files are read or refused; of a folder, all files that are known are read.
        format: One of `IMPORTERS` (or a module's dotted name); detected by content where absent.

    Raises `StrettoError` for a path that is missing or holds nothing that is known.
    """
    if not paths:
        raise StrettoError("nothing to import", hint="name a transcript or a folder of them")
    groups: dict[str, list[Path]] = {}
    skipped: dict[Path, StrettoError] = {}
    for path in map(Path, paths):
        found, unknown = _in_folder(path, format) if path.is_dir() else ([_named(path, format)], {})
        for name, file in found:
            groups.setdefault(name, []).append(file)
        skipped |= unknown
    sessions = [
        session
        for name, files in groups.items()
        for session in _sessions(name, list(dict.fromkeys(files)))
    ]
    read = {file for session in sessions for file in session.files}
    reports = [_skipped(file, why) for file, why in skipped.items() if file not in read]
    return Plan(tuple(sessions), tuple(reports))


def importer(name: str) -> Importer:
    """The importer of a format.

    Raises `StrettoError` for a name that is not known, and for a module that is no importer or
    cannot be imported, whatever it raises.
    """
    if name not in IMPORTERS and "." not in name:
        raise StrettoError(f'no format "{name}"', hint=did_you_mean(name, IMPORTERS))
    try:
        module = import_module(IMPORTERS.get(name, name))
    except Exception as error:
        hint = "is it installed?" if isinstance(error, ModuleNotFoundError) else ""
        raise StrettoError(f"cannot be imported: {raised(error)}", name, hint) from error
    for function in FUNCTIONS:
        if not callable(getattr(module, function, None)):
            hint = f"an importer has {', '.join(FUNCTIONS)}"
            raise StrettoError(f'is no importer: it has no "{function}"', name, hint)
    return cast(Importer, module)


def detect(path: str | Path) -> str:
    """Tell the format of a file, or of the first file of a folder that has one, by its content.

    Raises `StrettoError` that says what was looked for and what came closest.
    """
    path = Path(path)
    if not path.is_dir():
        return _detected(path)
    found, _ = _in_folder(path, None)
    return found[0][0]


def one_by_one(files: Sequence[Path]) -> Iterable[Sequence[Path]]:
    """The `sessions` of a format in which every file stands for itself."""
    return [[file] for file in files]


def _sessions(name: str, files: Sequence[Path]) -> list[Session]:
    with mistakes_told(name, str(files[0])):
        groups = [
            tuple(given(file, Path, "sessions") for file in group)
            for group in importer(name).sessions(files)
        ]
        if not all(groups):
            raise ValueError("sessions gives a group without files")
        return [Session(name, group) for group in groups]


def _likeness(name: str, head: Head, path: Path) -> Likeness:
    with mistakes_told(name, str(path)):
        return given(importer(name).recognise(head), Likeness, "recognise")


def _named(path: Path, format: str | None) -> tuple[str, Path]:
    _require_text(path)
    if format is None:
        return _detected(path), path
    head = read_head(path)
    likeness = _likeness(format, head, path)
    if not likeness.score:  # a torn file may be less like its format than a match
        best, found = _likeliest(head, path)
        looks = f"it looks like {best}" if found.score >= MATCH else head.obstacle or likeness.why
        raise StrettoError(f"is not {format}", str(path), looks)
    return format, path


def _require_text(path: Path) -> None:
    """Names of files stand in traces and reports, which are text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise StrettoError("its name is not UTF-8", _shown(path), "rename it") from None


def _shown(name: str | Path) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


def _detected(path: Path) -> str:
    name, near = _nearest(path)
    if name is None:
        what = f"no known format; looked for {', '.join(IMPORTERS)}"
        raise StrettoError(what, str(path), near)
    return name


def _nearest(path: Path) -> tuple[str | None, str]:
    """The format of a file, else what came closest.

    Raises `StrettoError` for a file that is packed, or no UTF-8.
    """
    head = read_head(path)
    best, found = _likeliest(head, path)
    if found.score >= MATCH:
        return best, ""
    if head.obstacle and not found.score:
        raise StrettoError(f"is {head.obstacle}", str(path))
    if not found.score:
        return None, "nothing comes close"
    return None, f"closest is {best}: {found.why}" if found.why else f"closest is {best}"


def _likeliest(head: Head, path: Path) -> tuple[str, Likeness]:
    found = {name: _likeness(name, head, path) for name in IMPORTERS}
    best = max(found, key=lambda name: found[name].score)
    return best, found[best]


def _in_folder(
    folder: Path, format: str | None
) -> tuple[list[tuple[str, Path]], dict[Path, StrettoError]]:
    """The files of a folder that are known, and why the others are not."""
    files, unknown = _listed(folder)
    found: list[tuple[str, Path]] = []
    refused: dict[Path, StrettoError] = {}
    for file in files:
        try:
            found.append((_format_of(file, format), file))
        except StrettoError as error:
            refused[file] = error
    if not found:
        close = (file for file, why in refused.items() if why.hint.startswith("closest"))
        nearest = next(close, files[0])
        _named(nearest, format)  # raises, with what was looked for or what the file looks like
        raise refused[nearest]
    return found, unknown | refused


def _listed(folder: Path) -> tuple[list[Path], dict[Path, StrettoError]]:
    """The files of a folder that are looked at, and what is not."""
    files: list[Path] = []
    unknown: dict[Path, StrettoError] = {}
    endings: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            if path.is_symlink():
                unknown[path] = _linked(path)
        elif path.suffix.casefold() not in SUFFIXES and path.name not in TABLES:
            endings[_shown(path.suffix.casefold()) or "none"] += 1
        elif path.is_symlink() and not path.exists():
            unknown[path] = StrettoError("a link to nothing", _shown(path))
        else:
            files.append(path)
    others = _other_endings(endings)
    if not files:
        looked = ", ".join(SUFFIXES)
        links = (f"{_shown(path.name)} is {why.what}" for path, why in unknown.items())
        hint = "; ".join(filter(None, (next(links, ""), others))) or "check the path"
        raise StrettoError(f"a folder without any of {looked}", str(folder), hint)
    if others:
        unknown[folder] = StrettoError(others, str(folder))
    return files, unknown


def _other_endings(endings: Counter[str]) -> str:
    """How many files are not looked at, as in `3 files with other endings (.gz 2, .zip 1)`."""
    if not endings:
        return ""
    ranked = sorted(endings.items(), key=lambda item: (item[0] == "none", -item[1], item[0]))
    more = len(ranked) - MOST_ENDINGS
    named = ", ".join(f"{ending} {count:,}" for ending, count in ranked[:MOST_ENDINGS])
    total = endings.total()
    rest = f" and {more} more" if more > 0 else ""
    return f"{total:,} file{'s' if total > 1 else ''} with other endings ({named}{rest})"


def _linked(folder: Path) -> StrettoError:
    """A link may lead anywhere, also to where it stands."""
    return StrettoError("a linked folder", _shown(folder), "name it as a path of its own")


def _format_of(file: Path, format: str | None) -> str:
    _require_text(file)
    if format is None:
        name, near = _nearest(file)
        if name is None:
            raise StrettoError("no known format", str(file), near)
        return name
    head = read_head(file)
    likeness = _likeness(format, head, file)
    if likeness.score < MATCH:
        raise StrettoError(f"is not {format}", str(file), head.obstacle or likeness.why)
    return format


def _skipped(file: Path, why: StrettoError) -> FileReport:
    what = f"{why.what} ({why.hint})" if why.hint else why.what
    where = why.where or str(file)
    return FileReport(file=where, warnings=(Notice(where, f"not read: {what}"),))
