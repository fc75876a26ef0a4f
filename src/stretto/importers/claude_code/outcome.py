"""Claude Code transcripts: what a stream of `--output-format stream-json` says at its end.

A process that is asked several times writes a `result` each time, and goes on counting. A session
that is resumed is another process, which begins at nothing: its counter is less than the last one.
"""

from math import fsum, inf
from typing import Any

import msgspec

from stretto.importers.claude_code.records import Record
from stretto.importers.claude_code.threads import Session
from stretto.importers.kit.fields import known, number_at, record_at
from stretto.trace import Score

COUNTED = (
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "webSearchRequests",
    "costUSD",
)
"""What is counted of each model; other fields, as the size of its context, are the same always."""


def ended(session: Session) -> dict[str, Any] | None:
    """How a session ended, as its last record says; `None` where it has no such record."""
    processes = _processes(session)
    if not processes:
        return None
    record = processes[-1][-1]
    return known(
        subtype=record.subtype,
        is_error=record.is_error,
        num_turns=record.num_turns,
        duration_ms=record.duration_ms,
        model_usage=_usage(processes),
    )


def scores_of(session: Session) -> tuple[Score, ...]:
    """What all processes of a session cost, where its last record says what that one did."""
    processes = _processes(session)
    if not processes or _cost(processes[-1][-1]) is None:
        return ()
    costs = (max(_cost(record) or 0.0 for record in process) for process in processes)
    return (Score(channel="cost_usd", value=fsum(costs), kind="cost"),)


def _processes(session: Session) -> list[list[Record]]:
    """The results of each process: another one has begun where the counter falls."""
    processes: list[list[Record]] = []
    peak = 0.0
    for record in _results(session):
        cost = _cost(record)
        if not processes or (cost is not None and cost < peak):
            processes.append([])
            peak = 0.0
        processes[-1].append(record)
        peak = max(peak, cost or 0.0)
    return processes


def _results(session: Session) -> list[Record]:
    """The results of the first thread that has any."""
    main = (thread for thread in session.threads if thread.source == "main")
    found = ([e.record for e in thread.entries if _is_result(e.record)] for thread in main)
    return next(filter(None, found), [])


def _is_result(record: Record) -> bool:
    return record.type == "result" and record.stream_session is not None


def _cost(record: Record) -> float | None:
    cost = record.total_cost_usd
    return cost if cost is not None and 0 <= cost < inf else None


def _usage(processes: list[list[Record]]) -> dict[str, Any] | None:
    """Tokens and price by model, of all processes; `None` where one does not say its own."""
    whole: dict[str, Any] = {}
    for process in processes:
        stated = _decoded(process[-1])
        if stated is None:
            return None
        whole |= {name: _sum(whole.get(name), usage) for name, usage in stated.items()}
    return whole


def _sum(before: Any, usage: Any) -> Any:
    """What a model used, with what earlier processes did."""
    sums: dict[str, float] = {}
    for name in COUNTED:
        one, other = number_at(before, name), number_at(usage, name)
        if one is not None and other is not None:
            sums[name] = record_at(before)[name] + record_at(usage)[name]
    return record_at(before) | record_at(usage) | sums if sums else usage


def _decoded(record: Record) -> dict[str, Any] | None:
    """Tokens and price by model."""
    try:
        return msgspec.json.decode(record.model_usage, type=dict[str, Any] | None)
    except (msgspec.DecodeError, RecursionError):
        return None
