"""Spans outside of export requests: what SDKs print, Jaeger's JSON, data sets, flat lists.

The same team as in `test_otlp` is written in every shape, and must be the same team.
"""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stretto
from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer

from .span_files import (
    T0,
    agent,
    chat,
    counts,
    lines,
    names,
    only,
    request,
    shape,
    span,
    texts,
    tokens,
    tool,
    traces,
)
from .test_otlp import TEAM

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RESOURCE = {"service.name": "app"}


def plain(each):
    """The attributes of a span by name, as an SDK keeps them."""
    found = {}
    for attribute in each["attributes"]:
        (kind, value), *_ = attribute["value"].items()
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


def iso(nanos):
    return (EPOCH + timedelta(microseconds=int(nanos) // 1000)).isoformat().replace("+00:00", "Z")


def sdk(each, **more):
    """As `to_json` of the Python SDK writes a span."""
    above = each.get("parentSpanId")
    return {
        "name": each["name"],
        "context": context(each["spanId"], each["traceId"]),
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{above}" if above else None,
        "start_time": iso(each["startTimeUnixNano"]),
        "end_time": iso(each["endTimeUnixNano"]),
        "status": {"status_code": "UNSET"},
        "attributes": plain(each),
        "events": [],
        "links": [],
        "resource": {"attributes": RESOURCE, "schema_url": ""},
        **more,
    }


def context(name, trace="t"):
    return {"trace_id": f"0x{trace}", "span_id": f"0x{name}", "trace_state": "[]"}


def pair(nanos):
    return list(divmod(int(nanos), 10**9))


def javascript(each):
    """As the JavaScript SDK's span object is made JSON of (Gemini CLI, Copilot in VS Code)."""
    above = each.get("parentSpanId")
    return {
        "_spanContext": {"traceId": each["traceId"], "spanId": each["spanId"], "traceFlags": 1},
        **({"parentSpanContext": {"traceId": "t", "spanId": above}} if above else {}),
        "kind": 0,
        "name": each["name"],
        "startTime": pair(each["startTimeUnixNano"]),
        "endTime": pair(each["endTimeUnixNano"]),
        "attributes": plain(each),
        "status": {"code": 0},
        "events": [],
        "resource": {"_rawAttributes": [["service.name", "app"]]},
        "instrumentationScope": {"name": "lib", "version": "1.0"},
    }


def flat(each, **more):
    """As homemade exporters write a span."""
    return {
        "trace_id": each["traceId"],
        "span_id": each["spanId"],
        "parent_span_id": each.get("parentSpanId"),
        "name": each["name"],
        "start_time": iso(each["startTimeUnixNano"]),
        "end_time": iso(each["endTimeUnixNano"]),
        "attributes": plain(each),
        **more,
    }


def jaeger(*spans, tags=(), **more):
    """As Jaeger's API writes a trace."""
    return {
        "data": [
            {
                "traceID": "t",
                "spans": [of_jaeger(each, tags, **more) for each in spans],
                "processes": {"p1": {"serviceName": "app", "tags": [tag("host", "h")]}},
                "warnings": None,
            }
        ],
        "total": 0,
        "errors": None,
    }


def of_jaeger(each, tags=(), **more):
    begin, end = (int(each[name]) // 1000 for name in ("startTimeUnixNano", "endTimeUnixNano"))
    above = each.get("parentSpanId")
    own = [tag("otel.scope.name", "lib"), tag("otel.scope.version", "1.0"), *tags]
    return {
        "traceID": each["traceId"],
        "spanID": each["spanId"],
        "operationName": each["name"],
        "references": [reference("CHILD_OF", above)] if above else [],
        "startTime": begin,
        "duration": end - begin,
        "tags": [*(tag(key, value) for key, value in plain(each).items()), *own],
        "logs": [],
        "processID": "p1",
        **more,
    }


def tag(key, value):
    kind = {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
    return {"key": key, "type": kind, "value": value}


def reference(kind, name, trace="t"):
    return {"refType": kind, "traceID": trace, "spanID": name}


def length(each):
    return (int(each["endTimeUnixNano"]) - int(each["startTimeUnixNano"])) / 1e9


def nested(spans, above=None):
    """As TRAIL has a trace: spans in spans, durations, and texts for all values."""
    return [
        {
            "span_id": each["spanId"],
            "parent_span_id": above,
            "span_name": each["name"],
            "span_kind": "Internal",
            "timestamp": iso(each["startTimeUnixNano"]),
            "duration": f"PT{length(each)}S",
            "status_code": "Unset",
            "status_message": "",
            "span_attributes": {key: str(value) for key, value in plain(each).items()},
            "resource_attributes": RESOURCE,
            "scope_name": "lib",
            "scope_version": "1.0",
            "child_spans": nested(spans, each["spanId"]),
        }
        for each in spans
        if each.get("parentSpanId") == above
    ]


def text(*values, indent=None):
    return "".join(json.dumps(value, indent=indent) + "\n" for value in values)


def listed(change):
    return [change(each) for each in TEAM]


SHAPES = {
    "console": text(*listed(sdk), indent=4),
    "console among lines of a log": "INFO start\n" + text(*listed(sdk), indent=4) + "INFO end\n",
    "SDK, a line each": text(*listed(sdk)),
    "SDK, among lines of a log": "[06/18/24 06:57] INFO\n" + text(*listed(sdk)),
    "SDK, a list": text(listed(sdk), indent=2),
    "JavaScript, a line each": text(*listed(javascript)),
    "JavaScript, over many lines": text(*listed(javascript), indent=2),
    "flat, below spans": text({"spans": listed(flat)}),
    "flat, below spans of many lines": text({"spans": listed(flat)}, indent=2),
    "flat, without any indent": text({"spans": listed(flat)}, indent=0),
    "flat, a line each": text(*listed(flat)),
    "flat, a list": text(listed(flat)),
    "flat, with keys and values": text({"spans": TEAM}),
    "TRAIL": text({"trace_id": "t", "spans": nested(TEAM)}, indent=2),
    "Jaeger": text(jaeger(*TEAM)),
    "Jaeger of many lines": text(jaeger(*TEAM), indent=2),
    "Jaeger, one trace": text(jaeger(*TEAM)["data"][0]),
    "Jaeger, version 3": text({"result": request(*TEAM)}),
    "Tempo, version 2": text({"trace": request(*TEAM)}),
}


@pytest.fixture
def team(tmp_path):
    return only(lines(tmp_path / "team.jsonl", request(*TEAM)))


def written(folder, content, name="spans.json"):
    path = folder / name
    path.write_text(content)
    return path


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_the_same_team(tmp_path, team, name):
    path = written(tmp_path, SHAPES[name])
    assert detect(path) == "otlp"
    imported = import_paths([path])
    (trace,) = imported.traces
    assert (trace.id, trace.edges, trace.contents) == (team.id, team.edges, team.contents)
    assert [who(agent) for agent in trace.agents] == [who(agent) for agent in team.agents]
    assert [what(event) for event in trace.events] == [what(event) for event in team.events]
    (report,) = imported.report
    assert report.records == len(TEAM)
    logs = name.startswith("SDK, among")
    assert [str(notice).rpartition(":")[0] for notice in report.warnings] == (
        [f"{path}:1: is no whole record"] if logs else []
    )


def who(agent):
    return (agent.id, agent.parent, agent.name, agent.model)


def what(event):
    """All but attributes: TRAIL has numbers there as texts."""
    return (event.id, event.kind, event.to, event.tool, event.start, event.duration, event.tokens,
            event.content, event.decision)  # fmt: skip


@pytest.mark.parametrize("name", ["JavaScript, a line each", "TRAIL", "Jaeger"])
def test_what_recorded_a_run_and_where_it_ran(tmp_path, name):
    trace = only(written(tmp_path, SHAPES[name]))
    assert trace.system == "lib 1.0"
    assert trace.attrs["resource"]["service.name"] == "app"


def test_an_sdk_says_what_failed_what_was_linked_and_what_was_judged(tmp_path):
    """A link of a turn in another trace joins both runs, as it does over OTLP."""
    judged = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 0.5}
    event = {"name": "gen_ai.evaluation.result", "timestamp": iso(T0), "attributes": judged}
    failed = {"status_code": "ERROR", "description": "no net"}
    first = sdk(chat("c", 0, 1, trace="a"), events=[event])
    second = sdk(tool("w", 1, 2, trace="b"), status=failed, links=[{"context": context("c", "a")}])
    trace = only(written(tmp_path, text(first, second)))
    assert trace.attrs["trace_ids"] == ["a", "b"]
    assert [score.value for score in trace.scores] == [0.5]
    assert trace.events[-1].attrs["error"] == "no net"


def test_a_span_of_an_sdk_without_times_is_read(tmp_path):
    trace = only(written(tmp_path, text(sdk(chat("c", 0, 1), start_time=None, end_time=None))))
    assert [(e.kind, e.start, e.duration) for e in trace.events] == [("decision", None, None)]


def test_jaeger_keeps_status_events_and_links_elsewhere(tmp_path):
    """Tags say what failed, logs are events, further references are links."""
    fields = {
        "event": "gen_ai.evaluation.result",
        "gen_ai.evaluation.name": "helpful",
        "gen_ai.evaluation.score.value": 0.5,
    }
    log = {"timestamp": T0 // 1000, "fields": [tag(key, value) for key, value in fields.items()]}
    call = of_jaeger(chat("c", 0, 1, trace="a"), logs=[log])
    status = [tag("otel.status_code", "ERROR"), tag("otel.status_description", "no net")]
    links = [reference("CHILD_OF", "gone", "z"), reference("FOLLOWS_FROM", "c", "a")]
    failed = of_jaeger(tool("w", 1, 2, trace="b"), status, references=links)
    trace = only(written(tmp_path, text({"data": [{"spans": [call]}, {"spans": [failed]}]})))
    assert trace.attrs["trace_ids"] == ["a", "b"]
    assert [score.value for score in trace.scores] == [0.5]
    result = trace.events[-1]
    assert result.attrs["error"] == "no net"
    assert not [name for event in trace.events for name in event.attrs if name.startswith("otel")]


@pytest.mark.parametrize(
    ("tags", "error"),
    [
        ([tag("error", True)], "error"),
        ([tag("error", "true")], "error"),
        ([tag("error", "false")], None),
        ([tag("otel.status_code", "OK")], None),
    ],
)
def test_jaegers_own_sign_of_a_failure(tmp_path, tags, error):
    trace = only(written(tmp_path, text(jaeger(tool("w", 0, 1), tags=tags))))
    assert trace.events[-1].attrs.get("error") == error


def test_a_span_of_jaeger_that_took_no_time_took_none(tmp_path):
    trace = only(written(tmp_path, text(jaeger(tool("w", 1, 1)))))
    assert trace.events[0].duration == 0


def test_numbers_that_a_store_keeps_as_texts_are_numbers(tmp_path):
    said = {"openinference.span.kind": "LLM", "llm.token_count.prompt": "12"}
    said |= {"llm.token_count.completion": "3", "llm.cost.total": "0.25"}
    trace = only(written(tmp_path, text({"spans": [flat(span("c", 0, 1, attributes=said))]})))
    assert tokens(trace) == (12, 3)
    assert trace.events[0].price == 0.25


@pytest.mark.parametrize("status", [{"status": "ERROR"}, {"status_code": "Error"}])
def test_a_flat_span_says_that_it_failed(tmp_path, status):
    trace = only(written(tmp_path, text(flat(tool("w", 0, 1), **status, status_message="no net"))))
    assert trace.events[-1].attrs["error"] in ("no net", "error")


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("PT1.5S", 1.5), ("PT1M2S", 62), ("P1DT1H", 90000), ([2, 500_000_000], 2.5), ("soon", None)],
)
def test_a_duration_stands_for_an_end(tmp_path, duration, seconds):
    each = flat(chat("c", 0, 1), end_time=None, duration=duration)
    assert only(written(tmp_path, text(each))).events[0].duration == seconds


def test_tools_and_turns_of_adk_that_only_their_name_tells_of(tmp_path):
    asked = json.dumps({"contents": [{"role": "user", "parts": [{"text": "go"}]}]})
    said = {"gcp.vertex.agent.llm_request": asked, "gen_ai.request.model": "m"}
    spans = [
        span("a", 0, 9, title="invoke_agent helm"),
        span("c", 0, 1, "a", title="call_llm", attributes=said),
        span("t", 1, 2, "a", title="execute_tool list"),
    ]
    trace = only(written(tmp_path, text(jaeger(*spans))))
    assert names(trace) == {"0": "helm"}
    assert shape(trace) == [
        ("0", "human", None),
        ("0", "decision", None),
        ("0", "tool_call", "list"),
        ("0", "tool_result", "list"),
    ]
    assert texts(trace, "human") == ["go"]


def test_records_that_are_no_spans_are_counted(tmp_path):
    """A file of Gemini CLI holds logs and metrics too."""
    log = {"hrTime": [1, 0], "attributes": {"event.name": "x"}, "_body": "hi"}
    imported = import_paths([written(tmp_path, text(*listed(javascript), log, indent=2))])
    assert imported.report[0].skipped == {"not a span": 1}
    assert imported.report[0].records == len(TEAM) + 1


def test_what_a_program_prints_itself_is_counted(tmp_path):
    content = text({"config": {"deep": []}}, indent=4) + SHAPES["console"]
    path = written(tmp_path, content)
    assert detect(path) == "otlp"
    assert import_paths([path]).report[0].skipped == {"not a span": 1}


def test_what_was_printed_last_and_cut_is_left_out(tmp_path):
    content = SHAPES["console"]
    path = written(tmp_path, content[: content.rindex('"attributes"')])
    imported = import_paths([path])
    (report,) = imported.report
    assert (report.records, len(report.warnings)) == (len(TEAM) - 1, 1)
    number = content[: content.rindex("\n{\n")].count("\n") + 2
    assert str(report.warnings[0]) == f"{path}:{number}: the last record is cut: left out"


@pytest.mark.parametrize("name", ["flat, below spans", "flat, a list", "SDK, a list", "Jaeger"])
def test_a_document_that_was_cut_gives_the_spans_that_are_whole(tmp_path, name):
    content = SHAPES[name]
    path = written(tmp_path, content[: content.rindex('"lead"') + 6])
    imported = import_paths([path])
    assert imported.report[0].warnings
    assert sum(counts(t)["decision"] for t in imported.traces) == 4


def test_files_of_several_services_are_one_run(tmp_path, team):
    for place, part in enumerate((TEAM[:3], TEAM[3:])):
        written(tmp_path, text(jaeger(*part)), f"{place}.json")
    (trace,) = import_paths([tmp_path]).traces
    assert trace.events == team.events


@pytest.mark.parametrize(
    "value",
    [
        {"trace_id": "t", "span_id": "s", "message": "a line of a log", "level": "INFO"},
        {"trace_id": "t", "id": "s", "name": "x", "start_time": iso(T0)},
        {"context": {"trace_id": "t", "span_id": "s"}, "name": "x", "attributes": {}},
        {"spans": [{"span_id": "s", "name": "x", "attributes": {}}]},
        {"data": [{"traceID": "t", "spans": []}]},
        {"data": [1, [], None]},
    ],
)
def test_what_only_looks_like_spans_is_not_taken(tmp_path, value):
    with pytest.raises(StrettoError):
        only(written(tmp_path, text(value)), "otlp")


def test_phoenix_keeps_its_own(tmp_path):
    said = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
    own = {"context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "name": "x"}
    own |= {"start_time": iso(T0), "end_time": iso(T0), "attributes": said, "parent_id": None}
    assert detect(written(tmp_path, text(own))) == "phoenix"
    assert detect(written(tmp_path, text(sdk(span("c", 0, 1, attributes=said))))) == "otlp"


@pytest.mark.parametrize("name", ["console", "flat, below spans", "TRAIL", "Jaeger"])
def test_the_rules_of_importers_hold(tmp_path, name):
    check_importer("otlp", [written(tmp_path, SHAPES[name])])


ODD = [None, 1, -1.5, True, "x", "", [], {}, [1], [None], [[]], {"a": 1}, 10**30, [{"key": 1}]]


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    change=st.sampled_from([sdk, javascript, flat, of_jaeger]),
    draw=st.data(),
    value=st.sampled_from(ODD),
)
def test_any_type_in_any_field(tmp_path_factory, change, draw, value):
    spans = listed(change)
    place = draw.draw(st.integers(0, len(spans) - 1))
    spans[place][draw.draw(st.sampled_from(sorted(spans[place])))] = value
    path = written(tmp_path_factory.mktemp("odd"), text({"spans": spans}))
    for trace in traces(path, "otlp"):
        stretto.save(path.with_suffix(".trace"), [trace])


def test_an_agent_of_a_flat_list_is_named(tmp_path):
    trace = only(written(tmp_path, text([flat(agent("a", 0, 2, None, "boss"))])))
    assert names(trace) == {"0": "boss"}
