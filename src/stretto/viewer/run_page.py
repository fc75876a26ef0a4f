"""The page of a training run: what was learned, beside what could have been."""

from collections.abc import Sequence
from html import escape
from typing import Any

from stretto.viewer.facts import UNKNOWN, Fact, fixed, number, seconds
from stretto.viewer.heat_map import heat_map
from stretto.viewer.page import CURVE, embedded, lanes_view, page
from stretto.viewer.payload import Shown, pack
from stretto.viewer.run_folder import Run, Step

TRACES = 8
"""Traces on the page, the last ones."""


def run_page(run: Run) -> tuple[str, Shown]:
    """The page as HTML, and how much of the run's traces it holds."""
    packed, shown = pack(run.traces[-TRACES:], run.traces)
    parts = [
        _header(run),
        _notes(run),
        facts_list(_facts(run)),
        f'<div class="columns">{_policies(run)}{_curve(run)}</div>',
        _decisions(run),
        _trace_section(packed, shown),
        _config(run),
    ]
    body = f'<main class="run">{"".join(parts)}</main>'
    return page(f"{run.name} · Stretto", body, CURVE), shown


def facts_list(facts: Sequence[Fact]) -> str:
    """A strip of facts."""
    tiles = "".join(
        f'<div class="fact{" unknown" * (fact.value == UNKNOWN)}" title="{escape(fact.note)}">'
        f"<dt>{escape(fact.label)}</dt><dd>{escape(fact.value)}</dd></div>"
        for fact in facts
    )
    return f'<dl class="facts">{tiles}</dl>'


def _header(run: Run) -> str:
    return (
        f'<header><p class="eyebrow">training run</p><h1>{escape(run.name)}</h1>'
        f'<p class="lede">{_status(run)}</p></header>'
    )


def _status(run: Run) -> str:
    last = run.steps[-1].step if run.steps else 0
    if run.result is None:
        planned = _section(run, "train").get("steps")
        of = f" of {planned:,}" if isinstance(planned, int) else ""
        return f'<strong class="warning">interrupted at step {last:,}{of}</strong>'
    value, optimum = run.result.value, run.result.optimum
    if value is None or optimum is None or optimum <= 0:
        return f"finished after {run.result.steps:,} steps"
    share = f"{100 * value / optimum:.1f} % of the exact optimum"
    return f"finished after {run.result.steps:,} steps at <strong>{share}</strong>"


def _notes(run: Run) -> str:
    notes = list(run.notes)
    if run.result is None:
        notes.append("There is no result.json, so the optimum and the baselines are unknown here.")
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _facts(run: Run) -> list[Fact]:
    result, last = run.result, run.steps[-1] if run.steps else Step(0)
    task = result.task if result else _section(run, "task")
    policy = result.policy if result else _planned_policy(run)
    end = result or last
    seed = result.seed if result else run.settings.get("seed")
    return [
        Fact("task", _word(task.get("family")), _pairs(task)),
        Fact("policy", _word(policy.get("kind")), _pairs(policy)),
        *([Fact("model", _word(policy["model"]))] if "model" in policy else []),
        Fact("parameters", number(policy.get("parameters")), "Numbers that training may change"),
        Fact("dtype", _word(policy.get("dtype"))),
        Fact("seed", _word(seed), "Everything random in the run follows from it"),
        Fact("steps", number(result.steps if result else last.step)),
        Fact("episodes / step", number(last.episodes)),
        Fact("time", seconds(end.seconds)),
        Fact("tokens generated", number(end.tokens_generated)),
        Fact("tokens trained", number(end.tokens_trained)),
    ]


def _planned_policy(run: Run) -> dict[str, Any]:
    """What the recipe says of the policy: its kind, and that kind's own settings."""
    policy = _section(run, "policy")
    own = policy.get(str(policy.get("kind")))
    return {"kind": policy.get("kind"), **(own if isinstance(own, dict) else {})}


def _section(run: Run, name: str) -> dict[str, Any]:
    found = run.settings.get(name)
    return found if isinstance(found, dict) else {}


def _word(value: Any) -> str:
    return UNKNOWN if value is None or value == "" else str(value)


def _pairs(table: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in table.items())


def _last_value(run: Run) -> float | None:
    known = [step.value for step in run.steps if step.value is not None]
    return run.result.value if run.result else known[-1] if known else None


def _policies(run: Run) -> str:
    """Learned policy, optimum and baselines side by side."""
    optimum = run.result.optimum if run.result else None
    baselines = run.result.baselines if run.result else {}
    rows = [("learned policy", _last_value(run), "learned"), ("optimum", optimum, "optimum")]
    rows += [
        (name.replace("_", " "), value, "baseline")
        for name, value in sorted(baselines.items(), key=lambda item: -item[1])
    ]
    body = "".join(_policy_row(*row, optimum) for row in rows)
    return (
        '<section class="policies"><h2>Value of the policy</h2>'
        '<table><thead><tr><th scope="col">policy</th><th scope="col">exact value</th>'
        f'<th scope="col">to optimum</th></tr></thead><tbody>{body}</tbody></table>'
        '<p class="quiet">Expected return of an episode, its costs taken off. '
        "Baselines are simpler policies.</p></section>"
    )


def _policy_row(name: str, value: float | None, role: str, optimum: float | None) -> str:
    if role == "optimum":
        gap = ""
    else:
        gap = UNKNOWN if value is None or optimum is None else fixed(value - optimum)
    return (
        f'<tr class="{role}"><th scope="row">{escape(name)}</th>'
        f"<td>{fixed(value)}</td><td>{gap}</td></tr>"
    )


def _curve(run: Run) -> str:
    head = '<section class="curve"><h2>Learning curve</h2>'
    if not run.steps:
        return f'{head}<p class="quiet">No step is recorded.</p></section>'
    data = curve_data(run)
    if not data["series"]:
        return f'{head}<p class="quiet">No step has a value or a reward.</p></section>'
    label = f"{' and '.join(s['name'] for s in data['series'])} over {len(run.steps)} steps"
    script = "<noscript>The curve is drawn by a script; this browser runs none.</noscript>"
    chart = f'<div class="chart" data-label="{escape(label)}">{embedded(data)}{script}</div>'
    return f"{head}{chart}</section>"


def curve_data(run: Run) -> dict[str, Any]:
    """What the chart draws: one entry a step in every column, `null` where unknown."""
    series = [
        {"name": name, "role": role, "values": [getattr(step, field) for step in run.steps]}
        for name, role, field in (
            ("mean reward", "reward", "reward"),
            ("exact value", "learned", "value"),
        )
    ]
    extras = [
        {"name": name.replace("_", " "), "values": [getattr(step, name) for step in run.steps]}
        for name in ("entropy", "loss", "episodes", "tokens_generated", "tokens_trained", "seconds")
    ]
    lines: list[dict[str, Any]] = []
    if run.result and run.result.optimum is not None:
        lines.append({"name": "optimum", "value": run.result.optimum, "role": "optimum"})
    if run.result:
        lines += [
            {"name": name.replace("_", " "), "value": value, "role": "baseline"}
            for name, value in run.result.baselines.items()
        ]
    return {
        "steps": [step.step for step in run.steps],
        "series": [each for each in series if any(v is not None for v in each["values"])],
        "extras": [each for each in extras if any(v is not None for v in each["values"])],
        "lines": lines,
    }


def _decisions(run: Run) -> str:
    head = '<section class="decisions"><h2>Learned decisions by state</h2>'
    if run.result is None:
        return f'{head}<p class="quiet">Known only after the last step.</p></section>'
    if run.result.decisions is None:
        return f'{head}<p class="quiet">This task lists no states.</p></section>'
    return f"{head}{heat_map(run.result.decisions)}</section>"


def _trace_section(packed: str, shown: Shown) -> str:
    head = '<section class="traces"><h2>Traces of the run</h2>'
    if not shown.traces:
        return f'{head}<p class="quiet">No trace is recorded.</p></section>'
    return f"{head}{lanes_view(packed, shown, 'last')}</section>"


def _config(run: Run) -> str:
    if not run.config:
        return '<p class="note">There is no config.toml.</p>'
    return (
        '<details class="config"><summary>config.toml</summary>'
        f"<pre>{escape(run.config)}</pre></details>"
    )
