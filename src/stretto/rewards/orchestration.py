"""R7: PARL's orchestration rewards (Kimi K2.5, arXiv 2602.02276).

`r = λ1·r_parallel + λ2·r_finish + r_perf`, with both λ annealed to 0. `r_parallel` pays for
*instantiating* sub-agents, not for speed: left on, it is hacked by spawning for nothing, so it
only belongs at the start of training. The paper gives neither the scale of `r_parallel` nor the
schedule; here `r_parallel` is the number of spawns as a share of `most`, and λ falls linearly.
"""

from stretto.rewards.ranges import Count
from stretto.rewards.stream import Stream, end_of, final
from stretto.trace import Trace

PAPERS = ("kimi-k2-5",)


def parallel(trace: Trace, most: Count = 8) -> Stream:
    """Share of `most` spawns that were made, at most 1; each spawn is paid an equal part of it."""
    spawns = trace.columns.is_kind("spawn")
    return Stream(spawns / max(most, int(spawns.sum())), end=end_of(trace))


def finish(trace: Trace) -> Stream | None:
    """Share of the spawned agents that returned; `None` (not scored) where none was spawned."""
    spawned = {event.to for event in trace.events if event.kind == "spawn"}
    returned = {event.agent for event in trace.events if event.kind == "return"}
    return final(trace, len(spawned & returned) / len(spawned)) if spawned else None


def anneal(weight: float, step: int, steps: int) -> float:
    """A weight that falls linearly from `weight` at step 0 to 0 at `steps`, and stays there.

    With `steps=0` it does not fall at all.
    """
    return weight * max(0.0, 1 - step / steps) if steps else weight
