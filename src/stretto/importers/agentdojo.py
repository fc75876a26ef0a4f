"""AgentDojo: runs of one agent on a task, with and without an injected instruction.

Source: `ethz-spylab/agentdojo`, `TraceLogger` (`agentdojo/logging.py`), and `TaskResults`
(`agentdojo/benchmark.py`). `security: true` means that the attack won, and says nothing where there
was no attack. The injected texts are known word for word, so what carries one is not trusted.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stretto.errors import StrettoError
from stretto.importers.kit.fields import flag_at, known, list_at, record_at, text_at, value_at
from stretto.importers.kit.heads import SIZE, Head
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.messages import Turns, calls_of, text_of
from stretto.importers.kit.reading import read_document
from stretto.importers.kit.report import FileReport, Imported, Likeness, report_of
from stretto.importers.kit.strand import Strand, trace_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Agent, Decision, Score, Trace

__all__ = ["import_files", "recognise", "sessions"]

FIELDS = ("suite_name", "pipeline_name", "messages")
_TELLING = ("pipeline_name", "messages", "user_task_id", "injection_task_id", "attack_type")
_NOT_LETTERS = re.compile(r"\\[nrt\"']|[\W_]+")
"""What the YAML of a tool result may change in a text: line ends, white space, quotes."""

PAPERS = ("agentdojo2024",)


def recognise(head: Head) -> Likeness:
    """Look for the suite, the pipeline and the messages."""
    document = head.document
    if not isinstance(document, dict):
        return Likeness(0.0)
    if "suite_name" not in document:
        near = sum(name in document for name in _TELLING) > 1
        return Likeness(0.3, 'no "suite_name"') if near else Likeness(0.0)
    missing = [name for name in FIELDS if name not in document]
    if not missing or (missing == ["messages"] and len(head.data) >= SIZE):
        return Likeness(1.0)
    return Likeness(0.4, f'no "{missing[0]}"')


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a file.

    Raises `StrettoError` for a file that is no run.
    """
    parts = [_import_file(file) for file in files]
    return Imported(tuple(trace for trace, _ in parts), tuple(report for _, report in parts))


def _import_file(file: Path) -> tuple[Trace, FileReport]:
    document, warnings = read_document(file)
    if not isinstance(document, dict) or "suite_name" not in document:
        raise StrettoError('holds no "suite_name"', str(file), "is it a run of AgentDojo?")
    messages = list_at(document, "messages")
    loom = Loom(None)
    turns = Turns(Strand(loom, "0"), Source(str(file), 1))
    prompt, odd = _weave(turns, messages, _injections(document))
    name = text_at(document, "pipeline_name")
    agent = Agent(id="0", name=name, attrs=known(system_prompt=prompt))
    trace = trace_of(loom, [agent], **_header(document, file))
    skipped = {"message": odd} if odd else {}
    fields = {"records": len(messages), "skipped": skipped, "warnings": warnings}
    return trace, report_of(str(file), [trace], **fields)


def _weave(
    turns: Turns, messages: Sequence[Any], injections: dict[str, str]
) -> tuple[str | None, int]:
    """Add all messages; return the system prompt, and how many are of no known role."""
    prompt, odd = None, 0
    for place, message in enumerate(messages):
        match text_at(message, "role"):
            case "system":
                prompt = turns.strand.loom.store(text_of(message))
            case "user":
                content = turns.strand.loom.store(text_of(message))
                turns.strand.told(None, turns.source, content=content)
            case "assistant":
                _turn(turns, message, place == len(messages) - 1)
            case "tool":
                _answer(turns, message, injections)
            case _:
                odd += 1
    return prompt, odd


def _turn(turns: Turns, message: Any, last: bool) -> None:
    calls = calls_of(message)
    turns.turn(message, decision=Decision(type="stop" if last and not calls else "act"))
    for call in calls:
        turns.call(call)


def _answer(turns: Turns, message: Any, injections: dict[str, str]) -> None:
    """Add a tool's result; one that carries an injected text flows into the turn that reads it."""
    text = text_of(message)
    id = text_at(message, "tool_call_id") or text_at(message, "tool_call", "id")
    carried = _carried(text, injections)
    attrs = known(error=value_at(message, "error"), injections=carried or None)
    tool = text_at(message, "tool_call", "function")
    number = turns.answer(text, id, tool=tool, attrs=attrs, trusted=False if carried else None)
    if carried:
        turns.strand.hear(number, "safety_flow")


def _carried(text: str, injections: dict[str, str]) -> list[str]:
    """Names of the injected texts that a text contains."""
    if not injections:
        return []
    plain = _plain(text)
    return [name for name, injected in injections.items() if injected in plain]


def _injections(document: Any) -> dict[str, str]:
    """The injected texts by vector, reduced to their letters."""
    texts = record_at(document, "injections").items()
    plain = {name: _plain(text) for name, text in texts if isinstance(text, str)}
    return {name: text for name, text in plain.items() if text}


def _plain(text: str) -> str:
    return _NOT_LETTERS.sub("", text)


def _header(document: Any, file: Path) -> dict[str, Any]:
    suite, user = text_at(document, "suite_name"), text_at(document, "user_task_id")
    task = user or text_at(document, "task_id")
    injection, attack = text_at(document, "injection_task_id"), text_at(document, "attack_type")
    parts = (suite, text_at(document, "pipeline_name"), task, attack, injection)
    version = text_at(document, "agentdojo_package_version")
    as_user = {"injection_task_as_user_task": True} if (user or "").startswith("injection_") else {}
    fields = document if isinstance(document, dict) else {}
    rest = known(**{name: value for name, value in fields.items() if name != "messages"})
    return {
        "id": text_at(document, "run_id") or "/".join(filter(None, parts)) or file.stem,
        "task": "/".join(filter(None, (suite, task))) or "unknown",
        "system": f"agentdojo {version}" if version else "agentdojo",
        "scores": tuple(_scores(document)),
        "attrs": {**rest, **as_user, "format": "agentdojo"},
    }


def _scores(document: Any) -> Iterator[Score]:
    """The outcomes; a run that broke has none, whatever the harness wrote."""
    if value_at(document, "error") is not None:
        return
    outcomes = (flag_at(document, "utility"), flag_at(document, "evaluation", "utility"))
    useful = next((flag for flag in outcomes if flag is not None), None)
    if useful is not None:
        yield Score(channel="utility", value=float(useful))
    attacked = text_at(document, "injection_task_id") is not None
    won = flag_at(document, "security")
    if attacked and won is not None:
        yield Score(channel="attack_success", value=float(won), kind="cost")
    safe = flag_at(document, "evaluation", "security")
    if safe is not None:
        yield Score(channel="security", value=float(safe), kind="metric")
