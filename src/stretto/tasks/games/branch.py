"""Spawn or not: one decision whose benefit depends on what the lead sees.

The lead sees what kind of problem it has, and solves it alone or spawns a worker, which solves it
with another probability and has a cost. The effect of the spawn in context `h` is
`τ(h) = helped(h) - alone(h) - cost`. How often it is tried, `e(h) = P(spawn | h)`, belongs to the
policy that behaves; `behaviour` makes one with given propensities, 0 and 1 included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stretto.policies.softmax import Softmax
from stretto.tasks.games.game import Game
from stretto.tasks.games.tree import Chance, Decide, End, HistoryRules, Node, State, asked, moves_of
from stretto.tasks.parameters import require
from stretto.tasks.words import number_word
from stretto.team.noise import key_of, uniform
from stretto.team.protocols import (
    Call,
    Choice,
    Effect,
    Harness,
    Return,
    Spawn,
    Stop,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event

Floats = NDArray[np.float64]
ALONE, SPAWN = 0, 1
"""Places of the two candidates."""


class Branch(Game, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one game."""

    alone: tuple[float, ...] = (0.3, 0.5, 0.2, 0.7)
    """Probability of success without a worker, by context; all contexts are equally likely."""
    helped: tuple[float, ...] = (0.8, 0.6, 0.5, 0.6)
    """Probability of success with one."""
    cost: float = 0.1
    """Price of the worker, in units of a success."""

    def __post_init__(self) -> None:
        """Refuse rules that make no game."""
        checks = {
            "alone": len(self.alone) >= 1 and all(0 <= p <= 1 for p in self.alone),
            "helped": len(self.helped) == len(self.alone) and all(0 <= p <= 1 for p in self.helped),
            "cost": 0 <= self.cost < 1e6,
        }
        require(self, checks, "as many probabilities helped as alone, cost >= 0")

    @property
    def harness(self) -> Harness:
        """A lead, perhaps a worker, and the tool that tries to solve."""
        return HARNESS

    def begin(self, seed: int) -> "World":
        """Draw the context."""
        return World(int(uniform(key_of(seed, "context")) * len(self.alone)))

    def apply(self, world: "World", event: Event) -> None:
        """Note the spawn, and what the lead hears of the solution."""
        if event.kind == "spawn":
            world.spawned = True
        elif event.kind == "return" or (event.kind == "tool_result" and event.agent == ROOT):
            world.solved = bool(event.attrs.get("solved", False))

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The lead decides, waits, and submits."""
        if agent.id != ROOT or agent.open_children:
            return None
        return submit_at(world.solved) if agent.last_decision else choice_at(world.context)

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Try it alone, have it tried, or hand it in."""
        match choice:
            case "alone":
                return (Call("solve"),)
            case "spawn":
                return (Spawn("worker", f"Solve kind {number_word(world.context + 1)}."),)
            case _:
                return (Stop("Solved." if world.solved else "Unsolved."),)

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """The worker tries at once, and reports."""
        if event.kind == "spawn":
            return (Call("solve"),)
        if event.kind == "tool_result" and event.agent != ROOT:
            solved = bool(event.attrs.get("solved", False))
            return (Return("Solved." if solved else "Unsolved.", {"solved": solved}),)
        return ()

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """One attempt."""
        chances = self.alone if event.agent == ROOT else self.helped
        solved = uniform(key) < chances[world.context]
        return ToolResult("Solved." if solved else "Unsolved.", {"solved": solved})

    def scores(self, world: "World") -> Mapping[str, float]:
        """Success less the cost of the worker, and success alone."""
        solved = float(world.solved or False)
        return {"outcome": solved - self.cost * world.spawned, "solved": solved}


@dataclass(slots=True)
class World:
    """One episode."""

    context: int
    spawned: bool = False
    solved: bool | None = None
    """What the lead knows of it; `None` while it has heard nothing."""


@lru_cache(maxsize=256)
def choice_at(context: int) -> Choice:
    """What the lead is asked in this context."""
    seen = f"A problem of kind {number_word(context + 1)}."
    return Choice(seen, ("alone", "spawn"), ("act", "spawn"))


@lru_cache(maxsize=3)
def submit_at(solved: bool | None) -> Choice:
    """What the lead is asked at the end."""
    seen = {True: "It is solved.", False: "It is not solved.", None: "Nothing came back."}[solved]
    return Choice(seen, ("submit",), ("stop",))


HARNESS = Harness(
    system="Solve the problem alone, or spawn a worker.",
    root="lead",
    roles={"lead": "decides whether to spawn", "worker": "tries to solve the problem"},
    tools={"solve": ToolSpec(latency=1.0)},
)


class BranchRules(HistoryRules, frozen=True):
    """States: the start, a context, an attempt of one arm, its result, the end."""

    game: Branch

    def node(self, state: State) -> Node:
        """What the length of a state says."""
        match moves_of(state):
            case ():
                count = len(self.game.alone)
                return Chance((1 / count,) * count)
            case (context,):
                return Decide("lead", choice_at(context))
            case (context, arm):
                chance = (self.game.alone, self.game.helped)[arm][context]
                return Chance((1 - chance, chance))
            case (context, arm, solved):
                return Decide("lead", submit_at(bool(solved)))
            case (_, arm, solved, _):
                paid = solved - self.game.cost * arm
                return End({"outcome": paid, "solved": float(solved)})
            case _:
                raise AssertionError(state)

    def outcome(self, state: State, event: Event) -> int | None:
        """The first decision shows the context, the tool whether it is solved."""
        if state == ():
            return asked(event, map(choice_at, range(len(self.game.alone))))
        return int(bool(event.attrs.get("solved"))) if event.kind == "tool_result" else None


def spawn_effects(game: Branch) -> Floats:
    """`τ(h)` of every context; shape (contexts,). Its mean is the average effect."""
    return np.array(game.helped) - np.array(game.alone) - game.cost


def outcome_ranges(game: Branch) -> tuple[tuple[float, float], tuple[float, float]]:
    """Least and greatest outcome without and with a spawn: what bounds may rely on."""
    return (0.0, 1.0), (-game.cost, 1 - game.cost)


def behaviour(game: Branch, propensities: Sequence[float]) -> Softmax:
    """The policy that spawns in context `h` with probability `propensities[h]`, be it 0 or 1."""
    choices = [choice_at(context) for context in range(len(game.alone))]
    rows = zip(choices, propensities, strict=True)
    return Softmax.of({(each.observation, each.candidates): [1 - p, p] for each, p in rows})
