"""Where tokens, money and time went: one row an agent, role, kind, decision, tool, model or event.

Every column adds up over the rows to the measure of the whole trace: a child's turns are its own
and nobody else's, and what a return says that its agent took is not counted again.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from stretto.columns import UNKNOWN, Columns, Flags, Floats, Ints, sums_by
from stretto.errors import StrettoError, did_you_mean
from stretto.metrics.cost import turn_tokens
from stretto.metrics.intervals import Activities, activities
from stretto.metrics.keys import Keys, agent_keys, decisions, models, of_agents
from stretto.metrics.measure import by_evidence, join, unseen
from stretto.metrics.prices import Priced, Prices, load_prices, price_events
from stretto.metrics.reach import made_by_turns
from stretto.metrics.waits import Times, marked_waits, times, waits_are_guessed
from stretto.trace import Evidence, Trace

LIVING = ("agent", "role", "model")
"""What agents have, so that waits and idle time can be told by it."""


class Row(Struct, frozen=True):
    """What one part of a trace took; every number is `None` where nothing is known of it."""

    key: str | None
    """The agent, role, kind, decision, tool, model or event; `None` for what has none."""
    events: int
    """How many events there are; for tools, how many calls."""
    input_tokens: float | None
    """Prompt tokens, cached or not."""
    output_tokens: float | None
    """Sampled tokens."""
    price: float | None
    """US dollars."""
    work: float | None
    """Seconds of turns and tool calls."""
    blocked: float | None
    """Seconds of blocking waits; known by agent, role and model only."""
    idle: float | None
    """Seconds in which the agents neither worked nor waited; by agent, role and model only."""
    token_share: float | None
    """Its share of all tokens that are known."""
    work_share: float | None
    """Its share of all work that is known."""
    how: Evidence = "derived"
    """`heuristic` where guessed edges decide who waited, or which turn made a call."""
    reason: str = ""
    """What is missing: sums are lower bounds then; shares, blocked and idle time are not."""


def breakdown(trace: Trace, by: str = "agent", prices: Prices | None = None) -> list[Row]:
    """Tokens, price and time of a trace in rows, in order of first appearance.

    Args:
        trace: Any trace.
        by: One of `agent`, `role`, `kind`, `decision`, `tool`, `model`, `event`. By tool, the
            tokens and the price of a turn are split evenly over the calls that it made.
        prices: A table of prices; the one that comes with Stretto where none is given.

    Raises:
        StrettoError: `by` is none of these.
    """
    if by not in KEYS and by != "tool":
        raise StrettoError(f'cannot break a trace down by "{by}"', trace.id, _hint(by))
    columns, work = trace.columns, activities(trace.columns)
    priced = price_events(trace, prices or load_prices())
    turns = _turns(columns, priced.dollars)
    lacks = _lacks(columns, turns, priced)
    if by == "tool":
        return _by_tool(trace, turns, lacks, work)
    code, words = KEYS[by](trace)
    sums = [_sums(code, len(words), column) for column in (*turns, _work(work))]
    counted = np.bincount(code, minlength=len(words))
    said = [(code, lack) for lack in (*lacks, _timeless(work))]
    if by not in LIVING:
        note = "" if by == "event" else unseen(trace)
        return _rows(words, counted, sums, _missing(len(words), *said), note=note)
    whose, _ = agent_keys(trace, by)  # a turn's own model has no life
    found, hidden = times(columns, work), _hidden(trace)
    said += [(whose[columns.agent], lack) for lack in _lacks_of_lives(columns, work, found)]
    missing = _missing(len(words), *said, (whose, hidden))
    lives = [_sums(whose, len(words), each) for each in (found.blocked, found.idle)]
    how = by_evidence(waits_are_guessed(columns))
    there = counted + np.bincount(whose[hidden.lost], minlength=len(words)) > 0
    return _rows(words, counted, sums, missing, lives, how, there=there)


def _turns(columns: Columns, dollars: Floats) -> Floats:
    """Prompt tokens, sampled tokens, price and all tokens of every event, a line each."""
    turns = np.stack([columns.input_tokens, columns.output_tokens, dollars, turn_tokens(columns)])
    turns[:2, ~columns.is_kind("decision")] = np.nan
    return turns


class _Lack(Struct, frozen=True):
    """Something that is not known of some events, or agents."""

    said: str
    among: Flags
    """Those of which it should be known."""
    lost: Flags

    def at(self, rows: Ints) -> "_Lack":
        """The same of these events."""
        return _Lack(self.said, self.among[rows], self.lost[rows])


def _lacks(columns: Columns, turns: Floats, priced: Priced) -> tuple[_Lack, ...]:
    """What turns do not say."""
    is_turn = columns.is_kind("decision")
    silent = np.isnan(turns[0]) | np.isnan(turns[1])
    low = "turns have one-hour cache writes priced as five-minute ones"
    return (
        _Lack("turns do not say all their tokens", is_turn, silent),
        _Lack("turns have no price", is_turn, np.isnan(turns[2])),
        _Lack(low, is_turn, priced.too_low),
    )


def _timeless(work: Activities) -> _Lack:
    return _Lack("durations are unknown", work.is_work, np.isnan(work.work))


def _lacks_of_lives(columns: Columns, work: Activities, found: Times) -> tuple[_Lack, ...]:
    """What is not known of when agents waited and idled, of those of which anything is."""
    living = ~np.isnan(found.idle)[columns.agent]
    delays, lost = marked_waits(columns)
    return (
        _Lack("events have no time", living, np.isnan(work.begin)),
        _Lack("waits have no known time", delays & living, lost),
    )


def _hidden(trace: Trace) -> _Lack:
    """The agents, not the events, whose own record an import did not find."""
    every = np.ones(len(trace.columns.agents), dtype=bool)
    hidden = [agent.attrs.get("transcript") is False for agent in trace.agents]
    lost = np.append(np.array(hidden, dtype=bool), ~every[len(hidden) :])
    return _Lack("agents left no transcript", every, lost)


def _missing(count: int, *lacks: tuple[Ints, _Lack]) -> list[str]:
    """What is not known, by key; each lack comes with the keys of its events or agents."""
    said = [""] * count
    for code, lack in lacks:
        every = np.bincount(code[lack.among], minlength=count)
        lost = np.bincount(code[lack.among & lack.lost], minlength=count)
        for key in np.flatnonzero(lost).tolist():
            said[key] = join(said[key], f"{lost[key]} of {every[key]} {lack.said}")
    return said


def _hint(by: str) -> str:
    return did_you_mean(by, (*KEYS, "tool")) or f"one of {', '.join((*KEYS, 'tool'))}"


def _work(work: Activities) -> Floats:
    return np.where(work.is_work, work.work, np.nan)


KEYS: dict[str, Callable[[Trace], Keys]] = {
    "agent": lambda trace: (trace.columns.agent, trace.columns.agents),
    "role": lambda trace: of_agents(trace, "role"),
    "model": models,
    "kind": lambda trace: (trace.columns.kind, trace.columns.kinds),
    "decision": decisions,
    "event": lambda trace: (np.arange(len(trace.events)), tuple(trace.columns.row)),
}


def _sums(code: Ints, count: int, values: Floats) -> Floats:
    """The sum of what is known by key; NaN where nothing is."""
    known = ~np.isnan(values)
    sums = sums_by(code[known], values[known], count)
    sums[np.bincount(code[known], minlength=count) == 0] = np.nan
    return sums


def _rows(
    words: Sequence[str | None],
    events: Ints,
    sums: Sequence[Floats],
    missing: Sequence[str],
    lives: Sequence[Floats] = (),
    how: Evidence = "derived",
    note: str = "",
    there: Flags | None = None,
) -> list[Row]:
    """The rows that are `there` (those with events where nobody says) or know anything.

    `note` is said of each.
    """
    taken, sampled, dollars, tokens, work = sums
    nothing = np.full(len(words), np.nan)
    lives = lives or (nothing, nothing)
    table = np.stack([taken, sampled, dollars, work, *lives, _share(tokens), _share(work)]).T
    cells = table.astype(object)
    cells[np.isnan(table)] = None
    there = events > 0 if there is None else there
    there = there | ~np.isnan(table).all(axis=1)  # of a turn, its calls have the rest
    rows = zip(words, events.tolist(), cells.tolist(), missing, there.tolist(), strict=True)
    return [
        Row(word, count, *line, how=how, reason=join(said, note))
        for word, count, line, said, is_there in rows
        if is_there
    ]


def _share(parts: Floats) -> Floats:
    total = np.nansum(parts)
    return parts / total if total else np.full(len(parts), np.nan)


def _by_tool(trace: Trace, turns: Floats, lacks: Sequence[_Lack], work: Activities) -> list[Row]:
    """By tool: its calls' own time and price, and an even part of the turns that made them."""
    columns = trace.columns
    parents, tool = columns.parents, columns.tool
    calls = (tool.code != UNKNOWN) & ~columns.is_kind("tool_result")
    made = made_by_turns(columns, calls)
    turn, call = parents.source[made], parents.target[made]
    fans = np.bincount(turn, minlength=len(columns.start))
    none = len(tool.words)
    code = np.where(calls, tool.code, none)
    whole = np.flatnonzero(fans == 0)  # all that made no call
    rows = np.concatenate([whole, turn])
    keys = np.concatenate([code[whole], tool.code[call]])
    weight = np.concatenate([np.ones(len(whole)), 1 / fans[turn]])
    sums = [_sums(keys, none + 1, column[rows] * weight) for column in turns]
    events = np.bincount(code[calls | (fans == 0)], minlength=none + 1)
    _, once = np.unique(rows * (none + 1) + keys, return_index=True)  # a turn and one tool
    said = ((keys[once], lack.at(rows[once])) for lack in lacks)
    missing = _missing(none + 1, *said, (code, _timeless(work)))
    seconds = _sums(code, none + 1, _work(work))
    how = by_evidence(bool((made & parents.is_guess).any()))
    words = [*tool.words, None]
    return _rows(words, events, [*sums, seconds], missing, how=how, note=unseen(trace))
