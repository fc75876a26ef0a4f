"""R8: a weighted mix of reward families, some of them annealed."""

from typing import Annotated

from msgspec import Meta, Struct

from stretto.rewards.cost import cost
from stretto.rewards.orchestration import anneal, finish, parallel
from stretto.rewards.outcome import outcome
from stretto.rewards.stream import Reward, Stream, add, scale
from stretto.team.protocols import Prices
from stretto.trace import Trace

Weight = Annotated[float, Meta(ge=0)]


class Mix(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the team is paid, on top of the outcome."""

    cost: Weight = 1.0
    """Weight of the task's prices for spawns and time."""
    parallel: Weight = 0.0
    """PARL's λ1: pays for spawning."""
    finish: Weight = 0.0
    """PARL's λ2: pays for sub-agents that return."""
    most: Annotated[int, Meta(ge=1)] = 8
    """Spawns that earn all of λ1."""
    anneal: Annotated[int, Meta(ge=0)] = 0
    """Steps over which λ1 and λ2 fall to 0; 0 keeps them, and invites spawning for nothing."""


def mixed(mix: Mix, prices: Prices, step: int) -> Reward:
    """The reward of training step `step`: outcome, cost and PARL's terms as they are weighed then.

    A trace without an outcome is not scored.
    """

    def reward(trace: Trace) -> Stream | None:
        earned = outcome(trace)
        if earned is None:
            return None
        spent = scale(cost(trace, prices.spawn, prices.second), mix.cost)
        return add([earned, spent, *_orchestration(mix, step, trace)])

    return reward


def _orchestration(mix: Mix, step: int, trace: Trace) -> list[Stream]:
    first, second = (anneal(weight, step, mix.anneal) for weight in (mix.parallel, mix.finish))
    finished = finish(trace) if second else None
    streams = [scale(parallel(trace, mix.most), first)] if first else []
    return streams if finished is None else [*streams, scale(finished, second)]
