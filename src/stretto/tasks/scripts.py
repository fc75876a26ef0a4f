"""Scripted baselines of every family, by the same six names, and what they are measured against."""

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError, did_you_mean
from stretto.team.noise import key_of, uniform
from stretto.team.protocols import Ask, Policy, Task
from stretto.trace import Trace

NAMES = ("oracle", "greedy", "random", "blind", "silent", "solo")
"""`oracle` solves the task as well as can be, `greedy` takes what is nearest, `random` any
candidate, `blind` sees the number of its turn only, `silent` tells nobody anything, `solo` is one
agent alone with the same tools."""

SCRIPTS: Mapping[str, str] = {
    "agree": "stretto.tasks.agree.scripts",
    "gather": "stretto.tasks.gather.scripts",
    "hops": "stretto.tasks.hops.scripts",
    "jury": "stretto.tasks.jury.scripts",
    "nest": "stretto.tasks.nest.scripts",
    "repair": "stretto.tasks.repair.scripts",
    "scouts": "stretto.tasks.scouts.scripts",
}
"""Family to the module of its scripts: functions `scripts(task)` and `yardstick(task)`."""


class Yardstick(Struct, frozen=True, kw_only=True):
    """What a task's outcomes are measured against."""

    best: float
    """Expected score of the oracle; exact."""
    random: float | None = None
    """Expected score of chance; exact, or `None` where episodes have to say."""
    hidden: frozenset[str] = frozenset()
    """Words that no first observation may hold, or the answer could be read from it."""
    names: frozenset[str] = frozenset()
    """Invented names: another name in the place of each must change nothing."""
    solved_by: frozenset[str] = frozenset()
    """Scripts without sight or communication that must solve this task by design: its control.

    Also names of `stretto.tasks.shortcuts` that may solve it; where `blind` must, all may.
    """
    priced: bool = False
    """Whether outcomes are meant less the prices of spawns and seconds."""


def scripts_of(task: Task) -> Mapping[str, Mapping[str, Policy]]:
    """The scripted policies of a task: name to role to policy.

    Raises `StrettoError` for a family without scripts.
    """
    return _function(task, "scripts")(task)


def yardstick_of(task: Task) -> Yardstick:
    """What the outcomes of a task are measured against.

    Raises `StrettoError` for a family without scripts.
    """
    return _function(task, "yardstick")(task)


def score(task: Task, trace: Trace, priced: bool) -> float | None:
    """Outcome of an episode, less the prices of its spawns and seconds where it is `priced`."""
    outcome = trace.reward("outcome")
    if outcome is None or not priced:
        return outcome
    spawns = int(trace.columns.is_kind("spawn").sum())
    end = trace.columns.last_end
    return outcome - task.prices.spawn * spawns - task.prices.second * end


def normalised(value: float, low: float, best: float) -> float:
    """Where a score lies between chance (0) and the oracle (1); may lie outside."""
    return (value - low) / (best - low)


def everyone(roles: Collection[str], policy: Policy) -> Mapping[str, Policy]:
    """One policy for all roles."""
    return dict.fromkeys(roles, policy)


def anybody(ask: Ask) -> str:
    """Any candidate, all alike."""
    return ask.candidates[int(uniform(ask.key, "anybody") * len(ask.candidates))]


def blind(ask: Ask) -> str:
    """A candidate by the number of the agent's turn, whatever the agent sees."""
    turn = ask.event.rpartition("#")[2]
    return ask.candidates[key_of(0, f"turn {turn}") % len(ask.candidates)]


def offered(ask: Ask, *verbs: str) -> list[str]:
    """The candidates that begin with one of these verbs, in the order of the verbs.

    Scripts find their choice so, not by its place in the menu, which may say nothing.
    """
    return [
        candidate
        for verb in verbs
        for candidate in ask.candidates
        if candidate.partition(" ")[0] == verb
    ]


def _function(task: Task, name: str) -> Callable[[Task], Any]:
    family = task.spec["family"]
    if family not in SCRIPTS:
        hint = did_you_mean(family, SCRIPTS)
        raise StrettoError(f'no scripts are known for the family "{family}"', hint=hint)
    return getattr(import_module(SCRIPTS[family]), name)
