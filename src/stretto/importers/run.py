"""Do an import that is planned."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from stretto.errors import StrettoError
from stretto.importers.kit.report import FileReport, Imported, Notice
from stretto.importers.mistakes import given, mistakes_told
from stretto.importers.plan import Session, importer, plan


def import_paths(paths: Sequence[str | Path], format: str | None = None) -> Imported:
    """Read the traces of files and folders, in any mix of the formats that are known.

    A session that cannot be read is told in the report while others can.

    Raises `StrettoError` for a path that is missing, a file that holds nothing that is known, or
    where no session can be read.
    """
    return joined(import_each(paths, format))


def import_each(paths: Sequence[str | Path], format: str | None = None) -> Iterator[Imported]:
    """As `import_paths`, session by session: no more than one is in memory.

    What is not read at all comes last. Raises `StrettoError` as `import_paths`.
    """
    yield from read_each(paths, format, import_session)


def read_each(
    paths: Sequence[str | Path], format: str | None, read: Callable[[Session], Imported]
) -> Iterator[Imported]:
    """As `import_each`; `read` reads a session, `import_session` or `read_session`."""
    planned = plan(paths, format)
    named = {Path(path) for path in paths}
    failed: list[StrettoError] = []
    found = False
    for session in planned.sessions:
        try:
            part = read(session)
        except StrettoError as error:
            if named & set(session.files):
                raise
            failed.append(error)
            part = Imported((), tuple(_unread(session, error)))
        found = found or bool(part.traces)
        yield part
    if failed and not found:
        raise failed[0]
    yield Imported((), planned.skipped)


def joined(parts: Iterable[Imported]) -> Imported:
    """All of several imports."""
    whole = list(parts)
    reports = tuple(file for part in whole for file in part.report)
    return Imported(tuple(trace for part in whole for trace in part.traces), reports)


def import_session(session: Session) -> Imported:
    """Read the traces of one session.

    Raises `StrettoError` where nothing of it can be read, be it by a mistake of the importer.
    """
    with mistakes_told(session.format, str(session.files[0])):
        return read_session(session)


def read_session(session: Session) -> Imported:
    """As `import_session`, but a mistake of the importer is raised as it is."""
    imported = importer(session.format).import_files(session.files)
    return given(imported, Imported, "import_files")


def _unread(session: Session, error: StrettoError) -> list[FileReport]:
    notice = Notice(error.where or str(session.files[0]), f"not read: {error.what}")
    return [FileReport(file=str(session.files[0]), warnings=(notice,))]
