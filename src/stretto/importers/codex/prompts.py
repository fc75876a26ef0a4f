"""Codex rollouts: what was put into a thread by a person, or by its parent.

The harness records a prompt twice, as an item of the user's role and as an event, and adds items of
its own under that role. Where a thread has no such event, the items are all that tells of prompts.
"""

from collections.abc import Sequence

from stretto.importers.codex.records import Entry
from stretto.importers.codex.turns import said_in, texts_in

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
    "# AGENTS.md instructions",
    "Warning: ",
)
"""How the harness begins what it adds under the role of the user."""


def prompts_in(entries: Sequence[Entry]) -> dict[int, str]:
    """Prompts by line: as events say them; where none does, as items do."""
    told = {entry.line: text for entry in entries if (text := said_in(entry)) is not None}
    return told or {entry.line: text for entry in entries if (text := typed_in(entry)) is not None}


def typed_in(entry: Entry) -> str | None:
    """The words of an item that somebody may have typed; `None` where the harness wrote it."""
    is_item = entry.kind == "response_item" and entry.what == "message"
    if not is_item or entry.payload.get("role") != "user":
        return None
    text = "".join(texts_in(entry))
    return text if text.strip() and not text.lstrip().startswith(CONTEXT) else None
