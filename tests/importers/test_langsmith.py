"""Runs of LangSmith: agents in chains, layouts of exports, tokens in all their places."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer

from .span_files import counts, lines, links, names, only, shape, texts, tokens, traces, types
from .transcripts import DATA, REAL

FIVE, HOUR = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
SUPERVISOR = "langsmith/gen_supervisor_subagents_as_tools.runs.jsonl"


def stamp(seconds):
    return f"2026-01-01T00:00:{seconds:09.6f}"


def run(name, kind, begin, end, above=None, who=None, title=None, space=None, **more):
    """A run; `who` is the agent in the metadata, `space` the namespace of the checkpoint."""
    metadata = {"lc_agent_name": who, "langgraph_checkpoint_ns": space, "langgraph_node": "tools"}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    return {
        "id": name,
        "trace_id": "g",
        "parent_run_id": above,
        "dotted_order": name,
        "name": title or name,
        "run_type": kind,
        "start_time": stamp(begin),
        "end_time": stamp(end),
        "inputs": more.pop("inputs", {}),
        "outputs": more.pop("outputs", {}),
        "error": None,
        "extra": {"metadata": metadata} | more.pop("extra", {}),
        "session_name": "p",
        **more,
    }


def said(text="", calls=(), usage=(10, 5), cached=0):
    """What a chat model of LangChain produced."""
    kwargs = {
        "content": text,
        "type": "ai",
        "tool_calls": [
            {"name": tool, "args": {"q": 1}, "id": key, "type": "tool_call"} for key, tool in calls
        ],
        "usage_metadata": {
            "input_tokens": usage[0],
            "output_tokens": usage[1],
            "input_token_details": {"cache_read": cached},
        },
    }
    message = {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": kwargs}
    return {"generations": [[{"text": text, "message": message}]]}


def team(label):
    """A supervisor that calls an agent as a tool; `label` says how runs tell their agents."""
    return [
        run("g", "chain", 0, 9, inputs={"messages": [["user", "go"]]}, **label("boss", "")),
        run("model", "chain", 0, 1, "g", **label("boss", "model:1")),
        run(
            "m1",
            "llm",
            0.5,
            1,
            "model",
            outputs=said(calls=[("k", "ask")]),
            **label("boss", "model:1"),
        ),
        run("tools", "chain", 1, 6, "g", **label("boss", "tools:2")),
        run(
            "ask",
            "tool",
            1,
            6,
            "tools",
            inputs={"q": 1},
            outputs={"output": {"type": "tool", "content": "found", "tool_call_id": "k"}},
            **label("boss", "tools:2"),
        ),
        run("sub", "chain", 1, 5, "ask", **label("scout", "tools:2")),
        run("model2", "chain", 1, 2, "sub", **label("scout", "tools:2|model:3")),
        run(
            "m2",
            "llm",
            1,
            2,
            "model2",
            outputs=said(calls=[("w", "web")], usage=(20, 7), cached=8),
            **label("scout", "tools:2|model:3"),
        ),
        run(
            "web",
            "tool",
            2,
            3,
            "sub",
            inputs={"q": 1},
            outputs={"output": "page"},
            extra={"tool_call_id": "w"},
        ),
        run("m3", "llm", 3, 4, "sub", outputs=said("found"), **label("scout", "tools:2|model:4")),
        run("m4", "llm", 7, 8, "g", outputs=said("done"), **label("boss", "model:5")),
    ]


TEAM = team(lambda who, space: {"who": who})
SPACES = team(lambda who, space: {"space": space})


@pytest.fixture
def labelled(tmp_path):
    return only(lines(tmp_path / "a.jsonl", *TEAM))


def test_agents_are_found_in_the_metadata_of_chains(labelled):
    assert names(labelled) == {"0": "boss", "0/0": "scout"}
    assert shape(labelled) == [
        ("0", "human", None),
        ("0", "decision", None),
        ("0", "spawn", "0/0"),
        ("0/0", "decision", None),
        ("0/0", "tool_call", "web"),
        ("0/0", "tool_result", "web"),
        ("0/0", "decision", None),
        ("0/0", "return", "0"),
        ("0", "decision", None),
    ]
    assert types(labelled) == ["spawn", "act", "act", "stop"]
    assert links(labelled, "return") == {("0/0#4", "0#3")}
    assert texts(labelled, "return") == ["found"]
    assert texts(labelled, "human") == ["go"]
    assert labelled.attrs["project"] == "p"


def test_where_no_run_names_an_agent_the_checkpoints_do(tmp_path, labelled):
    trace = only(lines(tmp_path / "a.jsonl", *SPACES))
    assert shape(trace) == shape(labelled)
    assert names(trace) == {"0": "g", "0/0": "sub"}
    assert tokens(trace) == tokens(labelled)


def test_tokens_of_chains_do_not_count(tmp_path, labelled):
    spans = [each | {"total_tokens": 999, "prompt_tokens": 900} for each in TEAM]
    trace = only(lines(tmp_path / "b.jsonl", *spans))
    assert tokens(trace) == tokens(labelled) == (50, 22)
    second = [event for event in trace.events if event.decision][1]
    assert (second.tokens.input, second.tokens.cache_read) == (12, 8)


USAGES = [
    {"outputs": {"llm_output": {"token_usage": {"prompt_tokens": 3, "completion_tokens": 2}}}},
    {"outputs": {"usage_metadata": {"input_tokens": 3, "output_tokens": 2}}},
    {
        "outputs": {
            "choices": [{"message": {"content": "x"}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        }
    },
    {
        "outputs": {
            "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 3, "output_tokens": 2},
        }
    },
    {"prompt_tokens": 3, "completion_tokens": 2, "outputs": None},
]


@pytest.mark.parametrize("fields", USAGES)
def test_tokens_in_every_place(tmp_path, fields):
    call = run("m", "llm", 0, 1) | fields
    trace = only(lines(tmp_path / "a.jsonl", call))
    assert tokens(trace) == (3, 2)
    if "content" in json.dumps(fields):
        assert texts(trace, "decision") == ["x"]


@pytest.mark.parametrize(
    ("details", "written", "long"),
    [
        ({"cache_creation": 0, FIVE: 3, HOUR: 4}, 7, 4),
        ({"cache_creation": 7, FIVE: 3, HOUR: 4}, 7, 4),
        ({"cache_creation": 7, HOUR: 0}, 7, None),
        ({"cache_creation": 7}, 7, None),
        ({FIVE: 3}, 3, None),
    ],
)
def test_cache_writes_are_told_by_their_time(tmp_path, details, written, long):
    """LangChain says `cache_creation: 0` beside its two parts; all are part of the 20 tokens."""
    answer = said("hi", usage=(20, 5))
    message = answer["generations"][0][0]["message"]["kwargs"]
    message["usage_metadata"]["input_token_details"] = details
    trace = only(lines(tmp_path / "r.jsonl", [run("g", "llm", 0, 1, outputs=answer)]))
    (turn,) = (event for event in trace.events if event.kind == "decision")
    assert (turn.tokens.input, turn.tokens.cache_write) == (20 - written, written)
    assert turn.attrs.get("cache_write_1h") == long


def test_times_without_a_zone_are_in_utc(labelled):
    assert labelled.attrs["started"] == "2026-01-01T00:00:00+00:00"
    assert [event.start for event in labelled.events] == [0, 0.5, 1, 1, 2, 3, 3, 5, 7]


def folded(runs):
    """Runs as the tracer holds them: children in their parents, without ids of those."""
    by_id = {each["id"]: dict(each) | {"child_runs": []} for each in runs}
    roots = []
    for each in by_id.values():
        above = each.pop("parent_run_id")
        each.pop("dotted_order")
        (by_id[above]["child_runs"] if above else roots).append(each)
    return roots


LAYOUTS = {
    "lines": lambda runs: "".join(json.dumps(each) + "\n" for each in runs),
    "lines in reverse": lambda runs: "".join(json.dumps(each) + "\n" for each in runs[::-1]),
    "list": json.dumps,
    "page of the API": lambda runs: json.dumps({"runs": runs, "cursors": {}}, indent=1),
    "nested": lambda runs: json.dumps(folded(runs)[0], indent=1),
    "nested, on a line": lambda runs: json.dumps(folded(runs)[0]) + "\n",
    "parents by order": lambda runs: json.dumps([ordered(each, runs) for each in runs]),
}


def ordered(each, runs):
    """The parent only in `dotted_order`."""
    by_id = {other["id"]: other for other in runs}
    path, step = [], each
    while step is not None:
        path.append(f"20260101T000000000000Z{step['id']}")
        step = by_id.get(step["parent_run_id"])
    rest = {key: value for key, value in each.items() if key not in ("parent_run_id", "trace_id")}
    return rest | {"dotted_order": ".".join(path[::-1])}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_events(tmp_path, layout, labelled):
    path = tmp_path / "x.json"
    path.write_text(LAYOUTS[layout](TEAM))
    assert detect(path) == "langsmith"
    trace = only(path)
    assert shape(trace) == shape(labelled)
    assert trace.id == labelled.id


def test_what_is_sent_when_runs_begin_and_end_is_one_run_each(tmp_path, labelled):
    ends = ("outputs", "end_time", "error")
    post = [{key: value for key, value in each.items() if key not in ends} for each in TEAM]
    sent = ("id", "trace_id", "dotted_order", *ends)
    patch = [{key: each[key] for key in sent} for each in TEAM]
    patch.append({"id": "elsewhere", "dotted_order": "elsewhere", "outputs": {}})
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"post": post, "patch": patch}))
    assert detect(path) == "langsmith"
    imported = import_paths([path])
    assert shape(imported.traces[0]) == shape(labelled)
    skipped = imported.report[0].skipped
    assert (skipped["update of a run"], skipped["not a run"]) == (len(TEAM), 1)


def test_a_run_that_is_updated_is_one_run(tmp_path, labelled):
    begun = [each | {"outputs": None, "end_time": None} for each in TEAM]
    path = lines(tmp_path / "a.jsonl", *begun, *TEAM)
    imported = import_paths([path])
    assert shape(imported.traces[0]) == shape(labelled)
    assert imported.report[0].skipped["update of a run"] == len(TEAM)


def test_feedback_goes_to_the_event_the_agent_or_the_team(tmp_path):
    feedback = {"feedback_stats": {"good": {"n": 2, "avg": 0.5}}}
    runs = [each | feedback if each["id"] in ("g", "sub", "m2", "web") else each for each in TEAM]
    trace = only(lines(tmp_path / "a.jsonl", *runs))
    assert {(score.channel, score.value) for score in trace.scores} == {("good", 0.5)}
    found = {(score.agent, score.event) for score in trace.scores}
    assert found == {(None, None), ("0/0", None), (None, "0/0#0"), (None, "0/0#1")}


def test_price(tmp_path):
    trace = only(lines(tmp_path / "a.jsonl", run("m", "llm", 0, 1, total_cost="0.25")))
    assert trace.events[0].price == 0.25


def test_a_root_that_failed_is_an_error_of_the_trace(tmp_path):
    runs = [each | {"error": "broke"} if each["id"] == "g" else each for each in TEAM]
    assert only(lines(tmp_path / "a.jsonl", *runs)).attrs["error"] == "broke"


def test_an_error_is_kept(tmp_path):
    failed = run("t", "tool", 0, 1) | {"error": "ValueError()", "outputs": None}
    trace = only(lines(tmp_path / "a.jsonl", failed))
    assert trace.events[-1].attrs["error"] == "ValueError()"


def test_two_traces_are_two(tmp_path):
    other = [run("m", "llm", 20, 21) | {"trace_id": "h", "id": "h"}]
    found = traces(lines(tmp_path / "a.jsonl", *other, *TEAM))
    assert [trace.id for trace in found] == ["g", "h"]


def test_a_near_miss_says_what_is_missing(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"run_type": "llm"})
    with pytest.raises(StrettoError, match="runs without"):
        detect(path)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    place=st.integers(0, len(TEAM) - 1),
    field=st.sampled_from(sorted(TEAM[0])),
    value=st.sampled_from([None, 1, -1.5, True, "x", [], {}, [1], {"a": 1}, 10**30, [[{}]]]),
)
def test_any_type_in_any_field(tmp_path_factory, place, field, value):
    runs = [dict(each) for each in TEAM]
    runs[place][field] = value
    path = lines(tmp_path_factory.mktemp("odd") / "a.jsonl", *runs)
    for trace in traces(path, "langsmith"):
        stretto.save(path.with_suffix(".trace"), [trace])


@pytest.mark.parametrize("layout", ["lines", "list", "nested"])
def test_the_rules_of_importers_hold(tmp_path, layout):
    path = tmp_path / "x.json"
    path.write_text(LAYOUTS[layout](TEAM))
    check_importer("langsmith", [path])


@REAL
def test_a_real_supervisor():
    """Counted by `run_type`; parents of the children by the run above."""
    runs = [json.loads(line) for line in (DATA / SUPERVISOR).read_text().splitlines()]
    kinds = Counter(each["run_type"] for each in runs)
    agents = {each["extra"]["metadata"]["lc_agent_name"] for each in runs}
    trace = only(DATA / SUPERVISOR)
    found = counts(trace)
    assert found["decision"] == kinds["llm"] == 6
    assert found["tool_call"] == kinds["tool"] - 2  # two of the tools are agents
    assert set(names(trace).values()) == agents
    assert (found["spawn"], found["return"]) == (2, 2)
    usages = [
        each["outputs"]["llm_output"]["token_usage"] for each in runs if each["run_type"] == "llm"
    ]
    prompt = sum(usage["prompt_tokens"] for usage in usages)
    output = sum(usage["completion_tokens"] for usage in usages)
    assert tokens(trace) == (prompt, output) == (251, 141)
    assert types(trace)[0] == "spawn"
    assert trace.text(trace.events[-1].content) == "Report: 2.1 M units, subsidy 30%."
    assert trace.attrs["session_id"] == "thread-001"


@REAL
def test_the_rules_hold_on_a_real_file():
    check_importer("langsmith", [DATA / SUPERVISOR])
