"""E2: agents that one turn spawned together: Critical Steps and stragglers."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from stretto.columns import UNKNOWN, Columns, Floats
from stretto.metrics.intervals import Activities, open_ended
from stretto.metrics.measure import Measure, by_evidence, join, lower_bound, unknown, unseen
from stretto.metrics.reach import made_by_turns
from stretto.trace import Trace

STRAGGLES = 1.5
"""An agent straggles that takes more than this many times the median of its siblings."""


class Groups(Struct, frozen=True):
    """Which agents every turn spawned."""

    children: Mapping[int, Mapping[int, tuple[int, ...]]]
    """By spawning agent and by turn (its row): codes of the spawned agents, each agent once."""
    unplaced: int
    """Spawns of which no turn is known."""
    guessed: bool
    """Whether an edge from a turn to its spawn is a guess."""


def sibling_groups(columns: Columns) -> Groups:
    """Agents by the turn that spawned them."""
    parents = columns.parents
    spawns = columns.is_kind("spawn") & (columns.receiver != UNKNOWN)
    made = made_by_turns(columns, spawns)
    seen: set[int] = set()
    children: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    pairs = zip(parents.source[made].tolist(), parents.target[made].tolist(), strict=True)
    for turn, spawn in pairs:
        child = int(columns.receiver[spawn])
        if child not in seen:
            seen.add(child)
            children[int(columns.agent[turn])][turn].append(child)
    placed = np.unique(parents.target[made])
    return Groups(
        {who: {t: tuple(c) for t, c in turns.items()} for who, turns in children.items()},
        int(spawns.sum()) - len(placed),
        bool(columns.parents.is_guess[made].any()),
    )


def siblings(trace: Trace, work: Activities) -> dict[str, Measure]:
    """Critical Steps, the ratio of the slowest sibling to the median one, and how many straggle."""
    groups = sibling_groups(trace.columns)
    return {"critical_steps": _critical_steps(trace, groups), **_stragglers(trace, work, groups)}


def _critical_steps(trace: Trace, groups: Groups) -> Measure:
    """Turns of the main agent, and at every stage those of the sub-agent with the most."""
    columns = trace.columns
    turns = np.bincount(columns.agent[columns.is_kind("decision")], minlength=len(columns.agents))
    spawned = set(columns.receiver[columns.is_kind("spawn")].tolist())
    parentless = {number for number, agent in enumerate(trace.agents) if agent.parent is None}
    mains = [a for a in np.flatnonzero(turns).tolist() if a in parentless and a not in spawned]
    if len(mains) != 1:
        return unknown(f"{len(mains)} agents with turns have no parent: there is no main agent")
    if groups.unplaced:
        return unknown(f"of {groups.unplaced} spawns it is not known which turn made them")
    steps = _steps_below(mains[0], turns.tolist(), groups)
    return Measure(float(steps), by_evidence(groups.guessed), lower_bound(unseen(trace)))


def _steps_below(main: int, turns: list[int], groups: Groups) -> int:
    """`turns + Σ max children` over the groups of an agent, from the leaves up."""
    order, seen = [main], {main}
    for agent in order:  # grows while it is read
        for team in groups.children.get(agent, {}).values():
            order += [child for child in team if child not in seen]
            seen.update(team)
    steps = dict.fromkeys(order, 0)
    for agent in reversed(order):
        teams = groups.children.get(agent, {}).values()
        steps[agent] = turns[agent] + sum(max(steps[child] for child in team) for team in teams)
    return steps[main]


def _stragglers(trace: Trace, work: Activities, groups: Groups) -> dict[str, Measure]:
    names = ("straggler_ratio", "stragglers")
    teams = [t for by_turn in groups.children.values() for t in by_turn.values() if len(t) > 1]
    if not teams:
        return dict.fromkeys(names, unknown("no turn spawned two agents or more"))
    first, last = bounds(trace.columns, work)
    lives = last - first
    times = [each for team in teams if len(each := _known(lives[list(team)])) > 1]
    if not times:
        return dict.fromkeys(names, unknown("the times of no two siblings are known"))
    middles = [float(np.median(each)) for each in times]
    placed = [(each, middle) for each, middle in zip(times, middles, strict=True) if middle > 0]
    if not placed:
        return dict.fromkeys(names, unknown("the median life of siblings is 0"))
    all_ = [child for team in teams for child in team]
    open_ = np.isnan(lives) | open_ended(trace.columns)
    open_[trace.columns.agent[np.isnan(work.begin)]] = True  # such an event may be the last
    lost = int(open_[all_].sum())
    unclear = f"the lives of {lost} of {len(all_)} siblings are not all known" if lost else ""
    note = join(unclear, unseen(trace))
    how = by_evidence(groups.guessed)
    slow = sum(int((each > STRAGGLES * middle).sum()) for each, middle in placed)
    return {
        "straggler_ratio": Measure(max(float(each.max()) / mid for each, mid in placed), how, note),
        "stragglers": Measure(float(slow), how, note),
    }


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def bounds(columns: Columns, work: Activities) -> tuple[Floats, Floats]:
    """First begin and last end of every agent's own events.

    NaN where no time is known, and for an agent of which no work is recorded: its life is not seen.
    """
    known = np.flatnonzero(~np.isnan(work.begin))
    who = columns.agent[known]
    first, last = (np.full(len(columns.agents), sign * np.inf) for sign in (1, -1))
    np.minimum.at(first, who, work.begin[known])
    own = ~columns.is_kind("message", "delegate")[known]  # those are on their way, the agent is not
    end = columns.start[known] + np.where(own, np.nan_to_num(columns.duration[known]), 0.0)
    np.maximum.at(last, who, end)
    silent = np.isinf(first) | (np.bincount(columns.agent[work.is_work], minlength=len(first)) == 0)
    first[silent] = last[silent] = np.nan
    return first, last
