"""R4: steps are paid one by one (survey §6, Table 10).

Step values are recorded on single events, by a process reward model or by rules. A *sum* over steps
is hacked by step padding: more steps, more pay. The mean is not.
"""

import numpy as np

from stretto.rewards.derived import of_events
from stretto.rewards.outcome import outcome
from stretto.rewards.ranges import Count, Discount
from stretto.rewards.recorded import failed
from stretto.rewards.stream import Floats, Stream, end_of
from stretto.rewards.tokens import read_and_written
from stretto.trace import Event, Trace

PAPERS = ("maporl", "context-folding")

WORKING_LIMIT = 0.5
"""Share of the context limit from which on FoldGRPO wants the main thread to branch."""


def process(
    trace: Trace, channel: str = "process", agent: str | None = None, mean: bool = False
) -> Stream | None:
    """The value of each event on `channel`, paid with it; with `mean` divided by their number.

    `None` where no event (of `agent`, if given) was scored.
    """
    values = of_events(trace, channel)
    scored = np.array(
        [event.id in values and agent in (None, event.agent) for event in trace.events], dtype=bool
    )
    if not scored.any():
        return None
    at = np.array([values.get(event.id, 0.0) for event in trace.events]) * scored
    return Stream(at / scored.sum() if mean else at, end=end_of(trace))


def discounted(
    trace: Trace, channel: str = "verifier", gamma: Discount = 0.3, agent: str | None = None
) -> Stream | None:
    """MAPoRL's default rule ("discounted sum, all"; arXiv 2502.18439 and its code).

    `r(t,a) = [s(t,a) + Σ_{u>t} γ^(u-t)·mean_a s(u,a)] / Σ_{u≥t} γ^(u-t)`, where `s(t,a)` is the
    verifier's score of agent `a` in round `t`, its `t`-th scored event. Each is a weighted mean
    that looks ahead already, meant for the one turn it is paid with: do not sum it over later ones.
    """
    values = of_events(trace, channel)
    scored = [(row, event) for row, event in enumerate(trace.events) if event.id in values]
    own = [(row, event) for row, event in scored if agent in (None, event.agent)]
    if not own:
        return None
    place = _rounds(scored)
    count = max(place.values()) + 1
    means = [
        float(np.mean([values[event.id] for row, event in scored if place[row] == turn]))
        for turn in range(count)
    ]
    at = np.zeros(len(trace.events))
    for row, event in own:
        discount = gamma ** np.arange(count - place[row])
        ahead = np.array([values[event.id], *means[place[row] + 1 :]])
        at[row] = discount @ ahead / discount.sum()
    return Stream(at, end=end_of(trace))


def _rounds(scored: list[tuple[int, Event]]) -> dict[int, int]:
    """Row of each scored event to which of its agent's scored events it is."""
    seen: dict[str, int] = {}
    found: dict[int, int] = {}
    for row, event in scored:
        found[row] = seen.get(event.agent, 0)
        seen[event.agent] = found[row] + 1
    return found


def folding(trace: Trace, limit: Count, channel: str = "scope") -> Stream | None:
    """What FoldGRPO's process reward changes (Context-Folding, arXiv 2510.11967).

    Each turn is paid `clip(R + Q, 0, 1) - R` with `Q` = -1 for a turn of the main thread that does
    not branch although its prompt fills more than half of `limit` tokens; -.2 for a turn of a
    branch that was judged out of scope (0 on `channel` for its agent's `spawn` event); -1 for a
    turn whose tool call failed; else 0. Together with the outcome that is the numerator of its
    advantage before the mean is taken off. `None` without an outcome, and where it is not known how
    long a prompt of the main thread was: see `tokens`.
    """
    earned, too_long = outcome(trace), _too_long(trace, limit)
    if earned is None or too_long is None:
        return None
    penalty = np.minimum.reduce([too_long, _out_of_scope(trace, channel), _failed(trace)])
    turns = trace.columns.is_kind("decision")
    paid = np.clip(earned.total + penalty, 0.0, 1.0) - earned.total
    return Stream(np.where(turns & (penalty < 0), paid, 0.0), end=end_of(trace))


def _too_long(trace: Trace, limit: int) -> Floats | None:
    """-1 for every turn of the main thread that goes on with a long prompt; `None` if unknown."""
    spawned = {event.to for event in trace.events if event.kind == "spawn"}
    main = np.array([event.agent not in spawned for event in trace.events], dtype=bool)
    branches = np.array(
        [e.decision is not None and e.decision.type == "spawn" for e in trace.events], dtype=bool
    )
    goes_on = trace.columns.is_kind("decision") & main & ~branches
    read = read_and_written(trace)[0]
    if np.isnan(read[goes_on]).any():
        return None
    return np.where(goes_on & (read > WORKING_LIMIT * limit), -1.0, 0.0)


def _out_of_scope(trace: Trace, channel: str) -> Floats:
    judged = of_events(trace, channel)
    out = {e.to for e in trace.events if e.kind == "spawn" and judged.get(e.id) == 0}
    return np.array([-0.2 if event.agent in out else 0.0 for event in trace.events])


def _failed(trace: Trace) -> Floats:
    """-1 for every turn that made a tool call which failed."""
    broken = {event.id for event in trace.events if failed(event)}
    calls = {edge.src for edge in trace.edges if edge.dst in broken} | broken
    turns = {edge.src for edge in trace.edges if edge.dst in calls}
    return np.array([-1.0 if event.id in turns else 0.0 for event in trace.events])
