"""Reward families: pure functions from a trace to a stream of rewards; see `docs/rewards.md`.

| family | module | what it pays |
|---|---|---|
| R1 shared outcome | `outcome` | the team's recorded outcome, at the end |
| R2 individual | `individual` | each agent for its own part |
| R3 role | `role` | the agents of a role by its rubric |
| R4 process | `process` | single steps |
| R5 tool | `tool_use` | calls that a right answer needed |
| R6 verifier and debate | `verifier` | what several verifiers say; what a debate changed |
| R7 orchestration | `orchestration`, `planning`, `stopping` | spawning, speed-up, when to stop |
| R8 hybrid | `mix`, `balance`, `shaping` | mixes with schedules and scales; potentials |
| published mixes | `presets`, `compose` | data, and what they pay whom |
| prices | `cost` | minus the price of every spawn and of every second |

A `Stream` says *when* a reward falls, so that credit can tell what a decision could still change.
`derived` and `tokens` hold what follows from a trace though nobody recorded it.
`channels` names them all; `watch` holds what is easy to pay for against what is wanted.
"""

from stretto.rewards.stream import Reward, Stream, add, final, scale

__all__ = ["Reward", "Stream", "add", "final", "scale"]
