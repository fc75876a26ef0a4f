"""Searches in `gather`: page by page every source on a cell, so that nobody need err."""

from itertools import chain, groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.bench.bands import SIZES
from stretto.policies.scripted import Scripted
from stretto.tasks.conformance import check_task
from stretto.tasks.gather import MOST_HITS, MOST_WRITES, Gather, instance_of
from stretto.tasks.gather.instance import standing
from stretto.tasks.gather.scripts import ROLES, scripts
from stretto.tasks.scripts import everyone, offered
from stretto.team.engine import rollout

CROWDED = {"redundancy": 10.0, "wrong": 1.0}
ODD = [
    {**CROWDED, "entities": 8},
    {**CROWDED, "entities": 1},
    {**CROWDED, "entities": 1, "attributes": 1, "cells_per_document": 12},
    {**CROWDED, "cells_per_document": 1},
    {**CROWDED, "cells_per_document": 12},
    {"entities": 5, "attributes": 8, "cells_per_document": 12, "redundancy": 6.0, "wrong": 1.0},
    {"entities": 4, "cells_per_document": 7, "redundancy": 3.0, "wrong": 0.7, "workers": 12},
    {"entities": 5, "redundancy": 1.0},
]
BANDS = [
    {name: value for name, value in spec.items() if name != "family"}
    for band, spec in SIZES["gather"].items()
    if band in ("10", "100")
]


def play(task, script="solo", seed=0):
    return rollout(task, scripts(task)[script], [seed])[0]


def turns(trace):
    return [(trace.text(e.decision.observation), e.decision) for e in trace.events if e.decision]


def searches(trace):
    return [e.attrs for e in trace.events if e.kind == "tool_result" and e.tool == "search"]


def test_a_crowded_cell_by_hand():
    """Ten documents about one cell: eight, then two."""
    task = Gather(entities=1, attributes=1, cells_per_document=1, **CROWDED)
    ((cell, truth),) = instance_of(task).truth.items()
    first, second = searches(play(task))
    assert (len(first["hits"]), first["more"]) == (8, 8)
    assert len(second["hits"]) == 2 and "more" not in second
    assert first["hits"].keys() | second["hits"].keys() == instance_of(task).documents.keys()
    shown = turns(play(task))
    assert set(shown[0][1].candidates) == {f"search {cell}", "spawn one", "submit as is"}
    found = "; ".join(f"{name}, {title}" for name, title in first["hits"].items())
    assert shown[1][0] == f"Open: one cell.\nSearched: {cell}.\nFound: {found}."
    reads = {f"read {name}" for name in first["hits"]}
    assert set(shown[1][1].candidates) == {*reads, "more", "submit as is"}
    texts = [e for e in play(task).events if e.kind == "tool_result" and e.tool == "search"]
    assert [play(task).text(e.content).endswith("; and more") for e in texts] == [True, False]
    assert shown[-2][1].choice == f"write {cell} {truth}"


@given(st.integers(0, 10**6), st.sampled_from(ODD))
@settings(max_examples=30, deadline=None)
def test_pages_show_every_source_on_a_cell_once(seed, size):
    task = Gather(**size, seed=seed)
    documents = instance_of(task).documents.values()
    for cell, group in groupby(searches(play(task)), key=lambda facts: facts["q"]):
        pages = list(group)
        names = list(chain.from_iterable(page["hits"] for page in pages))
        assert sorted(names) == sorted(d.name for d in documents if cell in d.statements)
        assert all(len(page["hits"]) <= MOST_HITS for page in pages)
        assert [page.get("more", 0) for page in pages] == [
            *range(MOST_HITS, MOST_HITS * len(pages), MOST_HITS), 0,
        ]  # fmt: skip


def test_the_order_of_hits_does_not_tell_what_is_right():
    """The rank says how short a text is and how its name is spelt: the best is seldom first."""
    first = total = 0
    for seed in range(20):
        task = Gather(entities=6, redundancy=6.0, seed=seed)
        for facts in searches(play(task)):
            ranks = [standing(title) for title in facts["hits"].values()]
            first += ranks.index(max(ranks)) < len(ranks) / 2
            total += 1
    assert 0.2 < first / total < 0.6


@pytest.mark.parametrize("size", [*BANDS, *ODD])
@pytest.mark.parametrize("script", ["oracle", "silent"])
def test_the_oracle_is_perfect_on_every_instance(size, script):
    for seed in range(10):
        task = Gather(**size, seed=1_000_000 + seed)
        assert play(task, script, seed).reward("outcome") == 1.0


def test_of_many_values_those_of_the_best_sources_are_offered():
    """Who has read all of a cell that seven values are stated of can still write the best."""

    def keen(ask):
        return offered(ask, "read", "more", "write", "search", "submit", "return")[0]

    task = Gather(entities=1, attributes=1, cells_per_document=1, seed=5, **CROWDED)
    ((cell, truth),) = instance_of(task).truth.items()
    said = {d.statements[cell] for d in instance_of(task).documents.values()}
    assert len(said) > MOST_WRITES
    (trace,) = rollout(task, everyone(ROLES, Scripted(keen)), [0])
    last = next(d for _, d in reversed(turns(trace)) if d.choice.startswith("write "))
    writes = [c for c in last.candidates if c.startswith("write ")]
    assert len(writes) == MOST_WRITES
    assert f"write {cell} {truth}" in writes


@pytest.mark.parametrize("size", [*BANDS, *ODD])
def test_every_size_conforms(size):
    check_task(Gather(**size, seed=3), episodes=8)
