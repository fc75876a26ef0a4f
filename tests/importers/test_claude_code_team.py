"""Stage two on transcripts made by hand: sub-agents in every layout, returns, and teams."""

import json

import pytest

from stretto.graph import critical_path, topological_order
from stretto.importers import import_paths
from stretto.metrics import measure

from .transcripts import (
    answer,
    arrows,
    assistant,
    call,
    came_back,
    kinds,
    launched,
    news,
    progress,
    read,
    record,
    side,
    spawn,
    user,
    write,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "S.jsonl"


def child(agent="x1", prompt="look", at=3):
    """A sub-agent's own records: two turns with a tool between them."""
    return [
        user(prompt, at),
        assistant(f"{agent}-1", at + 1, call(f"{agent}-t"), stop="tool_use"),
        answer(f"{agent}-t", at + 2),
        assistant(f"{agent}-2", at + 4, "found"),
    ]


PARENT = [
    user("go", 0),
    assistant("m1", 2, spawn("t1"), stop="tool_use"),
    came_back("t1", 8, "x1"),
    assistant("m2", 10, "thanks"),
]

SHAPE = [
    ("0", "human", 0, None),
    ("0", "decision", 0, 2),
    ("0", "spawn", 2, None),
    ("0/0", "decision", 3, 1),
    ("0/0", "tool_call", 4, 1),
    ("0/0", "tool_result", 5, None),
    ("0/0", "decision", 5, 2),
    ("0/0", "return", 8, None),
    ("0", "decision", 8, 2),
]
"""What the parent and its child did, in every layout."""


def shape(trace):
    return [(e.agent, e.kind, e.start, e.duration) for e in trace.events]


def beside(path, *records, agent="x1"):
    return write(path.parent / f"agent-{agent}.jsonl", *[side(r, agent) for r in records])


def below(path, *records, agent="x1", folder="S/subagents"):
    file = path.parent / folder / f"agent-{agent}.jsonl"
    return write(file, *[side(r, agent) for r in records])


def inline(*records):
    """Records between those of the parent: one chain of parents, no agent id."""
    previous, found = None, []
    for entry in records:
        found.append(entry | {"isSidechain": True, "parentUuid": previous})
        previous = entry["uuid"]
    return found


def test_a_transcript_beside_that_of_the_session(path):
    beside(path, *child())
    trace, _ = read(path, *PARENT)
    assert shape(trace) == SHAPE


@pytest.mark.parametrize("folder", ["S/subagents", "subagents", "S/subagents/workflows/run"])
def test_a_transcript_in_a_folder_below(path, folder):
    below(path, *child(), folder=folder)
    trace, reports = read(path, *PARENT)
    assert shape(trace) == SHAPE
    assert import_paths([path.parent]).traces == (trace,)
    assert [(r.spawns, r.returns) for r in reports.values()] == [(1, 1), (0, 0)]


def test_records_between_those_of_the_parent(path):
    unnamed = answer("t1", 8, "found")  # older results do not name the agent
    trace, _ = read(path, *PARENT[:2], *inline(*child()), unnamed, *PARENT[3:])
    assert shape(trace) == SHAPE
    assert trace.agents[1].attrs["source"] == "inline"
    evidence = {edge.dst: edge.evidence for edge in trace.edges if edge.label == "spawn"}
    assert evidence == {"0/0#0": "heuristic"}


def test_two_chains_between_those_of_the_parent_are_told_apart_by_their_prompt(path):
    first, second = inline(*child("a", "left", 3)), inline(*child("b", "right", 3.5))
    mixed = [entry for pair in zip(first, second, strict=True) for entry in pair]
    trace, reports = read(
        path,
        user("go", 0),
        assistant("m1", 2, spawn("t1", "right"), spawn("t2", "left"), stop="tool_use"),
        *mixed,
        answer("t1", 10),
        answer("t2", 11),
    )
    assert [agent.name for agent in trace.agents[1:]] == ["u3.5", "u3"]
    assert reports["S.jsonl"].returns == 2


def test_records_as_news_of_the_tool(path):
    told = [
        progress("t1", "x1", entry, entry_at)
        for entry, entry_at in zip(child(), (3, 4, 5, 7), strict=True)
    ]
    trace, reports = read(path, *PARENT[:2], *told, *PARENT[2:])
    assert shape(trace) == SHAPE
    assert not reports["S.jsonl"].skipped
    assert trace.agents[1].attrs["source"] == "progress"


def test_news_that_come_again_count_once(path):
    told = [
        progress("t1", "x1", entry, at) for entry, at in zip(child(), (3, 4, 5, 7), strict=True)
    ]
    again = [entry | {"uuid": f"again-{entry['uuid']}"} for entry in told]
    trace, reports = read(path, *PARENT[:2], *told, *again, *PARENT[2:])
    assert shape(trace) == SHAPE
    assert reports["S.jsonl"].duplicates == 4


def test_a_transcript_of_its_own_goes_before_news_of_it(path):
    below(path, *child())
    told = [progress("t1", "x1", entry, at) for at, entry in enumerate(child(), 3)]
    trace, reports = read(path, *PARENT[:2], *told, *PARENT[2:])
    assert shape(trace) == SHAPE
    assert reports["S.jsonl"].skipped == {"progress/agent_progress": 4}


def test_a_last_answer_that_is_not_recorded_is_reported_and_not_invented(path):
    told = [
        progress("t1", "x1", entry, at) for entry, at in zip(child()[:3], (3, 4, 5), strict=True)
    ]
    trace, reports = read(path, *PARENT[:2], *told, *PARENT[2:])
    assert len(kinds(trace, "decision")) == 3
    assert kinds(trace, "return")[0].attrs["unrecorded"] == 3
    assert "last answer of agent 0/0 (x1) is not recorded: 3.0 s" in str(
        reports["S.jsonl"].warnings[0]
    )


def test_a_transcript_that_is_absent_leaves_spawn_and_return(path):
    trace, reports = read(path, *PARENT)
    agent = trace.agents[1]
    assert (agent.id, agent.role, agent.parent, agent.name) == ("0/0", "Explore", "0", "x1")
    assert agent.attrs["transcript"] is False
    assert [event.kind for event in trace.events if event.agent == "0/0"] == ["return"]
    assert arrows(trace, "spawn") == {("0#2", "0/0#0")}
    assert arrows(trace, "return") == {("0/0#0", "0#3")}
    assert (reports["S.jsonl"].spawns, reports["S.jsonl"].returns) == (1, 1)


def test_edges_of_a_spawn_and_its_return(path):
    below(path, *child())
    trace, _ = read(path, *PARENT)
    assert arrows(trace, "spawn") == {("0#2", "0/0#0")}
    assert arrows(trace, "return") == {("0/0#3", "0/0#4"), ("0/0#4", "0#3")}
    assert ("0#1", "0#2") in arrows(trace, "causal")
    (back,) = kinds(trace, "return")
    assert (back.to, trace.text(back.content), back.attrs["via"]) == ("0", "found", "result")
    assert back.attrs["total_tokens"] == 9999
    assert back.tokens is None
    (made,) = kinds(trace, "spawn")
    assert (made.to, made.attrs["call_duration"], made.duration) == ("0/0", 6, None)
    assert trace.text(made.content) == "look"


def test_measures_of_a_spawn_counted_by_hand(path):
    """Turns of 2+1+2+2 s and a tool of 1 s: 8 s of work, all of it on one path; 2 s of waiting."""
    below(path, *child())
    trace, _ = read(path, *PARENT)
    found = {name: each.value for name, each in measure(trace).items()}
    assert found | {"events": 0} == {
        "agents": 2,
        "events": 0,
        "spawns": 1,
        "returns": 1,
        "unpaired_spawns": 0,
        "makespan": 10,
        "work": 8,
        "span": 8,
        "parallelism": 0.8,
        "peak_width": 1,
        "input_tokens": 68,
        "output_tokens": 200,
    }
    assert critical_path(trace).seconds == 8


@pytest.mark.parametrize(
    "result",
    [
        None,
        answer("t1", 8, "[Request interrupted by user for tool use]", error=True),
        answer("t1", 8, "Agent type 'x' not found", "Error: Agent type", error=True),
    ],
)
def test_an_interrupted_spawn_never_returns(path, result):
    trace, reports = read(path, *PARENT[:2], *([result] if result else []), user("hm", 9))
    report = reports["S.jsonl"]
    assert (report.spawns, report.returns, report.unpaired) == (1, 0, 1)
    assert not kinds(trace, "return")
    assert not arrows(trace, "return")
    assert measure(trace)["unpaired_spawns"].value == 1
    assert [str(w) for w in report.warnings] == [f"{path}:2: agent 0/0 never returned"]
    assert len(kinds(trace, "tool_result")) == (result is not None)


def test_a_spawn_interrupted_after_some_work_is_found_by_its_prompt(path):
    below(path, *child()[:3])
    trace, reports = read(path, *PARENT[:2])
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]
    assert [e.evidence for e in trace.edges if e.label == "spawn"] == ["heuristic"]
    assert reports["S.jsonl"].unpaired == 1


def background(*delivery):
    return [
        user("go", 0),
        assistant("m1", 2, spawn("t1"), stop="tool_use"),
        launched("t1", 3, "x1"),
        assistant("m2", 4, "waiting"),
        *delivery,
    ]


def queued(text, at, operation="enqueue"):
    return record("queue-operation", at, operation=operation, content=text)


def absorbed(text, at):
    attachment = {"type": "queued_command", "prompt": text, "commandMode": "task-notification"}
    return record("attachment", at, attachment=attachment, uuid=f"q{at}")


NEWS = news("x1", "t1")


@pytest.mark.parametrize(
    ("delivery", "start"),
    [
        ([user(NEWS, 9)], 9),
        ([queued(NEWS, 7), record("queue-operation", 8, operation="dequeue"), user(NEWS, 9)], 7),
        ([queued(NEWS, 7), absorbed(NEWS, 7), queued(NEWS, 8, "remove")], 7),
        ([absorbed(NEWS, 9)], 9),
        ([queued(NEWS, 7), absorbed(NEWS, 8), user(NEWS, 9)], 7),
    ],
)
def test_a_background_agent_returns_once_however_it_is_told(path, delivery, start):
    trace, reports = read(path, *background(*delivery, assistant("m3", 12, "good")))
    (back,) = kinds(trace, "return")
    assert (back.agent, back.start, back.to) == ("0/0", start, "0")
    assert trace.text(back.content) == "found"
    assert back.attrs["total_tokens"] == 777
    assert back.attrs["total_duration_ms"] == 1500
    last = kinds(trace, "decision")[-1].id
    assert (back.id, last) in arrows(trace, "return")
    assert reports["S.jsonl"].returns == 1
    assert not kinds(trace, "human")[1:]
    launch = kinds(trace, "tool_result")[0]
    assert ("0#2", launch.id) in arrows(trace, "tool_dependency")
    assert kinds(trace, "spawn")[0].attrs["background"] is True


def test_news_that_are_queued_and_never_read_return_without_a_reader(path):
    trace, reports = read(path, *background(queued(NEWS, 7)))
    (back,) = kinds(trace, "return")
    assert not [dst for src, dst in arrows(trace) if src == back.id]
    assert reports["S.jsonl"].returns == 1


def test_an_agent_that_goes_on_returns_again(path):
    more = news("x1", "t1", "more")
    trace, _ = read(
        path,
        *background(
            user(NEWS, 9),
            assistant("m3", 10, call("t2", "SendMessage", to="x1", message="go on")),
            answer("t2", 11, "sent"),
            user(more, 20),
            assistant("m4", 21, "done"),
        ),
    )
    assert [trace.text(e.content) for e in kinds(trace, "return")] == ["found", "more"]
    assert kinds(trace, "message")[0].to == "0/0"


def test_a_message_to_a_sub_agent_reaches_the_turn_that_reads_it(path):
    below(
        path,
        *child(at=3),
        user("go on", 12),
        assistant("x1-3", 14, "more"),
    )
    trace, _ = read(
        path,
        *background(
            user(NEWS, 9),
            assistant("m3", 10, call("t2", "SendMessage", to="x1", message="go on")),
            user(news("x1", "t1", "more"), 20),
        ),
    )
    message = kinds(trace, "message")[0]
    reader = next(
        e for e in trace.events if trace.text(e.content) == "more" and e.kind == "decision"
    )
    assert (message.id, reader.id) in arrows(trace, "message")
    kinds_of_child = [event.kind for event in trace.events if event.agent == "0/0"]
    assert kinds_of_child == [
        "decision", "tool_call", "tool_result", "decision", "return", "decision", "return",
    ]  # fmt: skip
    topological_order(trace)


def test_a_background_agent_that_fails_does_not_return(path):
    failed = news("x1", "t1", "it was killed", "killed", result=False)
    trace, reports = read(path, *background(user(failed, 9), assistant("m3", 12, "oh")))
    assert (reports["S.jsonl"].returns, reports["S.jsonl"].unpaired) == (0, 1)
    told = kinds(trace, "tool_result")[-1]
    assert (told.attrs["status"], trace.text(told.content)) == ("killed", "it was killed")
    assert ("0#2", told.id) in arrows(trace, "tool_dependency")


def test_news_of_a_shell_are_the_result_of_its_tool(path):
    trace, reports = read(
        path,
        user("go", 0),
        assistant("m1", 2, call("t1", run_in_background=True), stop="tool_use"),
        answer("t1", 3, "running in background"),
        assistant("m2", 4, "waiting"),
        user(news("b1", "t1", "exit 0", result=False), 9),
        assistant("m3", 12, "good"),
    )
    first, second = kinds(trace, "tool_result")
    assert second.tool == "Bash"
    made = kinds(trace, "tool_call")[0].id
    assert {(made, first.id), (made, second.id)} <= arrows(trace, "tool_dependency")
    assert reports["S.jsonl"].returns == 0


def polled(status, at, name):
    extra = {"retrieval_status": "x", "task": {"task_id": "x1", "status": status}}
    return answer(name, at, f"<status>{status}</status>\n<output>found</output>", extra)


def test_a_poll_that_finds_the_agent_done_brings_its_return(path):
    records = background(
        assistant("m3", 5, call("p1", "TaskOutput", task_id="x1"), stop="tool_use"),
        polled("running", 6, "p1"),
        assistant("m4", 7, call("p2", "TaskOutput", task_id="x1"), stop="tool_use"),
        polled("completed", 9, "p2"),
        assistant("m5", 10, "good"),
    )
    trace, _ = read(path, *records)
    (back,) = kinds(trace, "return")
    assert (back.start, back.attrs["via"]) == (9, "poll")
    poll = kinds(trace, "tool_result")[-1]
    assert (back.id, poll.id) in arrows(trace, "return")
    late, reports = read(path, *records, queued(NEWS, 11))  # announced when it is known already
    assert len(kinds(late, "return")) == reports["S.jsonl"].returns == 1
    early, _ = read(path, *records[:-2], queued(NEWS, 8), *records[-2:])
    assert [event.start for event in kinds(early, "return")] == [8]
    assert (kinds(early, "return")[0].id, kinds(early, "tool_result")[-1].id) in arrows(early)


def test_agents_below_agents_have_paths_in_spawn_order(path):
    """A nested result has no `toolUseResult`: its text names the agent, or a file does."""
    below(
        path,
        user("look", 3),
        assistant("x1-1", 4, spawn("n1", "deeper"), spawn("n2", "deepest"), stop="tool_use"),
        answer("n1", 8, "deep\nagentId: y1 (for resuming)\n<usage>total_tokens: 12</usage>"),
        answer("n2", 9, "very deep"),
        assistant("x1-2", 10, "found"),
    )
    below(path, *child("y1", "deeper", 5), agent="y1")
    below(path, *child("y2", "something else", 5.5), agent="y2")
    meta = {"agentType": "scout", "toolUseId": "n2", "spawnDepth": 2, "parentAgentId": "x1"}
    (path.parent / "S/subagents/agent-y2.meta.json").write_text(json.dumps(meta))
    trace, _ = read(
        path,
        user("go", 0),
        assistant("m1", 2, spawn("t0", "other"), spawn("t1"), stop="tool_use"),
        came_back("t1", 12, "x1"),
    )
    found = {agent.id: (agent.parent, agent.name) for agent in trace.agents}
    assert found == {
        "0": (None, None),
        "0/0": ("0", None),
        "0/1": ("0", "x1"),
        "0/1/0": ("0/1", "y1"),
        "0/1/1": ("0/1", "y2"),
    }
    backs = {event.agent: event for event in kinds(trace, "return")}
    assert {name: event.to for name, event in backs.items()} == {
        "0/1": "0",
        "0/1/0": "0/1",
        "0/1/1": "0/1",
    }
    assert backs["0/1/0"].attrs["total_tokens"] == 12
    evidence = {edge.dst: edge.evidence for edge in trace.edges if edge.label == "spawn"}
    assert evidence == dict.fromkeys(("0/1#0", "0/1/0#0", "0/1/1#0"), "recorded")
    ids = [event.id for event in trace.events if event.agent == "0/1"]
    assert ids == [f"0/1#{count}" for count in range(len(ids))]


def test_a_task_that_resumes_an_agent_delegates_to_it(path):
    trace, reports = read(
        path,
        *PARENT,
        assistant("m3", 11, spawn("t2", "again", "Task", resume="x1"), stop="tool_use"),
        came_back("t2", 14, "x1", "found more"),
        assistant("m4", 15, "great"),
    )
    assert len(trace.agents) == 2
    (delegated,) = kinds(trace, "delegate")
    assert delegated.to == "0/0"
    assert (reports["S.jsonl"].spawns, reports["S.jsonl"].returns) == (1, 2)


def teammate(tool, name, at):
    extra = {"status": "teammate_spawned", "agent_id": f"{name}@team", "name": name}
    return answer(tool, at, f"Spawned successfully.\nagent_id: {name}@team", extra)


def letter(sender, text, summary=None):
    extra = f' summary="{summary}"' if summary else ""
    return f'<teammate-message teammate_id="{sender}"{extra}>\n{text}\n</teammate-message>'


def gone(name):
    return json.dumps({"type": "teammate_terminated", "message": f"{name} has shut down."})


LEAD = [
    user("build a team", 0, teamName="team"),
    assistant("m1", 2, spawn("t1", name="alice", team_name="team"), stop="tool_use"),
    teammate("t1", "alice", 3),
    assistant("m2", 4, call("t2", "SendMessage", to="alice", message="start"), stop="tool_use"),
    answer("t2", 5, "sent", {"success": True}),
    assistant("m3", 6, "waiting"),
    user(
        letter("alice", "all done", "done")
        + letter(
            "alice",
            json.dumps({"type": "idle_notification", "timestamp": "2026-01-01T00:00:08.5Z"}),
        ),
        9,
    ),
    assistant(
        "m4", 10, call("t3", "SendMessage", to="alice", message={"type": "shutdown_request"})
    ),
    answer("t3", 11, "sent"),
    user(letter("system", gone("alice")), 12),
    assistant("m5", 13, "finished"),
]


def test_a_team_as_its_lead_sees_it(path):
    trace, reports = read(path, *LEAD)
    assert [(a.id, a.name, a.attrs["transcript"]) for a in trace.agents] == [
        ("0", None, True),
        ("0/0", "alice", False),
    ]
    messages = [(e.agent, e.to, e.start, trace.text(e.content)) for e in kinds(trace, "message")]
    assert messages == [
        ("0", "0/0", 4, "start"),
        ("0/0", "0", 8.5, '{"type": "idle_notification", "timestamp": "2026-01-01T00:00:08.5Z"}'),
        ("0/0", "0", 9, "all done"),
        ("0", "0/0", 10, '{"type": "shutdown_request"}'),
    ]
    (left,) = kinds(trace, "despawn")
    assert (left.agent, left.to, left.start) == ("0", "0/0", 12)
    reader = next(e for e in kinds(trace, "decision") if e.start == 9)
    assert {dst for _, dst in arrows(trace, "message")} == {reader.id}
    report = reports["S.jsonl"]
    assert (report.spawns, report.returns, report.unpaired) == (1, 0, 1)
    assert not report.warnings  # a teammate works until it is shut down
    assert not kinds(trace, "tool_call")


def test_a_member_that_works_inside_the_session_is_linked_by_its_name(path):
    """Its messages are its own records: the lead's copies only say which turn read them."""
    below(
        path,
        user(letter("team-lead", "start"), 4.5),
        assistant("a1", 7, call("s1", "SendMessage", to="team-lead", message="all done")),
        agent="z9",
    )
    meta = path.parent / "S/subagents/agent-z9.meta.json"
    meta.write_text(json.dumps({"name": "alice", "agentType": "general-purpose"}))
    trace, _ = read(path, *LEAD)
    assert [agent.id for agent in trace.agents] == ["0", "0/0"]
    texts = [trace.text(e.content) for e in kinds(trace, "message")]
    assert texts.count("all done") == texts.count("start") == 1
    evidence = {trace.text(e.content): e for e in kinds(trace, "message")}
    assert arrows(trace, "message") >= {
        (evidence["start"].id, "0/0#0"),
        (evidence["all done"].id, next(e.id for e in kinds(trace, "decision") if e.start == 9)),
    }
    topological_order(trace)


def test_a_member_of_another_session_knows_its_lead_by_name(path):
    trace, _ = read(
        path,
        user(letter("team-lead", "do this"), 0, agentName="bob", teamName="team"),
        assistant(
            "m1", 2, call("t1", "SendMessage", recipient="carol", content="hi"), agentName="bob"
        ),
        assistant("m2", 3, call("t2", "SendMessage", to="*", message="all"), agentName="bob"),
    )
    assert [(agent.id, agent.name) for agent in trace.agents] == [
        ("0", "bob"),
        ("team-lead", "team-lead"),
        ("carol", "carol"),
    ]
    assert [(e.agent, e.to) for e in kinds(trace, "message")] == [
        ("team-lead", "0"),
        ("0", "carol"),
        ("0", None),
    ]
    assert trace.agents[0].attrs["team_name"] == "team"


def test_every_trace_can_be_stored(path, tmp_path):
    import stretto

    below(path, *child())
    for number, records in enumerate((PARENT, LEAD, background(user(NEWS, 9)))):
        trace, _ = read(path, *records)
        file = tmp_path / f"out{number}.jsonl"
        stretto.save(file, [trace])
        assert stretto.load(file) == trace
