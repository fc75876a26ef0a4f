"""Runs of LangSmith and LangGraph: as lines, as a list, or nested in `child_runs`.

Agents are no runs of their own kind. LangChain names them in `lc_agent_name`, which changes at the
first run of a sub-agent; where no run has it, the namespace of LangGraph's checkpoints tells one
graph from the graph that is called in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stretto.importers.kit.fields import (
    count_at,
    known,
    list_at,
    number_at,
    record_at,
    text_at,
    value_at,
)
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import Imported, Likeness
from stretto.importers.spans.documents import items_of, read_items
from stretto.importers.spans.importing import About, Read, by_trace, import_spans
from stretto.importers.spans.langgraph import Node, Who, agents_of
from stretto.importers.spans.messages import asked, json_text, messages_of, said
from stretto.importers.spans.span import Kind, Span, count_tokens, nanos_of
from stretto.trace import Tokens

__all__ = ["import_files", "recognise", "sessions"]

sessions = by_trace

KINDS: dict[str, Kind] = {"llm": "turn", "tool": "tool", "retriever": "tool", "embedding": "tool"}
_FIVE_MINUTES, _HOUR = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
_READ = (
    "id",
    "trace_id",
    "parent_run_id",
    "parent_run",
    "parent_run_ids",
    "child_runs",
    "child_run_ids",
    "direct_child_run_ids",
    "dotted_order",
    "run_type",
    "name",
    "start_time",
    "end_time",
    "inputs",
    "outputs",
    "error",
    "total_tokens",
    "prompt_tokens",
    "completion_tokens",
    "feedback_stats",
    "events",
    "inputs_preview",
    "outputs_preview",
)


def recognise(head: Head) -> Likeness:
    """Look for runs."""
    items = list(items_of(head))
    if any("run_type" in item and _fits(item) and _is_typical(item) for item in items):
        return Likeness(1.0)
    if any("run_type" in item for item in items):
        return Likeness(0.4, "runs without id or start_time")
    return Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read the traces of one or several files; runs of one trace may stand in several.

    Raises `StrettoError` where nothing of a file is whole.
    """
    return import_spans(files, _read, "langsmith")


def _fits(item: dict[str, Any]) -> bool:
    """A run, or the update of one, which may say only how it ended."""
    marks = (text_at(item, name) for name in ("run_type", "dotted_order"))
    return text_at(item, "id") is not None and any(marks)


def _is_typical(item: dict[str, Any]) -> bool:
    marks = ("dotted_order", "trace_id", "parent_run_id", "child_runs", "session_name")
    return "start_time" in item and any(mark in item for mark in marks)


def _read(file: Path) -> Read:
    found = read_items(file, _fits)
    runs: dict[str, tuple[int, dict[str, Any]]] = {}
    copies = 0
    for number, run in _unfolded(found.items):
        name = _id(run)
        if name in runs:
            copies += 1
            run = runs[name][1] | known(**{str(key): value for key, value in run.items()})
            number = runs[name][0]
        runs[name] = number, run
    alone = [name for name, (_, run) in runs.items() if text_at(run, "run_type") is None]
    for name in alone:
        del runs[name]
    others = found.others + len(alone)
    traces = _traces(run for _, run in runs.values())
    agents = agents_of([_node(run) for _, run in runs.values()])
    spans = [
        _span(run, traces, Source(str(file), number), agents.get(name, (None, None)))
        for name, (number, run) in runs.items()
    ]
    about = {traces[_id(run)]: _about(run) for _, run in runs.values() if _parent(run) is None}
    skipped = {"not a run": others, "update of a run": copies}
    return Read(
        spans=spans,
        records=len(runs) + others + copies,
        warnings=found.warnings,
        skipped={name: count for name, count in skipped.items() if count},
        about=about,
    )


def _unfolded(
    items: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Runs with those that are nested in them; a nested run knows its parent by its place."""
    stack = list(items)[::-1]
    while stack:
        number, run = stack.pop()
        yield number, run
        for child in reversed(list_at(run, "child_runs")):
            if isinstance(child, dict) and _fits(child):
                stack.append((number, {"parent_run_id": text_at(run, "id")} | known(**child)))


def _traces(runs: Iterable[dict[str, Any]]) -> dict[str, str]:
    """By id of a run: its trace, as it says itself or else its root."""
    stated: dict[str, str | None] = {}
    above: dict[str, str | None] = {}
    for run in runs:
        name = _id(run)
        order = (text_at(run, "dotted_order") or "").split(".")[0].partition("Z")[2]
        stated[name] = text_at(run, "trace_id") or order or None
        above[name] = _parent(run)
    found: dict[str, str] = {}
    for name in stated:
        path: list[str] = []
        step = name
        while step not in found and stated.get(step) is None and step not in path:
            path.append(step)
            parent = above.get(step)
            if parent not in stated:
                break
            step = parent
        trace = found.get(step) or stated.get(step) or step
        found.update(dict.fromkeys([*path, name], trace))
    return found


def _parent(run: dict[str, Any]) -> str | None:
    """The parent, as stated or as the order says: its last but one part."""
    parts = (text_at(run, "dotted_order") or "").split(".")
    ordered = parts[-2].partition("Z")[2] if len(parts) > 1 else None
    return text_at(run, "parent_run_id") or ordered or None


def _id(run: dict[str, Any]) -> str:
    return text_at(run, "id") or ""


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    return record_at(run, "extra", "metadata")


def _about(run: dict[str, Any]) -> About:
    runtime = record_at(run, "extra", "runtime")
    library = [text_at(runtime, "library"), text_at(runtime, "library_version")]
    thread = text_at(_metadata(run), "thread_id") or text_at(_metadata(run), "session_id")
    attrs = known(
        session_id=thread,
        project=text_at(run, "session_name"),
        tags=list_at(run, "tags") or None,
    )
    return About(" ".join(filter(None, library)) or "langsmith", attrs)


def _span(run: dict[str, Any], traces: Mapping[str, str], source: Source, who: Who) -> Span:
    name, parent = _id(run), _parent(run)
    label = text_at(run, "run_type") or "unknown"
    kind = KINDS.get(label, "step")
    return Span(
        id=name,
        trace=traces[name],
        source=source,
        kind=kind,
        label=label,
        name=text_at(run, "name") or label,
        parent=parent,
        start=nanos_of(run.get("start_time")),
        end=nanos_of(run.get("end_time")),
        agent=who[0] if kind != "tool" else None,
        agent_id=who[1] if kind != "tool" else None,
        error=text_at(run, "error"),
        scores=tuple(_scores(run)),
        attrs=known(**{str(key): value for key, value in run.items() if key not in _READ})
        | (known(cache_write_1h=_long_write(run)) if kind == "turn" else {}),
        **_content(run, kind),
    )


def _node(run: dict[str, Any]) -> Node:
    metadata = _metadata(run)
    return Node(
        _id(run),
        _parent(run),
        text_at(run, "name") or "",
        text_at(metadata, "lc_agent_name"),
        text_at(metadata, "langgraph_checkpoint_ns"),
    )


def _scores(run: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, stats in record_at(run, "feedback_stats").items():
        average = number_at(stats, "avg")
        if average is not None and name:
            yield name, average


def _content(run: dict[str, Any], kind: Kind) -> dict[str, Any]:
    entered, left = run.get("inputs"), run.get("outputs")
    if kind == "turn":
        text, calls = said(left)
        return {
            "model": _model(run),
            "tokens": _tokens(run),
            "price": _price(run),
            "input": json_text(entered),
            "output": text,
            "calls": calls,
        }
    if kind == "tool":
        return _tool(run, entered, left)
    words = [m.text for m in messages_of(left, "assistant") if m.role == "assistant" and m.text]
    return {"input": asked(entered), "output": words[-1] if words else None}


def _tool(run: dict[str, Any], entered: Any, left: Any) -> dict[str, Any]:
    answers = [message for message in messages_of(left) if message.call_id]
    stated = text_at(run, "extra", "tool_call_id") or text_at(_metadata(run), "tool_call_id")
    output = answers[0].text if answers else None
    only = value_at(left, "output") if isinstance(left, dict) and len(left) == 1 else left
    return {
        "input": json_text(entered),
        "output": output or json_text(only),
        "call_id": stated or (answers[0].call_id if answers else None),
    }


def _model(run: dict[str, Any]) -> str | None:
    answered = text_at(_message(run), "response_metadata", "model_name")
    params = record_at(run, "extra", "invocation_params")
    stated = text_at(run, "outputs", "llm_output", "model_name") or text_at(run, "outputs", "model")
    asked_for = text_at(params, "model") or text_at(params, "model_name")
    return answered or stated or asked_for or text_at(_metadata(run), "ls_model_name")


def _message(run: dict[str, Any]) -> dict[str, Any]:
    message = record_at(run, "outputs", "generations", 0, 0, "message")
    message = message or record_at(run, "outputs", "generations", 0, "message")
    return record_at(message, "kwargs") or message


def _tokens(run: dict[str, Any]) -> Tokens | None:
    usage, details = _usage(run)
    return count_tokens(
        _first(usage, "input_tokens", "prompt_tokens"),
        _first(usage, "output_tokens", "completion_tokens"),
        _first(details, "cache_read", "cached_tokens"),
        _written(details),
    )


def _usage(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tokens by the first of the places that versions put them, and the parts of the prompt."""
    outputs = record_at(run, "outputs")
    usage = (
        record_at(_message(run), "usage_metadata")
        or record_at(outputs, "usage_metadata")
        or record_at(_metadata(run), "usage_metadata")
        or record_at(outputs, "llm_output", "token_usage")
        or record_at(outputs, "usage")
        or run
    )
    details = record_at(usage, "input_token_details") or record_at(usage, "prompt_tokens_details")
    return usage, details


def _written(details: dict[str, Any]) -> int | None:
    """Tokens written to a cache: LangChain says 0 for them where it tells them by their time."""
    stated = _first(details, "cache_creation", "cache_write_tokens")
    parts = [count_at(details, name) for name in (_FIVE_MINUTES, _HOUR)]
    told = [part for part in parts if part is not None]
    return max(stated or 0, sum(told)) if told else stated


def _long_write(run: dict[str, Any]) -> int | None:
    """How many of the written tokens are kept for an hour; `None` where none are."""
    return count_at(_usage(run)[1], _HOUR) or None


def _first(record: dict[str, Any], *names: str) -> int | None:
    counts = (count_at(record, name) for name in names)
    return next((count for count in counts if count is not None), None)


def _price(run: dict[str, Any]) -> float | None:
    """The API writes amounts as texts."""
    stated = run.get("total_cost")
    try:
        price = float(stated) if isinstance(stated, str | float | int) else None
    except ValueError:
        return None
    return price if price is not None and 0 <= price < float("inf") else None
