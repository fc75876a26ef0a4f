"""AutoGen 0.4 and later: event logs, dumps of `run_stream`, and both of one run."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths, plan
from stretto.importers.conformance import check_importer

from .labelled import load, names, save
from .oddities import fares_well, odd
from .transcripts import DATA, REAL, arrows, kinds

SWARM = DATA / "autogen"
TEAM = "7ee0"


def said(kind, source, at, content, usage=None, **fields):
    return {
        "id": f"m{at}",
        "source": source,
        "models_usage": usage and {"prompt_tokens": usage[0], "completion_tokens": usage[1]},
        "metadata": {},
        "created_at": f"2026-01-01T00:00:{at:02d}Z",
        "content": content,
        "type": kind,
        **fields,
    }


def call(use, name, arguments="{}"):
    return {"id": use, "name": name, "arguments": arguments}


def came(use, name, content):
    return {"call_id": use, "name": name, "content": content, "is_error": False}


STREAM = [
    said("TextMessage", "user", 0, "write"),
    said("ThoughtEvent", "lead", 2, "the other knows"),
    said("ToolCallRequestEvent", "lead", 2, [call("c1", "transfer_to_scout")], (30, 5), id="m2b"),
    said("ToolCallExecutionEvent", "lead", 3, [came("c1", "transfer_to_scout", "over to you")]),
    said("HandoffMessage", "lead", 4, "over to you", target="scout", context=[]),
    said("ToolCallRequestEvent", "scout", 6, [call("c2", "search", '{"q":1}')], (40, 6)),
    said("ToolCallExecutionEvent", "scout", 9, [came("c2", "search", "page")]),
    said("ToolCallSummaryMessage", "scout", 10, "page", tool_calls=[], results=[]),
    said("TextMessage", "lead", 12, "report", (50, 7)),
]
RESULT = {"messages": STREAM, "stop_reason": "said TERMINATE"}


def message(payload, stage, sender=None, receiver=None, kind="PUBLISH"):
    return {
        "type": "Message",
        "payload": payload if isinstance(payload, str) else json.dumps(payload),
        "sender": sender,
        "receiver": receiver,
        "kind": f"MessageKind.{kind}",
        "delivery_stage": f"DeliveryStage.{stage}",
    }


def agent_id(name):
    return f"{name}_{TEAM}/{TEAM}"


def model_call(name, prompt, output, content="", cached=0, **fields):
    return {
        "type": "LLMCall",
        "agent_id": agent_id(name),
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "messages": [],
        "response": {
            "model": "gpt",
            "choices": [{"finish_reason": "stop", "message": {"content": content}}],
            "usage": {"prompt_tokens_details": {"cached_tokens": cached}},
        },
        **fields,
    }


def log():
    """The same run as the runtime logs it: everything sent and delivered, on two topics."""
    records = []
    for each in STREAM:
        if each["models_usage"]:
            usage = each["models_usage"]
            counts = usage["prompt_tokens"], usage["completion_tokens"]
            records.append(model_call(each["source"], *counts, cached=8))
        for payload in ({"message": each}, {"response": {"chat_message": each}}):
            for stage in ("SEND", "DELIVER"):
                records.append(message(payload, stage, agent_id(each["source"])))
        records.append(message("{}", "SEND", agent_id("SwarmGroupChatManager")))
    return records


def write_log(path, records):
    path.write_text("\n".join(json.dumps(each) for each in records) + "\n")
    return path


def check_run(trace):
    """What every form of this run says."""
    assert names(trace) == {"0": "lead", "1": "scout"}
    assert [(e.agent, e.kind) for e in trace.events] == [
        ("0", "human"),
        ("0", "decision"),
        ("0", "tool_call"),
        ("0", "tool_result"),
        ("0", "delegate"),
        ("1", "decision"),
        ("1", "tool_call"),
        ("1", "tool_result"),
        ("1", "message"),
        ("0", "decision"),
        ("0", "message"),
    ]
    turns = kinds(trace, "decision")
    assert [turn.decision.type for turn in turns] == ["delegate", "act", "stop"]
    assert [(turn.start, turn.duration) for turn in turns] == [(0.0, 2.0), (4.0, 2.0), (10.0, 2.0)]
    assert [turn.tokens.output for turn in turns] == [5, 6, 7]
    assert [(e.start, e.duration) for e in kinds(trace, "tool_call")] == [(2.0, 1.0), (6.0, 3.0)]
    handoff, summary = trace.events[4], trace.events[8]
    assert handoff.to == "1"
    read = {(handoff.id, turns[1].id), (summary.id, turns[2].id)}
    assert read <= arrows(trace, "message")
    assert (trace.events[7].id, summary.id) in arrows(trace, "tool_dependency")


@pytest.mark.parametrize("document", [STREAM, [*STREAM, RESULT], RESULT], ids=["a", "b", "c"])
def test_a_stream(tmp_path, document):
    trace, report = load(tmp_path / "s.json", document)
    check_run(trace)
    assert [turn.tokens.input for turn in kinds(trace, "decision")] == [30, 40, 50]
    assert trace.text(trace.events[1].content) == "the other knows"
    assert report.duplicates == (len(STREAM) if len(document) > len(STREAM) else 0)


def test_an_event_log_counts_everything_once(tmp_path):
    imported = import_paths([write_log(tmp_path / "e.jsonl", log())])
    (trace,), (report,) = imported.traces, imported.report
    check_run(trace)
    assert [turn.tokens.input for turn in kinds(trace, "decision")] == [22, 32, 42]
    assert [turn.tokens.cache_read for turn in kinds(trace, "decision")] == [8, 8, 8]
    assert {agent.model for agent in trace.agents} == {"gpt"}
    assert report.duplicates == 3 * len(STREAM)
    assert report.skipped == {"Message/SEND": len(STREAM)}


def test_a_call_of_another_model_than_its_agents_says_so(tmp_path):
    """The lead's second turn, which is the third of the run, is one of `mini`."""
    calls = [record for record in log() if record["type"] == "LLMCall"]
    calls[2]["response"]["model"] = "mini"
    (trace,) = import_paths([write_log(tmp_path / "e.jsonl", calls)]).traces
    turns = kinds(trace, "decision")
    assert [(t.agent, t.attrs.get("model")) for t in turns] == [
        ("0", None),
        ("1", None),
        ("0", "mini"),
    ]
    assert {agent.model for agent in trace.agents} == {"gpt"}


def test_a_log_as_the_logging_of_python_prints_it(tmp_path):
    other = "2026-01-01 00:00:00,1 - autogen_core - INFO - Publishing {'message': None}"
    prefix = "2026-01-01 00:00:00,1 - autogen_core.events - INFO - "
    lines = [other, *(prefix + json.dumps(each) for each in log()), "", "[USER]:"]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines))
    assert detect(path) == "autogen"
    check_run(import_paths([path]).traces[0])
    path.write_text("\n".join(lines[:-2])[:-9])
    (warning,) = import_paths([path]).report[0].warnings
    assert str(warning).endswith(f"run.log:{len(lines) - 2}: is no whole record: left out")


def test_both_files_of_a_run_are_one_trace(tmp_path):
    write_log(tmp_path / "z.jsonl", log())
    save(tmp_path / "a.json", [*STREAM, RESULT])
    assert len(plan([tmp_path]).sessions) == 1
    (trace,) = import_paths([tmp_path]).traces
    check_run(trace)
    assert trace.attrs["stop_reason"] == "said TERMINATE"
    assert [turn.tokens.cache_read for turn in kinds(trace, "decision")] == [8, 8, 8]


def test_calls_that_wrote_no_message_are_turns_without_a_time(tmp_path):
    records = [*log(), model_call("SelectorGroupChatManager", 9, 1, "scout")]
    (trace,) = import_paths([write_log(tmp_path / "e.jsonl", records)]).traces
    manager = next(a for a in trace.agents if a.name == "SelectorGroupChatManager")
    (turn,) = [e for e in kinds(trace, "decision") if e.agent == manager.id]
    assert (turn.start, turn.duration, turn.tokens.output) == (None, None, 1)
    assert trace.text(turn.content) == "scout"


def test_an_orchestrator_whose_messages_state_no_usage(tmp_path):
    """Its calls are its turns, each once: two before it speaks; a relayed message is none."""
    boss = "Orchestrator"
    records = [
        message({"message": said("TextMessage", "user", 0, "go")}, "SEND"),
        model_call(boss, 5, 1, "facts"),
        model_call(boss, 6, 2, "plan"),
        message({"message": said("TextMessage", boss, 3, "facts, plan")}, "SEND", agent_id(boss)),
        message({"message": said("TextMessage", boss, 4, "you go")}, "SEND", agent_id(boss)),
    ]
    (trace,) = import_paths([write_log(tmp_path / "e.jsonl", records)]).traces
    turns = kinds(trace, "decision")
    found = [(turn.tokens.output, turn.start, turn.duration) for turn in turns]
    assert found == [
        (1, None, None),
        (2, 0.0, 3.0),
    ]
    assert len(kinds(trace, "message")) == 2


def test_the_core_alone_has_messages_calls_and_tools_but_no_times(tmp_path):
    records = [
        message({"task": "go"}, "SEND", None, "lead/default", "DIRECT"),
        message({"task": "go"}, "DELIVER", None, "lead/default", "DIRECT"),
        model_call("x", 10, 2, "ask", agent_id="lead/default"),
        message({"ask": 1}, "SEND", "lead/default", "scout/default", "DIRECT"),
        message({"ask": 1}, "DELIVER", "lead/default", "scout/default", "DIRECT"),
        model_call("x", 11, 3, "look", agent_id="scout/default"),
        {"type": "ToolCall", "tool_name": "f", "arguments": {"a": 1}, "result": "r"}
        | {"agent_id": "scout/default"},
        model_call("x", 12, 4, "found", agent_id="scout/default"),
        message({"found": 1}, "SEND", "scout/default", "lead/default", "RESPOND"),
        model_call("x", 13, 5, "end", agent_id="lead/default"),
    ]
    (trace,) = import_paths([write_log(tmp_path / "e.jsonl", records)]).traces
    assert names(trace) == {"0": "lead", "1": "scout"}
    assert {event.start for event in trace.events} == {None}
    assert [e.kind for e in trace.events if e.agent == "1"] == [
        *("decision", "tool_call", "tool_result", "decision", "message")
    ]
    assert [(e.agent, e.to) for e in kinds(trace, "message")] == [("0", "1"), ("1", "0")]
    assert len(arrows(trace, "message")) == 2
    assert kinds(trace, "human")[0].agent == "0"


def test_a_person_behind_a_proxy_is_no_agent(tmp_path):
    document = [
        said("TextMessage", "user", 0, "hi"),
        said("TextMessage", "helper", 2, "which?", (1, 1)),
        said("UserInputRequestedEvent", "boss", 3, "", request_id="r"),
        said("TextMessage", "boss", 8, "this"),
        said("TextMessage", "helper", 9, "ok", (2, 2)),
    ]
    trace, report = load(tmp_path / "s.json", document)
    assert names(trace) == {"0": "helper"}
    assert [e.start for e in kinds(trace, "human")] == [0.0, 8.0]
    assert kinds(trace, "decision")[1].start == 8.0
    assert report.skipped == {"UserInputRequestedEvent": 1}


@pytest.mark.parametrize("name", ["user", "user_proxy", "UserProxy"])
def test_who_calls_a_tool_is_an_agent_though_called_as_a_person(tmp_path, name):
    tool = {"type": "ToolCall", "tool_name": "f", "arguments": {}, "result": "r"}
    records = [tool | {"agent_id": agent_id(name)}, model_call("bob", 3, 2)]
    trace, _ = load(write_log(tmp_path / "e.jsonl", records))
    assert names(trace) == {"0": name, "1": "bob"}
    assert [(e.agent, e.kind) for e in trace.events] == [
        *(("0", "tool_call"), ("0", "tool_result"), ("1", "decision"))
    ]


def test_who_asks_for_input_and_calls_a_model_is_an_agent(tmp_path):
    asks = said("UserInputRequestedEvent", "helper", 3, "", request_id="r")
    trace, report = load(write_log(tmp_path / "e.jsonl", [asks, model_call("helper", 3, 2)]))
    assert names(trace) == {"0": "helper"}
    assert [event.kind for event in trace.events] == ["decision"]
    assert report.skipped == {"UserInputRequestedEvent": 1}


def test_a_near_miss_says_why(tmp_path):
    path = save(tmp_path / "s.json", [{"source": "a", "content": "x", "type": "TextMessage"}])
    with pytest.raises(StrettoError, match='closest is autogen: a message without "models_usage"'):
        detect(path)


@given(odd([*STREAM, RESULT]))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_odd_streams_never_break_it(tmp_path_factory, document):
    fares_well(save(tmp_path_factory.mktemp("odd") / "s.json", document), "autogen")


@given(st.data())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_odd_logs_never_break_it(tmp_path_factory, data):
    records = data.draw(odd(log()[:24]))
    path = write_log(tmp_path_factory.mktemp("odd") / "e.jsonl", records)
    fares_well(path, "autogen")


def test_it_keeps_the_rules(tmp_path):
    write_log(tmp_path / "e.jsonl", log())
    check_importer("autogen", [tmp_path / "e.jsonl", save(tmp_path / "s.json", STREAM)])


@REAL
def test_a_real_swarm():
    """Counted from the stream: messages with a usage are turns, handoffs are delegations."""
    raw = json.loads((SWARM / "gen_swarm.stream.json").read_text())[:-1]
    imported = import_paths([SWARM])
    (trace,) = imported.traces
    assert set(names(trace).values()) == {"planner", "market_researcher"}
    usages = [each["models_usage"] for each in raw if each["models_usage"]]
    turns = kinds(trace, "decision")
    assert [t.tokens.output for t in turns] == [u["completion_tokens"] for u in usages]
    prompts = [t.tokens.input + t.tokens.cache_read for t in turns]
    assert prompts == [u["prompt_tokens"] for u in usages] == [34, 56, 62, 77]
    assert len(kinds(trace, "delegate")) == sum(m["type"] == "HandoffMessage" for m in raw) == 2
    assert len(kinds(trace, "tool_call")) == len(kinds(trace, "tool_result")) == 3
    check_importer("autogen", [SWARM])
