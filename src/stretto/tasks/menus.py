"""What the menus and names of several families share."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TypeVar

from stretto.tasks.names import name_at
from stretto.tasks.words import number_word
from stretto.team.noise import key_of

TEAM_SIZES = 4
"""Most team sizes that are offered at once."""

Item = TypeVar("Item")


def team_sizes(most: int) -> tuple[str, ...]:
    """The team sizes that a lead is offered: `most`, and halves of it, smallest first, in words."""
    if most < 1:
        return ()
    sizes = {-(-most // 2**halving) for halving in range(TEAM_SIZES)}
    return tuple(number_word(size) for size in sorted(sizes))


def size_of(word: str) -> int:
    """The number that `number_word` spells so."""
    return _NUMBERS[word]


def shares(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Cut a sequence into `count` runs whose lengths differ by at most one."""
    cuts = [len(items) * share // count for share in range(count + 1)]
    return [items[start:end] for start, end in pairwise(cuts)]


def shuffled(items: Collection[str], seed: int, what: str) -> list[str]:
    """The items in an order that says nothing, fixed by the seed and by what they are for."""
    return sorted(items, key=lambda item: key_of(seed, f"{what} {item}"))


def deal(items: list[Item], key: int) -> None:
    """Put the items, in place, into an order that says nothing, fixed by a 64-bit key.

    Cheaper than `shuffled`: one key for all (Fisher and Yates, the key being read as digits of
    mixed radix). Every order of up to 17 items is as likely as any other, to one part in 10⁴.
    """
    for last in range(len(items) - 1, 0, -1):
        key, place = divmod(key, last + 1)
        items[last], items[place] = items[place], items[last]


def invented(seed: int, family: str, count: int) -> list[str]:
    """So many distinct names that mean nothing."""
    base = key_of(seed, family)
    return [name_at(base, index) for index in range(count)]


_NUMBERS = {number_word(number): number for number in range(1000)}
