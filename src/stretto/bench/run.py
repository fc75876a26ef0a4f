"""Running an exam: instances in parallel, every row kept as soon as it is known."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path
from threading import Event

from msgspec import Struct
from msgspec.structs import replace

from stretto import store
from stretto.bench.bands import LIMITS, topologies_of
from stretto.bench.baselines import ALONE, ONE_AGENT, SCRIPTED, Policies, Watched, again, alone
from stretto.bench.examinee import Examinee, examinee
from stretto.bench.play import (
    SHORT,
    forfeit,
    judge,
    limits_of,
    play,
    row_of,
    serial_seconds,
    sit,
)
from stretto.bench.results import Row, append, make_folder, open_folder
from stretto.bench.submission import (
    home_of,
    open_submission,
    require_policy,
    trace_path,
    write_manifest,
)
from stretto.bench.suite import CLEAN, Cell, Suite
from stretto.bench.workers import done_by, in_threads
from stretto.files import write_whole
from stretto.policies.endpoint import InvalidAnswerError
from stretto.team.protocols import Answer, Ask, Policy, Task
from stretto.trace import Trace

REPLAYED = 3
"""Instances of a cell in which messages are valued by replay."""
BATCH = 15
"""Episodes of one policy that play side by side: what an interrupt may cost in each process."""
LONGEST = 500
"""Most characters of an error that a row tells."""
Show = Callable[[int, int], None]
"""Told how many instances are done, of how many."""
ShowWhere = Callable[[int, int, str], None]
"""Told how many episodes are done, of how many, and to which cells the last ones belong."""


Key = tuple[str, str, int, int]


class Job(Struct, frozen=True):
    """One instance for some baselines, in all topologies and conditions: they share its truth."""

    seed: int
    names: tuple[tuple[Cell, tuple[str, ...]], ...]
    """Cell to the baselines that play in it."""
    replays: bool


class Batch(Struct, frozen=True):
    """Instances that the policy under exam plays side by side."""

    cell: Cell
    attempt: int | None
    """Number of the attempt alone; `None` with a team."""
    seeds: tuple[int, ...]


def run_baselines(
    suite: Suite,
    folder: Path,
    names: Sequence[str] = SCRIPTED,
    workers: int = 1,
    show: Show | None = None,
) -> None:
    """Play all baselines that the folder has no rows of yet; an interrupt loses nothing.

    Raises `StrettoError` for a folder that another version wrote.
    """
    done = {row.key for row in open_folder(folder, suite)}
    jobs = list(_jobs(suite, names, done))
    for finished, rows in enumerate(done_by(_work, jobs, min(workers, len(jobs))), start=1):
        append(folder, rows)
        if show:
            show(finished, len(jobs))


def run_exam(
    suite: Suite,
    folder: Path,
    who: Examinee,
    *,
    attempts: int = 1,
    tokens: float | None = None,
    workers: int = 1,
    show: ShowWhere | None = None,
) -> None:
    """Let a policy sit the exam, with its team and alone, and keep its traces as a submission.

    A batch of which a row is missing is played anew as a whole. So a policy whose answers depend on
    what is computed along with them, by rounding, has the same rows after an interrupt as without.

    Args:
        suite: The cells.
        folder: Of the results.
        who: The policy.
        attempts: How often it plays each instance alone, for best-of-n and majority.
        tokens: Most tokens of an episode; an episode that takes more is forfeit.
        workers: Processes that play, for a policy that a `source` makes again.
        show: Told of progress.

    Raises `StrettoError` for a policy that has the name of a baseline, and for a folder that holds
    results of another policy of this name, or with other settings.
    """
    require_policy(who.name, who.about, "the policy under exam")
    open_folder(folder, suite)
    suite = _for(who, suite)
    done = {row.key for row in open_submission(folder, suite, who, attempts, tokens)}
    batches = [each for each in _batches(who, suite, attempts) if _keys(who, each) - done]
    count, total = 0, sum(len(each.seeds) for each in batches)
    show = show or (lambda done, total, where: None)
    show(count, total, "")
    try:
        with closing(_sat(folder, who, batches, tokens, workers)) as sat:
            for rows in sat:
                count += len(rows)
                show(count, total, f"{rows[0].family} {rows[0].band}")
    finally:
        write_manifest(folder, suite, who, attempts, tokens)


def _for(who: Examinee, suite: Suite) -> Suite:
    """The cells that a policy sits for."""
    if not who.home:
        return suite
    return replace(suite, cells=tuple(cell for cell in suite.cells if _at_home(cell)))


def _at_home(cell: Cell) -> bool:
    first = cell.topology == topologies_of(cell.family)[0]
    return cell.condition == CLEAN and cell.band in (SHORT if first else SHORT[:1])


def _jobs(suite: Suite, names: Sequence[str], done: set[Key]) -> Iterator[Job]:
    """Short bands first, so that there is a table soon."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in suite.cells:
        groups.setdefault((cell.family, cell.band), []).append(cell)
    for cells in sorted(groups.values(), key=lambda cells: list(LIMITS).index(cells[0].band)):
        for place, seed in enumerate(suite.seeds):
            open_ = [(cell, _missing(cell, seed, names, done)) for cell in cells]
            if wanted := tuple(pair for pair in open_ if pair[1]):
                yield Job(seed, wanted, place < REPLAYED)


def _missing(cell: Cell, seed: int, names: Sequence[str], done: set[Key]) -> tuple[str, ...]:
    first = cell.topology == topologies_of(cell.family)[0]
    wanted = (name for name in names if first or name not in ONE_AGENT)
    return tuple(name for name in wanted if (cell.name, name, seed, 0) not in done)


def _work(job: Job) -> list[Row]:
    """The rows of one job; what fails is an error of its policy, and scores nothing."""
    rows: list[Row] = []
    for cell, names in job.names:
        for name in names:
            try:
                rows += sit(cell, job.seed, [name], job.replays)
            except Exception as error:
                rows.append(_error(cell, job.seed, name, error))
    return rows


def _batches(who: Examinee, suite: Suite, attempts: int) -> Iterator[Batch]:
    """With a team in every topology; alone in the first only, since nobody is there to write to."""
    size = 1 if who.threads else BATCH
    runs = [suite.seeds[begin : begin + size] for begin in range(0, len(suite.seeds), size)]
    for cell in suite.cells:
        first = cell.topology == topologies_of(cell.family)[0]
        for attempt in (None, *range(attempts if first else 0)):
            yield from (Batch(cell, attempt, run) for run in runs)


def _keys(who: Examinee, batch: Batch) -> set[Key]:
    name, attempt = _name(who, batch), batch.attempt or 0
    return {(batch.cell.name, name, seed, attempt) for seed in batch.seeds}


def _name(who: Examinee, batch: Batch) -> str:
    return who.name if batch.attempt is None else who.name + ALONE


def _sat(
    folder: Path, who: Examinee, batches: Sequence[Batch], tokens: float | None, workers: int
) -> Generator[list[Row]]:
    """The rows of every batch, as each is done and in the results."""
    if who.threads:
        stop = Event()
        work = partial(_sit_in_thread, folder, _held(who, stop), tokens)
        yield from in_threads(work, batches, who.threads, stop)
        return
    if who.source is not None and workers > 1:
        found = done_by(partial(_sit_again, folder, who.source, tokens), batches, workers)
    else:
        found = (_sit(folder, who, tokens, each) for each in batches)
    for rows in found:
        append(folder, rows)
        yield rows


class _Held:
    """Another policy, which is asked nothing more after a stop: calls cost money."""

    def __init__(self, policy: Policy, stop: Event) -> None:
        self._policy = policy
        self._stop = stop

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        if self._stop.is_set():
            raise SystemExit
        return self._policy.decide(asks)


def _held(who: Examinee, stop: Event) -> Examinee:
    def policies(task: Task) -> Policies:
        return {role: _Held(policy, stop) for role, policy in who.policies(task).items()}

    return replace(who, policies=policies)


def _sit_in_thread(folder: Path, who: Examinee, tokens: float | None, batch: Batch) -> list[Row]:
    """Append the row before anybody could be interrupted: what was paid for is kept."""
    rows = _sit(folder, who, tokens, batch)
    append(folder, rows)
    return rows


def _sit_again(folder: Path, source: str, tokens: float | None, batch: Batch) -> list[Row]:
    """As `_sit`, in a process that makes the policy itself."""
    return _sit(folder, _made(source), tokens, batch)


_made = lru_cache(maxsize=1)(examinee)


def _sit(folder: Path, who: Examinee, tokens: float | None, batch: Batch) -> list[Row]:
    """A batch, side by side; where that fails, one by one to see whose error it is."""
    if len(batch.seeds) == 1:
        return [_sit_one(folder, who, tokens, batch)]
    if who.forget is not None:
        who.forget()
    try:
        played = _played(who, tokens, batch)
    except Exception:
        singles = [replace(batch, seeds=(seed,)) for seed in batch.seeds]
        return [_sit_one(folder, who, tokens, each) for each in singles]
    return [_kept(folder, who, batch, row, data) for row, data in played]


def _played(who: Examinee, tokens: float | None, batch: Batch) -> list[tuple[Row, bytes | None]]:
    """Play and judge a batch: rows, and their traces as they are written; `None` for a forfeit."""
    tasks, policies = _seated(who, batch)
    traces = play(tasks, batch.seeds, policies, limits_of(batch.cell, tokens))
    return [
        (_judged(who, batch, seed, trace), _encoded(trace))
        for seed, trace in zip(batch.seeds, traces, strict=True)
    ]


def _judged(who: Examinee, batch: Batch, seed: int, trace: Trace) -> Row:
    serial = serial_seconds(batch.cell, seed)
    return judge(batch.cell, seed, _name(who, batch), trace, serial, batch.attempt or 0)


def _encoded(trace: Trace) -> bytes | None:
    return None if trace.attrs.get("ended") == "limit" else store.encode_checked(trace)


def _seated(who: Examinee, batch: Batch) -> tuple[list[Task], Policies]:
    """The tasks of a batch, and the policies that all of them share."""
    tasks: list[Task] = [batch.cell.task(seed) for seed in batch.seeds]
    policies = who.policies(tasks[0])
    if batch.attempt is None:
        return tasks, policies
    types: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
    watched = [Watched(task, types) for task in tasks]
    return [each.as_task for each in watched], again(alone(policies, watched[0]), batch.attempt)


def _sit_one(folder: Path, who: Examinee, tokens: float | None, batch: Batch) -> Row:
    """One episode on its own.

    A failed call and a policy that breaks are errors, an illegal answer is a forfeit.
    """
    name, (seed,) = _name(who, batch), batch.seeds
    if who.forget is not None:
        who.forget()
    try:
        ((row, data),) = _played(who, tokens, batch)
    except InvalidAnswerError:
        empty = _error(batch.cell, seed, name, None, batch.attempt or 0)
        row, data = forfeit(empty, "invalid"), None
    except Exception as error:
        row, data = _error(batch.cell, seed, name, error, batch.attempt or 0), None
    return _kept(folder, who, batch, row, data)


def _kept(folder: Path, who: Examinee, batch: Batch, row: Row, data: bytes | None) -> Row:
    """Write the trace of a row down, or remove the one that an earlier run left."""
    path = trace_path(home_of(folder, who.name), batch.cell, row.seed, batch.attempt)
    if data is None:
        path.unlink(missing_ok=True)
        return row
    make_folder(path.parent)
    write_whole(path, [data])
    return row


def _error(cell: Cell, seed: int, policy: str, error: Exception | None, attempt: int = 0) -> Row:
    told = None if error is None else f"{type(error).__name__}: {error}"
    said = told and told[:LONGEST].encode("utf-8", "replace").decode()
    return row_of(cell, seed, policy, attempt, error=said)
