"""ChatDev 1.0: the two dialects of its log."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect, import_paths
from stretto.importers.chatdev.importer import import_files
from stretto.importers.conformance import check_importer
from stretto.trace import Tokens

from .labelled import names, scores
from .transcripts import DATA, REAL, arrows, kinds

FILE = DATA / "chatdev/1.0_log_small.log"

OLD = """[2023-25-07 15:46:12 INFO] AgentTech Starts (20230725154612)

[2023-25-07 15:46:12 INFO] args: Namespace(task="Make a site", name='web')

[2023-25-07 15:46:12 INFO] PhaseType: PhaseType.CODING

[2023-25-07 15:46:12 INFO] \x1b[32mAI Assistant (Programmer) sys message:
SystemMessage(role_name='Programmer', role='system', content='You code.')


[2023-25-07 15:46:12 INFO] \x1b[34mAI User (Chief) sys message:
SystemMessage(role_name='Chief', role='system', content='You lead.')


[2023-25-07 15:46:13 INFO] \x1b[34mAI User (Chief):

Write it.

[2023-25-07 15:46:17 INFO] [OpenAI_Usage_Info]
prompt_tokens: 40
completion_tokens: 5
total_tokens: 45


[2023-25-07 15:46:20 INFO] [OpenAI_Usage_Info]
prompt_tokens: 60
completion_tokens: 7
total_tokens: 67


[2023-25-07 15:46:20 INFO] \x1b[32m[0] AI Assistant (Chief):

<INFO> Python.

[2023-25-07 15:46:20 INFO] \x1b[31m[0] AI User (Chief) terminated the chat.

[2023-25-07 15:46:21 INFO] Software Info: version_updates: -1 num_doc_files: 3 duration: -1

[2023-25-07 15:46:21 INFO] AgentTech Ends (20230725154621)
"""
NEW = """[2023-06-10 15:43:00 INFO] **[Preprocessing]**

**ChatDev Starts** (20231006154300)

**task_prompt**: please design a maze game

**project_name**: maze

[2023-06-10 15:43:01 INFO] flask app.py did not start for online log
[2023-06-10 15:43:01 INFO] System: **[chatting]**

| Parameter | Value |
| --- | --- |
| **task_prompt** | please design a maze game |
| **assistant_role_name** | Programmer |
| **user_role_name** | Chief Technology Officer |
| **phase_name** | Coding |
| **model_type** | ModelType.GPT_3_5_TURBO |

[2023-06-10 15:43:02 INFO] Chief Technology Officer: **[Start Chat]**

[You are Programmer.
You code.]

Write the game.

[2023-06-10 15:43:04 INFO] flask app.py did not start for online log
[2023-06-10 15:43:12 INFO] HTTP Request: POST https://x "HTTP/1.1 200 OK"
[2023-06-10 15:43:12 INFO] **[OpenAI_Usage_Info Receive]**
prompt_tokens: 545
completion_tokens: 786
total_tokens: 1331
cost: $0.002390

[2023-06-10 15:43:14 INFO] Programmer: **Programmer<->Chief Technology Officer on : Coding, turn 0**

[You are Chief Technology Officer.]

main.py

[2023-06-10 15:43:14 INFO] **[Seminar Conclusion]**:

 main.py

[2023-06-10 15:43:15 INFO] **[Software Info]**:

\U0001f4b0**cost**=$0.002390

\U0001f528**version_updates**=1.0
"""


def read(path, text):
    path.write_text(text)
    imported = import_paths([path])
    (trace,), (report,) = imported.traces, imported.report
    return trace, report


def summary(trace):
    name = names(trace)
    return [
        (e.kind, name[e.agent], name.get(e.to), trace.text(e.content), e.start, e.duration)
        for e in trace.events
    ]


def test_the_newer_dialect(tmp_path):
    trace, report = read(tmp_path / "l.log", NEW)
    chief, coder = "Chief Technology Officer", "Programmer"
    assert summary(trace) == [
        ("message", chief, coder, "Write the game.", 0.0, None),
        ("decision", coder, None, "main.py", 0.0, 10.0),
        ("message", coder, chief, "main.py", 10.0, None),
    ]
    (turn,) = kinds(trace, "decision")
    assert (turn.tokens, turn.price) == (Tokens(input=545, output=786), 0.00239)
    assert turn.attrs == {"phase": "Coding", "turn": 0}
    assert (trace.id, trace.task) == ("maze_20231006154300", "please design a maze game")
    assert trace.attrs["started"] == "2023-10-06T15:43:02+00:00"  # the sixth of October
    assert trace.attrs["model"] == "ModelType.GPT_3_5_TURBO"
    assert trace.attrs["software_info"] == {"cost": 0.00239, "version_updates": 1.0}
    assert report.records == 10
    assert report.skipped == {
        "header": 1,
        "flask": 2,
        "phase": 1,
        "http": 1,
        "Seminar Conclusion": 1,
        "Software Info": 1,
    }


def test_the_older_dialect_and_a_call_whose_text_was_not_logged(tmp_path):
    trace, report = read(tmp_path / "l.log", OLD)
    assert summary(trace) == [
        ("message", "Chief", "Programmer", "Write it.", 0.0, None),
        ("decision", "Programmer", None, None, 0.0, 4.0),
        ("message", "Programmer", "Chief", None, 4.0, None),
        ("decision", "Chief", None, "<INFO> Python.", 4.0, 3.0),
        ("message", "Chief", "Programmer", "<INFO> Python.", 7.0, None),
    ]
    turns = kinds(trace, "decision")
    assert [turn.tokens.input for turn in turns] == [40, 60]
    assert [turn.attrs.get("logged") for turn in turns] == [False, None]
    assert len(arrows(trace, "message")) == 2
    prompts = {a.name: trace.text(a.attrs["system_prompt"]) for a in trace.agents}
    assert prompts == {"Programmer": "You code.", "Chief": "You lead."}
    assert (trace.id, trace.task) == ("web_20230725154612", "Make a site")
    assert trace.attrs["software_info"] == {"num_doc_files": 3.0}  # -1 stands for unknown
    assert trace.attrs["finished"] is True
    assert report.skipped == {
        "header": 3,
        "phase": 1,
        "sys message": 2,
        "terminated": 1,
        "Software Info": 1,
    }


def test_both_sides_of_a_talk_are_called_before_either_text_is_logged(tmp_path):
    second = """[2023-06-10 15:43:14 INFO] **[OpenAI_Usage_Info Receive]**
prompt_tokens: 600
completion_tokens: 7
cost: $0.001

[2023-06-10 15:43:14 INFO] Programmer: **"""
    answer = """[2023-06-10 15:43:14 INFO] Chief Technology Officer: **Programmer<->Chief \
Technology Officer on : Coding, turn 0**

[You are Programmer.]

Good.

[2023-06-10 15:43:14 INFO] **[Seminar Conclusion]**"""
    text = NEW.replace("[2023-06-10 15:43:14 INFO] Programmer: **", second)
    text = text.replace("[2023-06-10 15:43:14 INFO] **[Seminar Conclusion]**", answer)
    trace, _ = read(tmp_path / "l.log", text)
    turns = kinds(trace, "decision")
    name = names(trace)
    assert [(name[t.agent], t.tokens.input, t.start, t.duration, t.price) for t in turns] == [
        ("Programmer", 545, 0.0, 10.0, 0.00239),
        ("Chief Technology Officer", 600, 10.0, 2.0, 0.001),
    ]
    assert [trace.text(turn.content) for turn in turns] == ["main.py", "Good."]


def test_a_run_that_could_not_reach_its_model_has_an_error(tmp_path):
    start = NEW[: NEW.index("[2023-06-10 15:43:12")]
    failed = start + "[2023-06-10 15:43:16 INFO] error_code=insufficient_quota message='no'\n"
    trace, report = read(tmp_path / "l.log", failed)
    assert trace.attrs["error"] == "error_code=insufficient_quota message='no'"
    assert not kinds(trace, "decision") and scores(trace) == {}
    assert report.skipped["api error"] == 1
    again = failed + NEW[NEW.index("[2023-06-10 15:43:12") :]
    assert "error" not in read(tmp_path / "l.log", again)[0].attrs


def test_a_day_that_cannot_be_a_month_tells_the_order(tmp_path):
    other = NEW.replace("2023-06-10", "2023-10-26")
    assert read(tmp_path / "l.log", other)[0].attrs["started"].startswith("2023-10-26")


def test_a_log_that_was_cut_says_where(tmp_path):
    _, whole = read(tmp_path / "l.log", OLD)
    _, cut = read(tmp_path / "l.log", NEW.rstrip())
    assert not whole.warnings
    assert [str(notice) for notice in cut.warnings] == [
        f"{tmp_path}/l.log:{len(NEW.rstrip().splitlines())}: "
        "the log ends here, and does not say that the run did"
    ]


def test_other_logs_come_close_or_nowhere_near(tmp_path):
    path = tmp_path / "other.log"
    path.write_text("[2023-06-10 15:43:00 INFO] service is up\n")
    with pytest.raises(StrettoError, match="closest is chatdev: a log, but none of ChatDev"):
        detect(path)
    path.write_text("nothing")
    with pytest.raises(StrettoError, match="is not chatdev"):
        import_paths([path], "chatdev")
    with pytest.raises(StrettoError, match="holds no record"):
        import_files([path])


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    at=st.integers(0, len(NEW)),
    junk=st.text(alphabet="[]*:<>|()\n \x1b0123456789AI UserINFO-", max_size=30),
    text=st.sampled_from([OLD, NEW]),
)
def test_damaged_logs_are_read_or_refused(tmp_path_factory, at, junk, text):
    path = tmp_path_factory.mktemp("odd") / "l.log"
    path.write_text(text[:at] + junk + text[at + len(junk) :])
    import_paths([path], "chatdev")


@REAL
def test_a_real_log():
    raw = FILE.read_text()
    (trace,) = import_paths([FILE]).traces
    # By regular expressions of their own: every usage block is one call of a model.
    prompts = [int(count) for count in re.findall(r"^prompt_tokens: (\d+)", raw, re.MULTILINE)]
    outputs = [int(count) for count in re.findall(r"^completion_tokens: (\d+)", raw, re.MULTILINE)]
    turns = kinds(trace, "decision")
    assert [turn.tokens.input for turn in turns] == prompts
    assert sum(turn.tokens.output for turn in turns) == sum(outputs)
    logged = re.findall(r"\[\d+\] AI \w+ \(([^)]+)\):", raw)
    name = names(trace)
    assert [name[turn.agent] for turn in turns if "logged" not in turn.attrs] == logged
    assert len(turns) == len(logged) + 1 == 14
    assert set(name.values()) == {
        "Chief Executive Officer",
        "Chief Product Officer",
        "Chief Technology Officer",
        "Programmer",
        "Code Reviewer",
    }
    assert trace.attrs["started"] == "2023-07-25T15:46:12+00:00"
    phases = list(dict.fromkeys(turn.attrs["phase"] for turn in turns))
    assert phases[:3] == ["DEMAND_ANALYSIS", "CHOOSING_LANGUAGE", "CODING"]


@REAL
def test_the_importer_conforms():
    check_importer("chatdev", [FILE])
