"""Measures of a trace: pure functions to numbers that say how they are known."""

from stretto.metrics.measure import Measure
from stretto.metrics.overhead import overhead
from stretto.metrics.parallelism import parallelism
from stretto.metrics.structure import structure
from stretto.trace import Trace

__all__ = ["Measure", "measure"]


def measure(trace: Trace) -> dict[str, Measure]:
    """All measures of a trace by name; what cannot be known is `None` with the reason.

    | name | unit | what it is |
    |---|---|---|
    | `agents`, `events`, `spawns`, `returns` | count | as recorded |
    | `unpaired_spawns` | count | spawned agents that never returned |
    | `makespan` | s | from the first start to the last end |
    | `work` | s | all turns and tool calls, waiting left out |
    | `span` | s | the critical path: what no wider team could beat |
    | `parallelism` | 1 | work / makespan: how much work was under way on average |
    | `peak_width` | agents | most agents at work at one time, whatever each did |
    | `input_tokens`, `output_tokens` | tokens | prompt (cached or not) and sampled tokens |

    Raises `StrettoError` where the events form a loop.
    """
    return {**structure(trace), **parallelism(trace), **overhead(trace)}
