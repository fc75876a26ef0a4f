"""MAST (first called MASFT): runs of several multi-agent systems, labelled with failure modes.

Source: Cemri et al., "Why Do Multi-Agent LLM Systems Fail?" (arXiv 2503.13657). Three layouts: a
file a run, JSON or a plain log, with `annotations.csv` beside it (2025-03, pre-release taxonomy),
MetaGPT's `run_<n>.json`, and the lists of MAST-Data (`mast_annotation` with the 14 modes, or
`annotations` by three people).
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.chatdev.importer import recognise as recognise_chatdev
from stretto.importers.chatdev.importer import trace_of_log
from stretto.importers.chatdev.log import read_log
from stretto.importers.kit.chat import Chat, Utterance, to_the_other
from stretto.importers.kit.fields import flag_at, known, list_at, number_at, text_at, value_at
from stretto.importers.kit.heads import Head, read_head
from stretto.importers.kit.magentic import group_chat, text_of
from stretto.importers.kit.reading import read_document
from stretto.importers.kit.report import FileReport, Imported, Likeness, Notice, report_of
from stretto.importers.kit.strand import trace_of
from stretto.importers.mast.labels import (
    SIDECAR,
    is_table,
    labels_of,
    read_sidecar,
    read_table,
    scores_of,
)
from stretto.importers.mast.speakers import utterances
from stretto.trace import Score, Trace

__all__ = ["import_files", "recognise", "sessions"]

_CONTENT = ("trajectory", "content", "trace")
"""Fields that are events of a trace."""
_METAGPT = ("run_id", "prompt")
"""Fields before the `content` of a run of MetaGPT."""
_TOLD_BY_TEXT = ("hyperagent", "metagpt", "appworld")
"""Systems whose plain logs are like no other text."""


def recognise(head: Head) -> Likeness:
    """Look for one of the layouts, or for a table of labels."""
    if is_table(head.data):
        return Likeness(1.0)
    text = _plain(head.data)
    if text is not None:
        system, entries = utterances(text)
        if system in _TOLD_BY_TEXT:
            return Likeness(1.0)
        return Likeness(0.2, "a log of who said what") if entries else Likeness(0.0)
    document = head.document
    record = value_at(document, 0) if isinstance(document, list) else document
    if not isinstance(record, dict):
        return Likeness(0.0)
    if _is_run(record) or _is_metagpt(record) or "mas_name" in record:
        return Likeness(1.0)
    if _begins_a_run(record) and head.is_torn:
        return Likeness(0.5, "cut")
    if "instance_id" in record and "trajectory" in record:
        return Likeness(0.4, 'a "trajectory" without "problem_statement"')
    return Likeness(0.0)


def sessions(files: Sequence[Path]) -> Iterable[Sequence[Path]]:
    """Each file for itself, but a table with the runs beside it or one folder below."""
    tables = {file.parent: [file] for file in files if _is_table(file)}
    alone: list[list[Path]] = []
    for file in files:
        group = next((tables[folder] for folder in _folders(file) if folder in tables), None)
        if group is None:
            alone.append([file])
        elif file not in group:
            group.append(file)
    return [*tables.values(), *alone]


def import_files(files: Sequence[Path]) -> Imported:
    """Read the runs of a group; labels come from `annotations.csv` beside them.

    A table that is named gives a trace without events for each run that is not there. Of several
    files, one that cannot be read is told in the report.

    Raises `StrettoError` where no file holds a run.
    """
    traces: list[Trace] = []
    reports: list[FileReport] = []
    failed: list[StrettoError] = []
    tables = [file for file in sorted(files) if _is_table(file)]
    for file in [*sorted(set(files) - set(tables)), *tables]:
        try:
            if file in tables:
                found, report = _import_table(file, {trace.id for trace in traces})
            else:
                found, report = _import_file(file, tables)
        except StrettoError as error:
            failed.append(error)
            notice = Notice(error.where or str(file), f"not read: {error.what}")
            found, report = [], FileReport(file=str(file), warnings=(notice,))
        traces += found
        reports.append(report)
    if failed and not traces:
        raise failed[0]
    return Imported(tuple(traces), tuple(reports))


def _folders(file: Path) -> Sequence[Path]:
    """Where the table of a file may stand, the nearest first."""
    return file.parents[:2]


def _import_table(file: Path, seen: Container[str]) -> tuple[list[Trace], FileReport]:
    rows, warnings = read_table(file)
    alone = [_alone(name, row) for name, row in rows.items() if name not in seen]
    return alone, report_of(str(file), alone, records=len(rows), warnings=warnings)


def _import_file(file: Path, tables: Sequence[Path]) -> tuple[list[Trace], FileReport]:
    """The runs of a file; a table that is among `tables` has a report of its own."""
    near = (table for folder in _folders(file) for table in tables if table.parent == folder)
    place = next(near, file.parent / SIDECAR)
    table = read_sidecar(place)
    notices = [] if place in tables else list(table.warnings)
    text = _plain(read_bytes(file))
    document, warnings = ({"content": text}, ()) if text else read_document(file)
    records = document if isinstance(document, list) else [document]
    whole = [record for record in records if isinstance(record, dict)]
    traces = [_trace(record, file, table.rows, notices) for record in whole]
    if not whole:
        raise StrettoError("holds no run", str(file), "is it a file of MAST?")
    skipped = {"other": len(records) - len(whole)} if len(whole) < len(records) else {}
    report = report_of(
        str(file),
        traces,
        records=len(records),
        skipped=skipped,
        warnings=(*warnings, *notices),
    )
    return traces, report


def _trace(
    record: dict[str, Any], file: Path, rows: Mapping[str, dict[str, str]], notices: list[Notice]
) -> Trace:
    name = _id(record, file)
    labels, problems = labels_of(record, rows.get(name, {}))
    notices.extend(Notice(str(file), f"{name}: {problem}") for problem in problems)
    rest = {field: value for field, value in record.items() if field not in _CONTENT}
    rest |= known(key=value_at(record, "trace", "key"), **labels.texts)
    scores = (*_scores(record), *scores_of(labels.values))
    task = text_at(record, "prompt") or text_at(record, "instance_id") or name
    fields: dict[str, Any] = {"id": name, "task": task, "scores": scores}
    text = _text(record)
    if text is not None and recognise_chatdev(Head(text.encode("utf-8", "replace"))).score == 1:
        trace = trace_of_log(read_log(text), str(file))
        return structs.replace(trace, **fields, attrs={**trace.attrs, **rest, "format": "mast"})
    system, entries = _entries(record, text)
    if entries and entries[0].speaker == "unknown":
        notices.append(Notice(str(file), f"{name}: no header says who speaks"))
    chat = Chat(entries, str(file))
    fields["system"] = text_at(record, "mas_name") or system
    times = [entry.time for entry in entries if entry.time is not None]
    started = min(times).isoformat() if times else None
    attrs = {**rest, **known(started=started), "format": "mast"}
    return trace_of(chat.loom, chat.agents(), **fields, attrs=attrs)


def _plain(data: bytes) -> str | None:
    """A log that is no JSON, as text."""
    return None if data.lstrip()[:1] in (b"{", b"[", b"") else data.decode("utf-8", "replace")


def _is_table(file: Path) -> bool:
    return is_table(read_head(file).data)


def _is_run(record: dict[str, Any]) -> bool:
    steps = record.get("trajectory")
    if not isinstance(steps, list | str) or "instance_id" not in record:
        return False
    first = value_at(steps, 0)
    told = any(name in record for name in ("problem_statement", "other_data", "note"))
    return told or isinstance(first, str) or (isinstance(first, dict) and "content" in first)


def _is_metagpt(record: dict[str, Any]) -> bool:
    return all(name in record for name in (*_METAGPT, "content"))


def _begins_a_run(record: dict[str, Any]) -> bool:
    """Whether the fields before a cut are those of a run; instances of SWE-bench have its id."""
    states = isinstance(record.get("problem_statement"), list) or "other_data" in record
    return all(name in record for name in _METAGPT) or ("instance_id" in record and states)


def _id(record: dict[str, Any], file: Path) -> str:
    if "mas_name" in record:
        fields = ("mas_name", "benchmark_name", "llm_name", "trace_id")
        return "/".join(str(record[name]) for name in fields if record.get(name) is not None)
    if all(name in record for name in _METAGPT):
        return f"metagpt/{record['run_id']}"
    return text_at(record, "instance_id") or file.stem


def _scores(record: dict[str, Any]) -> Iterator[Score]:
    """Whether the answer was right, and what the run cost."""
    right = flag_at(record, "other_data", "correct")
    if right is not None:
        yield Score(channel="correct", value=float(right))
    cost = number_at(record, "cost")
    if cost is not None:
        yield Score(channel="cost", value=cost, kind="cost")


def _text(record: dict[str, Any]) -> str | None:
    """The text of a run that is written as lines; nothing for a list of messages."""
    inner = value_at(record, "trace", "trajectory")
    for content in (inner, *(record.get(name) for name in _CONTENT)):
        if isinstance(content, str):
            return content
        if isinstance(content, list) and content and not any(isinstance(x, dict) for x in content):
            return text_of({"content": content})
    return None


def _entries(record: dict[str, Any], text: str | None) -> tuple[str | None, list[Utterance]]:
    """The system that ran, as far as its log tells, and who said what."""
    if text is None:
        history = list_at(record, "trajectory") or list_at(record, "trace", "trajectory")
        return "ag2" if any(text_at(m, "name") for m in history) else None, to_the_other(
            group_chat(history)
        )
    system, entries = utterances(text)
    return system, entries or [Utterance("unknown", text, "text")]


def _alone(name: str, row: dict[str, str]) -> Trace:
    """Labels of a run that is not there."""
    labels, _ = labels_of({}, row)
    attrs = {**labels.texts, "format": "mast", "transcript": False}
    return Trace(id=name, task=name, scores=tuple(scores_of(labels.values)), attrs=attrs)
