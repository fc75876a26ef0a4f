"""GraphML, Parquet, the survey's schema, and what all exporters promise."""

import io
import json
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.exporters import EXPORTERS, export, graphml, load_exporter, write
from stretto.importers.survey.schema import from_survey
from stretto.trace import Trace

from ..examples import event, trace
from ..strategies import examples, traces
from .sample import sample

NAMESPACE = "{http://graphml.graphdrawing.org/xmlns}"


def read_graphml(run):
    """Nodes, edges and the data of each, read with the standard library."""
    root = ElementTree.fromstring(graphml.export([run]).files[""])
    types = {key.get("id"): key for key in root.iter(f"{NAMESPACE}key")}
    for part in ("node", "edge"):
        for element in root.iter(f"{NAMESPACE}{part}"):
            data = {types[d.get("key")].get("attr.name"): d.text for d in element if d.text}
            yield part, dict(element.attrib), data


def test_graphml_by_hand():
    parts = list(read_graphml(sample()))
    assert [part for part, *_ in parts] == ["node"] * 8 + ["edge"] * 5
    _, place, turn = parts[0]
    assert place == {"id": "0#0"}
    assert turn["kind"] == "decision"
    assert (turn["role"], turn["duration"]) == ("lead", "2.0")
    assert (turn["text"], turn["observed"]) == ("I plan.", "the task")
    assert json.loads(turn["tokens"]) == {"input": 10, "output": 5, "cache_read": 3}
    assert parts[5][2]["trusted"] == "false"
    assert parts[-2][1:] == (
        {"source": "0/0#0", "target": "0/0#2"},
        {"label": "tool_dependency", "evidence": "derived"},
    )


@examples(20)
@given(traces())
def test_graphml_keeps_every_node_and_edge(run):
    assume(all(each.id == each.id.translate(graphml.FORBIDDEN) for each in run.events))
    parts = list(read_graphml(run))
    assert sum(part == "node" for part, *_ in parts) == len(run.events)
    assert sum(part == "edge" for part, *_ in parts) == len(run.edges)


def test_networkx_reads_graphml():
    networkx = pytest.importorskip("networkx")
    graph = networkx.read_graphml(io.BytesIO(graphml.export([sample()]).files[""]))
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (8, 5)
    assert graph.nodes["0/0#0"]["start"] == 2.0
    assert graph.nodes["0/0#2"]["trusted"] is False
    assert graph.edges["0#1", "0/0#0"]["label"] == "spawn"


def test_characters_that_xml_forbids_are_replaced_and_counted():
    run = trace(event("0#0", content="c"), contents={"c": "bell\a"})
    output = graphml.export([run])
    assert "bell\ufffd" in output.files[""].decode()
    assert output.left_out["texts with characters that XML forbids, replaced"] == 1
    with pytest.raises(StrettoError, match="XML cannot hold the event id"):
        graphml.export([trace(event("0#\a"))])


def tables(*runs):
    polars = pytest.importorskip("polars")
    files = export(runs, "parquet").files
    return {name: polars.read_parquet(io.BytesIO(data)) for name, data in files.items()}


def test_parquet_by_hand():
    read = tables(sample(), trace(event("0#0", start=1.0), id="u"))
    assert {name: table.height for name, table in read.items()} == {
        "events": 9,
        "edges": 5,
        "agents": 4,
        "scores": 2,
        "traces": 2,
    }
    first, last = read["events"].row(0, named=True), read["events"].row(-1, named=True)
    assert (first["trace"], last["trace"]) == (0, 1)
    assert (first["input"], first["cache_read"], first["cache_write"]) == (10, 3, None)
    assert (first["text"], first["observed"]) == ("I plan.", "the task")
    assert json.loads(first["decision"])["chosen"] == 1
    assert (last["start"], last["duration"], last["trusted"]) == (1.0, None, None)
    assert read["traces"]["id"].to_list() == ["t", "u"]
    assert read["scores"]["event"].to_list() == [None, "0#0"]


@examples(20)
@given(traces(), traces())
def test_parquet_keeps_every_record(one, other):
    read = tables(one, other)
    for part in ("events", "edges", "agents", "scores"):
        assert read[part].height == len(getattr(one, part)) + len(getattr(other, part))
    assert read["events"]["start"].to_list() == [
        e.start for run in (one, other) for e in run.events
    ]


def test_the_survey_format_leaves_nothing_out():
    output = export([sample()], "survey")
    assert output.left_out == {}
    assert from_survey(output.files[""], "t") == sample()


def installed(name):
    """The exporter, if what it needs is installed."""
    try:
        return load_exporter(name)
    except StrettoError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", EXPORTERS)
def test_several_traces_go_into_one_file_or_one_each(name, tmp_path):
    exporter = installed(name)
    output = export([sample(), sample()], name)
    paths = write(output, tmp_path / f"run{exporter.SUFFIX}")
    assert all(path.stat().st_size and path.name.endswith(exporter.SUFFIX) for path in paths)
    assert len(paths) == (5 if name == "parquet" else 1 if exporter.ONE_FILE else 2)
    once, twice = export([sample()], name).left_out, output.left_out
    assert {what: 2 * count for what, count in once.items() if count} == {
        what: count for what, count in twice.items() if count
    }


@pytest.mark.parametrize("name", EXPORTERS)
def test_what_cannot_be_written_is_one_clear_error(name):
    installed(name)
    half = replace(
        sample(), contents={"x": "\ud800"}, events=(event("0#0", start=1.0, content="x"),)
    )
    half = replace(half, edges=(), scores=())
    if name not in ("survey", "graphml"):  # the one leaves texts out, the other replaces it
        with pytest.raises(StrettoError, match="half a character"):
            export([half], name)
    with pytest.raises(StrettoError, match=r'no agent "0"'):
        export([Trace(id="t", events=(event("0#0"),))], name)
    with pytest.raises(StrettoError, match="nothing to export"):
        export([], name)


def test_an_unknown_format_gets_a_suggestion():
    with pytest.raises(StrettoError, match='did you mean "perfetto"'):
        export([sample()], "perfeto")


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, EXPORTERS["parquet"], raising=False)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        StrettoError, match=r"polars is not installed \(pip install 'stretto\[polars\]'"
    ):
        load_exporter("parquet")
