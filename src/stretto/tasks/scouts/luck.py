"""What an episode of `scouts` was worth without luck.

The outcome is a draw, so a mean of thirty episodes says little. Both functions have the mean of
what they stand for, whatever the policy and with or without a planted fault, and far less noise.
"""

from collections.abc import Iterator

import numpy as np

from stretto.errors import StrettoError
from stretto.tasks.scouts import COLOURS, Scouts, arrived, told
from stretto.tasks.scouts.lattice import belief
from stretto.tasks.scouts.oracle import looks, scouts_oracle
from stretto.team.state import ROOT
from stretto.trace import Event, Trace


def expected_outcome(task: Scouts, trace: Trace) -> float | None:
    """Probability that the answer is right given all that the scouts saw (Rao-Blackwell).

    `None` where the lead never answered.
    """
    stop = next((event for event in trace.events if event.kind == "stop"), None)
    if stop is None:
        return None
    saw = list(looks(trace).values())
    lead = saw.count(stop.attrs["colour"]) - saw.count(_other(stop.attrs["colour"]))
    return float(belief(task, np.array(float(lead))))


def expected_score(task: Scouts, trace: Trace) -> float | None:
    """Estimate of the expected priced score of the policy that played, free of the luck of votes.

    The value of the script `oracle`, plus the advantage over it of every decision of the lead:
    `V + Σ (Q(s, a) - V(s))` (performance difference lemma, Kakade and Langford, ICML 2002; DIVAT
    does the same in poker). Unbiased for every policy, and the same in every episode of the oracle:
    its exact value, which without a fault is `yardstick.best`. `None` where nobody answered.

    Raises `StrettoError` for a decision that was not on offer after the votes before it.
    """
    if not any(event.kind == "stop" for event in trace.events):
        return None
    oracle, lie = scouts_oracle(task), _lie(trace)
    total = oracle.worth(task, 0, 0)[1]
    for event, asked, red in _decided(trace):
        q, usual = oracle.worth(task, asked, red, lie if asked else 0)
        chosen = (event.decision and event.decision.chosen) or 0
        if chosen >= len(q):
            what = f"{asked} votes came before, and so many scouts are not on offer"
            raise StrettoError(what, event.id, "only an episode as it was played has a value")
        total += float(q[chosen]) - usual
    return total


def _lie(trace: Trace) -> int:
    """1 where a scout said red and had seen blue, -1 the other way round, 0 where nobody lied."""
    saw = looks(trace)
    said = ((told(event), saw.get(event.agent)) for event in trace.events)
    lies = (says for says, seen in said if says and seen and says != seen)
    return {COLOURS[0]: 1, COLOURS[1]: -1}.get(next(lies, ""), 0)


def _decided(trace: Trace) -> Iterator[tuple[Event, int, int]]:
    """Every decision of the lead, the votes before it, and those of them that are for red.

    Whoever hands up votes does so once: a report that is written down again is no second vote.
    """
    votes: dict[str, tuple[int, int]] = {}
    written: dict[str, tuple[int, int]] = {}
    for event in trace.events:
        if event.kind == "return" and event.to == ROOT:
            votes.setdefault(event.agent, arrived(event))
        elif event.tool == "memory.write" and (colour := told(event)):
            written.setdefault(event.agent, (int(colour == COLOURS[0]), int(colour == COLOURS[1])))
        elif event.kind == "tool_result" and event.tool == "memory.read":
            votes |= written
        if event.agent == ROOT and event.decision is not None:
            red, blue = map(sum, zip(*votes.values(), strict=True)) if votes else (0, 0)
            yield event, red + blue, red


def _other(colour: str) -> str:
    return COLOURS[1 - COLOURS.index(colour)]
