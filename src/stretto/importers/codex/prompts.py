"""Codex rollouts: what was put into a thread by a person, or by its parent.

The harness records a prompt twice, as an item of the user's role and as an event, and adds items of
its own under that role. Where a turn has no such event, the items are all that tells of prompts.
"""

from collections.abc import Sequence

from stretto.importers.codex.records import Entry
from stretto.importers.codex.turns import is_sampled, said_in, texts_in

CONTEXT = (
    "<environment_context",
    "<user_instructions",
    "<subagent_notification",
    "<turn_aborted",
    "<skill",
    "<user_shell_command",
    "<permissions instructions",
    "<collaboration_mode",
    "<codex_internal_context",
    "<hook_prompt",
    "<recommended_plugins",
    "<INSTRUCTIONS",
    "# AGENTS.md instructions",
    "Warning: ",
)
"""How the harness begins what it adds under the role of the user."""


def prompts_in(entries: Sequence[Entry]) -> dict[int, str]:
    """Prompts by line: as events say them; in turns where none does, as items do."""
    found: dict[int, str] = {}
    for turn in _turns(entries):
        told = {entry.line: text for entry in turn if (text := said_in(entry)) is not None}
        typed = {entry.line: text for entry in turn if (text := typed_in(entry)) is not None}
        found |= told or typed
    return found


def _turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The records of each turn of the user; it begins after an answer.

    From the first event on, only a record can begin one that says so: what an item holds that no
    event tells may be the harness's.
    """
    turns: list[list[Entry]] = [[]]
    is_answered = is_told = False
    for entry in entries:
        is_event = said_in(entry) is not None
        begins = is_event or (not is_told and typed_in(entry) is not None)
        if is_answered and (begins or entry.what == "task_started"):
            turns.append([])
            is_answered = False
        is_answered, is_told = is_answered or is_sampled(entry), is_told or is_event
        turns[-1].append(entry)
    return turns


def typed_in(entry: Entry) -> str | None:
    """The words of an item that somebody may have typed; `None` where the harness wrote it."""
    is_item = entry.kind == "response_item" and entry.what == "message"
    if not is_item or entry.payload.get("role") != "user":
        return None
    text = "".join(texts_in(entry))
    return text if text.strip() and not text.lstrip().startswith(CONTEXT) else None
