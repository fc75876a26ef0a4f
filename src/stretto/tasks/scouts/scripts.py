"""Scripted policies for `scouts`; they see what any policy sees.

| script | what it does |
|---|---|
| `oracle` | the exact optimum, as seen through the observations |
| `greedy` | sends one scout while the votes tie, and stops at the first lead |
| `solo` | never two scouts at once: the best adaptive serial policy |
| `silent` | asks nobody, and guesses |
| `blind` | sends the best number of scouts for one round, then stops, whatever they say |
| `random` | picks any candidate, all alike |
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from stretto.policies.scripted import Scripted
from stretto.tasks.menus import size_of
from stretto.tasks.scouts import Scouts, choice_at
from stretto.tasks.scouts.oracle import scouts_oracle
from stretto.tasks.scripts import Yardstick, anybody
from stretto.team.protocols import Ask, Policy


def scripts(task: Scouts) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    tie = choice_at(task, 0, 0).observation
    rules: Mapping[str, Callable[[Ask], str]] = {
        "oracle": _optimal(task),
        "greedy": lambda ask: "one" if ask.prompt == tie and "one" in ask.candidates else "stop",
        "solo": _optimal(replace(task, width=1)),
        "silent": lambda ask: "stop",
        "blind": _once(task),
        "random": anybody,
    }
    return {name: {"lead": Scripted(rule, f"scouts-{name}")} for name, rule in rules.items()}


def yardstick(task: Scouts) -> Yardstick:
    """Exact values, less prices: asking for ever is no skill. The colours are hidden at first.

    With a planted fault they are those without it: the same stick for both.
    """
    oracle = scouts_oracle(task)
    return Yardstick(
        best=oracle.best,
        random=oracle.baselines["random"],
        hidden=frozenset({"red", "blue"}),
        priced=True,
    )


def _optimal(task: Scouts) -> Callable[[Ask], str]:
    """The optimal choice at every observation; the likelier one where states read alike."""
    oracle = scouts_oracle(task)
    rows = zip(oracle.choices, oracle.by_sight, strict=True)
    best: dict[tuple[str, int], str] = {}
    at_all: dict[str, str] = {}
    for choice, row in rows:  # those with most on offer come first
        word = choice.candidates[int(row.argmax())]
        best[choice.observation, len(choice.candidates)] = word
        at_all.setdefault(choice.observation, word)
    most = len(oracle.choices[0].candidates)

    def rule(ask: Ask) -> str:
        place = ask.prompt, min(len(ask.candidates), most)
        return _within(ask, best.get(place, at_all[ask.prompt]))

    return rule


def _once(task: Scouts) -> Callable[[Ask], str]:
    """The best round, where no second one may follow the answer of the first turn."""
    first = scouts_oracle(task).q_after(0)[:, 0]
    word = choice_at(task, 0, 0).candidates[1 + int(first[1:].argmax())]
    return lambda ask: _within(ask, word) if ask.event.endswith("#0") else "stop"


def _within(ask: Ask, wanted: str) -> str:
    """What is wanted, or the largest team below it that is on offer: a menu may lack some."""
    if wanted in ask.candidates:
        return wanted
    sizes = (word for word in ask.candidates if word != "stop" and size_of(word) < size_of(wanted))
    return max(sizes, key=size_of, default="stop")
