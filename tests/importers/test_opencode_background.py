"""OpenCode sub-agents that run in the background: launched by a call, told by a notice."""

import pytest

from stretto.importers import import_paths
from stretto.importers.conformance import check_importer

from .rollouts import arrows, kinds
from .test_opencode import STEP, answer, export, finish, spent, task, text, tool, user


def launch(child, start, output="started", prompt="look", **metadata):
    asked = {"prompt": prompt, "subagent_type": "general", "description": "scout"}
    metadata = {"sessionId": child, "background": True} | metadata
    return tool("task", start, start, output, metadata=metadata, **asked)


def running(child):
    """What the tool says when it has only started."""
    body = "<summary>Background task started</summary>\n<task_result>\nwait\n</task_result>"
    return f'<task id="{child}" state="running">\n{body}\n</task>'


def notice(seconds, child, result, state="completed"):
    tag = "task_error" if state == "error" else "task_result"
    body = f"<summary>Background task {state}: scout</summary>\n<{tag}>\n{result}\n</{tag}>"
    return user(seconds, f'<task id="{child}" state="{state}">\n{body}\n</task>', synthetic=True)


def lead(path, *messages):
    return export(path / "lead.json", "ses_a", user(0, "Go."), *messages)


def child(path):
    return export(
        path / "child.json",
        "ses_b",
        user(2, "look"),
        answer(3, 8, STEP, text("found", 8)),
        parent="ses_a",
    )


def read(*paths):
    imported = import_paths(paths, "opencode")
    (trace,) = imported.traces
    return trace, imported.report


@pytest.mark.parametrize("output", ["started", running("ses_b")])
def test_the_return_comes_with_the_notice_and_not_with_the_launch(tmp_path, output):
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2, output)),
        answer(3, 4, STEP, text("meanwhile", 4)),
        notice(9, "ses_b", "found"),
        answer(10, 11, STEP, text("All.", 11)),
    )
    trace, reports = read(path, child(tmp_path))
    expected = ["human", "decision", "spawn", "tool_result", "decision", "decision"]
    assert kinds(trace, "0") == expected
    assert kinds(trace, "0/0") == ["decision", "return"]
    (back,) = [event for event in trace.events if event.kind == "return"]
    assert (back.start, trace.text(back.content), back.to) == (9.0, "found", "0")
    assert arrows(trace, "return") == {
        ("0/0#0", "0/0#1"): "recorded",
        ("0/0#1", "0#5"): "recorded",
    }
    told = {r.file.rpartition("/")[2]: (r.spawns, r.returns, r.unpaired) for r in reports}
    assert told == {"lead.json": (1, 1, 0), "child.json": (0, 0, 0)}
    assert not any(report.skipped for report in reports)


def test_a_promoted_task_is_told_by_its_output(tmp_path):
    """A call that was sent to the background while it ran may not say so in its metadata."""
    path = lead(tmp_path, answer(1, 3, STEP, launch("ses_b", 2, running("ses_b"), background=None)))
    trace, (report,) = read(path)
    assert "return" not in [event.kind for event in trace.events]
    assert (report.spawns, report.unpaired) == (1, 1)


def test_without_its_export_the_sub_agent_still_returns(tmp_path):
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2), launch("ses_c", 2, prompt="dig")),
        notice(7, "ses_c", "gold"),
        notice(9, "ses_b", "found"),
        answer(10, 11, STEP, text("All.", 11)),
    )
    trace, (report,) = read(path)
    backs = [event for event in trace.events if event.kind == "return"]
    found = {(e.agent, e.start, trace.text(e.content)) for e in backs}
    assert found == {("0/0", 9.0, "found"), ("0/1", 7.0, "gold")}
    assert (report.spawns, report.returns, report.unpaired) == (2, 2, 0)


def test_a_background_task_that_fails_does_not_return(tmp_path):
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2)),
        notice(9, "ses_b", "boom", state="error"),
        answer(10, 11, STEP, text("Alas.", 11)),
    )
    trace, (report,) = read(path)
    assert (report.spawns, report.returns, report.unpaired) == (1, 0, 1)
    assert kinds(trace, "0") == [
        *("human", "decision", "spawn", "tool_result", "tool_result", "decision")
    ]
    failed = [event for event in trace.events if event.kind == "tool_result"][1]
    assert (trace.text(failed.content), failed.start) == ("boom", 9.0)
    assert failed.attrs["is_error"] is True
    assert ("0#4", "0#5") in arrows(trace, "tool_dependency")


def test_more_for_a_task_that_still_runs_is_answered_with_it(tmp_path):
    """The second call only adds to the first; one notice answers both."""
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2)),
        answer(3, 5, STEP, launch("ses_b", 4, prompt="look there too")),
        notice(9, "ses_b", "found"),
        answer(10, 12, STEP, task("ses_b", 11, 12, result="more")),
        answer(12, 13, STEP, text("All.", 13)),
    )
    trace, _ = read(path)
    backs = [event for event in trace.events if event.kind == "return"]
    assert [(e.start, trace.text(e.content)) for e in backs] == [(9.0, "found"), (12.0, "more")]
    assert kinds(trace, "0").count("delegate") == 2


def test_two_launches_are_answered_in_their_order(tmp_path):
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2), launch("ses_b", 2, prompt="look there too")),
        notice(9, "ses_b", "found"),
        notice(12, "ses_b", "more"),
        answer(13, 14, STEP, text("All.", 14)),
    )
    trace, (report,) = read(path)
    backs = [event for event in trace.events if event.kind == "return"]
    assert [(e.start, trace.text(e.content)) for e in backs] == [(9.0, "found"), (12.0, "more")]
    calls = [e.attrs["call_id"] for e in trace.events if e.kind in ("spawn", "delegate")]
    assert [event.attrs["call_id"] for event in backs] == calls
    assert report.skipped == {}


def test_returns_stand_in_the_order_of_their_ends(tmp_path):
    """What is called last, and waited for, can be done first."""
    path = lead(
        tmp_path,
        answer(1, 3, STEP, launch("ses_b", 2)),
        answer(3, 7, STEP, task("ses_b", 4, 7, result="soon")),
        notice(9, "ses_b", "late"),
        answer(10, 11, STEP, text("All.", 11)),
    )
    trace, _ = read(path)
    backs = [(e.id, trace.text(e.content)) for e in trace.events if e.kind == "return"]
    assert backs == [("0/0#0", "soon"), ("0/0#1", "late")]


def test_words_about_a_task_that_nobody_started_are_skipped(tmp_path):
    path = lead(tmp_path, notice(9, "ses_x", "found"), answer(10, 11, STEP, text("All.", 11)))
    trace, (report,) = read(path)
    assert kinds(trace, "0") == ["human", "decision"]
    assert report.skipped == {"part/text/synthetic": 1}


def test_it_keeps_the_rules(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    lead(
        folder,
        answer(1, 3, STEP, launch("ses_b", 2), finish(spent(10, 5))),
        notice(9, "ses_b", "found"),
        answer(10, 11, STEP, text("All.", 11)),
    )
    child(folder)
    check_importer("opencode", [folder])
