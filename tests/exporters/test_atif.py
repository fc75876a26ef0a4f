"""ATIF 1.7: steps, calls and observations of each agent, sub-agents inside their parents.

The rules of the format are those of Harbor's own models (`harbor.models.trajectories`), written out
here because Harbor needs a newer Python.
"""

import json

import pytest
from hypothesis import given

from stretto.errors import StrettoError
from stretto.exporters import atif
from stretto.exporters.atif_restore import from_stretto_extra
from stretto.trace import Agent, Tokens, Trace, content_hash

from ..examples import event, trace
from ..strategies import examples, traces
from .sample import sample

AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")


def exported(run):
    return json.loads(atif.export([run]).files[""])


def check(trajectory):
    """The rules that ATIF 1.7 has for a trajectory, and for those inside it."""
    assert trajectory["schema_version"] == "ATIF-v1.7"
    assert trajectory["agent"].keys() >= {"name", "version"}
    steps = trajectory["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1)) != []
    inside = [each["trajectory_id"] for each in trajectory.get("subagent_trajectories", [])]
    assert len(set(inside)) == len(inside)
    for step in steps:
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        assert step["source"] == "agent" or not any(name in step for name in AGENT_ONLY)
        assert step.get("llm_call_count") != 0 or "metrics" not in step
        calls = [call["tool_call_id"] for call in step.get("tool_calls", [])]
        for result in step.get("observation", {"results": []})["results"]:
            assert result.get("source_call_id") in [None, *calls]
            for reference in result.get("subagent_trajectory_ref", []):
                assert reference["trajectory_id"] in inside
    for each in trajectory.get("subagent_trajectories", []):
        check(each)


def all_inside(trajectory):
    """Ids of a trajectory and all inside it."""
    inside = trajectory.get("subagent_trajectories", [])
    return [trajectory["trajectory_id"], *(name for each in inside for name in all_inside(each))]


@examples(40)
@given(traces())
def test_any_trace_follows_the_rules_and_no_event_is_lost(run):
    written = exported(run)
    check(written)
    assert sorted(all_inside(written)) == sorted(agent.id for agent in run.agents)
    text = json.dumps(written)
    assert all(f'"id": {json.dumps(each.id)}, "kind":' in text for each in run.events)


def test_the_lead_by_hand():
    written = exported(sample(attrs={"started": "2026-01-01T00:00:00+00:00"}))
    (step,) = written["steps"]
    assert (step["source"], step["message"], step["llm_call_count"]) == ("agent", "I plan.", 1)
    assert step["timestamp"] == "2026-01-01T00:00:00+00:00"
    counts = {"prompt_tokens": 13, "completion_tokens": 5, "cached_tokens": 3, "cost_usd": 0.5}
    assert step["metrics"] == counts
    assert step["extra"]["observed"] == "the task"
    first, second = step["tool_calls"]
    assert (first["tool_call_id"], first["function_name"]) == ("0#1", "spawn")
    assert first["arguments"] == {"to": "0/0", "message": "look here"}
    answered, silent = step["observation"]["results"]
    assert answered["content"] == "the answer"
    assert [ref["trajectory_id"] for ref in answered["subagent_trajectory_ref"]] == ["0/0"]
    assert "content" not in silent
    assert second["tool_call_id"] == silent["source_call_id"] == "0#2"


def test_a_worker_by_hand():
    worker = exported(sample())["subagent_trajectories"][0]
    assert worker["agent"]["name"] == "ann"
    told, acted = worker["steps"]
    assert (told["source"], told["message"]) == ("user", "look here")
    assert acted["llm_call_count"] == 0  # its calls come before any turn
    assert [call["arguments"] for call in acted["tool_calls"]] == [
        {"q": 1},
        {},
        {"to": "0", "message": "the answer"},
    ]
    (result,) = acted["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("0/0#0", "found")
    assert "timestamp" not in acted  # the trace does not say when it started


def test_tokens_that_the_source_gets_wrong_are_left_to_extra():
    tokens = Tokens(input=1, output=2, cache_read=4, unreliable=("output", "cache_read"))
    (step,) = exported(trace(event("0#0", tokens=tokens)))["steps"]
    assert "metrics" not in step
    assert step["extra"]["stretto"]["tokens"]["output"] == 2


def test_agents_side_by_side_are_said_in_the_notes():
    written = exported(trace(event("a#0"), event("b#0")))
    assert all_inside(written) == ["a", "b"]
    assert "1 of the sub-agents have no parent" in written["notes"]


@examples(40)
@given(traces())
def test_any_trace_is_there_again_to_the_last_bit(run):
    assert atif.export([run]).left_out == {}
    assert from_stretto_extra(exported(run)) == run


def test_what_a_turn_thought_and_the_system_prompt_are_there_for_every_reader():
    thought, prompt = "Hmm.", "You lead."
    names = {content_hash(text): text for text in (thought, prompt)}
    turn = event("0#0", attrs={"thinking": content_hash(thought), "model": "other"})
    lead = Agent(id="0", attrs={"system_prompt": content_hash(prompt)})
    run = trace(turn, agents=(lead,), contents=names)
    written = exported(run)
    check(written)
    first, second = written["steps"]
    assert (first["source"], first["message"]) == ("system", prompt)
    assert (second["source"], second["reasoning_content"]) == ("agent", thought)
    assert second["model_name"] == "other"
    assert written["extra"]["texts"] == {}  # each stands once
    assert from_stretto_extra(written) == run


def test_thinking_that_an_import_kept_as_a_text_is_written_too():
    (step,) = exported(trace(event("0#0", attrs={"reasoning": "Hmm."})))["steps"]
    assert step["reasoning_content"] == "Hmm."


def results(trajectory, step=0):
    return trajectory["steps"][step]["observation"]["results"]


def changed(document, how):
    """An export in which somebody changed something."""
    how(document)
    return from_stretto_extra(document)


@pytest.mark.parametrize(
    "how",
    [
        lambda it: it["steps"].append({"step_id": 2, "source": "user", "message": "more"}),
        lambda it: it["steps"][0].update(message="other words"),
        lambda it: it["subagent_trajectories"][0]["steps"][1]["tool_calls"].pop(),
        lambda it: it["subagent_trajectories"].pop(),
        lambda it: it["extra"].pop("counts"),
        lambda it: it["extra"]["edges"][0].update(src="nobody"),
        lambda it: it["agent"].pop("extra"),
        lambda it: it["extra"]["edges"].pop(),
        lambda it: it["extra"]["edges"].append(it["extra"]["edges"][0]),
        lambda it: it["final_metrics"]["extra"]["scores"].pop(),
        lambda it: results(it).append({"content": "more"}),
        lambda it: results(it).append({"source_call_id": "0#2", "content": "more"}),
        lambda it: results(it)[0].update(source_call_id="0#2"),
        lambda it: results(it).pop(),
        lambda it: results(it["subagent_trajectories"][0], 1).append({"source_call_id": "0/0#0"}),
    ],
)
def test_what_was_changed_is_not_taken_for_what_was_written(how):
    assert changed(exported(sample()), how) is None


def test_a_trace_of_nobody_has_no_trajectory():
    with pytest.raises(StrettoError, match="no agent"):
        atif.export([Trace(id="t")])
