"""Which single-agent baseline a trace is held against, out of a file of them."""

from collections.abc import Sequence
from pathlib import Path

from stretto.trace import Trace

UNKNOWN_TASK = "unknown"


def load_baselines(path: Path) -> tuple[Trace, ...]:
    """The traces of a file of baselines.

    Raises `StrettoError` where it cannot be read.
    """
    from stretto.loading import load_all

    return tuple(load_all(path))


def find_baseline(trace: Trace, baselines: Sequence[Trace]) -> Trace | str:
    """The baseline of a trace, or why none, or more than one, is known to be of its task.

    A single baseline is that of every trace, unless both name their tasks and those differ. Of
    several it is the one of the same task and seed.
    """
    if len(baselines) == 1:
        tasks = {trace.task, baselines[0].task} - {UNKNOWN_TASK}
        return baselines[0] if len(tasks) < 2 else "the baseline is of another task"
    if trace.task == UNKNOWN_TASK:
        return f"the task is not known, and there are {len(baselines)} baselines"
    place = (trace.task, trace.seed)
    fitting = [each for each in baselines if (each.task, each.seed) == place]
    if len(fitting) > 1:
        return f"{len(fitting)} baselines are of the same task and seed"
    return fitting[0] if fitting else "no baseline is of the same task and seed"
