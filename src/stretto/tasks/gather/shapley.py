"""What each agent of a `gather` episode is worth: exact Shapley values for teams of any size.

The game is `mask_frozen` (see `stretto.credit.coalitional.coalitions`): a coalition `S` of workers,
with the lead, is worth the item F1 of the cells that they wrote. With `R` right cells, `P` rows
that have any cell, and a table of `m` rows and `a` columns, that is

    F1 = 2 R / (a P + a m) = (2 / a) · R · ∫₀¹ y^(P + m - 1) dy,

and the Shapley value is the expected marginal worth to a team that everybody joined with
probability `t`, over `t` from 0 to 1 (Owen 1972). Under both integrals the workers are independent:
each contributes a factor to `E[y^P]`, and a term to `E[R y^P]`. They meet only in rows that several
of them fill, and in whom they need: where somebody stands between, a worker is there only if that
agent is, which is worth something for it. So the agents are passed in the order of their rows, and
the state is which of the rows that are still shared with later workers have been touched, and which
of the agents that later workers need are there, forwards and backwards. Both integrands are
polynomials, of degree `n - 1` in `t` and at most `2 m - 1` in `y`, so Gauss-Legendre quadrature
with `⌈n / 2⌉` and `m` nodes is exact, to rounding.

Time: `O(n² m 2^w)` for `n` agents, where `w` is how many rows and agents between are open at once:
at most 2 where the lead sent its workers once, since their shares are runs of cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.gather import Gather, instance_of
from stretto.team.interventions import is_void
from stretto.team.state import ROOT
from stretto.trace import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDEST = 8
"""Most rows, and agents between, that may be shared with later workers at once."""
BLOCK = 4096
"""Pairs of nodes that are worked on at once, so that they stay in the processor's cache."""
NEWTON_STEPS = 6
"""Steps that settle a node to rounding; the error squares with each."""


@dataclass(frozen=True)
class Share:
    """What one agent wrote."""

    right: int
    """Cells with the right value."""
    rows: frozenset[int]
    """Rows of the table that it filled any cell of."""
    above: int | None = None
    """Place among the shares of the agent that it needs to be there; `None` for the lead."""


def gather_shapley(trace: Trace) -> Mapping[str, float]:
    """The value of every agent; the lead gets what its own cells are worth alone.

    Raises `StrettoError` for another task's trace, and for a cell that two agents wrote.
    """
    parameters = dict(trace.spec)
    if parameters.pop("family", None) != "gather":
        raise StrettoError("the trace is not one of gather", trace.id)
    return agent_values(Gather(**parameters), trace)


def agent_values(task: Gather, trace: Trace) -> Mapping[str, float]:
    """The same, of a trace of this task."""
    own = shares_of(trace, task)
    spawned = [agent for agent in trace.agents if agent.id != ROOT]
    workers = [agent.id for agent in spawned]
    place = {name: index for index, name in enumerate(workers)}
    shares = [replace(own[a.id], above=place.get(a.parent or ROOT)) for a in spawned]
    lead = own[ROOT]
    values = worker_values(shares, lead, task.entities, task.attributes)
    alone = 2 * lead.right / (task.attributes * (len(lead.rows) + task.entities))
    return {ROOT: alone, **dict(zip(workers, values.tolist(), strict=True))}


def shares_of(trace: Trace, task: Gather) -> Mapping[str, Share]:
    """What every agent wrote into the shared table.

    Raises `StrettoError` for a cell that two agents wrote: their game has no such form.
    """
    truth = instance_of(task).truth
    row = {cell: index // task.attributes for index, cell in enumerate(truth)}
    writer: dict[str, str] = {}
    written: dict[str, dict[str, str]] = {agent.id: {} for agent in trace.agents}
    for event in trace.events:
        if event.kind == "tool_result" and event.tool == "write_cell" and not is_void(event):
            cell = event.attrs["cell"]
            if writer.setdefault(cell, event.agent) != event.agent:
                what = f"two agents wrote {cell}: {writer[cell]} and {event.agent}"
                raise StrettoError(what, f"{trace.id}: {event.id}", "use sampled_shapley")
            written[event.agent][cell] = event.attrs["value"]
    return {
        name: Share(
            right=sum(truth[cell] == value for cell, value in cells.items()),
            rows=frozenset(row[cell] for cell in cells),
        )
        for name, cells in written.items()
    }


def worker_values(shares: Sequence[Share], lead: Share, rows: int, columns: int) -> Floats:
    """Exact Shapley values of agents beside a lead that is always there; shape (agents,).

    Raises `StrettoError` where more than `WIDEST` rows and agents between are open at once.
    """
    order = _order(shares)
    steps = list(_steps(shares, order, lead.rows))
    most = max((int(step.fresh.max()) for step in steps), default=0)
    values = np.zeros(len(shares))
    for chance, power, weight in _nodes(len(order), rows, rows - 1 + len(lead.rows)):
        powers = power ** np.arange(most + 1)[:, None]
        values[order] += _marginals(steps, float(lead.right), chance, powers, weight)
    return values * 2 / columns


def _order(shares: Sequence[Share]) -> list[int]:
    """Agents by their first row, or that of those below, who come after them.

    Whoever filled nothing, nor had anything filled, changes no coalition and is left out.
    """
    first: dict[int, tuple[int, int]] = {}
    for index, share in enumerate(shares):
        line = [index]
        while (above := shares[line[-1]].above) is not None:
            line.append(above)
        for depth, agent in enumerate(reversed(line)) if share.rows or share.right else ():
            place = min(share.rows, default=0), depth
            first[agent] = min(place, first.get(agent, place))
    return sorted(first, key=first.__getitem__)


@dataclass(frozen=True)
class _Step:
    """How an agent changes what is open; one entry a state before it."""

    absent: Ints
    """State after it where the agent is not there."""
    present: Ints
    """State after it where it is."""
    fresh: Ints
    """Rows that it touches first."""
    right: Ints
    """Right cells that it adds."""
    after: int
    """Number of states after it."""


def _steps(
    shares: Sequence[Share], order: Sequence[int], filled: frozenset[int]
) -> Iterator[_Step]:
    """One step an agent; a state is a bit mask over the open rows and agents.

    An agent that others need stands among the rows as a negative number.
    """
    needed = [shares[index].above for index in order]
    own = [shares[k].rows - filled | ({-1 - k} if k in needed else set[int]()) for k in order]
    need = [set[int]() if above is None else {-1 - above} for above in needed]
    last = {mark: index for index in range(len(order)) for mark in own[index] | need[index]}
    opened: list[int] = []
    for index, agent in enumerate(order):
        after = sorted(mark for mark in {*opened, *own[index]} if last[mark] > index)
        if len(after) > WIDEST:
            what = f"{len(after)} rows are shared with later workers at once, at most {WIDEST} can"
            raise StrettoError(what, hint="use sampled_shapley")
        states = [
            {mark for bit, mark in enumerate(opened) if state >> bit & 1}
            for state in range(2 ** len(opened))
        ]
        there = [need[index] <= state for state in states]
        present = [s | own[index] if here else s for s, here in zip(states, there, strict=True)]
        fresh = [sum(mark >= 0 for mark in p - s) for p, s in zip(present, states, strict=True)]
        yield _Step(
            absent=_masks(states, after),
            present=_masks(present, after),
            fresh=np.array(fresh),
            right=shares[agent].right * np.array(there),
            after=2 ** len(after),
        )
        opened = after


def _masks(states: Sequence[set[int]], rows: Sequence[int]) -> Ints:
    return np.array([sum(1 << bit for bit, row in enumerate(rows) if row in s) for s in states])


def _nodes(workers: int, rows: int, lowest: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Pairs of nodes in blocks: `t`, `y`, and the weight with `y^lowest` in it."""
    t, t_weight = _gauss(max(1, -(-workers // 2)))
    y, y_weight = _gauss(rows)
    chance, power = np.repeat(t, len(y)), np.tile(y, len(t))
    weight = np.repeat(t_weight, len(y)) * np.tile(y_weight * y**lowest, len(t))
    for start in range(0, len(chance), BLOCK):
        part = slice(start, start + BLOCK)
        yield chance[part], power[part], weight[part]


def _gauss(count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [0, 1], by Newton's method from Tricomi's first guess.

    numpy's own go through the eigenvalues of a matrix, which took longer than all the rest.
    """
    node = np.cos(np.pi * (np.arange(count) + 0.75) / (count + 0.5))
    slope = np.ones(count)
    for _ in range(NEWTON_STEPS):
        below, here = np.ones(count), node
        for degree in range(2, count + 1):
            ahead = ((2 * degree - 1) * node * here - (degree - 1) * below) / degree
            below, here = here, ahead
        slope = count * (node * here - below) / (node * node - 1)
        node = node - here / slope
    return (node + 1) / 2, 1 / ((1 - node * node) * slope * slope)


def _marginals(
    steps: Sequence[_Step],
    base: float,
    chance: Floats,
    powers: Floats,
    weight: Floats,
) -> Floats:
    """The weighted sum over nodes of what every agent adds; shape (agents,).

    `count` holds `E[y^P]` and `worth` `E[R y^P]`, by state and node, `powers` `y^0`, `y^1`, ….
    """
    behind = _backward(steps, chance, powers)
    count, worth = np.ones((1, len(chance))), np.full((1, len(chance)), base)
    found = np.empty(len(steps))
    for index, step in enumerate(steps):
        later_count, later_worth = behind[index]
        joined, own = powers[step.fresh], step.right[:, None]
        there = worth * later_count[step.present]
        there += count * (later_worth[step.present] + own * later_count[step.present])
        gone = worth * later_count[step.absent] + count * later_worth[step.absent]
        found[index] = ((joined * there - gone).sum(axis=0) * weight).sum()
        joined *= chance
        count, worth = _forward(step, chance, joined, count, worth)
    return found


def _forward(
    step: _Step, chance: Floats, joined: Floats, count: Floats, worth: Floats
) -> tuple[Floats, Floats]:
    after_count = np.zeros((step.after, len(chance)))
    after_worth = np.zeros((step.after, len(chance)))
    for state, (absent, present) in enumerate(zip(step.absent, step.present, strict=True)):
        after_count[absent] += (1 - chance) * count[state]
        after_worth[absent] += (1 - chance) * worth[state]
        after_count[present] += joined[state] * count[state]
        after_worth[present] += joined[state] * (worth[state] + step.right[state] * count[state])
    return after_count, after_worth


def _backward(
    steps: Sequence[_Step], chance: Floats, powers: Floats
) -> list[tuple[Floats, Floats]]:
    """For every agent `E[y^P]` and `E[R y^P]` of those after it, by the state after it."""
    count, worth = np.ones((1, len(chance))), np.zeros((1, len(chance)))
    found: list[tuple[Floats, Floats]] = []
    for step in reversed(steps):
        found.append((count, worth))
        joined = chance * powers[step.fresh]
        before = (1 - chance) * worth[step.absent]
        before += joined * (worth[step.present] + step.right[:, None] * count[step.present])
        count = (1 - chance) * count[step.absent] + joined * count[step.present]
        worth = before
    return found[::-1]
