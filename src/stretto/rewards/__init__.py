"""Reward families: pure functions from a trace to a stream of rewards.

| family | module | what it pays |
|---|---|---|
| R1 shared outcome | `outcome` | the team's recorded outcome, at the end |
| cost-adjusted return | `cost` | minus the price of every spawn and of every second |
| R7 orchestration | `orchestration` | PARL's terms for spawning and for finishing, annealed |
| R8 hybrid | `mix` | a weighted mix of these |

A `Stream` says *when* a reward falls, so that credit can tell what a decision could still change.
"""

from stretto.rewards.stream import Reward, Stream, add, final, scale

__all__ = ["Reward", "Stream", "add", "final", "scale"]
