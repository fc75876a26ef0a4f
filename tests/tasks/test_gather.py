"""The WideTable family: instances, the game, replay, and what agents can and cannot know."""

import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import encode
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks import topology
from stretto.tasks.gather import RETURN, SUBMIT, Gather, instance_of
from stretto.tasks.gather import instance as gather_instance
from stretto.tasks.gather import scripts as gather_scripts
from stretto.tasks.gather.instance import VOCABULARY, Document, Index, standing
from stretto.tasks.names import NAMES
from stretto.team.engine import rollout
from stretto.team.protocols import Ask, Policy
from stretto.team.replay import fork, replay
from stretto.trace import Trace, content_hash

ONE_CELL = Gather(entities=1, attributes=1, cells_per_document=1, redundancy=1)
VALUES = {value for values in VOCABULARY.values() for value in values}


def busy() -> Mapping[str, Policy]:
    """Any candidate but the one that would end the agent's work, while there is another."""

    def rule(ask: Ask) -> str:
        going = [choice for choice in ask.candidates if choice not in (SUBMIT, RETURN)]
        return going[ask.key % len(going)] if going else ask.candidates[0]

    return dict.fromkeys(gather_scripts.ROLES, Scripted(rule))


SCRIPTS = {
    "team": gather_scripts.team,
    "solo": gather_scripts.solo,
    "random": gather_scripts.random,
    "busy": busy,
}


def run(task: Gather, script: str = "team", seed: int = 0) -> Trace:
    return rollout(task, SCRIPTS[script](), [seed])[0]


def test_one_cell_by_a_team_by_hand() -> None:
    trace = run(ONE_CELL)
    assert [(event.agent, event.kind, event.start) for event in trace.events] == [
        ("0", "decision", 0.0),
        ("0", "spawn", 0.0),
        ("0/0", "decision", 0.0),
        ("0/0", "tool_call", 0.0),  # search
        ("0/0", "tool_result", 1.0),
        ("0/0", "decision", 1.0),
        ("0/0", "tool_call", 1.0),  # read
        ("0/0", "tool_result", 3.0),
        ("0/0", "decision", 3.0),
        ("0/0", "tool_call", 3.0),  # write
        ("0/0", "tool_result", 3.1),
        ("0/0", "decision", 3.1),
        ("0/0", "return", 3.1),
        ("0/0", "despawn", 3.1),
        ("0", "decision", 3.1),
        ("0", "aggregate", 3.1),
        ("0", "tool_call", 3.1),  # submit
        ("0", "tool_result", 3.2),
        ("0", "stop", 3.2),
    ]
    assert {score.channel: score.value for score in trace.scores} == {
        "outcome": 1.0,
        "item_f1": 1.0,
        "row_f1": 1.0,
        "success": 1.0,
    }


def test_what_a_lone_worker_reads_and_may_do() -> None:
    trace = run(ONE_CELL)
    ((cell, value),) = instance_of(ONE_CELL).truth.items()
    (document,) = instance_of(ONE_CELL).documents.values()
    turns = [e.decision for e in trace.events if e.decision and e.agent == "0/0"]
    assert [(trace.text(turn.observation), set(turn.candidates)) for turn in turns] == [
        ("Open: one cell.", {f"search {cell}", "return as is"}),
        (
            f"Open: one cell.\nSearched: {cell}.\nFound: {document.name}, {document.title}.",
            {f"read {document.name}", "return as is"},
        ),
        (
            f"Open: one cell.\nSearched: {cell}.\nRead: {cell} {value}, {document.title}.",
            {f"write {cell} {value}", "return as is"},
        ),
        ("Open: no cells.", {"return as is"}),
    ]
    assert trace.text(trace.events[-1].content) == "The table has one cell filled."


def test_one_cell_alone_by_hand() -> None:
    trace = run(ONE_CELL, "solo")
    choices = [event.decision.choice for event in trace.events if event.decision]
    ((cell, value),) = instance_of(ONE_CELL).truth.items()
    (name,) = instance_of(ONE_CELL).documents
    assert choices == [f"search {cell}", f"read {name}", f"write {cell} {value}", "submit as is"]
    assert not any(event.kind == "aggregate" for event in trace.events)
    assert trace.reward("success") == 1.0


def test_two_sources_that_disagree() -> None:
    task = Gather(entities=1, attributes=1, cells_per_document=1, redundancy=2, wrong=1, seed=3)
    documents = sorted(instance_of(task).documents.values(), key=lambda d: standing(d.title))
    ((cell, truth),) = instance_of(task).truth.items()
    assert documents[0].statements[cell] != truth == documents[1].statements[cell]
    assert run(task, "solo").reward("success") == 1.0


@pytest.mark.parametrize("script", ["team", "solo"])
@pytest.mark.parametrize("seed", range(5))
def test_the_scripts_fill_the_table_rightly(script: str, seed: int) -> None:
    assert run(Gather(seed=seed), script).reward("success") == 1.0


def test_what_workers_leave_is_done_by_the_lead() -> None:
    lazy = Scripted(lambda ask: RETURN)
    (trace,) = rollout(Gather(), {**gather_scripts.team(), "worker": lazy}, [0])
    assert sum(event.kind == "spawn" for event in trace.events) == 4
    assert trace.reward("success") == 1.0


def test_chance_does_badly() -> None:
    outcomes = [run(Gather(), "random", seed).reward("outcome") or 0.0 for seed in range(20)]
    assert sum(outcomes) / 20 < 0.2


@given(
    st.sampled_from(sorted(SCRIPTS)),
    st.sampled_from(topology.NAMES),
    st.integers(0, 99),
    st.integers(0, 99),
)
@settings(max_examples=40, deadline=None)
def test_replay_diverges_nowhere(script: str, name: str, instance: int, seed: int) -> None:
    task = Gather(seed=instance, entities=4, topology=name)
    trace = run(task, script, seed)
    assert replay(trace, task) is None
    assert replay(replace(trace, contents={}), task) is None  # texts may be dropped


def test_another_instance_is_noticed() -> None:
    with pytest.raises(StrettoError, match="another seed: 1"):
        replay(run(Gather(seed=1)), Gather(seed=2))


def test_a_fork_that_changes_nothing_is_the_same_episode() -> None:
    task = Gather(entities=3)
    trace = run(task, "busy", seed=5)
    for event in trace.events:
        branch = fork(trace, task, event.id, busy())
        assert (branch.events, branch.edges, branch.scores, branch.contents) == (
            trace.events,
            trace.edges,
            trace.scores,
            trace.contents,
        )


@given(st.sampled_from(topology.NAMES), st.integers(0, 99), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_agents_know_only_what_reached_them(name: str, instance: int, seed: int) -> None:
    """Every value and every document that an agent meets came by an earlier event of its own."""
    task = Gather(seed=instance, topology=name)
    trace = run(task, "busy", seed)
    names = set(instance_of(task).documents)
    known: dict[str, set[str]] = {agent.id: set() for agent in trace.agents}
    for event in trace.events:
        if event.decision:
            shown = f"{trace.text(event.decision.observation)} {event.decision.candidates}"
            met = set(_words(shown)) & (VALUES | names)
            assert met <= known[event.agent]
        elif event.kind in ("tool_result", "return", "message"):
            receiver = event.agent if event.kind == "tool_result" else event.to
            known[receiver or ""].update(_words(trace.text(event.content) or ""))


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


@given(st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_menus_are_small_and_typed(seed: int) -> None:
    for script in ("busy", "team"):
        task = Gather(workers=999, entities=20, redundancy=1 + seed % 10, seed=seed)
        trace = run(task, script, seed)
        for event in trace.events:
            if event.decision:
                assert len(event.decision.candidates) <= 4 + 8 + 1 + 3 + 1  # the last ends
                spawns = (event.decision.choice or "").startswith("spawn ")
                assert (event.decision.type == "spawn") == spawns


def test_the_lead_may_send_halves_of_the_most() -> None:
    decision = run(Gather(workers=299, entities=299, attributes=1)).events[0].decision
    assert decision is not None
    assert {choice for choice in decision.candidates if not choice.startswith("search ")} == {
        "spawn thirty-eight",
        "spawn seventy-five",
        "spawn one hundred fifty",
        "spawn two hundred ninety-nine",
        "submit as is",
    }


def test_shares_are_disjoint_and_complete() -> None:
    trace = run(Gather(workers=5))
    shares = [event.attrs["cells"] for event in trace.events if event.kind == "spawn"]
    assert [len(share) for share in shares] == [3, 4, 3, 4, 4]
    assert list(chain.from_iterable(shares)) == list(instance_of(Gather()).truth)
    assert trace.text(trace.events[1].content) == f"Find {', '.join(shares[0])}."


def test_three_hundred_agents() -> None:
    task = Gather(entities=299, attributes=4, cells_per_document=4, workers=299)
    trace = run(task)
    assert len(trace.agents) == 300
    assert len(trace.events) >= 4000
    assert trace.reward("outcome") == 1.0


def test_threads_share_an_instance() -> None:
    task = Gather(seed=11)
    with ThreadPoolExecutor(2) as pool:
        traces = [run(task), *pool.map(lambda seed: run(task, seed=seed), range(4))]
    assert all(trace.events == traces[0].events for trace in traces)


def test_an_episode_without_submission_is_not_scored() -> None:
    task = Gather()
    assert task.scores(task.begin(0)) == {}


def test_ids_tell_instances_apart() -> None:
    assert Gather(seed=7).id == "gather/7"
    assert Gather(seed=7, workers=9, wrong=0.5).id == "gather/7,wrong=0.5,workers=9"


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 8), st.integers(1, 12))
def test_the_best_source_on_a_cell_is_right(
    seed: int, entities: int, attributes: int, size: int
) -> None:
    task = Gather(
        seed=seed, entities=entities, attributes=attributes, cells_per_document=size, wrong=1
    )
    instance = instance_of(task)
    for cell, value in instance.truth.items():
        sources = [d for d in instance.documents.values() if cell in d.statements]
        best = max(standing(document.title) for document in sources)
        assert {d.statements[cell] for d in sources if standing(d.title) == best} == {value}
        assert all(d.statements[cell] == value for d in sources if d.name in instance.planted)


def test_documents_are_as_many_as_asked_and_no_larger() -> None:
    instance = instance_of(Gather(entities=7, redundancy=2.5))
    assert len(instance.documents) == round(7 * 2.5)
    assert max(len(document.statements) for document in instance.documents.values()) == 3


def test_no_copy_is_wrong_where_none_may_be() -> None:
    instance = instance_of(Gather(wrong=0))
    for document in instance.documents.values():
        assert document.statements.items() <= instance.truth.items()


def test_names_are_distinct_and_mean_nothing() -> None:
    names = {gather_instance.name_at(12345, index) for index in range(NAMES)}
    assert len(names) == NAMES
    words = VALUES | set(VOCABULARY) | set(gather_instance.SOURCES)
    assert not names & words


def test_instances_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from msgspec.json import encode; from stretto.trace import content_hash;"
        "from stretto.tasks.gather import RETURN, SUBMIT, Gather, instance_of;"
        "print(content_hash(encode(instance_of(Gather())).decode()))"
    )
    here = content_hash(encode(instance_of(Gather())).decode())
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here
    assert here == "3c92679cbb48ccc8f58473c3696b756f"


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"entities": 0}, "entities"),
        ({"attributes": 9}, "attributes"),
        ({"cells_per_document": 0}, "cells_per_document"),
        ({"redundancy": 0.5}, "redundancy"),
        ({"wrong": float("nan")}, "wrong"),
        ({"workers": 1000}, "workers"),
        ({"worker_cost": -1.0}, "worker_cost"),
        ({"second_cost": -1.0}, "second_cost"),
        ({"entities": 30_000}, "entities"),
    ],
)
def test_impossible_rules_are_refused(parameters: dict[str, float], name: str) -> None:
    with pytest.raises(StrettoError) as caught:
        Gather(**parameters)  # type: ignore[arg-type]
    assert caught.value.where == f"task.{name}"


DOCUMENTS = (
    Document("one", 3, 7, {"tavok colour": "red", "tavok metal": "tin"}),
    Document("two", 0, 2, {"tavok colour": "blue"}),
    Document("three", 1, 9, {"milus colour": "red"}),
)


def test_search_ranks_by_relevance() -> None:
    index = Index(DOCUMENTS)
    assert index.search("tavok colour", 4) == ["two", "one"]  # the shorter text first
    assert index.search("tavok colour", 1) == ["two"]
    assert index.search("tavok colour", 4, 1) == ["one"]
    assert index.search("colour tavok", 4) == []


@pytest.mark.parametrize("query", ["", '"', 'tavok" OR "milus', "colour NOT red", "a AND ("])
def test_search_takes_any_text(query: str) -> None:
    assert Index(DOCUMENTS).search(query, 4) == []


def test_texts_read_as_they_should() -> None:
    assert DOCUMENTS[0].text == "register seven: tavok colour red. tavok metal tin."
    assert standing(DOCUMENTS[0].title) > standing("register six")
    assert standing("survey one") > standing("letter nine")


def test_a_python_without_full_text_search_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(gather_instance.sqlite3.Connection):
        def execute(self, sql: str, *arguments: object) -> gather_instance.sqlite3.Cursor:
            raise gather_instance.sqlite3.OperationalError("no such module: fts5")

    def connect(path: str, check_same_thread: bool) -> Plain:
        return Plain(path, check_same_thread=check_same_thread)

    monkeypatch.setattr(gather_instance.sqlite3, "connect", connect)
    with pytest.raises(StrettoError, match="no such module: fts5"):
        Index(DOCUMENTS)
