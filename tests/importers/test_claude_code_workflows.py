"""Workflows: a script of the lead that lets agents work."""

import json

import pytest

from stretto.graph import topological_order
from stretto.importers import import_paths
from stretto.validate import problems

from .transcripts import (
    answer,
    arrows,
    assistant,
    below,
    call,
    child,
    kinds,
    news,
    queued,
    read,
    stamp,
    user,
    write,
)

RUN = "S/subagents/workflows/wf_1"
STARTED = {"status": "async_launched", "taskId": "w1", "runId": "wf_1"}
NEWS = news("w1", "t1", '{"results": ["found"]}')
CALLER = [
    user("go", 0),
    assistant("m1", 2, call("t1", "Workflow", script="agent('look')"), stop="tool_use"),
    answer("t1", 2.5, "Workflow launched in background. Task ID: w1\nRun ID: wf_1", STARTED),
    assistant("m2", 3, "it runs"),
    queued(NEWS, 20),
    user(NEWS, 20.5, origin={"kind": "task-notification"}),
    assistant("m3", 22, "done"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "S.jsonl"


def journal(path, *lines):
    write(path.parent / RUN / "journal.jsonl", *lines)


def started(agent, **fields):
    return {"type": "started", "key": f"v2:{agent}", "agentId": agent} | fields


def result(agent, value):
    return {"type": "result", "key": f"v2:{agent}", "agentId": agent, "result": value}


def milliseconds(at):
    return 1767225600000 + at * 1000


def agents(path, *names):
    for number, name in enumerate(names):
        records = [e | {"uuid": f"{name}{e['uuid']}"} for e in child(name, "look", 4 + number)]
        below(path, *records, agent=name, folder=RUN)
        meta = {"agentType": "workflow-subagent", "spawnDepth": 1}
        (path.parent / RUN / f"agent-{name}.meta.json").write_text(json.dumps(meta))


def test_agents_of_a_workflow_by_their_transcripts_and_the_journal(path):
    """Two agents, started at 4 and 5, one with a result; each has two turns."""
    agents(path, "x1", "x2")
    journal(path, started("x2"), started("x1"), result("x2", {"a": 1}), {"type": "log"})
    trace, reports = read(path, *CALLER)
    assert [(a.id, a.parent, a.role, a.name) for a in trace.agents] == [
        ("0", None, None, None),
        ("0/0", "0", "workflow-subagent", "x2"),
        ("0/1", "0", "workflow-subagent", "x1"),
    ]
    spawns = [(e.agent, e.to, e.start, trace.text(e.content)) for e in kinds(trace, "spawn")]
    assert spawns == [("0", "0/1", 4, "look"), ("0", "0/0", 5, "look")]
    (back,) = kinds(trace, "return")
    assert (back.agent, back.to, back.start) == ("0/0", "0", 9)
    assert trace.text(back.content) == '{"a":1}'
    ended = kinds(trace, "tool_result")[-1]
    assert ended.attrs["task_id"] == "w1"
    assert (back.id, ended.id) in arrows(trace, "return")
    assert len(kinds(trace, "decision")) == 3 + 4
    report = reports["S.jsonl"]
    assert (report.spawns, report.returns, report.unpaired) == (2, 1, 1)
    assert reports["journal.jsonl"].skipped == {"log": 1}
    assert not list(problems(trace))
    topological_order(trace)


def test_the_call_causes_the_spawns_and_the_turn_is_a_spawn(path):
    agents(path, "x1")
    trace, _ = read(path, *CALLER)
    turn = kinds(trace, "decision")[0]
    (made,), (born,) = kinds(trace, "tool_call")[:1], kinds(trace, "spawn")
    assert turn.decision.type == "spawn"
    assert {(turn.id, made.id), (made.id, born.id)} <= arrows(trace, "causal")
    assert (born.id, "0/0#0") in arrows(trace, "spawn")
    assert born.attrs["workflow"] == "wf_1"


def test_what_the_snapshot_adds(path):
    """It was written at the end: label, phase, model, times and result of an agent without file."""
    snapshot = {
        "runId": "wf_1", "taskId": "w1", "agentCount": 1,
        "phases": [{"title": "Find"}, {"title": "Check"}],
        "workflowProgress": [
            {"type": "workflow_phase", "index": 1, "title": "Find"},
            {"type": "workflow_agent", "agentId": "x9", "label": "seek", "phaseIndex": 2,
             "model": "claude-x", "state": "done", "startedAt": milliseconds(6), "durationMs": 5000,
             "tokens": 12, "toolCalls": 3, "attempt": 1},
        ],
    }  # fmt: skip
    write(path.parent / "S/workflows/wf_1.json", json.dumps(snapshot).encode())
    trace, reports = read(path, *CALLER)
    agent = trace.agents[1]
    assert (agent.name, agent.model, agent.attrs["transcript"]) == ("seek", "claude-x", False)
    (born,), (back,) = kinds(trace, "spawn"), kinds(trace, "return")
    assert (born.start, born.attrs["phase"]) == (6, "Check")
    assert (back.start, back.attrs["total_tokens"]) == (11, 12)
    assert reports["wf_1.json"].records == 1
    assert import_paths([path.parent]).traces == (trace,)


def test_a_run_is_found_by_its_task_where_the_result_has_no_run(path):
    snapshot = {"runId": "wf_1", "taskId": "w1", "workflowProgress": [{"agentId": "x9"}]}
    write(path.parent / "S/workflows/wf_1.json", json.dumps(snapshot).encode())
    old = answer("t1", 2.5, "Workflow launched in background. Task ID: w1")
    trace, _ = read(path, *CALLER[:2], old, *CALLER[3:])
    assert [(agent.id, agent.name) for agent in trace.agents] == [("0", None), ("0/0", "x9")]


def test_agents_that_are_absent_are_told_of_and_not_invented(path):
    trace, reports = read(path, *CALLER)
    assert len(trace.agents) == 1
    (notice,) = reports["S.jsonl"].warnings
    assert str(notice).endswith(
        "S.jsonl:2: the agents of workflow wf_1 are not here: only its result is known"
    )


def counted(agents):
    """The caller, whose workflow ends with a count of its agents."""
    told = NEWS.replace("<usage>", f"<usage><agent_count>{agents}</agent_count>")
    return [*CALLER[:4], queued(told, 20), user(told, 20.5, origin=CALLER[5]["origin"]), CALLER[6]]


def test_agents_that_are_counted_and_not_here_are_agents_without_a_transcript(path):
    """Three agents, of which one has a file: two more are there, and nothing is known of them."""
    agents(path, "x1")
    trace, reports = read(path, *counted(3))
    assert [(a.id, a.parent, a.name, a.attrs["transcript"]) for a in trace.agents] == [
        ("0", None, None, True),
        ("0/0", "0", "x1", True),
        ("0/1", "0", None, False),
        ("0/2", "0", None, False),
    ]
    assert {a.attrs["tool_use_id"] for a in trace.agents[1:]} == {"t1"}
    assert [e.to for e in kinds(trace, "spawn")] == ["0/0"], "when they were spawned is not known"
    told = [str(each) for each in reports["S.jsonl"].warnings]
    assert any("2 of the 3 agents of workflow wf_1 are not here" in each for each in told)
    assert (reports["S.jsonl"].unpaired, len(told)) == (1, 2)
    assert not list(problems(trace))


@pytest.mark.parametrize("count", [1, 0, 1001, 999_999_999_999_999])
def test_a_count_that_adds_nobody(path, count):
    """As many as are here, fewer, and more than a workflow can have."""
    agents(path, "x1")
    trace, reports = read(path, *counted(count))
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]
    assert not any("are not here" in str(each) for each in reports["S.jsonl"].warnings)


def test_an_agent_of_a_workflow_can_spawn_others(path):
    agents(path, "x1")
    inner = child("x2", "deeper", 6)
    below(path, *[e | {"uuid": f"n{e['uuid']}"} for e in inner], agent="x2", folder=RUN)
    meta = {"agentType": "Explore", "parentAgentId": "x1", "spawnDepth": 2}
    (path.parent / RUN / "agent-x2.meta.json").write_text(json.dumps(meta))
    journal(path, started("x1"))
    trace, _ = read(path, *CALLER)
    assert [(a.id, a.parent) for a in trace.agents] == [("0", None), ("0/0", "0"), ("0/0/0", "0/0")]


def test_damaged_journals_and_snapshots_cost_nothing_else(path):
    agents(path, "x1")
    journal(path, b"{\n", b'{"type": "result", "agentId": 7}\n', started("x1"), b'{"type": "sta')
    write(path.parent / "S/workflows/wf_1.json", b'{"runId": "wf_1", "workflowProgress": [{"agen')
    write(path.parent / "S/workflows/wf_2.json", b"no")
    trace, reports = read(path, *CALLER)
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]
    assert len(reports["journal.jsonl"].warnings) == 2
    assert len(reports["wf_1.json"].warnings) == len(reports["wf_2.json"].warnings) == 1


def test_stamps_and_milliseconds_agree():
    assert stamp(0) == "2026-01-01T00:00:00.000Z"
    assert milliseconds(0) == 1767225600000
