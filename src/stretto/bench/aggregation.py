"""E3: what a team made of what its members knew (benchmark-and-safety §4).

The aggregator's regret is `U(best aggregate of the received messages) - U(actual)`; the flip rate
is the share of members that knew the right answer and said another one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stretto.bench.facts import Brought
from stretto.team.protocols import Task
from stretto.team.state import ROOT
from stretto.trace import Event, Trace

Values = dict[str, float | None]


def aggregation(task: Task, trace: Trace, found: Sequence[Brought]) -> Values:
    """Regret of who aggregates, flips from right to wrong, and milestones of one episode.

    - `aggregation_regret`, `flips`: `None` where the family does not know them, where nobody told
      anybody anything, and where nobody knew better
    - `milestones = n / M`: share of the needed facts that somebody learned
    - `largest_share = max_i n_i / n`: of them, the most that one agent was the first to learn
    """
    family = task.spec["family"]
    regret, flips = _REGRET.get(family), _FLIPS.get(family)
    return {
        "aggregation_regret": regret(task, trace) if regret else None,
        "flips": flips(task, trace) if flips else None,
        **milestones(found, needed(task)),
    }


def milestones(found: Sequence[Brought], total: int | None) -> Values:
    """`KPI = n / M`, and how much of it one agent did; the first to learn a fact has reached it.

    `None` where the family does not say how many facts are needed.
    """
    first: dict[object, str] = {}
    for each in found:
        for fact in each.facts:
            first.setdefault(fact, each.agent)
    counts: dict[str, int] = {}
    for agent in first.values():
        counts[agent] = counts.get(agent, 0) + 1
    return {
        "milestones": len(first) / total if total else None,
        "largest_share": max(counts.values()) / len(first) if first and total else None,
    }


def needed(task: Task) -> int | None:
    """`M`: how many facts the instance needs; `None` where its family does not say."""
    rule = _NEEDED.get(task.spec["family"])
    return rule(task) if rule else None


def _jury_regret(task: Any, trace: Trace) -> float | None:
    from stretto.tasks.jury.oracle import received, regret

    return regret(task, trace) if received(trace) else None


def _hops_regret(task: Any, trace: Trace) -> float | None:
    """Of the first stage that was answered wrongly, times the outcome that hangs on it."""
    from stretto.tasks.hops import instance_of
    from stretto.tasks.hops.oracle import best_answer

    stages = instance_of(task).stages
    told = False
    for number, (answer, ends) in enumerate(_answers(trace)):
        told = told or bool(ends)
        if answer != stages[number].answer:
            reached = best_answer(instance_of(task), number, ends) if ends else None
            return None if reached is None else reached * (task.stages - number) / task.stages
    return 0.0 if told else None


def _answers(trace: Trace) -> Iterator[tuple[str, list[list[str]]]]:
    """What the lead answered in each stage, and the ends that had been reported to it."""
    ends: dict[str, list[str]] = {}
    for event in trace.events:
        if _reaches_lead(event):
            ends |= event.attrs.get("ends", {})
        elif event.kind == "aggregate" or (event.kind == "stop" and not event.attrs["answer"]):
            yield event.attrs["answer"], list(ends.values())
            ends = {}


def _reaches_lead(event: Event) -> bool:
    read = event.kind == "tool_result" and event.tool == "memory.read" and event.agent == ROOT
    return read or (event.kind == "return" and event.to == ROOT)


def _gather_regret(task: Any, trace: Trace) -> float | None:
    """Against the table that has every cell right whose right value somebody read."""
    from stretto.tasks.gather import instance_of
    from stretto.tasks.gather.oracle import right_cells, score_table

    instance = instance_of(task)
    results = [event for event in trace.events if event.kind == "tool_result"]
    read = {e.attrs["doc"] for e in results if e.tool == "read"}
    if not read or all(event.agent == ROOT for event in results):
        return None
    writes = (e.attrs for e in results if e.tool == "write_cell")
    table = {attrs["cell"]: attrs["value"] for attrs in writes}
    known = {cell for name in read for cell in right_cells(instance, name)}
    best = table | {cell: instance.truth[cell] for cell in known}
    return score_table(instance.truth, best).item.f1 - score_table(instance.truth, table).item.f1


def _nest_regret(task: Any, trace: Trace) -> float | None:
    """Over the jobs that know it."""
    from stretto.tasks.nest.oracle import played

    jobs = list(played(task, trace))
    rules = [(_REGRET.get(job.leaf.task.spec["family"]), job) for job in jobs]
    found = [rule(job.leaf.task, job.trace) for rule, job in rules if rule]
    known = [value for value in found if value is not None]
    return sum(known) / len(known) if known else None


def _jury_flips(task: Any, trace: Trace) -> float | None:
    """Of the witnesses whose evidence shows the right colour, those that claim another."""
    from stretto.tasks.jury import COLOURS

    right = _hidden(task, trace)
    stop = next((event for event in trace.events if event.kind == "stop"), None)
    if stop is None or right is None:
        return None
    saw: dict[str, int] = {}
    said: dict[str, int] = {}
    for event in trace.events:
        if event.kind == "tool_result" and event.tool == "inspect":
            saw[event.agent] = event.attrs["saw"]
        elif "claims" in event.attrs and event.agent in saw:
            (said[event.agent],) = event.attrs["claims"].values()  # a witness speaks for itself
    knew = [agent for agent, colour in saw.items() if COLOURS[colour] == right and agent in said]
    return sum(COLOURS[said[agent]] != right for agent in knew) / len(knew) if knew else None


def _hidden(task: Any, trace: Trace) -> str | None:
    """The right colour, by playing the beginning of the episode's world again."""
    from stretto.tasks.jury import COLOURS

    return None if trace.seed is None else COLOURS[task.begin(trace.seed).hidden]


def _hops_needed(task: Any) -> int:
    from stretto.tasks.hops import necessary_facts

    return len(necessary_facts(task))


def _repair_needed(task: Any) -> int:
    from stretto.tasks.repair import instance_of

    return len(instance_of(task).failing)


def _jury_needed(task: Any) -> int:
    from stretto.tasks.jury import case_of

    return len(case_of(task).kinds)


_REGRET: Mapping[str, Callable[[Any, Trace], float | None]] = {
    "gather": _gather_regret,
    "hops": _hops_regret,
    "jury": _jury_regret,
    "nest": _nest_regret,
}
_FLIPS: Mapping[str, Callable[[Any, Trace], float | None]] = {"jury": _jury_flips}
_NEEDED: Mapping[str, Callable[[Any], int]] = {
    "gather": lambda task: task.cells,
    "hops": _hops_needed,
    "jury": _jury_needed,
    "repair": _repair_needed,
}
