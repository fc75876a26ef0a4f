"""E3: what was never read, never used, or led nowhere."""

import numpy as np

from stretto.columns import Flags
from stretto.metrics.intervals import TRANSIT, Activities
from stretto.metrics.measure import Measure, by_evidence, join, no_bound, ratio, unknown, unseen
from stretto.metrics.output import NO_OUTPUT, final_output
from stretto.metrics.reach import upstream
from stretto.trace import Trace

NO_EDGES = "no edges are recorded"


def collaboration(trace: Trace, work: Activities, total: Measure) -> dict[str, Measure]:
    """Messages never read, returns never used, agents and work without a path to the output."""
    columns = trace.columns
    return {
        "unread_messages": _without_effect(trace, columns.is_kind(*TRANSIT), "messages"),
        "unused_returns": _without_effect(trace, columns.is_kind("return"), "returns"),
        **_unconnected(trace, work, total),
    }


def _without_effect(trace: Trace, wanted: Flags, what: str) -> Measure:
    """How many led to nothing at any other agent, if their receiver left a record of its own."""
    columns, parents = trace.columns, trace.columns.parents
    if not wanted.any():
        return Measure(0.0, "derived", unseen(trace))
    if not len(parents.source):
        return unknown(NO_EDGES)
    abroad = columns.agent[parents.source] != columns.agent[parents.target]
    effects = np.bincount(parents.source[abroad], minlength=len(columns.start))
    sure = np.bincount(parents.source[abroad & ~parents.is_guess], minlength=len(columns.start))
    turns = np.bincount(columns.agent[columns.is_kind("decision")], minlength=len(columns.agents))
    seen = np.append(turns > 0, False)[columns.receiver]  # the last place is that of UNKNOWN
    judged = wanted & (seen | (effects > 0))
    hidden = int(wanted.sum() - judged.sum())
    lost = f"the receivers of {hidden} of {int(wanted.sum())} {what} left no record"
    if not judged.any():
        return unknown(lost)
    how = by_evidence(bool((judged & (effects > 0) & (sure == 0)).any()))
    unread = float((judged & (effects == 0)).sum())
    return Measure(unread, how, join(lost if hidden else "", unseen(trace)))


def _unconnected(trace: Trace, work: Activities, total: Measure) -> dict[str, Measure]:
    names = ("unconnected_agents", "unconnected_work_share")
    columns, final = trace.columns, final_output(trace)
    if final.row is None or not len(columns.parents.source):
        return dict.fromkeys(names, unknown(NO_OUTPUT if final.row is None else NO_EDGES))
    useful = upstream(columns, np.array([final.row]))
    guessed = bool((columns.parents.is_guess & useful[columns.parents.target]).any())
    how = by_evidence(guessed or bool(final.note))
    acting = np.bincount(columns.agent, minlength=len(columns.agents)) > 0
    agents = np.bincount(columns.agent[useful], minlength=len(columns.agents)) > 0
    lost = float(np.nansum(work.work[~useful]))
    missing = join(no_bound(total.reason), final.note)
    dead = total if total.value is None else Measure(lost, how, missing)
    silent = len(columns.agents) - int(acting.sum())
    reason = f"{silent} agents without any event are not counted" if silent else ""
    return {
        names[0]: Measure(
            float((acting & ~agents).sum()), how, join(reason, unseen(trace), final.note)
        ),
        names[1]: ratio(dead, Measure(total.value, reason=dead.reason), "there is no work"),
    }
