"""Who&When: failed runs of Magentic-One and AG2 teams, with the agent and the step at fault.

Source: Zhang et al., "Which Agent Causes Task Failures and When?" (arXiv 2505.00212), files of
`ag2ai/Agents_Failure_Attribution`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.importers.kit.chat import Chat
from stretto.importers.kit.fields import (
    count_at,
    flag_at,
    known,
    list_at,
    record_at,
    text_at,
    value_at,
)
from stretto.importers.kit.heads import SIZE, Head
from stretto.importers.kit.magentic import group_chat, is_same, magentic, speaker_at
from stretto.importers.kit.reading import read_document
from stretto.importers.kit.report import Imported, Likeness, Notice, report_of
from stretto.importers.kit.strand import trace_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Score, Trace

__all__ = ["import_files", "recognise", "sessions"]

FIELDS = ("history", "question", "mistake_agent", "mistake_step")
_EVENTS = ("history", "system_prompt")
"""Fields that have a place of their own in a trace."""


def recognise(head: Head) -> Likeness:
    """Look for a history and the labels; labels may stand too far down to be seen."""
    document = head.document
    if not isinstance(document, dict) or not isinstance(document.get("history"), list):
        return Likeness(0.0)
    missing = [name for name in FIELDS if name not in document]
    if not missing or ((len(head.data) >= SIZE or head.is_torn) and _speaks(document)):
        return Likeness(1.0)
    if len(missing) < 3:
        return Likeness(0.4, f'a history without "{missing[0]}"')
    return Likeness(0.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a file.

    Raises `StrettoError` for a file without a history.
    """
    parts = [_import_file(file) for file in files]
    return Imported(
        tuple(trace for part in parts for trace in part.traces),
        tuple(report for part in parts for report in part.report),
    )


def _import_file(file: Path) -> Imported:
    document, warnings = read_document(file)
    history = value_at(document, "history")
    if not isinstance(history, list):
        raise StrettoError('holds no "history"', str(file), "is it a file of Who&When?")
    chat = Chat(_utterances(history), str(file))
    labels, notices = _label(chat, document, str(file))
    trace = _trace(chat, document, labels)
    report = report_of(str(file), [trace], records=len(history), warnings=(*warnings, *notices))
    return Imported((trace,), (report,))


def _utterances(history: list[Any]) -> Any:
    return group_chat(history) if _named(history) else magentic(history)


def _trace(chat: Chat, document: Any, labels: dict[str, Any]) -> Trace:
    subset = "algorithm-generated" if _named(list_at(document, "history")) else "hand-crafted"
    question = text_at(document, "question_ID")
    prompts = {
        name: chat.loom.store(text)
        for name, text in record_at(document, "system_prompt").items()
        if isinstance(text, str)
    }
    guilty = {name: True for name in chat.ids if is_same(name, text_at(document, "mistake_agent"))}
    attrs = {**_rest(document), **labels, "format": "who-and-when", "subset": subset}
    return trace_of(
        chat.loom,
        chat.agents(system_prompt=prompts, mistake=guilty),
        id=f"{subset}/{question or Path(chat.file).stem}",
        task=question or "unknown",
        system="ag2" if subset == "algorithm-generated" else "magentic-one",
        scores=_scores(document),
        attrs=attrs,
    )


def _scores(document: Any) -> tuple[Score, ...]:
    """Whether the answer was right; one subset calls it `is_corrected`."""
    flags = (flag_at(document, "is_correct"), flag_at(document, "is_corrected"))
    right = next((flag for flag in flags if flag is not None), None)
    return () if right is None else (Score(channel="correct", value=float(right)),)


def _label(chat: Chat, document: Any, file: str) -> tuple[dict[str, Any], list[Notice]]:
    """Note the mistake on its event; return the labels of the trace and what does not fit."""
    agent = text_at(document, "mistake_agent")
    step = step_of(value_at(document, "mistake_step"))
    at_step = speaker_at(chat, step) if step is not None else None
    labels: dict[str, Any] = known(mistake_agent_at_step=at_step)
    if step is None or at_step is None:
        what = f"the labelled step {value_at(document, 'mistake_step')!r} is not in the history"
        return labels, [Notice(file, what)] if agent else []
    fits = is_same(agent, at_step)
    labels["mistake_agent_fits"] = fits
    said = known(mistake_reason=text_at(document, "mistake_reason"))
    mismatch = {} if fits else {"mistake_agent": agent}
    chat.note(step, mistake=True, **said, **mismatch)
    what = f"step {step} is labelled a mistake of {agent}, but {at_step} spoke then"
    return labels, [] if fits else [Notice(file, what)]


def step_of(value: Any) -> int | None:
    """A step that stands as a number or as its text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return count_at(value)


def _rest(document: Any) -> dict[str, Any]:
    fields = document if isinstance(document, dict) else {}
    return known(**{name: value for name, value in fields.items() if name not in _EVENTS})


def _named(history: list[Any]) -> bool:
    return any(text_at(record, "name") for record in history)


def _speaks(document: dict[str, Any]) -> bool:
    first = value_at(document, "history", 0)
    return text_at(first, "role") == "human" or text_at(first, "name") is not None
