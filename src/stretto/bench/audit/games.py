"""The games of the courtroom: what is played, by which policy, and what is exactly known of it.

Another game is one entry of `GAMES`. A regime with several instances is played on as many tables
and policies, so that nothing rests on one lucky draw.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from msgspec.structs import replace

from stretto.errors import StrettoError, did_you_mean
from stretto.policies.softmax import Softmax
from stretto.rewards.mix import Mix, mixed
from stretto.rewards.outcome import outcome
from stretto.rewards.stream import Reward
from stretto.tasks import build
from stretto.tasks.games import branch, chain, fanout
from stretto.tasks.games.tree import best_values, explore, walk
from stretto.tasks.games.truth import rules_of
from stretto.tasks.gather.scripts import team
from stretto.tasks.gather.shapley import gather_shapley
from stretto.team.protocols import Answer, Ask, Policy, Task
from stretto.trace import Tokens, Trace

ONE = Tokens(input=0, output=1)
"""What a choice costs: methods that weigh by tokens need a number."""

Exact = Callable[[Task, Trace], Mapping[str, float]]
"""Agent or turn to its exact value in one episode."""
Team = Mapping[str, Policy]


class Told:
    """A policy whose choices cost one token each, and say so."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """As the policy itself."""
        return [replace(answer, tokens=ONE) for answer in self._policy.decide(asks)]


def _spread(task: Task, instance: int, spread: float = 1.0) -> Team:
    """Random logits, the same for one instance."""
    return dict.fromkeys(task.harness.roles, Told(Softmax(spread=spread, seed=instance)))


SPREADS = {"and": 0.5, "or": 0.5, "majority": 1.0, "xor": 2.0}
"""Of logits by rule: so that both outcomes come up, and that votes matter to their parity."""


def _coin(task: Task, instance: int) -> Team:
    """Everybody picks any candidate, all alike."""
    return dict.fromkeys(task.harness.roles, Told(Softmax()))


def _sent(task: Task, instance: int) -> Team:
    """The lead sends as many workers as it may."""
    return team()


def _propensities(odds: Sequence[float], task: Task, instance: int) -> Team:
    lead = Told(branch.behaviour(task, odds))  # pyright: ignore[reportArgumentType]
    return {"lead": lead}


def _nobody(task: Task, trace: Trace) -> frozenset[str]:
    return frozenset()


def _ignored(task: Task, trace: Trace) -> frozenset[str]:
    """The workers of a fan-out whose votes do not count."""
    count = task.spec["ignored"]
    return frozenset(fanout.players(trace)[-count:]) if count else frozenset()


@dataclass(frozen=True)
class Game:
    """One regime of a game."""

    name: str
    """Family and regime."""
    spec: Mapping[str, object]
    """What `stretto.tasks.build` makes the task from."""
    instances: int = 1
    """How many tables and policies."""
    team: Callable[[Task, int], Team] = _spread
    episodes: int = 64
    """Flat rollouts of a group."""
    channel: str | None = "outcome"
    """Channel in which the truth of every decision is known; `None` where it is not."""
    reward: Callable[[Task], Reward] = lambda task: outcome
    """What methods are told that a rollout earned."""
    fan_out: tuple[int, ...] = ()
    """Ways in which a prefix tree goes on at each further decider; empty for no tree."""
    values: Mapping[str, Exact] = field(default_factory=dict)
    """Name of a value that methods claim, as `shapley`, to what it is exactly."""
    idle: Callable[[Task, Trace], frozenset[str]] = _nobody
    """Agents whose choices have no effect."""
    seeded: bool = False
    """Whether every instance has a table of its own."""
    is_quick: bool = True
    """Whether it is part of a quick audit."""

    def task(self, instance: int) -> Task:
        """The task of an instance."""
        return build(dict(self.spec) | ({"seed": instance} if self.seeded else {}))


def _chain(agents: int, regime: str) -> Game:
    spec = {"family": "chain", "agents": agents, "words": 3, **chain.REGIMES[regime]}
    fan_out = {2: (4,), 3: (2, 2)}[agents]
    quick = (agents, regime) == (2, "det")
    name = f"chain{agents}/{regime}"
    return Game(name, spec, instances=4, fan_out=fan_out, seeded=True, is_quick=quick)


def _fanout(rule: str) -> Game:
    """Four votes that count, one that does not."""
    spec = {"family": "fanout", "workers": 5, "ignored": 1, "rule": rule}
    values = {
        "shapley": partial(_of_fanout, fanout.agent_shapley),
        "leave_one_out": partial(_of_fanout, fanout.agent_leave_one_out),
    }
    return Game(
        f"fanout/{rule}",
        spec,
        instances=4,
        team=partial(_spread, spread=SPREADS[rule]),
        fan_out=(2, 2, 2),
        values=values,
        idle=_ignored,
        is_quick=rule == "majority",
    )


def _of_fanout(
    value: Callable[[fanout.Fanout, Trace], Mapping[str, float]], task: Task, trace: Trace
) -> Mapping[str, float]:
    """Values of workers; the lead alone has no votes, so nothing (under `xor` and `or` too)."""
    assert isinstance(task, fanout.Fanout)
    return value(task, trace)


def _snell(channel: str, task: Task, trace: Trace) -> Mapping[str, float]:
    """What every choice is worth if all later ones are best, less the policy's mean of that."""
    rules = rules_of(task)
    tree, best = explore(rules), best_values(rules, channel)
    turns = [event for event in trace.events if event.decision is not None]
    found: dict[str, float] = {}
    for event, state in zip(turns, walk(rules, trace), strict=True):
        decision = event.decision
        assert decision is not None
        after = np.array([best[following] for following in tree.moves[state]])
        found[event.id] = float(after[decision.chosen or 0] - np.exp(decision.logprobs) @ after)
    return found


def _net(task: Task) -> Reward:
    return mixed(Mix(), task.prices, step=0)


def _on(channel: str, task: Task) -> Reward:
    return partial(outcome, channel=channel)


_TEAMS = {"family": "fanout", "workers": 6, "ignored": 1, "teams": 2, "rule": "majority"}
_BRANCH = {"family": "branch"}

GAMES: Mapping[str, Game] = {
    game.name: game
    for game in (
        *(_chain(agents, regime) for agents, regime in product((2, 3), chain.REGIMES)),
        *(_fanout(rule) for rule in ("and", "or", "majority", "xor")),
        Game("teams", _TEAMS, instances=2, episodes=3, idle=_ignored),
        Game("branch/overlap", _BRANCH, instances=2, episodes=200),
        Game(
            "branch/rare",
            _BRANCH,
            episodes=200,
            team=partial(_propensities, (0.1, 0.2, 0.05, 0.1)),
            is_quick=False,
        ),
        Game(
            "branch/uncovered",
            _BRANCH,
            episodes=200,
            team=partial(_propensities, (0.0, 0.5, 1.0, 0.3)),
            is_quick=False,
        ),
        Game(
            "ladder",
            {"family": "ladder"},
            instances=2,
            values={"snell": partial(_snell, "outcome")},
        ),
        Game(
            "scouts",
            {"family": "scouts", "horizon": 4, "width": 2},
            instances=2,
            channel="net",
            reward=_net,
            values={"snell": partial(_snell, "net")},
        ),
        Game(
            "stragglers",
            {"family": "stragglers"},
            team=_coin,
            episodes=200,
            channel="eventual",
            reward=partial(_on, "eventual"),
        ),
        Game("proxies", {"family": "proxies"}, instances=2),
        Game(
            "gather",
            {"family": "gather", "entities": 6, "workers": 6},
            team=_sent,
            episodes=2,
            channel=None,
            values={"shapley": lambda task, trace: gather_shapley(trace)},
        ),
    )
}
"""Every game by its name."""


def games_named(names: Sequence[str]) -> list[Game]:
    """Games by name or by family; all of them where no name is given.

    Raises `StrettoError` for a name that there is not.
    """
    found: dict[str, Game] = {}
    families = {name.partition("/")[0] for name in GAMES}
    for name in names or tuple(GAMES):
        own = {key: game for key, game in GAMES.items() if name in (key, key.partition("/")[0])}
        if not own:
            hint = did_you_mean(name, [*GAMES, *sorted(families)])
            raise StrettoError(f'no game "{name}"', "--game", hint)
        found |= own
    return list(found.values())
