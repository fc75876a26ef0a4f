"""Spans as stores keep them (Jaeger, Elasticsearch, MLflow), and what is odd about their ids.

The same team as in `test_otlp` is written in every shape, and must be the same team.
"""

import json
from base64 import b64encode
from time import process_time

import pytest

from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.spans.jaeger import from_jaeger
from stretto.importers.spans.loose import documents_in

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
)
from .test_otlp import TEAM
from .test_otlp_loose import flat, listed, of_jaeger, plain, tag, text, what, written

HEX = {each["spanId"]: f"{place:016x}" for place, each in enumerate(TEAM, 1)}


def kept(each, **more):
    """As Jaeger puts a span into Elasticsearch: with its process, times in numbers."""
    found = of_jaeger(each) | {"process": {"serviceName": "app", "tags": [tag("host", "h")]}}
    return found | {"startTimeMillis": found["startTime"] // 1000} | more


def in_text(each):
    found = of_jaeger(each)
    return found | {name: str(found[name]) for name in ("startTime", "duration")}


def without_references(each):
    above = each.get("parentSpanId")
    return of_jaeger(each) | {"references": [], **({"parentSpanID": above} if above else {})}


def as_fields(each):
    """Tags as fields of an object: Elasticsearch has no dots there."""
    found = kept(each)
    tags = {one["key"].replace(".", "@"): one["value"] for one in found["tags"]}
    return found | {"tags": [], "tag": tags}


def encoded(name):
    return b64encode(bytes.fromhex(HEX[name])).decode() if name else ""


def mlflow(*spans):
    """As MLflow writes a trace of spans that follow the GenAI conventions."""
    return {
        "info": {"trace_id": "tr-1", "state": "OK"},
        "data": {
            "spans": [
                {
                    "trace_id": "t",
                    "span_id": encoded(each["spanId"]),
                    "parent_span_id": encoded(each.get("parentSpanId")),
                    "name": each["name"],
                    "start_time_unix_nano": int(each["startTimeUnixNano"]),
                    "end_time_unix_nano": int(each["endTimeUnixNano"]),
                    "events": [],
                    "status": {"code": "STATUS_CODE_OK", "message": ""},
                    "attributes": plain(each),
                }
                for each in spans
            ]
        },
    }


def hit(source):
    return {"_index": "jaeger-span-2026-01-01", "_id": "x", "_source": source}


SHAPES = {
    "Jaeger, times as texts": text({"data": [{"traceID": "t", "spans": listed(in_text)}]}),
    "Jaeger, parents by themselves": text({"data": [{"spans": listed(without_references)}]}),
    "Elasticsearch, a line each": text(*map(hit, listed(kept))),
    "Elasticsearch, tags as fields": text(*map(hit, listed(as_fields))),
    "Elasticsearch, an answer": text({"took": 1, "hits": {"hits": [*map(hit, listed(kept))]}}),
    "MLflow": text(mlflow(*TEAM)),
    "MLflow of many lines": text(mlflow(*TEAM), indent=2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_the_same_team(tmp_path, name):
    team = only(lines(tmp_path / "team.jsonl", request(*TEAM)))
    path = written(tmp_path, SHAPES[name])
    assert detect(path) == "otlp"
    imported = import_paths([path])
    (trace,) = imported.traces
    assert (trace.id, trace.edges, trace.contents) == (team.id, team.edges, team.contents)
    assert [what(event) for event in trace.events] == [what(event) for event in team.events]
    assert (imported.report[0].records, imported.report[0].warnings) == (len(TEAM), ())


@pytest.mark.parametrize("name", SHAPES)
def test_the_rules_of_importers_hold(tmp_path, name):
    check_importer("otlp", [written(tmp_path, SHAPES[name])])


def test_mlflow_that_was_cut_gives_the_spans_that_are_whole(tmp_path):
    content = SHAPES["MLflow"]
    path = written(tmp_path, content[: content.rindex('"attributes"')])
    imported = import_paths([path])
    assert (imported.report[0].records, len(imported.report[0].warnings)) == (len(TEAM) - 1, 1)


def own(name, begin, end, above, kind, **said):
    """A span with the attributes of MLflow, each of them JSON."""
    said = {f"mlflow.{key.replace('__', '.')}": json.dumps(value) for key, value in said.items()}
    return span(name, begin, end, above, attributes=said | {"mlflow.spanType": json.dumps(kind)})


def test_mlflow_has_names_of_its_own(tmp_path):
    """12 prompt tokens of which 2 came from a cache, 3 sampled; 0.5 dollars."""
    usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}
    usage["cache_read_input_tokens"] = 2
    asked = {"messages": [{"role": "user", "content": "go"}], "temperature": 0}
    reply = {"choices": [{"message": {"role": "assistant", "content": "done"}}]}
    spans = [
        own("boss", 0, 9, None, "AGENT", spanInputs="go", spanOutputs="done"),
        own(
            "call",
            0,
            1,
            "boss",
            "CHAT_MODEL",
            spanInputs=asked,
            spanOutputs=reply,
            chat__tokenUsage=usage,
            llm__model="m",
            llm__cost={"total_cost": 0.5},
        ),
        own("web", 1, 2, "boss", "TOOL", spanInputs={"q": 1}, spanOutputs="page"),
    ]
    trace = only(lines(tmp_path / "a.jsonl", request(*spans)))
    assert names(trace) == {"0": "boss"}
    assert shape(trace) == [
        ("0", "human", None),
        ("0", "decision", None),
        ("0", "tool_call", "web"),
        ("0", "tool_result", "web"),
    ]
    assert (texts(trace, "human"), texts(trace, "decision")) == (["go"], ["done"])
    assert (texts(trace, "tool_call"), texts(trace, "tool_result")) == (['{"q":1}'], ["page"])
    assert tokens(trace) == (12, 3)
    assert (trace.events[1].price, trace.events[1].attrs["model"]) == (0.5, "m")
    assert not [key for event in trace.events for key in event.attrs if "spanInputs" in key]


def test_where_mlflow_and_the_conventions_both_speak_the_conventions_hold(tmp_path):
    call = chat("c", 0, 1, usage=(7, 2), text="ok")
    call["attributes"] += span(
        "x", 0, 1, attributes={"mlflow.spanType": "LLM", "mlflow.spanOutputs": '"no"'}
    )["attributes"]
    trace = only(lines(tmp_path / "a.jsonl", request(call)))
    assert (tokens(trace), texts(trace, "decision")) == ((7, 2), ["ok"])


@pytest.mark.parametrize(
    ("fields", "name", "rest"),
    [
        ({"event": "exception", "message": "boom"}, "exception", {"message": "boom"}),
        ({"message": "boom"}, "boom", {}),
        ({"x": "y"}, "", {"x": "y"}),
    ],
)
def test_an_event_of_jaeger_is_named_once(fields, name, rest):
    log = {"timestamp": str(T0 // 1000), "fields": [tag(*each) for each in fields.items()]}
    (event,) = from_jaeger(of_jaeger(tool("w", 0, 1), logs=[log]), {})["events"]
    assert event == {"name": name, "timeUnixNano": T0, "attributes": rest}


def test_turns_that_are_each_others_parent_are_both_kept(tmp_path):
    """Their parents are wrong, and nothing says which: neither has one, and the report says so."""
    spans = [chat("a", 0, 1, "b"), chat("b", 1, 2, "a"), tool("w", 2, 3, "b"), chat("c", 3, 4, "c")]
    path = lines(tmp_path / "a.jsonl", *map(request, spans))
    imported = import_paths([path])
    (trace,) = imported.traces
    assert (counts(trace)["decision"], tokens(trace)) == (3, (30, 15))
    why = "its parents lead back to it: read as a span without a parent"
    assert [str(each) for each in imported.report[0].warnings] == [
        f"{path}:{number}: {why}" for number in (1, 2, 4)
    ]


def test_a_turn_without_an_agent_that_holds_a_turn_is_counted(tmp_path):
    path = lines(tmp_path / "a.jsonl", request(chat("a", 0, 9), chat("b", 1, 2, "a")))
    imported = import_paths([path])
    assert counts(imported.traces[0])["decision"] == 1
    assert imported.report[0].skipped == {"nested turn": 1}


def test_ids_that_are_no_hex_digits_keep_their_case(tmp_path):
    ids = ("V1StGXR8Z5jdHi6B", "v1StGXR8Z5jdHi6B", "00F067AA0BA902B7")
    found = [flat(chat(name, place, place + 1)) for place, name in enumerate(ids)]
    above = flat(tool("w", 3, 4, ids[2].lower()))
    imported = import_paths([written(tmp_path, text(*found, above))])
    assert [event.attrs["span_id"] for event in imported.traces[0].events[:3]] == [
        *ids[:2],
        ids[2].lower(),
    ]
    assert imported.report[0].duplicates == 0


def test_an_agent_below_an_id_in_other_case_is_found(tmp_path):
    lead = agent("AB" * 8, 0, 9, None, "lead")
    trace = only(lines(tmp_path / "a.jsonl", request(lead, chat("c", 1, 2, "ab" * 8))))
    assert names(trace) == {"0": "lead"}


@pytest.mark.parametrize(
    "data",
    [b"{\n" * 40_000, b'[\n{\n"a":\n},\n' + b"{\n},\n" * 40_000, b"{\n},\n" * 40_000],
    ids=["braces", "a list", "items"],
)
def test_looking_for_objects_takes_linear_time(data):
    """Quadratic, the first of them takes ten seconds."""
    began = process_time()
    assert documents_in(data, "x", lambda value: True) is None
    assert process_time() - began < 1
