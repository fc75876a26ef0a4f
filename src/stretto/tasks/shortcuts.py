"""Policies that read nothing but the menu: no task may be solved by one of them.

They go by the place of a candidate, by the alphabet, or always take what ends with one word: of
`say red` and `vote red` both.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from stretto.tasks.scripts import anybody
from stretto.team.protocols import Ask
from stretto.trace import Trace

WORDS = 8
"""Most last words of candidates that are tried as the one that is always taken."""

Rule = Callable[[Ask], str]

PLACES: Mapping[str, Rule] = {
    "first": lambda ask: ask.candidates[0],
    "last": lambda ask: ask.candidates[-1],
    "alphabetically first": lambda ask: min(ask.candidates),
    "alphabetically last": lambda ask: max(ask.candidates),
}
"""Those that go by place, by name."""


def shortcuts(words: Iterable[str], patience: int) -> Mapping[str, Rule]:
    """All of them, by name; `always WORD` takes what ends with that word where it can, else any.

    An agent that has made `patience` events picks any: who always waits would never end.
    """
    rules = {**PLACES, **{f"always {word}": _always(word) for word in words}}
    return {name: _patient(rule, patience) for name, rule in rules.items()}


def common_words(one: Iterable[Trace], other: Iterable[Trace]) -> list[str]:
    """The last words of candidates that two instances share, most offered first; at most `WORDS`.

    What only one of them offers, as an invented name, would be no shortcut.
    """
    offers, others = _offers(one), _offers(other)
    shared = sorted(offers.keys() & others.keys(), key=lambda word: (-offers[word], word))
    return shared[:WORDS]


def _offers(traces: Iterable[Trace]) -> Counter[str]:
    """How often each last word was offered beside another candidate."""
    menus = (event.decision.candidates for t in traces for event in t.events if event.decision)
    return Counter(_last(choice) for menu in menus if len(menu) > 1 for choice in menu)


def _last(candidate: str) -> str:
    return candidate.rpartition(" ")[2]


def _always(word: str) -> Rule:
    def rule(ask: Ask) -> str:
        return next((c for c in ask.candidates if _last(c) == word), None) or anybody(ask)

    return rule


def _patient(rule: Rule, patience: int) -> Rule:
    def patient(ask: Ask) -> str:
        turn = int(ask.event.rpartition("#")[2])
        return rule(ask) if turn < patience else anybody(ask)

    return patient
