"""Spawns whose output is words: refused, of the first versions, or told by the child alone."""

import pytest

from stretto.importers import import_paths
from stretto.importers.conformance import check_importer

from .rollouts import (
    CHILD,
    ROOT,
    SECOND,
    arrows,
    asked,
    calls,
    complete,
    kinds,
    meta,
    only,
    output,
    says,
    spawned,
    started,
    write,
)

V2 = "collaboration"


def parent(tmp_path, *records):
    """A thread that calls `spawn_agent` at 1 and ends at 20."""
    return write(tmp_path / "rollout-parent.jsonl", meta(0, ROOT), *records, says(20, "All."))


def child(tmp_path, born=2, thread=CHILD, prompt="look", path=None, above=ROOT):
    """A thread that names its parent, is asked something, and answers after 3 s."""
    return write(
        tmp_path / f"rollout-{thread}.jsonl",
        spawned(born, thread, above, path=path),
        started(born, f"t-{thread}"),
        asked(born, prompt) if prompt else [],
        says(born + 2, "found"),
        complete(born + 3, f"t-{thread}", "found"),
    )


def acts(trace):
    """What the root did other than think, with whom it was about."""
    return [(e.kind, e.to) for e in trace.events if e.agent == "0" and e.kind != "decision"]


def refused(trace):
    """Whether the first result says that the call failed."""
    return next(e for e in trace.events if e.kind == "tool_result").attrs.get("is_error")


def test_the_line_of_the_first_versions_names_the_agent(tmp_path):
    """`agent_id: <thread>` for a spawn, the id of the submission for words, one agent a wait."""
    path = parent(
        tmp_path,
        calls(1, "spawn_agent", "s", message="look"),
        output(2, "s", f"agent_id: {CHILD}"),
        calls(3, "wait", "w", id=CHILD),
        output(6, "w", {"status": {"completed": "found"}, "timed_out": False}),
        calls(7, "send_input", "i", id=CHILD, message="more"),
        output(8, "i", SECOND),
    )
    trace = only(path)
    assert [(a.id, a.attrs["agent_id"]) for a in trace.agents] == [("0", ROOT), ("0/0", CHILD)]
    assert [kind for kind, to in acts(trace) if to == "0/0"] == ["spawn", "tool_call", "delegate"]
    assert not any(e.attrs.get("is_error") for e in trace.events)
    (wait,) = (e for e in trace.events if e.attrs.get("waiting"))
    assert (wait.start, wait.duration) == (2.0, 3.0)  # origin is the call at 1
    (back,) = (e for e in trace.events if e.kind == "return")
    assert trace.text(back.content) == "found"
    child(tmp_path)
    assert arrows(only(path), "spawn") == {("0#1", "0/0#0"): "recorded"}


@pytest.mark.parametrize(
    "words", ["unsupported call: spawn_agent", "collab spawn failed: agent thread limit reached"]
)
def test_a_refusal_spawns_nobody_even_beside_a_child_that_was_asked_the_same(tmp_path, words):
    """The child came from a call that is not recorded (code made it): it has no spawn."""
    path = parent(tmp_path, calls(1, "spawn_agent", "s", message="look"), output(2, "s", words))
    child(tmp_path)
    imported = import_paths([path], "codex")
    (trace,) = imported.traces
    assert acts(trace) == [("tool_call", None), ("tool_result", None)]
    assert refused(trace) is True
    assert [(a.id, a.parent) for a in trace.agents] == [("0", None), ("0/0", "0")]
    assert arrows(trace, "spawn") == {}
    told = [str(notice) for report in imported.report for notice in report.warnings]
    assert len(told) == 1
    assert told[0].endswith("no spawn is recorded for agent 0/0")


@pytest.mark.parametrize("words", ["Spawned.", "aborted by user after 1.0s", "[1, 2]"])
def test_words_that_name_nobody_are_no_spawn_without_the_child(tmp_path, words):
    path = parent(tmp_path, calls(1, "spawn_agent", "s", message="look"), output(2, "s", words))
    trace = only(path)
    assert len(trace.agents) == 1
    assert acts(trace) == [("tool_call", None), ("tool_result", None)]
    assert trace.events[0].decision.type == "act"
    assert refused(trace) is True


@pytest.mark.parametrize("words", ["Spawned.", "aborted by user after 1.0s", "[1, 2]"])
def test_a_child_that_names_its_parent_keeps_its_edge(tmp_path, words):
    """It was born during the call, and asked the same: a guess."""
    path = parent(tmp_path, calls(1, "spawn_agent", "s", message="look"), output(2, "s", words))
    child(tmp_path)
    trace = only(path)
    assert acts(trace) == [("spawn", "0/0"), ("tool_result", None)]
    assert trace.events[0].decision.type == "spawn"
    assert arrows(trace, "spawn") == {("0#1", "0/0#0"): "heuristic"}
    assert kinds(trace, "0/0") == ["decision", "return"]
    assert refused(trace) is None


def test_words_that_hold_the_id_of_a_child_follow_from_both_records(tmp_path):
    path = parent(
        tmp_path,
        calls(1, "spawn_agent", "s", message="other words"),
        output(2, "s", f"Started agent {CHILD} (explorer)."),
    )
    assert len(only(path).agents) == 1  # words alone are no spawn
    child(tmp_path)
    assert arrows(only(path), "spawn") == {("0#1", "0/0#0"): "derived"}


def test_a_name_in_the_tree_follows_from_both_records_where_the_output_is_lost(tmp_path):
    """v2: the prompt is encrypted, the child says `/root/x`, the call said `x`."""
    path = parent(
        tmp_path,
        calls(1, "spawn_agent", "s", V2, task_name="y", message="gAAAA" + "B" * 80),
        calls(1, "spawn_agent", "t", V2, task_name="x", message="gAAAA" + "B" * 80),
    )
    child(tmp_path, path="/root/x", prompt=None)
    assert arrows(only(path), "spawn") == {("0#2", "0/0#0"): "derived"}


@pytest.mark.parametrize(("born", "spawns"), [(0, 1), (3, 1), (-1, 0), (9, 0)])
def test_a_child_that_was_not_born_during_the_call_is_not_its_own(tmp_path, born, spawns):
    """The call lasted from 1 to 2; clocks differ by a second at most."""
    path = parent(tmp_path, calls(1, "spawn_agent", "s", message="look"), output(2, "s", "Done."))
    child(tmp_path, born=born)
    assert len(arrows(only(path), "spawn")) == spawns


def test_a_retry_that_worked_is_the_spawn_and_the_first_try_is_none(tmp_path):
    path = parent(
        tmp_path,
        calls(1, "spawn_agent", "s", message="look"),
        output(1.5, "s", "stream error"),
        calls(2, "spawn_agent", "t", message="look"),
        output(3, "t", {"agent_id": CHILD}),
    )
    child(tmp_path)
    trace = only(path)
    made = [(e.kind, e.to) for e in trace.events if e.tool and e.kind != "tool_result"]
    assert made == [("tool_call", None), ("spawn", "0/0")]
    assert list(arrows(trace, "spawn").values()) == ["recorded"]


def test_two_children_that_were_asked_the_same_come_in_the_order_of_their_births(tmp_path):
    path = parent(
        tmp_path,
        calls(1, "spawn_agent", "s", message="look"),
        output(5, "s", "ok"),
        calls(1, "spawn_agent", "t", message="look"),
        output(5, "t", "ok"),
    )
    child(tmp_path, born=3, thread=CHILD)
    child(tmp_path, born=2, thread=SECOND)
    trace = only(path)
    assert [a.attrs["agent_id"] for a in trace.agents] == [ROOT, SECOND, CHILD]
    assert [e.to for e in trace.events if e.kind == "spawn"] == ["0/0", "0/1"]


def test_the_rules_of_importers_hold(tmp_path):
    parent(tmp_path, calls(1, "spawn_agent", "s", message="look"), output(2, "s", "Spawned."))
    child(tmp_path)
    check_importer("codex", [tmp_path])
