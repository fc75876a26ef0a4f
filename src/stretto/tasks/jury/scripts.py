"""Scripted policies for `jury`; they see what any policy sees.

| script | what it does |
|---|---|
| `oracle` | witnesses say what they saw; the judge takes the colour of highest posterior |
| `greedy` | the same, but the judge counts claims: each is worth one |
| `solo` | the judge calls nobody, and guesses |
| `silent` | the judge calls the witnesses, and nobody says anything |
| `blind` | picks by the number of its turn only |
| `random` | picks any candidate, all alike |
"""

from collections.abc import Callable, Mapping
from functools import partial

from stretto.policies.scripted import Scripted
from stretto.tasks.jury import COLOURS, Jury, case_of
from stretto.tasks.jury.accuracy import accuracy
from stretto.tasks.jury.oracle import vote_on
from stretto.tasks.scripts import Yardstick, anybody, blind, everyone, offered
from stretto.team.protocols import Ask, Policy

Vote = Callable[[list[tuple[str, str]], tuple[str, ...]], str]
"""Chooses a colour by claims (colour, piece of evidence), among those that can be voted for."""


def scripts(task: Jury) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    rules: Mapping[str, Callable[[Ask], str]] = {
        "oracle": partial(_decide, vote=partial(_weigh, task), say=True),
        "greedy": partial(_decide, vote=_count, say=True),
        "solo": lambda ask: offered(ask, "vote")[-1],
        "silent": partial(_decide, vote=_count, say=False),
        "blind": blind,
        "random": anybody,
    }
    roles = tuple(task.harness.roles)
    return {name: everyone(roles, Scripted(rule, f"jury-{name}")) for name, rule in rules.items()}


def yardstick(task: Jury) -> Yardstick:
    """Exact: how often the best vote is right, and a guess. What is seen is hidden from the judge.

    No word is hidden: every colour can be voted for from the start.
    """
    names = frozenset(case_of(task).names)
    return Yardstick(best=accuracy(task), random=1 / task.classes, names=names)


def _decide(ask: Ask, vote: Vote, say: bool) -> str:
    candidates = ask.candidates
    for wanted in ("call witnesses", "read memory"):
        if wanted in candidates:
            return wanted
    lines = [line.rstrip(".").partition(": ") for line in ask.prompt.splitlines()]
    handed = offered(ask, *(("report", "pass") if say else ("leave", "drop")))
    if handed:
        return handed[0]
    if "stay silent" in candidates:
        saw = lines[0][2].split(", ")[0]
        return f"say {saw}" if say and saw else "stay silent"
    claims = [(rest.split(", ")[0], rest.split(", ")[1]) for _, _, rest in lines if rest]
    return f"vote {vote(claims, candidates)}"


def _count(claims: list[tuple[str, str]], candidates: tuple[str, ...]) -> str:
    """The colour that most claim; of those alike the first candidate."""
    said = [colour for colour, _ in claims]
    return max((c.removeprefix("vote ") for c in candidates), key=said.count)


def _weigh(task: Jury, claims: list[tuple[str, str]], candidates: tuple[str, ...]) -> str:
    """The best vote on what the claims say."""
    heard: dict[str, list[int]] = {}
    for colour, piece in claims:
        heard.setdefault(piece, []).append(COLOURS.index(colour))
    return COLOURS[vote_on(task, heard)]
