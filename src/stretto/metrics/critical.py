"""E2: the critical path, the chain of causes that no wider team could have run faster."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stretto.columns import Columns, Floats, Ints, sums_by
from stretto.errors import StrettoError
from stretto.graph import beside_time, longest_chains, topological_order
from stretto.metrics.intervals import DECIMALS, TRANSIT, Activities, activities
from stretto.metrics.measure import (
    Measure,
    all_unknown,
    by_evidence,
    join,
    lower_bound,
    no_bound,
    unknown,
)
from stretto.metrics.parallelism import NO_WORK, chain_seconds, total_work
from stretto.metrics.placing import placed
from stretto.trace import Evidence, Trace

SHARES = {
    "critical_turn_share": ("decision",),
    "critical_tool_share": ("tool_call",),
    "critical_transit_share": TRANSIT,
}
"""Measure to the kinds whose time on the path it is the share of."""

NAMES = ("span", "critical_events", "critical_agents", *SHARES)


class CriticalEvent(Struct, frozen=True):
    """An event on the critical path."""

    event: str
    agent: str
    kind: str
    seconds: float
    """What it adds to the path; the time that it ran beside the next one is left out."""


class CriticalPath(Struct, frozen=True):
    """The heaviest chain of causes of a trace."""

    seconds: float | None
    """The span; `None` where it cannot be known."""
    how: Evidence = "derived"
    """`heuristic` where an edge on it is a guess."""
    reason: str = ""
    """Why it is unknown, or what is missing from it."""
    events: tuple[CriticalEvent, ...] = ()
    """First to last."""
    by_kind: Mapping[str, float] = {}
    """Share of the span that every event kind takes."""
    by_agent: Mapping[str, float] = {}
    """Share of the span that every agent takes."""


def critical_path(trace: Trace) -> CriticalPath:
    """The critical path with its events, and what share every kind and agent takes of it.

    The weight of an event is its seconds of work or transit. Where an effect began before its cause
    had ended, the time that both ran counts once, for the effect. Nothing is known where no turn
    or tool call has a duration, and in a trace whose causes form a loop; the reason names the loop.
    """
    work = activities(trace.columns)
    total = total_work(trace, work)
    if total.value is None:
        return CriticalPath(None, reason=total.reason)
    columns = trace.columns
    try:
        rows, seconds, guessed = _path(trace, work)
    except StrettoError as error:
        return CriticalPath(None, reason=error.what)
    events = trace.events
    steps = [(events[row], time) for row, time in zip(rows.tolist(), seconds.tolist(), strict=True)]
    return CriticalPath(
        float(seconds.sum()),
        by_evidence(guessed),
        _missing(columns, work, rows, total.reason),
        events=tuple(CriticalEvent(e.id, e.agent, e.kind, time) for e, time in steps),
        by_kind=_shares(columns.kind[rows], columns.kinds, seconds),
        by_agent=_shares(columns.agent[rows], columns.agents, seconds),
    )


def _shares(code: Ints, words: tuple[str, ...], seconds: Floats) -> dict[str, float]:
    total = seconds.sum()
    if not total:
        return {}
    parts = sums_by(code, seconds, len(words)) / total
    return {words[place]: float(parts[place]) for place in np.unique(code[seconds > 0])}


def critical(trace: Trace, work: Activities, total: Measure) -> dict[str, Measure]:
    """Span, and who and what is on the critical path; `total` is the work of the trace."""
    if total.value is None:
        return dict(all_unknown(NAMES, total.reason))
    try:
        rows, seconds, guessed = _path(trace, work)
    except StrettoError as error:
        return dict(all_unknown(NAMES, error.what))
    columns, span = trace.columns, float(seconds.sum())
    how, said = by_evidence(guessed), _missing(columns, work, rows, total.reason)
    reason = no_bound(said)
    on = seconds > 0
    counts = {
        "critical_events": float(on.sum()),
        "critical_agents": float(len(np.unique(columns.agent[rows[on]]))),
    }
    found = {"span": Measure(span, how, said)}
    found |= {name: Measure(value, how, reason) for name, value in counts.items()}
    for name, kinds in SHARES.items():
        part = float(seconds[columns.is_kind(*kinds)[rows]].sum())
        found[name] = Measure(part / span, how, reason) if span else unknown(NO_WORK)
    letters, lost = _unknown_transit(columns)
    if letters and lost == letters:
        found["critical_transit_share"] = unknown("no message has a duration")
    return found


def _unknown_transit(columns: Columns) -> tuple[int, int]:
    """How many messages and delegations there are, and how many have no duration."""
    letters = columns.is_kind(*TRANSIT)
    return int(letters.sum()), int((letters & np.isnan(columns.duration)).sum())


def _missing(columns: Columns, work: Activities, rows: Ints, of_work: str) -> str:
    """What is missing from the span; it is no bound where times on the path are.

    A message that took longer could have put its chain in the place of this one.
    """
    letters, silent = _unknown_transit(columns)
    said = join(
        of_work,
        lower_bound(f"{silent} of {letters} messages have no duration" if silent else ""),
    )
    lost = int(np.isnan(work.begin[rows]).sum())
    note = f"{lost} of {len(rows)} events on the critical path have no time"
    if work.stated.any():  # they may hold pauses
        said = no_bound(said)
    return join(no_bound(said), note) if lost else said


def _path(trace: Trace, work: Activities) -> tuple[Ints, Floats, bool]:
    """Rows of the critical path, the seconds each adds, and whether the way there is a guess.

    Raises `StrettoError` where the causes form a loop.
    """
    columns = trace.columns
    weight = chain_seconds(trace, work)
    order = topological_order(trace)
    begin = placed(order, columns.parents, work.begin, weight)
    beside = beside_time(columns.parents, begin, weight)
    total, best = longest_chains(order, columns.parents, weight, beside)
    if not len(total):
        return np.zeros(0, dtype=np.int64), np.zeros(0), False
    path = [len(total) - 1 - int(np.argmax(total[::-1]))]
    while best[path[-1]] >= 0:
        path.append(best[path[-1]])
    rows = np.array(path[::-1], dtype=np.int64)
    seconds = np.diff(np.append(total[rows] - weight[rows], total[rows[-1]]))
    guessed = _guessed(columns, rows) or bool(work.queued[rows].any())
    return rows, np.maximum(seconds.round(DECIMALS), 0.0), guessed


def _guessed(columns: Columns, rows: Ints) -> bool:
    """Whether any step of a path rests on guesses alone."""
    before = np.full(len(columns.start), -1)
    before[rows[1:]] = rows[:-1]
    parents = columns.parents
    used = before[parents.target] == parents.source
    known = np.zeros(len(before), dtype=bool)
    known[parents.target[used & ~columns.parents.is_guess]] = True
    return not known[rows[1:]].all()
