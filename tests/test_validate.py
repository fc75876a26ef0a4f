"""What is wrong with a trace, and what is not."""

import copy
import pickle

import pytest
from msgspec.structs import replace

from stretto import store
from stretto.errors import StrettoError
from stretto.trace import Agent, Score, content_hash
from stretto.validate import contradictions, find_loop, problems

from .examples import chain, event, trace, turn

SOUND = trace(
    turn("0#0"), event("0#1"), event("0#2"), edges=[*chain("0#0", "0#1", "0#2"), ("0#0", "0#2")]
)


def told(given, check=problems):
    return [f"{each.part}[{each.index}].{each.field}: {each.what}" for each in check(given)]


def test_a_graph_that_was_recorded_in_order_has_no_loop():
    assert find_loop(SOUND) is None


def test_a_cause_that_is_recorded_late_is_no_loop():
    assert find_loop(replace(SOUND, events=SOUND.events[::-1])) is None


@pytest.mark.parametrize("edges", [chain("0#0", "0#0"), chain("0#0", "0#1", "0#2", "0#0")])
def test_a_loop_is_named_and_is_no_problem(edges):
    given = trace(*SOUND.events, edges=edges)
    names = [a for a, _ in edges]
    loop = find_loop(given)
    assert loop is not None
    assert all(name in loop for name in names)
    assert told(given) == []


def test_a_loop_cannot_be_looked_for_along_an_edge_to_nowhere():
    with pytest.raises(StrettoError, match="an edge names no event: '0#9'"):
        find_loop(trace(event("0#0"), edges=[("0#0", "0#9")]))


def test_a_long_id_is_told_by_both_ends():
    given = trace(event("a" * 5000), edges=[("a" * 5000, "b" * 5000)])
    (problem,) = problems(given)
    assert problem.what == f'no event "{"b" * 40}…{"b" * 40}"'


def test_what_is_kept_with_a_trace_does_not_reach_its_changed_copies():
    """A check keeps what it found out; another trace must not inherit it."""
    assert find_loop(SOUND) is None
    looped = replace(SOUND, edges=trace(edges=chain("0#0", "0#0")).edges)
    assert find_loop(looped) is not None
    assert told(replace(SOUND, events=SOUND.events[:1]))
    for same in (copy.copy(SOUND), pickle.loads(pickle.dumps(SOUND))):
        assert same == SOUND
        assert find_loop(same) is None


def test_parents_are_agents_and_form_a_tree():
    agents = (Agent(id="0"), Agent(id="1", parent="0"), Agent(id="2", parent="9"))
    assert told(trace(agents=agents)) == ['agent[2].parent: no agent "9"']
    ring = (Agent(id="0", parent="2"), Agent(id="1", parent="0"), Agent(id="2", parent="1"))
    assert told(trace(agents=(*ring, Agent(id="3", parent="2")))) == [
        "agent[0].parent: an agent that is its own ancestor: 0 → 2 → 1 → 0"
    ]


def test_a_long_line_of_parents_is_no_matter():
    agents = [Agent(id="0"), *(Agent(id=str(n + 1), parent=str(n)) for n in range(5000))]
    assert told(trace(agents=tuple(reversed(agents)))) == []


def test_a_receiver_may_be_unknown():
    assert told(trace(event("0#0", to="nobody"))) == []


def test_a_text_is_what_its_hash_says():
    name = content_hash("a")
    assert told(trace(event("0#0"), contents={name: "a", "ref": "b"})) == []
    assert told(trace(event("0#0"), contents={"ref": "b", name: "c"})) == [
        f'content[1].text: the text of "{name}" has another hash'
    ]


def test_several_problems_are_all_told():
    given = trace(event("0#0"), event("0#0"), edges=[("0#0", "x")], agents=())
    given = replace(given, scores=(Score(channel="c", value=1.0, agent="0"),))
    assert told(given) == [
        'event[1].id: the id "0#0" is taken',
        'event[0].agent: no agent "0"',
        'event[1].agent: no agent "0"',
        'edge[0].dst: no event "x"',
        'score[0].agent: no agent "0"',
    ]
    assert told(given, contradictions) == told(given)


def test_values_that_a_file_cannot_hold_are_problems_of_writing_only():
    given = trace(event("0#0", duration=float("inf")))
    assert told(given) == ["event[0].duration: inf is neither 0 nor positive and finite"]
    assert told(given, contradictions) == []


def test_a_trace_is_checked_once_when_it_is_written(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(store, "require_valid", lambda given, _: seen.append(given.id))
    monkeypatch.setattr(store, "contradictions", lambda given: pytest.fail("checked again"))
    store.write(tmp_path / "t.jsonl", [SOUND, replace(SOUND, id="u")])
    assert seen == ["t", "u"]
    store.encode(SOUND)
    assert seen == ["t", "u"]
