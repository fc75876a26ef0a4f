"""What is said to come closest where no format fits."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import IMPORTERS, detect
from stretto.importers.kit.heads import Head
from stretto.importers.plan import importer

EVENT = {"type": "user.message", "id": "a", "parentId": None, "data": {"content": "hi"}}
BARE = {"type": "user.message", "timestamp": "2026-01-01T00:00:00Z", "data": {"content": "hi"}}
CHAT = [{"type": "user", "content": [{"text": "hi"}]}, {"type": "gemini", "content": "yo"}]
RESULT = {"task_id": 1, "reward": 1.0, "info": {"task": {}}, "trajectory": [], "trial": 0}
DOJO = {
    "pipeline_name": "gpt",
    "injection_task_id": None,
    "attack_type": None,
    "injections": {},
    "messages": [],
    "utility": True,
    "security": True,
}
STEP = {"step_id": 1, "source": "user", "message": "go"}
GO = {"Content": {"parts": []}, "InvocationID": "i", "Author": "worker", "Actions": {}}
SPAN = {"object": "tracex.span", "id": "s", "trace_id": "t", "span_data": {"type": "agent"}}
PART = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("document", "format", "why"),
    [
        ([EVENT], "copilot-cli", "one event a line"),
        ({"events": [EVENT]}, "copilot-cli", "one event a line"),
        (BARE, "copilot-cli", '"id" and "parentId"'),
        ({"sessionId": "s", "messages": CHAT}, "gemini-cli", '"startTime"'),
        (CHAT, "gemini-cli", "no header"),
        ([RESULT], "tau-bench", 'no "traj"'),
        (DOJO, "agentdojo", 'no "suite_name"'),
        ({"schema_version": "ATIF-v9", "agent": {}, "steps": [STEP]}, "atif", "ATIF-v9"),
        ({"schema_version": "2", "steps": [STEP]}, "atif", "ATIF"),
        ([GO], "adk", "capital"),
        ({"appName": "a", "userId": "u", "evts": []}, "adk", "events"),
        (SPAN, "openai-agents", '"trace.span"'),
        ([{"info": {"role": "user"}, "parts": [PART]}], "opencode", '"info"'),
        ({"type": "text", "part": PART}, "opencode", '"sessionID"'),
    ],
)
def test_the_closest_format_is_named_and_why_it_is_not_that(tmp_path, document, format, why):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(StrettoError) as caught:
        detect(path)
    hint = caught.value.hint
    assert hint.startswith(f"closest is {format}: ") and why in hint


@pytest.mark.parametrize(
    "document",
    [[{"role": "user", "content": "hi"}], {"name": "x", "version": "1.0"}, [1, 2], {"events": []}],
)
def test_what_looks_like_no_log_comes_close_to_none(tmp_path, document):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(StrettoError, match="nothing comes close"):
        detect(path)


KEYS = ["type", "data", "info", "messages", "parts", "part", "object", "span_data", "events"]
KEYS += ["id", "author", "Author", "schema_version", "sessionId", "traj", "task_id", "record"]
SMALL = st.none() | st.booleans() | st.integers() | st.sampled_from(["gemini", "user.x", ""])
ANY = st.recursive(
    SMALL,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=12,
)


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(st.lists(ANY, min_size=1, max_size=3))
def test_a_likeness_is_a_share_whatever_a_file_holds(records):
    head = Head("\n".join(map(json.dumps, records)).encode())
    for name in IMPORTERS:
        assert 0 <= importer(name).recognise(head).score <= 1
