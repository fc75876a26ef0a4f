"""Solvers of `agree`: answers, least costs, and how far news must travel; all exact.

Colourings are found by backtracking in the order of saturation (DSATUR, Brélaz, CACM 1979). Least
costs come from eliminating one variable after the other, in time `K^(w+1)` for treewidth `w`, which
is at most 2 in generated instances. Both always give the same one of several solutions, so members
who know the same find the same.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.agree.instance import COLOURS, Instance

Floats = NDArray[np.float64]
Weights = tuple[tuple[tuple[int, int], int], ...]


def distances(talk: Sequence[Sequence[int]], start: int) -> dict[int, int]:
    """Rounds after which each member can know what `start` knew; who never can is left out."""
    found = {start: 0}
    front = deque([start])
    while front:
        member = front.popleft()
        for other in talk[member]:
            if other not in found:
                found[other] = found[member] + 1
                front.append(other)
    return found


def eccentricity(talk: Sequence[Sequence[int]]) -> int:
    """Rounds after which everybody can know everything.

    Raises `StrettoError` for a talk graph in which somebody cannot be reached.
    """
    everybody = (1 << len(talk)) - 1
    known = [1 << member for member in range(len(talk))]  # as bits: who knows whose input
    rounds = 0
    while any(each != everybody for each in known):
        told = list(known)
        for member, others in enumerate(talk):
            for other in others:
                told[other] |= known[member]
        if told == known:
            raise StrettoError("somebody cannot be reached", "talk graph")
        known, rounds = told, rounds + 1
    return rounds


def assignment_cost(instance: Instance, colours: Mapping[int, int]) -> int:
    """Weights of the pairs that are coloured alike, and prices of the colours taken."""
    alike = sum(w for (a, b), w in instance.edges if colours[a] == colours[b])
    return alike + sum(prices[colours[n]] for n, prices in enumerate(instance.prices))


def random_cost(instance: Instance) -> float:
    """Expected cost if every member takes any colour, all alike."""
    alike = sum(weight for _, weight in instance.edges) / len(COLOURS)
    return alike + sum(sum(prices) for prices in instance.prices) / len(COLOURS)


@lru_cache(maxsize=256)
def proper_colouring(members: tuple[int, ...], edges: Weights) -> Mapping[int, int] | None:
    """A colouring in which no pair is alike, always the same one; `None` where there is none."""
    beside: dict[int, set[int]] = {member: set() for member in members}
    for (a, b), _ in edges:
        beside[a].add(b)
        beside[b].add(a)
    return _extend({}, beside)


@lru_cache(maxsize=256)
def least_cost(
    edges: Weights, prices: tuple[tuple[int, tuple[int, ...]], ...]
) -> Mapping[int, int]:
    """An assignment of least cost, always the same one, by variable elimination.

    `prices`: members and the prices of their colours; edges to others do not count.
    """
    known = dict(prices)
    factors: list[tuple[tuple[int, ...], Floats]] = [
        ((member,), np.array(row, dtype=np.float64)) for member, row in prices
    ]
    same = np.eye(len(COLOURS))
    factors += [((a, b), w * same) for (a, b), w in edges if a in known and b in known]
    steps: list[tuple[int, tuple[int, ...], Floats]] = []
    left = set(known)
    while left:
        member = min(left, key=lambda n: (len(_scope(factors, n)), n))
        scope = tuple(sorted(_scope(factors, member) - {member}))
        table = _joined(factors, (member, *scope))
        factors = [factor for factor in factors if member not in factor[0]]
        factors.append((scope, table.min(axis=0)))
        steps.append((member, scope, table))
        left.remove(member)
    chosen: dict[int, int] = {}
    for member, scope, table in reversed(steps):
        chosen[member] = int(table[(slice(None), *(chosen[n] for n in scope))].argmin())
    return chosen


def best_assignment(instance: Instance, members: int) -> Mapping[int, int]:
    """An assignment of least cost: exact.

    Raises `StrettoError` for a graph that three colours do not colour; generated ones they do.
    """
    if instance.prices:
        return least_cost(instance.edges, tuple(enumerate(instance.prices)))
    found = proper_colouring(tuple(range(members)), instance.edges)
    if found is None:
        raise StrettoError("three colours do not colour the graph", "best_assignment")
    return found


def agreed(problem: str, inputs: Sequence[int]) -> int:
    """What all should agree on: the colour of most (the first of those alike), or the maximum."""
    if problem == "maximum":
        return max(inputs)
    return max(range(2), key=lambda colour: list(inputs).count(colour))


def _extend(colours: dict[int, int], beside: Mapping[int, set[int]]) -> Mapping[int, int] | None:
    """Colour the member with the fewest colours left, and go back where none is left."""
    if len(colours) == len(beside):
        return colours
    taken = {
        member: {colours[other] for other in others if other in colours}
        for member, others in beside.items()
        if member not in colours
    }
    member = min(taken, key=lambda n: (-len(taken[n]), -len(beside[n]), n))
    for colour in range(len(COLOURS)):
        if colour not in taken[member]:
            found = _extend({**colours, member: colour}, beside)
            if found is not None:
                return found
    return None


def _scope(factors: Sequence[tuple[tuple[int, ...], Floats]], member: int) -> set[int]:
    return {other for scope, _ in factors if member in scope for other in scope}


def _joined(factors: Sequence[tuple[tuple[int, ...], Floats]], order: tuple[int, ...]) -> Floats:
    """Sum of the factors that hold the first of `order`, as one table with these axes."""
    total = np.zeros((len(COLOURS),) * len(order))
    for scope, table in factors:
        if order[0] in scope:
            axes = sorted(range(len(scope)), key=lambda axis: order.index(scope[axis]))
            places = {order.index(member) for member in scope}
            shape = [len(COLOURS) if place in places else 1 for place in range(len(order))]
            total = total + table.transpose(axes).reshape(shape)
    return total
