"""The exact side of `agree`: how much talk there must be, what inputs and messages are worth.

Rounds: nobody can know an input before it can have arrived, so all can be right only after as many
rounds as the largest eccentricity of the talk graph; flooding takes just so many. Messages: where
all must know a function of all inputs, one-way messages are no fewer than `2n - 2` (Harary &
Schwenk, J. Franklin Inst. 1974). Solutions and least costs: `agree.solve`.
"""

from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.agree import (
    Agree,
    culprit,
    heard_inputs,
    instance_of,
    lie_of,
    rounds_needed,
)
from stretto.tasks.agree.solve import agreed
from stretto.tasks.faults import Blame
from stretto.tasks.games.coalitions import shapley
from stretto.team.interventions import is_void
from stretto.trace import Event, Trace

MOST_PLAYERS = 14
"""Most members whose Shapley values are enumerated."""
CONSENSUS = ("majority", "maximum")


class Bounds(Struct, frozen=True):
    """The least talk with which everybody can know everything."""

    rounds: int
    """Rounds: the largest eccentricity of the talk graph; 1 with a shared memory."""
    messages: int
    """One-way messages; with a shared memory, entries."""


def bounds(task: Agree) -> Bounds:
    """Least rounds and least messages; no run in which all know everything has fewer."""
    entries = task.members if task.topology == "harness" else 2 * task.members - 2
    return Bounds(rounds_needed(task), entries)


def least_seconds(task: Agree, agents: int) -> float:
    """No team of any size is done before the farthest input has come."""
    return float(rounds_needed(task))


def member_values(task: Agree) -> NDArray[np.float64]:
    """Shapley value of every member's input; shape (members,).

    A coalition is worth the probability that its inputs alone give what all should agree on; a coin
    where votes tie, 0 for nobody. By enumeration.

    Raises `StrettoError` for more than `MOST_PLAYERS` members, and without inputs.
    """
    if task.problem not in CONSENSUS or task.members > MOST_PLAYERS:
        what = f"{task.members} members of the problem {task.problem} are not enumerated"
        hint = f"majority or maximum of at most {MOST_PLAYERS}"
        raise StrettoError(what, "member_values", hint)
    inputs = instance_of(task).inputs
    truth = agreed(task.problem, inputs)
    game = [
        _chance(task.problem, [x for n, x in enumerate(inputs) if mask >> n & 1], truth)
        for mask in range(1 << len(inputs))
    ]
    return shapley(np.array(game))


def new_facts(trace: Trace) -> dict[str, int]:
    """How many facts each message told its reader that it did not know; by the id of the message.

    0 for a message that was redundant. Of several that bring one fact in the same round, that of
    the member with the lowest number counts, in whatever order they were recorded. Exact: facts are
    all that a shared message holds.
    """
    numbers = _numbers(trace)
    known = {member: {str(number)} for member, number in numbers.items()}
    found: dict[str, int] = {}
    mail = [event for event in trace.events if event.kind == "message"]
    for event in sorted(mail, key=lambda e: (e.start or 0.0, numbers.get(e.agent, -1))):
        reader = known.setdefault(event.to or "", set())
        told = event.attrs.get("facts", {}).keys() - reader
        found[event.id] = len(told)
        reader |= told
    return found


def message_values(task: Agree, trace: Trace) -> dict[str, float]:
    """Facts that each message told its reader first: more than none is worth something."""
    return {event: float(count) for event, count in new_facts(trace).items()}


def _numbers(trace: Trace) -> dict[str, int]:
    """Member, as the trace calls it, to its number."""
    return {
        event.to or "": event.attrs["number"]
        for event in trace.events
        if event.kind == "spawn" and "number" in event.attrs
    }


def blame(task: Agree, trace: Trace) -> Blame | None:
    """Who told the planted lie, and in which event first; `None` where it misled nobody.

    Exact: somebody committed to what follows from what it had heard, that is wrong, and with the
    truth in the place of the lie only what is right follows. Who reckons wrongly was not misled.
    With the truth in the place of all `lies_told`, whoever was misled is right.
    """
    told = lies_told(task, trace)
    if not told or not _misled(task, trace, culprit(task)):
        return None
    return Blame(told[0].agent, told[0].id)


def lies_told(task: Agree, trace: Trace) -> list[Event]:
    """All messages, or entries in the memory, that tell the planted lie first-hand."""
    if task.fault is None:
        return []
    liar, lie = culprit(task), lie_of(task)
    numbers = _numbers(trace)
    return [
        event
        for event in trace.events
        if numbers.get(event.agent) == liar
        and (event.kind, event.tool) in (("message", None), ("tool_result", "memory.write"))
        and event.attrs.get("facts", {}).get(str(liar)) == lie
    ]


def _misled(task: Agree, trace: Trace, liar: int) -> bool:
    """Whether anybody is wrong because of what it believes of the liar."""
    inputs = instance_of(task).inputs
    truth = agreed(task.problem, inputs)
    world = task.begin(0)
    for event in trace.events:
        if is_void(event):
            continue
        if event.kind == "return" and event.attrs["value"] != truth:
            heard = heard_inputs(world.minds[event.agent])
            honest = {**heard, liar: inputs[liar]}
            followed = event.attrs["value"] in _answers(task.problem, heard.values())
            if followed and liar in heard and _answers(task.problem, honest.values()) == {truth}:
                return True
        task.apply(world, event)
    return False


def _answers(problem: str, heard: Collection[int]) -> set[int]:
    """What follows from some inputs: both colours where votes tie."""
    inputs = list(heard)
    if problem == "majority" and inputs.count(0) == inputs.count(1):
        return {0, 1}
    return {agreed(problem, inputs)}


def _chance(problem: str, inputs: Sequence[int], truth: int) -> float:
    if not inputs:
        return 0.0
    answers = _answers(problem, inputs)
    return (truth in answers) / len(answers)
