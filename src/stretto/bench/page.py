"""The leaderboard: one self-contained HTML page with the plots people look for, and all tables."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from pathlib import Path

import msgspec

from stretto.bench.bands import LIMITS
from stretto.bench.plots import Axis, Point, Series, plot
from stretto.bench.results import RUN
from stretto.bench.suite import CLEAN
from stretto.bench.table import Line
from stretto.bench.text import COLUMNS, TITLES, cells, groups
from stretto.files import read_bytes
from stretto.viewer.page import page

STYLE = """<style>
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 34px 30px; }
.plot { width: 100%; height: auto; display: block; background: var(--surface);
  border: 1px solid var(--line); border-radius: 6px; font-size: 12px; }
.plot text { fill: var(--muted); }
.plot .grid { stroke: var(--line); stroke-width: 1; }
.plot .zero { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 4 3; }
.plot-key { display: flex; flex-wrap: wrap; gap: 2px 12px; margin-top: 8px; }
.plot-key svg { vertical-align: -1px; }
.board { border-collapse: collapse; font-size: 13px; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.board th, .board td { padding: 3px 10px 3px 0; text-align: right; border: 0;
  border-bottom: 1px solid var(--line); }
.board th:nth-child(-n+2), .board td:nth-child(-n+2) { text-align: left; }
.board thead th { color: var(--muted); font-weight: 500; }
details.board-group { margin-top: 14px; }
details.board-group summary { cursor: pointer; font-weight: 600; }
.scroll { overflow-x: auto; }
</style>"""

ONE = ("oracle", "greedy", "silent", "random", "solo", "memory")
"""Baselines that are drawn; policies under exam always are."""
BASELINES = (*ONE, "blind", "best-of-n", "majority", "slips")
PAGE_NOTE = (
    "Every number is computed from traces and instances by this program. Bands are never pooled. "
    "What is unknown is left out, never 0. Vertical lines are 95 % bootstrap intervals."
)


def leaderboard(lines: Sequence[Line], folder: Path) -> str:
    """The page of a table; `folder` says which versions made it."""
    clean = [line for line in lines if line.cell.condition == CLEAN]
    plots = "".join(
        f"<section><h2>{escape(title)}</h2>{draw(clean)}"
        f'<p class="quiet">{escape(note)}</p></section>'
        for title, note, draw in (*PLOTS, *gain_plots(clean))
    )
    tables = "".join(_group(title, own) for title, own in groups(lines))
    body = (
        f'{STYLE}<main class="run"><header><p class="eyebrow">benchmark of agent teams</p>'
        f"<h1>{_title(lines)}</h1>"
        f'<p class="lede">{escape(PAGE_NOTE)}</p></header>'
        f'<div class="plots" style="margin-top:34px">{plots}</div>'
        f"<section><h2>All tables</h2>{tables}</section>"
        f"<section><h2>Made by</h2>{_versions(folder)}</section></main>"
    )
    return page("Leaderboard · Stretto", body, ())


def _title(lines: Sequence[Line]) -> str:
    policies = len({line.policy for line in lines})
    families = len({line.cell.family for line in lines})
    episodes = sum(line.episodes for line in lines)
    return f"{policies} policies, {families} families, {episodes:,} instances played"


def _versions(folder: Path) -> str:
    said = msgspec.json.decode(read_bytes(folder / RUN))
    rows = {"split": said["split"], "instances a cell": said["instances"], **said["versions"]}
    told = "".join(
        f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows.items()
    )
    return f'<div class="scroll"><table class="board"><tbody>{told}</tbody></table></div>'


def _group(title: str, lines: Sequence[Line]) -> str:
    heads = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in cells(line))}</tr>" for line in lines
    )
    name = escape(title.replace("`", ""))
    return (
        f'<details class="board-group"><summary>{name}</summary><div class="scroll">'
        f'<table class="board"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


def _drawn(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.policy in ONE or line.policy not in BASELINES]


def _by_policy(
    lines: Sequence[Line], point: Callable[[Line], Point | None], line: bool = False
) -> list[Series]:
    found: dict[str, list[Point]] = {}
    for each in _drawn(lines):
        place = point(each)
        if place is not None:
            found.setdefault(each.policy, []).append(place)
    order = (*ONE, *(name for name in found if name not in ONE))
    return [Series(name, tuple(points), line, order.index(name)) for name, points in found.items()]


def _share(label: str) -> Axis:
    """An axis from 0 to 1."""
    return Axis(label, low=0.0, high=1.0)


def _pair(line: Line, x: str, y: str) -> Point | None:
    across, up = line.means.get(x), line.means.get(y)
    if across is None or up is None:
        return None
    return Point(across.mean, up.mean, f"{line.policy}, {line.cell.name}", up.low, up.high)


def _success(lines: Sequence[Line]) -> str:
    series = _by_policy(lines, lambda line: _pair(line, "tokens", "score"))
    x, y = Axis("tokens an episode", log=True), _share("score")
    return plot(series, x, y, "score against tokens")


def _speed(lines: Sequence[Line]) -> str:
    teams = [line for line in lines if line.policy in ("oracle", "greedy", "solo")]
    others = [line for line in lines if line.policy not in BASELINES]
    series = _by_policy([*teams, *others], lambda line: _pair(line, "workers", "speedup"))
    most = max((p.x for each in series for p in each.points), default=1.0)
    ideal = Series("linear", (Point(1.0, 1.0), Point(max(most, 2.0), max(most, 2.0))), line=True)
    x, y = Axis("agents at work", log=True), Axis("speed-up over the best serial plan", log=True)
    return plot([*series, ideal] if series else [], x, y, "speed-up against width")


def _messages(lines: Sequence[Line]) -> str:
    def point(line: Line) -> Point | None:
        name = "message" if "message_plus" in line.means else "replay"
        plus, zero = line.means.get(f"{name}_plus"), line.means.get(f"{name}_zero")
        if plus is None or zero is None:
            return None
        title = f"{line.policy}, {line.cell.name}"
        return Point(zero.mean, plus.mean, title, plus.low, plus.high)

    x, y = (
        _share("share worth nothing"),
        _share("share worth something"),
    )
    return plot(_by_policy(lines, point), x, y, "value of messages")


def _overhead(lines: Sequence[Line]) -> str:
    series = _by_policy(lines, lambda line: _pair(line, "messages_per_turn", "coordination"))
    x, y = Axis("messages a turn"), _share("share of tokens for coordination")
    return plot(series, x, y, "overhead")


def _bands(lines: Sequence[Line]) -> str:
    """One line a policy and family, in the first topology that the family has."""
    series: dict[str, dict[int, Point]] = {}
    for line in _drawn(lines):
        if line.policy in ("oracle", "solo", "random", "silent") or line.norm is None:
            continue
        name = f"{line.policy}, {line.cell.family}"
        place = list(LIMITS).index(line.cell.band) + 1
        point = Point(place, line.norm.mean, f"{name}, {TITLES[line.cell.band]}")
        series.setdefault(name, {}).setdefault(place, point)
    found = [Series(name, tuple(points.values()), line=True) for name, points in series.items()]
    x, y = Axis("band: 1 is 10¹, 4 is 10³⁺", low=0.8, high=4.2), _share("normalised score")
    return plot(found, x, y, "normalised score by band")


def _gain(lines: Sequence[Line], band: str) -> str:
    """One line a family, and policy, in the first topology that the family has."""
    series: dict[str, Series] = {}
    for line in lines:
        examined = line.policy == "oracle" or line.policy not in BASELINES
        if line.cell.band == band and examined and line.curve is not None and line.curve.budgets:
            name = f"{line.policy}, {line.cell.family}"
            points = tuple(map(Point, line.curve.budgets, line.curve.gain))
            series.setdefault(name, Series(name, points, line=True))
    x, y = Axis("token budget B", log=True), Axis("Γ(B)")
    return plot(list(series.values()), x, y, f"compute-matched gain, {TITLES[band]}")


def gain_plots(lines: Sequence[Line]) -> list[tuple[str, str, Callable[[Sequence[Line]], str]]]:
    """A plot a band that was played: what is gained over twenty events says nothing of others."""
    played = {line.cell.band for line in lines}
    return [
        (f"Compute-matched gain, {title}", GAIN_NOTE, partial(_gain, band=band))
        for band, title in TITLES.items()
        if band in played
    ]


GAIN_NOTE = (
    "Score of the team within B tokens less the best that one agent makes of them: one long "
    "attempt, the best of several, their majority."
)
PLOTS: tuple[tuple[str, str, Callable[[Sequence[Line]], str]], ...] = (
    (
        "Score against tokens",
        "One point a cell. Tokens of scripts are words read and written.",
        _success,
    ),
    (
        "Speed-up against width",
        "T*_serial / T_P of episodes that solved their task, against the agents that worked.",
        _speed,
    ),
    (
        "Value of messages",
        "Shares of messages: to an exact receiver where it is known, else by replay without each.",
        _messages,
    ),
    (
        "Overhead",
        "Share of tokens in turns that decide about the team, against messages a turn.",
        _overhead,
    ),
    (
        "Bands",
        "1 is the oracle, 0 is chance. Each policy and family by the length of its episodes.",
        _bands,
    ),
)
"""Title, note and drawing of every plot but those of the gain."""
