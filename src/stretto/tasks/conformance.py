"""A test that every task family must pass; run it on your own.

```python
from stretto.tasks.conformance import check_task
from stretto.tasks.hops import Hops

check_task(Hops(width=3, depth=2))
```
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import hypot, sqrt
from re import sub
from statistics import fmean, pstdev

from msgspec import Struct
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks import build
from stretto.tasks.menus import shuffled
from stretto.tasks.scripts import (
    NAMES,
    Yardstick,
    everyone,
    normalised,
    score,
    scripts_of,
    yardstick_of,
)
from stretto.tasks.shortcuts import common_words, shortcuts
from stretto.team.engine import rollout
from stretto.team.interventions import ARRIVALS, Force, Intervention, Null
from stretto.team.noise import key_of
from stretto.team.protocols import Answer, Ask, Policy, Task
from stretto.team.replay import replay
from stretto.team.what_if import what_ifs
from stretto.trace import Event, Trace

EPISODES = 32
"""Episodes that a policy without sight or with chance plays."""
CHANCE = 0.05
"""Most that chance may reach between itself (0) and the oracle (1)."""
SOLVED = 0.95
"""From here on between chance (0) and the oracle (1), a task counts as solved."""
ERRORS = 4.0
"""Standard errors within which a mean must lie."""
SIBLINGS = 8
"""Instances of its kind that the blind and the silent play, and who reads nothing but the menu."""
MORE_SIBLINGS = 32
"""Instances that the latter play where the first ones do not rule out that they solve the kind."""
HOPEFUL = 0.5
"""From here on between chance (0) and the oracle (1) they do not."""
CHANGES = 12
"""Events of an episode that are changed, one at a time."""


class Measured(Struct, frozen=True):
    """What one script scored."""

    mean: float
    error: float
    """Standard error of the mean."""
    episodes: int


class Conformance(Struct, frozen=True):
    """What a task that passed was measured at."""

    scores: Mapping[str, float]
    """Mean score of every script: its outcome, less prices where the family counts them.

    That of `blind` is over several instances of the kind, and so is that of `silent` where it is no
    control.
    """
    chance: float
    """Expected score of chance; exact where the family knows it."""
    normalised: Mapping[str, float]
    """Each score between chance (0) and the oracle (1)."""
    shortcuts: Mapping[str, float]
    """The same of every policy of `stretto.tasks.shortcuts`, over several instances of the kind."""


def check_task(task: Task, episodes: int = EPISODES) -> Conformance:
    """Check that a task keeps the rules of the benchmark, by what its scripts reach in it.

    1. The oracle reaches the best expected score, and chance at most `CHANCE` of the way there.
    2. No word of the answer stands in what an agent sees, or may choose, before anything but its
       brief reached it.
    3. Who sees nothing, nothing but the menu (`stretto.tasks.shortcuts`), or tells nobody anything
       does not solve instances of its kind, unless that is its control; then `blind` and `silent`
       must.
    4. One seed gives one trace, alone or beside others; a replay diverges nowhere, with or without
       the texts.
    5. Other names of agents and of things change no choice of a script.
    6. What an agent sees changes only if something that reached it did: every decision that reads
       otherwise after one event was changed is downstream of that event.

    Raises `StrettoError` that names the rule and the task where one is broken.
    """
    policies, yard = scripts_of(task), yardstick_of(task)
    _require(build(task.spec) == task, "its specification builds another task", task)
    missing = set(NAMES) - policies.keys()
    _require(not missing, f"no script {sorted(missing)}", task)
    runs = {name: rollout(task, policies[name], range(episodes)) for name in policies}
    unseen = {"blind", "silent"} - (yard.solved_by - {"blind"})
    scored = {**runs, **{name: _kin_runs(task, name, episodes) for name in sorted(unseen)}}
    measured = {name: _measure(task, name, traces, yard.priced) for name, traces in scored.items()}
    guess = _chance(task, yard, policies["random"], episodes)
    chance = guess.mean
    _require(chance < yard.best, "chance is as good as the oracle", task)
    found = Conformance(
        {name: each.mean for name, each in measured.items()},
        chance,
        {name: normalised(each.mean, chance, yard.best) for name, each in measured.items()},
        _check_shortcuts(task, yard, chance, [runs["oracle"][0], runs["random"][0]]),
    )
    _check_scores(task, yard, measured, found, guess.error)
    for name in policies:
        _check_hidden(task, yard, runs[name][0])
        _check_replay(task, policies[name], runs[name][0])
        _check_names(task, yard, policies[name], name, runs[name][0])
    for name in ("oracle", "random"):
        _check_sight(task, policies[name], runs[name][0])
    return found


def _chance(task: Task, yard: Yardstick, random: Mapping[str, Policy], episodes: int) -> Measured:
    """Expected score of chance: exact, or from episodes that are not measured."""
    if yard.random is not None:
        return Measured(yard.random, error=0.0, episodes=0)
    others = rollout(task, random, range(episodes, 3 * episodes))
    return _measure(task, "random", others, yard.priced)


def _measure(task: Task, name: str, traces: Sequence[Trace], priced: bool) -> Measured:
    scores: list[float] = []
    for trace in traces:
        outcome, value = trace.reward("outcome"), score(task, trace, priced)
        ended = trace.attrs["ended"]
        _require(ended == "stop", f"an episode of {name} ended as {ended}", task)
        if outcome is None or value is None:
            raise StrettoError(f"an episode of {name} has no outcome", task.id)
        _require(0 <= outcome <= 1, f"{name} has outcome {outcome}", task)
        scores.append(value)
    return _measured(scores)


def _measured(scores: Sequence[float]) -> Measured:
    return Measured(fmean(scores), pstdev(scores) / sqrt(len(scores)), len(scores))


def _kin_runs(task: Task, name: str, episodes: int) -> list[Trace]:
    """A script at this instance and its siblings: by luck, one plan can fit one instance."""
    tasks = _siblings(task, range(SIBLINGS)) or [task]
    seeds = range(max(2, episodes // len(tasks)))
    return [trace for each in tasks for trace in rollout(each, scripts_of(each)[name], seeds)]


def _siblings(task: Task, numbers: Iterable[int]) -> list[Task]:
    """Instances of one kind, of which this one is number 0; none where instances have no seed."""
    spec = task.spec
    if "seed" not in spec:
        return []
    return [build({**spec, "seed": spec["seed"] + number}) for number in numbers]


def _check_scores(
    task: Task,
    yard: Yardstick,
    measured: Mapping[str, Measured],
    found: Conformance,
    error: float,
) -> None:
    """`error` is the standard error of `found.chance`."""
    scale = yard.best - found.chance
    gap = abs(measured["oracle"].mean - yard.best)
    allowed = _luck(measured["oracle"], yard.best, yard) + 1e-9
    _require(gap <= allowed, f"the oracle scores {measured['oracle'].mean}", task)
    reached = found.normalised["random"]
    luck = hypot(_luck(measured["random"], found.chance, yard), ERRORS * error)
    most = CHANCE + luck / scale
    _require(reached <= most, f"chance scores {reached:.3f}, normalised", task)
    for name in ("blind", "silent"):
        reached, luck = found.normalised[name], _luck(measured[name], found.chance, yard) / scale
        if name in yard.solved_by:
            fine, what = reached >= SOLVED - luck, "does not solve"
        else:
            fine, what = reached < max(SOLVED, luck), "solves"
        _require(fine, f"{name} {what} it ({reached:.3f})", task)


def _luck(each: Measured, expected: float, yard: Yardstick) -> float:
    """Luck: of the sample, or of a score in [0, 1] that is right on average so often."""
    spread = sqrt(max(0.0, expected * (1 - expected)) / each.episodes)
    return ERRORS * max(each.error, spread if yard.best < 1 else 0.0)


def _check_shortcuts(
    task: Task, yard: Yardstick, chance: float, traces: Sequence[Trace]
) -> Mapping[str, float]:
    """What those reach, normalised, who read nothing but the menu.

    One that does badly at the first siblings plays no more; the others play at `MORE_SIBLINGS`.
    """
    (kin,) = _siblings(task, [1]) or [task]
    (other,) = rollout(kin, scripts_of(kin)["oracle"], [1])
    rules = shortcuts(common_words(traces, [other]), len(traces[0].events))
    reached: dict[str, float] = {}
    for name, rule in rules.items():
        policies = everyone(task.harness.roles, Scripted(rule, name))
        scores = _earned(task, yard, policies, range(SIBLINGS))
        if normalised(fmean(scores), chance, yard.best) >= HOPEFUL:
            scores += _earned(task, yard, policies, range(SIBLINGS, MORE_SIBLINGS))
        found = _measured(scores)
        reached[name] = normalised(found.mean, chance, yard.best)
        luck = _luck(found, chance, yard) / (yard.best - chance)
        fine = reached[name] < max(SOLVED, luck) or {"blind", name} & yard.solved_by
        _require(bool(fine), f'the shortcut "{name}" solves it ({reached[name]:.3f})', task)
    return reached


def _earned(
    task: Task, yard: Yardstick, policies: Mapping[str, Policy], numbers: Sequence[int]
) -> list[float]:
    """Scores at some siblings, one episode each; one that never ends has earned nothing."""
    tasks = _siblings(task, numbers) or [task] * len(numbers)
    scores: list[float] = []
    for each, seed in zip(tasks, numbers, strict=True):
        (trace,) = rollout(each, policies, [seed])
        scores.append(score(each, trace, yard.priced) or 0.0)
    return scores


def _check_hidden(task: Task, yard: Yardstick, trace: Trace) -> None:
    """Before anything but its brief reached an agent, it cannot know the answer."""
    told = {edge.dst for edge in trace.edges if edge.label != "spawn"}
    for event in trace.events:
        if event.decision is not None and event.id not in told:
            shown = f"{trace.text(event.decision.observation)} {event.decision.candidates}"
            secrets = set(_words(shown)) & yard.hidden
            _require(not secrets, f"{event.id} shows {sorted(secrets)} at first", task)


def _check_replay(task: Task, policies: Mapping[str, Policy], trace: Trace) -> None:
    (again,) = rollout(task, policies, [0])
    _require(again == trace, f"{trace.id}: the same seed gives another trace", task)
    for copy in (trace, replace(trace, contents={})):
        divergence = replay(copy, task)
        _require(divergence is None, f"a replay diverges: {divergence}", task)


def _check_names(
    task: Task, yard: Yardstick, policies: Mapping[str, Policy], name: str, trace: Trace
) -> None:
    renamed = {role: _Renamed(policy, yard.names) for role, policy in policies.items()}
    (other,) = rollout(task, renamed, [0])
    _require(other.events == trace.events, f"{name} goes by names", task)


class _Renamed:
    """A policy that is shown other names of agents and of things."""

    def __init__(self, policy: Policy, names: frozenset[str]) -> None:
        self._policy = policy
        self._names = dict(zip(sorted(names), shuffled(names, 0, "renamed"), strict=True))

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        return self._policy.decide([self._rename(ask) for ask in asks])

    def _rename(self, ask: Ask) -> Ask:
        path, _, turn = ask.event.partition("#")
        return replace(
            ask,
            event=f"agent-{key_of(0, path)}#{turn}",
            prompt=self._text(ask.prompt),
            candidates=tuple(self._text(candidate) for candidate in ask.candidates),
        )

    def _text(self, text: str) -> str:
        return sub(r"[a-z]+", lambda match: self._names.get(match[0], match[0]), text)


def _check_sight(task: Task, policies: Mapping[str, Policy], trace: Trace) -> None:
    changes = _changes(trace)
    events = [event for event, _ in changes]
    others = what_ifs(trace, changes, task=task, policies=policies)
    before = _seen(trace)
    for event, other in zip(events, others, strict=True):
        after = _seen(other.trace)
        reached = _downstream(trace, event) | _downstream(other.trace, event)
        leaks = [
            decision
            for decision in before.keys() & after.keys()
            if before[decision] != after[decision] and decision not in reached
        ]
        _require(not leaks, f"{leaks[:1]} sees {event}, which did not reach it", task)


def _changes(trace: Trace) -> list[tuple[str, Intervention]]:
    """Some events, spread over the episode, and a change of each."""
    found: list[tuple[str, Intervention]] = []
    for event in trace.events:
        change = _change(event)
        if change is not None:
            found.append((event.id, change))
    step = max(1, len(found) // CHANGES)
    return found[::step][:CHANGES]


def _change(event: Event) -> Intervention | None:
    if event.kind in ARRIVALS:
        return Null()
    decision = event.decision
    if decision is None or len(decision.candidates) < 2:
        return None
    return Force(decision.candidates[((decision.chosen or 0) + 1) % len(decision.candidates)])


def _seen(trace: Trace) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    """What each decision saw, and what it could choose."""
    return {
        event.id: (event.decision.observation, event.decision.candidates)
        for event in trace.events
        if event.decision is not None
    }


def _downstream(trace: Trace, event: str) -> set[str]:
    """The event and all that its edges lead to."""
    following: dict[str, list[str]] = {}
    for edge in trace.edges:
        following.setdefault(edge.src, []).append(edge.dst)
    reached = {event}
    front = [event]
    while front:
        new = set(chain.from_iterable(following.get(each, ()) for each in front)) - reached
        reached |= new
        front = list(new)
    return reached


def _words(text: str) -> list[str]:
    return sub(r"[^a-z]+", " ", text.lower()).split()


def _require(fine: bool, what: str, task: Task) -> None:
    if not fine:
        raise StrettoError(what, task.id)
