"""R8: potential-based shaping at step level (Ng, Harada and Russell, ICML 1999).

`F = γ·Φ(s') - Φ(s)` with `Φ = 0` at the end leaves optimal policies as they are, and Nash
equilibria (Devlin and Kudenko, AAMAS 2011). With γ = 1 the sum over an episode is `-Φ(s₀)`, the
same for every rollout of a task: under a credit that looks at whole rollouts (GRPO) it is a no-op.
"""

from collections.abc import Callable, Mapping

import numpy as np

from stretto.errors import StrettoError, did_you_mean
from stretto.rewards.ranges import Discount
from stretto.rewards.recorded import of_events
from stretto.rewards.stream import Floats, Stream, end_of
from stretto.trace import Trace


def shaping(
    trace: Trace, potential: str = "potential", gamma: Discount = 1.0, scale: float = 1.0
) -> Stream | None:
    """`γ·Φ(next turn) - Φ(turn)` with every turn, in record order; `Φ` is 0 after the last.

    `potential` is a rule of `POTENTIALS`, or a channel that has a value for every turn: that of
    the state in which the turn is taken. `None` where a turn has none, or there is no turn.
    """
    rows = np.flatnonzero(trace.columns.is_kind("decision"))
    values = _potential(trace, potential, rows.tolist())
    if values is None or not len(rows):
        return None
    at = np.zeros(len(trace.events))
    at[rows] = scale * (gamma * np.append(values[1:], 0.0) - values)
    return Stream(at, end=end_of(trace))


def _potential(trace: Trace, potential: str, rows: list[int]) -> Floats | None:
    if potential.startswith("rule:"):
        name = potential.removeprefix("rule:")
        if name not in POTENTIALS:
            hint = did_you_mean(name, POTENTIALS)
            raise StrettoError(f'no potential "{name}"', "potential", hint)
        return POTENTIALS[name](trace)[rows]
    known = of_events(trace, potential)
    names = [trace.events[row].id for row in rows]
    return np.array([known[name] for name in names]) if all(n in known for n in names) else None


def returned(trace: Trace) -> Floats:
    """How many agents had returned before each event."""
    returns = trace.columns.is_kind("return")
    return np.cumsum(returns) - returns.astype(np.float64)


def done(trace: Trace) -> Floats:
    """Share of the agents spawned so far that had returned, before each event; 0 before any."""
    spawned = np.cumsum(trace.columns.is_kind("spawn"))
    return returned(trace) / np.maximum(spawned, 1)


POTENTIALS: Mapping[str, Callable[[Trace], Floats]] = {"done": done, "returned": returned}
"""Potentials of the state before each event that any trace has; shape (events,)."""
