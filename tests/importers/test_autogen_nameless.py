"""AutoGen calls that no agent is named for: it writes `null` outside of a runtime."""

from stretto.importers import import_paths
from stretto.importers.conformance import check_importer

from .labelled import names
from .test_autogen import agent_id, message, model_call, said, write_log
from .transcripts import kinds


def trace_in(path, *records):
    (trace,) = import_paths([write_log(path / "e.jsonl", records)]).traces
    return trace


def nameless(prompt, output, **fields):
    return model_call("x", prompt, output, **fields) | {"agent_id": None}


def test_a_call_of_nobody_has_an_agent_of_its_own(tmp_path):
    trace = trace_in(tmp_path, nameless(3, 2, content="hello"))
    (turn,) = trace.events
    assert (turn.agent, turn.tokens.input, turn.tokens.output) == ("0", 3, 2)
    assert trace.text(turn.content) == "hello"
    assert [(agent.id, agent.name, agent.model) for agent in trace.agents] == [("0", None, "gpt")]


def test_it_stands_beside_the_agents_that_have_names(tmp_path):
    hello = {"message": said("TextMessage", "lead", 3, "hello", (5, 1))}
    trace = trace_in(
        tmp_path,
        model_call("lead", 5, 1, "hello"),
        message(hello, "SEND", agent_id("lead")),
        nameless(9, 2),
        {"type": "ToolCall", "tool_name": "f", "arguments": {}, "result": "r", "agent_id": None},
    )
    assert names(trace) == {"0": "lead", "1": None}
    turns = kinds(trace, "decision")
    assert [(turn.agent, turn.tokens.output) for turn in turns] == [("0", 1), ("1", 2)]


def test_a_message_with_the_same_usage_tells_whose_call_it_is(tmp_path):
    """Tokens are counted once: the call and the message are one turn."""
    trace = trace_in(
        tmp_path,
        message({"message": said("TextMessage", "user", 0, "go")}, "SEND"),
        nameless(5, 1, content="hello", cached=2),
        message({"message": said("TextMessage", "lead", 3, "hello", (5, 1))}, "SEND"),
    )
    assert names(trace) == {"0": "lead"}
    (turn,) = kinds(trace, "decision")
    assert (turn.tokens.input, turn.tokens.cache_read, turn.duration) == (3, 2, 3.0)


def test_a_handoff_to_nobody_goes_to_nobody(tmp_path):
    handoff = said("HandoffMessage", "lead", 4, "over", target=None, context=[])
    trace = trace_in(tmp_path, nameless(9, 2), message({"message": handoff}, "SEND"))
    assert [event.to for event in kinds(trace, "delegate")] == [None]


def test_it_keeps_the_rules(tmp_path):
    records = [nameless(3, 2), nameless(4, 2), model_call("lead", 5, 1)]
    check_importer("autogen", [write_log(tmp_path / "e.jsonl", records)])


def test_a_tool_that_messages_tell_of_makes_no_agent(tmp_path):
    hello = {"message": said("TextMessage", "lead", 3, "hello", (5, 1))}
    trace = trace_in(
        tmp_path,
        message(hello, "SEND", agent_id("lead")),
        {"type": "ToolCall", "tool_name": "f", "arguments": {}, "result": "r", "agent_id": None},
    )
    assert names(trace) == {"0": "lead"}
