"""Scripted policies for `gather`; they see what any policy sees.

They search for every cell, read until no unread hit is a better source than the best one read,
search on where there are more hits, and write what the best one says. A search shows every source
on its cell in the end, so they fill the table rightly, whatever the instance.

| script | what it does |
|---|---|
| `oracle` | the lead sends as many workers as it may, fills itself what they leave, and submits |
| `greedy` | as the oracle, but writes what the first source says |
| `solo` | the lead does everything itself |
| `silent` | the same: who tells nobody anything works alone |
| `blind` | picks by the number of its turn only |
| `random` | picks any candidate, all alike |
"""

from collections.abc import Iterator, Mapping

from stretto.policies.scripted import Scripted
from stretto.tasks.gather import RETURN, SUBMIT, Gather, instance_of
from stretto.tasks.gather.instance import standing
from stretto.tasks.menus import size_of
from stretto.tasks.scripts import Yardstick, anybody, blind, everyone, offered
from stretto.tasks.topology import CRITIC, LEAD, SUBLEAD, WORKER
from stretto.team.protocols import Ask, Policy

ROLES = (LEAD, CRITIC, SUBLEAD, WORKER)
"""Every role of every topology."""


def scripts(task: Gather) -> Mapping[str, Mapping[str, Policy]]:
    """Every script by its name: role to policy."""
    return {
        "oracle": team(),
        "greedy": everyone(ROLES, Scripted(_hasty, "gather-greedy")),
        "solo": solo(),
        "silent": solo(),
        "blind": everyone(ROLES, Scripted(blind, "gather-blind")),
        "random": random(),
    }


def yardstick(task: Gather) -> Yardstick:
    """The values are hidden at first; one agent can fill the table alone, only more slowly."""
    instance = instance_of(task)
    entities = {cell.partition(" ")[0] for cell in instance.truth}
    return Yardstick(
        best=1.0,
        hidden=frozenset(instance.truth.values()),
        names=frozenset(entities | instance.documents.keys()),
        solved_by=frozenset({"silent"}),
    )


def team() -> Mapping[str, Policy]:
    """The lead sends as many workers as it may, fills itself what they leave, and submits."""
    return everyone(ROLES, Scripted(_send_or_work, "gather-team"))


def solo() -> Mapping[str, Policy]:
    """The lead does everything itself."""
    return {"lead": Scripted(_work, "gather-solo")}


def random() -> Mapping[str, Policy]:
    """Every agent picks any candidate, all alike."""
    return everyone(ROLES, Scripted(anybody, "gather-random"))


def _send_or_work(ask: Ask) -> str:
    for wanted in ("report", "pass", "read memory"):
        if wanted in ask.candidates:
            return wanted
    return _largest(ask) or _work(ask)


def _largest(ask: Ask) -> str | None:
    """The choice that sends most workers, if any."""
    return max(offered(ask, "spawn"), key=lambda choice: size_of(choice[6:]), default=None)


def _hasty(ask: Ask) -> str:
    """Write what was read, else read what was found, else search on, else finish or hand up."""
    found = offered(ask, "write", "read", "search", "report", "pass")
    return _largest(ask) or (found[0] if found else _end(ask))


def _work(ask: Ask) -> str:
    """Read the best hit while it beats what was read, else write, else search on, else finish."""
    focus, hits, notes = _parse(ask.prompt)
    own = {f"write {cell} {value}": title for cell, value, title in notes if cell == focus}
    best_hit = max(hits, key=lambda name: standing(hits[name]), default=None)
    best_note = max(own, key=lambda choice: standing(own[choice]), default=None)
    if best_hit and (not best_note or standing(hits[best_hit]) > standing(own[best_note])):
        return f"read {best_hit}"
    if "more" in ask.candidates:
        return "more"
    if best_note:
        return best_note
    searches = offered(ask, "search")
    return searches[0] if searches else _end(ask)


def _end(ask: Ask) -> str:
    """The choice that ends the agent's work."""
    return SUBMIT if SUBMIT in ask.candidates else RETURN


def _parse(prompt: str) -> tuple[str, dict[str, str], list[tuple[str, str, str]]]:
    """The cell in focus, unread hits with their titles, and what was read (cell, value, title)."""
    focus, hits, notes = "", dict[str, str](), list[tuple[str, str, str]]()
    for line in prompt.splitlines():
        label, _, rest = line.rstrip(".").partition(": ")
        if label == "Searched":
            focus = rest
        elif label == "Found":
            hits = dict(_pairs(rest))
        elif label == "Read":
            notes = [(*_said(left), title) for left, title in _pairs(rest)]
    return focus, hits, notes


def _said(left: str) -> tuple[str, str]:
    """A cell and its value."""
    cell, _, value = left.rpartition(" ")
    return cell, value


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    """What stands before a title, and the title."""
    for item in rest.split("; "):
        left, _, title = item.partition(", ")
        yield left, title
