"""The exact side of `hops`: work, span, the fastest plan, and what every report is worth.

A stage takes `depth` seconds a branch and, where it compares, one for the comparison; stages wait
for each other. So with `W` branches and `P` agents that each follow whole branches

`T_P = stages · (⌈W / P⌉ · depth + join)`, `T_1` is the work and `T_∞ = T_W` the span;

where there is a shared memory, writing to it and reading it take their time in every stage that is
not done alone. These are the times of plans that are certain: an answer without the comparison may
be right sooner, by luck.

A report is worth what an exact receiver loses without it: it answers with the richest end that it
knows, or with anyone of those whom all the lists that it knows name.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import ceil
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stretto.errors import StrettoError
from stretto.tasks.faults import Blame
from stretto.tasks.games.coalitions import shapley
from stretto.tasks.hops import LOOK_SECONDS, Hops, faulty_fact, instance_of
from stretto.tasks.hops.instance import Instance
from stretto.tasks.hops.world import World, apply, new_world
from stretto.tasks.menus import size_of, team_sizes
from stretto.tasks.nest.names import names_of
from stretto.tasks.reporting import MEMORY_SECONDS
from stretto.tasks.topology import WORKER, middle_seats
from stretto.team.interventions import is_void
from stretto.team.state import ROOT
from stretto.trace import Event, Trace

MOST_PLAYERS = 12
"""Most agents whose Shapley values are enumerated."""


class Plan(Struct, frozen=True):
    """A way to answer without a mistake."""

    workers: int
    """How many workers each stage gets; 0 where the lead does all itself."""
    agents: int
    """How many agents are spawned in all, with those who stand between."""
    seconds: float
    """Virtual seconds that it takes."""
    utility: float
    """1 minus the price of agents and seconds."""


def work(task: Hops) -> float:
    """Seconds of all necessary look-ups and comparisons, one after the other: `T_1`."""
    return task.stages * (task.width * task.depth * LOOK_SECONDS + _join_seconds(task))


def span(task: Hops) -> float:
    """Seconds of the longest chain of steps that need each other: `T_∞`."""
    return task.stages * (task.depth * LOOK_SECONDS + _join_seconds(task))


def ideal_speedup(task: Hops) -> float:
    """`T_1 / T_∞`: no team is faster than one agent by more; 1 where the width is 1."""
    return work(task) / span(task)


def makespan(task: Hops, agents: int) -> float:
    """Shortest time in which so many agents answer, each following whole branches: `T_P`.

    Exact: the branches of a stage are alike, so an even split is optimal. No plan that is certain
    of its answer is faster.
    """
    if agents < 1:
        raise StrettoError(f"{agents} agents answer nothing", "makespan", "at least 1")
    return min(_seconds(task, 0), _seconds(task, agents))


def plan(task: Hops, workers: int) -> Plan:
    """What a faultless team does if each stage gets so many workers (0: the lead alone).

    In the topology `harness` writing to and reading from the shared memory take their time, too.
    """
    agents = task.stages * (workers + middle_seats(task.topology, workers))
    seconds = _seconds(task, workers)
    utility = 1 - task.worker_cost * agents - task.second_cost * seconds
    return Plan(workers, agents, seconds, utility)


def _seconds(task: Hops, workers: int) -> float:
    """Virtual seconds where every stage gets so many workers (0: the lead alone)."""
    rounds = ceil(task.width / max(workers, 1))
    memory = 2 * MEMORY_SECONDS if workers and task.topology == "harness" else 0.0
    return task.stages * (rounds * task.depth * LOOK_SECONDS + _join_seconds(task) + memory)


def best_plan(task: Hops) -> Plan:
    """The plan of highest utility among the team sizes that the lead is offered; fewest agents."""
    sizes = [0, *(size_of(word) for word in team_sizes(task.width))]
    return max((plan(task, size) for size in sizes), key=lambda p: (p.utility, -p.workers))


def best_answer(instance: Instance, stage: int, ends: Iterable[Sequence[str]]) -> float:
    """Probability that an exact receiver of these ends answers the stage rightly.

    It takes the richest, or anyone of those who are named most often.
    """
    best = _best_names(instance, stage, ends)
    return (instance.stages[stage].answer in best) / max(1, len(best))


def _best_names(instance: Instance, stage: int, ends: Iterable[Sequence[str]]) -> list[str]:
    """Those whom an exact receiver of these ends may answer, all alike; nobody without ends."""
    counts = Counter(chain.from_iterable(ends))
    if counts and all(len(end) == 1 for end in instance.stages[stage].ends):
        return [max(counts, key=instance.wealth)]
    return [name for name, count in counts.items() if count == max(counts.values())]


def message_value(task: Hops, stage: int, branches: Sequence[int]) -> float:
    """What is lost of the outcome if the ends of these branches never reach the receiver.

    All the other ends do, and all later stages are answered rightly if this one is.
    """
    instance = instance_of(task)
    ends = instance.stages[stage].ends
    others = [end for branch, end in enumerate(ends) if branch not in branches]
    return (1 - best_answer(instance, stage, others)) * _share_after(task, stage)


def report_values(task: Hops, trace: Trace) -> dict[str, float]:
    """Value of every report in a trace, by the id of its event: information, exact receiver.

    What it adds, as it was worded, to all other reports of its stage: to the probability that the
    stage is answered rightly, times the outcome that hangs on it. Copies to peers are worth 0:
    nothing that a peer does depends on them.
    """
    instance = instance_of(task)
    found = {event.id: 0.0 for event in trace.events if event.kind == "message"}
    for stage, reports in enumerate(_reports(trace)[: task.stages]):
        whole = best_answer(instance, stage, chain.from_iterable(reports.values()))
        for event in reports:
            others = (ends for other, ends in reports.items() if other != event)
            rest = best_answer(instance, stage, chain.from_iterable(others))
            found[event] = (whole - rest) * _share_after(task, stage)
    return found


def agent_values(task: Hops, stage: int, owners: Mapping[int, str]) -> dict[str, float]:
    """Shapley value of every agent that holds branches of a stage, by enumeration of coalitions.

    A coalition is worth the probability that its ends answer the stage. `owners`: branch to agent.

    Raises `StrettoError` for more than `MOST_PLAYERS` agents.
    """
    players = sorted(set(owners.values()))
    if len(players) > MOST_PLAYERS:
        what = f"{len(players)} agents are too many to enumerate"
        raise StrettoError(what, "agent_values", f"at most {MOST_PLAYERS}")
    instance = instance_of(task)
    ends = instance.stages[stage].ends
    game = [
        best_answer(instance, stage, [ends[b] for b, owner in owners.items() if owner in coalition])
        for coalition in _coalitions(players)
    ]
    values: NDArray[np.float64] = shapley(np.array(game))
    return dict(zip(players, values.tolist(), strict=True))


def reporter_values(task: Hops, trace: Trace) -> Mapping[str, float] | None:
    """Shapley value of every agent whose report named ends.

    `None` where the question has more than one stage, and for nobody or too many to enumerate.
    """
    owners = {
        int(branch): event.agent
        for event in trace.events
        if event.kind == "return" and not is_void(event)
        for branch in event.attrs.get("ends", {})
    }
    if task.stages > 1 or not 1 <= len(set(owners.values())) <= MOST_PLAYERS:
        return None
    return agent_values(task, 0, owners)


def blame(task: Hops, trace: Trace) -> Blame | None:
    """Who made the planted mistake, and in which event; `None` where it did no harm.

    Exact: the first answer is wrong, it is one that an exact receiver (`best_answer`) of what
    reached the lead may give, and with the true end of that branch such a receiver is right. Where
    the lead makes less of what it knows, answers without the comparison, or hears of more lists
    that outvote the wrong one, nobody is blamed.
    """
    world, names = new_world(instance_of(task)), names_of(trace)
    roles = {agent.id: agent.role for agent in trace.agents}
    found: Blame | None = None
    for event in trace.events:
        if is_void(event):
            continue
        plain = names.plain(event)
        if event.kind == "aggregate" and plain.agent == ROOT:
            return found if _turned(world, event.attrs["answer"]) else None
        if found is None and _erred(task, event, roles[event.agent] == WORKER):
            found = Blame(event.agent, event.id)
        apply(world, plain)
    return None


def _erred(task: Hops, event: Event, worker: bool) -> bool:
    """Whether this is where the planted mistake was made."""
    culprit, facts = str(instance_of(task).stages[0].decisive), event.attrs
    if task.fault == "lookup":
        looked = event.tool in ("lookup", "search") and event.kind == "tool_result"
        asked = (facts.get("of"), facts.get("relation"))
        return looked and facts.get("branch") == culprit and asked == faulty_fact(task)
    handed = worker and event.kind in ("return", "tool_result")
    return task.fault == "report" and handed and culprit in facts.get("ends", {})


def _turned(world: World, answer: str) -> bool:
    """Whether the answer to the first stage is wrong by the end of the decisive branch alone."""
    instance, stage, mind = world.instance, world.instance.stages[0], world.minds[ROOT]
    heard, culprit = mind.ends, str(stage.decisive)
    if culprit not in heard or answer == stage.answer:
        return False
    lists = len(stage.ends[0]) > 1
    guessed = not lists and len(heard) > 1 and mind.richest != answer
    followed = not guessed and answer in _best_names(instance, 0, heard.values())
    honest = {**heard, culprit: stage.ends[stage.decisive]}
    return followed and best_answer(instance, 0, honest.values()) == 1.0


def _join_seconds(task: Hops) -> float:
    return LOOK_SECONDS if task.query == "compare" and task.width > 1 else 0.0


def _share_after(task: Hops, stage: int) -> float:
    """The outcome that hangs on a stage: its own part, and that of all later ones."""
    return (task.stages - stage) / task.stages


def _reports(trace: Trace) -> list[dict[str, list[list[str]]]]:
    """What workers reported in each stage: id of the event to the ends that it names."""
    roles = {agent.id: agent.role for agent in trace.agents}
    kind, tool = (
        ("tool_result", "memory.write") if trace.topology == "harness" else ("return", None)
    )
    stages: list[dict[str, list[list[str]]]] = [{}]
    written: list[tuple[str, Any]] = []
    for event in trace.events:
        if event.kind == "aggregate":
            stages.append({})
        elif (event.kind, event.tool, roles.get(event.agent)) == (kind, tool, WORKER):
            entry = event.agent, event.attrs.get("ends", {})
            if tool is None or entry not in written:  # what is written twice is there once
                stages[-1][event.id] = list(entry[1].values())
            written.append(entry)
    return stages


def _coalitions(players: Sequence[str]) -> Iterator[frozenset[str]]:
    for mask in range(1 << len(players)):
        yield frozenset(player for bit, player in enumerate(players) if mask >> bit & 1)
