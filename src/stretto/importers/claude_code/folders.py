"""Claude Code transcripts: parts that stand in the folder of one session and name another."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from stretto.files import read_bytes
from stretto.importers.claude_code.threads import Filed
from stretto.importers.claude_code.workflows import run_of
from stretto.importers.kit.report import Notice


def folder_of(file: Path) -> str | None:
    """The session in whose folder (`<session>/subagents/`) a part of it stands."""
    return next((each.parent.name for each in file.parents if each.name == "subagents"), None)


def settle(files: Sequence[Filed]) -> list[Filed]:
    """Give parts to the session in whose folder they stand, where that is here.

    The session that their records name has them only if it alone tells of them.
    """
    mains = {file.session: file for file in files if file.owner is None and file.session}
    return [_settled(file, mains) for file in files]


def _settled(file: Filed, mains: Mapping[str, Filed]) -> Filed:
    path = Path(file.transcript.file)
    home, named = mains.get(folder_of(path) or ""), mains.get(file.session)
    if file.owner is None or home is None or home is named:
        return file
    if not file.session:
        return structs.replace(file, session=home.session)
    name = run_of(str(path)) or file.owner
    if named is not None and _tells_of(named, name) and not _tells_of(home, name):
        return file
    what = f"its records name session {file.session}: it stands in the folder of {home.session}"
    notice = Notice(str(file.transcript.entries[0].source), f"{what}, and is read as part of that")
    known = structs.replace(file.transcript, notices=(*file.transcript.notices, notice))
    return structs.replace(file, session=home.session, transcript=known)


def _tells_of(file: Filed, name: str) -> bool:
    return name.encode() in read_bytes(Path(file.transcript.file))
