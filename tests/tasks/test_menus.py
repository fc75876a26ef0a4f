"""The order of menus says nothing."""

from collections import Counter
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from stretto.tasks.menus import deal
from stretto.tasks.scripts import offered
from stretto.team.noise import key_of
from stretto.team.protocols import Ask


def dealt(items, key):
    deal(items, key)
    return items


def test_orders_by_hand():
    assert dealt(list("abc"), 0) == list("bca")  # 0 = 0 + 3 · 0
    assert dealt(list("abc"), 1) == list("cab")  # 1 = 1 + 3 · 0: b to the end, then c, a
    assert dealt(list("abc"), 5) == list("abc")  # 5 = 2 + 3 · 1: everything stays


@given(st.lists(st.integers()), st.integers(0, 2**64 - 1))
def test_nothing_is_lost_and_one_key_gives_one_order(items, key):
    assert dealt(list(items), key) == dealt(list(items), key)
    assert sorted(dealt(list(items), key)) == sorted(items)


def test_every_order_is_as_likely():
    assert {tuple(dealt(list("abcd"), key)) for key in range(24)} == set(permutations("abcd"))
    counts = Counter(tuple(dealt(list("abcd"), key_of(3, f"{n}"))) for n in range(24_000))
    assert max(abs(counts[order] - 1_000) for order in permutations("abcd")) < 4.5 * 1_000**0.5


def test_candidates_are_found_by_their_verb():
    ask = Ask("0#0", "", "", ("more", "read b", "write x one", "reading", "read a"), "lead", 0)
    assert offered(ask, "write", "read") == ["write x one", "read b", "read a"]
    assert offered(ask, "more") == ["more"]
    assert offered(ask, "submit") == []
