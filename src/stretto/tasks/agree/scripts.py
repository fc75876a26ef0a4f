"""Scripted policies for `agree`; they see what any policy sees.

| script | what it does |
|---|---|
| `oracle` | shares until all can know everything, works the answer out, and commits to it |
| `greedy` | consensus: shares once; colours: one after the other, each takes the cheapest |
| `solo` | nobody hears of the others: commits to the best that it can work out alone |
| `silent` | the same: who is told nothing is alone |
| `blind` | picks by the number of its turn only |
| `random` | picks any candidate, all alike |
"""

from collections.abc import Iterable, Mapping
from functools import partial
from re import findall

from stretto.policies.scripted import Scripted
from stretto.tasks.agree import Agree, rounds_needed
from stretto.tasks.agree.instance import COLOURS
from stretto.tasks.agree.solve import agreed, least_cost, proper_colouring
from stretto.tasks.menus import size_of
from stretto.tasks.scripts import Yardstick, anybody, blind, everyone
from stretto.tasks.words import number_word
from stretto.team.protocols import Ask, Policy

GUESS = 0.5
"""Expected outcome of the best fixed answer of all members at a majority, over instances: exact."""


def scripts(task: Agree) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    consensus = task.problem in ("majority", "maximum")
    alone = partial(_flood, problem=task.problem, rounds=0)
    rules = {
        "oracle": partial(_flood, problem=task.problem, rounds=rounds_needed(task)),
        "greedy": partial(_flood, problem=task.problem, rounds=1) if consensus else _local,
        "solo": alone,
        "silent": alone,
        "blind": blind,
        "random": anybody,
    }
    roles = tuple(task.harness.roles)
    return {name: everyone(roles, Scripted(rule, f"agree-{name}")) for name, rule in rules.items()}


def yardstick(task: Agree) -> Yardstick:
    """Who knows all is right. Members have numbers for names, and inputs hide nothing in words.

    Chance at a majority is a common guess, "all commit to red", which is right in every second
    instance and then scores 1; members who guess one by one score less. Elsewhere a fixed answer
    scores 0 (of a maximum, nobody knows more than its own number without talk; in a colouring all
    pairs are alike), or little (`cost`), and episodes have to say what chance does.
    """
    return Yardstick(best=1.0, random=GUESS if task.problem == "majority" else None)


def _flood(ask: Ask, problem: str, rounds: int) -> str:
    if "You are" not in ask.prompt:
        return ask.candidates[0]
    me, turn, lines = _parse(ask.prompt)
    if turn < rounds and "share" in ask.candidates:
        return "share"
    return f"commit {_solve(problem, me, _facts(lines))}"


def _local(ask: Ask) -> str:
    """In the order of the members: propose the cheapest colour beside those before, and commit."""
    if "You are" not in ask.prompt:
        return ask.candidates[0]
    me, turn, lines = _parse(ask.prompt)
    takes = {other: colour for other, colour in findall(r"(\S.*) takes (\w+)\.", ask.prompt)}
    weights, prices = _row(_facts(lines)[me])
    cost = dict(zip(COLOURS, prices or [0] * len(COLOURS), strict=True))
    for other, weight in weights.items():
        if (colour := takes.get(number_word(other + 1))) is not None:
            cost[colour] += weight
    best = min(COLOURS, key=lambda colour: cost[colour])
    if turn < me:
        return "wait"
    return f"propose {best}" if turn == me else f"commit {best}"


def _parse(prompt: str) -> tuple[int, int, list[str]]:
    """Who the reader is, which round it is, and what it knows."""
    first, second, *lines = prompt.splitlines()
    me = size_of(first.removeprefix("You are ").rstrip(".")) - 1
    return me, size_of(second.removeprefix("Round: ").rstrip(".")), lines


def _facts(lines: Iterable[str]) -> dict[int, str]:
    """What is known of each member; who takes which colour is no such fact."""
    facts: dict[int, str] = {}
    for line in lines:
        name, found, _ = line.partition(" beside ")
        if not found:
            name, found, _ = line.partition(": ")
        if found:
            facts[size_of(name) - 1] = line.rstrip(".")
    return facts


def _solve(problem: str, me: int, facts: Mapping[int, str]) -> str:
    if problem == "majority":
        return COLOURS[agreed(problem, [COLOURS.index(f.split(": ")[1]) for f in facts.values()])]
    if problem == "maximum":
        return number_word(agreed(problem, [size_of(f.split(": ")[1]) for f in facts.values()]))
    rows = {member: _row(facts[member]) for member in sorted(facts)}
    pairs = {
        (min(a, b), max(a, b)): weight
        for a, (weights, _) in rows.items()
        for b, weight in weights.items()
        if b in rows
    }
    edges = tuple(sorted(pairs.items()))
    if problem == "cost":
        prices = tuple((member, tuple(prices)) for member, (_, prices) in rows.items())
        return COLOURS[least_cost(edges, prices)[me]]
    return COLOURS[(proper_colouring(tuple(rows), edges) or {me: 0})[me]]


def _row(fact: str) -> tuple[dict[int, int], list[int]]:
    """The weights of the pairs that a member is in, and the prices of its colours."""
    beside, _, costs = fact.partition(" beside ")[2].partition("; ")
    weights: dict[int, int] = {}
    for pair in beside.split(", "):
        name, _, weight = pair.partition(" at ")
        weights[size_of(name) - 1] = size_of(weight) if weight else 1
    return weights, [size_of(price.split(" ", 1)[1]) for price in costs.split(", ") if price]
