"""Who&When: who spoke to whom, and at which step which agent went wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer

from .labelled import load, names, save, scores, survives, texts
from .transcripts import DATA, REAL, kinds

FOLDER = DATA / "who_and_when"
FILES = sorted(FOLDER.glob("*/*.json"))

MAGENTIC = {
    "history": [
        {"role": "human", "content": "How high?"},
        {"role": "Orchestrator (thought)", "content": "Plan"},
        {"role": "Orchestrator (-> WebSurfer)", "content": "Look it up"},
        {"role": "WebSurfer", "content": "8848"},
        {"role": "Orchestrator (-> FileSurfer)", "content": "Open it"},
        {"role": "Orchestrator (termination condition)", "content": "FINAL ANSWER: 1"},
    ],
    "question": "How high?",
    "question_ID": "q1",
    "ground_truth": "2",
    "is_corrected": False,
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "wrong page",
}
GROUP = {
    "history": [
        {"role": "assistant", "name": "Ann", "content": "You are given: (1) a task and ..."},
        {"role": "assistant", "name": "Ann", "content": "print(1)"},
        {"role": "user", "name": "Computer_terminal", "content": "exitcode: 0\n1"},
        {"role": "user", "name": "Computer_terminal", "content": "There is no code"},
        {"role": "user", "name": "Bob", "content": "It is 1"},
    ],
    "question": "?",
    "question_ID": "q2",
    "is_correct": True,
    "mistake_agent": "Bob",
    "mistake_step": "1",
    "mistake_reason": "r",
    "system_prompt": {"Ann": "You are Ann", "Bob": "You are Bob"},
}


def test_roles_say_who_speaks_to_whom(tmp_path):
    trace, report = load(tmp_path / "1.json", MAGENTIC)
    assert names(trace) == {"0": "Orchestrator", "1": "WebSurfer", "2": "FileSurfer"}
    events = [(e.id, e.kind, e.to, e.decision and e.decision.type) for e in trace.events]
    assert events == [
        ("0#0", "human", None, None),
        ("0#1", "decision", None, "act"),
        ("0#2", "decision", None, "communicate"),
        ("0#3", "message", "1", None),
        ("1#0", "decision", None, "communicate"),
        ("1#1", "message", "0", None),
        ("0#4", "decision", None, "communicate"),
        ("0#5", "message", "2", None),
        ("0#6", "decision", None, "stop"),
    ]
    edges = {(e.src, e.dst): (e.label, e.evidence) for e in trace.edges}
    assert edges[("0#3", "1#0")] == ("message", "recorded")
    assert edges[("1#1", "0#4")] == ("message", "derived")
    assert edges[("0#0", "0#1")] == ("causal", "derived")
    assert [agent.attrs for agent in trace.agents] == [{}, {"mistake": True}, {"transcript": False}]
    assert all(event.start is None for event in trace.events)
    assert (report.records, report.warnings) == (6, ())


def test_the_mistake_is_on_its_event_and_as_given_on_the_trace(tmp_path):
    trace, _ = load(tmp_path / "1.json", MAGENTIC)
    (event,) = [event for event in trace.events if event.attrs.get("mistake")]
    assert (event.id, event.attrs["mistake_reason"]) == ("1#0", "wrong page")
    assert event.attrs["step"] == 3
    given_as = {"mistake_agent": "WebSurfer", "mistake_step": "3", "mistake_agent_fits": True}
    assert given_as.items() <= trace.attrs.items()
    assert (trace.task, trace.id) == ("q1", "hand-crafted/q1")
    assert scores(trace) == {"correct": 0.0}


def test_a_group_chat_is_heard_by_all_and_its_executor_takes_no_turn(tmp_path):
    trace, _ = load(tmp_path / "1.json", GROUP)
    assert names(trace) == {"0": "Ann", "1": "Computer_terminal", "2": "Bob"}
    assert [(e.id, e.kind) for e in trace.events] == [
        ("0#0", "message"),
        ("0#1", "decision"),
        ("0#2", "message"),
        ("1#0", "tool_result"),
        ("1#1", "message"),
        ("2#0", "decision"),
    ]
    read_by_bob = {e.src for e in trace.edges if e.dst == "2#0"}
    assert read_by_bob == {"0#0", "0#2", "1#0", "1#1"}
    assert ("0#2", "1#0") in {(e.src, e.dst) for e in trace.edges if e.label == "tool_dependency"}
    prompts = [trace.text(agent.attrs.get("system_prompt")) for agent in trace.agents]
    assert prompts == ["You are Ann", None, "You are Bob"]
    assert scores(trace) == {"correct": 1.0}


def test_an_agent_that_did_not_speak_at_the_labelled_step_is_told(tmp_path):
    trace, report = load(tmp_path / "1.json", GROUP)
    assert trace.attrs["mistake_agent_fits"] is False
    assert trace.attrs["mistake_agent_at_step"] == "Ann"
    (event,) = [event for event in trace.events if event.attrs.get("mistake")]
    assert (event.id, event.attrs["mistake_agent"]) == ("0#1", "Bob")
    assert "step 1 is labelled a mistake of Bob, but Ann spoke then" in str(report.warnings[0])


@pytest.mark.parametrize("step", ["17", "", "-1", None, "x", 2.5, "9" * 400])
def test_a_step_outside_the_history_is_told_and_labels_nothing(tmp_path, step):
    trace, report = load(tmp_path / "1.json", MAGENTIC | {"mistake_step": step})
    assert not [event for event in trace.events if event.attrs.get("mistake")]
    assert "is not in the history" in report.warnings[0].what
    assert trace.attrs["mistake_agent"] == "WebSurfer"


def test_a_step_may_be_a_number(tmp_path):
    trace, _ = load(tmp_path / "1.json", MAGENTIC | {"mistake_step": 2})
    assert [e.id for e in trace.events if e.attrs.get("mistake")] == ["0#2"]


def test_an_unscored_run_has_no_score(tmp_path):
    document = {name: value for name, value in MAGENTIC.items() if name != "is_corrected"}
    assert load(tmp_path / "1.json", document)[0].scores == ()


def test_a_history_without_labels_comes_close_and_is_refused(tmp_path):
    with pytest.raises(StrettoError, match='a history without "mistake_agent"'):
        detect(save(tmp_path / "n.json", {"history": [], "question": "?", "mistake_step": "1"}))
    assert detect(save(tmp_path / "w.json", MAGENTIC)) == "who-and-when"
    assert not survives(tmp_path / "n.json", {"question": "?"}, "who-and-when")


ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([{}]))


@pytest.mark.parametrize("record", [MAGENTIC, GROUP])
def test_a_file_that_is_cut_in_its_history_tells_what_was_said(tmp_path, record):
    path = tmp_path / "1.json"
    text = json.dumps(record, indent=1)
    path.write_text(text[: text.index(record["history"][3]["content"])])
    imported = import_paths([path])
    assert detect(path) == "who-and-when"
    assert len(imported.traces[0].events) > 2
    assert "cut" in imported.report[0].warnings[0].what


@settings(max_examples=40, derandomize=True, deadline=None)
@given(field=st.sampled_from(sorted(MAGENTIC)), value=ODD, record=ODD, role=ODD)
def test_odd_values_are_read_or_refused(tmp_path_factory, field, value, record, role):
    history = [record, {"role": role, "content": value}, *MAGENTIC["history"]]
    document = MAGENTIC | {"history": history, field: value}
    survives(tmp_path_factory.mktemp("odd") / "1.json", document, "who-and-when")


@REAL
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_real_files_keep_every_entry_and_its_label(path):
    raw = json.loads(path.read_text())
    trace, report = load(path)
    steps = {e.attrs["step"]: e for e in trace.events if "step" in e.attrs}
    assert sorted(steps) == list(range(len(raw["history"])))  # one event an entry, none left out
    assert report.records == len(raw["history"])
    for step, entry in enumerate(raw["history"]):
        assert trace.text(steps[step].content) == (entry["content"] or None)
    (wrong,) = [event for event in trace.events if event.attrs.get("mistake")]
    assert wrong is steps[int(raw["mistake_step"])]
    assert trace.attrs["mistake_agent"] == raw["mistake_agent"]
    if trace.attrs["mistake_agent_fits"]:
        assert names(trace)[wrong.agent] == raw["mistake_agent"]
    right = raw.get("is_correct", raw.get("is_corrected"))
    assert scores(trace) == {"correct": float(right)}


@REAL
def test_facts_read_by_eye_in_the_real_files():
    trace, _ = load(FOLDER / "Hand-Crafted/6.json")
    # Entries 1, 2, 5, 6 are thoughts of the Orchestrator, 7 its end; 3 goes to WebSurfer.
    assert names(trace) == {"0": "Orchestrator", "1": "WebSurfer"}
    assert [(e.agent, e.to) for e in kinds(trace, "message")] == [("0", "1"), ("1", "0")]
    (wrong,) = [event for event in trace.events if event.attrs.get("mistake")]
    assert (wrong.agent, wrong.attrs["step"]) == ("0", 5)
    trace, _ = load(FOLDER / "Algorithm-Generated/81.json")
    assert sorted(names(trace).values()) == [
        "Computer_terminal",
        "DataVerification_Expert",
        "Fashion_Vogue_Expert",
        "Geography_Expert",
    ]
    assert [who for who, _ in texts(trace, "tool_result")] == ["Computer_terminal"]
    assert len(kinds(trace, "decision")) == 7  # nine entries, less the task and the terminal's


@REAL
def test_the_importer_conforms():
    check_importer("who-and-when", [FOLDER / "Hand-Crafted/6.json", FILES[0]])
