"""Which agent did what: agents, their runs, and what handed work to them.

Spans form a tree, and an agent's work lies below the span that is its run. A run begins at a span
that is an agent, at a group that is labelled with another agent than the one around it (LangGraph
has no agent spans), and at a model call that a tool makes (an agent without a name of its own).

| where a run begins | whose run it is |
|---|---|
| in a tool call | a new agent, spawned by that call |
| in another agent | a new agent, spawned by the other one; an agent of this name there runs again |
| in no agent | an agent of the run; one of this name runs again, unless it is still busy |
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

from msgspec import Struct, field

from stretto.importers.spans.span import Span

_HANDOFF = re.compile(r"(?:transfer|hand[ _]?off|delegate)[ _](?:back[ _])?to[ _](.+)", re.I)

ACTS = ("turn", "tool", "handoff", "guard")
"""Kinds of spans that belong to an agent."""


class Run(Struct):
    """One time that an agent was at work."""

    span: Span
    agent: str
    """Key of the agent."""
    caller: str | None = None
    """Key of the agent around it."""
    tool: Span | None = None
    """The tool call of the caller that it lies in."""
    handoff: Span | None = None
    """What handed the work to it."""
    acts: list[Span] = field(default_factory=list)
    """What it did itself, in order of time."""
    inner: bool = False
    """Whether it called other agents without a tool."""


class _Place(NamedTuple):
    """Where a span stands."""

    run: Run | None = None
    tool: Span | None = None
    who: tuple[str | None, str | None] = (None, None)


class Team:
    """The agents of one run of a program, and what each did."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """`spans` are those of one run in order of time."""
        self.spans = {span.id: span for span in spans}
        self.above, self.looped = _parents(spans)
        self.children: dict[str | None, list[Span]] = {}
        for span in self.spans.values():
            self.children.setdefault(self.above[span.id], []).append(span)
        self.nested_turns = _nested_turns(self.children)
        self.runs: list[Run] = []
        self.owners: dict[str, Run] = {}
        """By id of a span: the run that it lies in."""
        self.outer: dict[str, Span] = {}
        """By id of a span: the tool call of the same agent that it lies in."""
        self.announced = {s.agent: s for s in self.spans.values() if s.kind == "create" and s.agent}
        self._latest: dict[tuple[str, ...], Run] = {}
        self._walk()
        self.runs.sort(key=lambda run: run.span.start or 0)
        for run in self.runs:
            run.acts.sort(key=lambda span: span.start or span.end or 0)
        self.first: dict[str, Run] = {}
        """By key of an agent: its first run; in order of birth."""
        for run in self.runs:
            self.first.setdefault(run.agent, run)
        self._hand_over()

    def _walk(self) -> None:
        """Visit every span after the one around it."""
        stack = [(span, _Place()) for span in reversed(self.children.get(None, ()))]
        while stack:
            span, place = stack.pop()
            inside = self._visit(span, place)
            stack.extend((child, inside) for child in reversed(self.children.get(span.id, ())))

    def _visit(self, span: Span, place: _Place) -> _Place:
        if self._begins(span, place):
            run = self._begin(span, place)
            place = _Place(run, None, (span.agent_id, span.agent))
        elif span.kind in ACTS and place.run is None:
            run = self._without_name(span)
            place = _Place(run, place.tool, (None, None))
        if place.run is not None:
            self.owners[span.id] = place.run
        if place.run is not None and place.tool is not None:
            self.outer[span.id] = place.tool
        if span.kind in ACTS and place.run is not None and span.id not in self.nested_turns:
            place.run.acts.append(span)
        return place._replace(tool=span) if span.kind == "tool" else place

    def _begins(self, span: Span, place: _Place) -> bool:
        """Whether another agent than the one around it is at work from this span on."""
        who = (span.agent_id, span.agent)
        if span.kind == "agent":
            named_alike = span.agent is not None and span.agent == place.who[1]
            if place.run is not None and place.tool is None and named_alike:
                return False
            return place.run is not None or not self._only_groups(span)
        if span.kind == "turn" and place.tool is not None and place.run is not None:
            return True
        if span.kind not in ("step", "turn") or span.agent is None:
            return False
        is_free = place.run is None or place.tool is not None
        return _differ(who, place.who) or (is_free and place.who == (None, None))

    def _only_groups(self, span: Span) -> bool:
        """Whether a root is but a frame around agents: it has no name, and does nothing."""
        if span.agent is not None:
            return False
        found, has_agents = list(self.children.get(span.id, ())), False
        while found:
            inner = found.pop()
            if inner.kind in ACTS:
                return False
            has_agents |= inner.kind == "agent"
            found += self.children.get(inner.id, ()) if inner.kind in ("step", "create") else ()
        return has_agents

    def _begin(self, span: Span, place: _Place) -> Run:
        caller = place.run.agent if place.run is not None else None
        if place.run is not None and place.tool is None:
            place.run.inner = True
        own_name = span.agent_id or span.agent or ("" if span.kind == "turn" else span.name)
        name = (place.tool.id if place.tool is not None else "", caller or "", own_name)
        earlier = self._latest.get(name)
        joins = span.kind == "turn" or (span.kind == "step" and span.agent_id is not None)
        if earlier is not None and joins:
            return earlier  # model calls and groups of one label are one piece of work
        run = Run(span, _key(name, span, earlier, place), caller, place.tool)
        self._latest[name] = run
        self.runs.append(run)
        return run

    def _without_name(self, span: Span) -> Run:
        """What no agent span covers is the work of one agent without a name."""
        if ("",) not in self._latest:
            run = Run(span, "", None, None)
            self._latest[("",)] = run
            self.runs.append(run)
        return self._latest[("",)]

    def _hand_over(self) -> None:
        """Find the run that each handoff led to: the next one of that agent.

        It stands beside the run that handed over, or (in ADK) within it.
        """
        handoffs = [act for run in self.runs for act in run.acts if target_of(act) is not None]
        waiting: dict[tuple[str, ...], deque[Span]] = {}
        for act in sorted(handoffs, key=lambda act: act.start or 0):
            owner, target = self.owners[act.id], _plain(target_of(act) or "")
            for scope in (_scope(owner), ("", owner.agent)):
                waiting.setdefault((*scope, target), deque()).append(act)
        used: set[str] = set()
        for run in self.runs:
            place = (*_scope(run), _plain(run.span.agent or run.span.name))
            queue = waiting.get(place, deque())
            while queue and (queue[0].start or 0) <= (run.span.start or 0):
                act = queue.popleft()
                run.handoff = run.handoff if act.id in used else act
            used |= {run.handoff.id} if run.handoff is not None else set()

    def around(self, name: str) -> Iterator[str]:
        """The spans around a span, from the inside out."""
        above = self.above[name]
        while above is not None:
            yield above
            above = self.above[above]

    def name_of(self, key: str) -> str | None:
        """What the source calls an agent."""
        run = self.first[key]
        if key == "":
            return None
        tool = run.tool.name if run.tool is not None and run.span.kind == "turn" else None
        return run.span.agent or tool or run.span.name or None


def target_of(span: Span) -> str | None:
    """The agent that a span hands to, by its attributes or by the name of the tool."""
    if span.target is not None or span.kind != "tool":
        return span.target
    found = _HANDOFF.fullmatch(span.name)
    return found[1] if found else None


def _key(name: tuple[str, ...], span: Span, earlier: Run | None, place: _Place) -> str:
    """A new agent's key, or that of the agent that runs again."""
    if earlier is None:
        return "\0".join(name)
    busy = span.start is None or earlier.span.end is None or span.start < earlier.span.end
    return "\0".join((*name, span.id)) if place.tool is not None or busy else earlier.agent


def _scope(run: Run) -> tuple[str, str]:
    return run.tool.id if run.tool is not None else "", run.caller or ""


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).lower()


def _differ(one: tuple[str | None, str | None], other: tuple[str | None, str | None]) -> bool:
    """Whether two labels, each an id and a name, are of different agents."""
    for mine, theirs in zip(one, other, strict=True):
        if mine is not None and theirs is not None:
            return mine != theirs
    return False


def _parents(spans: Sequence[Span]) -> tuple[dict[str, str | None], list[str]]:
    """The parent of every span that is there, and spans whose parents lead back to them.

    Which link of such a loop is wrong is not known, so none of its spans has a parent.
    """
    known = {span.id: span.parent for span in spans}
    above = {name: parent if parent in known else None for name, parent in known.items()}
    done: set[str] = set()
    looped: list[str] = []
    for name in above:
        path: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in done and step not in path:
            path[step] = None
            step = above[step]
        if step is not None and step in path:
            looped += dropwhile(step.__ne__, path)
        done.update(path)
    return above | dict.fromkeys(looped), looped


def _nested_turns(children: dict[str | None, list[Span]]) -> dict[str, Span | None]:
    """Model calls that contain model calls, and what stands for each.

    Two libraries may record the same call, and some record a whole loop of calls as one: what
    counts is the innermost.
    """
    found: dict[str, Span | None] = {}
    for inside in children.values():
        for span in inside:
            if span.kind == "turn":
                inner = _turns_below(span, children)
                if inner:
                    found[span.id] = inner[0] if len(inner) == 1 else None
    return found


def _turns_below(span: Span, children: dict[str | None, list[Span]]) -> list[Span]:
    found: list[Span] = []
    stack = list(children.get(span.id, ()))
    while stack:
        inner = stack.pop()
        if inner.kind == "turn":
            found.append(inner)
        elif inner.kind in ("step", "guard"):
            stack += children.get(inner.id, ())
    return found
