"""Claude Code transcripts: model calls, each put together from the records of its blocks.

The harness writes one record a content block, and every one repeats the usage of the whole message.
So a message is counted once, by its id and that of the request, with the largest count of sampled
tokens (the last, where equal).

That count is right only when it was written after the stream had ended. Versions differ: some
write what the API said when the stream *began* (1 to 72 tokens, whatever came after). A count is
taken as final if a record of the message has a `stop_reason`, or if the count grew from one record
to the next. Others are called unreliable in a stream (`--output-format stream-json`), which is
printed before a message ends, and where one of them in the session is impossible: fewer than one
token for 8 characters, twice the most that final counts show.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from stretto.importers.claude_code.records import Block, Entry, Message, Usage
from stretto.importers.claude_code.threads import Thread
from stretto.trace import Tokens

CHARACTERS_A_TOKEN = 8
"""More than any text has over a whole message."""

_iterations = msgspec.json.Decoder(list[dict[str, Any]])

Key = tuple[str, str]


class Turn(Struct, frozen=True, gc=False):
    """One call of the model."""

    id: str | None
    """Id of the message."""
    positions: tuple[int, ...]
    """Places of its records in the thread."""
    entries: tuple[Entry, ...]
    messages: tuple[Message, ...]
    blocks: tuple[Block, ...]
    """All content blocks in order."""

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped, where any record says so."""
        reasons = [message.stop_reason for message in self.messages if message.stop_reason]
        return reasons[-1] if reasons else None

    @property
    def model(self) -> str | None:
        """The model that was called; `None` for what the harness made up itself."""
        model = self.messages[0].model
        return None if model == "<synthetic>" else model

    @property
    def price(self) -> float | None:
        """US dollars, which only early versions state."""
        stated = [entry.record.cost_usd for entry in self.entries]
        return max((cost for cost in stated if cost is not None and cost >= 0), default=None)

    @property
    def is_synthetic(self) -> bool:
        """Whether the harness wrote it, as it does when the API fails."""
        flagged = self.entries[0].record.is_api_error_message
        return bool(flagged) or self.messages[0].model == "<synthetic>"

    @property
    def is_streamed(self) -> bool:
        """Whether it was printed while the model spoke."""
        return self.entries[0].record.stream_session is not None


def blocks_of(message: Message) -> list[Block]:
    """The content of a message as blocks."""
    content = message.content
    if isinstance(content, str):
        return [Block(type="text", text=content)]
    return [b if isinstance(b, Block) else Block(type="text", text=b) for b in content or ()]


def turns_of(
    thread: Thread, owners: dict[Key, tuple[str, str]], session: str
) -> tuple[list[Turn], list[Entry]]:
    """The turns of a thread in order, and records of turns that another thread already has.

    Args:
        thread: The records of one agent.
        owners: Session and thread that a message belongs to; filled as threads are read.
        session: The session of the thread.
    """
    groups: dict[Key, list[tuple[int, Entry, Message]]] = {}
    by_id: dict[str, Key] = {}
    copies: list[Entry] = []
    for position, entry in enumerate(thread.entries):
        message = entry.record.message
        if entry.record.type != "assistant" or not isinstance(message, Message):
            continue
        key = _key(message, entry, by_id)
        if owners.setdefault(key, (session, thread.key)) == (session, thread.key):
            groups.setdefault(key, []).append((position, entry, message))
        else:
            copies.append(entry)
    return [_turn(group) for group in groups.values()], copies


def _key(message: Message, entry: Entry, by_id: dict[str, Key]) -> Key:
    """Message and request; a record without a request joins the message that has its id."""
    request = entry.record.request_id
    if message.id is None:
        return ("", request or entry.record.uuid or str(entry.source))
    key = (message.id, request or "")
    if request is None:
        return by_id.setdefault(message.id, key)
    by_id.setdefault(message.id, key)
    return key


def _turn(group: Sequence[tuple[int, Entry, Message]]) -> Turn:
    positions, entries, messages = zip(*group, strict=True)
    blocks = tuple(block for message in messages for block in blocks_of(message))
    return Turn(messages[0].id, positions, entries, messages, blocks)


def writes_placeholders(turns: Iterable[Turn]) -> bool:
    """Whether a session has a count of sampled tokens that is impossible and not final."""
    return any(_is_impossible(turn) for turn in turns if not _is_final(turn))


def tokens_of(turn: Turn, placeholders: bool) -> Tokens | None:
    """Tokens of a turn; `placeholders` says whether counts that are not final are trusted."""
    usage = _usage(turn)
    if usage is None:
        return None
    doubtful = _is_impossible(turn) or (not _is_final(turn) and (placeholders or turn.is_streamed))
    return Tokens(
        input=_count(usage.input_tokens),
        output=_count(usage.output_tokens),
        cache_read=_count(usage.cache_read_input_tokens),
        cache_write=_count(usage.cache_creation_input_tokens),
        unreliable=("output",) if doubtful and not turn.is_synthetic else (),
    )


def side_calls(turn: Turn) -> list[dict[str, Any]]:
    """Calls of other models within a turn, as of an advisor; its tokens leave them out."""
    usage = _usage(turn)
    if usage is None or not bytes(usage.iterations):
        return []
    with suppress(msgspec.DecodeError, RecursionError):
        found = _iterations.decode(usage.iterations)
        return [each for each in found if each.get("type") != "message"]
    return []


def hour_writes(turn: Turn) -> int | None:
    """Those of the tokens written to a cache that are kept for an hour; `None` where none are."""
    usage = _usage(turn)
    created = usage.cache_creation if usage is not None else None
    kept = created.ephemeral_1h_input_tokens if created is not None else None
    return kept if kept is not None and kept > 0 else None


def _count(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _outputs(turn: Turn) -> list[int]:
    usages = [message.usage for message in turn.messages if message.usage is not None]
    return [usage.output_tokens for usage in usages if usage.output_tokens is not None]


def _usage(turn: Turn) -> Usage | None:
    usages = [message.usage for message in turn.messages if message.usage is not None]
    if len(usages) == 1:
        return usages[0]
    largest = max(_outputs(turn), default=None)
    ends = [usage for usage in usages if largest is None or usage.output_tokens == largest]
    return ends[-1] if ends else None


def _is_final(turn: Turn) -> bool:
    return turn.stop_reason is not None or len(set(_outputs(turn))) > 1


def _is_impossible(turn: Turn) -> bool:
    outputs = _outputs(turn)
    return bool(outputs) and _characters(turn) > CHARACTERS_A_TOKEN * max(outputs)


def _characters(turn: Turn) -> int:
    return sum(
        len(block.text or "") + len(block.thinking or "") + len(bytes(block.input))
        for block in turn.blocks
    )
