"""ATIF: turns of steps, references by version, files of one run joined, the way back."""

import json

import pytest
from hypothesis import given, settings

from stretto.errors import StrettoError
from stretto.exporters import export
from stretto.importers import detect, import_paths, plan
from stretto.importers.conformance import check_importer
from stretto.importers.run import import_paths as run

from .labelled import load, names, save, scores
from .oddities import fares_well, odd
from .transcripts import DATA, REAL, arrows, kinds

PHOENIX = DATA / "atif/phoenix_subagent_trajectories_v1.6.json"
OPENHANDS = DATA / "atif/openhands_hello-world.trajectory.json"
OTHERS = [
    DATA / "inspect/gen",
    DATA / "claude_code/irrlicht_subagent-spawn",
    DATA / "claude_code_teams/cybervpn_phase6",
    OPENHANDS,
    PHOENIX,
]


def step(number, source, message, **fields):
    stamp = f"2026-01-01T00:00:{number:02d}Z"
    return {"step_id": number, "timestamp": stamp, "source": source, "message": message, **fields}


def call(use, name, **arguments):
    return {"tool_call_id": use, "function_name": name, "arguments": arguments}


def result(use, content, *references):
    found = {"source_call_id": use, "content": content}
    return {**found, "subagent_trajectory_ref": list(references)} if references else found


def trajectory(version, name, *steps, **fields):
    agent = {"name": name, "version": "1", "model_name": "m"}
    return {"schema_version": f"ATIF-v{version}", "agent": agent, "steps": list(steps), **fields}


def parent(version, reference, **fields):
    asks = {"tool_calls": [call("c1", "task", do="it"), call("c2", "ls")]}
    came = {"observation": {"results": [result("c1", "did", reference), result("c2", "files")]}}
    metrics = {
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 3,
        "cost_usd": 0.5,
        "completion_token_ids": [7, 8],
        "logprobs": [-0.1, 0.0],
    }
    return trajectory(
        version,
        "lead",
        step(1, "user", "please"),
        step(2, "agent", "I delegate", **asks, **came, metrics=metrics),
        step(9, "agent", "done"),
        session_id="P",
        **fields,
    )


def child(version, **fields):
    return trajectory(
        version,
        "helper",
        step(3, "user", "please", is_copied_context=True),
        step(4, "user", "do it"),
        step(5, "agent", "did"),
        **fields,
    )


JOINED = {
    "by session": ("1.5", {"session_id": "C"}, {"session_id": "C"}),
    "by path": ("1.7", {"trajectory_path": "sub/child.json"}, {"session_id": "P"}),
    "by id": ("1.7", {"trajectory_id": "t2"}, {"trajectory_id": "t2"}),
}


def check_joined(trace):
    assert names(trace) == {"0": "lead", "0/0": "helper"}
    assert trace.agents[1].parent == "0"
    assert trace.agents[1].attrs["prompt"] == "do it"
    (spawn,), (back,) = kinds(trace, "spawn"), kinds(trace, "return")
    assert (spawn.agent, spawn.to, trace.text(spawn.content)) == ("0", "0/0", '{"do":"it"}')
    assert (back.agent, back.to, trace.text(back.content)) == ("0/0", "0", "did")
    first, last = kinds(trace, "decision")[1], kinds(trace, "decision")[-1]
    assert (first.agent, last.agent) == ("0/0", "0")
    assert {(spawn.id, first.id), (back.id, last.id)} <= arrows(trace)
    assert [e.decision.type for e in kinds(trace, "decision")] == ["spawn", "stop", "stop"]
    assert [e.tool for e in kinds(trace, "tool_call", "tool_result")] == ["ls", "ls"]


@pytest.mark.parametrize("way", JOINED)
def test_files_of_one_run_are_joined(tmp_path, way):
    version, reference, own = JOINED[way]
    save(tmp_path / "sub/child.json", child(version, **own))
    save(tmp_path / "parent.json", parent(version, reference))
    assert len(plan([tmp_path]).sessions) == 1
    imported = import_paths([tmp_path])
    (trace,) = imported.traces
    check_joined(trace)
    assert sum(report.duplicates for report in imported.report) == 1


def test_embedded_trajectories_are_found_by_id_whatever_the_session(tmp_path):
    inside = child("1.7", trajectory_id="t2", session_id="P")
    reference = {"trajectory_id": "t2", "session_id": "P"}
    document = parent("1.7", reference, subagent_trajectories=[inside])
    check_joined(load(tmp_path / "a.json", document)[0])


def test_a_session_id_is_no_reference_from_1_7_on(tmp_path):
    save(tmp_path / "a.json", [parent("1.7", {"session_id": "C"}), child("1.7", session_id="C")])
    imported = import_paths([tmp_path / "a.json"])
    lead, other = imported.traces
    assert [a.attrs.get("transcript") for a in lead.agents] == [None, False]
    assert lead.agents[1].attrs["agent_id"] == "C"
    assert [a.name for a in other.agents] == ["helper"]
    assert imported.report[0].unpaired == 1
    assert [e.kind for e in lead.events].count("return") == 0


def test_tokens_ids_and_prices(tmp_path):
    trace, _ = load(tmp_path / "a.json", parent("1.7", {"trajectory_id": "x"}))
    turn = kinds(trace, "decision")[0]
    assert (turn.tokens.input, turn.tokens.cache_read, turn.tokens.output) == (6, 4, 3)
    assert turn.price == 0.5
    assert turn.decision.completion_ids == (7, 8)
    assert turn.decision.completion_logprobs == (-0.1, 0.0)
    assert (turn.start, turn.duration) == (1.0, None)


def test_a_continuation_is_the_same_agent_and_its_copies_are_left_out(tmp_path):
    first = trajectory("1.5", "a", step(1, "user", "go"), step(2, "agent", "one"))
    save(tmp_path / "1.json", first | {"continued_trajectory_ref": "2.json", "session_id": "s"})
    copied = step(1, "agent", "one", is_copied_context=True)
    save(tmp_path / "2.json", trajectory("1.5", "a", copied, step(3, "agent", "two")))
    (trace,) = import_paths([tmp_path]).traces
    assert len(trace.agents) == 1
    assert [trace.text(e.content) for e in kinds(trace, "decision")] == ["one", "two"]


def test_a_continuation_by_another_model_says_so_at_its_turns(tmp_path):
    """The agent began with `m`; a step may name a model of its own."""
    first = trajectory("1.5", "a", step(1, "user", "go"), step(2, "agent", "one"))
    save(tmp_path / "1.json", first | {"continued_trajectory_ref": "2.json", "session_id": "s"})
    own = step(4, "agent", "three", model_name="o")
    after = trajectory("1.5", "a", step(3, "agent", "two"), own)
    after["agent"] = after["agent"] | {"model_name": "n"}
    save(tmp_path / "2.json", after)
    (trace,) = import_paths([tmp_path]).traces
    assert trace.agents[0].model == "m"
    assert [e.attrs.get("model") for e in kinds(trace, "decision")] == [None, "n", "o"]


def test_trials_beside_each_other_are_runs_of_their_own(tmp_path):
    """Their files have the same names, and paths of the container in which they were written."""
    for trial in ("x", "y"):
        first = trajectory("1.6", "a", step(1, "agent", "one"), session_id="s")
        first["continued_trajectory_ref"] = "/logs/agent/trajectory.cont-1.json"
        save(tmp_path / trial / "trajectory.json", first)
        after = trajectory("1.6", "a", step(2, "agent", "two"), session_id="s")
        save(tmp_path / trial / "trajectory.cont-1.json", after)
    traces = import_paths([tmp_path]).traces
    assert [len(kinds(trace, "decision")) for trace in traces] == [2, 2]


def test_a_result_without_a_name_answers_the_only_call(tmp_path):
    asks = {"tool_calls": [call("c", "ls")], "observation": {"results": [{"content": "files"}]}}
    trace, _ = load(tmp_path / "a.json", trajectory("1.2", "a", step(1, "agent", "x", **asks)))
    assert len(arrows(trace, "tool_dependency")) == 1


def test_a_step_without_a_model_call_is_no_turn(tmp_path):
    dispatch = step(2, "agent", "", llm_call_count=0, tool_calls=[call("c", "ls")])
    trace, _ = load(tmp_path / "a.json", trajectory("1.7", "a", step(1, "user", "go"), dispatch))
    assert [event.kind for event in trace.events] == ["human", "tool_call"]


def test_final_costs_are_a_score(tmp_path):
    document = trajectory("1.0", "a", step(1, "agent", "x"), final_metrics={"total_cost_usd": 0.25})
    assert scores(load(tmp_path / "a.json", document)[0]) == {"cost_usd": 0.25}


def test_references_that_turn_in_circles_end(tmp_path):
    save(tmp_path / "a.json", parent("1.5", {"session_id": "Q"}))
    save(tmp_path / "b.json", parent("1.5", {"session_id": "P"}) | {"session_id": "Q"})
    (trace,) = import_paths([tmp_path]).traces
    assert len(trace.agents) == 2


def test_a_newer_version_is_read_with_a_warning(tmp_path):
    _, report = load(tmp_path / "a.json", trajectory("1.9", "a", step(1, "agent", "x")))
    assert "versions to 1.8 are known" in str(report.warnings[0])


def test_near_misses_say_why(tmp_path):
    path = save(tmp_path / "a.json", {"steps": [step(1, "user", "x")]})
    with pytest.raises(StrettoError, match='closest is atif: no "schema_version"'):
        detect(path)


def there_and_back(trace, folder):
    path = folder / "back.json"
    path.write_bytes(export([trace], "atif").files[""])
    (back,) = run([path], "atif").traces
    return back


def test_what_stretto_wrote_comes_back(tmp_path):
    trace, _ = load(tmp_path / "a.json", parent("1.7", {"trajectory_id": "x"}))
    assert there_and_back(trace, tmp_path) == trace


def test_a_thought_comes_back_as_one(tmp_path):
    document = trajectory("1.7", "a", step(1, "agent", "x", reasoning_content="hmm"))
    trace, _ = load(tmp_path / "a.json", document)
    assert trace.text(trace.events[0].attrs["thinking"]) == "hmm"


def test_an_export_that_others_went_on_with_is_read_like_any_file_and_says_so(tmp_path):
    trace, _ = load(tmp_path / "a.json", parent("1.7", {"trajectory_id": "x"}))
    document = json.loads(export([trace], "atif").files[""])
    document["steps"].append(step(9, "agent", "one more"))
    again, report = load(tmp_path / "b.json", document)
    assert [trace.text(e.content) for e in kinds(trace, "decision")] == ["I delegate", "done"]
    assert again.text(kinds(again, "decision")[-1].content) == "one more"
    assert "cut or changed" in report.warnings[0].what


@REAL
@pytest.mark.parametrize("source", OTHERS, ids=lambda path: path.name)
def test_real_traces_of_other_formats_come_back(tmp_path, source):
    for trace in import_paths([source]).traces:
        assert there_and_back(trace, tmp_path) == trace


@given(odd(parent("1.7", {"trajectory_id": "t"}, subagent_trajectories=[child("1.7")])))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_odd_fields_never_break_it(tmp_path_factory, document):
    fares_well(save(tmp_path_factory.mktemp("odd") / "s.json", document), "atif")


def test_it_keeps_the_rules(tmp_path):
    save(tmp_path / "run/child.json", child("1.5", session_id="C"))
    save(tmp_path / "run/parent.json", parent("1.5", {"session_id": "C"}))
    lines = "\n".join(json.dumps(child("1.7")) for _ in range(3))
    (tmp_path / "lines.jsonl").write_text(lines + "\n")
    (trace,) = import_paths([tmp_path / "run"]).traces
    (tmp_path / "ours.json").write_bytes(export([trace], "atif").files[""])
    check_importer("atif", [tmp_path / "run", tmp_path / "lines.jsonl", tmp_path / "ours.json"])


@REAL
def test_a_real_run_with_a_sub_agent():
    """Counted by hand: 2 + 1 agent steps; 2,600 prompt tokens; 1 copied step."""
    (trace,) = import_paths([PHOENIX]).traces
    assert names(trace) == {"0": "orchestrator", "0/0": "summarizer"}
    turns = kinds(trace, "decision")
    assert [turn.tokens.input for turn in turns] == [800, 600, 1200]
    assert [turn.start for turn in turns] == [2.0, 6.0, 10.0]
    assert len(kinds(trace, "spawn")) == len(kinds(trace, "return")) == 1
    check_importer("atif", [PHOENIX])


@REAL
def test_a_real_run_of_one_agent():
    """Counted by hand: 2 agent steps with one call each, of which one has a result."""
    (trace,) = import_paths([OPENHANDS]).traces
    assert [len(kinds(trace, k)) for k in ("decision", "tool_call", "tool_result")] == [2, 2, 1]
    assert scores(trace) == {"cost_usd": 0.00135}
    assert sum(turn.price for turn in kinds(trace, "decision")) == pytest.approx(0.00135)
    check_importer("atif", [OPENHANDS])
