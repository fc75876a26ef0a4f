"""A game as a tree that is written down beside its task, and knows nothing of the engine.

A position is a decision, a draw of chance, or an end. Positions that are reached by several ways
and go on alike are one state. Decisions that fall at one time follow in the order of the record.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from msgspec import Struct

from stretto.errors import StrettoError
from stretto.policies.softmax import Situation, Softmax
from stretto.team.interventions import Force, Resample, recorded
from stretto.team.protocols import Choice
from stretto.trace import Event, Trace, content_hash

State = Hashable


class Decide(Struct, frozen=True):
    """Somebody chooses; move `i` is candidate `i`."""

    role: str
    choice: Choice


class Chance(Struct, frozen=True):
    """Nature draws; move `i` has `probabilities[i]`."""

    probabilities: tuple[float, ...]
    paid: Mapping[str, float] = {}
    """What falls on the way here, by channel."""


class End(Struct, frozen=True):
    """The game is over."""

    payoffs: Mapping[str, float]
    """Expected value of every channel."""


Node = Decide | Chance | End


class Rules(Protocol):
    """The description of a game; hashable."""

    @property
    def start(self) -> State:
        """Where every episode begins."""
        ...

    def node(self, state: State) -> Node:
        """What a state is."""
        ...

    def after(self, state: State, move: int) -> State:
        """Where a move leads."""
        ...

    def outcome(self, state: State, event: Event) -> int | None:
        """Which move of chance this event of a trace shows; `None` where it shows none."""
        ...


@dataclass(frozen=True)
class Tree:
    """All states of a game, every one before those that follow it."""

    nodes: Mapping[State, Node]
    moves: Mapping[State, tuple[State, ...]]
    """Where each move of a state leads."""


@lru_cache(maxsize=64)
def explore(rules: Rules) -> Tree:
    """Enumerate a game."""
    nodes: dict[State, Node] = {}
    moves: dict[State, tuple[State, ...]] = {}
    finished: list[State] = []
    stack: list[tuple[State, bool]] = [(rules.start, False)]
    while stack:
        state, followed = stack.pop()
        if followed:
            finished.append(state)
        elif state not in nodes:
            nodes[state] = rules.node(state)
            moves[state] = tuple(rules.after(state, m) for m in range(_width(nodes[state])))
            stack.append((state, True))
            stack.extend((following, False) for following in moves[state])
    finished.reverse()
    return Tree(
        {state: nodes[state] for state in finished}, {state: moves[state] for state in finished}
    )


def _width(node: Node) -> int:
    match node:
        case Decide(_, choice):
            return len(choice.candidates)
        case Chance(probabilities):
            return len(probabilities)
        case End():
            return 0


def moves_of(state: State) -> tuple[int, ...]:
    """The moves so far, in a game whose states are just that."""
    assert isinstance(state, tuple)
    return state


class HistoryRules(Struct, frozen=True):
    """What games answer alike whose states are every move so far."""

    @property
    def start(self) -> State:
        """No move yet."""
        return ()

    def after(self, state: State, move: int) -> State:
        """Every move is kept."""
        return (*moves_of(state), move)


def asked(event: Event, choices: Iterable[Choice]) -> int | None:
    """Place of the choice whose observation a decision saw; `None` for no decision, or another."""
    seen = event.decision.observation if event.decision else None
    places = (place for place, each in enumerate(choices) if _hash(each.observation) == seen)
    return next(places, None)


def walk(rules: Rules, trace: Trace) -> list[State]:
    """The state at every decision of a trace, in record order.

    Raises `StrettoError` for a trace that left the rules, as after an event was taken away.
    """
    for event, do in recorded(trace).items() if "interventions" in trace.attrs else ():
        if not isinstance(do, Force | Resample):
            what = f"{type(do).__name__} has changed the rules"
            raise StrettoError(what, f"{trace.id}: {event}", _WHOLE)
    nodes = explore(rules).nodes
    state, found = rules.start, list[State]()
    for event in trace.events:
        if isinstance(nodes[state], Chance):
            move = rules.outcome(state, event)
            state = state if move is None else rules.after(state, move)
        if event.decision is not None:
            node = nodes[state]
            if not isinstance(node, Decide) or not _is_asked(event, node.choice):
                where = f"{trace.id}: {event.id}"
                raise StrettoError("the rules know no such decision here", where, _WHOLE)
            found.append(state)
            state = rules.after(state, event.decision.chosen or 0)
    return found


def _is_asked(event: Event, choice: Choice) -> bool:
    decision = event.decision
    assert decision is not None
    same = decision.candidates == choice.candidates and decision.chosen is not None
    return same and decision.observation == _hash(choice.observation)


_hash = lru_cache(maxsize=65_536)(content_hash)
_WHOLE = "exact values are known of episodes that the task played by its own rules"


def best_values(rules: Rules, channel: str = "outcome") -> dict[State, float]:
    """Value to come of every state where all deciders know the state and choose best."""
    tree = explore(rules)
    values: dict[State, float] = {}
    for state in reversed(tree.nodes):
        following = [values[after] for after in tree.moves[state]]
        values[state] = _back_up(tree.nodes[state], following, channel)
    return values


def _back_up(node: Node, following: Sequence[float], channel: str) -> float:
    match node:
        case Decide():
            return max(following)
        case Chance(probabilities, paid):
            return paid.get(channel, 0.0) + float(np.dot(probabilities, following))
        case End(payoffs):
            return payoffs[channel]


def optimum(rules: Rules, channel: str = "outcome") -> float:
    """Value of the best play, where all deciders know the state."""
    return best_values(rules, channel)[rules.start]


def optimal(rules: Rules, channel: str = "outcome") -> Softmax:
    """The best play as a policy; uniform in situations that it never meets.

    Where several states read alike, the one that is met first decides: right for games in which a
    situation is met in one state only, or in which the others' choices are certain.
    """
    tree, values = explore(rules), best_values(rules, channel)
    table: dict[Situation, list[float]] = {}
    stack = [rules.start]
    while stack:
        state = stack.pop()
        node, moves = tree.nodes[state], tree.moves[state]
        if isinstance(node, Decide):
            best = max(range(len(moves)), key=lambda move: values[moves[move]])
            row = [float(move == best) for move in range(len(moves))]
            table.setdefault((node.choice.observation, node.choice.candidates), row)
            moves = (moves[best],)
        stack.extend(moves)
    return Softmax.of(table)
