"""Codex rollouts on disk: which files are the threads of one run.

The CLI keeps `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`; the threads of a run share a
`session_id` (from 0.142 on) and name their parent. A fork that is no spawn is a run of its own.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from stretto.errors import StrettoError
from stretto.importers.codex.records import run_keys
from stretto.importers.kit.arrays import first_records, lines_in
from stretto.importers.kit.fields import record_at, text_at
from stretto.importers.kit.grouping import connected
from stretto.importers.kit.heads import Head
from stretto.importers.kit.report import Likeness

TYPES = (
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
)
_DATED = re.compile(r"\d{4}/\d{2}/\d{2}$")


def recognise(head: Head) -> Likeness:
    """Look for the envelope of rollout records, and their first one."""
    lines = first_records(head)
    if not lines:
        return Likeness(0.0)
    fits = sum(map(_is_record, lines))
    if fits and any(_is_meta(line) for line in lines):
        return Likeness(fits / len(lines), f"{fits} of its first {len(lines)} records fit")
    if fits:
        return Likeness(0.9 * fits / len(lines), 'no "session_meta" with an id')
    if str(lines[0].get("type", "")).startswith("thread."):
        return Likeness(0.3, "this is the stream of `codex exec --json`; name the rollout instead")
    if "record_type" in lines[-1] and "instructions" in lines[0]:
        return Likeness(0.3, "this rollout is older than 0.32: its records have no envelope")
    return Likeness(0.0)


def _is_record(line: dict[str, Any]) -> bool:
    return line.get("type") in TYPES and isinstance(line.get("payload"), dict)


def _is_meta(line: dict[str, Any]) -> bool:
    return line.get("type") == "session_meta" and text_at(line, "payload", "id") is not None


def sessions(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Group rollouts by run; threads of the same run that stand beside them are added."""
    named = {file.resolve(): file for file in files}
    keys = {file: _peek(file) for file in files}
    beside = {file: _peek(file) for file in _neighbours(files) if file.resolve() not in named}
    groups = connected([*keys, *beside], lambda file: keys.get(file) or beside.get(file) or ())
    return [sorted(group) for group in groups if any(file in keys for file in group)]


def _neighbours(files: Sequence[Path]) -> list[Path]:
    """Rollouts in the folders of the files, or in all days of a `sessions` folder."""
    folders = dict.fromkeys(file.parent for file in files)
    found: dict[Path, None] = {}
    for folder in folders:
        dated = _DATED.search(folder.as_posix())
        pattern = "*/*/*/*.jsonl" if dated else "*.jsonl"
        base = folder.parents[2] if dated else folder
        found |= dict.fromkeys(sorted(base.glob(pattern)))
    return [file for file in found if file.is_file()]


def _peek(file: Path) -> list[str]:
    """Ids in the first record of a file; the name of one that has none."""
    try:
        first = msgspec.json.decode(next(lines_in(file), b""))
    except (OSError, StrettoError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        first = None
    is_meta = isinstance(first, dict) and first.get("type") == "session_meta"
    return (run_keys(record_at(first, "payload")) if is_meta else []) or [str(file)]
