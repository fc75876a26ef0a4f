"""Scripted policies for `repair`; they see what any policy sees.

| script | what it does |
|---|---|
| `oracle` | sends whom it may, longest chain first; patches by what a module says, tests, reports |
| | (where the lead looks at the results again, who is sent leaves the tests to it) |
| `greedy` | alone; takes the first patch that is listed, whatever its tests say |
| `solo` | as the oracle, but sends nobody |
| `silent` | as the oracle, but nobody reports or looks at the results again |
| `blind` | picks by the number of its turn only |
| `random` | picks any candidate, all alike |
"""

import ast
from collections.abc import Callable, Mapping
from functools import partial

from stretto.policies.scripted import Scripted
from stretto.tasks.menus import size_of
from stretto.tasks.repair import Repair, instance_of
from stretto.tasks.repair.instance import REMARK
from stretto.tasks.repair.oracle import best_outcome, silent_outcome
from stretto.tasks.scripts import Yardstick, anybody, blind, everyone
from stretto.team.protocols import Ask, Policy

_SIGNS = {"plus": "+", "minus": "-", "times": "*"}
_HEADS = {"the largest of ": "max", "the smallest of ": "min"}


def scripts(task: Repair) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    looks = task.topology == "harness"
    rules: Mapping[str, Callable[[Ask], str]] = {
        "oracle": partial(_decide, team=True, say=True, think=True, looks=looks),
        "greedy": partial(_decide, team=False, say=True, think=False),
        "solo": partial(_decide, team=False, say=True, think=True),
        "silent": partial(_decide, team=True, say=False, think=True),
        "blind": blind,
        "random": anybody,
    }
    roles = tuple(task.harness.roles)
    return {name: everyone(roles, Scripted(rule, f"repair-{name}")) for name, rule in rules.items()}


def yardstick(task: Repair) -> Yardstick:
    """What a faultless team reaches; what a module says is hidden until it is read.

    Where everything that a faulty module imports passes from the start, or what waits is spoilt
    anyway, nothing hangs on reports: who is silent reaches as much.
    """
    instance, best = instance_of(task), best_outcome(task)
    alone = silent_outcome(task) >= best
    return Yardstick(
        best=best,
        hidden=frozenset({"plus", "minus", "times", "largest", "smallest"}),
        names=frozenset(instance.modules),
        solved_by=frozenset({"silent"}) if alone else frozenset(),
    )


def said(says: str) -> str:
    """The expression that a module's words stand for."""
    left, _, own = says.rpartition(", plus ")
    head, step, constant = left.rsplit(" ", 2)
    source = head if head == "x" else f"{head}(x)"
    for words, function in _HEADS.items():
        if head.startswith(words):
            calls = ", ".join(f"{name}(x)" for name in head.removeprefix(words).split(", "))
            source = f"{function}({calls})"
    factor = size_of(own.removesuffix(" times x"))
    expression = f"{source} {_SIGNS[step]} {size_of(constant)} + {factor} * x"
    return ast.unparse(ast.parse(expression))


def _decide(ask: Ask, team: bool, say: bool, think: bool, looks: bool = False) -> str:
    lines = [line.rstrip(".").partition(": ") for line in ask.prompt.splitlines()]
    known = {label: rest for label, _, rest in lines}
    if "Module" in known:
        return _work(ask, known, say, think, looks)
    if "list" in ask.candidates and (say or "Failing" not in known):
        return "list"
    ready = [rest.split(", ") for label, _, rest in lines if label == "Ready"]
    if not ready:
        return ask.candidates[-1]
    name, _, _ = max(ready, key=_chain)
    send, work = (
        choice if choice in ask.candidates else "" for choice in (f"send {name}", f"work {name}")
    )
    return (send or work if team else work or send) or ask.candidates[-1]


def _chain(ready: list[str]) -> int:
    """Seconds of the longest chain of tests that begins with a module."""
    _, own, then = ready
    return size_of(own) + size_of(then.removeprefix("then "))


def _work(ask: Ask, known: Mapping[str, str], say: bool, think: bool, looks: bool) -> str:
    """Read, patch where code and words differ, test, report; the lead may look instead."""
    candidates = ask.candidates
    edits = [choice for choice in candidates if choice.startswith("edit ")]
    tested = known["Tests"] != "not run"
    if "read" in candidates:
        return "read"
    if "Refused" not in known and edits and not tested:
        wanted = f"edit {said(known['Says'])}" if think else edits[0]
        first = think or len(edits) > 2
        code = known["Code"].removesuffix(REMARK)
        if wanted in edits and first and code != wanted.removeprefix("edit "):
            return wanted
    if not tested and "test" in candidates and not looks:
        return "test"
    if "finish" in candidates:
        return "finish"
    spoken = [word for word in ("report", "pass") if word in candidates]
    return spoken[0] if say and spoken else candidates[-1]
