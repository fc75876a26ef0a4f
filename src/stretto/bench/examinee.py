"""Who sits the exam: a script, a trained run, the embedded model, or a model behind an endpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stretto.bench.baselines import Policies
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.policies.softmax import Floats, Softmax
from stretto.tasks.scripts import NAMES, everyone, scripts_of
from stretto.team.protocols import Policy, Task
from stretto.trace import content_hash


class Examinee(Struct, frozen=True):
    """A policy under exam."""

    name: str
    """What it is called in tables."""
    about: dict[str, Any]
    """Facts for the manifest."""
    policies: Callable[[Task], Policies]
    """The policies of a task: role to policy."""
    threads: int = 1
    """Episodes at once, each in a thread of its own; 0 plays batches side by side, which only
    policies can that are the same for every instance."""
    home: bool = False
    """Whether it is slow: without faults, it sits for all topologies of the shortest band, and for
    each family's first topology in the next one."""
    source: str | None = None
    """The words from which `examinee` makes it again in another process; `None` where none do."""
    forget: Callable[[], None] | None = None
    """Makes what it answers independent of what it was asked before, to the last bit; `None` where
    it is so anyway."""


def script(name: str) -> Examinee:
    """A family's script, as if it were a submission."""
    return Examinee(f"script {name}", {"kind": "script"}, lambda task: scripts_of(task)[name])


def single(name: str, about: dict[str, Any], policy: Policy, threads: int = 0) -> Examinee:
    """One policy for all roles of all instances."""

    def policies(task: Task) -> Policies:
        return everyone(tuple(task.harness.roles), policy)

    return Examinee(name, about, policies, threads)


def examinee(source: str) -> Examinee:
    """The policy that a command line names: a script, `lm`, or the folder of a training run.

    Raises `StrettoError` for a name that is none of these.
    """
    kind, _, rest = source.partition(":")
    if kind == "script" and rest in NAMES:
        return script(rest)
    if kind == "lm":
        model = rest or "smollm2"
        return _language_model(f"lm {model}", model, source)
    if source and Path(source).is_dir():
        return _trained(Path(source))
    hint = f"script:{'|'.join(NAMES)}, lm, lm:MODEL, the folder of a run, or --model URL"
    raise StrettoError(f'no policy "{source}"', "--policy", hint)


def _language_model(name: str, model: str, source: str) -> Examinee:
    from stretto.policies.lm_policy import LmPolicy

    policy = LmPolicy(model)
    who = single(name, policy.about, policy)
    return replace(who, home=True, source=source, forget=policy.forget)


def _trained(folder: Path) -> Examinee:
    """What a finished run left in its `weights` folder."""
    from stretto.learn.recipe import read_recipe

    if not (folder / "config.toml").is_file():
        hint = "name the folder of a finished run: stretto train leaves config.toml and weights"
        raise StrettoError("holds no training run", str(folder), hint)
    recipe = read_recipe(folder / "config.toml")
    weights, name = folder / "weights", folder.resolve().name
    if not weights.is_dir():
        raise StrettoError("the run left no weights", str(folder), "finish it first")
    if recipe.policy.kind == "lm":
        return _language_model(name, str(weights), str(folder))
    policy = LearnedTable(weights / "table.json")
    about = {"kind": "tabular", "parameters": policy.size, "dtype": "float64"}
    return replace(single(name, about, policy), source=str(folder))


class LearnedTable(Softmax):
    """A trained table that learns no more: a choice that it has not met has the logit 0.

    `Tabular` would add every such choice to what it trains, and has room for only so many.
    """

    def __init__(self, path: Path) -> None:
        """Read the `table.json` that `Tabular` wrote: observation to choice to logit."""
        super().__init__()
        data = read_bytes(path)
        self._table: dict[str, dict[str, float]] = msgspec.json.decode(data)
        self.version = f"tabular@{content_hash(data.decode())[:12]}"

    @property
    def size(self) -> int:
        """Number of logits."""
        return sum(map(len, self._table.values()))

    def logits(self, observation: str, candidates: tuple[str, ...]) -> Floats:
        """Logits of a situation; shape (candidates,)."""
        row = self._table.get(observation, {})
        return np.array([row.get(candidate, 0.0) for candidate in candidates])
