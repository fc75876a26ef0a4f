"""Copilot CLI sessions, made by hand and real."""

import json
from collections import Counter
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.copilot_cli.importer import import_files
from stretto.trace import Tokens

from .rollouts import arrows, kinds, stamp
from .transcripts import DATA, REAL

FANOUT = DATA / "copilot_cli/irrlicht_workflow-fanout.jsonl"
SINGLE = DATA / "copilot_cli/agentv_1.0.64_single.jsonl"


LAUNCHED = "Agent started in background with agent_id: scout. You can use read_agent tool."


def event(at, kind, agent=None, /, **data):
    extra = {"agentId": agent} if agent else {}
    return {
        "type": kind,
        "data": data,
        "id": f"e{at}",
        "timestamp": stamp(at),
        "parentId": None,
    } | extra


def begin(**data):
    return event(0, "session.start", sessionId="S", copilotVersion="1.0.78", **data)


def message(at, text, *requests, agent=None, out=5, **data):
    asked = [{"toolCallId": use, "name": name, "arguments": args} for use, name, args in requests]
    fields = {"messageId": f"m{at}", "content": text, "toolRequests": asked, "outputTokens": out}
    return event(at, "assistant.message", agent, **fields, **data)


def call(at, use, tool, /, agent=None, parent=None, **arguments):
    fields = {"toolCallId": use, "toolName": tool, "arguments": arguments}
    extra = {"parentToolCallId": parent} if parent else {}
    return event(at, "tool.execution_start", agent, **fields, **extra)


def done(at, use, text, agent=None, success=True, parent=None):
    result = {"result": {"content": text}} if success else {"error": {"message": text}}
    extra = {"parentToolCallId": parent} if parent else {}
    return event(
        at, "tool.execution_complete", agent, toolCallId=use, success=success, **result, **extra
    )


def write(path, *events):
    path.write_text("".join(json.dumps(each) + "\n" for each in events))
    return path


def only(path):
    (trace,) = import_paths([path], "copilot-cli").traces
    return trace


def sync_team(tmp_path, inline=True):
    """A lead that spawns one agent and waits; `inline` children say `agentId`."""
    task = {"prompt": "look", "name": "scout", "agent_type": "explore", "mode": "sync"}
    mine = {"agent": "t"} if inline else {"parent": "t"}
    said = {"agent": "t"} if inline else {"parentToolCallId": "t"}
    return write(
        tmp_path / "events.jsonl",
        begin(),
        event(1, "user.message", content="Go."),
        event(1, "assistant.turn_start", turnId="0"),
        message(3, "I ask.", ("t", "task", task)),
        call(3, "t", "task", **task),
        event(4, "subagent.started", "t" if inline else None, toolCallId="t", agentName="explore"),
        call(6, "b", "bash", **mine, command="ls"),
        done(8, "b", "files", **mine),
        message(9, "found", **said),
        event(10, "subagent.completed", "t" if inline else None, toolCallId="t", totalTokens=9),
        done(11, "t", "found"),
        message(13, "All."),
    )


def test_a_team_in_one_file(tmp_path):
    """0: human, turn, spawn, turn; 0/0: call, result, turn, return."""
    trace = only(sync_team(tmp_path))
    assert (trace.id, trace.system) == ("S", "copilot-cli 1.0.78")
    child = trace.agents[1]
    assert (child.id, child.role, child.name, child.parent) == ("0/0", "explore", "scout", "0")
    assert kinds(trace, "0") == ["human", "decision", "spawn", "decision"]
    assert kinds(trace, "0/0") == ["tool_call", "tool_result", "decision", "return"]
    assert arrows(trace, "spawn") == {("0#2", "0/0#0"): "recorded"}
    assert arrows(trace, "return") == {
        ("0/0#2", "0/0#3"): "recorded",
        ("0/0#3", "0#3"): "recorded",
    }
    first, last = (e for e in trace.events if e.agent == "0" and e.kind == "decision")
    assert (first.start, first.duration, first.decision.type) == (1.0, 2.0, "spawn")
    assert (last.start, last.duration, last.decision.type) == (11.0, 2.0, "stop")
    assert first.tokens == Tokens(output=5)  # prompt tokens are stated for the whole session only
    (tool,) = (e for e in trace.events if e.kind == "tool_call")
    assert (tool.start, tool.duration) == (6.0, 2.0)


def test_children_without_agent_ids_are_told_by_their_parent_call(tmp_path):
    inline, older = only(sync_team(tmp_path)), only(sync_team(tmp_path, inline=False))
    assert kinds(older, "0/0") == kinds(inline, "0/0")
    assert arrows(older, "return") == arrows(inline, "return")


def test_a_model_that_is_changed_is_that_of_later_turns(tmp_path):
    """The agent's is that of its first turn; a message names its own, old ones name none."""
    path = write(
        tmp_path / "events.jsonl",
        begin(selectedModel="a"),
        event(0, "session.model_change", newModel="b"),
        message(1, "one"),
        event(2, "session.model_change", newModel="c"),
        message(3, "two"),
        event(4, "session.model_change", newModel="auto"),
        message(5, "three", model="b"),
        message(6, "four", model="d"),
    )
    trace = only(path)
    assert trace.agents[0].model == "b"
    assert [e.attrs.get("model") for e in trace.events] == [None, "c", None, "d"]


def test_agents_in_the_background(tmp_path):
    """The call only launches; the result is read later; then more work is handed over."""
    task = {"prompt": "look", "name": "Scout", "mode": "background"}
    path = write(
        tmp_path / "events.jsonl",
        begin(),
        message(1, "", ("t", "task", task)),
        call(1, "t", "task", **task),
        event(1, "subagent.started", "t", toolCallId="t", agentName="explore"),
        done(2, "t", LAUNCHED),
        event(2, "user.message", "t", content="look"),
        message(5, "found", agent="t"),
        event(5, "subagent.completed", "t", toolCallId="t"),
        event(6, "system.notification", kind={"type": "agent_completed", "agentId": "scout"}),
        message(7, "", ("r", "read_agent", {"agent_id": "scout"})),
        call(7, "r", "read_agent", agent_id="scout"),
        done(9, "r", "found"),
        message(10, "", ("w", "write_agent", {"agent_id": "scout", "message": "more"})),
        call(10, "w", "write_agent", agent_id="scout", message="more"),
        done(10, "w", "sent"),
        event(11, "user.message", "t", content="more"),
        message(12, "nothing", agent="t"),
        event(12, "subagent.completed", "t", toolCallId="t"),
    )
    trace = only(path)
    texts = [trace.text(e.content) for e in trace.events if e.kind == "return"]
    assert texts == ["found", "nothing"]
    assert arrows(trace, "return")["0/0#1", "0#3"] == "recorded"  # the notification, then the turn
    assert arrows(trace, "return")["0/0#1", "0#5"] == "recorded"  # what read_agent answered
    assert arrows(trace, "message") == {("0#7", "0/0#2"): "derived"}
    (wait,) = (e for e in trace.events if e.attrs.get("waiting"))
    assert (wait.tool, wait.duration, wait.to) == ("read_agent", 2.0, "0/0")
    types = [e.decision.type for e in trace.events if e.agent == "0" and e.decision]
    assert types == ["spawn", "act", "delegate"]


def test_an_agent_that_is_idle_has_returned(tmp_path):
    """Agents that may be told more are idle when they are done; nothing says `completed`."""
    task = {"prompt": "look", "name": "scout", "mode": "background"}
    path = write(
        tmp_path / "events.jsonl",
        begin(),
        message(1, "", ("t", "task", task)),
        call(1, "t", "task", **task),
        event(1, "subagent.started", "t", toolCallId="t", agentName="explore"),
        done(2, "t", LAUNCHED),
        message(5, "found", agent="t"),
        event(6, "system.notification", kind={"type": "agent_idle", "agentId": "scout"}),
        event(6, "subagent.completed", "t", toolCallId="t"),
        message(7, "All."),
    )
    trace = only(path)
    assert kinds(trace, "0/0") == ["decision", "return"]
    assert arrows(trace, "return")["0/0#1", "0#3"] == "recorded"


def test_a_sub_agent_that_fails_does_not_return(tmp_path):
    path = write(
        tmp_path / "events.jsonl",
        begin(),
        message(1, "", ("t", "task", {"prompt": "look"})),
        call(1, "t", "task", prompt="look"),
        event(1, "subagent.started", "t", toolCallId="t", agentName="explore"),
        event(2, "subagent.failed", "t", toolCallId="t", error="boom"),
        done(3, "t", "boom", success=False),
    )
    imported = import_paths([path], "copilot-cli")
    (trace,), (report,) = imported.traces, imported.report
    assert kinds(trace, "0") == ["decision", "spawn", "tool_result"]
    assert trace.agents[1].attrs["error"] == "boom"
    assert (report.spawns, report.returns, report.unpaired) == (1, 0, 1)


def test_interrupts_errors_costs_and_calls_that_never_ran(tmp_path):
    usage = {"inputTokens": 30, "cacheReadTokens": 10, "outputTokens": 7}
    path = write(
        tmp_path / "events.jsonl",
        begin(),
        event(1, "assistant.usage", apiCallId="a", **usage),
        message(2, "", ("x", "bash", {"command": "ls"}), apiCallId="a"),
        message(2, "again", apiCallId="a"),
        event(3, "session.error", message="offline"),
        event(4, "abort", reason="user_initiated"),
        event(5, "session.shutdown", totalNanoAiu=2_000_000_000, totalPremiumRequests=3),
    )
    imported = import_paths([path], "copilot-cli")
    (trace,) = imported.traces
    turn, never, human = trace.events
    assert turn.tokens == Tokens(input=20, cache_read=10, output=7)
    assert turn.attrs["error"] == "offline"
    assert (never.kind, never.attrs["started"]) == ("tool_call", False)
    assert (human.kind, human.attrs["interrupt"]) == ("human", True)
    assert {s.channel: (s.value, s.kind) for s in trace.scores} == {
        "aiu": (2.0, "cost"),
        "premium_requests": (3.0, "cost"),
    }
    assert imported.report[0].duplicates == 1  # the message came twice


@REAL
def test_a_real_fan_out():
    """By eye: three explore agents, each with one bash call of 25 s; sampled tokens add up to
    what the shutdown record says."""
    trace = only(FANOUT)
    assert [a.name for a in trace.agents[1:]] == ["child-A", "child-B", "child-C"]
    counts = Counter(e.kind for e in trace.events)
    assert [counts[k] for k in ("spawn", "return", "decision", "tool_call")] == [3, 3, 8, 3]
    total = trace.attrs["shutdown"]["modelMetrics"]["gpt-5-mini"]
    assert counts["decision"] == total["requests"]["count"]
    sampled = sum(e.tokens.output for e in trace.events if e.tokens)
    assert sampled == total["usage"]["outputTokens"] == 2630
    texts = sorted(trace.text(e.content) for e in trace.events if e.kind == "return")
    assert texts == ["child-A-done", "child-B-done", "child-C-done"]


@REAL
def test_a_real_session_of_one_agent():
    raw = Counter(json.loads(line)["type"] for line in SINGLE.read_text().splitlines())
    counts = Counter(e.kind for e in only(SINGLE).events)
    assert counts["decision"] == raw["assistant.message"] == 54
    assert counts["tool_call"] == counts["tool_result"] == raw["tool.execution_start"] == 68
    assert counts["human"] == 1 and counts["spawn"] == 0


@REAL
def test_it_keeps_the_rules_of_importers():
    check_importer("copilot-cli", [FANOUT])


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
ODD |= st.lists(ODD, max_size=2) | st.dictionaries(st.text(max_size=3), ODD, max_size=2)
NAMES = ["type", "data", "timestamp", "agentId", "toolCallId", "toolRequests", "arguments", "kind"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 11), st.sampled_from(NAMES), ODD)
def test_odd_values_raise_only_our_own_errors(tmp_path_factory, line, name, value):
    path = sync_team(tmp_path_factory.mktemp("odd"))
    records = [json.loads(each) for each in path.read_text().splitlines()]
    place = records[line]
    (place if name in place else place["data"])[name] = value
    write(path, *records)
    with suppress(StrettoError):
        import_files([path])
