"""Plots as SVG inside a page: no script, colours of the page's style, every point has a title."""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10

from msgspec import Struct
from msgspec.structs import replace

WIDTH, HEIGHT = 560, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 24, 14, 46
COLOURS = (
    "var(--learned)",
    "var(--optimum)",
    "var(--kind-spawn)",
    "var(--baseline)",
    "var(--critical)",
    "var(--kind-delegate)",
    "var(--kind-tool-call)",
    "var(--kind-human)",
    "var(--kind-message)",
)
SHAPES = "circle", "square", "diamond"
DASHES = "", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 3"'
DENSE = 7
"""Most labels along a logarithmic axis of whole decades."""


class Point(Struct, frozen=True):
    """One place in a plot."""

    x: float
    y: float
    title: str = ""
    low: float | None = None
    """Begin of the interval of `y`."""
    high: float | None = None


class Series(Struct, frozen=True):
    """Points of one name."""

    name: str
    points: tuple[Point, ...]
    line: bool = False
    """Whether they are joined."""
    colour: int = 0
    """Number of its colour; numbers beyond `COLOURS` begin again, so the shape must differ."""
    shape: int = 0
    """Number of the shape of its points, and of the dashes of its line."""


class Axis(Struct, frozen=True):
    """One direction of a plot."""

    label: str
    log: bool = False
    low: float | None = None
    """Where it begins; at the least value where absent."""
    high: float | None = None
    names: tuple[str, ...] = ()
    """What stands at 1, 2, ..., where these are no numbers."""


class Scale(Struct, frozen=True):
    """From values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (
            (log10(self.low), log10(self.high), log10(value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)


def plot(series: Sequence[Series], x: Axis, y: Axis, label: str) -> str:
    """A plot with its key; a sentence where there is nothing to draw."""
    shown = [
        replace(each, points=points) for each in series if (points := _drawable(each.points, x, y))
    ]
    if not shown:
        return '<p class="quiet">Nothing of this is known here.</p>'
    points = [point for each in shown for point in each.points]
    across = _scale(x, [p.x for p in points], LEFT, WIDTH - RIGHT)
    edges = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
    up = _scale(y, edges, HEIGHT - BOTTOM, TOP)
    parts = [_axis_x(across, x), _axis_y(up, y.label)]
    if not y.log and up.low < 0 < up.high:
        parts.append(_rule(up.at(0)))
    parts += [_series(each, across, up) for each in shown]
    keys = "".join(map(_key, shown))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}" '
        f'class="plot">{"".join(parts)}</svg><p class="quiet plot-key">{keys}</p>'
    )


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Round values within a range: steps of 1, 2 or 5.

    On a logarithmic axis powers of ten; where these are few, two and five times them, too.
    """
    found = _round_log(low, high) if log else []
    if len(found) > 2:
        return found
    rough = (high - low) / 5
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first = floor(low / step)
    values = [step * (first + n) for n in range(12)]
    return [v for v in values if low - 1e-9 <= v <= high + 1e-9]


def _round_log(low: float, high: float) -> list[float]:
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    powers = [10.0**p for p in decades if low <= 10.0**p <= high]
    if len(powers) > 2:
        return powers[:: ceil(len(powers) / DENSE)]
    return [m * 10.0**p for p in decades for m in (1, 2, 5) if low <= m * 10.0**p <= high]


def _drawable(points: Sequence[Point], x: Axis, y: Axis) -> tuple[Point, ...]:
    return tuple(p for p in points if (not x.log or p.x > 0) and (not y.log or p.y > 0))


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> Scale:
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if low == high:
        low, high = (low / 2, high * 2) if axis.log else (low - 0.5, high + 0.5)
    if axis.low is None:
        low = low / 1.15 if axis.log else low - 0.04 * (high - low)
    if axis.high is None:
        high = high * 1.15 if axis.log else high + 0.04 * (high - low)
    return Scale(low, high, begin, end, axis.log)


def _series(series: Series, across: Scale, up: Scale) -> str:
    colour = COLOURS[series.colour % len(COLOURS)]
    places = [(across.at(p.x), up.at(p.y)) for p in series.points]
    parts: list[str] = []
    if series.line:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        style = f'fill="none" stroke="{colour}" stroke-width="2"'
        dash = DASHES[series.shape % len(DASHES)]
        parts.append(f'<polyline points="{path}" {style}{dash}/>')
    for point, (x, y) in zip(series.points, places, strict=True):
        if point.low is not None and point.high is not None:
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.at(point.low):.1f}" '
                f'y2="{up.at(point.high):.1f}" stroke="{colour}" stroke-opacity="0.4"/>'
            )
        if not series.line or point.title:
            parts.append(_mark(x, y, series, point.title))
    return "".join(parts)


def _mark(x: float, y: float, series: Series, title: str) -> str:
    shape = SHAPES[series.shape % len(SHAPES)]
    said = f"<title>{escape(title)}</title>" if title else ""
    style = f'fill="{COLOURS[series.colour % len(COLOURS)]}" fill-opacity="0.75"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {style}>{said}</circle>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
    place = f'x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"'
    return f"<rect {place} {style}{turn}>{said}</rect>"


def _axis_x(scale: Scale, axis: Axis) -> str:
    base = HEIGHT - BOTTOM
    named: dict[float, str] = {float(n): name for n, name in enumerate(axis.names, start=1)}
    words = named or {v: _words(v) for v in ticks(scale.low, scale.high, scale.log)}
    marks = "".join(
        f'<line x1="{scale.at(v):.1f}" x2="{scale.at(v):.1f}" y1="{TOP}" y2="{base}" class="grid"/>'
        f'<text x="{scale.at(v):.1f}" y="{base + 17}" text-anchor="middle">{escape(word)}</text>'
        for v, word in words.items()
    )
    middle = (scale.begin + scale.end) / 2
    label = escape(axis.label)
    title = f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>'
    return marks + title


def _axis_y(scale: Scale, label: str) -> str:
    marks = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{scale.at(v):.1f}" y2="{scale.at(v):.1f}" '
        f'class="grid"/><text x="{LEFT - 7}" y="{scale.at(v) + 4:.1f}" text-anchor="end">'
        f"{_words(v)}</text>"
        for v in ticks(scale.low, scale.high, scale.log)
    )
    middle = (scale.begin + scale.end) / 2
    turned = f'transform="rotate(-90 13 {middle:.0f})"'
    return marks + (
        f'<text x="13" y="{middle:.0f}" text-anchor="middle" {turned}>{escape(label)}</text>'
    )


def _rule(y: float) -> str:
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="zero"/>'


def _key(series: Series) -> str:
    dot = _mark(6, 6, series, "")
    return f'<span><svg width="12" height="12">{dot}</svg> {escape(series.name)}</span> '


def _words(value: float) -> str:
    """As in `0.25`, `1,000` and `2·10⁴`."""
    if not value or 0.001 <= abs(value) < 10_000:
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    power = floor(log10(abs(value)) + 1e-9)
    times = f"{value / 10.0**power:.3g}·"
    return f"{'' if times == '1·' else times}10{str(power).translate(RAISED)}"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
