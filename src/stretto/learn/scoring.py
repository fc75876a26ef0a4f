"""What the rollouts of a step earned, and what each of their turns was worth."""

from collections.abc import Mapping, Sequence

import numpy as np

from stretto.credit import assign_credit
from stretto.credit.table import Credit
from stretto.errors import StrettoError
from stretto.learn.channels import KNOWN
from stretto.rewards.mix import Mix, pays_apart, score_agents, score_group
from stretto.rewards.stream import Stream
from stretto.team.protocols import Prices
from stretto.trace import Trace


def credit_turns(
    mix: Mix, prices: Prices, step: int, traces: Sequence[Trace], method: str
) -> tuple[Credit, list[float]]:
    """Credit of every turn, and the returns it follows from.

    Where a preset pays agents apart, every agent is compared with the agents of its id in the other
    rollouts, on its own reward; the turns of an agent that is not paid get 0 and train nothing.
    """
    if not pays_apart(mix):
        earned = score_group(mix, prices, step, traces, KNOWN)
        credit = assign_credit(traces, method, unit="turn", reward=lambda trace: earned[trace.id])
        return credit, [stream.total for stream in earned.values() if stream is not None]
    paid = score_agents(mix, prices, step, traces, KNOWN)
    if not paid:
        hint = "its roles and channels must be those of the task: see docs/rewards.md"
        raise StrettoError(f'the preset "{mix.preset}" scored no agent of any rollout', hint=hint)
    value: dict[tuple[str, str], float] = {}
    for agent, streams in paid.items():
        value |= _own_turns(agent, streams, traces, method)
    returns = [stream.total for streams in paid.values() for stream in streams.values()]
    return _table(method, traces, value), returns


def _own_turns(
    agent: str, streams: Mapping[str, Stream], traces: Sequence[Trace], method: str
) -> dict[tuple[str, str], float]:
    """Trace and turn to credit, for the turns of one agent."""
    group = [trace for trace in traces if trace.id in streams]
    credit = assign_credit(group, method, unit="turn", reward=lambda trace: streams[trace.id])
    own = {(t.id, e.id) for t in group for e in t.events if e.agent == agent}
    rows = zip(credit.trace, credit.name, credit.value.tolist(), strict=True)
    return {(trace, turn): each for trace, turn, each in rows if (trace, turn) in own}


def _table(method: str, traces: Sequence[Trace], value: Mapping[tuple[str, str], float]) -> Credit:
    turns = [(t.id, e.id) for t in traces for e in t.events if e.kind == "decision"]
    return Credit(
        method=method,
        unit="turn",
        trace=tuple(trace for trace, _ in turns),
        name=tuple(turn for _, turn in turns),
        value=np.array([value.get(turn, 0.0) for turn in turns]),
        error=np.full(len(turns), np.nan),
        policy_tokens=np.zeros(len(turns), dtype=np.int64),
    )
