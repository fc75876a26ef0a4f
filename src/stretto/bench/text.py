"""The table as text: for a terminal, and as Markdown."""

from collections.abc import Callable, Mapping, Sequence

from stretto.bench.gain import Interval
from stretto.bench.suite import CLEAN
from stretto.bench.table import BEST_OF, ORDER, Line
from stretto.errors import StrettoError

TITLES: Mapping[str, str] = {
    "10": "10¹ (up to 31 events)",
    "100": "10² (up to 316 events)",
    "1000": "10³ (up to 3,162 events)",
    "more": "10³⁺ (more)",
}
COLUMNS = (
    "topology",
    "policy",
    "n",
    "score",
    "norm",
    "pass^1",
    "Γ",
    "Γ of U",
    "speed-up",
    "η",
    "PP",
    "R",
    "Δ>0",
    "free",
    "tokens",
    "ξ",
    "c",
)
"""What the columns are is said in `docs/benchmark.md`."""


def cells(line: Line) -> list[str]:
    """The line as words, in the order of `COLUMNS`; what is not known is a dash."""
    return [
        line.cell.topology,
        line.policy,
        f"{line.episodes}{_unfinished(line)}",
        interval(line.means.get("score")),
        norm(line),
        number(line.passes.get("1")),
        interval(line.gain),
        interval(line.utility_gain),
        mean(line, "speedup", 1),
        mean(line, "optimality"),
        mean(line, "pseudo"),
        mean(line, "redundancy"),
        mean(line, valued(line)),
        mean(line, "free_riders"),
        mean(line, "tokens", 0),
        mean(line, "coordination"),
        mean(line, "messages_per_turn"),
    ]


def valued(line: Line) -> str:
    """Which share of messages is worth something: to an exact receiver, else by replay."""
    return "message_plus" if "message_plus" in line.means else "replay_plus"


def mean(line: Line, name: str, digits: int = 2) -> str:
    """The mean of a metric of a line."""
    found = line.means.get(name)
    return number(None if found is None else found.mean, digits)


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash."""
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    return "0" + text[2:] if text.startswith("-0") and not text.strip("-0.") else text


def interval(found: Interval | None, digits: int = 2) -> str:
    """Mean and interval, as in `0.83 [0.70, 0.93]`; without the interval where it is a point."""
    if found is None:
        return "-"
    low, high = number(found.low, digits), number(found.high, digits)
    tight = number(found.mean, digits)
    return tight if low == high == tight else f"{tight} [{low}, {high}]"


def groups(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    """Lines by family, band and condition, each with a title."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        cell = line.cell
        fault = "" if cell.condition == CLEAN else f", planted fault `{cell.condition}`"
        found.setdefault(f"{cell.family}, {TITLES[cell.band]}{fault}", []).append(line)
    return list(found.items())


def markdown(lines: Sequence[Line]) -> str:
    """The standing table as Markdown: scores by band, then what teams were worth, then faults."""
    clean = [line for line in lines if line.cell.condition == CLEAN]
    parts: list[str] = []
    for band, title in TITLES.items():
        own = [line for line in clean if line.cell.band == band]
        if own:
            parts += [f"### Scores, {title}", "", *_policies(own, _score, (1, 4)), ""]
            judged = [line for line in own if line.norm is not None]
            parts += [
                f"### Between chance and the oracle, {title}",
                "",
                *_policies(judged, norm),
                "",
            ]
            parts += [f"### What the oracle's team was worth, {title}", "", *_teams(own), ""]
    faulty = [line for line in lines if line.containment is not None]
    if faulty:
        parts += ["### Containment of planted faults", "", *_faults(faulty), ""]
    return "\n".join(parts)


def _policies(
    lines: Sequence[Line], tell: Callable[[Line], str], passes: Sequence[int] = ()
) -> list[str]:
    """A row a family and topology, a column a policy, and one a `k` for `pass^k` of attempts."""
    names = list(dict.fromkeys(line.policy for line in sorted(lines, key=_place)))
    by = {(line.cell, line.policy): line for line in lines}
    heads = ["family", "topology", "n", *names, *(f"pass^{k}" for k in passes)]
    rows = [_row(heads), _row(["---"] * 2 + ["---:"] * (len(heads) - 2))]
    for cell in dict.fromkeys(line.cell for line in lines):
        own = [by.get((cell, name)) for name in names]
        count = max(line.episodes for line in own if line is not None)
        told = ["" if line is None else tell(line) for line in own]
        tried = by.get((cell, BEST_OF))
        told += ["" if tried is None else number(tried.passes.get(str(k))) for k in passes]
        rows.append(_row([cell.family, cell.topology, str(count), *told]))
    return rows


def _score(line: Line) -> str:
    return interval(line.means.get("score")) + _unfinished(line)


def _unfinished(line: Line) -> str:
    """How many calls failed, and how many episodes were forfeit, where any were."""
    counts = {"err": line.errors, "forfeit": line.forfeits}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f" ({told})" if told else ""


def norm(line: Line) -> str:
    """1 for the oracle, 0 for chance."""
    return interval(line.norm, 3)


TEAM: Mapping[str, Callable[[Line], str]] = {
    "Γ": lambda line: interval(line.gain),
    "Γ of U": lambda line: interval(line.utility_gain, 3),
    "AUC Γ(B)": lambda line: number(line.curve.auc if line.curve else None),
    "retention": lambda line: number(line.retention),
    "speed-up": lambda line: mean(line, "speedup", 1),
    "η": lambda line: mean(line, "optimality"),
    "PP": lambda line: mean(line, "pseudo"),
    "utilisation": lambda line: mean(line, "utilisation"),
    "R": lambda line: mean(line, "redundancy"),
    "Δ>0": lambda line: mean(line, valued(line)),
    "free": lambda line: mean(line, "free_riders"),
    "regret": lambda line: mean(line, "aggregation_regret"),
    "flips": lambda line: mean(line, "flips"),
    "KPI": lambda line: mean(line, "milestones"),
    "O_tok": lambda line: number(line.token_overhead),
    "ξ": lambda line: mean(line, "coordination"),
    "c": lambda line: mean(line, "messages_per_turn"),
    "E_c": lambda line: number(line.efficiency),
    "A_out": lambda line: number(line.error_ratio),
}
"""Columns of the table of teams."""


def _teams(lines: Sequence[Line]) -> list[str]:
    rows = [_row(["family", "topology", *TEAM]), _row(["---"] * 2 + ["---:"] * len(TEAM))]
    for line in lines:
        if line.policy == "oracle":
            told = [tell(line) for tell in TEAM.values()]
            rows.append(_row([line.cell.family, line.cell.topology, *told]))
    return rows


FAULT: Mapping[str, Callable[[Line], str]] = {
    "score": lambda line: interval(line.means.get("score")),
    "contained": lambda line: number(line.containment),
    "A_inj": lambda line: mean(line, "wrong_events", 1),
    "tainted": lambda line: mean(line, "tainted"),
    "agents": lambda line: mean(line, "blast", 1),
    "R₀": lambda line: mean(line, "reproduction"),
    "seconds": lambda line: mean(line, "taint_seconds", 1),
}
"""Columns of the table of planted faults."""


def _faults(lines: Sequence[Line]) -> list[str]:
    heads = ["family", "band", "fault", "topology", "policy", *FAULT]
    rows = [_row(heads), _row(["---"] * 5 + ["---:"] * len(FAULT))]
    for line in lines:
        cell = line.cell
        if line.policy in ("oracle", "greedy"):
            words = [cell.family, cell.band, cell.condition, cell.topology, line.policy]
            rows.append(_row([*words, *(tell(line) for tell in FAULT.values())]))
    return rows


def _place(line: Line) -> tuple[int, str]:
    known = line.policy in ORDER
    return (ORDER.index(line.policy) if known else len(ORDER)), line.policy


def insert(text: str, tables: str) -> str:
    """A page of Markdown with its standing table replaced; `text` is empty for a new page.

    Raises `StrettoError` for a page that does not mark where the table stands.
    """
    if not text:
        return tables
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        hint = f"put the lines {BEGIN} and {END} where the table shall stand"
        raise StrettoError("the page does not mark where the table stands", "--markdown", hint)
    return f"{before}{begin}\n\n{tables}\n{end}{after}"


BEGIN, END = "<!-- standing table -->", "<!-- end of the standing table -->"


def _row(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
