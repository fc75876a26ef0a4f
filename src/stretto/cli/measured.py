"""What `stretto measure` prints: measures, their parts, the critical path; also as plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stretto.cli.arguments import console, number
from stretto.cli.tables import fits, mark, plain_table, print_notes, print_table
from stretto.metrics import CriticalEvent, CriticalPath, Measure, Prices, Row
from stretto.trace import Trace

MOST_ROWS = 100
"""Parts of a trace that are shown to a person; `--json` has all."""

MOST_EVENTS = 30
"""Events of a critical path that are shown to a person; `--json` has all."""

LEAST = 12
"""Letters of a name of a part that stay on one line."""

UNITS = {
    **dict.fromkeys(("makespan", "work", "span", "blocked", "idle"), "s"),
    "price": "$",
}
NAMES = {"span": "span (critical path)"}

PARTS = {
    "input_tokens": "input\ntokens",
    "output_tokens": "output\ntokens",
    "token_share": "tokens\n%",
    "price": "price\n$",
    "work": "work\ns",
    "work_share": "work\n%",
    "blocked": "blocked\ns",
    "idle": "idle\ns",
}
"""Fields of a row of a breakdown to the heads of their columns."""

DECIMALS = 9
"""Of a second: what is nearer to 0 comes from rounding."""


def plain(found: Measure | CriticalPath, value: float | None) -> dict[str, Any]:
    """A struct as plain data; nobody knows how a `value` is known that is not."""
    said = structs.asdict(found)
    return said if value is not None else {**said, "how": None}


def plain_measures(measures: Mapping[str, Measure]) -> dict[str, dict[str, Any]]:
    """Measures by name as plain data."""
    return {name: plain(found, found.value) for name, found in measures.items()}


def show_measures(groups: Mapping[str, Mapping[str, Measure]], prices: Prices) -> None:
    """Print a row for every measure that is known, then what is not, reason by reason."""
    out, notes = console(), dict[str, int]()
    silent: dict[str, list[str]] = {}
    table = plain_table("measure", "value", "", "known how", left=("", "known how"))
    for group, measures in groups.items():
        known = {key: found for key, found in measures.items() if found.value is not None}
        for key, found in measures.items():
            if key not in known:
                silent.setdefault(found.reason, []).append(_name(key))
        _add_group(table, group if known else "", known, notes)
    if table.row_count:
        print_table(out, table)
    print_notes(out, notes)
    if groups["E4 overhead"]["price"].how == "derived":
        out.print(f"prices are those of {prices.date}")
    for reason, names in silent.items():
        out.print(Text(f"unknown: {', '.join(names)} ({reason})"))


def _add_group(
    table: Table, group: str, known: Mapping[str, Measure], notes: dict[str, int]
) -> None:
    if group:
        table.add_row(Text(group, style="bold"))
    for key, found in known.items():
        how = Text(found.how + mark(notes, found.reason))
        table.add_row(_name(key), number(found.value), UNITS.get(key, ""), how)


def _name(key: str) -> str:
    return NAMES.get(key, key.replace("_", " "))


def show_breakdown(trace: Trace, by: str, rows: Sequence[Row]) -> None:
    """Print where tokens, money and time went, a row a part, without columns of no number."""
    out, notes = console(), dict[str, int]()
    shown = rows[:MOST_ROWS]
    table = _parts(by, shown, _called(trace) if by == "agent" else {}, notes)
    if not fits(out, table):
        table = _parts(by, shown, {}, notes)
    print_table(out, table, least=LEAST)
    print_notes(out, notes)
    if any(row.how == "heuristic" for row in rows):
        what = "which turn made a call" if by == "tool" else "who waited for whom"
        out.print(f"heuristic: edges that an import guessed decide {what}")
    _tell_rest(out, len(rows), MOST_ROWS, "rows")


def _parts(by: str, rows: Sequence[Row], called: Mapping[str, str], notes: dict[str, int]) -> Table:
    fields = [field for field in PARTS if any(getattr(row, field) is not None for row in rows)]
    table = plain_table(by, "events", *(PARTS[field] for field in fields))
    for row in rows:
        key = "none" if row.key is None else f"{row.key} {called.get(row.key, '')}".rstrip()
        key += mark(notes, row.reason)
        cells = (_part(field, getattr(row, field)) for field in fields)
        table.add_row(Text(key), f"{row.events:,}", *cells)
    return table


def _called(trace: Trace) -> dict[str, str]:
    """What people call an agent: its role, else its name, unless that is its id again."""
    named = {agent.id: agent.role or agent.name or "" for agent in trace.agents}
    return {key: name for key, name in named.items() if name != key}


def _part(field: str, value: float | None) -> str:
    if value is None:
        return "-"
    if field.endswith("_share"):
        return _percent(value)
    if field.endswith("_tokens"):  # those of a turn are split over its calls
        return number(value, 0)
    return number(value) if field == "price" else number(round(value, DECIMALS), 1)


def _percent(share: float) -> str:
    percent = 100 * share
    return "<0.1" if 0 < percent < 0.1 else number(percent, 1)


def show_path(trace: Trace, path: CriticalPath) -> None:
    """Print the critical path: how long it is, who and what takes it, and its events in order."""
    out = console()
    if path.seconds is None:
        out.print(Text(f"critical path: unknown ({path.reason})"))
        return
    busy = [event for event in path.events if event.seconds > 0]
    said = f"critical path: {number(path.seconds)} s, {path.how}"
    said += f" ({path.reason})" if path.reason else ""
    out.print(Text(f"{said}; {len(path.events):,} events, {len(busy):,} of them take time"))
    for what, shares in {"kind": path.by_kind, "agent": path.by_agent}.items():
        _print_shares(out, trace, what, shares, path.seconds)
    _print_events(out, trace, busy, path.seconds)


def _print_shares(
    out: Console, trace: Trace, what: str, shares: Mapping[str, float], seconds: float
) -> None:
    table, called = plain_table(what, "s", "%"), _called(trace) if what == "agent" else {}
    for key, share in sorted(shares.items(), key=lambda item: -item[1])[:MOST_EVENTS]:
        name = Text(f"{key} {called.get(key, '')}".rstrip())
        table.add_row(name, number(share * seconds), _percent(share))
    if table.row_count:
        print_table(out, table)
    _tell_rest(out, len(shares), MOST_EVENTS, f"{what}s")


def _print_events(
    out: Console, trace: Trace, busy: Sequence[CriticalEvent], seconds: float
) -> None:
    """Those that take most, in the order of the path."""
    longest = sorted(range(len(busy)), key=lambda place: -busy[place].seconds)[:MOST_EVENTS]
    table = plain_table("event", "agent", "what", "s", "%", left=("agent", "what"))
    for each in (busy[place] for place in sorted(longest)):
        tool = trace.events[trace.columns.row[each.event]].tool
        what = f"{each.kind} {tool}" if tool else each.kind
        share = _percent(each.seconds / seconds)
        table.add_row(Text(each.event), Text(each.agent), Text(what), number(each.seconds), share)
    if table.row_count:
        print_table(out, table)
    _tell_rest(out, len(busy), MOST_EVENTS, "events")


def _tell_rest(out: Console, count: int, most: int, what: str) -> None:
    if count > most:
        out.print(f"showing {most} of {count:,} {what}; --json prints all")
