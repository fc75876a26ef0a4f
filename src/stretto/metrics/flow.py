"""E4: how far untrusted content travels along the causes."""

import numpy as np

from stretto.columns import Columns, Flags
from stretto.metrics.measure import (
    Measure,
    by_evidence,
    join,
    lower_bound,
    no_bound,
    unknown,
    unseen,
)
from stretto.metrics.output import NO_OUTPUT, FinalOutput, final_output
from stretto.metrics.reach import downstream
from stretto.trace import Trace

NAMES = (
    *("untrusted_sources", "untrusted_events", "untrusted_share"),
    *("untrusted_agents", "untrusted_output"),
)


def untrusted_flow(trace: Trace) -> dict[str, Measure]:
    """Events, agents and the final output that depend on content from an untrusted source.

    This is plain reachability: everything that could have been influenced, which is an upper bound
    of what was.
    """
    columns = trace.columns
    if np.isnan(columns.trusted).all():
        return dict.fromkeys(NAMES, unknown("no event says whether its content is trusted"))
    sources = columns.trusted == 0
    reached = downstream(columns, np.flatnonzero(sources))
    guessed = bool((columns.parents.is_guess & reached[columns.parents.source]).any())
    silent, hidden, final = _silent_answers(columns), unseen(trace), final_output(trace)
    how, counted = by_evidence(guessed), lower_bound(silent, hidden)
    share = join(silent, hidden) if hidden else counted
    return {
        "untrusted_sources": Measure(float(sources.sum()), "recorded", counted),
        "untrusted_events": Measure(float(reached.sum()), how, counted),
        "untrusted_share": Measure(float(reached.mean()), how, share),
        "untrusted_agents": Measure(float(len(np.unique(columns.agent[reached]))), how, counted),
        "untrusted_output": _output(reached, final, guessed, share),
    }


def _silent_answers(columns: Columns) -> str:
    answers = columns.is_kind("tool_result")
    silent = int((answers & np.isnan(columns.trusted)).sum())
    return f"{silent} of {int(answers.sum())} tool results do not say" if silent else ""


def _output(reached: Flags, final: FinalOutput, guessed: bool, missing: str) -> Measure:
    """Whether the final output is reached; no bound where another event may be the last."""
    if final.row is None:
        return unknown(NO_OUTPUT)
    how = by_evidence(guessed or bool(final.note))
    reason = join(no_bound(missing), final.note) if final.note else missing
    return Measure(float(reached[final.row]), how, reason)
