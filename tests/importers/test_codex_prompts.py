"""Codex: prompts that only items hold, token counts without a total, models that change."""

import pytest

from stretto.importers import import_paths
from stretto.trace import Tokens

from .rollouts import (
    CHILD,
    ROOT,
    arrows,
    asked,
    calls,
    event,
    kinds,
    meta,
    only,
    output,
    record,
    says,
    spawned,
    started,
    told,
    write,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rollout.jsonl"


def texts(trace, kind):
    return [trace.text(event.content) for event in trace.events if event.kind == kind]


def test_a_prompt_that_no_event_tells_is_human_all_the_same(path):
    write(
        path,
        meta(0, ROOT),
        told(1, "<environment_context>x</environment_context>"),
        told(2, "Go."),
        says(3, "a"),
        told(4, "More."),
        says(5, "b"),
    )
    trace = only(path)
    assert kinds(trace, "0") == ["human", "decision", "human", "decision"]
    assert [trace.text(e.content) for e in trace.events] == ["Go.", "a", "More.", "b"]
    assert [e.start for e in trace.events if e.kind == "human"] == [1.0, 3.0]  # origin at 1
    assert ("0#0", "0#1") in arrows(trace, "causal")


def test_where_events_tell_the_prompts_items_do_not_tell_them_again(path):
    """What only an item holds is then counted in the report: nobody knows who wrote it."""
    write(path, meta(0, ROOT), asked(1, "Go."), says(2, "a"), told(3, "a hint"), says(4, "b"))
    imported = import_paths([path], "codex")
    assert kinds(imported.traces[0], "0") == ["human", "decision", "decision"]
    assert imported.report[0].skipped == {"session_meta": 1, "response_item/message/user": 1}


def test_items_tell_the_prompts_of_turns_that_no_event_tells(path):
    """The program that resumed the thread writes events, the one that began it did not."""
    write(
        path,
        meta(0, ROOT),
        told(1, "Go."),
        says(2, "a"),
        asked(3, "More."),
        told(3, "More."),
        says(4, "b"),
    )
    trace = only(path)
    assert kinds(trace, "0") == ["human", "decision", "human", "decision"]
    assert [trace.text(e.content) for e in trace.events] == ["Go.", "a", "More.", "b"]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_turn_that_its_record_begins_may_have_items_only(path, is_first):
    """An item of a prompt can stand before the record of its turn."""
    second = [started(3, "t2"), told(3, "More.")]
    write(
        path,
        meta(0, ROOT),
        told(1, "Go."),
        started(1, "t1"),
        asked(1, "Go."),
        says(2, "a"),
        *(second if is_first else second[::-1]),
        says(4, "b"),
    )
    assert texts(only(path), "human") == (["Go.", "More."] if is_first else ["Go."])


@pytest.mark.parametrize(
    "words",
    [
        '<hook_prompt hook_run_id="stop:0">fix it</hook_prompt>',
        "<recommended_plugins>\nx\n</recommended_plugins>",
        "<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
    ],
)
def test_what_the_harness_adds_is_nobodys_prompt(path, words):
    write(path, meta(0, ROOT), told(1, "Go."), says(2, "a"), told(3, words), says(4, "b"))
    assert texts(only(path), "human") == ["Go."]


def test_a_child_hears_its_task_from_an_item(tmp_path):
    parent = write(
        tmp_path / "rollout-parent.jsonl",
        meta(0, ROOT),
        calls(1, "spawn_agent", "s", message="look"),
        output(2, "s", "lost"),
    )
    write(
        tmp_path / "rollout-child.jsonl",
        spawned(1, CHILD, ROOT),
        told(1, "look"),
        says(2, "found"),
    )
    trace = only(parent)
    assert kinds(trace, "0/0") == ["decision"]
    assert arrows(trace, "spawn") == {("0#1", "0/0#0"): "heuristic"}


def last(at, prompt, out=10):
    usage = {"input_tokens": prompt, "output_tokens": out, "total_tokens": prompt + out}
    return event(at, "token_count", info={"last_token_usage": usage})


def test_counts_without_a_total_are_counts(path):
    """The second is the first again, as when rate limits are news; the third left nothing else."""
    write(path, meta(0, ROOT), says(1, "a"), last(1, 100), last(2, 100), last(3, 150))
    turns = [e for e in only(path).events if e.kind == "decision"]
    assert [turn.tokens for turn in turns] == [
        Tokens(input=100, output=10),
        Tokens(input=150, output=10),
    ]
    assert turns[1].attrs["output_recorded"] is False


def test_the_same_count_after_another_call_is_that_of_the_call(path):
    """Without a total nothing else tells it from a count that comes again."""
    write(
        path,
        meta(0, ROOT),
        *(told(1, "Go."), says(2, "a"), last(2, 100), last(2, 100)),
        *(told(3, "More."), says(4, "b"), last(4, 100)),
    )
    turns = [e for e in only(path).events if e.kind == "decision"]
    assert [turn.tokens for turn in turns] == [Tokens(input=100, output=10)] * 2


def test_a_turn_of_another_model_says_so(path):
    write(
        path,
        meta(0, ROOT),
        started(1, "t1"),
        record(1, "turn_context", model="big"),
        says(2, "a"),
        started(3, "t2"),
        record(3, "turn_context", model="small"),
        says(4, "b"),
    )
    trace = only(path)
    assert trace.agents[0].model == "big"
    turns = [e for e in trace.events if e.kind == "decision"]
    assert [turn.attrs.get("model") for turn in turns] == [None, "small"]
