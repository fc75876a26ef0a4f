"""Traces of the OpenAI Agents SDK, as its exporter sends them: spans, and a record a trace.

`task` and `turn` spans repeat the tokens of the calls below them (and of agents that ran at the
same time), so they only group. A handoff ends an agent; the one it hands to stands beside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.importers.kit.fields import count_at, known, record_at, text_at
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import Imported, Likeness
from stretto.importers.spans.documents import items_of, read_items
from stretto.importers.spans.importing import About, Read, by_trace, import_spans
from stretto.importers.spans.messages import json_text, said
from stretto.importers.spans.span import Kind, Span, count_tokens, nanos_of
from stretto.trace import Tokens

__all__ = ["import_files", "recognise", "sessions"]

sessions = by_trace

KINDS: dict[str, Kind] = {
    "agent": "agent",
    "generation": "turn",
    "response": "turn",
    "function": "tool",
    "transcription": "tool",
    "speech": "tool",
    "handoff": "handoff",
    "guardrail": "guard",
}
_READ = ("type", "name", "input", "output", "model", "usage", "sdk_span_type")


def recognise(head: Head) -> Likeness:
    """Look for the objects `trace` and `trace.span`."""
    items = list(items_of(head))
    kinds = {text_at(item, "object") for item in items}
    if "trace.span" in kinds:
        return Likeness(1.0)
    if any("span_data" in item for item in items):
        return Likeness(0.45, 'spans whose "object" is not "trace.span"')
    if "trace" in kinds:
        return Likeness(0.4, "a trace without spans")
    return Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read the traces of one or several files; spans of one trace may stand in several.

    Raises `StrettoError` where nothing of a file is whole.
    """
    return import_spans(files, _read, "openai-agents")


def _read(file: Path) -> Read:
    found = read_items(file, _fits)
    traces = [item for _, item in found.items if item.get("object") == "trace"]
    spans = [
        _span(item, Source(str(file), number))
        for number, item in found.items
        if item.get("object") == "trace.span"
    ]
    about = {span.trace: About("openai-agents") for span in spans}
    about |= {text_at(item, "id") or "": _about(item) for item in traces}
    skipped = {"other records": found.others} if found.others else {}
    return Read(
        spans=spans,
        records=len(found.items) + found.others,
        warnings=found.warnings,
        skipped=skipped,
        about=about,
    )


def _fits(item: dict[str, Any]) -> bool:
    if item.get("object") == "trace.span":
        return text_at(item, "id") is not None and text_at(item, "trace_id") is not None
    return item.get("object") == "trace" and text_at(item, "id") is not None


def _about(item: dict[str, Any]) -> About:
    attrs = known(
        workflow_name=text_at(item, "workflow_name"),
        session_id=text_at(item, "group_id"),
        metadata=record_at(item, "metadata") or None,
    )
    return About("openai-agents", attrs)


def _span(item: dict[str, Any], source: Source) -> Span:
    trace, parent = text_at(item, "trace_id") or "", text_at(item, "parent_id")
    data = record_at(item, "span_data")
    label = text_at(data, "type") or "unknown"
    kind = KINDS.get(label, "step")
    inner = text_at(data, "data", "sdk_span_type")
    return Span(
        id=f"{trace}/{text_at(item, 'id')}",
        trace=trace,
        source=source,
        kind=kind,
        label=f"{label}/{inner}" if inner else label,
        name=text_at(data, "name") or label,
        parent=f"{trace}/{parent}" if parent else None,
        start=nanos_of(item.get("started_at")),
        end=nanos_of(item.get("ended_at")),
        agent=text_at(data, "name") if kind == "agent" else None,
        model=text_at(data, "model"),
        tokens=_tokens(data) if kind == "turn" else None,
        target=text_at(data, "to_agent") if kind == "handoff" else None,
        error=_error(item),
        attrs=known(**{name: value for name, value in data.items() if name not in _READ}),
        **_texts(data, kind),
    )


def _texts(data: dict[str, Any], kind: Kind) -> dict[str, Any]:
    entered, left = data.get("input"), data.get("output")
    if kind != "turn":
        return {"input": json_text(entered), "output": json_text(left)}
    text, calls = said(left)
    return {"input": json_text(entered), "output": text, "calls": calls}


def _tokens(data: dict[str, Any]) -> Tokens | None:
    """The names are those of the Responses API; early versions used those of chat completions."""
    usage = record_at(data, "usage")
    prompt, output = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
    details = record_at(usage, "input_tokens_details") or record_at(usage, "prompt_tokens_details")
    return count_tokens(
        count_at(usage, "prompt_tokens") if prompt is None else prompt,
        count_at(usage, "completion_tokens") if output is None else output,
        count_at(details, "cached_tokens"),
        count_at(details, "cache_write_tokens"),
    )


def _error(item: dict[str, Any]) -> str | None:
    return text_at(item, "error", "message") or json_text(record_at(item, "error") or None)
