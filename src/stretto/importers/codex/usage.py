"""Codex rollouts: tokens of each model call.

Prompt tokens are stated with the cached ones in them. From 0.148 on (seen in 0.171) a
`token_usage_record` follows every call. Before, `token_count` says the totals of the thread and the
last call; it comes after the tools have answered, and it comes again, unchanged, whenever the rate
limits are news. Some programs write the last call only.
"""

from typing import Any

from stretto.importers.codex.records import Entry
from stretto.importers.kit.fields import count_at, record_at
from stretto.trace import Tokens

Usage = dict[str, Any]


class Counter:
    """Tells the counts of new calls from repeated ones."""

    def __init__(self, total: Usage | None) -> None:
        """`total` is the thread's total before its first record."""
        self._total = total or {}
        self._last: Usage = {}

    def usage(self, entry: Entry, is_awaited: bool) -> Usage | None:
        """Usage of the call that a `token_count` is news of; `None` where it is no news.

        `is_awaited` says that a call was sampled since the last count: without a total, the same
        numbers are then those of that call.
        """
        total = record_at(entry.payload, "info", "total_token_usage")
        last = record_at(entry.payload, "info", "last_token_usage")
        is_news = self._grew(total) if total else is_awaited or last != self._last
        self._total, self._last = total or self._total, last or self._last
        return last if last and is_news else None

    def _grew(self, total: Usage) -> bool:
        spent = count_at(total, "total_tokens")
        is_more = spent is None or spent != count_at(self._total, "total_tokens")
        return is_more and total != self._total


def tokens_of(usage: Usage | None) -> Tokens | None:
    """Tokens of a call; cached prompt tokens are counted once."""
    if not usage:
        return None
    prompt = count_at(usage, "input_tokens")
    read = count_at(usage, "cached_input_tokens")
    write = count_at(usage, "cache_write_input_tokens")
    fresh = None if prompt is None else prompt - (read or 0) - (write or 0)
    doubtful = fresh is not None and fresh < 0
    return Tokens(
        input=max(0, fresh) if fresh is not None else None,
        output=count_at(usage, "output_tokens"),
        cache_read=read,
        cache_write=write,
        unreliable=("input",) if doubtful else (),
    )
