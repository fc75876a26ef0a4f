"""Claude Code: which model a turn called, and which cache writes are kept for an hour."""

import pytest

from stretto.importers import import_paths
from stretto.metrics import measure

from .transcripts import PARENT, assistant, child, kinds, read, side, user, write


def turn(name, at, *blocks, model="m", **created):
    """A turn of a model; `created` splits its cache writes, of which there are 300."""
    counts = {"input_tokens": 10, "output_tokens": 50, "cache_creation_input_tokens": 300}
    made = assistant(name, at, *blocks, usage=counts | {"cache_creation": created})
    made["message"]["model"] = model
    return made


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ({"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}, 200),
        ({"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0}, None),
        ({}, None),
        ({"ephemeral_1h_input_tokens": -5}, None),
    ],
)
def test_cache_writes_for_an_hour_are_told_beside_all_of_them(tmp_path, created, expected):
    trace, _ = read(tmp_path / "s.jsonl", user("go", 0), turn("m1", 1, "a", **created))
    (made,) = kinds(trace, "decision")
    assert made.tokens.cache_write == 300
    assert made.attrs.get("cache_write_1h") == expected


def test_a_session_that_switches_model_says_so_of_each_turn_of_another_one(tmp_path):
    trace, _ = read(
        tmp_path / "s.jsonl",
        user("go", 0),
        turn("m1", 1, "a", model="opus"),
        turn("m2", 2, "b", model="haiku"),
        turn("m3", 3, "c", model="<synthetic>"),
        turn("m4", 4, "d", model="opus"),
    )
    assert trace.agents[0].model == "opus"
    assert [made.attrs.get("model") for made in kinds(trace, "decision")] == [
        None,
        "haiku",
        None,  # no model made it
        None,
    ]


def test_a_sub_agent_of_another_model_has_not_switched(tmp_path):
    own = [side(each, "x1") for each in child()]
    for each in own:
        each["message"] |= {"model": "small"} if each["type"] == "assistant" else {}
    write(tmp_path / "s.jsonl", *PARENT)
    write(tmp_path / "agent-x1.jsonl", *own)
    trace, _ = read(tmp_path / "s.jsonl")
    assert [agent.model for agent in trace.agents] == ["m", "small"]
    assert all("model" not in made.attrs for made in kinds(trace, "decision"))


@pytest.mark.parametrize("count", [2**63, 10**400, -(10**400)])
def test_a_count_that_no_column_holds_is_unknown(tmp_path, count):
    given = turn("m1", 1, "Yes.")
    given["message"]["usage"]["output_tokens"] = count
    path = write(tmp_path / "s.jsonl", user("Go.", 0), given)
    (trace,) = import_paths([path]).traces
    (tokens,) = [event.tokens for event in trace.events if event.kind == "decision"]
    assert tokens is None or tokens.output is None
    assert measure(trace)["output_tokens"].value is None
