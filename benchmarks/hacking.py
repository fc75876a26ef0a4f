"""Rewards that are hacked, and what helps: PARL's traps, balanced weights, verifiers.

    python benchmarks/hacking.py [--seeds 3] [--first 0] [--part NAME] [--json]

Every row trains a tabular policy with the training loop and reports means over the seeds.

| part | what is trained | what is asked |
|---|---|---|
| spawning | `scouts` with PARL's λ1 | does an un-annealed λ hack spawns, does an annealed one not |
| balance | `scouts` with λ set by hand, and balanced | does a balance find what a hand would set |
| verifier | `proxies`, paid by its easy channels | do a detector and several verifiers help |
| detector | `proxies` with more ways, paid by what each hacks | does its penalty help |

`value` is the exact cost-adjusted return for `scouts` and the mean true utility of the last steps
for `proxies`; `proxy` is what is paid beside it; `stopped` are runs that `stop_on_hacking` ends,
`flat` those in which spawning rose while speed-up stayed flat.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from stretto.learn import session
from stretto.learn.loop import Metrics, train
from stretto.learn.recipe import resolve
from stretto.policies import tabular
from stretto.rewards.watch import Sighting, hacked, spawns_for_nothing
from stretto.tasks.games.proxies import Proxies, hacking
from stretto.tasks.oracle import oracle_of
from stretto.tasks.scouts import Scouts

STEPS, EPISODES, LAST = 80, 64, 10
SHORT = 40
"""Steps of the part `detector`, whose games are over sooner."""
GAME: dict[str, Any] = {
    **{"reliability": 0.8, "width": 3, "horizon": 9},
    **{"scout_cost": 0.05, "round_cost": 0.03},
}
Setting = tuple[str, str, dict[str, Any], dict[str, Any]]
"""Part, name, task and reward of a row."""
SCOUTS = {"family": "scouts", **GAME}
PROXIES = {"family": "proxies"}
tabular.SLOTS = 1_000  # the games are small, and a large table makes every step slow


@dataclass(frozen=True)
class Row:
    """Means over the seeds."""

    part: str
    name: str
    value: float
    proxy: float | None
    stopped: int
    flat: int
    seeds: int
    values: tuple[float, ...] = ()
    """By seed."""


def spawning(weight: float, **more: Any) -> dict[str, Any]:
    """A reward that pays for spawning."""
    return {"channels": {"parallel": {"weight": weight, "most": 9, **more}}}


def verified(weight: float, channels: list[str], **more: Any) -> dict[str, Any]:
    """A reward that pays what verifiers say."""
    said = {"weight": weight, "channels": channels, "combine": "min"}
    return {"channels": {"verifiers": said, **more}}


HACKS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "pseudo_parallelism": (
        ["work", "rest"],
        {"parallel": {"weight": 0.45, "most": 3}, **verified(2.0, ["haste"])["channels"]},
    ),
    "free_riding": (["work", "rest"], verified(2.0, ["haste"])["channels"]),
    "communication_padding": (["work", "chat"], verified(2.0, ["talk"])["channels"]),
    "tool_spam": (
        ["work", "spam"],
        {"tool_calls": {"weight": 3.0, "most": 15, "optional": True}},
    ),
}
"""Detector to what workers may do and what is paid, so that the habit it sees pays off."""


def detected(name: str, weight: float) -> Setting:
    """A reward that is hacked, with its detector at this weight (0: off)."""
    ways, channels = HACKS[name]
    penalty = {name: {"weight": weight, "optional": True}} if weight else {}
    label = f"{name} {'penalised' if weight else 'off'}"
    return "detector", label, {**PROXIES, "ways": ways}, {"channels": {**channels, **penalty}}


ROWS: list[Setting] = [
    ("spawning", "no λ", SCOUTS, {}),
    ("spawning", "λ = 1", SCOUTS, spawning(1.0)),
    ("spawning", "λ = 1, annealed over 8 steps", SCOUTS, spawning(1.0, anneal=8)),
    *(("balance", f"by hand: λ = {w}", SCOUTS, spawning(w)) for w in (0.1, 0.3, 3.0)),
    *(
        ("balance", f"λ = {w}, {kind}", SCOUTS, {**spawning(w), "balance": kind})
        for w in (0.3, 3.0)
        for kind in ("variance", "gradient")
    ),
    ("balance", "λ = 0.3, normalised", SCOUTS, spawning(0.3, normalise=True)),
    ("verifier", "outcome alone", PROXIES, {}),
    ("verifier", "and one verifier", PROXIES, verified(2.0, ["verifier"])),
    ("verifier", "and the tests", PROXIES, verified(2.0, ["tests"])),
    ("verifier", "and the lower of both", PROXIES, verified(2.0, ["verifier", "tests"])),
    ("verifier", "and all proxies", PROXIES, verified(2.0, ["proxy"])),
    (
        "verifier",
        "one verifier, collusion penalised",
        PROXIES,
        verified(2.0, ["verifier"], verifier_collusion=-2.0),
    ),
    (
        "verifier",
        "one verifier, balanced by gradient",
        PROXIES,
        {**verified(2.0, ["verifier"]), "balance": "gradient"},
    ),
    *(detected(name, weight) for name in HACKS for weight in (0.0, -3.0)),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--part", choices=sorted({part for part, *_ in ROWS}))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    wanted = [row for row in ROWS if arguments.part in (None, row[0])]
    rows = [measured(*row, seeds) for row in wanted]
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], **references()}))
        return
    for row in rows:
        proxy = "       " if row.proxy is None else f"{row.proxy:7.3f}"
        ended = f"stopped {row.stopped}/{row.seeds}  flat {row.flat}/{row.seeds}"
        each = " ".join(f"{value:.3f}" for value in row.values)
        print(
            f"{row.part:9} {row.name:36} value {row.value:6.3f}  proxy {proxy}  {ended}  ({each})"
        )
    print(references())


def references() -> dict[str, Any]:
    """The exact optimum of either game, and the exact best of the proxies."""
    oracle = oracle_of(Scouts(**GAME))
    assert oracle is not None
    return {
        "scouts": oracle.optimum,
        "random": oracle.baselines["random"],
        "proxies": hacking(Proxies()),
    }


def measured(
    part: str, name: str, task: dict[str, Any], reward: dict[str, Any], seeds: Sequence[int]
) -> Row:
    steps = SHORT if part == "detector" else STEPS
    runs = [learned(task, reward, seed, steps) for seed in seeds]
    values = [mean(row["value"] or row["utility"] for row in rows[-LAST:]) for rows in runs]
    proxies = [row["proxy"] for rows in runs for row in rows[-LAST:] if row["proxy"] is not None]
    seen = [[Sighting(*map(row.get, Sighting.__struct_fields__)) for row in rows] for rows in runs]
    return Row(
        part,
        name,
        mean(values),
        mean(proxies) if proxies else None,
        stopped=sum(map(stops, seen)),
        flat=sum(map(spawns_for_nothing, seen)),
        seeds=len(seeds),
        values=tuple(values),
    )


def learned(
    task: dict[str, Any], reward: dict[str, Any], seed: int, steps: int = STEPS
) -> list[Metrics]:
    """The metrics of every step of a run."""
    table = {
        "seed": seed,
        "task": task,
        "reward": reward,
        "policy": {"kind": "tabular", "tabular": {"learning_rate": 8 / steps}},
        "train": {"steps": steps, "episodes": EPISODES, "warmup": 0, "entropy": 0.03}
        | {"keep_traces": 0, "checkpoint_every": steps},
    }
    rows: list[Metrics] = []
    with TemporaryDirectory() as folder:
        run = session.start(resolve(table, "benchmark"), Path(folder) / "run")
        train(run, rows.append, lambda: False)
    return rows


def stops(seen: Sequence[Sighting]) -> bool:
    """Whether `stop_on_hacking` would have ended this run."""
    return any(hacked(seen[:step]) for step in range(1, len(seen)))


if __name__ == "__main__":
    main()
