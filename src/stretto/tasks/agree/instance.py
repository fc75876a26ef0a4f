"""Instances of `agree`: a graph, who may talk to whom on it, and what every member knows.

`majority` and `maximum`: every member has an input; the majority is one vote wide. `colouring`: the
edges of a planted 3-colouring with a mean degree near the threshold (4.69 for three colours), so
that few colourings exist and greedy ones fail. `cost`: a partial 2-tree with weighted edges and
private prices, whose optimum is exact at any size. All graphs are connected.
"""

from collections.abc import Sequence
from itertools import combinations, permutations
from math import ceil, sqrt

from msgspec import Struct

from stretto.tasks.menus import shuffled
from stretto.team.noise import key_of, uniform

COLOURS = ("red", "blue", "green")
MOST_WEIGHT = 9
"""Weights are 1 to this, prices 0 to this."""
MOST_INPUT = 999
"""Inputs whose maximum is wanted are 0 to this."""
SPARSE = 0.3
"""How likely a member of a partial 2-tree has one edge to those before it, not two."""

ALL_TALK = 64
"""Most members of a debate who all write to each other.

More of them sit in a square, and each writes to its row and its column, so that news is everywhere
after two rounds; all to all, messages would grow with their square.
"""

Edge = tuple[int, int]


class Instance(Struct, frozen=True):
    """One graph and its private inputs."""

    edges: tuple[tuple[Edge, int], ...]
    """Pairs of members, smaller first, and the weight of the pair; sorted."""
    inputs: tuple[int, ...]
    """Input of every member: index into `COLOURS`, or a number; empty where there is none."""
    prices: tuple[tuple[int, ...], ...]
    """Price of every colour for every member; empty where colours are free."""

    def neighbours(self, member: int) -> list[tuple[int, int]]:
        """The members beside this one, with the weights of the pairs."""
        pairs = ((b if a == member else a, w) for (a, b), w in self.edges if member in (a, b))
        return sorted(pairs)


def generate(problem: str, members: int, degree: float, seed: int) -> Instance:
    """Draw the instance of these parameters; see `stretto.tasks.agree.Agree` for their meaning."""
    order = [int(name) for name in shuffled([str(n) for n in range(members)], seed, "order")]
    if problem == "cost":
        pairs = _partial_tree(order, seed)
        edges = tuple((pair, 1 + key_of(seed, f"weight {pair}") % MOST_WEIGHT) for pair in pairs)
        draws = range(len(COLOURS))
        prices = tuple(
            tuple(key_of(seed, f"price {n} {c}") % (MOST_WEIGHT + 1) for c in draws)
            for n in range(members)
        )
        return Instance(edges, (), prices)
    edges = tuple((pair, 1) for pair in _planted(order, degree, seed))
    return Instance(edges, _inputs(problem, order, seed), ())


def talk_edges(topology: str, instance: Instance, members: int) -> tuple[tuple[int, ...], ...]:
    """The members to whom each may write, under a topology (`stretto.tasks.topology`).

    Member 0 takes the lead's seat and the last one the critic's; the hierarchy is a binary tree; in
    a swarm those talk who are neighbours in the instance; in the harness nobody writes to anybody.
    A debate of more than `ALL_TALK` is one of rows and columns.
    """
    others = range(members)
    match topology:
        case "debate":
            pairs = _debate(members)
        case "centralized":
            pairs = {pair for n in others for pair in ((0, n), (n, 0))}
        case "hierarchical":
            pairs = {pair for n in others[1:] for pair in (((n - 1) // 2, n), (n, (n - 1) // 2))}
        case "planner_executor_critic":
            critic = members - 1
            pairs = {pair for n in others[1:critic] for pair in ((0, n), (n, critic))}
            pairs |= {(critic, 0)} | ({(0, critic)} if members == 2 else set[Edge]())
        case "swarm":
            pairs = {pair for (a, b), _ in instance.edges for pair in ((a, b), (b, a))}
        case _:
            pairs = set[Edge]()
    talk: list[list[int]] = [[] for _ in others]
    for a, b in sorted(pairs):
        talk[a].append(b)
    return tuple(map(tuple, talk))


def _debate(members: int) -> set[Edge]:
    width = members if members <= ALL_TALK else ceil(sqrt(members))
    rows = [range(first, min(first + width, members)) for first in range(0, members, width)]
    columns = [range(first, members, width) for first in range(width)]
    return {pair for line in (*rows, *columns) for pair in permutations(line, 2)}


def _planted(order: Sequence[int], degree: float, seed: int) -> list[Edge]:
    """A spanning tree and random pairs, all of them between different planted colours."""
    colour = {member: place % len(COLOURS) for place, member in enumerate(order)}
    found: set[Edge] = set()
    for place, member in enumerate(order[1:], start=1):
        before = [n for n in order[:place] if colour[n] != colour[member]]
        other = before[key_of(seed, f"tree {member}") % len(before)]
        found.add((min(member, other), max(member, other)))
    pairs = combinations(range(len(order)), 2)
    free = [f"{a} {b}" for a, b in pairs if colour[a] != colour[b] and (a, b) not in found]
    more = max(0, round(len(order) * degree / 2) - len(found))
    for pair in shuffled(free, seed, "edges")[:more]:
        a, b = pair.split()
        found.add((int(a), int(b)))
    return sorted(found)


def _partial_tree(order: Sequence[int], seed: int) -> list[Edge]:
    """Each member beside both ends of an edge of a 2-tree, or, if it comes out so, of one only."""
    whole = [(order[0], order[1])]
    found = [whole[0]]
    for member in order[2:]:
        a, b = whole[key_of(seed, f"edge {member}") % len(whole)]
        whole += [(a, member), (b, member)]
        found += [(a, member)]
        if uniform(key_of(seed, f"sparse {member}")) >= SPARSE:
            found.append((b, member))
    return sorted((min(pair), max(pair)) for pair in found)


def _inputs(problem: str, order: Sequence[int], seed: int) -> tuple[int, ...]:
    if problem == "majority":
        winner = key_of(seed, "winner") % 2
        most = len(order) // 2 + 1
        given = {m: winner if n < most else 1 - winner for n, m in enumerate(order)}
        return tuple(given[member] for member in range(len(order)))
    if problem == "maximum":
        numbers = shuffled([str(n) for n in range(MOST_INPUT + 1)], seed, "inputs")
        return tuple(int(number) for number in numbers[: len(order)])
    return ()
