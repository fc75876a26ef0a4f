"""The score of a case of `jury` without its luck, so that few episodes say how good a policy is.

Whether a vote is right is a draw: honest evidence may mislead everybody. The hidden colour is
averaged out (Rao & Blackwell), given what was shown; and what was shown is a control variate: the
best vote in the same world had the same luck, and how often it is right is known.
"""

from collections.abc import Mapping
from functools import lru_cache

from stretto.tasks.jury import Jury, case_of
from stretto.tasks.jury.accuracy import accuracy
from stretto.tasks.jury.evidence import posterior_of
from stretto.tasks.jury.oracle import vote_on, voted
from stretto.tasks.jury.robust import robustness
from stretto.trace import Trace


def expected_outcome(task: Jury, trace: Trace) -> float | None:
    """Probability that the vote is right given all that the pieces of evidence showed to anybody.

    Its mean over episodes is that of `outcome`, for any policy: given what was shown, claims and
    votes say nothing more about the hidden colour, and nor does who lies. `None` where the trace
    lacks the vote, or what a witness saw.
    """
    vote = voted(trace)
    shown = _shown(task, trace)
    return None if vote is None or shown is None else _chance(task, shown, vote)


def expected_score(task: Jury, trace: Trace) -> float | None:
    """Expected outcome, less that of the best vote in the same world, plus that vote's mean.

    That vote knows what every witness would say that wants to say what it saw: honest claims, and
    the lies of this world, planted ones too. Its mean is `accuracy`; with planted lies, of which
    the judge knows nothing, it is what is left of it (`robustness`). So the mean is that of
    `outcome` for any policy, and every episode of the oracle scores that value exactly.

    `None` where `expected_outcome` is, and where the trace has no seed or is of another task.

    Raises `StrettoError` where that mean is too much to enumerate.
    """
    found = expected_outcome(task, trace)
    if found is None or trace.seed is None or trace.spec != task.spec:
        return None
    return found - _luck(task, trace.seed)


@lru_cache(maxsize=4096)
def _luck(task: Jury, seed: int) -> float:
    """By how much the best vote in the world of this seed is likelier right than on average."""
    world, case = task.begin(seed), case_of(task)
    claims: dict[str, list[int]] = {}
    for witness, item in enumerate(case.holds):
        told = world.lies.get(witness, world.seen[item])
        claims.setdefault(case.piece(witness), []).append(told)
    return _chance(task, dict(enumerate(world.seen)), vote_on(task, claims)) - _mean(task)


@lru_cache(maxsize=256)
def _mean(task: Jury) -> float:
    """How often the best vote is right, if witnesses want to say what they saw."""
    planted = case_of(task).strongest[: task.lies]
    return robustness(task, planted).weighed if planted else accuracy(task)


def _chance(task: Jury, shown: Mapping[int, int], colour: int) -> float:
    """Probability of a colour given what pieces of evidence show."""
    kinds = case_of(task).kinds
    pairs = [(kinds[item], saw) for item, saw in shown.items()]
    return float(posterior_of(pairs, task.classes)[colour])


def _shown(task: Jury, trace: Trace) -> dict[int, int] | None:
    """Piece of evidence to the colour that it showed somebody."""
    case = case_of(task)
    shown: dict[int, int] = {}
    calls: dict[str, int] = {}
    for event in trace.events:
        if event.tool != "inspect":
            continue
        if event.kind == "tool_call":
            calls[event.agent] = event.attrs.get("witness", -1)
        elif event.kind == "tool_result" and "saw" in event.attrs:
            witness = calls.get(event.agent, -1)
            if not 0 <= witness < task.witnesses:
                return None
            shown[case.holds[witness]] = event.attrs["saw"]
    return shown
