"""What `claude -p --output-format stream-json` prints: no times, sub-agents told by their call."""

import pytest

from stretto.errors import StrettoError
from stretto.importers import detect
from stretto.importers.conformance import check_importer
from stretto.trace import Score, Tokens

from .transcripts import arrows, call, kinds, read, write

ASKED = {"prompt": "look", "description": "d", "subagent_type": "Explore"}


def said(name, *content, of=None, model="big", tokens=5, stop=None):
    message = {
        "id": name,
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": stop,
        "usage": {"input_tokens": tokens, "output_tokens": 50},
    }
    return streamed("assistant", of, message=message, uuid=f"a-{name}")


def heard(of, content, uuid):
    return streamed("user", of, message={"role": "user", "content": content}, uuid=uuid)


def streamed(kind, of=None, **fields):
    return {"type": kind, "session_id": "S1", "parent_tool_use_id": of, **fields}


RESULT = [{"type": "tool_result", "tool_use_id": "t1", "content": "found"}]
STREAM = (
    {"type": "system", "subtype": "init", "session_id": "S1", "uuid": "i", "cwd": "/x"},
    said("m1", call("t1", "Task", **ASKED)),
    heard("t1", [{"type": "text", "text": "look"}], "u1"),
    said("m2", {"type": "text", "text": "found"}, of="t1", model="small", tokens=7),
    heard(None, RESULT, "u2"),
    said("m3", {"type": "text", "text": "done"}),
    {"type": "result", "subtype": "success", "session_id": "S1", "uuid": "r"},
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.jsonl"


def test_a_sub_agent_speaks_for_itself(path):
    trace, reports = read(path, *STREAM)
    assert [(agent.id, agent.role, agent.model) for agent in trace.agents] == [
        ("0", None, "big"),
        ("0/0", "Explore", "small"),
    ]
    turns = [(turn.agent, turn.tokens) for turn in kinds(trace, "decision")]
    assert turns == [
        ("0", Tokens(input=5, output=50, unreliable=("output",))),
        ("0/0", Tokens(input=7, output=50, unreliable=("output",))),
        ("0", Tokens(input=5, output=50, unreliable=("output",))),
    ]
    assert reports["log.jsonl"].unreliable_tokens == 3
    assert arrows(trace, "spawn") and arrows(trace, "return")
    assert not kinds(trace, "human")  # what the sub-agent was asked is no person's
    assert (trace.id, trace.attrs["session_id"]) == ("S1", "S1")
    assert all(event.start is None for event in trace.events)
    assert reports["log.jsonl"].skipped == {"system/init": 1, "result/success": 1}


def test_a_count_with_a_reason_to_stop_is_final(path):
    last = said("m3", {"type": "text", "text": "done"}, stop="end_turn")
    trace, reports = read(path, *STREAM[:-2], last)
    assert kinds(trace, "decision")[-1].tokens == Tokens(input=5, output=50)
    assert reports["log.jsonl"].unreliable_tokens == 2


USED = {"big": {"inputTokens": 10, "outputTokens": 420, "costUSD": 0.25}}
INIT = {"claude_code_version": "2.1.29", "tools": [], "mcp_servers": [], "apiKeySource": "none"}
END = {
    "type": "result",
    "subtype": "error_max_turns",
    "is_error": True,
    "num_turns": 3,
    "duration_ms": 1500,
    "duration_api_ms": 1200,
    "total_cost_usd": 0.25,
    "modelUsage": USED,
    "usage": {"output_tokens": 420},
    "permission_denials": [],
    "session_id": "S1",
    "uuid": "r",
}


def test_the_last_record_says_what_it_cost_and_how_it_ended(path):
    trace, reports = read(path, STREAM[0] | INIT, *STREAM[1:-1], END)
    assert trace.scores == (Score(channel="cost_usd", value=0.25, kind="cost"),)
    assert trace.attrs["result"] == {
        "subtype": "error_max_turns",
        "is_error": True,
        "num_turns": 3,
        "duration_ms": 1500,
        "model_usage": USED,
    }
    assert trace.system == "claude-code 2.1.29"
    assert reports["log.jsonl"].unknown_fields == {}


def test_of_several_answers_the_last_counts_for_all(path):
    """A process that is asked again goes on counting."""
    ends = [END | {"uuid": f"r{n}", "total_cost_usd": n / 4} for n in (1, 2)]
    trace, _ = read(path, *STREAM[:3], ends[0], *STREAM[3:-1], ends[1])
    assert [score.value for score in trace.scores] == [0.5]


def ends(*costs):
    """Results of one session, with the tokens that each price stands for."""
    for number, cost in enumerate(costs):
        spent = round((cost or 0) * 100)
        big = {"inputTokens": spent, "costUSD": cost, "contextWindow": 200}
        usage = {"big": big} | ({"small": {"outputTokens": 3}} if number else {})
        fields = {"uuid": f"r{number}", "total_cost_usd": cost, "modelUsage": usage}
        yield END | fields


@pytest.mark.parametrize(
    ("costs", "total"),
    [((0.5, 0.25), 0.75), ((0.25, 0.5, 0.125, 0.25), 0.75), ((0.5, None, 0.25), 0.75)],
)
def test_a_session_that_is_resumed_is_another_process_that_counts_anew(path, costs, total):
    trace, _ = read(path, *STREAM[:-1], *ends(*costs))
    assert [score.value for score in trace.scores] == [total]


def test_what_models_used_is_that_of_all_processes(path):
    trace, _ = read(path, *STREAM[:-1], *ends(0.25, 0.5, 0.125))
    assert trace.attrs["result"]["model_usage"] == {
        "big": {"inputTokens": 62, "costUSD": 0.625, "contextWindow": 200},
        "small": {"outputTokens": 6},
    }


def test_a_process_that_does_not_say_what_it_used_leaves_the_whole_unknown(path):
    first, second = ends(0.5, 0.25)
    trace, _ = read(path, *STREAM[:-1], first | {"modelUsage": None}, second)
    assert "model_usage" not in trace.attrs["result"]
    trace, _ = read(path, *STREAM[:-1], *ends(0.5, 0.25, None))
    assert trace.scores == ()


@pytest.mark.parametrize("field", ["total_cost_usd", "modelUsage"])
def test_what_the_end_does_not_say_stays_unknown(path, field):
    trace, _ = read(path, *STREAM[:-1], END | {field: None})
    assert bool(trace.scores) == (field != "total_cost_usd")
    assert ("model_usage" in trace.attrs["result"]) == (field != "modelUsage")
    bare, _ = read(path, *STREAM[:-1])
    assert bare.scores == () and "result" not in bare.attrs


def test_the_shortest_stream_is_recognised(path):
    write(path, STREAM[0], STREAM[-2], STREAM[-1])
    assert detect(path) == "claude-code"


def test_a_stream_of_another_program_only_comes_close(path):
    write(path, *STREAM[:2], {"type": "tool_call", "call_id": "c", "session_id": "S1"})
    with pytest.raises(StrettoError, match=r"closest is claude-code: .* the stream of Cursor"):
        detect(path)


def test_the_rules_of_importers_hold(path):
    write(path, STREAM[0] | INIT, *STREAM[1:-1], END)
    check_importer("claude-code", [path])
