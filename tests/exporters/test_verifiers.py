"""verifiers: what its own readers see, and that importing a file again gives the same trace."""

import json

import pytest
from hypothesis import given, settings

from stretto.exporters import export, verifiers
from stretto.exporters.verifiers_restore import from_stretto_info, is_unchanged
from stretto.importers import import_paths
from stretto.importers.conformance import check_importer
from stretto.trace import Agent, Decision, Score, Trace, content_hash

from ..examples import event, trace
from ..importers.oddities import fares_well, odd
from ..importers.transcripts import DATA, REAL
from ..strategies import examples, traces
from .sample import HASH, sample


def exported(run):
    """The episode of a trace."""
    return json.loads(verifiers.export([run]).files[""])


def read(folder, *episodes):
    """What an import makes of these episodes."""
    path = folder / "x.traces.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in episodes))
    return import_paths([path], "verifiers")


def said(imported):
    """The notices of an import."""
    return [notice.what for report in imported.report for notice in report.warnings]


def links(episode):
    """All semantic parents of an episode, as (from, to, label)."""
    return {
        (link["node"], place, link["type"])
        for conversation in episode["traces"]
        for place, node in enumerate(conversation["nodes"])
        for link in node.get("semantic_parents", ())
    }


@examples(60)
@given(traces())
def test_any_trace_is_there_again_to_the_last_bit(run):
    output = verifiers.export([run])
    episode = json.loads(output.files[""])
    assert output.left_out.keys() <= {verifiers.UNPROMPTED}
    assert from_stretto_info(episode) == run
    assert is_unchanged(episode)


def test_traces_in_one_file_come_back_each_as_it_was(tmp_path):
    """Agents without turns, overlapping calls, scores of events, texts of no event."""
    runs = (sample(), sample(id="u", attrs={"started": "2026-01-01T00:00:00+00:00"}))
    imported = read(tmp_path, *map(exported, runs))
    assert imported.traces == runs
    assert said(imported) == []
    assert (imported.report[0].spawns, imported.report[0].returns) == (4, 2)


def test_a_text_stands_once():
    episode = exported(sample())
    held = episode["traces"][0]["info"]["stretto"]
    # a spawn of one without a turn is read by nobody in particular
    assert HASH["of no event"] in held["texts"]
    assert HASH["I plan."] in held["said"]
    whole = json.dumps(episode)
    assert all(whole.count(text) == 1 for text in ("I plan.", "found", "the answer"))


@pytest.mark.parametrize(
    "again",
    [
        lambda it: it.update(num_turns=3, is_timeout=False),
        lambda it: it["traces"][0].update(info={"judge": 1} | it["traces"][0]["info"], tools=[]),
        lambda it: it["traces"][0]["nodes"][0].update(timestamp=1.0, is_content=[]),
    ],
)
def test_a_program_that_writes_it_again_with_fields_of_its_own_changes_nothing(tmp_path, again):
    episode = exported(sample())
    again(episode)
    imported = read(tmp_path, dict(reversed(episode.items())))
    assert (imported.traces, said(imported)) == ((sample(),), [])


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["traces"][0]["nodes"][0]["message"].update(content="other words"),
        lambda it: it["traces"][0]["nodes"][0].update(advantages=[1.0]),
        lambda it: it["traces"][0]["nodes"].pop(),
        lambda it: it["traces"][0]["rewards"].update(outcome={"score": 0.0, "weight": 1.0}),
        lambda it: it["traces"][0]["info"]["stretto"]["events"].pop(),
        lambda it: it["traces"][0]["info"]["stretto"]["scores"].pop(),
        lambda it: it["traces"][0]["info"]["stretto"]["edges"][0].update(src="nobody"),
        lambda it: it["traces"][0]["info"]["stretto"].pop("header"),
        lambda it: it["traces"][0]["info"].update(stretto=None),
        lambda it: it.update(traces=it["traces"] + [{"nodes": [], "info": {}}]),
        lambda it: it.update(more=10**30, ok=False),
    ],
)
def test_what_was_changed_is_read_as_it_stands_and_said(tmp_path, change):
    episode = exported(sample())
    change(episode)
    imported = read(tmp_path, episode)
    (notice,) = said(imported)
    assert "cut or changed" in notice
    assert imported.traces != (sample(),)
    del episode["traces"][0]["info"]
    assert read(tmp_path, episode).traces == imported.traces


def test_one_of_several_conversations_is_not_the_trace(tmp_path):
    run = trace(event("a#0"), event("b#0"))
    episode = exported(run)
    first, second = episode["traces"]
    assert read(tmp_path, episode).traces == (run,)
    assert len(said(read(tmp_path, episode | {"traces": [first]}))) == 1
    assert len(said(read(tmp_path, first))) == 1
    assert said(read(tmp_path, second)) == []  # nothing says that Stretto wrote it


def natively(folder, run):
    """What is read of an export by who does not know what Stretto adds."""
    episode = exported(run)
    del episode["traces"][0]["info"]
    (made,) = read(folder, episode).traces
    return made


@pytest.mark.parametrize(("spawned", "label"), [(False, "agent_message"), (True, "subagent_call")])
def test_to_delegate_to_one_that_nobody_spawned_invents_no_spawn(tmp_path, spawned, label):
    first = [event("a#1", "spawn", to="b")] * spawned
    run = trace(
        event("a#0"),
        *first,
        event("a#2", "delegate", to="b"),
        event("b#0"),
        edges=(("a#0", "a#2"), ("a#2", "b#0", "message")),
    )
    assert links(exported(run)) == {(0, 1, label)}
    spawns = [each for each in natively(tmp_path, run).events if each.kind == "spawn"]
    assert len(spawns) == spawned


def test_what_a_tool_sends_for_a_turn_is_sent_by_the_turn():
    """A child returns what a tool answered, and delegates by calling a tool."""
    run = trace(
        event("a#0"),
        event("a#1", "spawn", to="b"),
        event("b#0"),
        event("b#1", "tool_call"),
        event("b#2", "tool_result"),
        event("b#3", "return", to="a"),
        event("a#2"),
        edges=(
            *(("a#0", "a#1"), ("a#1", "b#0", "spawn"), ("b#0", "b#1")),
            *(("b#1", "b#2", "tool_dependency"), ("b#2", "b#3"), ("b#3", "a#2", "return")),
        ),
    )
    # nodes: a#0, b#0, the result in b, a#2
    assert links(exported(run)) == {(0, 1, "subagent_call"), (1, 3, "subagent_return")}


def test_causes_in_a_loop_without_a_turn_lead_nowhere():
    run = trace(
        event("a#0", "message", to="b"),
        event("a#1", "tool_call"),
        event("b#0"),
        edges=(("a#0", "a#1"), ("a#1", "a#0"), ("a#0", "b#0", "message")),
    )
    assert links(exported(run)) == set()


def test_turns_that_nobody_can_train_on_are_counted():
    decision = Decision(completion_ids=(1,), completion_logprobs=(-1.0,))
    run = trace(event("0#0", decision=decision))
    assert verifiers.export([run]).left_out == {verifiers.UNPROMPTED: 1}
    assert from_stretto_info(exported(run)) == run


def test_a_trace_of_nobody_is_an_episode_without_traces_and_comes_back(tmp_path):
    run = Trace(id="t", task="k", scores=(Score(channel="c", value=1.0),))
    episode = exported(run)
    assert episode["traces"] == []
    assert read(tmp_path, episode).traces == (run,)
    assert read(tmp_path, episode | {"num_turns": 0}).traces == (run,)
    assert len(said(read(tmp_path, episode | {"id": "u"}))) == 1


@pytest.mark.parametrize("odd", [None, "x", -1, [{}], {"a": "b"}, [[]]])
def test_attributes_of_verifiers_that_are_odd_are_passed_over(odd):
    names = ("parent", "semantic_parents", "token_ids", "scaffold_ids", "advantages")
    attrs = {"node": 0} | dict.fromkeys(names, odd)
    run = trace(
        event("0#0", decision=Decision(), attrs=attrs),
        event("0#1", "human", attrs=attrs | {"node": odd}),
        attrs={"format": "verifiers", "reward_weights": odd},
        outcome=1.0,
    )
    (made,) = exported(run)["traces"]
    assert made["rewards"] == {"outcome": {"score": 1.0, "weight": 1.0}}
    assert from_stretto_info(exported(run)) == run


def test_a_text_that_an_import_named_otherwise_comes_back():
    agents = (Agent(id="0", attrs={"system_prompt": content_hash("You lead.")}),)
    contents = {"file:1": "I plan.", content_hash("You lead."): "You lead."}
    run = trace(event("0#0", content="file:1"), agents=agents, contents=contents)
    assert from_stretto_info(exported(run)) == run


WRITTEN = exported(sample(attrs={"started": "2026-01-01T00:00:00+00:00"}))


@given(odd(WRITTEN))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_odd_fields_in_what_was_written_never_break_it(tmp_path_factory, episode):
    path = tmp_path_factory.mktemp("odd") / "x.traces.jsonl"
    path.write_text(json.dumps(episode) + "\n")
    fares_well(path, "verifiers")


def test_what_was_written_keeps_the_rules_of_imports(tmp_path):
    path = tmp_path / "x.traces.jsonl"
    path.write_bytes(export([sample(), sample(id="u")], "verifiers").files[""])
    check_importer("verifiers", [path])


@REAL
def test_every_real_trace_comes_back_as_it_was(tmp_path):
    found = import_paths([DATA]).traces
    assert len(found) >= 100
    path = tmp_path / "all.traces.jsonl"
    output = export(found, "verifiers")
    path.write_bytes(output.files[""])
    imported = import_paths([path])
    assert {each.id: each for each in imported.traces} == {each.id: each for each in found}
    assert (output.left_out, said(imported)) == ({}, [])
