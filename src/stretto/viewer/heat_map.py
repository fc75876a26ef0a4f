"""The learned decisions as a table: rows are states, columns are choices."""

from collections.abc import Sequence
from html import escape

from stretto.viewer.facts import fixed
from stretto.viewer.run_folder import Decisions

_SHARE = 0.02
"""A choice that is optimal in less than this share of the states that read alike is not marked."""


def heat_map(decisions: Decisions) -> str:
    """Probabilities as shaded cells, the optimal choice outlined."""
    visits = decisions.visits
    rows = "".join(
        _row(state, decisions, index, None if visits is None else visits[index])
        for index, state in enumerate(decisions.states)
    )
    heads = "".join(f'<th scope="col">{escape(choice)}</th>' for choice in decisions.choices)
    if visits is not None:
        heads += '<th scope="col" class="visits">visits</th>'
    return (
        f'<p class="lede">{_summary(decisions)}</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Learned decisions by state">'
        f'<table class="heat"><thead><tr><th scope="col">state</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{_key(visits is not None)}"
    )


def agreement(decisions: Decisions) -> tuple[int, float | None]:
    """In how many states the likeliest choice is an optimal one, and their share of all visits."""
    right = [
        _best(optimal)[_top(probabilities)] == "best"
        for probabilities, optimal in zip(decisions.probabilities, decisions.optimal, strict=True)
    ]
    visits = decisions.visits
    if visits is None or not sum(visits):
        return sum(right), None
    share = sum(v for v, fine in zip(visits, right, strict=True) if fine) / sum(visits)
    return sum(right), share


def _summary(decisions: Decisions) -> str:
    count, share = agreement(decisions)
    text = f"The likeliest choice is optimal in {count} of {len(decisions.states)} states"
    return f"{text}." if share is None else f"{text}, which make {100 * share:.1f} % of all visits."


def _row(state: str, decisions: Decisions, index: int, visits: float | None) -> str:
    probabilities, optimal = decisions.probabilities[index], decisions.optimal[index]
    marks = _best(optimal)
    cells = "".join(
        _cell(f"{state} {choice}", probabilities[column], optimal[column], marks[column])
        for column, choice in enumerate(decisions.choices)
    )
    seen = "" if visits is None else f'<td class="visits">{visits:.3f}</td>'
    return f'<tr><th scope="row">{escape(state)}</th>{cells}{seen}</tr>'


def _cell(what: str, probability: float, share: float, mark: str) -> str:
    classes = " ".join(filter(None, ("strong" if probability > 0.55 else "", mark)))
    text = f"{probability:.2f}" if probability >= 0.005 else "·"
    hint = f"{what}: {fixed(probability)}; optimal {fixed(share)}"
    said = '<span class="hidden"> (optimal)</span>' if mark == "best" else ""
    return (
        f'<td class="{classes}" style="--p:{100 * probability:.1f}%" '
        f'title="{escape(hint)}">{text}{said}</td>'
    )


def _best(optimal: Sequence[float]) -> list[str]:
    """`best` for the optimal choice (or choices), `also` for those that are in some states."""
    most = max(optimal, default=0.0)
    return [
        "best" if share >= most - 1e-9 else "also" if share >= _SHARE else "" for share in optimal
    ]


def _top(probabilities: Sequence[float]) -> int:
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def _key(visits: bool) -> str:
    seen = " Visits are expected visits in an episode of the learned policy." if visits else ""
    return (
        '<p class="quiet key"><span class="sample best"></span>optimal choice '
        '<span class="sample also"></span>optimal in some of the states that read alike. '
        f"Cells are probabilities.{seen}</p>"
    )
