"""Events and edges of a team."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stretto.importers.kit.fields import known
from stretto.importers.kit.loom import Loom
from stretto.importers.kit.strand import Strand, paths, trace_of
from stretto.importers.kit.texts import snake_case
from stretto.importers.spans.acts import MADE, Act, Line, lines_of, makers_of, output_of, prompt_of
from stretto.importers.spans.orphans import ADOPTED
from stretto.importers.spans.span import Span, storable, time_of
from stretto.importers.spans.team import Run, Team, target_of
from stretto.trace import Agent, Decision, Evidence, Score, Trace

TYPES = {"spawn": "spawn", "delegate": "delegate", "message": "communicate"}
"""Act to the decision that it makes of its turn; the first in this order counts."""


class Weaver:
    """Makes the events of one run."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """`spans` are those of the run in order of time."""
        self.team = Team(spans)
        starts = [span.start for span in spans if span.start is not None]
        self.origin = min(starts, default=None)
        self.loom = Loom(time_of(self.origin))
        self.lines = lines_of(self.team)
        self.paths = paths(self._parents())
        self.turns: dict[str, tuple[list[int], list[int]]] = {}
        """By agent: times and events of its turns."""
        self.events: dict[str, tuple[list[int], list[int]]] = {}
        """By agent: times and events of all."""
        self.numbers: dict[str, int] = {}
        """By span: its event, if it is no turn."""
        self.turn_of: dict[str | None, int] = {}
        """By span: its turn."""
        self._links: list[tuple[int, Act]] = []
        last = self._last_turn()
        for key, line in self.lines.items():
            self._weave(key, line, last)
        for number, act in self._links:
            self._join(number, act)

    def finish(self, agents: Iterable[Agent], **header: Any) -> Trace:
        """The trace, with what was judged about it, its agents and its events."""
        return trace_of(self.loom, agents, scores=tuple(self._all_scores()), **header)

    def _all_scores(self) -> Iterator[Score]:
        """Scores of spans: of the event they became, else of the agent around; a root's of all."""
        lists = self.loom.of_agents()
        ids = {n: f"{agent}#{place}" for agent, of in lists.items() for place, n in enumerate(of)}
        for span in self.team.spans.values():
            number = self.turn_of.get(span.id) if span.kind == "turn" else self.numbers.get(span.id)
            owner = self.team.owners.get(span.id) if span.parent is not None else None
            to: dict[str, str] = {}
            if number is not None and span.kind != "agent":
                to = {"event": ids[number]}
            elif owner is not None:
                to = {"agent": self.paths[owner.agent]}
            for name, value in span.scores:
                yield Score(channel=snake_case(name), value=value, kind="metric", **to)

    def _parents(self) -> dict[str, str | None]:
        """Who spawned whom; an agent that was handed to stands beside the one that did it."""
        return {key: run.caller for key, run in self.team.first.items()}

    def _last_turn(self) -> str | None:
        """The model call that ends the run: the last one of those that nobody called."""
        acts = [
            act
            for key, line in self.lines.items()
            if self.team.first[key].caller is None
            for act in line
            if act.what == "turn"
        ]
        latest = max(acts, key=lambda act: act.span.end or act.time, default=None)
        return latest.span.id if latest is not None and not latest.span.calls else None

    def _weave(self, key: str, line: Line, last: str | None) -> None:
        strand = Strand(self.loom, self.paths[key])
        makers = makers_of(line)
        made: dict[str | None, set[str]] = {}
        for act in line:
            if act.what in MADE:
                made.setdefault(makers[act.order], set()).add(self._kind(act))
        times: list[int] = []
        numbers: list[int] = []
        turns: tuple[list[int], list[int]] = ([], [])
        self.turns[key], self.events[key] = turns, (times, numbers)
        for act in line:
            if act.what == "turn":
                did = made.get(act.span.id, set())
                kind = next((TYPES[each] for each in TYPES if each in did), "act")
                kind = "stop" if act.span.id == last and not did else kind
                number = self._turn(strand, act.span, kind)
                turns[0].append(act.time)
                turns[1].append(number)
            else:
                number = self._other(strand, act, makers.get(act.order))
            times.append(act.time)
            numbers.append(number)
            if act.what in ("spawn", "delegate", "message", "return"):
                self._links.append((number, act))

    def _kind(self, act: Act) -> str:
        """A second spawn of an agent is work for one that is there."""
        if act.what != "spawn" or act.run is None:
            return act.what
        return "spawn" if self.team.first[act.run.agent] is act.run else "delegate"

    def _turn(self, strand: Strand, span: Span, kind: str) -> int:
        number = strand.turn(
            time_of(span.start),
            span.source,
            duration=span.seconds,
            content=self.loom.store(span.output),
            decision=Decision(type=kind, observation=self.loom.store(span.input)),
            tokens=span.tokens,
            price=span.price,
            attrs=self._attrs(span, model=span.model),
        )
        self.turn_of[span.id] = number
        return number

    def _named(self, span: Span, number: int) -> int:
        """Remember the event of a span; one that spawns several agents is its first."""
        self.numbers.setdefault(span.id, number)
        return number

    def _attrs(self, span: Span, **more: Any) -> dict[str, Any]:
        calls = [call._asdict() for call in span.calls] or None
        own = {"span_id": span.id.rpartition("/")[2], "error": span.error, "calls": calls}
        return known(**own) | storable(span.attrs) | known(**more)

    def _other(self, strand: Strand, act: Act, maker: str | None) -> int:
        span = act.span
        if act.what == "told":
            assert act.run is not None
            text = self.loom.store(prompt_of(act.run))
            return strand.told(time_of(span.start), span.source, content=text)
        if act.what == "result":
            return self._result(strand, span)
        if act.what == "guard":
            number = strand.add(
                "safety",
                time_of(span.start),
                span.source,
                duration=span.seconds,
                content=self.loom.store(span.output),
                attrs=self._attrs(span, name=span.name),
            )
            self.loom.link(strand.latest, number, "causal", "derived")
            return self._named(span, number)
        if act.what == "return":
            return self._return(strand, act)
        return self._made(strand, act, maker)

    def _result(self, strand: Strand, span: Span) -> int:
        time = time_of(span.end)
        attrs = known(error=span.error, tool_call_id=span.call_id)
        content = self.loom.store(span.output)
        call = self.numbers.get(span.id)
        return strand.answer(call, time, span.source, tool=span.name, content=content, attrs=attrs)

    def _return(self, strand: Strand, act: Act) -> int:
        run, span = act.run, act.span
        assert run is not None
        assert run.caller is not None
        text = (run.tool.output if run.tool is not None else None) or output_of(run)
        own = span.output if span.kind == "agent" and span.output != text else None
        return strand.give(
            time_of(act.time or None),
            span.source,
            to=self.paths[run.caller],
            content=self.loom.store(text),
            attrs=known(output=own),
        )

    def _made(self, strand: Strand, act: Act, maker: str | None) -> int:
        """What a turn did: a call, a spawn, a delegation, a message."""
        span, kind = act.span, self._kind(act)
        outer = self.team.outer.get(span.id) if act.what == "call" else None
        cause = self.numbers.get(outer.id) if outer is not None else None
        evidence: Evidence = "recorded" if span.call_id and maker else "derived"
        evidence = "heuristic" if ADOPTED in span.attrs else evidence
        cause = cause if cause is not None else self.turn_of.get(maker)
        number = strand.add(
            "tool_call" if kind == "call" else kind,
            time_of(act.time or None),
            span.source,
            **self._call(span) if kind == "call" else self._towards(act),
        )
        self.loom.link(cause, number, "causal", evidence)
        return self._named(span, number) if act.what != "message" else number

    def _call(self, span: Span) -> dict[str, Any]:
        return {
            "tool": span.name,
            "duration": span.seconds,
            "content": self.loom.store(span.input),
            "attrs": self._attrs(span, tool_call_id=span.call_id),
        }

    def _towards(self, act: Act) -> dict[str, Any]:
        """The fields of an event that reaches another agent."""
        span, run = act.span, act.run
        said = span.output if act.what == "message" else None
        asked = prompt_of(run) if run is not None and act.what == "spawn" else None
        text = said or asked or span.input
        is_tool = span.kind in ("tool", "handoff")
        attrs = self._attrs(span, tool_call_id=span.call_id) if is_tool else {}
        arguments = span.input if is_tool and span.input != text else None
        attrs |= known(arguments=arguments, target=target_of(span) if is_tool else None)
        attrs |= known(call_duration=span.seconds if is_tool else None)
        to = self.paths[run.agent] if run is not None else self._by_name(target_of(span))
        tool = span.name if span.kind == "tool" else None
        return {"to": to, "tool": tool, "content": self.loom.store(text), "attrs": attrs}

    def _by_name(self, name: str | None) -> str | None:
        named = (key for key in self.paths if name and self.team.name_of(key) == name)
        return next((self.paths[key] for key in named), None)

    def _join(self, number: int, act: Act) -> None:
        """Link an event to what it led to at another agent."""
        run = act.run
        if run is None:
            return
        if act.what == "return":
            assert run.caller is not None
            reader = _at_or_after(self.turns[run.caller], act.time)
            self.loom.link(number, reader, "return", "derived")
            return
        first = _at_or_after(self.events[run.agent], run.span.start or run.span.end or 0)
        label = {"spawn": "spawn", "message": "message"}.get(self._kind(act), "causal")
        self.loom.link(number, first, label, _evidence(act, run))


def _evidence(act: Act, run: Run) -> Evidence:
    """How it is known that an act led to a run: by the spans, by names and times, or by a rule."""
    if run.span.kind == "turn":
        return "heuristic"  # that a tool's model call is an agent's is a rule of ours
    is_stated = act.what == "spawn" or act.span.target is not None
    return "recorded" if is_stated else "derived"


def _at_or_after(line: tuple[list[int], list[int]], time: int) -> int | None:
    times, numbers = line
    place = bisect_left(times, time)
    return numbers[place] if place < len(numbers) else None
