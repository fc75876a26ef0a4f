"""From rows to the table: one line a cell and policy, never a mean over bands."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stretto.bench.bands import LIMITS
from stretto.bench.baselines import ALONE, SLIPS
from stretto.bench.gain import (
    Attempt,
    Curve,
    Instance,
    Interval,
    best_of,
    bootstrap,
    curve,
    gain,
    majority,
    mean_interval,
)
from stretto.bench.luck import without_luck
from stretto.bench.metrics_overhead import containment, efficiency, error_ratio, token_overhead
from stretto.bench.metrics_success import pass_hat, regret
from stretto.bench.results import Row
from stretto.bench.suite import CLEAN, Cell
from stretto.columns import Floats
from stretto.tasks.topology import NAMES

BEST_OF, MAJORITY = "best-of-n", "majority"
ORDER = ("oracle", "greedy", "silent", "blind", "random", "solo", BEST_OF, MAJORITY, "memory")
"""The order of policies in a table; others come last."""
HIDDEN = (SLIPS,)
"""Policies that only others are made from."""
MEANS = (
    "outcome",
    "score",
    "success",
    "utility",
    "makespan",
    "speedup",
    "optimality",
    "utilisation",
    "pseudo",
    "own_parallelism",
    "critical_steps",
    "straggler",
    "workers",
    "redundancy",
    "message_plus",
    "message_zero",
    "message_minus",
    "replay_plus",
    "replay_zero",
    "replay_minus",
    "free_riders",
    "aggregation_regret",
    "flips",
    "milestones",
    "largest_share",
    "tokens",
    "turns",
    "events",
    "agents",
    "coordination",
    "messages_per_turn",
    "score_per_1000",
    "wrong_events",
    "tainted",
    "blast",
    "reproduction",
    "taint_seconds",
)
"""Metrics of an episode that a line has the mean of, over the episodes in which they are known."""


class Line(Struct, frozen=True):
    """One policy in one cell."""

    cell: Cell
    policy: str
    episodes: int
    """Instances that were scored."""
    errors: int
    """Instances of which a call failed: not scored."""
    forfeits: int
    """Instances that the policy did not finish: scored 0."""
    means: Mapping[str, Interval]
    """Metric to mean and interval; what is unknown everywhere is absent."""
    norm: Interval | None = None
    """1 for the oracle, 0 for chance; one minus the regret."""
    passes: Mapping[str, float] = {}
    """`k` to `pass^k`."""
    gain: Interval | None = None
    """`Γ` of the score at matched tokens."""
    utility_gain: Interval | None = None
    """`Γ` of the utility: the score less the prices of spawns and seconds."""
    retention: float | None = None
    """`S_team / S_solo`."""
    efficiency: float | None = None
    """`E_c = S_team / (T_team / T_solo)`, in turns."""
    turn_overhead: float | None = None
    token_overhead: float | None = None
    error_ratio: float | None = None
    """`A_out`."""
    containment: float | None = None
    """Of the instances solved without the fault, the share that is solved with it."""
    curve: Curve | None = None


Rows = Mapping[tuple[Cell, str], Sequence[Row]]


def lines(rows: Sequence[Row]) -> list[Line]:
    """One line for every policy of every cell, in the order of the table."""
    by = _grouped(rows)
    found = [_line(by, cell, policy) for cell, policy in by if policy not in HIDDEN]
    found += [each for cell in {cell for cell, _ in by} for each in _choosing(by, cell)]
    return sorted(found, key=lambda line: place(line.cell, line.policy))


def place(cell: Cell, policy: str) -> tuple[object, ...]:
    """Where a line stands."""
    known = ORDER.index(policy) if policy in ORDER else len(ORDER)
    topology = NAMES.index(cell.topology) if cell.topology in NAMES else len(NAMES)
    band = list(LIMITS).index(cell.band)
    clean = cell.condition != CLEAN
    return cell.family, band, clean, cell.condition, topology, known, policy


def _grouped(rows: Sequence[Row]) -> Rows:
    by: dict[tuple[Cell, str], list[Row]] = {}
    for row in rows:
        by.setdefault((row.cell, row.policy), []).append(row)
    return by


def _line(by: Rows, cell: Cell, policy: str) -> Line:
    rows = by[cell, policy]
    scored = [row for row in rows if row.error is None]
    firsts = _by_seed(scored)
    line = Line(
        cell=cell,
        policy=policy,
        episodes=len(firsts),
        errors=len({row.seed for row in rows if row.error is not None}),
        forfeits=sum(row.ended in ("limit", "invalid") for row in firsts.values()),
        means=_means(list(firsts.values())),
        norm=_norm(by, cell, policy, list(firsts.values())),
        passes=_passes(scored),
    )
    return line if not firsts else _against(by, line, firsts)


def _means(rows: Sequence[Row]) -> dict[str, Interval]:
    found: dict[str, Interval] = {}
    for name in MEANS:
        known = [v for row in rows if (v := row.values.get(name)) is not None]
        if known:
            found[name] = mean_interval(known)
    return found


def _norm(by: Rows, cell: Cell, policy: str, rows: Sequence[Row]) -> Interval | None:
    """Against exact chance, or else against the policy `random` in this cell; its own is 0."""
    if not rows:
        return None
    judged, best, luck = (_column(rows, name) for name in ("judged", "best", "luck"))
    chance = _column(rows, "chance")
    if np.isnan(chance).any():
        random = [row for row in by.get((cell, "random"), ()) if row.error is None]
        found = [row.values.get("chance") for row in random]
        chance = np.full(len(rows), np.mean([v for v in found if v is not None] or [np.nan]))
    if policy == "random":
        judged, luck = chance, np.full(len(rows), np.nan)
    table: Floats = np.array([judged, best, chance, luck], dtype=np.float64)
    if np.isnan(table[:3]).any() or best.mean() <= chance.mean():
        return None
    return bootstrap(table, _position)


def _position(table: Floats) -> Floats:
    judged, best, chance, luck = table
    return 1 - regret(without_luck(judged, best, luck), best, chance)


def _column(rows: Sequence[Row], name: str) -> Floats:
    """A number of every row; NaN where it is not known."""
    found = (row.values.get(name) for row in rows)
    return np.array([np.nan if value is None else value for value in found])


def _passes(rows: Sequence[Row]) -> dict[str, float]:
    attempts: dict[int, list[bool]] = {}
    for row in rows:
        attempts.setdefault(row.seed, []).append(row.values.get("success") == 1.0)
    counts = [len(each) for each in attempts.values()]
    good = [sum(each) for each in attempts.values()]
    found = {str(k): pass_hat(counts, good, k) for k in range(1, min(counts, default=0) + 1)}
    return {k: value for k, value in found.items() if value is not None}


def _against(by: Rows, line: Line, own: Mapping[int, Row]) -> Line:
    """What a line says beside one agent alone, and beside the same policy without the fault."""
    solo, attempts = references(by, line.cell, line.policy)
    shared = [seed for seed in own if seed in solo]
    clean = _by_seed(by.get((replace(line.cell, condition=CLEAN), line.policy), ()))
    contained = None
    if line.cell.condition != CLEAN and clean:
        contained = containment(_solved(clean), _solved(own))
    line = replace(line, containment=contained)
    if not shared or line.policy in ("solo", SLIPS) or line.policy.endswith(ALONE):
        return line
    score = [_instance(own[s], solo.get(s), attempts.get(s, ()), "outcome") for s in shared]
    utility = [_instance(own[s], solo.get(s), attempts.get(s, ()), "utility") for s in shared]
    team, one = [own[s] for s in shared], [solo[s] for s in shared]
    rates = _mean(team, "score"), _mean(one, "score")
    return replace(
        line,
        gain=gain(score),
        utility_gain=gain(utility),
        curve=curve(score),
        retention=rates[0] / rates[1] if rates[1] else None,
        efficiency=efficiency(rates[0], _mean(team, "turns"), _mean(one, "turns")),
        error_ratio=error_ratio(_mean(team, "success"), _mean(one, "success")),
        token_overhead=token_overhead(_mean(team, "tokens"), _mean(one, "tokens")),
        turn_overhead=token_overhead(_mean(team, "turns"), _mean(one, "turns")),
    )


def references(
    by: Rows, cell: Cell, policy: str
) -> tuple[Mapping[int, Row], Mapping[int, Sequence[Row]]]:
    """One agent alone that a policy is compared with, and its attempts; by seed.

    The policy itself alone where it sat the exam so, else the family's scripts. They were played
    in the first topology only.
    """
    home = _home(by, cell)
    own = by.get((home, policy + ALONE), ())
    if own:
        return _by_seed(own), _attempts(own)
    solo, slips = by.get((home, "solo"), ()), by.get((home, SLIPS), ())
    return _by_seed(solo), _attempts(slips)


def _home(by: Rows, cell: Cell) -> Cell:
    """The cell of the same instances in which agents played alone."""
    others = [replace(cell, topology=name) for name in (*NAMES, cell.topology)]
    return next((c for c in others if (c, "solo") in by), replace(cell, topology=NAMES[0]))


def _choosing(by: Rows, cell: Cell) -> list[Line]:
    """The lines of best-of-n and majority, in the cells in which the attempts were played.

    Each at the tokens of the oracle's team on the same instance, or of one long attempt if that
    took more.
    """
    rows = by.get((cell, SLIPS), ())
    attempts = _attempts(rows)
    team, solo = (_by_seed(by.get((cell, name), ())) for name in ("oracle", "solo"))
    seeds = [seed for seed in attempts if seed in team and seed in solo]
    if not seeds:
        return []
    found: list[Line] = []
    scored = [row for row in rows if row.error is None]
    for name, choose in ((BEST_OF, best_of), (MAJORITY, majority)):
        scores = [choose(_tries(attempts[s]), _budget(team[s], solo[s])) for s in seeds]
        errors = len({row.seed for row in rows if row.error is not None})
        means = {"score": mean_interval(scores)}
        found.append(Line(cell, name, len(seeds), errors, 0, means, passes=_passes(scored)))
    return found


def _budget(team: Row, solo: Row) -> float:
    return max(team.values.get("tokens") or 0.0, solo.values.get("tokens") or 0.0)


def _tries(rows: Sequence[Row]) -> tuple[Attempt, ...]:
    return tuple(_attempt(row, "score") for row in rows)


def _attempt(row: Row, name: str) -> Attempt:
    tokens = row.values.get("tokens")
    return Attempt(
        float("inf") if tokens is None else tokens, row.values.get(name) or 0.0, row.answer
    )


def _instance(team: Row, solo: Row | None, attempts: Sequence[Row], name: str) -> Instance:
    return Instance(
        _attempt(team, name),
        _attempt(solo, name) if solo else None,
        tuple(_attempt(row, name) for row in attempts),
    )


def _by_seed(rows: Sequence[Row]) -> dict[int, Row]:
    """The first attempt of every instance that was scored."""
    scored = [row for row in rows if row.error is None]
    return {row.seed: row for row in sorted(scored, key=lambda row: (row.seed, -row.attempt))}


def _attempts(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.seed, row.attempt)):
        if row.error is None:
            found.setdefault(row.seed, []).append(row)
    return found


def _solved(rows: Mapping[int, Row]) -> dict[int, bool]:
    return {seed: row.values.get("success") == 1.0 for seed, row in rows.items()}


def _mean(rows: Sequence[Row], name: str) -> float:
    values = [v for row in rows if (v := row.values.get(name)) is not None]
    return float(np.mean(values)) if values else float("nan")
