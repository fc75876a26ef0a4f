"""Trajectories of mini-SWE-agent: messages, with actions in their text or as tool calls."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stretto.importers.kit.fields import (
    count_at,
    epoch,
    known,
    list_at,
    number_at,
    record_at,
    text_at,
    value_at,
)
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.messages import Call, Turns, calls_of, text_of
from stretto.importers.kit.strand import Strand, trace_of
from stretto.importers.swe_agent.steps import cost_scores, exit_attrs
from stretto.trace import Agent, Decision, Tokens, Trace

_ACTION = re.compile(
    r"(?:```(?:mswea_bash_command|bash)\s*\n|<mswea_bash_command>)(.*?)"
    r"(?:\n?```|</mswea_bash_command>)",
    re.DOTALL,
)
_FORMAT = "mini-swe-agent"
_LOOKED_AT = 6
"""Messages by which a bare list is told from other lists of messages."""


def is_mini(document: Any) -> bool:
    """Whether a document is a mini trajectory; a bare list must show actions and their results."""
    if isinstance(document, dict):
        named = (text_at(document, "trajectory_format") or "").startswith(_FORMAT)
        info = record_at(document, "info")
        told = any(name in info for name in ("mini_version", "exit_status"))
        return named or (told and text_at(document, "messages", 0, "role") is not None)
    messages = list_at(document)[:_LOOKED_AT]
    roles = [text_at(message, "role") for message in messages]
    if roles[:3] != ["system", "user", "assistant"]:
        return False
    return _ACTION.search(text_of(messages[2])) is not None


def trace_of_mini(document: Any, file: str) -> tuple[Trace, dict[str, int]]:
    """The trace, and how many messages are of no known role."""
    messages = list_at(document) if isinstance(document, list) else list_at(document, "messages")
    times = [_time(message) for message in messages]
    loom = Loom(min((time for time in times if time is not None), default=None))
    turns = Turns(Strand(loom, "0"), Source(file, 1))
    model = text_at(document, "info", "config", "model", "model_name")
    prompt, odd = _weave(turns, messages, times, model)
    agent = Agent(id="0", name="mini", model=model, attrs=known(system_prompt=prompt))
    trace = trace_of(loom, [agent], **_header(loom, document, file))
    return trace, {"message": odd} if odd else {}


def _header(loom: Loom, document: Any, file: str) -> dict[str, Any]:
    info = record_at(document, "info")
    version = text_at(info, "mini_version")
    name = text_at(document, "instance_id") or Path(file).name.partition(".")[0]
    rest = known(**{field: value for field, value in info.items() if field != "submission"})
    return {
        "id": name,
        "task": name,
        "system": f"mini-swe-agent {version}" if version else "mini-swe-agent",
        "scores": tuple(cost_scores(info)),
        "attrs": {
            **rest,
            **exit_attrs(info),
            **known(
                submission=loom.store(text_at(info, "submission")),
                started=loom.origin and loom.origin.isoformat(),
            ),
            "format": "swe-agent",
            "evidence": {"decision.start": "derived", "decision.duration": "derived"},
        },
    }


def _weave(
    turns: Turns, messages: Sequence[Any], times: Sequence[datetime | None], model: str | None
) -> tuple[str | None, int]:
    """Add all messages; return the system prompt, and how many are of no known role.

    `model` is that of the run; a message names its own where several take turns.
    """
    prompt, odd = None, 0
    before: datetime | None = None
    for place, (message, time) in enumerate(zip(messages, times, strict=True)):
        role = text_at(message, "role")
        if role == "system":
            prompt = turns.strand.loom.store(text_of(message))
        elif role == "assistant":
            own = text_at(message, "model_name")
            attrs = known(model=own if own != model else None)
            _turn(turns, message, before, time, place == len(messages) - 1, attrs)
        elif role in ("user", "tool") and turns.strand.latest is not None:
            turns.answer(
                text_of(message), text_at(message, "tool_call_id"), time, attrs=_extra(message)
            )
        elif role == "user":
            content = turns.strand.loom.store(text_of(message))
            turns.strand.told(time, turns.source, content=content)
        else:
            odd += 1
        before = time
    return prompt, odd


def _turn(
    turns: Turns,
    message: Any,
    begun: datetime | None,
    ended: datetime | None,
    last: bool,
    attrs: dict[str, Any],
) -> None:
    """Add a turn and its actions; a message is stamped when the model has answered."""
    calls = calls_of(message) or _actions(message)
    timed = begun is not None and ended is not None and ended >= begun
    seconds = (ended - begun).total_seconds() if timed and begun and ended else None
    price = number_at(message, "extra", "cost")
    turns.turn(
        message,
        begun if timed else ended,
        decision=Decision(type="stop" if last and not calls else "act"),
        duration=seconds,
        tokens=_tokens(message),
        price=price if price is not None and price >= 0 else None,
        attrs=attrs,
    )
    for call in calls:
        turns.call(call, ended)


def _actions(message: Any) -> list[Call]:
    """The commands in a text, as fenced code."""
    stated = [text_at(action, "command") for action in list_at(message, "extra", "actions")]
    commands = [command for command in stated if command]
    return [Call(None, "bash", text) for text in commands or _ACTION.findall(text_of(message))]


def _tokens(message: Any) -> Tokens | None:
    usage = value_at(message, "extra", "response", "usage")
    prompt, output = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
    if prompt is None and output is None:
        return None
    cached = count_at(usage, "prompt_tokens_details", "cached_tokens")
    computed = None if prompt is None else max(0, prompt - (cached or 0))
    return Tokens(input=computed, output=output, cache_read=cached)


def _extra(message: Any) -> dict[str, Any]:
    return known(returncode=value_at(message, "extra", "returncode"))


def _time(message: Any) -> datetime | None:
    return epoch(number_at(message, "extra", "timestamp"))
