"""ADK sessions: authors, transfers, branches, one time an event."""

import json

import pytest
from hypothesis import given, settings

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer

from .labelled import load, names, save
from .oddities import fares_well, odd
from .transcripts import DATA, REAL

FLOW = DATA / "adk/flow_complex_spark.session.json"


def event(author, at, *parts, role="model", **fields):
    content = {"role": role, "parts": list(parts)}
    return {
        "id": f"e{at}",
        "invocation_id": "i1",
        "author": author,
        "timestamp": 1000.0 + at,
        "content": content,
        **fields,
    }


def text(words):
    return {"text": words}


def call(use, name, **args):
    return {"function_call": {"id": use, "name": name, "args": args}}


def result(use, name, **response):
    return {"function_response": {"id": use, "name": name, "response": response}}


USAGE = {
    "prompt_token_count": 10,
    "cached_content_token_count": 4,
    "candidates_token_count": 3,
    "thoughts_token_count": 2,
}
SESSION = {
    "id": "s1",
    "app_name": "app",
    "user_id": "u",
    "events": [
        event("user", 0, text("weather in Rome?"), role="user"),
        event("root", 2, call("c1", "transfer_to_agent", agent_name="weather")),
        event(
            "root",
            2.5,
            result("c1", "transfer_to_agent", result=None),
            role="user",
            actions={"transfer_to_agent": "weather"},
        ),
        event("weather", 4, call("c2", "lookup", city="Rome"), usage_metadata=USAGE),
        event("weather", 7, result("c2", "lookup", sky="clear"), role="user"),
        event("weather", 8, text("Cle"), partial=True),
        event("weather", 9, text("Clear."), model_version="gemini-x"),
    ],
}


def camel(value):
    """The same with names in camel case, as the service writes them."""
    if isinstance(value, list):
        return [camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name.split("_")[0] + "".join(w.capitalize() for w in name.split("_")[1:]): camel(each)
        for name, each in value.items()
    }


@pytest.mark.parametrize("document", [SESSION, camel(SESSION), SESSION["events"]])
def test_a_transfer_hands_over_and_the_other_agent_answers(tmp_path, document):
    trace, report = load(tmp_path / "s.json", document)
    assert names(trace) == {"0": "root", "1": "weather"}
    assert [(e.agent, e.kind) for e in trace.events] == [
        ("0", "human"),
        ("0", "decision"),
        ("0", "tool_call"),
        ("0", "tool_result"),
        ("0", "delegate"),
        ("1", "decision"),
        ("1", "tool_call"),
        ("1", "tool_result"),
        ("1", "decision"),
        ("1", "message"),
    ]
    assert [e.decision.type for e in trace.events if e.decision] == ["delegate", "act", "stop"]
    assert ("0#4", "1#0", "message") in {(e.src, e.dst, e.label) for e in trace.edges}
    assert report.skipped == {"partial": 1}


def test_one_event_a_line_with_written_times(tmp_path):
    path = tmp_path / "s.jsonl"
    events = [e | {"timestamp": f"2026-01-01T00:00:0{n}Z"} for n, e in enumerate(SESSION["events"])]
    path.write_text("\n".join(map(json.dumps, events)) + "\n")
    assert detect(path) == "adk"
    (trace,) = import_paths([path]).traces
    assert [e.start for e in trace.events if e.kind == "decision"] == [0.0, 2.0, 4.0]


def test_a_turn_lasts_from_what_it_reads_to_its_event(tmp_path):
    trace, _ = load(tmp_path / "s.json", SESSION)
    turns = [(e.start, e.duration) for e in trace.events if e.kind == "decision"]
    assert turns == [(0.0, 2.0), (2.5, 1.5), (7.0, 2.0)]
    calls = [(e.start, e.duration) for e in trace.events if e.kind == "tool_call"]
    assert calls == [(2.0, 0.5), (4.0, 3.0)]


def test_thoughts_are_sampled_and_cached_tokens_are_part_of_the_prompt(tmp_path):
    trace, _ = load(tmp_path / "s.json", SESSION)
    tokens = next(event.tokens for event in trace.events if event.tokens)
    assert (tokens.input, tokens.cache_read, tokens.output) == (6, 4, 5)
    assert trace.agents[1].model == "gemini-x"


def test_a_turn_of_another_model_than_its_agents_says_so(tmp_path):
    models = ("gemini-x", "gemini-y", None, "gemini-x")
    said = [
        event("a", n, text("words"), **({"model_version": model} if model else {}))
        for n, model in enumerate(models)
    ]
    trace, _ = load(tmp_path / "s.json", {"events": said})
    assert trace.agents[0].model == "gemini-x"
    turns = [e.attrs.get("model") for e in trace.events if e.kind == "decision"]
    assert turns == [None, "gemini-y", None, None]


def test_branches_tell_the_tree_and_who_sees_what(tmp_path):
    document = {
        "events": [
            event("user", 0, text("go"), role="user"),
            event("left", 3, text("L"), branch="par.left"),
            event("right", 5, text("R"), branch="par.right"),
            event("merge", 6, text("both")),
        ]
    }
    trace, _ = load(tmp_path / "s.json", document)
    assert [(a.id, a.name, a.parent) for a in trace.agents] == [
        ("0", "par", None),
        ("0/0", "left", "0"),
        ("0/1", "right", "0"),
        ("1", "merge", None),
    ]
    assert trace.agents[0].attrs == {"transcript": False}
    starts = {e.agent: (e.start, e.duration) for e in trace.events if e.kind == "decision"}
    assert starts == {"0/0": (0.0, 3.0), "0/1": (0.0, 5.0), "1": (5.0, 1.0)}
    read = {(e.src, e.dst) for e in trace.edges if e.label == "message"}
    assert read == {("0/0#2", "1#0"), ("0/1#1", "1#0")}


def test_early_calls_without_ids_are_answered_in_order(tmp_path):
    made = [{"function_call": {"name": "f", "args": {"n": n}}} for n in (1, 2)]
    came = [{"function_response": {"name": "f", "response": {"n": n}}} for n in (1, 2)]
    document = {"events": [event("a", 1, *made), event("a", 2, *came, role="user")]}
    trace, _ = load(tmp_path / "s.json", document)
    pairs = {(e.src, e.dst) for e in trace.edges if e.label == "tool_dependency"}
    assert pairs == {("0#1", "0#3"), ("0#2", "0#4")}


def test_a_long_running_call_waits_and_escalation_stops(tmp_path):
    document = {
        "events": [
            event("a", 1, call("c", "ask"), long_running_tool_ids=["c"]),
            event("user", 9, result("c", "ask", ok=True), role="user"),
            event("a", 10, text("done"), actions={"escalate": True}),
        ]
    }
    trace, _ = load(tmp_path / "s.json", document)
    waiting = next(e for e in trace.events if e.kind == "tool_call")
    assert (waiting.attrs["waiting"], waiting.duration) == (True, 8.0)
    assert [e.attrs for e in trace.events if e.kind == "stop"] == [{"reason": "escalate"}]


def test_near_misses_say_why(tmp_path):
    path = save(tmp_path / "x.json", {"app_name": "a", "events": [{"author": "x"}]})
    with pytest.raises(StrettoError, match='closest is adk: events without "author"'):
        detect(path)
    with pytest.raises(StrettoError, match="no event of an agent"):
        import_paths([save(tmp_path / "y.json", {"app_name": "a", "events": []})])


@given(odd(SESSION))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_odd_fields_never_break_it(tmp_path_factory, document):
    fares_well(save(tmp_path_factory.mktemp("odd") / "s.json", document), "adk")


def test_it_keeps_the_rules(tmp_path):
    check_importer("adk", [save(tmp_path / "s.json", SESSION)])


@REAL
def test_a_real_session():
    """Agents: authors but the user, and the target of the first transfer. Turns: model events."""
    raw = json.loads(FLOW.read_text())["events"]
    trace, _ = load(FLOW)
    authors = {e["author"] for e in raw} - {"user"}
    assert set(names(trace).values()) == authors | {"research_assistant"}
    turns = [e for e in trace.events if e.kind == "decision"]
    assert len(turns) == sum(e["content"]["role"] == "model" for e in raw) == 6
    assert sum(e.kind == "delegate" for e in trace.events) == 2
    last = turns[-1]
    assert last.start + last.duration == pytest.approx(1734292291.451956 - 1734292270.899412)
    check_importer("adk", [FLOW])
