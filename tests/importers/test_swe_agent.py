"""SWE-agent: steps with their seconds; mini-SWE-agent: messages with actions in them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.errors import StrettoError
from stretto.importers import detect
from stretto.importers.conformance import check_importer
from stretto.trace import Tokens

from .labelled import load, save, scores, survives, texts
from .transcripts import DATA, REAL, arrows, kinds

FILE = DATA / "swe_agent/marshmallow-1867.function_calling.traj"


def step(action, observation, **fields):
    told = {"response": f"I {action}", "thought": f"I {action}", "state": {"open_file": "n/a"}}
    return {"action": action, "observation": observation} | told | fields


TRAJ = {
    "environment": "main",
    "trajectory": [
        step("ls -a", "x.py", execution_time=0.25, query=[{"role": "user"}]),
        step("submit", "", execution_time=2.0, thought="now I submit"),
    ],
    "history": [
        {"role": "system", "content": "rules", "agent": "main"},
        {"role": "user", "content": "a demo", "is_demo": True},
        {"role": "assistant", "content": "demo turn", "is_demo": True},
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "I ls -a"},
        {"role": "user", "content": "x.py"},
    ],
    "info": {
        "exit_status": "submitted",
        "submission": "diff --git",
        "model_stats": {"instance_cost": 0.5, "tokens_sent": 9, "api_calls": 2},
        "swe_agent_version": "1.1.0",
    },
    "replay_config": {
        "agent": {"model": {"name": "gpt-4o"}},
        "problem_statement": {"id": "repo__1"},
    },
}
SYSTEM = {"role": "system", "content": "One bash block."}
TASK = {"role": "user", "content": "Please solve"}
LOOK = {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls\n```"}
SEEN = {"role": "user", "content": "<returncode>0</returncode>\n<output>\na\n</output>"}
DONE = {"role": "assistant", "content": "```bash\necho COMPLETE_TASK\n```"}
MINI = [SYSTEM, TASK, LOOK, SEEN, DONE, {"role": "user", "content": ""}]


def test_a_step_is_a_turn_a_call_and_a_result_with_its_seconds(tmp_path):
    trace, report = load(tmp_path / "r.traj", TRAJ)
    assert [(e.id, e.kind, e.tool, e.duration) for e in trace.events] == [
        ("0#0", "human", None, None),
        ("0#1", "human", None, None),
        ("0#2", "decision", None, None),
        ("0#3", "tool_call", "ls", 0.25),
        ("0#4", "tool_result", "ls", None),
        ("0#5", "decision", None, None),
        ("0#6", "tool_call", "submit", 2.0),
        ("0#7", "tool_result", "submit", None),
    ]
    assert [trace.text(e.content) for e in trace.events[:4]] == [
        "a demo",
        "fix it",
        "I ls -a",
        "ls -a",
    ]
    assert [e.attrs for e in kinds(trace, "human")] == [{"demonstration": True}, {}]
    assert [e.attrs.get("thought") for e in kinds(trace, "decision")] == [None, "now I submit"]
    assert kinds(trace, "decision")[0].attrs["state"] == {"open_file": "n/a"}
    assert arrows(trace, "tool_dependency") == {("0#3", "0#4"), ("0#4", "0#5"), ("0#6", "0#7")}
    assert (report.records, report.skipped) == (2, {"history": 6, "query": 1})


def test_the_run_as_a_whole(tmp_path):
    trace, _ = load(tmp_path / "r.traj", TRAJ)
    assert (trace.id, trace.task, trace.system) == ("repo__1", "repo__1", "swe-agent 1.1.0")
    assert scores(trace) == {"instance_cost": 0.5}
    assert trace.scores[0].kind == "cost"
    assert trace.attrs["exit_status"] == "submitted" and "error" not in trace.attrs
    assert trace.text(trace.attrs["submission"]) == "diff --git"
    assert trace.attrs["model_stats"]["tokens_sent"] == 9
    (agent,) = trace.agents
    assert (agent.model, trace.text(agent.attrs["system_prompt"])) == ("gpt-4o", "rules")


def test_newer_files_keep_their_configuration_as_text(tmp_path):
    text = TRAJ | {"replay_config": json.dumps(TRAJ["replay_config"])}
    assert load(tmp_path / "r.traj", text)[0].agents[0].model == "gpt-4o"
    none = TRAJ | {"replay_config": None}
    trace, _ = load(tmp_path / "repo__2.traj", none)
    assert (trace.id, trace.agents[0].model) == ("repo__2", None)


@pytest.mark.parametrize(
    ("status", "broken"),
    [
        ("submitted", False),
        ("exit_cost", False),
        ("exit_environment_error", True),
        ("exit_api", True),
        ("submitted (exit_error)", True),
    ],
)
def test_an_end_that_the_surroundings_forced_is_an_error(tmp_path, status, broken):
    trace, _ = load(tmp_path / "r.traj", TRAJ | {"info": {"exit_status": status}})
    assert trace.attrs.get("error") == (status if broken else None)


def test_an_old_file_without_seconds_or_a_last_action(tmp_path):
    steps = [step("ls", "x"), step("", "")]
    trace, _ = load(tmp_path / "r.traj", TRAJ | {"trajectory": steps})
    assert [e.duration for e in kinds(trace, "tool_call")] == [None]
    assert [e.decision.type for e in kinds(trace, "decision")] == ["act", "stop"]


def test_a_bare_list_of_messages(tmp_path):
    trace, report = load(tmp_path / "x.traj.json", MINI)
    assert [(e.kind, e.tool) for e in trace.events] == [
        ("human", None),
        ("decision", None),
        ("tool_call", "bash"),
        ("tool_result", "bash"),
        ("decision", None),
        ("tool_call", "bash"),
        ("tool_result", "bash"),
    ]
    assert [trace.text(e.content) for e in kinds(trace, "tool_call")] == [
        "ls",
        "echo COMPLETE_TASK",
    ]
    assert all(event.start is None and event.tokens is None for event in trace.events)
    assert (trace.id, trace.system, report.records) == ("x", "mini-swe-agent", 6)


def test_a_run_in_which_models_take_turns_names_them(tmp_path):
    """mini-SWE-agent's `roulette` picks a model for every turn."""
    one, two = (LOOK | {"model_name": name} for name in ("gpt-5", "roulette"))
    info = {"config": {"model": {"model_name": "roulette"}}, "mini_version": "1.9"}
    document = {"info": info, "messages": [SYSTEM, TASK, one, SEEN, two, SEEN, LOOK]}
    trace, _ = load(tmp_path / "x.traj.json", document)
    assert trace.agents[0].model == "roulette"
    assert [e.attrs.get("model") for e in kinds(trace, "decision")] == ["gpt-5", None, None]


def test_commands_in_tags_are_actions_as_those_in_fences_are(tmp_path):
    tagged = LOOK | {"content": "look\n<mswea_bash_command>ls -a</mswea_bash_command>"}
    trace, _ = load(tmp_path / "x.traj.json", [SYSTEM, TASK, tagged, SEEN, DONE])
    calls = kinds(trace, "tool_call")
    assert [trace.text(call.content) for call in calls] == ["ls -a", "echo COMPLETE_TASK"]


def test_the_first_form_with_info(tmp_path):
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    extra = {"extra": {"response": {"usage": usage}}}
    document = {
        "info": {
            "exit_status": "Submitted",
            "submission": "diff",
            "mini_version": "1.17.2",
            "model_stats": {"instance_cost": 0.25, "api_calls": 2},
            "config": {"model": {"model_name": "gpt-5"}},
        },
        "messages": [SYSTEM, TASK, LOOK | extra, SEEN],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "repo__3",
    }
    trace, _ = load(tmp_path / "x.traj.json", document)
    (turn,) = kinds(trace, "decision")
    assert turn.tokens == Tokens(input=6, output=3, cache_read=4)
    assert (trace.id, trace.system) == ("repo__3", "mini-swe-agent 1.17.2")
    assert (trace.agents[0].model, scores(trace)) == ("gpt-5", {"instance_cost": 0.25})
    assert trace.text(trace.attrs["submission"]) == "diff"


def test_the_second_form_has_times_tool_calls_and_prices(tmp_path):
    def at(second, **fields):
        return {"extra": {"timestamp": 1000.0 + second} | fields}

    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    ask = {"role": "assistant", "content": None, "tool_calls": [call]}
    actions = [{"command": "ls", "tool_call_id": "c1"}]
    document = {
        "info": {"mini_version": "2.0.0", "exit_status": "Submitted"},
        "messages": [
            SYSTEM | at(0),
            TASK | at(0),
            ask | at(3, cost=0.5, actions=actions),
            {"role": "tool", "tool_call_id": "c1", "content": "a"} | at(5, returncode=0),
            {"role": "exit", "content": "diff"} | at(6),
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }
    trace, report = load(tmp_path / "x.traj.json", document)
    timed = [(e.kind, e.start, e.duration) for e in trace.events]
    assert timed == [
        ("human", 0.0, None),
        ("decision", 0.0, 3.0),
        ("tool_call", 3.0, None),
        ("tool_result", 5.0, None),
    ]
    assert kinds(trace, "decision")[0].price == 0.5
    assert kinds(trace, "tool_result")[0].attrs == {"returncode": 0}
    assert trace.attrs["started"] == "1970-01-01T00:16:40+00:00"
    assert report.skipped == {"message": 1}


def test_other_lists_of_messages_are_not_taken(tmp_path):
    chat = [SYSTEM, TASK, {"role": "assistant", "content": "hello"}, SEEN]
    for document in (chat, {"messages": MINI}, [LOOK, SEEN], {"trajectory": ["text"]}):
        with pytest.raises(StrettoError, match="no known format"):
            detect(save(tmp_path / "x.json", document))


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just([1]), st.just({"a": 1})
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    field=st.sampled_from(sorted(TRAJ)),
    key=st.sampled_from(["action", "observation", "response", "thought", "execution_time"]),
    said=st.sampled_from(["role", "content", "tool_calls", "extra"]),
    value=ODD,
)
def test_odd_values_are_read_or_refused(tmp_path_factory, field, key, said, value):
    folder = tmp_path_factory.mktemp("odd")
    steps = [step("ls", "x"), step("ls", "x") | {key: value}, value]
    survives(folder / "1.traj", TRAJ | {"trajectory": steps, field: value}, "swe-agent")
    mini = [SYSTEM, TASK, LOOK, SEEN | {said: value}, LOOK | {said: value}, value]
    survives(folder / "2.traj", mini, "swe-agent")


@REAL
def test_a_real_file():
    raw = json.loads(FILE.read_text())
    trace, report = load(FILE)
    steps = raw["trajectory"]
    calls = kinds(trace, "tool_call")
    assert [e.duration for e in calls] == [step["execution_time"] for step in steps]
    assert [trace.text(e.content) for e in calls] == [step["action"] for step in steps]
    assert [text for _, text in texts(trace, "tool_result")] == [
        step["observation"] or None for step in steps
    ]
    assert len(kinds(trace, "decision")) == len(steps) == raw["info"]["model_stats"]["api_calls"]
    assert (trace.id, trace.agents[0].model) == ("marshmallow-code__marshmallow-1867", "gpt-4o")
    assert trace.attrs["exit_status"] == "submitted"
    assert scores(trace) == {"instance_cost": 0.0}
    assert report.records == 11


@REAL
def test_the_importer_conforms():
    check_importer("swe-agent", [FILE])
