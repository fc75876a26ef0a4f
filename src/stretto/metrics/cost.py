"""E4: the price of a run, how much of it is coordination, and what a single agent needs."""

import numpy as np
from msgspec import structs

from stretto.columns import Columns, Flags, Floats, Ints
from stretto.metrics.intervals import TRANSIT
from stretto.metrics.measure import Measure, by_evidence, join, lower_bound, ratio, unknown, unseen
from stretto.metrics.overhead import overhead
from stretto.metrics.parallelism import NO_WORK, makespan
from stretto.metrics.prices import Prices, price_events
from stretto.metrics.reach import made_by_turns
from stretto.trace import Trace

COORDINATION = ("spawn", "delegate", "communicate", "aggregate")
"""Decisions that are about the team; `stop` and `act` are about the task."""
EFFECTS = ("spawn", "delegate", "message", "aggregate")
"""Events that make the turn that caused them one of coordination."""

STATED = ("cost_usd", "instance_cost")
"""Channels on which importers put the dollars of a whole run."""

NO_BASELINE = "no single-agent baseline is given"
NO_TURNS = "no turns are recorded"


def cost(trace: Trace, prices: Prices, baseline: Trace | str | None) -> dict[str, Measure]:
    """Price, coordination share, messages a turn, and all of it against a single agent."""
    columns = trace.columns
    letters = Measure(float(columns.is_kind(*TRANSIT).sum()), reason=lower_bound(unseen(trace)))
    return {
        "price": price(trace, prices),
        "coordination_share": coordination_share(columns, unseen(trace)),
        "messages_per_turn": ratio(letters, _turns(trace), NO_TURNS),
        **_against(trace, baseline, prices),
    }


def _turns(trace: Trace) -> Measure:
    turns = trace.columns.is_kind("decision")
    return Measure(float(turns.sum()), reason=lower_bound(unseen(trace)))


def price(trace: Trace, prices: Prices) -> Measure:
    """US dollars of all turns and tool calls."""
    priced = price_events(trace, prices)
    known = ~np.isnan(priced.dollars)
    stated = _stated(trace)
    if stated is not None and (priced.unpriced or not known.any()):
        return Measure(stated, reason="what the source states for the whole run")
    if not known.any():
        return unknown(priced.unpriced or "no turn or tool call has a price")
    how = "derived" if priced.from_table else "recorded"
    reason = lower_bound(priced.unpriced, unseen(trace))
    return Measure(float(priced.dollars[known].sum()), how, reason)


def _stated(trace: Trace) -> float | None:
    """US dollars that the source states for all together."""
    team = [each for each in trace.scores if each.agent is None and each.event is None]
    return next((each.value for each in team if each.channel in STATED), None)


def turn_tokens(columns: Columns) -> Floats:
    """Prompt and sampled tokens of every turn, as far as known; NaN where neither is."""
    both = np.stack([columns.input_tokens, columns.output_tokens])
    total = np.nansum(both, axis=0)
    total[np.isnan(both).all(axis=0) | ~columns.is_kind("decision")] = np.nan
    return total


def coordination_share(columns: Columns, hidden: str) -> Measure:
    """Share of tokens of turns that decide about the team, or that spawn, delegate, write or merge.

    `hidden` says what the trace leaves out, if anything.
    """
    tokens, turns = turn_tokens(columns), columns.is_kind("decision")
    known = ~np.isnan(tokens)
    if not tokens[known].sum():
        return unknown("no turn says how many tokens it took")
    made = made_by_turns(columns, columns.is_kind(*EFFECTS))
    coordinating = turns & _decides_about_the_team(columns, np.flatnonzero(turns))
    coordinating[columns.parents.source[made]] = True
    share = float(tokens[known & coordinating].sum() / tokens[known].sum())
    how = by_evidence(bool((columns.parents.is_guess & made).any()))
    return Measure(share, how, join(_silent_turns(columns), hidden))


def _silent_turns(columns: Columns) -> str:
    """Of how many turns prompt or sampled tokens are unknown; empty where of none."""
    silent = np.isnan(columns.input_tokens) | np.isnan(columns.output_tokens)
    partly = int((columns.is_kind("decision") & silent).sum())
    return f"the tokens of {partly} turns are not all known" if partly else ""


def _decides_about_the_team(columns: Columns, turns: Ints) -> Flags:
    decisions = [columns.events[row].decision for row in turns.tolist()]
    found = np.zeros(len(columns.start), dtype=bool)
    found[turns] = [each is not None and each.type in COORDINATION for each in decisions]
    return found


def _against(trace: Trace, baseline: Trace | str | None, prices: Prices) -> dict[str, Measure]:
    """Overhead `(T - T0) / T0` in turns, tokens and dollars; speed-up `makespan0 / makespan`."""
    names = ("turn_overhead", "token_overhead", "price_overhead")
    if not isinstance(baseline, Trace):
        return dict.fromkeys((*names, "speedup"), unknown(baseline or NO_BASELINE))
    values = [_spent(each, prices) for each in (trace, baseline)]
    ratios = [ratio(own, base, "the baseline has none") for own, base in zip(*values, strict=True)]
    found = {
        name: Measure(None if each.value is None else each.value - 1, each.how, each.reason)
        for name, each in zip(names, ratios, strict=True)
    }
    found["speedup"] = ratio(makespan(baseline), makespan(trace), NO_WORK)
    agents = len(baseline.agents)
    crowd = f"the baseline has {agents} agents" if agents > 1 else ""
    return {
        name: structs.replace(each, reason=join(each.reason, crowd)) for name, each in found.items()
    }


def _spent(trace: Trace, prices: Prices) -> tuple[Measure, Measure, Measure]:
    taken, sampled = overhead(trace).values()
    missing = next((m for m in (taken, sampled) if m.value is None), None)
    lost = lower_bound(_silent_turns(trace.columns), unseen(trace))
    tokens = missing or Measure((taken.value or 0) + (sampled.value or 0), reason=lost)
    return _turns(trace), tokens, price(trace, prices)
