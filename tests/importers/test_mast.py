"""MAST: runs of many systems, and the failure modes that were found in them."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.kit.heads import Head
from stretto.importers.mast import importer as mast

from .labelled import load, names, save, scores, survives, texts
from .test_chatdev import NEW
from .transcripts import DATA, REAL, arrows, kinds

FOLDER = DATA / "mast"
AG2 = FOLDER / "AG2/02da9c1f-7c36-5739-b723-33a7d4f8e7e7_human.json"
METAGPT = FOLDER / "metagpt/run_1.json"

CHAT = {
    "instance_id": "i1",
    "problem_statement": ["What is 1+1?"],
    "other_data": {"correct": True, "answer": "2"},
    "trajectory": [
        {"content": ["Solve:", "1+1"], "role": "assistant", "name": "mathproxyagent"},
        {"content": ["It is 2."], "role": "user", "name": "assistant"},
        {"content": ["Continue."], "role": "assistant", "name": "mathproxyagent"},
        {"content": ["Still 2."], "role": "user", "name": "assistant"},
    ],
    "note": {"text": ["fine"], "options": {"Step repetition": "yes", "Invented content": "no"}},
}
TABLE = (
    '"","instance_id","link","text","Step repetition","Invented content","Blurring role"\n'
    '"0","i1","http://x","said twice","yes","no","yes"\n'
    '"1","i2","http://y","with, comma","no","yes",""\n'
)
HYPER = [
    "HyperAgent_repo-1 - INFO - Initialized HyperAgent instance repo-1",
    "HyperAgent_repo-1 - INFO - Planner's Response: Thought: where is f?",
    "I ask the Navigator.",
    "HyperAgent_repo-1 - INFO - Inner-Navigator-Assistant's Response: Thought: search",
    "HyperAgent_repo-1 - INFO - Inner-Navigator-Assistant's Response: Final Answer: a.py",
    "HyperAgent_repo-1 - INFO - Navigator->Planner: a.py",
    "HyperAgent_repo-1 - INFO - Planner's Response: Done",
]


def mad(trace, **fields):
    told = {"mas_name": "X", "llm_name": "m", "benchmark_name": "b", "trace_id": 7}
    return told | {"trace": {"key": "k", "index": 7, "trajectory": trace}} | fields


def said(path, text):
    """The speakers and texts of one run that is written as text."""
    trace, report = load(path, [mad(text)])
    return trace, texts(trace, "decision", "tool_result", "human"), report


def test_a_chat_of_two_and_its_own_labels(tmp_path):
    trace, _ = load(tmp_path / "i1_human.json", CHAT)
    assert names(trace) == {"0": "mathproxyagent", "1": "assistant"}
    # The proxy calls no model, so it takes no turn.
    assert [(e.kind, e.agent, e.to) for e in trace.events] == [
        ("message", "0", "1"),
        ("decision", "1", None),
        ("message", "1", "0"),
        ("message", "0", "1"),
        ("decision", "1", None),
    ]
    assert trace.text(trace.events[0].content) == "Solve:\n1+1"
    assert arrows(trace, "message") == {("0#0", "1#0"), ("0#1", "1#2")}
    assert scores(trace) == {"correct": 1.0, "step_repetition": 1.0, "invented_content": 0.0}
    assert [s.kind for s in trace.scores] == ["reward", "metric", "metric"]
    assert (trace.id, trace.system) == ("i1", "ag2")


def test_labels_of_the_table_beside_it(tmp_path):
    path = save(tmp_path / "i1_human.json", CHAT | {"note": None})
    (tmp_path / "annotations.csv").write_text(TABLE)
    for paths in ([path], [tmp_path]):
        trace, *others = import_paths(paths).traces
        assert [other.id for other in others] == (["i2"] if paths == [tmp_path] else [])
        assert scores(trace) == {
            "correct": 1.0,
            "step_repetition": 1.0,
            "invented_content": 0.0,
            "blurring_role": 1.0,
        }
        assert trace.attrs["annotation"] == "said twice"


def test_labels_that_differ_are_told_and_the_file_s_own_hold(tmp_path):
    other = CHAT["note"] | {"options": {"Step repetition": "no"}}
    path = save(tmp_path / "i1_human.json", CHAT | {"note": other})
    (tmp_path / "annotations.csv").write_text(TABLE)
    imported = import_paths([path])
    assert scores(imported.traces[0])["step_repetition"] == 0.0
    assert "step_repetition" in imported.report[0].warnings[0].what


def test_a_folder_with_nothing_but_a_table_is_that_table(tmp_path):
    table = tmp_path / "labels" / "annotations.csv"
    table.parent.mkdir()
    table.write_text(TABLE)
    named = [trace.id for trace in import_paths([table]).traces]
    assert named
    assert [trace.id for trace in import_paths([table.parent]).traces] == named


def test_a_table_that_is_named_gives_the_runs_that_are_not_there(tmp_path):
    path = save(tmp_path / "i1_human.json", CHAT)
    table = tmp_path / "annotations.csv"
    table.write_text(TABLE)
    alone = import_paths([table]).traces
    assert [(t.id, t.attrs["transcript"], t.events) for t in alone] == [
        ("i1", False, ()),
        ("i2", False, ()),
    ]
    assert scores(alone[1]) == {"step_repetition": 0.0, "invented_content": 1.0}  # "" is unknown
    both = import_paths([table, path]).traces
    assert [(t.id, len(t.events)) for t in both] == [("i1", 5), ("i2", 0)]


TABLES = {
    "fewer cells": ('"2","i3","http://z","cut', 4),
    "after a cell": ('"2","i3","http://z"', 4),
    "an open quote in the last cell": ('"2","i3","u","t","yes","no","ye', 4),
    "an open quote over lines": ('"2","i3","u","t","yes","no","ye\n\n', 4),
    "an open quote in the first cell": ('"', 4),
    "an empty line before": ('\n"2","i3"\n', 5),
    "no id": ('"2","","u","t","yes","no","yes"\n', 4),
}


@pytest.mark.parametrize("end", TABLES)
def test_a_row_that_is_cut_is_left_out_and_told(tmp_path, end):
    torn, line = TABLES[end]
    path = save(tmp_path / "i1_human.json", CHAT)
    table = tmp_path / "annotations.csv"
    table.write_text(TABLE + torn)
    notice = (f"{table}:{line}", "is no whole row: left out")
    alone = import_paths([table])
    assert [trace.id for trace in alone.traces] == ["i1", "i2"]
    for imported in (alone, import_paths([path])):  # beside it, too
        told = [(n.where, n.what) for file in imported.report for n in file.warnings]
        assert told == [notice]
    both = import_paths([table, path]).report
    assert [(r.file, r.records, len(r.warnings)) for r in both] == [
        (str(path), 1, 0),
        (str(table), 2, 1),
    ]


@pytest.mark.parametrize("last", ['"yes"', '"yes\n"', "yes", '"a ""b"" c"', ""])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_last_row_that_is_whole_is_read(tmp_path, last, end):
    table = tmp_path / "annotations.csv"
    table.write_bytes(f'{TABLE}"2","i3","u","t","yes","no",{last}{end}'.encode())
    (report,) = import_paths([table]).report
    assert (report.records, report.warnings) == (3, ())


def test_tables_of_folders_are_listed_with_their_rows(tmp_path):
    files = []
    for folder in ("a", "b/c"):
        where = tmp_path / folder
        where.mkdir(parents=True)
        (where / "annotations.csv").write_text(TABLE)
        files += [save(where / "i1_human.json", CHAT), where / "annotations.csv"]
    groups = [set(group) for group in mast.sessions(files)]
    assert groups == [set(files[:2]), set(files[2:])]
    for group in groups:
        imported = mast.import_files(sorted(group))
        assert [(t.id, len(t.events)) for t in imported.traces] == [("i1", 5), ("i2", 0)]
        assert [(Path(r.file).name, r.records) for r in imported.report] == [
            ("i1_human.json", 1),
            ("annotations.csv", 2),
        ]


def test_a_table_labels_runs_one_folder_below_as_well(tmp_path):
    table = tmp_path / "annotations.csv"
    table.write_text(TABLE)
    (tmp_path / "runs").mkdir()
    run = save(tmp_path / "runs" / "i1_human.json", CHAT | {"note": None})
    (group,) = mast.sessions([run, table])
    assert set(group) == {run, table}
    imported = import_paths([tmp_path])
    assert [(r.file, r.records) for r in imported.report] == [(str(run), 1), (str(table), 2)]
    assert [(t.id, len(t.events)) for t in imported.traces] == [("i1", 5), ("i2", 0)]
    assert scores(imported.traces[0])["blurring_role"] == 1.0


def test_a_table_that_is_damaged_leaves_the_runs(tmp_path):
    table = tmp_path / "annotations.csv"
    table.write_text(TABLE + '"' + "x" * 200_000)
    imported = mast.import_files([table, save(tmp_path / "i1_human.json", CHAT)])
    assert [(t.id, len(t.events)) for t in imported.traces] == [("i1", 5)]
    assert [len(r.warnings) for r in imported.report] == [0, 1]
    with pytest.raises(StrettoError, match="is no table"):
        mast.import_files([table])


def test_a_file_without_a_run_does_not_hide_those_beside_it(tmp_path):
    bad = save(tmp_path / "bad.json", [1])
    table = tmp_path / "annotations.csv"
    table.write_text(TABLE)
    imported = mast.import_files([bad, save(tmp_path / "i1_human.json", CHAT), table])
    assert [(t.id, len(t.events)) for t in imported.traces] == [("i1", 5), ("i2", 0)]
    assert [n.what for n in imported.report[0].warnings] == ["not read: holds no run"]
    with pytest.raises(StrettoError, match="holds no run"):
        mast.import_files([bad])


def test_a_table_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "annotations.csv").write_text(TABLE + '"' + "x" * 200_000)
    imported = import_paths([save(tmp_path / "i1_human.json", CHAT)])
    assert "is no table: field larger" in imported.report[0].warnings[0].what


@pytest.mark.parametrize("field", ["problem_statement", "other_data", "trajectory", "note"])
def test_a_run_that_is_cut_is_known_by_what_is_left(tmp_path, field):
    text = json.dumps(CHAT)
    path = tmp_path / "i1.json"
    path.write_text(text[: text.index(f'"{field}"') + len(field) + 6])
    assert detect(path) == "mast"
    imported = import_paths([path])
    assert [trace.id for trace in imported.traces] == ["i1"]
    assert "cut" in imported.report[0].warnings[0].what


def test_an_instance_without_a_run_is_none_of_mast():
    instance = b'{"instance_id": "a__b-1", "problem_statement": "It fails.", "pat'
    assert mast.recognise(Head(instance)).score == 0


def test_lines_of_hyperagent(tmp_path):
    document = {"instance_id": "repo-1", "problem_statement": ["bug"], "trajectory": HYPER}
    trace, _ = load(tmp_path / "repo-1_human.json", document)
    assert (names(trace), trace.system) == ({"0": "Planner", "1": "Navigator"}, "hyperagent")
    assert [(e.kind, e.agent, e.to) for e in trace.events] == [
        ("decision", "0", None),
        ("message", "0", "1"),
        ("decision", "1", None),
        ("decision", "1", None),
        ("message", "1", "0"),
        ("decision", "0", None),
    ]
    assert texts(trace, "decision")[0] == ("Planner", "Thought: where is f?\nI ask the Navigator.")
    evidence = {(e.src, e.dst): e.evidence for e in trace.edges if e.label == "message"}
    assert evidence == {("0#1", "1#0"): "heuristic", ("1#2", "0#2"): "recorded"}


def test_metagpt_has_a_start_for_every_action_and_a_cost(tmp_path):
    content = (
        "2025-01-12 14:37:42.500 | INFO     | metagpt.roles.role:_act:391 - "
        "Alice(SimpleCoder): to do SimpleWriteCode(SimpleWriteCode)\nprint(1)\n"
        "2025-01-12 14:37:50.000 | INFO     | __main__:_act:85 - "
        "Bob(SimpleTester): to do SimpleWriteTest(SimpleWriteTest)\nassert 1\n"
    )
    document = {"run_id": 3, "prompt": "write 2048", "content": content, "cost": 0.25}
    trace, _ = load(tmp_path / "run_3.json", document)
    assert [(who, text) for who, text in texts(trace, "decision")] == [
        ("Alice", "print(1)"),
        ("Bob", "assert 1"),
    ]
    assert [e.start for e in kinds(trace, "decision")] == [0.0, 7.5]
    assert kinds(trace, "decision")[0].attrs == {
        "role": "SimpleCoder",
        "action": "SimpleWriteCode",
    }
    assert (trace.id, trace.task, scores(trace)) == ("metagpt/3", "write 2048", {"cost": 0.25})
    assert trace.attrs["started"] == "2025-01-12T14:37:42.500000+00:00"


def test_the_communication_log_of_metagpt(tmp_path):
    log = (
        "=== MetaGPT Agent Communication Log ===\n\n"
        "[2025-01-12 10:00:00] FROM: Human TO: {'<all>'}\nACTION: Requirement\nCONTENT:\n"
        "a game\n----------\n\n[2025-01-12 10:00:09] NEW MESSAGES:\n\nSimpleCoder:\ncode\n"
    )
    trace, entries, _ = said(tmp_path / "m.json", log)
    assert entries[0] == ("SimpleCoder", "a game\n----------")
    assert entries[1] == ("SimpleCoder", "code")
    assert [e.kind for e in trace.events] == ["human", "decision"]
    assert [e.start for e in trace.events] == [0.0, 9.0]


def test_ag2_on_a_console_says_who_hears_it(tmp_path):
    text = "user (to assistant):\n\n1+1?\n\n-----\nassistant (to user):\n\n2\n"
    trace, entries, _ = said(tmp_path / "m.json", text)
    assert [who for who, _ in entries] == ["user", "assistant"]
    assert len(arrows(trace, "message")) == 1


def test_appworld_and_magentic_one_on_a_console(tmp_path):
    app = (
        "Response from Supervisor Agent\nask spotify\n  Message to Spotify Agent\n  ask\n"
        "  Response from spotify Agent\n  songs\nCode Execution Output\nok\n"
    )
    _, entries, _ = said(tmp_path / "m.json", app)
    assert entries == [("Supervisor", "ask spotify"), ("Spotify", "songs"), ("Environment", "ok")]
    console = "---------- user ----------\nhi\n---------- WebSurfer ----------\nhello\n"
    trace, entries, _ = said(tmp_path / "n.json", console)
    assert [e.kind for e in trace.events] == ["human", "decision"]
    assert entries[1] == ("WebSurfer", "hello")


def test_a_log_of_chatdev_inside_is_read_as_such(tmp_path):
    trace, entries, _ = said(tmp_path / "m.json", NEW)
    assert entries == [("Programmer", "main.py")]
    assert (trace.id, trace.attrs["format"]) == ("X/b/m/7", "mast")
    assert kinds(trace, "decision")[0].tokens.output == 786


def test_a_plain_log_is_read_as_well(tmp_path):
    path = tmp_path / "repo-1.log"
    path.write_text("\n".join(HYPER))
    assert detect(path) == "mast"
    (trace,) = import_paths([path]).traces
    assert (trace.id, len(kinds(trace, "decision"))) == ("repo-1", 4)
    path.write_text("some words of nobody\n")
    with pytest.raises(StrettoError, match="no known format"):
        detect(path)


def test_text_without_speakers_is_kept_and_told(tmp_path):
    trace, _, report = said(tmp_path / "m.json", "just words")
    assert [(e.kind, trace.text(e.content)) for e in trace.events] == [("message", "just words")]
    assert "no header says who speaks" in report.warnings[0].what


def test_the_fourteen_modes_and_the_votes_of_people(tmp_path):
    record = mad("words", mast_annotation={"1.3": 1, "2.6": 0, "3.1": None, "9.9": 1})
    trace, _ = load(tmp_path / "a.json", [record])
    assert scores(trace) == {
        "step_repetition": 1.0,
        "reasoning_action_mismatch": 0.0,
        "mode_9_9": 1.0,
    }
    votes = {"annotator_1": True, "annotator_2": False, "annotator_3": True}
    mode = {"failure mode": "1.5 Unaware of stopping conditions\n\nlong", **votes}
    trace, _ = load(tmp_path / "b.json", [mad("words", annotations=[mode])])
    assert scores(trace) == {"unaware_of_stopping_conditions": 2 / 3}


def test_what_is_no_run_comes_close_or_is_refused(tmp_path):
    near = save(tmp_path / "n.json", {"instance_id": "x", "trajectory": []})
    with pytest.raises(StrettoError, match='closest is mast: a "trajectory" without'):
        detect(near)
    assert not survives(tmp_path / "n.json", [1, 2], "mast")


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just([1]), st.just({"a": 1})
)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(
    field=st.sampled_from([*sorted(CHAT), "mas_name", "trace", "cost", "mast_annotation"]),
    value=ODD,
    row=st.text(alphabet='",\nyesno i1\0', max_size=20),
)
def test_odd_values_are_read_or_refused(tmp_path_factory, field, value, row):
    folder = tmp_path_factory.mktemp("odd")
    (folder / "annotations.csv").write_text(TABLE + row)
    steps = [*CHAT["trajectory"], value, {"content": value, "name": value, "role": value}]
    survives(folder / "1.json", [CHAT | {"trajectory": steps} | {field: value}, value], "mast")
    survives(folder / "2.json", {**CHAT, "trajectory": [*HYPER, value]}, "mast")
    import_paths([folder / "annotations.csv"], "mast")


@REAL
def test_a_real_chat_and_its_row():
    raw = json.loads(AG2.read_text())
    trace, _ = load(AG2)
    told = [m["content"] for m in raw["trajectory"]]
    events = [e for e in trace.events if "step" in e.attrs]
    events.sort(key=lambda event: event.attrs["step"])
    assert [trace.text(e.content) for e in events] == ["\n".join(lines) for lines in told]
    assert len(kinds(trace, "decision")) == 5  # those of `assistant`
    with (AG2.parent / "annotations.csv").open() as file:
        (row,) = [r for r in csv.DictReader(file) if r["instance_id"] == raw["instance_id"]]
    # By eye: "Unaware of stopping conditions" and "Ignoring good suggestions" are yes, 20 are no.
    found = [channel for channel, value in scores(trace).items() if value == 1.0]
    assert found == [
        "correct",
        "unaware_of_stopping_conditions",
        "ignoring_good_suggestions_from_other_agent",
    ]
    assert len(trace.scores) == 1 + 22
    assert sum(value == "yes" for value in row.values()) == 2


@REAL
def test_real_tables():
    for name, labels in (("AG2", 22), ("HyperAgent", 13)):
        path = FOLDER / name / "annotations.csv"
        with path.open() as file:
            rows = list(csv.DictReader(file))
        traces = import_paths([path]).traces
        assert [t.id for t in traces] == [row["instance_id"] for row in rows]
        for trace, row in zip(traces, rows, strict=True):
            assert len(trace.scores) == labels
            assert sum(scores(trace).values()) == list(row.values()).count("yes")


@REAL
def test_a_real_run_of_metagpt():
    trace, _ = load(METAGPT)
    assert [who for who, _ in texts(trace, "decision")] == [
        "Alice",
        "Bob",
        "Charlie",
        "Bob",
        "Charlie",
    ]
    starts = [e.start for e in kinds(trace, "decision")]
    assert starts == pytest.approx([0.0, 22.82, 38.038, 42.099, 55.408])  # from 14:37:42.009
    assert scores(trace) == {"cost": 0.148}


@REAL
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.98])
def test_a_real_run_of_metagpt_that_is_cut(tmp_path, share):
    data = METAGPT.read_bytes()
    path = tmp_path / "run_1.json"
    path.write_bytes(data[: int(len(data) * share)])
    imported = import_paths([path])
    (trace,) = imported.traces
    assert (trace.id, trace.task) == ("metagpt/1", "write playable 2048 game")
    assert imported.report[0].warnings[0].where == f"{path}:4"


@REAL
def test_the_importer_conforms():
    check_importer("mast", [AG2, METAGPT, FOLDER / "HyperAgent/annotations.csv"])
