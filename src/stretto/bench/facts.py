"""Which facts of the ground truth every tool result of an episode brought, and which were needed.

A *known* fact is one that an agent learned about the instance (a row of a document, the end of a
relation); a *step* is something done that the outcome rests on (a cell written, ends compared).
Work that brings neither for the first time in its episode changes no output. For a family without
an entry here, every distinct answer of an untrusted tool is a known fact, and every distinct answer
of a trusted one a step: an upper bound on what was useful.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from stretto.tasks.gather.oracle import right_cells
from stretto.team.protocols import Task
from stretto.trace import Event, Trace

Fact = tuple[Any, ...]


class Brought(Struct, frozen=True):
    """What one tool result brought."""

    event: str
    """Id of the tool result."""
    agent: str
    facts: frozenset[Fact]
    """Known facts of the ground truth."""
    steps: frozenset[Fact] = frozenset()
    """Steps that the outcome rests on."""


Rule = Callable[[Event], Brought]


def brought(task: Task, trace: Trace) -> list[Brought]:
    """What every tool result of an episode brought, in the order of the record."""
    family = task.spec["family"]
    if family == "nest":
        return list(_nest(task, trace))
    rule = _RULES.get(family, _generic)(task, trace)
    return [rule(event) for event in trace.events if event.kind == "tool_result"]


def _gather(task: Any, trace: Trace) -> Rule:
    from stretto.tasks.gather import instance_of

    instance = instance_of(task)
    right = {name: right_cells(instance, name) for name in instance.documents}

    def rule(event: Event) -> Brought:
        attrs = event.attrs
        facts, steps = frozenset[Fact](), frozenset[Fact]()
        if event.tool == "read":
            said = attrs["statements"].items()
            facts = frozenset((cell,) for cell, value in said if instance.truth[cell] == value)
        elif event.tool == "search":
            steps = frozenset(("found", name) for name in attrs["hits"] if right[name])
        elif event.tool == "write_cell":
            cell, value = attrs["cell"], attrs["value"]
            steps = frozenset({("written", cell)} if instance.truth.get(cell) == value else ())
        elif event.tool == "submit":
            steps = frozenset({("submitted",)})
        return Brought(event.id, event.agent, facts, steps)

    return rule


def _hops(task: Any, trace: Trace) -> Rule:
    from stretto.tasks.hops import necessary_facts

    needed = necessary_facts(task)

    def rule(event: Event) -> Brought:
        attrs = event.attrs
        facts, steps = frozenset[Fact](), frozenset[Fact]()
        if "relation" in attrs:
            facts = frozenset({(attrs["of"], attrs["relation"])}) & needed
        elif event.tool == "compare":
            steps = frozenset({("richest", attrs["richest"])})
        return Brought(event.id, event.agent, facts, steps)

    return rule


def _scouts(task: Any, trace: Trace) -> Rule:
    """Every look is a draw of its own: none repeats another. Who listens brings nothing new."""

    def rule(event: Event) -> Brought:
        facts = frozenset({(event.id,)} if event.tool == "look" else set[Fact]())
        return Brought(event.id, event.agent, facts)

    return rule


def _jury(task: Any, trace: Trace) -> Rule:
    """A piece of evidence is a fact; whoever has a copy brings nothing new."""
    from stretto.tasks.jury import case_of

    holds = case_of(task).holds
    seats = {event.to: event.attrs["witnesses"] for event in trace.events if event.kind == "spawn"}

    def rule(event: Event) -> Brought:
        looked = event.tool == "inspect"
        facts = frozenset({(holds[seats[event.agent][0]],)} if looked else set[Fact]())
        return Brought(event.id, event.agent, facts)

    return rule


def _repair(task: Any, trace: Trace) -> Rule:
    """What a failing module should do is a fact; right patches and passed tests are steps."""
    from stretto.tasks.repair import instance_of

    instance = instance_of(task)

    def rule(event: Event) -> Brought:
        attrs = event.attrs
        facts, steps = frozenset[Fact](), frozenset[Fact]()
        name = attrs.get("module")
        if event.tool == "read" and name in instance.failing:
            facts = frozenset({(name,)})
        elif event.tool == "edit" and not attrs.get("refused"):
            right = name in instance.faulty and attrs["written"] == instance.modules[name].right
            steps = frozenset({("repaired", name)} if right else set[Fact]())
        elif event.tool == "list":
            steps = frozenset({("listed",)})
        elif attrs.get("passes") and name in instance.failing:
            steps = frozenset({("passed", name)})
        return Brought(event.id, event.agent, facts, steps)

    return rule


def _agree(task: Any, trace: Trace) -> Rule:
    """Of each member, as many rounds as the farthest input needs; what it tells are messages."""
    from stretto.tasks.agree import rounds_needed

    needed = rounds_needed(task)
    times: dict[tuple[str, str | None], int] = {}

    def rule(event: Event) -> Brought:
        did = event.agent, event.tool
        times[did] = times.get(did, 0) + 1
        useful = times[did] <= needed
        steps = frozenset({(*did, times[did])} if useful else set[Fact]())
        return Brought(event.id, event.agent, frozenset(), steps)

    return rule


def _generic(task: Any, trace: Trace) -> Rule:
    tools = task.harness.tools

    def rule(event: Event) -> Brought:
        fact, nothing = frozenset[Fact]({(event.tool, event.content)}), frozenset[Fact]()
        known = not tools[event.tool or ""].trusted
        pair = (fact, nothing) if known else (nothing, fact)
        return Brought(event.id, event.agent, *pair)

    return rule


def _nest(task: Any, trace: Trace) -> Iterator[Brought]:
    """The facts of every job are its own."""
    from stretto.tasks.nest.leaf import outer_id
    from stretto.tasks.nest.oracle import played

    for job in played(task, trace):
        for each in brought(job.leaf.task, job.trace):
            yield Brought(
                outer_id(job.leaf, each.event),
                job.leaf.outer[each.agent],
                _tagged(job.leaf.index, each.facts),
                _tagged(job.leaf.index, each.steps),
            )


def _tagged(job: int, facts: Iterable[Fact]) -> frozenset[Fact]:
    return frozenset((job, *fact) for fact in facts)


_RULES: Mapping[str, Callable[[Any, Trace], Rule]] = {
    "agree": _agree,
    "gather": _gather,
    "hops": _hops,
    "jury": _jury,
    "repair": _repair,
    "scouts": _scouts,
}
"""Family to the rule that reads the facts off a tool result."""
