"""Files of spans to traces and reports."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stretto.files import read_bytes
from stretto.importers.kit.fields import known
from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import FileReport, Imported, Notice, report_of
from stretto.importers.spans.autogen import with_messages
from stretto.importers.spans.orphans import with_parents
from stretto.importers.spans.runs import runs_of
from stretto.importers.spans.span import Span, storable, time_of
from stretto.importers.spans.team import Run, Team
from stretto.importers.spans.unrecorded import with_calls
from stretto.importers.spans.weave import Weaver
from stretto.trace import Agent, Trace

LOOP = "its parents lead back to it: read as a span without a parent"
"""Said of a span whose parent is wrong."""

_TRACE_ID = re.compile(rb'"(?:context\.)?trace_?[iI][dD]"\s*:\s*"([^"\\]{1,200})"')


class About(Struct, frozen=True):
    """What is said of a whole trace."""

    system: str | None = None
    attrs: dict[str, Any] = {}


class Read(Struct, kw_only=True):
    """What one file holds."""

    spans: list[Span]
    records: int
    warnings: tuple[Notice, ...] = ()
    skipped: dict[str, int] = {}
    about: dict[str, About] = {}
    """By the source's id of the trace."""
    traces: tuple[Trace, ...] = ()
    """Traces that need no interpretation."""


def by_trace(files: Sequence[Path]) -> list[Sequence[Path]]:
    """Files that hold spans of the same trace are imported together: every service writes its own.

    Raises `StrettoError` for a file that cannot be read.
    """
    if len(files) < 2:
        return [files] if files else []
    heads: dict[bytes, int] = {}
    groups: dict[int, list[Path]] = {}
    for place, file in enumerate(files):
        ids = set(_TRACE_ID.findall(read_bytes(file)))
        joined = {heads[name] for name in ids if name in heads}
        head = min(joined, default=place)
        groups.setdefault(head, []).append(file)
        for other in joined - {head}:
            groups[head] += groups.pop(other)
        heads = {name: head if at in joined else at for name, at in heads.items()}
        heads |= dict.fromkeys(ids, head)
    return [groups[head] for head in sorted(groups)]


def import_spans(files: Sequence[Path], read: Callable[[Path], Read], format: str) -> Imported:
    """Read files of one format, and make a trace of every run in them."""
    parts = [read(file) for file in files]
    spans: dict[str, Span] = {}
    duplicates: Counter[str] = Counter()
    for span in (span for part in parts for span in part.spans):
        if span.id in spans:
            duplicates[span.source.file] += 1
        spans.setdefault(span.id, span)
    about = {name: said for part in parts for name, said in part.about.items()}
    made = [_trace(run, about, format) for run in runs_of(with_parents(list(spans.values())))]
    reports = [
        _report(str(file), part, made, duplicates[str(file)])
        for file, part in zip(files, parts, strict=True)
    ]
    whole = tuple(trace for part in parts for trace in part.traces)
    return Imported((*whole, *(each.trace for each in made)), tuple(reports))


class _Made(Struct, frozen=True):
    """A trace, the file that its first span stands in, and what became no event."""

    trace: Trace
    file: str
    skipped: dict[str, Counter[str]]
    looped: tuple[Source, ...]
    """Spans whose parents lead back to them."""


def _report(file: str, part: Read, made: Sequence[_Made], duplicates: int) -> FileReport:
    skipped = Counter(part.skipped)
    for each in made:
        skipped.update(each.skipped.get(file, Counter()))
    traces = [*part.traces, *(each.trace for each in made if each.file == file)]
    places = sorted(at.line for each in made for at in each.looped if at.file == file)
    loops = (Notice(f"{file}:{line}", LOOP) for line in places)
    return report_of(
        file,
        traces,
        records=part.records,
        skipped=dict(skipped),
        duplicates=duplicates,
        warnings=(*part.warnings, *loops),
    )


def _trace(spans: Sequence[Span], about: dict[str, About], format: str) -> _Made:
    weaver = Weaver(with_calls(with_messages(spans)))
    acting = [span for span in spans if span.kind != "create"] or spans
    first = next((span for span in acting if span.parent is None), acting[0])
    said = about.get(first.trace, About())
    names = list(dict.fromkeys(span.trace for span in spans))
    started = time_of(weaver.origin)
    attrs = known(
        format=format,
        started=started.isoformat() if started is not None else None,
        trace_ids=names if len(names) > 1 else None,
        evidence=_evidence(weaver.team),
        error=next(filter(None, (span.error for span in spans if _is_root(span))), None),
    )
    trace = weaver.finish(
        _agents(weaver),
        id=first.trace or "unknown",
        system=said.system,
        attrs=attrs | storable(said.attrs),
    )
    looped = tuple(weaver.team.spans[name].source for name in weaver.team.looped)
    return _Made(trace, first.source.file, _skipped(weaver.team), looped)


def _is_root(span: Span) -> bool:
    return span.parent is None and span.kind in ("step", "agent")


def _evidence(team: Team) -> dict[str, str] | None:
    """Where an agent's model calls are not recorded, its turns are made up from its own span."""
    bare = [run for run in team.runs if not any(act.kind == "turn" for act in run.acts)]
    return {"decision": "derived"} if bare else None


def _skipped(team: Team) -> dict[str, Counter[str]]:
    used = {run.span.id for run in team.runs}
    found: dict[str, Counter[str]] = {}
    for span in team.spans.values():
        is_nested = span.id in team.nested_turns
        label = "nested turn" if is_nested else span.label or span.kind
        is_idle = span.kind in ("step", "create", "agent") and span.id not in used
        if is_nested or is_idle:
            found.setdefault(span.source.file, Counter())[label] += 1
    return found


def _agents(weaver: Weaver) -> Iterable[Agent]:
    team = weaver.team
    for key, run in team.first.items():
        name = team.name_of(key)
        announced = team.announced.get(name or "")
        parent = weaver.paths[run.caller] if run.caller is not None else None
        extra = storable(announced.attrs) if announced is not None else {}
        attrs = extra | _attrs(run)
        model = next((span.model for span in (run.span, *run.acts) if span.model), None)
        yield Agent(id=weaver.paths[key], name=name, parent=parent, model=model, attrs=attrs)
    named = {team.name_of(key) for key in team.first}
    idle = [span for name, span in team.announced.items() if name not in named]
    for place, span in enumerate(idle, sum("/" not in path for path in weaver.paths.values())):
        attrs = storable(span.attrs) | {"transcript": False}
        yield Agent(id=str(place), name=span.agent, model=span.model, attrs=attrs)


def _attrs(run: Run) -> dict[str, Any]:
    if run.span.kind not in ("agent", "step") or not run.agent:
        return {"agent_span": False}
    return known(agent_id=run.span.agent_id, error=run.span.error) | storable(run.span.attrs)
