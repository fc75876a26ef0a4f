"""Trajectories in the Agent Trajectory Interchange Format (ATIF 1.0 to 1.8), one trace a run.

A step of an agent is a turn; its tool calls, their results and the sub-agents that they refer to
follow from it. What Stretto wrote itself carries the whole trace, which is taken as it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.exporters.atif_restore import from_stretto_extra
from stretto.importers.atif.family import Family, changed_model, model_of, runs
from stretto.importers.atif.files import Trajectory, read_trajectories, recognise, sessions
from stretto.importers.kit.fields import (
    count_at,
    known,
    list_at,
    number_at,
    record_at,
    text_at,
    time_at,
)
from stretto.importers.kit.loom import Loom, Source
from stretto.importers.kit.report import FileReport, Imported, Notice, report_of
from stretto.importers.kit.strand import Strand, trace_of
from stretto.importers.kit.texts import json_text, text_of, tokens_of
from stretto.trace import Agent, Decision, Score, Trace

__all__ = ["import_files", "recognise", "sessions"]

CHANGED = "what Stretto wrote was cut or changed; it is read as a file of any other program"
"""Said of a file whose trace cannot be put together again."""


def import_files(files: Sequence[Path]) -> Imported:
    """Read the files of one run as one trace.

    Raises `StrettoError` for a file of which nothing is whole, or that holds no trajectory.
    """
    found: list[Trajectory] = []
    warnings: dict[Path, tuple[Notice, ...]] = {}
    for file in files:
        trajectories, warnings[file] = read_trajectories(file)
        found += trajectories
    if not found:
        raise StrettoError("holds no trajectory", str(files[0]), 'is "schema_version" there?')
    traces: dict[Path, list[Trace]] = {file: [] for file in files}
    for run in runs(found):
        trace = _restored(run)
        if trace is None and any(map(_is_stretto, run)):
            warnings[run[0].file] += (Notice(str(run[0].file), CHANGED),)
        traces[run[0].file].append(_Weaver(run).weave() if trace is None else trace)
    reports = [_report(file, found, warnings[file], traces[file]) for file in files]
    return Imported(tuple(trace for file in files for trace in traces[file]), tuple(reports))


def _restored(run: Sequence[Trajectory]) -> Trace | None:
    """The trace that Stretto wrote, if all of it is there and nothing else."""
    outermost = [each for each in run if each.inside is None]
    return from_stretto_extra(outermost[0].record) if len(outermost) == 1 else None


def _is_stretto(trajectory: Trajectory) -> bool:
    return "stretto" in record_at(trajectory.record, "agent", "extra")


def _report(
    file: Path,
    found: Sequence[Trajectory],
    warnings: tuple[Notice, ...],
    traces: Sequence[Trace],
) -> FileReport:
    own = [each for each in found if each.file == file]
    copied = sum(_is_copied(step) for each in own for step in each.steps)
    return report_of(
        str(file),
        traces,
        records=sum(len(each.steps) for each in own),
        duplicates=copied,
        skipped={"copied_context": copied} if copied else {},
        warnings=warnings,
    )


def _is_copied(step: Any) -> bool:
    return isinstance(step, dict) and step.get("is_copied_context") is True


class _Turns(Struct):
    """One agent while its steps are added."""

    trajectory: Trajectory
    strand: Strand
    parent: str | None
    last: Any = None
    """Its last turn."""
    acted: bool = False
    prompts: list[str] = []
    born: bool = False


class _Weaver:
    """Adds the steps of all trajectories of a run."""

    def __init__(self, found: Sequence[Trajectory]) -> None:
        family = Family(found)
        self.found = found
        self.links = family.links
        self.later = family.later
        self.parents = family.parents
        self.paths = family.paths
        times = [time_at(step, "timestamp") for each in found for step in each.steps]
        self.origin = min((time for time in times if time is not None), default=None)
        self.root = family.root()
        self.loom = Loom(self.origin)
        self.agents: dict[str, _Turns] = {
            each.key: _Turns(each, Strand(self.loom, self.paths[each.key]), self.parents[each.key])
            for each in found
            if each.key in self.parents
        }
        self.absent: list[Agent] = []
        self.children = Counter(path.rpartition("/")[0] for path in self.paths.values())

    def weave(self) -> Trace:
        """The trace of the run."""
        done: set[str] = set()
        for key in self.agents:
            self._run(key, done)
        header = self._header()
        agents = [self._agent(each) for each in self.agents.values()] + self.absent
        return trace_of(self.loom, agents, scores=self._scores(), **header)

    def _run(self, key: str, done: set[str]) -> None:
        """Weave an agent, and every sub-agent at the step that spawns it."""
        stack = [(key, self._steps(key))] if key not in done else []
        done.add(key)
        while stack:
            child = next(stack[-1][1], None)
            if child is None:
                stack.pop()
            elif child not in done:
                done.add(child)
                stack.append((child, self._steps(child)))

    def _steps(self, key: str) -> Iterator[str]:
        """Add the steps of an agent; yields the keys of those that must be added first."""
        agent = self.agents[key]
        place: Trajectory | None = agent.trajectory
        agent.last = self._last_turn(place)
        while place is not None:
            for step in place.steps:
                if isinstance(step, dict) and not _is_copied(step):
                    yield from self._step(agent, place, step)
            place = self.later.get(place.key)

    def _last_turn(self, place: Trajectory | None) -> Any:
        last = None
        while place is not None:
            turns = [step for step in place.steps if text_at(step, "source") == "agent"]
            last = turns[-1] if turns else last
            place = self.later.get(place.key)
        return last

    def _step(self, agent: _Turns, place: Trajectory, step: dict[str, Any]) -> Iterator[str]:
        source = Source(str(place.file), place.line)
        if step.get("source") == "agent":
            self._turn(agent, place, step, source)
            yield from self._actions(agent, place, step, source)
        elif step.get("source") == "user":
            self._user(agent, step, source)
        else:
            self._system(agent, step, source)
            yield from self._actions(agent, place, step, source)

    def _turn(
        self,
        agent: _Turns,
        place: Trajectory,
        step: dict[str, Any],
        source: Source,
    ) -> None:
        if step.get("llm_call_count") == 0:
            return
        agent.acted = True
        is_last, model = step is agent.last, changed_model(agent.trajectory, place)
        agent.strand.turn(
            time_at(step, "timestamp"),
            source,
            content=self.loom.store(text_of(step.get("message"))),
            **_turn_fields(step, self.loom, is_last, model),
        )

    def _user(self, agent: _Turns, step: dict[str, Any], source: Source) -> None:
        text = text_of(step.get("message"))
        time = time_at(step, "timestamp")
        if agent.parent is None:
            agent.strand.told(time, source, content=self.loom.store(text))
        elif not agent.acted:
            agent.prompts = [*agent.prompts, text or ""]
        else:
            above = self.agents[agent.parent].strand
            content = self.loom.store(text)
            attrs = {"evidence": {"agent": "derived"}}
            number = above.act(
                "message", time, source, to=agent.strand.agent, content=content, attrs=attrs
            )
            agent.strand.hear(number, "message")

    def _system(self, agent: _Turns, step: dict[str, Any], source: Source) -> None:
        content = self.loom.store(text_of(step.get("message")))
        time = time_at(step, "timestamp")
        number = agent.strand.add("system", time, source, content=content, attrs=_extra(step))
        agent.strand.hear(number, "causal")

    def _actions(
        self, agent: _Turns, place: Trajectory, step: dict[str, Any], source: Source
    ) -> Iterator[str]:
        results = [each for each in list_at(step, "observation", "results") if _is_record(each)]
        spawning = {
            text_at(each, "source_call_id")
            for each in results
            if list_at(each, "subagent_trajectory_ref")
        }
        calls: dict[str | None, tuple[int | None, str | None]] = {}
        asked: dict[str | None, dict[str, Any]] = {}
        for call in list_at(step, "tool_calls"):
            name = text_at(call, "tool_call_id")
            asked[name] = record_at(call)
            if name not in spawning:
                number = self._call(agent, record_at(call), time_at(step, "timestamp"), source)
                calls[name] = (number, text_at(call, "function_name"))
        for result in results:
            name = text_at(result, "source_call_id")
            references = list_at(result, "subagent_trajectory_ref")
            if references:
                yield from self._spawn(agent, place, step, asked.get(name, {}), result, source)
            else:
                alone = len(calls) == len(results) == 1  # then it needs no name
                call, tool = next(iter(calls.values())) if alone else calls.get(name, (None, None))
                self._result(agent, result, call, tool, source)

    def _call(
        self, agent: _Turns, call: dict[str, Any], time: datetime | None, source: Source
    ) -> int:
        attrs = known(tool_call_id=text_at(call, "tool_call_id")) | _extra(call)
        content = self.loom.store(json_text(call.get("arguments", {})))
        tool = text_at(call, "function_name")
        return agent.strand.act("tool_call", time, source, tool=tool, content=content, attrs=attrs)

    def _result(
        self,
        agent: _Turns,
        result: dict[str, Any],
        call: int | None,
        tool: str | None,
        source: Source,
    ) -> None:
        name = text_at(result, "source_call_id")
        attrs = known(tool_call_id=name) | _extra(result)
        content = self.loom.store(text_of(result.get("content")))
        agent.strand.answer(call, None, source, tool=tool, content=content, attrs=attrs)

    def _spawn(
        self,
        agent: _Turns,
        place: Trajectory,
        step: dict[str, Any],
        call: dict[str, Any],
        result: dict[str, Any],
        source: Source,
    ) -> Iterator[str]:
        """Sub-agents, one a reference; with several, what came back belongs to them together."""
        references = list_at(result, "subagent_trajectory_ref")
        together = len(references) > 1
        text = text_of(result.get("content"))
        asked: dict[str, Any] = {
            "time": time_at(step, "timestamp"),
            "tool": text_at(call, "function_name"),
            "content": self.loom.store(
                json_text(call["arguments"]) if "arguments" in call else None
            ),
            "attrs": known(tool_call_id=text_at(call, "tool_call_id")) | _extra(call),
        }
        for reference in references:
            said = None if together else self.loom.store(text)
            yield from self._child(agent, place, reference, asked, said, source)
        if together or not self._came_back(place, references):
            self._result(agent, result, None, asked["tool"], source)

    def _child(
        self,
        agent: _Turns,
        place: Trajectory,
        reference: Any,
        asked: dict[str, Any],
        said: str | None,
        source: Source,
    ) -> Iterator[str]:
        """One sub-agent: how it was begun, all that it did, and its return."""
        found = self.links.child(place, reference)
        child = self.agents.get(found.key) if found is not None else None
        again = child is not None and child.born
        path = self._absent(agent, reference) if child is None else child.strand.agent
        kind = "delegate" if again else "spawn"
        attrs = asked["attrs"] | known(reference=record_at(reference, "extra") or None)
        number = agent.strand.act(kind, source=source, to=path, **asked | {"attrs": attrs})
        if found is None or child is None:
            return
        child.born = True
        child.strand.hear(number, "message" if again else "spawn", "recorded")
        yield found.key
        back = child.strand.give(None, source, to=agent.strand.agent, content=said)
        agent.strand.hear(back, "return")

    def _came_back(self, place: Trajectory, references: Sequence[Any]) -> bool:
        children = (self.links.child(place, reference) for reference in references)
        return all(child is not None and child.key in self.agents for child in children)

    def _absent(self, agent: _Turns, reference: Any) -> str:
        """An agent whose trajectory is not here."""
        above = agent.strand.agent
        number = self.children[above]
        self.children[above] += 1
        attrs = {"transcript": False} | known(
            agent_id=text_at(reference, "trajectory_id") or text_at(reference, "session_id"),
            path=text_at(reference, "trajectory_path"),
        )
        self.absent.append(Agent(id=f"{above}/{number}", parent=above, attrs=attrs))
        return self.absent[-1].id

    def _agent(self, agent: _Turns) -> Agent:
        record = agent.trajectory.record
        parent = self.agents[agent.parent].strand.agent if agent.parent else None
        prompt = "\n\n".join(agent.prompts)
        return Agent(
            id=agent.strand.agent,
            parent=parent,
            name=text_at(record, "agent", "name"),
            model=model_of(agent.trajectory),
            attrs=known(
                version=text_at(record, "agent", "version"),
                agent_id=text_at(record, "trajectory_id"),
                session_id=text_at(record, "session_id"),
                prompt=prompt or None,
            ),
        )

    def _header(self) -> dict[str, Any]:
        record = self.root.record
        name, version = text_at(record, "agent", "name"), text_at(record, "agent", "version")
        named = text_at(record, "session_id") or text_at(record, "trajectory_id")
        attrs = known(
            format="atif",
            schema_version=text_at(record, "schema_version"),
            started=self.origin.isoformat() if self.origin else None,
            notes=text_at(record, "notes"),
        )
        return {
            "id": named or self.root.file.stem,
            "system": " ".join(each for each in (name, version) if each) or "atif",
            "attrs": attrs | _extra(record),
        }

    def _scores(self) -> tuple[Score, ...]:
        cost = number_at(self.root.record, "final_metrics", "total_cost_usd")
        return (Score(channel="cost_usd", value=cost, kind="cost"),) if cost is not None else ()


def _is_record(value: Any) -> bool:
    return isinstance(value, dict)


def _extra(record: dict[str, Any]) -> dict[str, Any]:
    extra = record_at(record, "extra")
    return {"extra": extra} if extra and "stretto" not in extra else {}


def _turn_fields(
    step: dict[str, Any], loom: Loom, is_last: bool, model: str | None
) -> dict[str, Any]:
    """`model` is that of a step that names none, where it is not the agent's."""
    metrics = record_at(step, "metrics")
    read = count_at(metrics, "cached_tokens")
    cost = number_at(metrics, "cost_usd")
    results = list_at(step, "observation", "results")
    calls = list_at(step, "tool_calls")
    spawns = any(list_at(result, "subagent_trajectory_ref") for result in results)
    return {
        "tokens": tokens_of(
            count_at(metrics, "prompt_tokens"), count_at(metrics, "completion_tokens"), read
        ),
        "price": cost if cost is not None and cost >= 0 else None,
        "decision": _decision(metrics, _type(spawns, is_last and not calls)),
        "attrs": known(
            step_id=count_at(step, "step_id"),
            model=text_at(step, "model_name") or model,
            thinking=loom.store(text_at(step, "reasoning_content")),
            llm_call_count=count_at(step, "llm_call_count"),
        )
        | _extra(step),
    }


def _type(spawns: bool, ends: bool) -> str:
    return "spawn" if spawns else "stop" if ends else "act"


def _decision(metrics: dict[str, Any], type: str) -> Decision:
    completion = _ids(metrics, "completion_token_ids")
    logprobs = [number_at(each) for each in list_at(metrics, "logprobs")]
    fits = len(logprobs) == len(completion) and all(p is not None and p <= 0 for p in logprobs)
    return Decision(
        type=type,
        prompt_ids=_ids(metrics, "prompt_token_ids"),
        completion_ids=completion,
        completion_logprobs=tuple(p for p in logprobs if p is not None) if fits else (),
    )


def _ids(metrics: dict[str, Any], name: str) -> tuple[int, ...]:
    ids = [count_at(each) for each in list_at(metrics, name)]
    return tuple(each for each in ids if each is not None) if None not in ids else ()
