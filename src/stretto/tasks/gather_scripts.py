"""Scripted policies for `gather`: a team, one agent alone, and chance.

They are rules for `stretto.policies.scripted.Scripted`, and see what any policy sees. The first two
search for every cell, read until no unread hit is a better source than the best one read, and write
what that says; so they fill the table rightly wherever a search finds the best source on its cell.
"""

from collections.abc import Mapping

from stretto.policies.scripted import Scripted
from stretto.tasks.gather_instance import standing
from stretto.team.protocols import Ask, Policy


def team() -> Mapping[str, Policy]:
    """The lead sends as many workers as it may, fills itself what they leave, and submits."""
    policy = Scripted(_send_or_work, "gather-team")
    return {"lead": policy, "worker": policy}


def solo() -> Mapping[str, Policy]:
    """The lead does everything itself."""
    return {"lead": Scripted(_work, "gather-solo")}


def random() -> Mapping[str, Policy]:
    """Every agent picks any candidate, all alike."""
    policy = Scripted(lambda ask: ask.candidates[ask.key % len(ask.candidates)], "gather-random")
    return {"lead": policy, "worker": policy}


def _send_or_work(ask: Ask) -> str:
    spawns = [candidate for candidate in ask.candidates if candidate.startswith("spawn ")]
    return spawns[-1] if spawns else _work(ask)


def _work(ask: Ask) -> str:
    """Read the best hit while it beats what was read, else write, else search on, else finish."""
    focus, hits, notes = _parse(ask.prompt)
    own = {f"write {cell} {value}": title for cell, value, title in notes if cell == focus}
    best_hit = max(hits, key=lambda name: standing(hits[name]), default=None)
    best_note = max(own, key=lambda choice: standing(own[choice]), default=None)
    if best_hit and (not best_note or standing(hits[best_hit]) > standing(own[best_note])):
        return f"read {best_hit}"
    if best_note:
        return best_note
    searches = (candidate for candidate in ask.candidates if candidate.startswith("search "))
    return next(searches, ask.candidates[-1])


def _parse(prompt: str) -> tuple[str, dict[str, str], list[tuple[str, str, str]]]:
    """The cell in focus, unread hits with their titles, and what was read (cell, value, title)."""
    focus, hits, notes = "", dict[str, str](), list[tuple[str, str, str]]()
    for line in prompt.splitlines():
        label, _, rest = line.rstrip(".").partition(": ")
        left, _, title = rest.partition(", ")
        if label == "Searched":
            focus = rest
        elif label == "Found":
            hits[left] = title
        elif label == "Read":
            cell, _, value = left.rpartition(" ")
            notes.append((cell, value, title))
    return focus, hits, notes
