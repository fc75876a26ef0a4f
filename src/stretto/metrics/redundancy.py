"""E3: what was said or done before: calls and messages that repeat, exactly or nearly."""

import numpy as np

from stretto.columns import UNKNOWN, Columns, Flags, Ints
from stretto.metrics.intervals import TRANSIT
from stretto.metrics.measure import Measure, by_evidence, join, lower_bound, unknown, unseen
from stretto.metrics.said import Said, said, texts_of
from stretto.metrics.shingles import near_duplicates
from stretto.trace import Trace

MIX = np.int64(0x1E3779B97F4A7C15)


def redundancy(trace: Trace) -> dict[str, Measure]:
    """Share of tool calls and messages that repeat an earlier one, and repeated actions.

    A call repeats an earlier one of the same tool with the same arguments, by any agent; a call
    that just waits is left out. A message repeats an earlier one to the same receiver.
    """
    columns = trace.columns
    calls = columns.is_kind("tool_call") & ~columns.waiting
    letters = columns.is_kind(*TRANSIT)
    told = said(trace, calls)
    return {
        **_repeats(trace, "tool", calls, columns.tool.code, told),
        **_repeats(trace, "message", letters, columns.to.code, told),
        "repeated_actions": _repeated_actions(columns, calls, told, unseen(trace)),
    }


def _repeats(trace: Trace, name: str, wanted: Flags, group: Ints, told: Said) -> dict[str, Measure]:
    names = f"{name}_redundancy", f"{name}_near_redundancy"
    what = "tool calls" if name == "tool" else "messages"
    rows = np.flatnonzero(wanted & told.known)
    if not len(rows):
        why = f"no {what} have a content" if wanted.any() else f"there are no {what}"
        return dict.fromkeys(names, unknown(why))
    silent = int(wanted.sum()) - len(rows)
    lost = f"{silent} of {int(wanted.sum())} {what} have no content" if silent else ""
    reason = join(lost, unseen(trace))
    _, first = np.unique(_pair(told, rows, group[rows]), return_index=True)
    exact = 1 - len(first) / len(rows)
    near = _near(trace, told, np.sort(rows[first]), group, len(rows), reason)
    return dict(zip(names, (Measure(exact, "derived", reason), near), strict=True))


def _pair(told: Said, rows: Ints, group: Ints) -> Ints:
    """A number for the group and the content of every row: equal for equal ones."""
    return told.content[rows] ^ (group + 1) * MIX


def _near(trace: Trace, told: Said, rows: Ints, group: Ints, count: int, reason: str) -> Measure:
    """Share of `count` events whose text repeats; `rows` are the first of each text and group."""
    _, first, text = np.unique(told.content[rows], return_index=True, return_inverse=True)
    by_record = np.argsort(first)  # texts are fetched in the order in which they lie in memory
    found = texts_of(trace, [trace.events[row] for row in rows[first[by_record]].tolist()])
    texts = [each for each in found if each is not None]
    if len(texts) < len(found):
        return unknown(f"{len(found) - len(texts)} of {len(found)} texts were dropped")
    place = np.empty_like(by_record)
    place[by_record] = np.arange(len(by_record))
    again = near_duplicates(texts, place[text], group[rows])
    return Measure(1 - int((~again).sum()) / count, "heuristic", reason)


def _repeated_actions(columns: Columns, calls: Flags, told: Said, hidden: str) -> Measure:
    """Calls by which an agent asks a tool what it asked before, and gets the same answer as then.

    Each is held against the last one with these arguments. `hidden` says what the trace leaves out,
    if anything.
    """
    if not calls.any():
        return unknown("there are no tool calls")
    answer, guessed = _answers(columns)
    rows = np.flatnonzero(calls & told.known & (answer != UNKNOWN))
    if not len(rows):
        return unknown("no call has both arguments and an answer that are known")
    unclear = int(calls.sum()) - len(rows)
    lost = f"{unclear} of {int(calls.sum())} calls have no known arguments or answer"
    key = _pair(told, rows, columns.tool.code[rows])
    answered = columns.content[answer[rows]]
    order = np.lexsort((columns.start[rows], key, columns.agent[rows]))
    same = np.ones(max(len(rows) - 1, 0), dtype=bool)
    for column in (key, columns.agent[rows], answered):
        same &= column[order][1:] == column[order][:-1]
    reason = join(lost, hidden) if unclear else lower_bound(hidden)
    return Measure(float(same.sum()), by_evidence(guessed), reason)


def _answers(columns: Columns) -> tuple[Ints, bool]:
    """The row of the answer of every call, and whether one is known by a guess."""
    parents = columns.parents
    links = columns.is_kind("tool_call")[parents.source]
    links &= (columns.is_kind("tool_result") & columns.has_content)[parents.target]
    answer = np.full(len(columns.start), UNKNOWN)
    answer[parents.source[links][::-1]] = parents.target[links][::-1]  # of several, the first
    return answer, bool(columns.parents.is_guess[links].any())
