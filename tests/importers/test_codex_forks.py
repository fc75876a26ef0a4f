"""Codex rollouts that copy records of another thread, and rollouts that are damaged."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import import_paths
from stretto.importers.codex.importer import import_files
from stretto.trace import Tokens

from .rollouts import (
    CHILD,
    ROOT,
    asked,
    calls,
    complete,
    item,
    kinds,
    meta,
    only,
    output,
    says,
    spawned,
    started,
    tokens,
    told,
    write,
)

OLD, OWN = "01500000-0000-7000-8000-000000000000", "02500000-0000-7000-8000-000000000000"
"""Turns that began before and after the child was born."""


def forked_child(extra_meta, own_turn=OWN, old_turn=OLD, **own):
    """A child whose first records are its parent's, with the times of its own birth."""
    return [
        spawned(5, CHILD, ROOT, forked_from_id=ROOT, **extra_meta),
        meta(0, ROOT),
        started(5, old_turn),
        asked(5, "Go."),
        says(5, "I spawn."),
        calls(5, "spawn_agent", "s", message="look", fork_context=True),
        tokens(5, total=500, last=500),
        started(6, own_turn, **own),
        told(6, "<environment_context>x</environment_context>"),
        asked(6, "look"),
        tokens(6, total=500, last=500),
        says(7, "found"),
        tokens(7, total=20, last=20, out=3),
        complete(8, own_turn, "found"),
    ]


def parent(tmp_path):
    return write(
        tmp_path / "rollout-parent.jsonl",
        meta(0, ROOT),
        started(1, OLD),
        asked(1, "Go."),
        says(2, "I spawn."),
        calls(3, "spawn_agent", "s", message="look", fork_context=True),
        output(5, "s", {"agent_id": CHILD}),
        tokens(5, total=500, last=500),
    )


@pytest.mark.parametrize("rule", ["ordinal", "turn id", "start", "attribution"])
def test_replayed_records_are_cut(tmp_path, rule):
    """Six records of the parent are not the child's; its counter starts anew."""
    names = {"old_turn": "t1", "own_turn": "t2"} if rule in ("start", "attribution") else {}
    meta_fields = {"subagent_history_start_ordinal": 8} if rule == "ordinal" else {}
    own = {"started_at": 1767225606} if rule == "start" else {}  # second 6 of the trace
    if rule == "attribution":
        own = {"turn_attribution": {"parent_turn_id": "t1"}}
    records = []
    for each in forked_child(meta_fields, **names, **own):
        records.extend(each if isinstance(each, list) else [each])
    if rule == "ordinal":
        records = [each | {"ordinal": n} for n, each in enumerate(records)]
    path = write(tmp_path / "rollout-child.jsonl", *records)
    imported = import_paths([parent(tmp_path), path], "codex")
    (trace,) = imported.traces
    assert kinds(trace, "0/0") == ["decision", "return"]
    (turn,) = (e for e in trace.events if e.agent == "0/0" and e.kind == "decision")
    assert turn.tokens == Tokens(input=20, cache_read=0, output=3)
    assert sum(e.kind == "spawn" for e in trace.events) == 1
    assert [each.duplicates for each in imported.report if each.file == str(path)] == [6]


def by_ordinal(first, *records):
    """A child that says where its own records begin, and nothing of a fork."""
    child = spawned(5, CHILD, ROOT, subagent_history_start_ordinal=first)
    return [each | {"ordinal": n} for n, each in enumerate([child, *records])]


def test_the_ordinal_alone_says_what_is_replayed(tmp_path):
    path = write(
        tmp_path / "rollout-child.jsonl",
        *by_ordinal(4, told(5, "Go."), says(5, "I spawn."), tokens(5, total=500, last=500)),
        *[each | {"ordinal": n} for n, each in enumerate([says(7, "found"), tokens(7, 20, 20)], 4)],
    )
    trace = only(path)
    (turn,) = (e for e in trace.events if e.kind == "decision")
    assert (trace.text(turn.content), turn.tokens.input) == ("found", 20)
    assert trace.agents[-1].attrs["replayed_records"] == 3


def test_a_child_that_did_nothing_yet_has_only_replayed_records(tmp_path):
    path = write(tmp_path / "rollout-child.jsonl", *by_ordinal(9, told(5, "Go."), says(5, "a")))
    imported = import_paths([path], "codex")
    assert [each.duplicates for each in imported.report] == [2]
    assert not imported.traces[0].events


def test_a_child_without_history_is_not_cut(tmp_path):
    path = write(tmp_path / "rollout-child.jsonl", *by_ordinal(1, told(5, "look"), says(6, "a")))
    assert kinds(only(path), "0/0") == ["decision"]


def test_a_fork_of_a_person_is_a_trace_of_its_own(tmp_path):
    fork = write(
        tmp_path / "rollout-fork.jsonl",
        meta(5, CHILD, forked_from_id=ROOT, session_id=ROOT, source="cli"),
        meta(0, ROOT),
        started(5, OLD),
        asked(5, "Go."),
        says(5, "I spawn."),
        tokens(5, total=500, last=500),
        started(6, OWN),
        asked(6, "Again."),
        tokens(6, total=500, last=500),
        says(7, "b"),
        tokens(7, total=620, last=120),
    )
    one, other = import_paths([parent(tmp_path), fork], "codex").traces
    assert other.attrs["forked_from"] == ROOT and "forked_from" not in one.attrs
    assert [agent.id for agent in other.agents] == ["0"]
    assert kinds(other, "0") == ["human", "decision"]
    assert other.events[1].tokens.input == 120


def test_two_threads_in_one_file(tmp_path):
    """A recorder joined a session and its fork: a `session_meta` of a stranger begins a thread."""
    path = write(
        tmp_path / "joined.jsonl",
        meta(0, ROOT),
        started(1, OLD),
        says(2, "a"),
        meta(5, CHILD, forked_from_id=ROOT),
        meta(0, ROOT),
        started(5, OLD),
        says(5, "a"),
        started(6, OWN),
        says(7, "b"),
    )
    one, other = import_paths([path], "codex").traces
    assert (one.id, kinds(one, "0")) == (ROOT, ["decision"])
    assert (other.id, other.text(other.events[0].content)) == (CHILD, "b")


def test_a_child_without_its_parent_is_a_child_all_the_same(tmp_path):
    path = write(
        tmp_path / "rollout-child.jsonl",
        spawned(2, CHILD, ROOT, path="/root/x"),
        started(2, OWN),
        asked(2, "look"),
        says(4, "found"),
        complete(5, OWN, "found"),
    )
    imported = import_paths([path], "codex")
    (trace,) = imported.traces
    ghost, child = trace.agents
    assert (ghost.id, ghost.attrs["transcript"]) == ("0", False)
    assert (child.parent, trace.text(child.attrs["prompt"])) == ("0", "look")
    assert kinds(trace, "0/0") == ["decision", "return"]  # its task is no human input
    assert "no spawn is recorded" in str(imported.report[0].warnings[0])


def test_a_lost_output_is_bridged_by_the_prompt(tmp_path):
    first = write(
        tmp_path / "rollout-a.jsonl", meta(0, ROOT), calls(1, "spawn_agent", "s", message="look")
    )
    write(tmp_path / "rollout-b.jsonl", spawned(2, CHILD, ROOT), asked(2, "look"), says(3, "x"))
    trace = only(first)
    (edge,) = (edge for edge in trace.edges if edge.label == "spawn")
    assert edge.evidence == "heuristic"


def test_a_file_without_its_first_line_and_with_a_torn_last_one(tmp_path):
    path = write(tmp_path / f"rollout-2026-{ROOT}.jsonl", started(1, OLD), says(2, "a"))
    path.write_text(path.read_text() + '{"timestamp":"2026-01-01T00')
    imported = import_paths([path], "codex")
    assert imported.traces[0].id == ROOT
    assert str(imported.report[0].warnings[0]).endswith(":3: is no whole record: left out")


def test_a_forked_child_without_its_first_line_is_not_taken_for_its_parent(tmp_path):
    """The first `session_meta` that is whole is the parent's; the file says whose it is."""
    path = write(tmp_path / f"rollout-2026-{CHILD}.jsonl", *forked_child({}))
    path.write_text("{torn" + path.read_text())
    (trace,) = import_paths([path], "codex").traces
    assert trace.id == CHILD
    assert kinds(trace, "0") == ["human", "decision"]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
NAMES = ["type", "payload", "timestamp", "call_id", "arguments", "output", "info", "source", "id"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 20), st.sampled_from(NAMES), ODD)
def test_odd_values_raise_only_our_own_errors(tmp_path_factory, line, name, value):
    path = tmp_path_factory.mktemp("odd") / "rollout.jsonl"
    write(path, *forked_child({}), item(9, "agent_message", author="/root", content=[]))
    records = [json.loads(each) for each in path.read_text().splitlines()]
    place = records[line % len(records)]
    (place if name in place else place["payload"])[name] = value
    write(path, *records)
    with suppress(StrettoError):
        import_files([path])
