"""OpenCode sessions, made by hand and real."""

import json
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.opencode.importer import import_files
from stretto.metrics import measure
from stretto.trace import Tokens

from .rollouts import arrows, kinds
from .transcripts import DATA, REAL

EXPORT = DATA / "opencode/nimbus_4task.export.json"
STREAM = DATA / "opencode/irrlicht_foreground-subagent_events.jsonl"

START = 1_767_225_600_000
"""2026-01-01 in milliseconds."""


def at(seconds):
    return START + seconds * 1000


def spent(prompt, output, read=0, reasoning=0, total=None):
    cache = {"read": read, "write": 0}
    tokens = {"input": prompt, "output": output, "reasoning": reasoning, "cache": cache}
    return tokens | ({} if total is None else {"total": total})


def user(seconds, text, *parts, **fields):
    part = {"type": "text", "text": text} | fields
    return {"info": {"role": "user", "time": {"created": at(seconds)}}, "parts": [part, *parts]}


def answer(start, end, *parts, tokens=None, cost=0.5, **info):
    info = {
        "role": "assistant",
        "time": {"created": at(start), "completed": at(end)},
        "modelID": "m",
        "agent": "build",
        "tokens": tokens or spent(10, 5),
        "cost": cost,
    } | info
    return {"info": info, "parts": list(parts)}


def text(words, end):
    return {"type": "text", "text": words, "time": {"start": at(end), "end": at(end)}}


def tool(name, start, end, output="ok", status="completed", metadata=None, **asked):
    state = {
        "status": status,
        "input": asked,
        "output": output,
        "metadata": metadata or {},
        "time": {"start": at(start), "end": at(end)},
    }
    if status == "error":
        state["error"] = output
    return {"type": "tool", "callID": "REDACTED", "tool": name, "state": state}


def task(child, start, end, result="found", prompt="look", **fields):
    output = f"task_id: {child}\n\n<task_result>\n{result}\n</task_result>"
    metadata = {"sessionId": child, "model": {"modelID": "small"}}
    asked = {"prompt": prompt, "subagent_type": "general", "description": "scout"}
    return tool("task", start, end, output, metadata=metadata, **asked, **fields)


STEP = {"type": "step-start"}


def finish(tokens):
    return {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.25}


def export(path, name, *messages, parent=None):
    info = {"id": name, "version": "1.2.26", "time": {"created": at(0)}}
    info |= {"parentID": parent} if parent else {}
    path.write_text(json.dumps({"info": info, "messages": list(messages)}, indent=1))
    return path


def only(*paths):
    (trace,) = import_paths(paths, "opencode").traces
    return trace


def test_a_turn_ends_when_its_tools_begin(tmp_path):
    """The message lasts until its tools are done; the model had finished before."""
    path = export(
        tmp_path / "a.json",
        "ses_a",
        user(0, "Go."),
        answer(1, 9, STEP, text("I look.", 2), tool("bash", 3, 8), tokens=spent(10, 5, read=7)),
        answer(9, 11, STEP, text("Done.", 11)),
    )
    trace = only(path)
    assert (trace.id, trace.system) == ("ses_a", "opencode 1.2.26")
    assert kinds(trace, "0") == ["human", "decision", "tool_call", "tool_result", "decision"]
    _, turn, call, result, last = trace.events
    assert (turn.start, turn.duration, turn.price) == (1.0, 2.0, 0.5)
    assert turn.tokens == Tokens(input=10, output=5, cache_read=7, cache_write=0)
    assert (call.start, call.duration, result.start) == (3.0, 5.0, 8.0)
    assert (turn.decision.type, last.decision.type) == ("act", "stop")
    assert (trace.agents[0].role, trace.agents[0].model) == ("build", "m")


def test_thoughts_that_are_counted_beside_the_output_are_sampled_tokens(tmp_path):
    path = export(
        tmp_path / "a.json",
        "ses_a",
        answer(1, 2, STEP, tokens=spent(10, 5, reasoning=3, total=18)),
        answer(2, 3, STEP, tokens=spent(10, 5, reasoning=3, total=15)),
    )
    assert [event.tokens.output for event in only(path).events] == [8, 5]


def test_several_calls_in_one_message_are_several_turns(tmp_path):
    path = export(
        tmp_path / "a.json",
        "ses_a",
        answer(
            1,
            9,
            STEP,
            tool("bash", 2, 4),
            finish(spent(10, 5)),
            STEP,
            text("Done.", 6),
            finish(spent(20, 6)),
        ),
    )
    turns = [event for event in only(path).events if event.kind == "decision"]
    assert [(turn.start, turn.duration) for turn in turns] == [(0.0, 1.0), (3.0, 2.0)]
    assert [turn.tokens.input for turn in turns] == [10, 20]
    assert [turn.price for turn in turns] == [0.25, 0.25]


def tree(tmp_path):
    """A session with two runs of one sub-agent, and the sub-agent's own export."""
    lead = export(
        tmp_path / "lead.json",
        "ses_a",
        user(0, "Go."),
        answer(1, 6, STEP, task("ses_b", 2, 6)),
        answer(6, 12, STEP, task("ses_b", 7, 12, result="nothing", prompt="more")),
        answer(12, 14, STEP, text("All.", 14)),
    )
    child = export(
        tmp_path / "child.json",
        "ses_b",
        user(2, "look"),
        answer(3, 5, STEP, text("found", 5)),
        user(7, "more"),
        answer(8, 11, STEP, text("nothing", 11)),
        parent="ses_a",
    )
    return lead, child


def test_a_sub_agent_is_a_session_of_its_own(tmp_path):
    """0: human, turn, spawn, turn, delegate, turn; 0/0: turn, return, turn, return."""
    trace = only(*tree(tmp_path))
    child = trace.agents[1]
    assert (child.id, child.parent, child.role, child.name) == ("0/0", "0", "build", "scout")
    assert kinds(trace, "0") == [
        "human",
        *["decision", "spawn", "decision", "delegate"],
        "decision",
    ]
    assert kinds(trace, "0/0") == ["decision", "return", "decision", "return"]
    assert arrows(trace, "spawn") == {("0#2", "0/0#0"): "recorded"}
    assert arrows(trace, "message") == {("0#4", "0/0#2"): "derived"}
    assert arrows(trace, "return") == {
        ("0/0#0", "0/0#1"): "recorded",
        ("0/0#1", "0#3"): "recorded",
        ("0/0#2", "0/0#3"): "recorded",
        ("0/0#3", "0#5"): "recorded",
    }
    types = [e.decision.type for e in trace.events if e.agent == "0" and e.decision]
    assert types == ["spawn", "delegate", "stop"]


def test_a_sub_agent_without_export_is_known_by_its_task(tmp_path):
    lead, child = tree(tmp_path)
    trace = only(lead)
    assert trace.agents[1].attrs["transcript"] is False
    assert (trace.agents[1].role, trace.agents[1].model) == ("general", "small")
    assert [trace.text(e.content) for e in trace.events if e.kind == "return"] == [
        "found",
        "nothing",
    ]
    alone = only(child)  # its parent is named, but not there
    assert [agent.attrs["transcript"] for agent in alone.agents] == [False, True]
    assert "human" not in kinds(alone, "0/0")


def test_a_command_runs_a_sub_agent_without_a_model_call(tmp_path):
    command = {"type": "subtask", "prompt": "look", "agent": "build", "command": "review"}
    nothing = spent(0, 0)
    path = export(
        tmp_path / "a.json",
        "ses_a",
        user(0, "made by the harness", command, synthetic=True),
        answer(1, 5, task("ses_b", 1, 5), tokens=nothing, cost=0),
        answer(5, 7, STEP, text("All.", 7)),
    )
    trace = only(path)
    assert kinds(trace, "0") == ["human", "spawn", "decision"]
    human = trace.events[0]
    assert human.attrs["commands"] == ["review"] and human.content is None
    assert arrows(trace, "causal")["0#0", "0#1"] == "derived"


def test_a_failed_tool_is_an_error_and_a_failed_task_does_not_return(tmp_path):
    path = export(
        tmp_path / "a.json",
        "ses_a",
        answer(1, 4, STEP, tool("bash", 2, 3, "boom", status="error"), task("ses_b", 2, 4)),
    )
    document = json.loads(path.read_text())
    document["messages"][0]["parts"][2]["state"] |= {"status": "error", "error": "aborted"}
    path.write_text(json.dumps(document))
    imported = import_paths([path], "opencode")
    (trace,), (report,) = imported.traces, imported.report
    results = [e for e in trace.events if e.kind == "tool_result"]
    assert [trace.text(e.content) for e in results] == ["boom", "aborted"]
    assert all(e.attrs["is_error"] for e in results)
    assert (report.spawns, report.returns, report.unpaired) == (1, 0, 1)


def test_a_stream_of_a_run(tmp_path):
    """`opencode run --format json`: a line a part, with the session."""
    parts = [STEP, text("hi", 3), finish(spent(10, 5))]
    lines = [
        {"type": "x", "timestamp": at(2 + n), "sessionID": "ses_a", "part": part}
        for n, part in enumerate(parts)
    ]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    trace = only(path)
    assert trace.id == "ses_a"
    (turn,) = trace.events
    assert (turn.tokens.input, turn.duration) == (10, 1.0)


@REAL
def test_a_real_export():
    """Counted in the file: 63 steps, 79 tools that are no task, 4 tasks run by a command."""
    document = json.loads(EXPORT.read_text())
    parts = [p for m in document["messages"] for p in m["parts"]]
    raw = Counter(p["type"] for p in parts)
    tasks = [p for p in parts if p.get("tool") == "task"]
    trace = only(EXPORT)
    counts = Counter(e.kind for e in trace.events)
    assert counts["decision"] == raw["step-start"] == 63
    assert counts["tool_call"] == raw["tool"] - len(tasks) == 79
    assert counts["spawn"] == counts["return"] == len(tasks) == 4
    assert counts["human"] == raw["text"] - 7 - 4 + raw["subtask"]  # 7 answers, 4 made texts
    costs = sum(m["info"]["cost"] for m in document["messages"] if "cost" in m["info"])
    assert abs(sum(e.price for e in trace.events if e.price) - costs) < 1e-9
    sent = sum(p["tokens"]["input"] for p in parts if p["type"] == "step-finish")
    assert sum(e.tokens.input for e in trace.events if e.tokens) == sent


@REAL
def test_a_real_recording():
    """By eye: one turn runs three sub-agents side by side, the next says "done"."""
    trace = only(STREAM)
    assert kinds(trace, "0") == ["human", "decision", "spawn", "spawn", "spawn", "decision"]
    texts = [trace.text(e.content) for e in trace.events if e.kind == "return"]
    assert texts == ["A done", "B done", "C done"]
    assert [e.tokens.input for e in trace.events if e.tokens] == [19882, 20201]


@REAL
def test_the_times_of_waiting_calls_are_the_work_of_sub_agents_without_an_export():
    """By hand from `state.time` of the three `task` parts, and `_model` of the user's part."""
    recorded = only(STREAM)
    ran = [event.attrs["total_duration_ms"] for event in recorded.events if event.kind == "return"]
    assert ran == [7037.0, 11883.0, 16758.0]
    assert measure(recorded)["work"].value == pytest.approx(35.678 + 4.792)
    assert {agent.model for agent in recorded.agents} == {"Qwen/Qwen3-Coder-Next"}


@REAL
def test_it_keeps_the_rules_of_importers():
    check_importer("opencode", [STREAM])


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
ODD |= st.lists(ODD, max_size=2) | st.dictionaries(st.text(max_size=3), ODD, max_size=2)
NAMES = ["info", "parts", "time", "tokens", "state", "input", "metadata", "type", "parentID", "id"]


def replace(value, name, odd, skip):
    """Put an odd value at the `skip`-th place that has a name."""
    if isinstance(value, dict):
        for key in value:
            if key == name:
                if skip == 0:
                    value[key] = odd
                    return -1
                skip -= 1
            skip = replace(value[key], name, odd, skip)
            if skip < 0:
                return -1
    elif isinstance(value, list):
        for each in value:
            skip = replace(each, name, odd, skip)
            if skip < 0:
                return -1
    return skip


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(NAMES), ODD, st.integers(0, 8))
def test_odd_values_raise_only_our_own_errors(tmp_path_factory, name, value, place):
    paths = tree(tmp_path_factory.mktemp("odd"))
    document = json.loads(paths[0].read_text())
    replace(document, name, value, place)
    paths[0].write_text(json.dumps(document))
    with suppress(StrettoError):
        import_files(paths)
