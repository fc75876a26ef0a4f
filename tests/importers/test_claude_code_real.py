"""Real transcripts of several versions, against counts made from the raw JSON by other means."""

import json
import re
from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

import stretto
from stretto.graph import topological_order
from stretto.importers import import_paths
from stretto.metrics import measure
from stretto.validate import problems

from .transcripts import DATA, REAL, arrows, kinds

pytestmark = REAL

SUBAGENTS = "claude_code/irrlicht_subagent-spawn/session.jsonl"
ASYNC = "claude_code/entireio_cli/2.0.76_8task_async.jsonl"
PROGRESS = "claude_code/entireio_cli/2.1.29_8task_agent_progress.jsonl"
ORPHAN = "claude_code/irrlicht_orphan-cleanup.jsonl"
WORKFLOW = "claude_code/irrlicht_workflow-fanout_2.1.165.jsonl"
MANY = "claude_code/oh-my-posh/2.1.217_24agents_async.jsonl"
TEAM = "claude_code_teams/cybervpn_phase6"
LEAD = f"{TEAM}/lead.jsonl"
BIG_TEAM = "claude_code_teams/entire-bmad_metrics-dev-team_lead.jsonl"
MEMBERS = [
    f"{TEAM}/{name}.jsonl"
    for name in (
        "frontend-fix",
        "frontend-quality",
        "frontend-tests",
        "infra-cleanup",
        "mobile-polish",
    )
]
ALL = [SUBAGENTS, ASYNC, PROGRESS, ORPHAN, WORKFLOW, MANY, LEAD, BIG_TEAM, *MEMBERS]


def files_of(name):
    """The file, and the transcripts of its sub-agents and of the members of its team."""
    path = DATA / name
    members = [DATA / member for member in MEMBERS] if name == LEAD else []
    return [path, *sorted((path.parent / "subagents").glob("*.jsonl")), *members]


def raw(name):
    """All records as plain JSON, those of sub-agents inside others unwrapped."""
    found = []
    for path in files_of(name):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            inner = (entry.get("data") or {}).get("message")
            found.append(inner if entry["type"] == "progress" and inner else entry)
    return found


def imported(name):
    (trace,) = import_paths([DATA / name]).traces
    return trace


def report_of(name):
    return import_paths([DATA / name]).report


def overlaps(trace):
    """Pairs of agents that are at work at once."""
    events = [e for e in trace.events if e.duration and not e.attrs.get("waiting")]
    events.sort(key=lambda event: event.start)
    return {
        (first.agent, second.agent)
        for first, second in pairwise(events)
        if first.agent != second.agent and second.start < first.start + first.duration - 1e-6
    }


@pytest.fixture(params=ALL)
def name(request):
    return request.param


def test_tokens_equal_those_of_the_distinct_messages(name):
    """Counted again: the largest of every number over all records that share a message id."""
    largest = defaultdict(Counter)
    for entry in raw(name):
        if entry["type"] == "assistant":
            usage = entry["message"].get("usage") or {}
            numbers = Counter({k: v for k, v in usage.items() if k.endswith("_tokens")})
            largest[entry["message"]["id"]] |= numbers
    total = Counter()
    for numbers in largest.values():
        total += numbers
    turns = kinds(imported(name), "decision")
    assert len(turns) == len(largest)
    assert sum(turn.tokens.input for turn in turns) == total["input_tokens"]
    assert sum(turn.tokens.output for turn in turns) == total["output_tokens"]
    assert sum(turn.tokens.cache_read for turn in turns) == total["cache_read_input_tokens"]
    assert sum(turn.tokens.cache_write for turn in turns) == total["cache_creation_input_tokens"]


def test_every_tool_use_and_every_result_is_there_once(name):
    uses, results = Counter(), Counter()
    for entry in raw(name):
        content = (entry.get("message") or {}).get("content")
        for block in content if isinstance(content, list) else []:
            uses[block.get("name")] += block["type"] == "tool_use"
            results["all"] += block["type"] == "tool_result"
    trace = imported(name)
    made = Counter(event.tool for event in kinds(trace, "tool_call", "spawn"))
    made.update(e.tool for e in kinds(trace, "message") if e.tool)
    assert made == +uses
    told = [e for e in kinds(trace, "tool_result") if not e.attrs.get("background")]
    sync = [e for e in kinds(trace, "return") if e.attrs["via"] == "result"]
    assert len(told) + len(sync) == results["all"]


def test_all_edges_form_a_graph_without_loops_and_causes_come_first(name):
    trace = imported(name)
    assert not list(problems(trace))
    assert topological_order(trace).tolist() == list(range(len(trace.events)))


def test_no_chain_of_work_is_longer_than_the_run(name):
    found = measure(imported(name))
    assert found["span"].value <= found["makespan"].value + 1e-6
    assert found["span"].value <= found["work"].value + 1e-6


def test_ids_count_up_within_each_agent(name):
    trace = imported(name)
    counted = defaultdict(list)
    for event in trace.events:
        agent, _, count = event.id.partition("#")
        assert agent == event.agent
        counted[agent].append(int(count))
    assert all(counts == list(range(len(counts))) for counts in counted.values())


def test_times_are_those_of_the_records(name):
    trace = imported(name)
    started = datetime.fromisoformat(trace.attrs["started"])
    texts = [path.read_text() for path in files_of(name)]
    stamps = {
        (datetime.fromisoformat(found) - started).total_seconds()
        for text in texts
        for found in re.findall(r'timestamp\\*":\s*\\*"(2[\dT:.+-]+Z)', text)
    }
    assert all(event.start in stamps for event in trace.events)
    assert all(event.duration is None or event.duration >= 0 for event in trace.events)


def test_every_record_is_an_event_or_is_counted_as_skipped(name):
    for report in report_of(name):
        lines = [json.loads(line) for line in Path(report.file).read_text().splitlines()]
        assert report.records == len(lines)
        known = {"file-history-snapshot", "last-prompt", "mode", "permission-mode", "pr-link"}
        for kind in known:
            assert report.skipped.get(kind, 0) == sum(line["type"] == kind for line in lines)
        assert not report.unknown_fields
        assert not report.duplicates


def test_steps_back_are_counted(name):
    for report in report_of(name):
        lines = [json.loads(line) for line in Path(report.file).read_text().splitlines()]
        times = [line["timestamp"] for line in lines if line.get("timestamp")]
        assert report.stepped_back == sum(b < a for a, b in pairwise(times))


FACTS = {  # agents, spawns, returns, unpaired, people, unreliable turns
    SUBAGENTS: (4, 3, 3, 0, 1, 0),
    ASYNC: (9, 8, 8, 0, 1, 9),
    PROGRESS: (9, 8, 8, 0, 9, 138),
    ORPHAN: (2, 1, 0, 1, 1, 0),
    WORKFLOW: (4, 0, 0, 0, 1, 0),
    MANY: (25, 24, 24, 0, 3, 0),
    LEAD: (7, 6, 0, 6, 1, 0),
    BIG_TEAM: (10, 9, 0, 9, 5, 21),
}
"""Counted by reading the files: Task and Agent calls, results and notifications, typed lines."""


@pytest.mark.parametrize("name", FACTS)
def test_who_was_there_and_who_came_back(name):
    trace, (report, *_) = imported(name), report_of(name)
    humans = len(kinds(trace, "human"))
    found = (len(trace.agents), report.spawns, report.returns, report.unpaired, humans)
    assert (*found, report.unreliable_tokens) == FACTS[name]
    assert measure(trace)["unpaired_spawns"].value == report.unpaired
    assert {agent.id for agent in trace.agents} == {
        "0", *(f"0/{number}" for number in range(len(trace.agents) - 1))
    }  # fmt: skip


def test_sub_agents_whose_parent_has_no_side_chain():
    lines = files_of(SUBAGENTS)[0].read_text().splitlines()
    assert not any(json.loads(line).get("isSidechain") for line in lines)
    trace = imported(SUBAGENTS)
    turns = Counter(event.agent for event in kinds(trace, "decision"))
    assert turns == {"0": 2, "0/0": 5, "0/1": 2, "0/2": 4}
    assert import_paths([DATA / Path(SUBAGENTS).parent]).traces == (trace,)
    evidence = {edge.evidence for edge in trace.edges if edge.label in ("spawn", "return")}
    assert evidence == {"recorded"}


def test_the_shape_of_three_agents_side_by_side_counted_by_hand():
    """The clock runs from 09:21:17.368 (the person) to 09:21:39.718 (the answer).

    The lead's two turns take 6.387 s and 2.496 s. The longest child (`0/0`) takes 11.352 s of turns
    and 2.612 s of tools, and is spawned 2.429 s before the lead's first turn has ended.
    """
    trace = imported(SUBAGENTS)
    found = {name: each.value for name, each in measure(trace).items()}
    assert found["makespan"] == pytest.approx(22.350)
    seconds = Counter()
    for event in kinds(trace, "decision", "tool_call"):
        seconds[event.agent, event.kind] += event.duration
    assert seconds["0", "decision"] == pytest.approx(6.387 + 2.496)
    assert seconds["0/0", "decision"] == pytest.approx(11.352)
    assert seconds["0/0", "tool_call"] == pytest.approx(2.612)
    assert found["work"] == pytest.approx(sum(seconds.values()))
    assert found["parallelism"] == pytest.approx(sum(seconds.values()) / 22.350)
    assert found["peak_width"] == 3
    chain = 6.387 + 11.352 + 2.612 + 2.496
    assert chain - 2.429 - 0.001 <= found["span"] <= chain + 0.001


def test_the_work_of_one_agent_after_another_counted_by_a_script():
    """Again from the raw JSON: results minus uses; last block minus the newest record before it."""
    uses, tools = {}, 0.0
    for entry in raw(PROGRESS):
        content = (entry.get("message") or {}).get("content")
        for block in content if isinstance(content, list) else []:
            time = datetime.fromisoformat(entry["timestamp"])
            if block["type"] == "tool_use" and block["name"] not in ("Task", "Agent"):
                uses[block["id"]] = time
            elif block["type"] == "tool_result" and block["tool_use_id"] in uses:
                tools += (time - uses[block["tool_use_id"]]).total_seconds()
    trace = imported(PROGRESS)
    found = {name: each.value for name, each in measure(trace).items()}
    calls = [event.duration for event in kinds(trace, "tool_call")]
    assert sum(calls) == pytest.approx(tools)
    turns = sum(event.duration for event in kinds(trace, "decision"))
    assert found["work"] == pytest.approx(tools + turns)
    assert not overlaps(trace)  # eight spawns, one after another
    assert found["span"] <= found["work"] <= found["makespan"]
    waits = [event.attrs["call_duration"] for event in kinds(trace, "spawn")]
    stated = [event.attrs["total_duration_ms"] / 1000 for event in kinds(trace, "return")]
    assert waits == pytest.approx(stated, abs=0.6)
    assert max(waits) == pytest.approx(2931, abs=1)


def test_last_answers_that_news_leave_out_are_reported():
    (report,) = report_of(PROGRESS)
    missing = [str(w) for w in report.warnings if "is not recorded" in w.what]
    assert len(missing) == 8
    assert "0/0 (a0853aa) is not recorded: 18.5 s" in missing[0]
    assert "03:50:34.232" in (DATA / PROGRESS).read_text()  # its return; its last result: 50:15.728
    assert all(f"{DATA / PROGRESS}:" in line for line in missing)


def test_placeholders_of_early_versions_are_not_priced():
    trace = imported(PROGRESS)
    values = [event.tokens.output for event in kinds(trace, "decision")]
    assert max(values) < 30  # for answers of thousands of characters
    assert measure(trace)["output_tokens"].value is None
    early = imported(ASYNC)
    kept = sorted(e.tokens.output for e in kinds(early, "decision") if not e.tokens.unreliable)
    assert kept == [168, 186, 869, 5183]


def test_results_of_background_agents_are_found_in_all_their_forms():
    early = imported(ASYNC)
    polls = [e for e in kinds(early, "tool_call") if e.tool == "TaskOutput"]
    assert len(polls) == 16
    assert all(event.attrs["waiting"] for event in polls)
    read_by_poll = {src for src, dst in arrows(early, "return") if dst.startswith("0#")}
    assert len(read_by_poll) == 8
    many = imported(MANY)
    backs = kinds(many, "return")
    assert len({event.agent for event in backs}) == 24
    assert all(event.attrs["via"] == "notification" for event in backs)
    readers = [dst for src, dst in arrows(many, "return") if dst.startswith("0#")]
    assert len(readers) == 24  # one of them was taken in while the lead was at work
    assert all(event.attrs["delivered"] >= event.start for event in backs)


def test_an_interrupted_spawn_has_no_return():
    trace = imported(ORPHAN)
    assert [event.kind for event in trace.events] == ["human", "decision", "spawn"]
    assert [str(w) for w in report_of(ORPHAN)[0].warnings] == [
        f"{DATA / ORPHAN}:9: agent 0/0 never returned"
    ]


def test_a_workflow_whose_agents_are_absent_is_a_tool_that_answers_twice():
    trace = imported(WORKFLOW)
    (notice,) = report_of(WORKFLOW)[0].warnings
    assert str(notice) == (
        f"{DATA / WORKFLOW}:10: the 3 agents of workflow wf_6ce8adcf-32f are not here: "
        "only its result is known"
    )
    (made,) = kinds(trace, "tool_call")
    answers = kinds(trace, "tool_result")
    assert [event.tool for event in answers] == ["Workflow", "Workflow"]
    assert [(agent.parent, agent.attrs["transcript"]) for agent in trace.agents[1:]] == [
        ("0", False)
    ] * 3
    assert "3 of 4 agents left no transcript" in measure(trace)["price"].reason
    assert {(made.id, event.id) for event in answers} <= arrows(trace, "tool_dependency")


def test_a_team_is_one_trace():
    """Counted by hand in the files: six spawns, 19 tasks handed out, 16 messages, 6 farewells."""
    trace = imported(LEAD)
    assert import_paths([DATA / TEAM]).traces == (trace,)
    names = {agent.id: agent.name for agent in trace.agents}
    members = {
        "frontend-quality", "frontend-tests", "infra-cleanup", "mobile-polish", "verify",
        "frontend-fix",
    }  # fmt: skip
    assert set(names.values()) == members | {None}
    absent = [agent.name for agent in trace.agents if not agent.attrs["transcript"]]
    assert absent == ["verify"]
    assert {names[event.to] for event in kinds(trace, "despawn")} == members
    assert len(kinds(trace, "despawn")) == 6
    handed = Counter(names[event.to] for event in kinds(trace, "delegate"))
    assert handed == {
        "frontend-quality": 7, "frontend-tests": 2, "infra-cleanup": 4, "mobile-polish": 2,
        "verify": 4,
    }  # fmt: skip
    spawned = {e.dst: e.evidence for e in trace.edges if e.label == "spawn"}
    assert Counter(spawned.values()) == {"derived": 5, "recorded": 1}
    assert measure(trace)["span"].value <= measure(trace)["makespan"].value


def test_messages_of_a_team_are_there_once():
    """Every `SendMessage` of the six files is one message; 24 more are of `verify`, or the harness.

    The lead hears 8 texts and 6 farewells of `verify`, and of the others five times `idle` and five
    times `shutdown_approved`, which they do not write themselves.
    """
    trace = imported(LEAD)
    names = {agent.id: agent.name for agent in trace.agents}
    messages = kinds(trace, "message")
    written = Counter(names[event.agent] for event in messages if event.tool)
    assert written == {
        None: 11, "frontend-quality": 1, "frontend-tests": 1, "infra-cleanup": 1,
        "mobile-polish": 1, "frontend-fix": 1,
    }  # fmt: skip
    heard = Counter((names[e.agent], e.attrs.get("type")) for e in messages if not e.tool)
    assert heard.pop(("verify", None)) == 8
    assert heard.pop(("verify", "idle_notification")) == 5
    assert heard.pop(("verify", "shutdown_approved")) == 1
    others = set(names.values()) - {None, "verify"}
    kinds_heard = ("idle_notification", "shutdown_approved")
    assert heard == {(name, kind): 1 for name in others for kind in kinds_heard}
    (report,) = [e for e in messages if names[e.agent] == "frontend-fix" and e.tool]
    readers = {dst for src, dst in arrows(trace, "message") if src == report.id}
    assert len(readers) == 1
    assert readers.pop().startswith("0#")


def test_work_on_tasks_follows_from_work_on_others():
    """Tasks 10 to 13 have to be done before 17: its owner's record is absent, so nothing follows.

    12 waits for 10, by the same agent. Each of the 15 tasks of the members whose records are there
    was handed out by the lead before its owner touched it.
    """
    trace = imported(LEAD)
    by_id = {event.id: event for event in trace.events}
    steps = [
        (by_id[edge.src], by_id[edge.dst])
        for edge in trace.edges
        if edge.label == "causal"
        and by_id[edge.dst].attrs.get("task")
        and edge.evidence != "recorded"
    ]
    assert {after.attrs["task"]["id"] for _, after in steps} == {str(n) for n in range(1, 16)}
    assert all(before.agent == "0" != after.agent for before, after in steps)
    assert all(before.start < after.start for before, after in steps)


def test_what_a_lead_hears_counted_by_a_script():
    """Every `<teammate-message>` is one message of its sender, or somebody's farewell."""
    said = Counter()
    for entry in raw(BIG_TEAM):
        content = (entry.get("message") or {}).get("content")
        texts = [content] if isinstance(content, str) else [b.get("text") for b in content or ()]
        if entry["type"] == "user":
            said.update(
                re.findall(r'<teammate-message teammate_id="([^"]+)"', "".join(filter(None, texts)))
            )
    trace = imported(BIG_TEAM)
    names = {agent.id: agent.name for agent in trace.agents}
    heard = Counter(names[e.agent] for e in kinds(trace, "message") if e.to == "0")
    assert len(kinds(trace, "despawn")) == said.pop("system") == 9
    assert heard == said
    assert sum(heard.values()) == 91


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_a_team_are_sessions_of_their_own(name):
    trace = imported(name)
    assert trace.agents[0].name == Path(name).stem
    assert "team-lead" in {agent.id for agent in trace.agents}
    assert kinds(trace, "message")[0].agent == "team-lead"
    assert not kinds(trace, "human")


def test_a_folder_of_sessions_is_a_trace_each_and_can_be_stored(tmp_path):
    found = import_paths([DATA / "claude_code", DATA / "claude_code_teams"])
    assert len(found.traces) == 8  # a team of six files is one
    assert sum(report.records for report in found.report) == sum(
        len(path.read_text().splitlines())
        for folder in ("claude_code", "claude_code_teams")
        for path in (DATA / folder).rglob("*.jsonl")
    )
    stretto.save(tmp_path / "all.jsonl", found.traces)
    assert stretto.load_all(tmp_path / "all.jsonl") == list(found.traces)
