"""A training recipe: one schema for the TOML file and the command line."""

import re
import tomllib
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import tomli_w
from msgspec import Meta, Struct

from stretto.credit import METHODS
from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes
from stretto.learn.channels import KNOWN
from stretto.policies.config import PolicyConfig
from stretto.rewards.mix import Mix, checked
from stretto.tasks import build

Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[float, Meta(ge=0)]


class TrainConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The loop."""

    steps: Positive = 60
    """Rollouts and updates."""
    episodes: Annotated[int, Meta(ge=2)] = 192
    """Rollouts in each step: the group that credit compares."""
    credit: str = "temporal_difference"
    """A method of `stretto.credit.METHODS` that credits turns."""
    normalise: bool = True
    """Whether to divide the credit of a batch by its standard deviation."""
    epochs: Positive = 1
    """Passes over each batch."""
    clip: NonNegative = 0.2
    """How far the probability ratio counts (matters from the second epoch on)."""
    entropy: NonNegative = 0.01
    """Weight of the entropy bonus at the first step; it falls linearly to 0."""
    kl: NonNegative = 0.0
    """Weight of the divergence from the untrained policy."""
    warmup: Annotated[int, Meta(ge=0)] = 10
    """Steps over which the learning rate rises; from the first step on it also falls linearly."""
    gradient_norm: Annotated[float, Meta(gt=0)] = 1.0
    """Longest gradient; a longer one is shortened to it."""
    checkpoint_every: Positive = 10
    """Steps between checkpoints."""
    keep_traces: Annotated[int, Meta(ge=0)] = 16
    """Traces of each step that are written to the run folder."""
    stop_on_hacking: bool = False
    """Whether the run is interrupted once proxies rise while the utility surely falls."""


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that determines a run."""

    task: dict[str, Any]
    """Family and parameters of the task."""
    seed: Annotated[int, Meta(ge=0)] = 0
    """Everything random in the run follows from it."""
    policy: PolicyConfig = PolicyConfig()
    reward: Mix = Mix()
    train: TrainConfig = TrainConfig()


def read_recipe(path: Path) -> Recipe:
    """Read and check a TOML recipe.

    Raises `StrettoError` with file, line or key for anything that does not fit.
    """
    data = read_bytes(path)
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StrettoError(f"not a TOML file: {error}", str(path)) from None
    return resolve(table, str(path))


def resolve(table: Any, where: str) -> Recipe:
    """Check plain data against the schema, and fill in all defaults, those of the task included.

    Raises `StrettoError` that names the key and suggests the nearest one.
    """
    try:
        recipe = msgspec.convert(table, Recipe)
    except msgspec.ValidationError as error:
        raise _explained(str(error), where) from None
    for key, value in _flatten(msgspec.to_builtins(recipe), "").items():
        if isinstance(value, float) and not isfinite(value):
            raise StrettoError(f"{value} is no value", f"{where}: {key}", "use a finite number")
    if recipe.train.credit not in METHODS:
        hint = did_you_mean(recipe.train.credit, METHODS)
        raise StrettoError(
            f'no credit method "{recipe.train.credit}"', f"{where}: train.credit", hint
        )
    try:
        task = build(recipe.task)
    except StrettoError as error:
        raise StrettoError(error.what, f"{where}: {error.where}", error.hint) from None
    try:
        reward = checked(recipe.reward, task.harness.roles, KNOWN)
    except StrettoError as error:
        raise StrettoError(error.what, f"{where}: reward.{error.where}", error.hint) from None
    return msgspec.structs.replace(recipe, task=task.spec, reward=reward)


def dump(recipe: Recipe) -> str:
    """A recipe as TOML, every key included but those that are `None`, for which it has no word."""
    return tomli_w.dumps(_without_none(msgspec.to_builtins(recipe)))


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def keys(recipe: Recipe) -> list[str]:
    """All dotted keys of a recipe, as in `train.steps`."""
    return list(_flatten(msgspec.to_builtins(recipe), ""))


def _flatten(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        deeper = isinstance(value, dict) and value
        flat |= _flatten(value, f"{name}.") if deeper else {name: value}
    return flat


def first_difference(old: Recipe, new: Recipe) -> str | None:
    """The first dotted key in which two recipes differ."""
    before, after = (_flatten(msgspec.to_builtins(recipe), "") for recipe in (old, new))
    return next((key for key in before | after if before.get(key) != after.get(key)), None)


def _words(key: str) -> tuple[str, ...]:
    """The words that a dotted key can have as its value."""
    kind: Any = Recipe
    for name in key.split("."):
        kind = get_type_hints(kind)[name]
    return get_args(kind)


_DEFAULT = Recipe(task={})


def _explained(message: str, where: str) -> StrettoError:
    """Say a conversion error with the whole key and the nearest known one."""
    what, _, path = message.partition(" - at `$")
    section = path.strip("`.")
    unknown = re.search(r"unknown field `(.+)`", what)
    if unknown is None:
        word = re.search(r"enum value '(.+)'", what)
        hint = did_you_mean(word[1], _words(section)) if word else ""
        return StrettoError(f"{what[0].lower()}{what[1:]}", f"{where}: {section or 'recipe'}", hint)
    prefix = f"{section}." if section else ""
    known = {
        key.removeprefix(prefix).split(".")[0] for key in keys(_DEFAULT) if key.startswith(prefix)
    }
    hint = did_you_mean(unknown[1], known)
    return StrettoError(f"unknown key {prefix}{unknown[1]}", where, hint)
