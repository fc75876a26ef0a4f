"""Scripted policies for `nest`: a rule for the lead, and within each job its family's own script.

| script | the lead |
|---|---|
| `oracle`, `silent` | sends all jobs, those that take longest first |
| `greedy` | sends whatever is first in the menu |
| `solo` | does all jobs itself, one after the other |
| `blind`, `random` | by the number of its turn; any candidate |

Scripts see no more than any policy does, so those of a template serve all jobs that it makes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from statistics import fmean

from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks.nest import LEAD, Nest
from stretto.tasks.nest.leaf import bare
from stretto.tasks.nest.oracle import optimum, seconds_of
from stretto.tasks.scripts import Yardstick, anybody, blind, scripts_of, yardstick_of
from stretto.team.protocols import Answer, Ask, Policy

Rule = Callable[[Ask], str]


def scripts(task: Nest) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    longest = sorted(task.templates, key=lambda kind: -(seconds_of(task.templates[kind]) or 0.0))
    send = partial(_send, order=longest)
    rules: dict[str, Rule] = {
        "oracle": send,
        "greedy": lambda ask: ask.candidates[0],
        "solo": _work,
        "silent": send,
        "blind": blind,
        "random": anybody,
    }
    inner = {kind: scripts_of(template) for kind, template in task.templates.items()}
    return {
        name: policies(task, rule, {kind: found[name] for kind, found in inner.items()}, name)
        for name, rule in rules.items()
    }


def yardstick(task: Nest) -> Yardstick:
    """The means over jobs; of chance, where it is exact in all, and no family counts prices.

    Of what a job hides, names stay hidden that no other one uses.

    Other words may mean something else in another family; each is checked on its own.
    """
    found = [yardstick_of(task.job(job)) for job in range(task.jobs)]
    users = Counter(chain.from_iterable(each.names | each.hidden for each in found))
    hidden = {name for each in found for name in each.hidden & each.names if users[name] == 1}
    guesses = [each.random for each in found if each.random is not None and not each.priced]
    return Yardstick(
        best=optimum(task),
        random=fmean(guesses) if len(guesses) == len(found) else None,
        hidden=frozenset(hidden),
        names=frozenset(chain.from_iterable(each.names for each in found)),
        solved_by=frozenset[str].intersection(*(each.solved_by for each in found)),
    )


def policies(
    task: Nest, rule: Rule, inner: Mapping[str, Mapping[str, Policy]], name: str = "scripted"
) -> Mapping[str, Policy]:
    """The policies of a whole nest: a rule for the lead, and for each kind of job its policies.

    Args:
        task: The nest.
        rule: What the lead picks while it gives work out.
        inner: Kind of job to the policies of its own roles.
        name: What the lead's policy is called, whether it gives out or does a job.
    """
    leads = {kind: found[task.templates[kind].harness.root] for kind, found in inner.items()}
    found: dict[str, Policy] = {LEAD: _Lead(task, rule, leads, f"nest-{name}")}
    for kind, roles in inner.items():
        system = task.templates[kind].harness.system
        found |= {f"{kind}.{role}": _Inside(policy, system) for role, policy in roles.items()}
    return found


class _Inside:
    """A family's policy, asked in the words of its family."""

    def __init__(self, policy: Policy, system: str) -> None:
        self._policy = policy
        self._system = system

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        return self._policy.decide(
            [replace(ask, system=self._system, role=bare(ask.role)) for ask in asks]
        )


class _Lead:
    """Follows its own rule, or, within a job, the policy of that job's lead, under one name."""

    def __init__(self, task: Nest, rule: Rule, leads: Mapping[str, Policy], name: str) -> None:
        self._own = Scripted(rule, name)
        self._name = name
        self._leads = {
            kind: (policy, task.templates[kind].harness) for kind, policy in leads.items()
        }

    def decide(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        return [replace(self._answer(ask), policy=self._name) for ask in asks]

    def _answer(self, ask: Ask) -> Answer:
        first, _, rest = ask.prompt.partition("\n")
        kind = first.removeprefix("Job: ").rstrip(".")
        if kind not in self._leads:
            return self._own.decide([ask])[0]
        policy, harness = self._leads[kind]
        inside = replace(ask, system=harness.system, prompt=rest, role=harness.root)
        return policy.decide([inside])[0]


def _send(ask: Ask, order: Sequence[str]) -> str:
    """One of those that take longest."""
    wanted = (f"send {kind}" for kind in order)
    return next((choice for choice in wanted if choice in ask.candidates), ask.candidates[-1])


def _work(ask: Ask) -> str:
    """Do a job; what cannot be done so is sent, one at a time."""
    alone = (c for c in ask.candidates if c.startswith("work ") or c == "wait")
    return next(alone, ask.candidates[0])
