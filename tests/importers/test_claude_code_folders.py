"""Parts of a session in its folder whose records name another session."""

import pytest

from stretto.importers import import_paths, plan
from stretto.importers.claude_code.importer import sessions

from .transcripts import (
    PARENT,
    answer,
    arrows,
    assistant,
    below,
    call,
    child,
    kinds,
    side,
    stamp,
    user,
    write,
)

RUN = "S/subagents/workflows/wf_1"
STARTED = {"status": "async_launched", "taskId": "w1", "runId": "wf_1"}
LAUNCHED = "Workflow launched in background. Task ID: w1\nRun ID: wf_1"
CALLER = [
    user("go", 0),
    assistant("m1", 2, call("t1", "Workflow", script="agent('look')"), stop="tool_use"),
    answer("t1", 2.5, LAUNCHED, STARTED),
    assistant("m2", 30, "done"),
]


def of(session, *entries):
    """The records as another session has them."""
    return [e | {"sessionId": session, "uuid": f"{session}-{e['uuid']}"} for e in entries]


def strangers(folder, *names, inside=RUN, session="T"):
    """Agents in a folder of session S whose records name another one."""
    for number, name in enumerate(names):
        below(folder / "S.jsonl", *of(session, *child(name, "look", 4 + number)), agent=name,
              folder=inside)  # fmt: skip


def told(imported):
    return [str(notice) for report in imported.report for notice in report.warnings]


@pytest.mark.parametrize("named", ["S.jsonl", "."])
def test_agents_of_a_workflow_that_name_another_session_are_joined_by_their_folder(tmp_path, named):
    """S calls the workflow; both of its agents say that they are of T, which is not there."""
    write(tmp_path / "S.jsonl", *CALLER)
    strangers(tmp_path, "x1", "x2")
    imported = import_paths([tmp_path / named])
    (trace,) = imported.traces
    assert [(a.id, a.parent, a.name) for a in trace.agents] == [
        ("0", None, None),
        ("0/0", "0", "x1"),
        ("0/1", "0", "x2"),
    ]
    spawns = kinds(trace, "spawn")
    assert [(e.agent, e.to, e.start) for e in spawns] == [("0", "0/0", 4), ("0", "0/1", 5)]
    assert {(e.id, f"{e.to}#0") for e in spawns} <= arrows(trace, "spawn")
    assert len(kinds(trace, "decision")) == 2 + 4
    notices = [notice for notice in told(imported) if "folder" in notice]
    assert len(notices) == 2
    assert notices[0].endswith(
        "agent-x1.jsonl:1: its records name session T: it stands in the folder of S, "
        "and is read as part of that"
    )


def test_one_group_holds_the_session_and_its_strangers(tmp_path):
    path = write(tmp_path / "S.jsonl", *CALLER)
    strangers(tmp_path, "x1")
    write(tmp_path / "U.jsonl", *of("U", user("go", 50)))
    names = [[file.name for file in each.files] for each in plan([tmp_path]).sessions]
    assert names == [["S.jsonl", "agent-x1.jsonl"], ["U.jsonl"]]
    assert [[file.name for file in group] for group in sessions([path])] == names[:1]


def test_sub_agents_outside_of_workflows_are_joined_by_their_folder_too(tmp_path):
    path = write(tmp_path / "S.jsonl", *PARENT)
    strangers(tmp_path, "x1", inside="S/subagents")
    (trace,) = import_paths([path]).traces
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]
    assert len(kinds(trace, "decision")) == 4


def test_the_session_that_alone_tells_of_a_run_has_it_wherever_it_stands(tmp_path):
    """The folder is that of S, where the process began; it went on with T, which called the run."""
    write(tmp_path / "S.jsonl", user("go", 0), assistant("m0", 1, "hi"))
    write(tmp_path / "T.jsonl", *of("T", *CALLER))
    strangers(tmp_path, "x1")
    imported = import_paths([tmp_path])
    found = {trace.id: trace for trace in imported.traces}
    assert [agent.id for agent in found["S"].agents] == ["0"]
    assert [(agent.id, agent.name) for agent in found["T"].agents] == [("0", None), ("0/0", "x1")]
    assert not [notice for notice in told(imported) if "folder" in notice]


def test_the_folder_decides_where_both_sessions_tell_of_a_run(tmp_path):
    """T is a copy of S that went on: its records are those of S, with its own name."""
    write(tmp_path / "S.jsonl", *CALLER)
    copied = [entry | {"sessionId": "T"} for entry in CALLER]
    write(tmp_path / "T.jsonl", *copied, *of("T", user("on", 60)))
    strangers(tmp_path, "x1")
    found = {trace.id: trace for trace in import_paths([tmp_path]).traces}
    assert [agent.name for agent in found["S"].agents] == [None, "x1"]
    assert [agent.name for agent in found["T"].agents] == [None]


def test_a_part_that_names_no_session_belongs_to_its_folder_without_a_word(tmp_path):
    write(tmp_path / "S.jsonl", *CALLER)
    bare = [{k: v for k, v in side(e, "x1").items() if k != "sessionId"} for e in child()]
    write(tmp_path / RUN / "agent-x1.jsonl", *bare)
    imported = import_paths([tmp_path])
    (trace,) = imported.traces
    assert [agent.name for agent in trace.agents] == [None, "x1"]
    assert not [notice for notice in told(imported) if "folder" in notice]


def test_a_stranger_whose_session_is_not_here_is_a_trace_of_its_own(tmp_path):
    strangers(tmp_path, "x1")
    (trace,) = import_paths([tmp_path]).traces
    assert (trace.id, trace.attrs["started"]) == ("T", stamp(4).replace(".000Z", "+00:00"))
