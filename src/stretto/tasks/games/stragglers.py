"""Stragglers: spawning helps, but takes longer where problems are hard, and there is a deadline.

The lead works alone or spawns workers that work side by side; each needs an exponential time whose
mean grows with the difficulty, and is cut off at the deadline. How long is drawn when the work
starts, so that a branch with another seed draws it anew; nobody who decides sees it. An episode in
which somebody was cut off has no outcome (it was not scored), though its work would have been worth
something: the channel `eventual`. Given difficulty and decision, time and success are independent;
so weights `1 / P(finished | difficulty, decision)` undo the selection, while counting a timeout as
0, or dropping it, does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.tasks.games.game import Game
from stretto.tasks.games.tree import Chance, Decide, End, Node, State, asked, moves_of
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


class Stragglers(Game, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one game."""

    alone: tuple[float, ...] = (0.6, 0.4, 0.2)
    """Success of the lead alone, by difficulty; all difficulties are equally likely."""
    together: tuple[float, ...] = (0.7, 0.6, 0.4)
    """Success of each worker's share."""
    slowness: tuple[float, ...] = (1.0, 2.0, 3.0)
    """By what factor a difficulty lengthens all times."""
    workers: int = 3
    """Workers of a spawn."""
    alone_seconds: float = 1.0
    """Mean time of the lead alone at slowness 1."""
    worker_seconds: float = 1.5
    """Mean time of a worker at slowness 1."""
    deadline: float = 4.0
    """Seconds after which work is cut off."""

    def __post_init__(self) -> None:
        """Refuse rules that make no game."""
        count = len(self.alone)
        checks = {
            "alone": count >= 1 and all(0 <= p <= 1 for p in self.alone),
            "together": len(self.together) == count and all(0 <= p <= 1 for p in self.together),
            "slowness": len(self.slowness) == count and all(s > 0 for s in self.slowness),
            "workers": 1 <= self.workers <= 12,
            "alone_seconds": 0 < self.alone_seconds < 1e6,
            "worker_seconds": 0 < self.worker_seconds < 1e6,
            "deadline": 0 < self.deadline < 1e6,
        }
        require(self, checks, "one entry a difficulty in each list, workers 1 to 12, times > 0")

    @property
    def harness(self) -> Harness:
        """A lead, workers, and work that takes its time."""
        return HARNESS

    def begin(self, seed: int) -> "World":
        """Draw the difficulty."""
        return World(int(uniform(key_of(seed, "difficulty")) * len(self.alone)))

    def apply(self, world: "World", event: Event) -> None:
        """Note who was spawned, and what came back."""
        if event.kind == "spawn":
            world.spawned += 1
        elif event.kind == "return" or (event.kind == "tool_result" and _is_alone(event)):
            late, success = (bool(event.attrs.get(name)) for name in ("late", "success"))
            world.back.append((late, success))

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The lead decides, waits, and hands in what there is."""
        if agent.id != ROOT or agent.open_children:
            return None
        return submit_at(world.finished) if agent.last_decision else choice_at(world.difficulty)

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Work alone, spawn workers, or hand it in."""
        match choice:
            case "alone":
                return (Call("start"),)
            case "spawn":
                return (Spawn("worker", "Do your share."),) * self.workers
            case _:
                return (Stop("Here it is." if world.finished else "Time is up."),)

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """Whoever has started works, and a worker returns what it has."""
        if event.kind == "spawn":
            return (Call("start"),)
        if event.kind == "tool_result" and event.tool == "start":
            seconds = float(event.attrs.get("seconds", 0.0))
            return (Call("work", {"seconds": seconds}, min(seconds, self.deadline)),)
        if event.kind == "tool_result" and event.agent != ROOT:
            late, success = (bool(event.attrs.get(name)) for name in ("late", "success"))
            facts = {"late": late, "success": success}
            return (Return("Time is up." if late else "Done.", facts),)
        return ()

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """How long it will take; how it went, or that it was cut off.

        The facts also say how what was cut off would have gone.
        """
        arm = int(event.agent != ROOT)
        if event.tool == "start":
            seconds = -_mean_seconds(self, world.difficulty, arm) * log(uniform(key))
            return ToolResult("It has begun.", {"seconds": seconds})
        chances = self.together if arm else self.alone
        late = event.attrs["seconds"] > self.deadline
        success = uniform(key) < chances[world.difficulty]
        text = "Time is up." if late else "It worked." if success else "It failed."
        return ToolResult(text, {"late": late, "success": success})

    def scores(self, world: "World") -> Mapping[str, float]:
        """Share of successes: `outcome` of what finished in time, `eventual` of everything."""
        share = sum(success for _, success in world.back) / max(1, world.spawned)
        if not world.finished:
            return {"finished": 0.0, "eventual": share}
        return {"outcome": share, "finished": 1.0, "eventual": share}


@dataclass(slots=True)
class World:
    """One episode."""

    difficulty: int
    spawned: int = 0
    back: list[tuple[bool, bool]] = field(default_factory=list)
    """Of every piece of work that came back: whether it was cut off, whether it would succeed."""

    @property
    def finished(self) -> bool:
        """Whether everything came back, and nothing was cut off."""
        return len(self.back) == max(1, self.spawned) and not any(late for late, _ in self.back)


def _is_alone(event: Event) -> bool:
    return event.agent == ROOT and event.tool == "work"


def _mean_seconds(game: Stragglers, difficulty: int, arm: int) -> float:
    """Mean time of a piece of work, alone (arm 0) or by a worker (arm 1)."""
    mean = game.worker_seconds if arm else game.alone_seconds
    return mean * game.slowness[difficulty]


@lru_cache(maxsize=256)
def choice_at(difficulty: int) -> Choice:
    """What the lead is asked at this difficulty."""
    seen = f"A problem of difficulty {number_word(difficulty + 1)}."
    return Choice(seen, ("alone", "spawn"), ("act", "spawn"))


@lru_cache(maxsize=2)
def submit_at(finished: bool) -> Choice:
    """What the lead is asked at the end."""
    return Choice("All is back." if finished else "Time is up.", ("submit",), ("stop",))


HARNESS = Harness(
    system="Work alone, or spawn workers; there is a deadline.",
    root="lead",
    roles={"lead": "decides whether to spawn", "worker": "does its share"},
    tools={"start": ToolSpec(latency=0.0), "work": ToolSpec(latency=1.0)},
)


class StragglersRules(Struct, frozen=True):
    """States: the start, a difficulty, then counts of what came back, then the end."""

    game: Stragglers
    start: tuple[()] = ()

    def node(self, state: State) -> Node:
        """What the length of a state says."""
        game = self.game
        match moves_of(state):
            case ():
                return Chance((1 / len(game.alone),) * len(game.alone))
            case (difficulty,):
                return Decide("lead", choice_at(difficulty))
            case (_, arm, back, late, _) if back == self._pieces(arm):
                return Decide("lead", submit_at(not late))
            case (difficulty, arm, _, _, _):
                return Chance(self._piece(difficulty, arm))
            case (_, arm, late, successes, *_):
                share = successes / self._pieces(arm)
                return End({"outcome": share, "eventual": share, "finished": float(not late)})
            case _:
                raise AssertionError(state)

    def after(self, state: State, move: int) -> State:
        """A piece of work is in time (moves 0, 1) or late (2, 3), a failure (0, 2) or success."""
        numbers = moves_of(state)
        if len(numbers) < 2:
            return (*numbers, move, 0, 0, 0) if numbers else (move,)
        difficulty, arm, back, late, successes = numbers
        if back == self._pieces(arm):
            return difficulty, arm, late, successes, 0, 0
        return difficulty, arm, back + 1, late + move // 2, successes + move % 2

    def outcome(self, state: State, event: Event) -> int | None:
        """The first decision shows the difficulty, the tool what became of a piece of work."""
        if state == ():
            return asked(event, map(choice_at, range(len(self.game.alone))))
        if event.kind != "tool_result" or event.tool != "work":
            return None
        return 2 * bool(event.attrs.get("late")) + bool(event.attrs.get("success"))

    def _pieces(self, arm: int) -> int:
        return self.game.workers if arm else 1

    def _piece(self, difficulty: int, arm: int) -> tuple[float, ...]:
        game = self.game
        success = (game.together if arm else game.alone)[difficulty]
        in_time = _in_time(game, difficulty, arm)
        return tuple(
            when * how for when in (in_time, 1 - in_time) for how in (1 - success, success)
        )


def _in_time(game: Stragglers, difficulty: int, arm: int) -> float:
    return 1 - exp(-game.deadline / _mean_seconds(game, difficulty, arm))


def completion_probabilities(game: Stragglers) -> Floats:
    """`P(finished | difficulty, decision)`; shape (difficulties, 2): alone, spawn."""
    pieces = (1, game.workers)
    return np.array(
        [[_in_time(game, x, arm) ** pieces[arm] for arm in (0, 1)] for x in range(len(game.alone))]
    )


def spawn_effects(game: Stragglers) -> Floats:
    """True effect of the spawn on `eventual`, by difficulty; its mean is the average effect."""
    return np.array(game.together) - np.array(game.alone)


def naive_effects(game: Stragglers) -> dict[str, float]:
    """Where estimators of the average effect tend, if spawns are tried by a fair coin.

    `true` is the effect itself; `timeout_as_zero` scores what was cut off with 0, `finished_only`
    drops it.
    """
    success = np.stack([game.alone, game.together], axis=1)
    finished = completion_probabilities(game)
    zero, kept = (success * finished).mean(axis=0), finished.mean(axis=0)
    return {
        "true": float(spawn_effects(game).mean()),
        "timeout_as_zero": float(zero[1] - zero[0]),
        "finished_only": float((zero / kept)[1] - (zero / kept)[0]),
    }
