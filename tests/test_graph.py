from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.graph import ancestors, children, cone, critical_path, topological_order
from stretto.trace import Trace

from .examples import chain, event, trace
from .strategies import examples

#     b(3)
#   /      \
# a(1)      d(2) ─ e(?)        f(6) stands alone
#   \      /
#     c(3)
DIAMOND_EDGES = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")]
DIAMOND = trace(
    event("a", duration=1.0),
    event("b", duration=3.0),
    event("c", duration=3.0),
    event("d", duration=2.0),
    event("e"),
    event("f", duration=6.0),
    edges=DIAMOND_EDGES,
)


def path_of(given, weight=None):
    found = critical_path(given, weight)
    return found.seconds, [given.events[row].id for row in found.rows]


def test_record_order_is_kept_where_it_is_one_already():
    assert topological_order(DIAMOND).tolist() == [0, 1, 2, 3, 4, 5]


def test_causes_come_first_whatever_the_record_order():
    given = trace(event("d"), event("c"), event("b"), event("a"), edges=chain("a", "b", "c", "d"))
    assert topological_order(given).tolist() == [3, 2, 1, 0]


def test_an_empty_trace_has_an_empty_order_and_no_path():
    assert topological_order(Trace(id="t")).tolist() == []
    assert path_of(Trace(id="t")) == (0.0, [])


@pytest.mark.parametrize(
    ("edges", "loop"),
    [
        ([("a", "a")], "a → a"),
        ([("a", "b"), ("b", "a")], "a → b → a"),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")], "b → c → d → b"),
        ([("b", "c"), ("c", "b"), ("b", "a"), ("a", "d")], "b → c → b"),
    ],
)
def test_a_loop_is_named_in_the_direction_of_its_edges(edges, loop):
    looped = trace(*map(event, "abcd"), edges=edges)
    for view in (topological_order, critical_path):
        with pytest.raises(StrettoError) as error:
            view(looped)
        assert error.value.where == "t"
        named = error.value.what.partition(": ")[2].split(" → ")
        assert named[0] == named[-1]
        assert set(pairwise(named)) == set(pairwise(loop.split(" → ")))


def test_a_long_loop_is_named_by_both_ends_and_at_once():
    ids = [f"e{row}" for row in range(30_000)]
    looped = trace(*map(event, ids), edges=[*chain(*ids), (ids[-1], ids[0])])
    with pytest.raises(StrettoError) as error:
        topological_order(looped)
    named = error.value.what.partition(": ")[2].split(" → ")
    assert len(named) == 12
    assert named[0] == named[-1]
    assert named[9] == f"… {30_001 - 11} more …"


def test_ancestors_and_cone_by_hand():
    assert ancestors(DIAMOND, "d") == {"a", "b", "c"}
    assert ancestors(DIAMOND, "a") == ancestors(DIAMOND, "f") == set()
    assert cone(DIAMOND, "b") == {"d", "e"}
    assert cone(DIAMOND, "a") == {"b", "c", "d", "e"}
    assert cone(DIAMOND, "e") == cone(DIAMOND, "f") == set()


def test_cones_work_on_loops_and_leave_out_the_event_itself():
    looped = trace(*map(event, "abc"), edges=[("a", "b"), ("b", "a"), ("b", "c")])
    assert cone(looped, "a") == {"b", "c"}
    assert ancestors(looped, "a") == {"b"}
    assert ancestors(looped, "c") == {"a", "b"}


@pytest.mark.parametrize("view", [ancestors, cone])
def test_a_view_from_no_event_is_an_error(view):
    with pytest.raises(StrettoError, match='t: no event "z"'):
        view(DIAMOND, "z")


def test_children_are_the_effects_of_each_row():
    offsets, target = children(DIAMOND.columns)
    rows = [target[offsets[row] : offsets[row + 1]].tolist() for row in range(6)]
    assert rows == [[1, 2], [3], [3], [4], [], []]


def test_the_critical_path_of_the_diamond():
    """1 + 3 + 2 beats nothing but ties with the lone 6; the tie goes to what ends last."""
    assert path_of(DIAMOND) == (6.0, ["f"])


def test_unknown_durations_weigh_nothing_but_stay_on_the_path():
    seconds, path = path_of(trace(*DIAMOND.events[:5], edges=DIAMOND_EDGES))
    assert seconds == 6.0
    assert path in (["a", "b", "d", "e"], ["a", "c", "d", "e"])


def test_a_chain_is_as_long_as_its_sum_and_parallel_events_as_the_longest():
    three = [event(name, duration=d) for name, d in zip("abc", (1.0, 2.0, 4.0), strict=True)]
    assert path_of(trace(*three, edges=chain("a", "b", "c")))[0] == 7.0
    assert path_of(trace(*three)) == (4.0, ["c"])


def test_the_critical_path_can_be_taken_on_other_weights():
    weight = np.array([0.0, 5.0, 0.0, 1.0, 1.0, 2.0])
    assert path_of(DIAMOND, weight) == (7.0, ["a", "b", "d", "e"])


def spans(*rows):
    """A chain of events of these starts and ends."""
    events = [event(f"e{n}", start=s, duration=e - s) for n, (s, e) in enumerate(rows)]
    return critical_path(trace(*events, edges=chain(*(each.id for each in events)))).seconds


@pytest.mark.parametrize(
    ("rows", "seconds"),
    [
        ([(0.0, 2.0), (2.0, 5.0)], 5.0),
        ([(0.0, 2.0), (3.0, 6.0)], 5.0),
        ([(0.0, 4.0), (1.0, 6.0)], 6.0),
        ([(0.0, 4.0), (1.0, 2.0)], 4.0),
        ([(0.0, 4.0), (1.0, 3.0), (3.0, 9.0)], 9.0),
        ([(5.0, 7.0), (0.0, 1.0)], 2.0),
    ],
    ids=["touching", "a gap", "an overlap", "inside", "two overlaps", "clocks that disagree"],
)
def test_time_in_which_cause_and_effect_both_run_counts_once(rows, seconds):
    assert spans(*rows) == seconds


def test_a_deep_chain_is_no_problem():
    ids = [f"e{index}" for index in range(20_000)]
    deep = trace(*(event(name, duration=1.0) for name in reversed(ids)), edges=chain(*ids))
    assert critical_path(deep).seconds == 20_000
    assert len(cone(deep, "e0")) == 19_999


@st.composite
def graphs(draw):
    """Durations and starts (some unknown), edges to higher names, records in any order."""
    size = draw(st.integers(1, 6))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    durations = draw(
        st.lists(st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.25]), min_size=size, max_size=size)
    )
    times = st.none() | st.sampled_from([0.0, 0.25, 1.0, 1.5, 3.0])
    starts = draw(st.lists(times, min_size=size, max_size=size))
    order = draw(st.permutations(range(size)))
    return list(zip(starts, durations, strict=True)), edges, order


def build(rows, edges, order):
    events = [event(str(index), "decision", *rows[index]) for index in order]
    return trace(*events, edges=[(str(a), str(b)) for a, b in edges])


def all_chains(size, edges):
    """Every chain of causes, by enumeration."""
    chains = [[row] for row in range(size)]
    for row in chains:
        chains.extend([*row, b] for a, b in edges if a == row[-1])
    return chains


def seconds_of(chain, rows):
    """Sum of durations, less what each effect began before its cause was over."""
    total = sum(rows[row][1] or 0.0 for row in chain)
    for cause, effect in pairwise(chain):
        (start, duration), (later, _) = rows[cause], rows[effect]
        if start is not None and later is not None and duration:
            total -= min(max(start + duration - later, 0.0), duration)
    return total


@examples(150)
@given(graphs())
def test_the_critical_path_equals_brute_force(graph):
    rows, edges, _ = graph
    chains = all_chains(len(rows), edges)
    given = build(*graph)
    found = critical_path(given)
    path = [int(given.events[row].id) for row in found.rows]
    assert found.seconds == pytest.approx(max(seconds_of(each, rows) for each in chains))
    assert path in chains
    assert seconds_of(path, rows) == pytest.approx(found.seconds)


@examples(60)
@given(graphs())
def test_record_order_does_not_change_the_seconds(graph):
    rows, edges, _ = graph
    in_order = build(rows, edges, range(len(rows)))
    assert critical_path(build(*graph)).seconds == critical_path(in_order).seconds


@examples(60)
@given(graphs())
def test_order_and_cones_agree_with_the_edges(graph):
    rows, edges, _ = graph
    given = build(*graph)
    order = [int(given.events[row].id) for row in topological_order(given)]
    assert sorted(order) == list(range(len(rows)))
    assert all(order.index(a) < order.index(b) for a, b in edges)
    chains = all_chains(len(rows), edges)
    for row in range(len(rows)):
        below = {str(each[-1]) for each in chains if each[0] == row} - {str(row)}
        above = {str(each[0]) for each in chains if each[-1] == row} - {str(row)}
        assert cone(given, str(row)) == below
        assert ancestors(given, str(row)) == above
