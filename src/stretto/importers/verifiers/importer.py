"""Episodes of verifiers (`traces.jsonl`, 0.4), one trace an episode.

| in verifiers | here |
|---|---|
| a trace of an episode | an agent, and its sub-agents |
| a sampled message | a turn |
| `subagent_call` | a `spawn`, or a `delegate` to an agent that is there |
| `subagent_return` | a `return` |
| `agent_message` | a `message` |
| `subagent_cancel` | a `despawn`, and an edge of that label |
| `continuation` | a `temporal` edge |
| `compaction_attempt`, `compaction`, any other | an edge of that label |

Edges may form loops. A turn keeps its links as they came in `attrs["semantic_parents"]`. An episode
that Stretto wrote holds its whole trace besides, and gives it back.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.exporters import export
from stretto.exporters.verifiers_restore import from_stretto_info, has_stretto_info, is_unchanged
from stretto.files import read_bytes
from stretto.importers.kit.fields import record_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.reading import parse_document, parse_lines
from stretto.importers.kit.report import FileReport, Imported, Likeness, Notice, report_of
from stretto.importers.plan import one_by_one as sessions
from stretto.importers.verifiers.weaver import Weaver
from stretto.trace import Trace

__all__ = ["import_files", "recognise", "sessions"]

CHANGED = "what Stretto wrote was cut or changed; it is read as an episode of any other program"
"""Said of an episode whose trace cannot be put together again."""


def recognise(head: Head) -> Likeness:
    """Look for an episode, or a trace, whose messages are nodes of a graph."""
    first = next(iter(head.lines), None)
    record = first if first is not None else head.document
    traces = record_at(record).get("traces")
    inner = record_at(traces, 0) if isinstance(traces, list) and traces else record_at(record)
    if "nodes" in inner and ("calls" in inner or "agent" in inner):
        return Likeness(1.0)
    if isinstance(traces, list) and "env" in record_at(record) and "task" in record_at(record):
        return Likeness(1.0 if not traces else 0.4, "" if not traces else 'traces without "nodes"')
    near = isinstance(traces, list) and any("nodes" in record_at(each) for each in traces)
    return Likeness(0.4, 'nodes without "calls"') if near else Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read the episodes of files, one trace each.

    Raises `StrettoError` for a file of which nothing is whole.
    """
    traces: list[Trace] = []
    reports: list[FileReport] = []
    for file in files:
        episodes, warnings = _episodes(file)
        read = [_read(episode, Source(str(file), line)) for line, episode in episodes]
        own = [each.trace for each in read]
        reports.append(
            report_of(
                str(file),
                own,
                records=sum(each.records for each in read),
                skipped=dict(sum((each.skipped for each in read), Counter[str]())),
                warnings=(*warnings, *(notice for each in read for notice in each.notices)),
            )
        )
        traces += own
    return Imported(tuple(traces), tuple(reports))


class _Read(Struct, frozen=True):
    """One episode."""

    trace: Trace
    records: int
    skipped: Counter[str] = Counter()
    notices: tuple[Notice, ...] = ()


def _read(episode: dict[str, Any], source: Source) -> _Read:
    """The trace that Stretto wrote, if the messages still say the same; else what they say."""
    if not has_stretto_info(episode):
        return _woven(episode, source)
    written = from_stretto_info(episode)
    if written is not None and is_unchanged(episode):
        return _Read(written, sum(len(each["nodes"]) for each in episode["traces"]))
    read = _woven(episode, source)
    again = None if written is None else _exported(written)
    if written is not None and again and _woven(again, source).trace == read.trace:
        return _Read(written, read.records)  # written again by a program that changed nothing
    return replace(read, notices=(Notice(str(source), CHANGED),))


def _exported(trace: Trace) -> dict[str, Any] | None:
    """The episode that Stretto writes of a trace."""
    try:
        return msgspec.json.decode(export([trace], "verifiers").files[""])
    except StrettoError:
        return None


def _woven(episode: dict[str, Any], source: Source) -> _Read:
    weaver = Weaver(episode, source)
    records = sum(len(graph.nodes) for graph in weaver.graphs)
    return _Read(weaver.weave(), records, weaver.skipped)


def _episodes(file: Path) -> tuple[list[tuple[int, dict[str, Any]]], tuple[Any, ...]]:
    """The episodes of a file with their lines; a trace alone is an episode of one."""
    data = read_bytes(file)
    if data.lstrip().partition(b"\n")[0].rstrip().endswith(b"}"):
        lines = parse_lines(data, str(file))
        return _whole([(line.number, line.value) for line in lines.records], file), lines.warnings
    value, warnings = parse_document(data, str(file))
    records = value if isinstance(value, list) else [value]
    rows = [(1, record) for record in records if isinstance(record, dict)]
    return _whole(rows, file), warnings


def _whole(
    rows: Sequence[tuple[int, dict[str, Any]]], file: Path
) -> list[tuple[int, dict[str, Any]]]:
    found = [
        (line, record if "traces" in record else {"traces": [record], **_shared(record)})
        for line, record in rows
        if "traces" in record or "nodes" in record
    ]
    if not found:
        raise StrettoError("holds no episode", str(file), '"traces" or "nodes" is expected')
    return found


def _shared(trace: dict[str, Any]) -> dict[str, Any]:
    return {name: trace[name] for name in ("id", "task", "ok", "errors") if name in trace}
