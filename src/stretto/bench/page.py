"""The leaderboard: one self-contained HTML page with the plots people look for, and all tables."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

from stretto.bench.bands import LIMITS
from stretto.bench.gain import Curve
from stretto.bench.plots import Axis, Point, Series, plot
from stretto.bench.results import RUN
from stretto.bench.suite import CLEAN
from stretto.bench.table import Line
from stretto.bench.text import COLUMNS, TITLES, cells, groups, valued
from stretto.errors import StrettoError
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
    "What is unknown is left out, never 0. Vertical lines are 95 % bootstrap intervals. The "
    "baselines blind, best-of-n and majority stand in the tables only, which are at the end."
)
BANDS = Axis("events in an episode", low=0.5, high=4.5, names=("10¹", "10²", "10³", "10³⁺"))


class _Run(Struct):
    """What the page tells of `run.json`."""

    split: str
    instances: int
    versions: dict[str, str | int]


def leaderboard(lines: Sequence[Line], folder: Path, episodes: int) -> str:
    """The page of a table.

    Args:
        lines: Of the table.
        folder: Of the results; it says which versions made them.
        episodes: Rows of the results.

    Raises `StrettoError` for a folder that does not say which versions made it.
    """
    clean = [line for line in lines if line.cell.condition == CLEAN]
    plots = "".join(
        f"<section><h2>{escape(title)}</h2>{draw(clean)}"
        f'<p class="quiet">{escape(note)}</p></section>'
        for title, note, draw in (*PLOTS, *gain_plots(clean))
    )
    tables = "".join(_group(title, own) for title, own in groups(lines))
    body = (
        f'{STYLE}<main class="run"><header><p class="eyebrow">benchmark of agent teams</p>'
        f"<h1>{_title(lines, episodes)}</h1>"
        f'<p class="lede">{escape(PAGE_NOTE)}</p></header>'
        f'<div class="plots" style="margin-top:34px">{plots}</div>'
        f"<section><h2>All tables</h2>{tables}</section>"
        f"<section><h2>Made by</h2>{_versions(folder)}</section></main>"
    )
    return page("Leaderboard · Stretto", body, ())


def _title(lines: Sequence[Line], episodes: int) -> str:
    counts = {
        "policies": len({line.policy for line in lines}),
        "families": len({line.cell.family for line in lines}),
        "cells": len({line.cell for line in lines}),
        "episodes": episodes,
    }
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def _versions(folder: Path) -> str:
    try:
        said = msgspec.json.decode(read_bytes(folder / RUN), type=_Run)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = "which versions made these results is not known; run the exam in a new folder"
        raise StrettoError(f"not what a run writes: {error}", str(folder / RUN), hint) from None
    rows = {"split": said.split, "instances a cell": said.instances, **said.versions}
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


def _by_policy(lines: Sequence[Line], point: Callable[[Line], Point | None]) -> list[Series]:
    found: dict[str, list[Point]] = {}
    for each in _drawn(lines):
        place = point(each)
        if place is not None:
            found.setdefault(each.policy, []).append(place)
    order = (*ONE, *(name for name in found if name not in ONE))
    places = {name: order.index(name) for name in found}
    return [
        Series(name, tuple(points), colour=places[name], shape=places[name])
        for name, points in found.items()
    ]


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
    ends = Point(1.0, 1.0), Point(max(most, 2.0), max(most, 2.0))
    ideal = Series("linear", ends, line=True, colour=GREY, shape=1)
    x, y = Axis("agents at work", log=True), Axis("speed-up over the best serial plan", log=True)
    return plot([*series, ideal] if series else [], x, y, "speed-up against width")


def _messages(lines: Sequence[Line]) -> str:
    """One point a cell; within its family the shorter bands stand further to the left."""
    families = sorted({line.cell.family for line in lines})

    def point(line: Line) -> Point | None:
        plus = line.means.get(valued(line))
        if plus is None:
            return None
        policies = ONE if line.policy in ONE else (*ONE, line.policy)
        inner = _dodged(policies.index(line.policy), len(policies), 0.16)
        outer = _dodged(list(LIMITS).index(line.cell.band), len(LIMITS), 0.8)
        place = families.index(line.cell.family) + 1 + outer + inner
        return Point(place, plus.mean, f"{line.policy}, {line.cell.name}", plus.low, plus.high)

    x = Axis("family", low=0.5, high=len(families) + 0.5, names=tuple(families))
    return plot(_by_policy(lines, point), x, _share("share worth something"), "value of messages")


def _dodged(number: int, of: int, width: float) -> float:
    """Where one of several stands beside a common place, so that none hides another."""
    return width * ((number + 0.5) / of - 0.5)


def _overhead(lines: Sequence[Line]) -> str:
    series = _by_policy(lines, lambda line: _pair(line, "messages_per_turn", "coordination"))
    x, y = Axis("messages a turn", log=True), _share("share of tokens for coordination")
    return plot(series, x, y, "overhead")


def _bands(lines: Sequence[Line]) -> str:
    """One line a policy and family, in the first topology that the family has."""
    series: dict[tuple[str, str], dict[int, float]] = {}
    for line in _drawn(lines):
        if line.policy in ("oracle", "solo", "random", "silent") or line.norm is None:
            continue
        place = list(LIMITS).index(line.cell.band) + 1
        points = series.setdefault((line.policy, line.cell.family), {})
        points.setdefault(place, line.norm.mean)
    found = [
        _coloured(
            pair,
            list(series),
            [
                Point(place + _dodged(number, len(series), 0.5), mean, ", ".join(pair))
                for place, mean in points.items()
            ],
        )
        for number, (pair, points) in enumerate(series.items())
    ]
    return plot(found, BANDS, _share("normalised score"), "normalised score by band")


def _coloured(
    pair: tuple[str, str], pairs: Sequence[tuple[str, str]], points: Sequence[Point]
) -> Series:
    """The line of a policy (its shape and dashes) in a family (its colour)."""
    policies, families = (sorted({each[n] for each in pairs}) for n in (0, 1))
    return Series(
        ", ".join(pair),
        tuple(points),
        line=True,
        colour=families.index(pair[1]),
        shape=policies.index(pair[0]),
    )


def _gain(lines: Sequence[Line], band: str) -> str:
    """One line a family, and policy, in the first topology that the family has."""
    curves: dict[tuple[str, str], Curve] = {}
    for line in lines:
        examined = line.policy == "oracle" or line.policy not in BASELINES
        if line.cell.band == band and examined and line.curve is not None and line.curve.budgets:
            curves.setdefault((line.policy, line.cell.family), line.curve)
    shares = {pair: _shares(curve) for pair, curve in curves.items()}
    moving = [share for pair in curves for share in _moving(shares[pair], curves[pair].gain)]
    low, high = min(moving, default=0.0), max(moving, default=float("inf"))
    series = [
        _coloured(
            pair,
            list(curves),
            [
                Point(b, g)
                for b, g in zip(shares[pair], curve.gain, strict=True)
                if low <= b <= high
            ],
        )
        for pair, curve in curves.items()
    ]
    x, y = Axis("B / tokens in which all teams are done", log=True), Axis("Γ(B)")
    return plot(series, x, y, f"compute-matched gain, {TITLES[band]}")


def _shares(curve: Curve) -> list[float]:
    """Budgets over the least one at which the team has all that it gets: families then compare."""
    done = next(b for b, s in zip(curve.budgets, curve.team, strict=True) if s == curve.team[-1])
    return [budget / done for budget in curve.budgets]


def _moving(places: Sequence[float], gains: Sequence[float]) -> list[float]:
    """Between which places a curve is not flat; none where it always is."""
    steps = [n for n, (a, b) in enumerate(pairwise(gains)) if abs(a - b) > FLAT]
    if not steps:
        return []
    return [places[max(steps[0] - 1, 0)], places[min(steps[-1] + 2, len(places) - 1)]]


def gain_plots(lines: Sequence[Line]) -> list[tuple[str, str, Callable[[Sequence[Line]], str]]]:
    """A plot a band that was played: what is gained over twenty events says nothing of others."""
    played = {line.cell.band for line in lines}
    return [
        (f"Compute-matched gain, {title}", GAIN_NOTE, partial(_gain, band=band))
        for band, title in TITLES.items()
        if band in played
    ]


GREY = 3
"""Number of a colour that stands for no policy."""
FLAT = 0.05
"""A curve that moves less from budget to budget is flat."""
GAIN_NOTE = (
    "Score of the team within B tokens less the best that one agent makes of them: one long "
    "attempt, the best of several, their majority. To the left and to the right it hardly "
    "changes."
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
        "Share of messages worth something: to an exact receiver where it is known, else by "
        "replay without each. Each family from its shortest band to its longest, left to right.",
        _messages,
    ),
    (
        "Overhead",
        "Share of tokens in turns that decide about the team, against messages a turn. Cells "
        "without messages are left out.",
        _overhead,
    ),
    (
        "Bands",
        "1 is the oracle, 0 is chance. Each family has its colour, each policy its shape; they "
        "stand beside each other within a band.",
        _bands,
    ),
)
"""Title, note and drawing of every plot but those of the gain."""
