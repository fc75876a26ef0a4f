"""tau-bench: dialogues of a service agent with a simulated user, and the reward.

Source: `sierra-research/tau-bench`, `EnvRunResult` (`tau_bench/types.py`) as `run.py` writes it.
The user is another model, so it is an agent here and not a person. A run that broke has
`info.error` and a reward of 0 that nobody scored.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stretto.errors import StrettoError
from stretto.importers.kit.fields import (
    known,
    list_at,
    number_at,
    record_at,
    text_at,
    value_at,
)
from stretto.importers.kit.heads import Head
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.messages import Call, Turns, calls_of, text_of
from stretto.importers.kit.reading import read_document
from stretto.importers.kit.report import Imported, Likeness, report_of
from stretto.importers.kit.strand import Strand, trace_of
from stretto.importers.plan import one_by_one as sessions
from stretto.trace import Agent, Decision, Score, Trace

__all__ = ["import_files", "recognise", "sessions"]

FIELDS = ("task_id", "reward", "info", "traj")
_ACTION = re.compile(r"\nAction:\s*(\{.*\})\s*\Z", re.DOTALL)
_OUTPUT = "API output: "
"""How a result begins where the agent's calls are text (the `react` and `act` agents)."""
_TALK = "respond"
"""The action that is no tool: words to the user."""
_END = "###STOP###"

PAPERS = ("tau-bench2024",)


class Dialogue(NamedTuple):
    """A woven dialogue."""

    loom: Loom
    agents: tuple[Agent, ...]
    numbers: list[int | None]
    """The event of every message; nothing for the system prompt."""


def recognise(head: Head) -> Likeness:
    """Look for the fields of a result, in a list or alone."""
    document = head.document
    first = document if isinstance(document, dict) else value_at(document, 0)
    if not isinstance(first, dict):
        return Likeness(0.0)
    missing = [name for name in FIELDS if name not in first]
    if "traj" not in first:
        is_near = missing == ["traj"] and isinstance(first["info"], dict)
        return Likeness(0.3, 'results with no "traj"') if is_near else Likeness(0.0)
    if missing:
        return Likeness(0.4, f'a "traj" without "{missing[0]}"')
    if isinstance(document, dict) and "index" in record_at(first, "traj", 0):
        return Likeness(0.45, "its messages are counted, as AgentRx does it")
    return Likeness(1.0)


def import_files(files: Sequence[Path]) -> Imported:
    """Read one trace a result.

    Raises `StrettoError` for a file without a result.
    """
    traces: list[Trace] = []
    reports = []
    for file in files:
        document, warnings = read_document(file)
        results = list_at(document) if isinstance(document, list) else [document]
        found = [
            trace_of_result(result, str(file)) for result in results if "traj" in record_at(result)
        ]
        if not found:
            raise StrettoError('holds no "traj"', str(file), "is it a result of tau-bench?")
        skipped = {"other": len(results) - len(found)} if len(found) < len(results) else {}
        traces += found
        reports.append(
            report_of(str(file), found, records=len(results), skipped=skipped, warnings=warnings)
        )
    return Imported(tuple(traces), tuple(reports))


def trace_of_result(result: Any, file: str) -> Trace:
    """The trace of one result."""
    woven = dialogue(list_at(result, "traj"), file)
    return trace_of(woven.loom, woven.agents, **header(result, file))


def header(result: Any, file: str) -> dict[str, Any]:
    """The fields of a trace that a result gives beside its messages."""
    task, trial = value_at(result, "task_id"), value_at(result, "trial")
    user = text_at(result, "info", "task", "user_id")
    error = text_at(result, "info", "error")
    rest = known(**{name: value for name, value in record_at(result).items() if name != "traj"})
    return {
        "id": "/".join(str(part) for part in (Path(file).stem, task, trial) if part is not None),
        "task": "/".join(str(part) for part in (user, task) if part is not None) or "unknown",
        "system": "tau-bench",
        "scores": () if error else tuple(_scores(result)),
        "attrs": {**rest, **known(error=error), "format": "tau-bench"},
    }


def dialogue(messages: Sequence[Any], file: str) -> Dialogue:
    """Weave the messages of the agent (`0`) and of the simulated user (`1`)."""
    loom = Loom(None)
    source = Source(file, 1)
    agent, user = Turns(Strand(loom, "0"), source), Turns(Strand(loom, "1"), source)
    numbers: list[int | None] = []
    prompt = None
    for message in messages:
        if text_at(message, "role") == "system":
            prompt = loom.store(text_of(message))
            numbers.append(None)
        else:
            numbers.append(_add(message, agent, user))
    agents = (
        Agent(id="0", name="agent", role="assistant", attrs=known(system_prompt=prompt)),
        Agent(id="1", name="user", role="user"),
    )
    return Dialogue(loom, agents, numbers)


def _add(message: Any, agent: Turns, user: Turns) -> int:
    role, text = text_at(message, "role"), text_of(message)
    if role == "assistant":
        return _answer(message, agent, user)
    if role in ("tool", "function"):
        return agent.answer(text, text_at(message, "tool_call_id"), tool=text_at(message, "name"))
    if text.startswith(_OUTPUT):
        return agent.answer(text.removeprefix(_OUTPUT))
    return _say(message, text, user, agent, "stop" if _END in text else "communicate")


def _answer(message: Any, agent: Turns, user: Turns) -> int:
    """A turn of the agent: calls, or words to the user."""
    calls = calls_of(message) or list(_calls_in(text_of(message)))
    if calls and calls[0].name != _TALK:
        number = agent.turn(message)
        for call in calls:
            agent.call(call)
        return number
    words = _words(calls[0]) if calls else text_of(message)
    return _say(message, words, agent, user, "communicate")


def _say(message: Any, words: str, speaker: Turns, listener: Turns, type: str) -> int:
    number = speaker.turn(message, decision=Decision(type=type))
    loom = speaker.strand.loom
    said = speaker.strand.act(
        "message", None, speaker.source, to=listener.strand.agent, content=loom.store(words)
    )
    listener.strand.hear(said, "message")
    return number


def _calls_in(text: str) -> Iterator[Call]:
    """The action that an agent without tool calls writes as JSON."""
    match = _ACTION.search(text)
    if match is None:
        return
    try:
        action = msgspec.json.decode(match[1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if text_at(action, "name"):
        yield from calls_of({"tool_calls": [action]})


def _words(call: Call) -> str:
    try:
        return text_at(msgspec.json.decode(call.arguments), "content") or call.arguments
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return call.arguments


def _scores(result: Any) -> Iterator[Score]:
    """The reward, its parts, and what the simulated user cost."""
    reward = number_at(result, "reward")
    if reward is not None:
        yield Score(channel="reward", value=reward)
    for part in ("r_actions", "r_outputs"):
        value = number_at(result, "info", "reward_info", "info", part)
        if value is not None:
            yield Score(channel=part, value=value, kind="metric")
    cost = number_at(result, "info", "user_cost")
    if cost is not None:
        yield Score(channel="user_cost", value=cost, kind="cost", agent="1")
