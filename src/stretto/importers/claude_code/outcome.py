"""Claude Code transcripts: what a stream of `--output-format stream-json` says at its end.

A process that is asked several times writes a `result` each time, and goes on counting: the last
one counts for all.
"""

from math import inf
from typing import Any

import msgspec

from stretto.importers.claude_code.records import Record
from stretto.importers.claude_code.threads import Session
from stretto.importers.kit.fields import known
from stretto.trace import Score


def ended(session: Session) -> dict[str, Any] | None:
    """How a session ended, as its last record says; `None` where it has no such record."""
    record = _result(session)
    if record is None:
        return None
    return known(
        subtype=record.subtype,
        is_error=record.is_error,
        num_turns=record.num_turns,
        duration_ms=record.duration_ms,
        model_usage=_decoded(record),
    )


def scores_of(session: Session) -> tuple[Score, ...]:
    """What a session cost, where its last record says so."""
    record = _result(session)
    cost = record.total_cost_usd if record is not None else None
    if cost is None or not 0 <= cost < inf:
        return ()
    return (Score(channel="cost_usd", value=cost, kind="cost"),)


def _result(session: Session) -> Record | None:
    main = [thread for thread in session.threads if thread.source == "main"]
    records = (e.record for thread in main for e in reversed(thread.entries))
    return next((record for record in records if _is_result(record)), None)


def _is_result(record: Record) -> bool:
    return record.type == "result" and record.stream_session is not None


def _decoded(record: Record) -> dict[str, Any] | None:
    """Tokens and price by model."""
    try:
        return msgspec.json.decode(record.model_usage, type=dict[str, Any] | None)
    except (msgspec.DecodeError, RecursionError):
        return None
