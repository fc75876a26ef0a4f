"""Codex rollouts: what arrives as a message but was written by no person."""

import re

from msgspec import Struct

from stretto.importers.codex.calls import readable
from stretto.importers.codex.facts import Status, status_in
from stretto.importers.codex.records import Entry
from stretto.importers.codex.turns import decoded, letter_in, texts_in
from stretto.importers.kit.fields import list_at, text_at, value_at

_NEWS = re.compile(r"<subagent_notification>\s*(.*?)\s*</subagent_notification>", re.DOTALL)
_HEAD = re.compile(r"Message Type: *(\w+)\n(?:[A-Z][\w ]*: *[^\n]*\n)*?Payload:\n?")


class Mail(Struct, frozen=True):
    """A message between agents, as the receiver gets it (v2)."""

    author: str
    type: str
    """`NEW_TASK`, `MESSAGE`, `FINAL_ANSWER`; empty where it does not say."""
    text: str | None
    """`None` where it is encrypted."""


def news_in(text: str) -> list[tuple[str, Status]]:
    """Agents and their statuses, of a message that tells about them."""
    found: list[tuple[str, Status]] = []
    for inside in _NEWS.findall(text):
        told = decoded(inside)
        name = text_at(told, "agent_id") or text_at(told, "agent_path")
        status = status_in(value_at(told, "status"))
        if name is not None and status is not None:
            found.append((name, status))
    return found


def mail_in(entry: Entry) -> Mail | None:
    """A message of another agent (v2); `None` where it is none, or does not say whose."""
    letter = letter_in(entry) if entry.what == "message" else None
    if entry.kind == "inter_agent_communication":
        letter = entry.payload
    if letter is not None:
        kind = "NEW_TASK" if letter.get("trigger_turn") is True else "MESSAGE"
        author = text_at(letter, "author")
        return None if author is None else Mail(author, kind, readable(text_at(letter, "content")))
    author = text_at(entry.payload, "author") if entry.what == "agent_message" else None
    return None if author is None else _mail(author, entry)


def _mail(author: str, entry: Entry) -> Mail:
    text = "".join(texts_in(entry))
    head = _HEAD.match(text)
    body = text[head.end() :] if head else text
    is_sealed = any(
        text_at(part, "type") == "encrypted_content" for part in list_at(entry.payload, "content")
    )
    return Mail(author, head[1] if head else "", None if is_sealed else readable(body or None))
