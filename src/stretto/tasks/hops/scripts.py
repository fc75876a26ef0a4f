"""Scripted policies for `hops`; they see what any policy sees.

| script | what it does |
|---|---|
| `oracle` | sends the team of the best plan, follows every path, reports, compares, answers |
| `greedy` | follows every path alone, and answers with the first end that it is offered |
| `solo` | as the oracle, but sends nobody |
| `silent` | as the oracle with the largest team, but nobody reports |
| `blind` | picks by the number of its turn only |
| `random` | picks any candidate, all alike |
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial

from stretto.policies.scripted import Scripted
from stretto.tasks.hops import Hops, instance_of
from stretto.tasks.hops.oracle import best_plan
from stretto.tasks.scripts import Yardstick, anybody, blind, everyone
from stretto.tasks.words import number_word
from stretto.team.protocols import Ask, Policy


def scripts(task: Hops) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    roles = tuple(task.harness.roles)
    rules = {
        "oracle": partial(_decide, workers=best_plan(task).workers, say=True, compare=True),
        "greedy": partial(_decide, workers=0, say=True, compare=False),
        "solo": partial(_decide, workers=0, say=True, compare=True),
        "silent": partial(_decide, workers=task.width, say=False, compare=True),
        "blind": blind,
        "random": anybody,
    }
    return {name: everyone(roles, Scripted(rule, f"hops-{name}")) for name, rule in rules.items()}


def yardstick(task: Hops) -> Yardstick:
    """The last ends are hidden at first; who is faultless answers rightly."""
    instance = instance_of(task)
    hidden = frozenset(name for end in instance.stages[-1].ends for name in end)
    return Yardstick(best=1.0, hidden=hidden, names=frozenset(instance.names))


def _decide(ask: Ask, workers: int, say: bool, compare: bool) -> str:
    candidates = ask.candidates
    spawn = f"spawn {number_word(workers)}"
    if workers and spawn in candidates:
        return spawn
    lines = [line.rstrip(".").partition(": ") for line in ask.prompt.splitlines()]
    path = next((rest for label, _, rest in lines if label == "Path"), None)
    if path is not None:
        look = f"look {path.split(', ')[0]}"
        return look if look in candidates else candidates[0]
    if candidates[0] in ("report", "pass"):
        return candidates[0] if say else candidates[1]
    for wanted in ("read memory", "compare"):
        if wanted in candidates and (compare or wanted != "compare"):
            return wanted
    answers = [candidate for candidate in candidates if candidate.startswith("answer ")]
    return _best(lines, answers) if compare and answers else (answers or candidates)[0]


def _best(lines: list[tuple[str, str, str]], answers: list[str]) -> str:
    """The richest if that is known, else who is on most lists."""
    counts = Counter[str]()
    for label, _, rest in lines:
        weight = len(lines) if label == "Richest" else 1
        for name in rest.split(", "):
            counts[f"answer {name}"] += weight
    return max(answers, key=lambda answer: counts[answer])
