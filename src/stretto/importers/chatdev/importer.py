"""ChatDev 1.0: the log of a run, in prose.

Source: `OpenBMB/ChatDev` at 1.0 (`run.py`, `chatdev/`, `camel/`). Times stand as year, *day*, month
(`%Y-%d-%m %H:%M:%S`). Two dialects: until July 2023 `[0] AI Assistant (Programmer):`, then
`Programmer: **Programmer<->Chief Technology Officer on : Coding, turn 0**`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.chatdev.log import Log, read_log
from stretto.importers.kit.chat import Chat
from stretto.importers.kit.fields import known
from stretto.importers.kit.heads import Head
from stretto.importers.kit.report import FileReport, Imported, Likeness, Notice, report_of
from stretto.importers.kit.strand import trace_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]

_STAMP = re.compile(rb"\s*\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+\] ")
_SIGNS = (
    b"AgentTech Starts",
    b"ChatDev Starts",
    b"PhaseType.",
    b"ChatEnvConfig",
    b"**[chatting]**",
)


def recognise(head: Head) -> Likeness:
    """Look for the stamp of a log and for words that ChatDev writes at its beginning."""
    stamp = _STAMP.match(head.data)
    if stamp is None and head.data.startswith(b"{"):
        return Likeness(0.0)
    signed = any(sign in head.data for sign in _SIGNS)
    if stamp is not None:
        return Likeness(1.0) if signed else Likeness(0.3, "a log, but none of ChatDev")
    near = signed and not head.lines and _STAMP.search(head.data) is not None
    return Likeness(0.3, "its first line has no time") if near else Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a file.

    Raises `StrettoError` for a file without a record.
    """
    parts = [_import_file(file) for file in files]
    return Imported(tuple(trace for trace, _ in parts), tuple(report for _, report in parts))


def _import_file(file: Path) -> tuple[Trace, FileReport]:
    text = read_bytes(file).decode("utf-8", "replace")
    log = read_log(text)
    if not log.records:
        raise StrettoError("holds no record", str(file), "lines begin with [time LEVEL]")
    trace = trace_of_log(log, str(file))
    fields = {"records": log.records, "skipped": log.skipped, "warnings": _cut(log, file, text)}
    return trace, report_of(str(file), [trace], **fields)


def _cut(log: Log, file: Path, text: str) -> tuple[Notice, ...]:
    """A log that is whole says that the run ended."""
    if log.facts.get("finished"):
        return ()
    where = f"{file}:{text.rstrip().count(chr(10)) + 1}"
    return (Notice(where, "the log ends here, and does not say that the run did"),)


def trace_of_log(log: Log, file: str) -> Trace:
    """The trace of a log that was read."""
    chat = Chat(log.utterances, file)
    prompts = {role: chat.loom.store(text) for role, text in log.prompts.items()}
    name = "_".join(filter(None, (log.facts.get("name"), log.facts.get("stamp"))))
    times = [entry.time for entry in log.utterances if entry.time is not None]
    started = min(times, default=None)
    attrs: dict[str, Any] = {
        **log.facts,
        **known(started=started and started.isoformat()),
        "format": "chatdev",
        "evidence": {"decision.start": "derived", "decision.duration": "derived"},
    }
    return trace_of(
        chat.loom,
        chat.agents(system_prompt=prompts),
        id=name or Path(file).stem,
        task=log.facts.get("task", "unknown"),
        system="chatdev 1.0",
        attrs=attrs,
    )
