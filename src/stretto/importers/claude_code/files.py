"""Claude Code transcripts on disk: the files of one group, read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.claude_code.folders import settle
from stretto.importers.claude_code.groups import ID
from stretto.importers.claude_code.records import read_records
from stretto.importers.claude_code.threads import Filed, Meta, owner_of, session_of
from stretto.importers.claude_code.workflows import Journal, Snapshot, read_journal, read_snapshot
from stretto.importers.kit.arrays import first_records, unrolled
from stretto.importers.kit.heads import SIZE, Head
from stretto.importers.kit.report import FileReport, Likeness, Notice

SNAPSHOTS = ("file-history-snapshot", "summary")
"""Records that name no session."""
STREAMED = ("system", "result", "stream_event")
"""Records of the stream of `--output-format stream-json` that hold no message."""


class Found(Struct, frozen=True):
    """What stands in the files of a group."""

    transcripts: tuple[Filed, ...]
    journals: tuple[Journal, ...]
    snapshots: tuple[Snapshot, ...]
    reports: tuple[FileReport, ...]
    """Of the files that are no transcripts, or cannot be read."""


def recognise(head: Head) -> Likeness:
    """Which part of the first whole records are those of a transcript."""
    records = first_records(head)
    wrapped = isinstance(head.document, dict) and any(map(_is_transcript, head.nested))
    if wrapped and not any(map(_is_transcript, records)):
        return Likeness(0.3, "its records stand in a field of a document: one a line is read")
    if not records:
        return Likeness(0.0, "it holds no whole record")
    if any(record.get("type") == "tool_call" and "call_id" in record for record in records):
        return Likeness(0.4, "its tool calls are records of their own, as in the stream of Cursor")
    fits = sum(_is_transcript(record) for record in records)
    return Likeness(fits / len(records), f"{fits} of its first {len(records)} records fit")


def _is_transcript(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    speaks = kind in ("user", "assistant") and isinstance(record.get("message"), dict)
    named = isinstance(kind, str) and isinstance(record.get("sessionId"), str)
    streamed = kind in STREAMED and isinstance(record.get("session_id"), str) and "uuid" in record
    return speaks or named or streamed or kind in SNAPSHOTS


def read_group(files: Sequence[Path]) -> Found:
    """Read the files of a group; one that cannot be read is reported.

    Raises `StrettoError` where no transcript can be read.
    """
    transcripts: list[Filed] = []
    journals: list[Journal] = []
    snapshots: list[Snapshot] = []
    reports: list[FileReport] = []
    failed: list[StrettoError] = []
    for file in files:
        try:
            if file.name == "journal.jsonl":
                journals.append(read_journal(file))
            elif _is_sidecar(file):
                reports += _sidecar(file, snapshots)
            else:
                transcripts.append(_transcript(file))
        except StrettoError as error:
            failed.append(error)
            reports.append(_unread(file, error))
    if not transcripts:
        raise failed[0] if failed else StrettoError("holds no transcript", str(files[0]))
    reports += [each.report for each in (*journals, *snapshots)]
    settled = settle(transcripts)
    return Found(tuple(_named(settled)), tuple(journals), tuple(snapshots), tuple(reports))


def _is_sidecar(file: Path) -> bool:
    is_snapshot = file.suffix == ".json" and file.parent.name == "workflows"
    return is_snapshot or file.name.endswith(".meta.json")


def _sidecar(file: Path, snapshots: list[Snapshot]) -> list[FileReport]:
    if not file.name.endswith(".meta.json"):
        snapshots.append(read_snapshot(file))
        return []
    if _meta(file) is None:
        raise StrettoError("is no description of an agent", str(file))
    return [FileReport(file=str(file), records=1)]


def _unread(file: Path, error: StrettoError) -> FileReport:
    return FileReport(file=str(file), warnings=(Notice(str(file), f"not read: {error.what}"),))


def _transcript(path: Path) -> Filed:
    data = unrolled(read_bytes(path))
    likeness = recognise(Head(data[:SIZE] if b"\n" in data[:SIZE] else data))
    if likeness.score < 0.5:
        raise StrettoError("is no Claude Code transcript", str(path), likeness.why)
    transcript = read_records(data, str(path))
    meta = _meta(path.with_suffix(".meta.json")) or Meta()
    return Filed(session_of(transcript), owner_of(transcript), transcript, meta)


def _named(files: Sequence[Filed]) -> list[Filed]:
    """A part without a session belongs to that of the others; a session needs a name."""
    main = next((file.session for file in files if file.session and file.owner is None), "")
    return [file if file.session else _with_name(file, main) for file in files]


def _with_name(file: Filed, main: str) -> Filed:
    path = Path(file.transcript.file)
    own = path.stem if ID.fullmatch(path.stem) else f"{path.parent.name}/{path.stem}"
    name = main if file.owner is not None and main else own
    return msgspec.structs.replace(file, session=name)


def _meta(path: Path) -> Meta | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Meta)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
