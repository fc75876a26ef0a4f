"""Transcripts made by hand, and where the real ones are."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stretto.importers import import_paths

DATA = Path(__file__).resolve().parents[2] / "../shared/data/traces"
REAL = pytest.mark.skipif(not DATA.is_dir(), reason="the folder of real transcripts is missing")

START = datetime(2026, 1, 1, tzinfo=UTC)


def stamp(seconds):
    """A time as the harness writes it, `seconds` after the start."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def record(kind, at, **fields):
    """One record; `None` leaves a field out."""
    fields = {"type": kind, "sessionId": "S", "timestamp": stamp(at), "version": "2.1.119"} | fields
    return {name: value for name, value in fields.items() if value is not None}


def user(content, at, **fields):
    message = {"role": "user", "content": content}
    return record("user", at, message=message, **{"uuid": f"u{at}"} | fields)


def assistant(name, at, *blocks, out=50, stop="end_turn", request="", usage=None, **fields):
    """A record of the message `name`; blocks are texts, or what `call` makes."""
    content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    message = {
        "id": name,
        "model": "m",
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "usage": usage or {"input_tokens": 10, "output_tokens": out, "cache_read_input_tokens": 7},
    }
    fields = {"uuid": f"a{at}", "requestId": request or f"r-{name}"} | fields
    return record("assistant", at, message=message, **fields)


def call(use, tool="Bash", /, **arguments):
    return {"type": "tool_use", "id": use, "name": tool, "input": arguments}


def spawn(use, prompt="look", tool="Agent", /, **arguments):
    return call(use, tool, prompt=prompt, description="d", subagent_type="Explore", **arguments)


def answer(name, at, text="ok", extra=None, error=None, **fields):
    """The result of a tool call; `extra` is its `toolUseResult`."""
    block = {"type": "tool_result", "tool_use_id": name, "content": text}
    if error is not None:
        block["is_error"] = error
    return user([block], at, toolUseResult=extra, **fields)


def came_back(name, at, agent, text="found", **fields):
    """A synchronous sub-agent is done."""
    content = [{"type": "text", "text": text}]
    extra = {"status": "completed", "agentId": agent, "content": content, "totalTokens": 9999}
    return answer(name, at, content, extra, **fields)


def launched(name, at, agent):
    """A background sub-agent has started."""
    extra = {"status": "async_launched", "isAsync": True, "agentId": agent}
    return answer(name, at, "Async agent launched successfully.", extra)


def news(agent, tool, text="found", status="completed", result=True):
    """A notification of a background agent."""
    inside = f"<result>{text}</result>" if result else f"<summary>{text}</summary>"
    return (
        f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{tool}</tool-use-id>\n"
        f"<status>{status}</status>\n{inside}\n<usage><subagent_tokens>777</subagent_tokens>"
        "<tool_uses>2</tool_uses><duration_ms>1500</duration_ms></usage>\n</task-notification>"
    )


def side(entry, agent, **fields):
    """A record in a sub-agent's own file."""
    fields = {"isSidechain": True, "agentId": agent, "uuid": f"{agent}-{entry['uuid']}"} | fields
    return entry | fields


def progress(tool, agent, entry, at):
    """A sub-agent's record inside the parent's file."""
    inner = {
        name: entry[name]
        for name in ("type", "message", "uuid", "timestamp", "requestId")
        if name in entry
    }
    inner["uuid"] = f"inner-{agent}-{entry['uuid']}"
    data = {"type": "agent_progress", "agentId": agent, "prompt": "look", "message": inner}
    return record("progress", at, data=data, parentToolUseID=tool, uuid=f"p-{agent}-{at}")


def write(path, *records):
    """Write records as lines; bytes go in as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records]
    path.write_bytes(b"".join(lines))
    return path


def read(path, *records):
    """Write records, import them, and return the one trace and the reports by file name."""
    if records:
        write(path, *records)
    imported = import_paths([path])
    (trace,) = imported.traces
    return trace, {Path(report.file).name: report for report in imported.report}


def kinds(trace, *wanted):
    """The events of these kinds."""
    return [event for event in trace.events if event.kind in wanted]


def arrows(trace, label=None):
    """Edges as (source, target), of one label or all."""
    return {(edge.src, edge.dst) for edge in trace.edges if label in (None, edge.label)}


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


NEWS = news("x1", "t1")


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
