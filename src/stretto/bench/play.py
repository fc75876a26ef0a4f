"""One instance, played and judged: from a cell, a seed and a policy to rows."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stretto.bench.aggregation import aggregation
from stretto.bench.bands import LIMITS, topologies_of
from stretto.bench.baselines import ATTEMPTS, ONE_AGENT, SLIPS, Policies, again, seat
from stretto.bench.facts import brought
from stretto.bench.luck import Fair, fair
from stretto.bench.metrics_overhead import overhead
from stretto.bench.metrics_parallel import parallel
from stretto.bench.metrics_success import success
from stretto.bench.metrics_team import behavioural, team
from stretto.bench.results import Row
from stretto.bench.spread import spread
from stretto.bench.suite import CLEAN, Cell
from stretto.bench.tokens import counted, turn_tokens
from stretto.bench.truth import answer, exact, plans
from stretto.errors import StrettoError
from stretto.garbage import paused_collector
from stretto.metrics.parallelism import makespan
from stretto.tasks.scripts import Yardstick, scripts_of, yardstick_of
from stretto.team import engine
from stretto.team.protocols import Task
from stretto.trace import Trace

SHORT = ("10", "100")
"""Bands in which messages are valued by replay."""
PLAYS = 20
"""Plays of chance on an instance, so that the zero of a normalised score is no luck of one draw."""
SLACK = 4
"""An episode may be so many times as long as its band before it is stopped."""
MOST_EVENTS = 400_000


class Limits(Struct, frozen=True):
    """What an episode may take; who takes more forfeits it."""

    events: float = MOST_EVENTS
    tokens: float = float("inf")
    """Tokens, or words where a policy counts none; see `stretto.bench.tokens`."""


def limits_of(cell: Cell, tokens: float | None = None) -> Limits:
    """The limits of an episode of a cell."""
    events = min(SLACK * LIMITS[cell.band], MOST_EVENTS)
    return Limits(events, float("inf") if tokens is None else tokens)


def play(
    tasks: Sequence[Task], seeds: Sequence[int], policies: Policies, limits: Limits
) -> list[Trace]:
    """Run one episode a task, side by side; one that exceeds a limit ends as `limit`."""
    episodes = [engine.begin(task, seed) for task, seed in zip(tasks, seeds, strict=True)]
    running = list(episodes)
    with paused_collector():
        while running:
            running = engine.play_round(running, policies)
            for episode in running:
                if len(episode.events) > limits.events or _spent(episode, limits.tokens):
                    episode.ended = "limit"
            running = [episode for episode in running if not episode.ended]
    return [engine.finish(episode) for episode in episodes]


def sit(cell: Cell, seed: int, names: Sequence[str], replays: bool) -> list[Row]:
    """One instance with the baselines `names`.

    Args:
        cell: Where the instance belongs.
        seed: Of the instance and the episode.
        names: Of `stretto.bench.baselines.SCRIPTED`.
        replays: Whether messages are valued by replay, too.
    """
    task = cell.task(seed)
    serial = serial_seconds(cell, seed)
    first = cell.topology == topologies_of(cell.family)[0]
    rows: list[Row] = []
    for name in names:
        if name in ONE_AGENT and not first:
            continue
        met, policies = seat(cell, task, name)
        for attempt in range(ATTEMPTS if name == SLIPS else 1):
            own = again(policies, attempt)
            (trace,) = play([met], [seed], own, limits_of(cell))
            row = judge(cell, seed, name, trace, serial, attempt)
            extra = _extra(cell, seed, trace, own, replays and name not in ONE_AGENT)
            if name == "random" and row.values.get("chance") is None:
                extra = {**extra, "chance": _chance(cell, seed, met, policies, trace)}
            rows.append(replace(row, values={**row.values, **extra}))
    return rows


def _chance(cell: Cell, seed: int, task: Task, policies: Policies, first: Trace) -> float:
    """What picking any candidate is worth, where no formula says so: the mean of `PLAYS` plays.

    `first` is the play that was made already.
    """
    limits = limits_of(cell)
    tries = (again(policies, attempt) for attempt in range(1, PLAYS))
    traces = [first, *(t for each in tries for t in play([task], [seed], each, limits))]
    done = [trace for trace in traces if trace.attrs.get("ended") != "limit"]
    return sum(trace.reward("outcome") or 0.0 for trace in done) / PLAYS


def judge(
    cell: Cell, seed: int, policy: str, trace: Trace, serial: float | None, attempt: int = 0
) -> Row:
    """The row of an episode: every number is computed from the trace and the instance."""
    task = cell.task(seed)
    row = row_of(cell, seed, policy, attempt, ended=str(trace.attrs.get("ended", "")))
    if row.ended == "limit":
        return forfeit(row, tokens=sum(turn_tokens(counted(trace)).values()))
    told = answer(task, trace)
    values = values_of(task, trace, serial, yard_of(cell, seed))
    return replace(row, values=values, answer=told and _digest(told))


def values_of(
    task: Task, trace: Trace, serial: float | None, yard: Yardstick
) -> dict[str, float | None]:
    """E1 to E4 of one episode."""
    trace = counted(trace)
    found = brought(task, trace)
    solved = success(task, yard, trace, fair(task, trace))
    return {
        **solved,
        **parallel(trace, found, plans(task), serial, solved["success"] == 1.0),
        **team(found, exact(task, trace)),
        **aggregation(task, trace, found),
        **overhead(trace),
    }


def forfeit(row: Row, ended: str = "limit", tokens: float | None = None) -> Row:
    """An episode that the policy did not bring to its end: it scores 0, and says nothing else.

    `tokens` are those that it took until it was stopped.
    """
    yard = yard_of(row.cell, row.seed)
    values = dict.fromkeys(("outcome", "score", "success", "utility", "judged"), 0.0)
    known = {"best": yard.best, "chance": yard.random, "tokens": tokens}
    return replace(row, values=values | known, answer=None, ended=ended)


@lru_cache(maxsize=256)
def yard_of(cell: Cell, seed: int) -> Yardstick:
    """What the outcomes of an instance are measured against."""
    return yardstick_of(cell.task(seed))


def serial_seconds(cell: Cell, seed: int) -> float | None:
    """Time of the family's serial script, where it solves the instance; without a fault."""
    first = topologies_of(cell.family)[0]
    return _serial(replace(cell, condition=CLEAN, topology=first), seed)


@lru_cache(maxsize=256)
def _serial(cell: Cell, seed: int) -> float | None:
    task = cell.task(seed)
    (trace,) = play([task], [seed], scripts_of(task)["solo"], limits_of(cell))
    solved = success(task, yard_of(cell, seed), trace, Fair())["success"] == 1.0
    return makespan(trace).value if solved else None


def _extra(
    cell: Cell, seed: int, trace: Trace, policies: Policies, replays: bool
) -> Mapping[str, float | None]:
    found: dict[str, float | None] = {}
    if trace.attrs.get("ended") == "limit":
        return found
    if cell.condition != CLEAN:
        clean = replace(cell, condition=CLEAN).task(seed)
        (twin,) = play([clean], [seed], policies, limits_of(cell))
        found |= spread(twin, trace)
    elif replays and cell.band in SHORT:
        try:
            found |= behavioural(cell.task(seed), trace, policies)
        except StrettoError:  # a world that the family cannot go on from is not valued
            return found
    return found


def _spent(episode: engine.Episode, most: float) -> bool:
    if most == float("inf"):
        return False
    trace = Trace(id="running", events=tuple(episode.events), contents=episode.contents)
    return sum(turn_tokens(counted(trace)).values()) > most


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def row_of(cell: Cell, seed: int, policy: str, attempt: int, **found: Any) -> Row:
    """A row of a cell, with what was found."""
    return Row(
        family=cell.family,
        band=cell.band,
        topology=cell.topology,
        condition=cell.condition,
        policy=policy,
        seed=seed,
        attempt=attempt,
        **found,
    )
