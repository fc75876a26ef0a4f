"""Verifying a submission: nothing that it says is believed.

The cheap part (`check`) compares versions, seeds, harness fingerprints and the digest of every
file. The whole (`verify`) also plays every trace again from its seed and computes every number.

What each proves: a replay proves that the environment answers these choices so, hence every
observation, result, time and score. What only the policy knew (log-probabilities, token counts, its
version) cannot be recomputed; there the digests prove that not a byte changed since the manifest
was written, and no more. Publish the manifest's digest beforehand, and they prove that nothing was
changed afterwards.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stretto import store
from stretto.bench.bands import topologies_of
from stretto.bench.baselines import ALONE, Alone, Watched
from stretto.bench.play import forfeit, judge, row_of, serial_seconds
from stretto.bench.results import Row
from stretto.bench.submission import (
    MANIFEST,
    TRACES,
    Filed,
    Manifest,
    digest_of,
    located,
    read_manifest,
    require_policy,
    trace_name,
    trace_path,
)
from stretto.bench.suite import INSTANCES, Cell, Split, Suite, public_split, suite, versions
from stretto.errors import StrettoError, did_you_mean
from stretto.team.engine import fingerprint
from stretto.team.protocols import Answer, Ask
from stretto.team.replay import replay, serve
from stretto.trace import Trace

MOST_ERRORS = 0.1
"""Share of a cell's episodes, with a team or alone, that may be errors: they are the submitter's
word, and not scored."""

Key = tuple[str, int, int | None]
"""Cell, seed, and the number of the attempt alone."""


class Checked(Struct, frozen=True):
    """A submission that passed the cheap part."""

    home: Path
    manifest: Manifest
    suite: Suite
    episodes: tuple[tuple[Filed, Cell], ...]

    @property
    def caveat(self) -> str:
        """What a reader must know beside the numbers; empty where there is nothing."""
        count = self.manifest.instances
        few = f"{count} instances a cell, fewer than {INSTANCES}: too few for a result"
        return few if count < INSTANCES else ""


def check(home: Path, split: Split | None = None) -> Checked:
    """The cheap part: versions, completeness, digests, and the header of every trace.

    `home` is a submission, or a folder with one and nothing else. Raises `StrettoError` for the
    first thing that is wrong.
    """
    home = located(home)
    manifest = read_manifest(home)
    where = str(home / MANIFEST)
    if digest_of(manifest) != manifest.digest:
        raise StrettoError("the manifest was edited: its digest differs", where)
    require_policy(manifest.policy, manifest.about, where)
    seeds = split or public_split()
    _require_versions(manifest, seeds, where)
    whole = suite(split=seeds, instances=manifest.instances)
    cells = {cell.name: cell for cell in whole.cells}
    episodes = tuple((each, _cell(each.cell, cells, where)) for each in manifest.episodes)
    declared = [_cell(name, cells, where) for name in manifest.cells]
    _require_harnesses(manifest, declared, whole, where)
    _require_complete(manifest, declared, whole, where)
    _require_few_errors(manifest, where)
    _require_no_strangers(home, declared, episodes)
    for each, cell in episodes:
        _require_digest(home, each, cell)
    return Checked(home, manifest, whole, episodes)


def verify(
    home: Path, split: Split | None = None, show: Callable[[int, int], None] | None = None
) -> list[Row]:
    """Check a submission, play every trace again, and return the rows that it earns.

    Raises `StrettoError` for the first thing that is wrong.
    """
    checked = check(home, split)
    rows: list[Row] = []
    for number, (each, cell) in enumerate(checked.episodes, start=1):
        rows.append(_row(checked.home, checked.manifest, each, cell))
        if show:
            show(number, len(checked.episodes))
    return rows


def _require_versions(manifest: Manifest, split: Split, where: str) -> None:
    own = msgspec.to_builtins(versions(split))
    theirs = msgspec.to_builtins(manifest.versions)
    for name, value in own.items():
        if theirs[name] != value:
            what = f"made with another {name}: {theirs[name]}"
            raise StrettoError(what, where, f"here it is {value}")
    if manifest.split != split.name:
        raise StrettoError(f"its split is called {manifest.split!r}", where, f"not {split.name!r}")


def _cell(name: str, cells: dict[str, Cell], where: str) -> Cell:
    if name not in cells:
        raise StrettoError(f'no cell "{name}" in the suite', where, did_you_mean(name, cells))
    return cells[name]


def _require_harnesses(
    manifest: Manifest, declared: Sequence[Cell], whole: Suite, where: str
) -> None:
    """At least one cell, each once, and each with its own harness."""
    if not manifest.cells or len(set(manifest.cells)) < len(manifest.cells):
        raise StrettoError("names no cell, or one twice", where, "run the exam; it names them")
    if set(manifest.harnesses) != set(manifest.cells):
        raise StrettoError("harnesses of other cells than it has", where)
    for cell in declared:
        if manifest.harnesses[cell.name] != fingerprint(cell.task(whole.seeds[0])):
            raise StrettoError(f"{cell.name} was played in another harness", where)


def _require_complete(
    manifest: Manifest, declared: Sequence[Cell], whole: Suite, where: str
) -> None:
    """Every seed of every cell once, with a team and for every attempt alone; and no other."""
    found = Counter((each.cell, each.seed, each.attempt) for each in manifest.episodes)
    for episode, count in found.items():
        whole.require_seed(episode[1], where)
        if count > 1:
            raise StrettoError(f"two episodes of {_episode(*episode)}", where)
    asked: set[Key] = set()
    for wanted in (each for cell in declared for each in _wanted(cell, whole, manifest.attempts)):
        if wanted not in found:
            hint = "run the exam to its end; it goes on where it stopped"
            raise StrettoError(f"no episode of {_episode(*wanted)}", where, hint)
        asked.add(wanted)
    for episode in found:
        if episode not in asked:
            hint = f"a cell has the first {manifest.instances} seeds of the split and no other"
            raise StrettoError(f"nobody asked for {_episode(*episode)}", where, hint)


def _require_few_errors(manifest: Manifest, where: str) -> None:
    """Who could leave out what went badly would choose its own score."""
    sides = [(each.cell, each.attempt is not None, each) for each in manifest.episodes]
    all_ = Counter((cell, alone) for cell, alone, _ in sides)
    failed = Counter((cell, alone) for cell, alone, each in sides if each.missing == "error")
    for (cell, alone), count in failed.items():
        if count > MOST_ERRORS * all_[cell, alone]:
            side = "alone" if alone else "with a team"
            what = f"{count} of {all_[cell, alone]} episodes of {cell} {side} are errors"
            raise StrettoError(what, where, "run the exam again: it plays failed episodes anew")


def _wanted(cell: Cell, whole: Suite, attempts: int) -> Iterator[Key]:
    first = cell.topology == topologies_of(cell.family)[0]
    for seed in whole.seeds:
        yield cell.name, seed, None
        if first:
            yield from ((cell.name, seed, attempt) for attempt in range(attempts))


def _episode(cell: str, seed: int, attempt: int | None) -> str:
    return f"{cell}, seed {seed}" + ("" if attempt is None else f", attempt {attempt} alone")


def _require_no_strangers(
    home: Path, declared: Sequence[Cell], episodes: tuple[tuple[Filed, Cell], ...]
) -> None:
    """What the manifest does not name may be anything, such as scores."""
    traces = {trace_name(c, e.seed, e.attempt) for e, c in episodes if e.sha256}
    files = {MANIFEST, *(f"{TRACES}/{name}" for name in traces)}
    folders = {TRACES, *(f"{TRACES}/{cell.name}" for cell in declared)}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_symlink():
            raise StrettoError("is a link", str(path), "a submission holds its own files")
        if name not in (folders if path.is_dir() else files):
            hint = "a submission holds traces and the manifest, no results"
            raise StrettoError("the manifest does not name this file or folder", str(path), hint)


def _require_digest(home: Path, each: Filed, cell: Cell) -> None:
    path = trace_path(home, cell, each.seed, each.attempt)
    if (each.sha256 is None) == (each.missing is None):
        what = f"{_episode(each.cell, each.seed, each.attempt)} has neither or both of two"
        raise StrettoError(what, str(home / MANIFEST), "a digest, or why there is no trace")
    if each.sha256 is None:
        return
    if not path.is_file():
        raise StrettoError("the trace is missing", str(path), "the manifest names it")
    if sha256(path.read_bytes()).hexdigest() != each.sha256:
        raise StrettoError("the trace was edited: its digest differs", str(path))


def _row(home: Path, manifest: Manifest, each: Filed, cell: Cell) -> Row:
    name = manifest.policy + ("" if each.attempt is None else ALONE)
    attempt = each.attempt or 0
    if each.missing == "error":
        return row_of(cell, each.seed, name, attempt, error="declared by the submission")
    if each.missing is not None:
        return forfeit(row_of(cell, each.seed, name, attempt), each.missing)
    path = trace_path(home, cell, each.seed, each.attempt)
    trace = _the_trace(path)
    require_genuine(trace, cell, each.seed, str(path), alone=each.attempt is not None)
    return judge(cell, each.seed, name, trace, serial_seconds(cell, each.seed), attempt)


def _the_trace(path: Path) -> Trace:
    traces = store.read(path)
    if len(traces) != 1:
        raise StrettoError(f"holds {len(traces)} traces", str(path), "one episode a file")
    return traces[0]


def require_genuine(
    trace: Trace, cell: Cell, seed: int, where: str, *, alone: bool = False
) -> None:
    """Raise `StrettoError` unless the trace is an untouched episode of this instance.

    Which attempt `alone` it is cannot be checked: what it draws by, only its policy knows.
    """
    watched = Watched(cell.task(seed))
    task = watched.as_task
    if trace.seed != seed:
        raise StrettoError(f"its seed is {trace.seed}, not {seed}", where)
    if trace.id != f"{task.id}@{seed}" or trace.spec != _as_read(task.spec):
        raise StrettoError("its id or its spec is not that of the instance", where)
    if trace.harness != fingerprint(task):
        raise StrettoError("it was played in another harness", where)
    if trace.lineage or "interventions" in trace.attrs:
        raise StrettoError("it was forked or intervened in", where, "submit episodes as played")
    lost = [
        event.id
        for event in trace.events
        if event.decision is not None and trace.text(event.decision.observation) is None
    ]
    if lost:
        raise StrettoError(f"what {lost[0]} saw was dropped", where, "submit whole traces")
    divergence = replay(trace, task)
    if divergence is not None:
        what = f"played again, {divergence.event} has another {divergence.field}"
        raise StrettoError(what, where, "it was edited, or made by another version")
    if alone:
        _require_alone(trace, watched, where)


def _as_read(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _require_alone(trace: Trace, watched: Watched, where: str) -> None:
    """Raise `StrettoError` where somebody was sent by a choice that one agent alone has not."""
    asks = [
        Ask(e.id, "", trace.text(e.decision.observation) or "", e.decision.candidates, "", 0)
        for e in trace.events
        if e.decision is not None
    ]
    Alone(_Served(trace, where), watched).decide(asks)


class _Served:
    """Answers as the trace does, if it is offered that."""

    def __init__(self, trace: Trace, where: str) -> None:
        self._events = {event.id: event for event in trace.events}
        self._where = where

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        answers = [serve(self._events[ask.event], ask) for ask in asks]
        for ask, answer in zip(asks, answers, strict=True):
            if answer is None:
                what = f"{ask.event} sends somebody, in an episode alone"
                raise StrettoError(what, self._where, "it was played with a team")
        return [answer for answer in answers if answer is not None]
