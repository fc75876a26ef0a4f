"""Gemini CLI chats, made by hand and real."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.gemini_cli.importer import import_files
from stretto.trace import Tokens

from .rollouts import arrows, kinds, stamp
from .transcripts import DATA, REAL

OLD = DATA / "gemini_cli/entireio_cli_legacy_single.json"
NEW = DATA / "gemini_cli/irrlicht_orphan-cleanup.jsonl"


def header(name, kind="main", at=0, **fields):
    return {"sessionId": name, "projectHash": "p", "startTime": stamp(at), "kind": kind} | fields


def user(at, text, name=None, **fields):
    content = [{"text": text}]
    return {
        "id": name or f"u{at}",
        "timestamp": stamp(at),
        "type": "user",
        "content": content,
    } | fields


def answer(at, text, *calls, name=None, tokens=True, **fields):
    value = {"id": name or f"g{at}", "timestamp": stamp(at), "type": "gemini", "content": text}
    used = {"input": 100, "output": 10, "cached": 30, "thoughts": 5, "tool": 0, "total": 115}
    value |= {"tokens": used, "model": "flash"} if tokens else {}
    return value | ({"toolCalls": list(calls)} if calls else {}) | fields


def call(use, tool, at, output="ok", status="success", agent=None, **args):
    response = {"functionResponse": {"id": use, "name": tool, "response": {"output": output}}}
    value = {"id": use, "name": tool, "args": args, "status": status, "timestamp": stamp(at)}
    return value | {"result": [response]} | ({"agentId": agent} if agent else {})


def write(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def only(*paths):
    (trace,) = import_paths(paths, "gemini-cli").traces
    return trace


MESSAGES = [user(1, "Go."), answer(3, "I look.", call("c", "ls", 5, path=".")), answer(8, "Done.")]


def old(tmp_path):
    path = tmp_path / "session-old.json"
    path.write_text(json.dumps(header("S", messages=MESSAGES), indent=2))
    return path


def one_line(tmp_path):
    return write(tmp_path / "session-line.json", header("S", messages=MESSAGES))


def new(tmp_path):
    return write(tmp_path / "session-new.jsonl", header("S"), *MESSAGES)


@pytest.mark.parametrize("layout", [old, one_line, new])
def test_all_layouts_hold_the_same(tmp_path, layout):
    path = layout(tmp_path)
    assert detect(path) == "gemini-cli"
    trace = only(path)
    assert trace.id == "S"
    assert kinds(trace, "0") == ["human", "decision", "tool_call", "tool_result", "decision"]
    _, turn, tool, result, last = trace.events
    assert (turn.start, turn.duration, turn.decision.type) == (0.0, 2.0, "act")  # origin at 1
    assert turn.tokens == Tokens(input=70, output=15, cache_read=30)
    assert (tool.start, tool.duration, result.start) == (2.0, 2.0, 4.0)
    assert (last.start, last.duration, last.decision.type) == (4.0, 3.0, "stop")
    assert trace.text(result.content) == "ok"


def test_patches_are_applied(tmp_path):
    """A message is written again when its call has ended; `$set` changes the header."""
    path = write(
        tmp_path / "a.jsonl",
        header("S"),
        {"$set": {"messages": [user(0, "<session_context>\nx", "ctx")]}},
        user(1, "Go."),
        answer(3, "I look.", name="g"),
        answer(3, "I look.", call("c", "ls", 5), name="g"),
        {"$set": {"summary": "a walk"}},
    )
    imported = import_paths([path], "gemini-cli")
    (trace,), (report,) = imported.traces, imported.report
    assert kinds(trace, "0") == ["human", "decision", "tool_call", "tool_result"]
    assert trace.attrs["summary"] == "a walk"
    assert report.skipped == {"user/context": 1, "patch": 2}


def test_what_was_rewound_has_happened_and_is_marked(tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        header("S"),
        user(1, "Go."),
        answer(2, "a"),
        {"$rewindTo": "u1"},
        user(3, "No, so."),
        answer(4, "b"),
    )
    trace = only(path)
    marks = [event.attrs.get("withdrawn") for event in trace.events]
    assert marks == [True, True, None, None]


def test_a_context_that_was_made_up_holds_no_turns_and_nobody_typed_it(tmp_path):
    """After a compression: a summary, an answer that nobody sampled, copies under new ids."""
    path = write(
        tmp_path / "a.jsonl",
        header("S"),
        user(1, "Go."),
        answer(2, "a"),
        {
            "$set": {
                "messages": [
                    user(3, "<scratchpad>y</scratchpad><state_snapshot>x", "new"),
                    user(3, "Go.", "copy"),
                    answer(3, "Got it.", name="fake", tokens=False),
                ]
            }
        },
        answer(5, "b"),
    )
    trace = only(path)
    said = [trace.text(event.content) for event in trace.events if event.kind == "decision"]
    assert said == ["a", "b"]
    assert kinds(trace, "0").count("human") == 1


def test_a_context_that_only_grows_is_what_happened(tmp_path):
    """Some versions write all messages anew each time."""
    path = write(
        tmp_path / "a.jsonl",
        header("S"),
        {"$set": {"messages": MESSAGES[:1]}},
        {"$set": {"messages": MESSAGES[:2]}},
        {"$set": {"messages": MESSAGES}},
    )
    assert kinds(only(path), "0") == kinds(only(new(tmp_path)), "0")


def team(tmp_path, named=True):
    """A lead that runs two sub-agents side by side; one of them has a file."""
    chats = tmp_path / "chats"
    scout = call(
        "c1", "generalist", 8, "found", agent="B" if named else None, request="look around"
    )
    other = call("c2", "generalist", 9, "", "cancelled", agent="C", request="look elsewhere")
    lead = write(
        chats / "session-A.jsonl", header("A"), user(1, "Go."), answer(3, "", scout, other)
    )
    with lead.open("a") as file:
        file.write(json.dumps(answer(11, "All.")) + "\n")
    write(
        chats / "A" / "B.jsonl",
        header("B", "subagent", at=4),
        user(4, "Your task: look around"),
        answer(6, "found"),
    )
    return lead


def test_sub_agents_stand_in_a_folder_of_their_parent(tmp_path):
    """0: human, turn, spawn, spawn, result of the cancelled one, turn."""
    imported = import_paths([team(tmp_path)], "gemini-cli")
    (trace,) = imported.traces
    assert len(imported.report) == 2
    assert [(a.id, a.role, a.attrs["transcript"]) for a in trace.agents[1:]] == [
        ("0/0", "generalist", True),
        ("0/1", "generalist", False),
    ]
    assert kinds(trace, "0") == ["human", "decision", "spawn", "spawn", "tool_result", "decision"]
    assert kinds(trace, "0/0") == ["decision", "return"]  # its task is no human input
    assert arrows(trace, "spawn") == {("0#2", "0/0#0"): "recorded"}
    assert arrows(trace, "return") == {
        ("0/0#0", "0/0#1"): "recorded",
        ("0/0#1", "0#5"): "recorded",
    }
    assert sum(report.unpaired for report in imported.report) == 1


def test_a_sub_agent_that_no_call_names_is_found_by_its_words(tmp_path):
    trace = only(team(tmp_path, named=False))
    assert arrows(trace, "spawn") == {("0#2", "0/0#0"): "heuristic"}


def test_the_file_of_a_sub_agent_brings_its_parent_along(tmp_path):
    team(tmp_path)
    chats = tmp_path / "chats"
    (chats / "session-A.jsonl").rename(chats / "session-2026-A.jsonl")
    trace = only(chats / "A" / "B.jsonl")
    assert trace.id == "A" and len(trace.agents) == 3


def test_a_sub_agent_without_its_parent_is_a_child_all_the_same(tmp_path):
    team(tmp_path).unlink()
    trace = only(tmp_path / "chats/A/B.jsonl")
    assert [agent.attrs["transcript"] for agent in trace.agents] == [False, True]
    assert trace.text(trace.agents[1].attrs["prompt"]) == "Your task: look around"


def test_errors_are_no_answers(tmp_path):
    error = {"id": "e", "timestamp": stamp(3), "type": "error", "content": "quota"}
    path = write(tmp_path / "a.jsonl", header("S"), user(1, "Go."), answer(2, "a"), error)
    trace = only(path)
    assert trace.events[1].attrs["error"] == "quota"
    alone = write(tmp_path / "b.jsonl", header("T"), user(1, "Go."), error)
    assert only(alone).attrs["error"] == "quota"


@REAL
def test_a_real_document():
    """By eye: two answers, one call of write_file; tokens add up to the stated totals."""
    trace = only(OLD)
    assert kinds(trace, "0") == ["human", "decision", "tool_call", "tool_result", "decision"]
    totals = [m["tokens"]["total"] for m in json.loads(OLD.read_text())["messages"][1:]]
    counts = [e.tokens for e in trace.events if e.tokens]
    assert [c.input + c.cache_read + c.output for c in counts] == totals == [12465, 12452]


@REAL
def test_a_real_log():
    """By eye: the context that the harness adds, one request, one answer without a call."""
    trace = only(NEW)
    assert kinds(trace, "0") == ["human", "decision"]
    assert trace.text(trace.events[0].content).startswith("@generalist Read README.md")
    assert "system_note" not in trace.text(trace.events[0].content)


@REAL
def test_it_keeps_the_rules_of_importers():
    check_importer("gemini-cli", [OLD, NEW])


ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
ODD |= st.lists(ODD, max_size=2) | st.dictionaries(st.text(max_size=3), ODD, max_size=2)
NAMES = ["id", "type", "content", "timestamp", "toolCalls", "tokens", "sessionId", "$set", "kind"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.sampled_from(NAMES), ODD, st.integers(0, 3))
def test_odd_values_raise_only_our_own_errors(tmp_path_factory, name, value, line):
    lead = team(tmp_path_factory.mktemp("odd"))
    records = [json.loads(each) for each in lead.read_text().splitlines()]
    records[line][name] = value
    write(lead, *records)
    with suppress(StrettoError):
        import_files([lead, lead.parent / "A/B.jsonl"])


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_a_session_whose_name_no_folder_can_have_is_read(tmp_path, name):
    write(tmp_path / "session.json", header(name), user(1, "Go."), answer(2, "Done."))
    write(tmp_path / "other.json", header("T"), user(1, "Go."), answer(2, "Done."))
    assert {trace.id for trace in import_paths([tmp_path]).traces} == {name, "T"}
