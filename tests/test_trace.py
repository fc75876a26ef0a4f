import pickle

import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError, did_you_mean
from stretto.trace import Decision, Event, Score, Tokens, Trace, content_hash
from stretto.validate import problems

from .examples import event, trace, turn


def found(given):
    """What is wrong with a trace, as `part[index].field`."""
    return [f"{each.part}[{each.index}].{each.field}" for each in problems(given)]


def test_a_content_hash_is_the_128_bit_blake2b_digest_of_the_text():
    assert content_hash("") == "cae66941d9efbd404e4d88758ea67670"
    assert content_hash("abc") == "cf4ab791c62b8d2b2109c90275287816"


def test_a_text_with_a_lone_surrogate_has_a_hash_of_its_own():
    assert content_hash("\ud800") not in (content_hash(""), content_hash("\ud801"))


def test_the_choice_is_the_chosen_candidate():
    assert Decision(candidates=("stop", "one"), chosen=1).choice == "one"


def test_an_unknown_choice_is_none():
    assert Decision(candidates=("stop", "one")).choice is None


def test_what_a_source_does_not_say_is_none():
    bare = Event(id="e", kind="message", agent="a")
    fields = ("start", "duration", "to", "tool", "content", "tokens", "price", "trusted", "label")
    assert [getattr(bare, field) for field in fields] == [None] * len(fields)
    assert Tokens() == Tokens(input=None, output=None, cache_read=None, cache_write=None)


def test_two_events_never_share_their_attributes():
    first, second = Event(id="a", kind="k", agent="0"), Event(id="b", kind="k", agent="0")
    first.attrs["x"] = 1
    assert second.attrs == {}


@pytest.mark.parametrize("part", ["events", "scores", "id"])
def test_a_trace_cannot_be_changed(part):
    with pytest.raises(AttributeError):
        setattr(trace(event("0#0")), part, ())


def test_columns_are_built_once():
    given = trace(event("0#0"))
    assert given.columns is given.columns


def test_an_edited_copy_has_columns_of_its_own():
    given = trace(event("0#0", start=1.0))
    assert given.columns.start.tolist() == [1.0]
    edited = replace(given, events=(event("0#0", start=2.0),))
    assert edited.columns.start.tolist() == [2.0]
    assert given.columns.start.tolist() == [1.0]


def test_a_text_is_found_by_its_hash():
    given = trace(contents={"h": "hello"})
    assert given.text("h") == "hello"


@pytest.mark.parametrize("reference", [None, "dropped"])
def test_a_dropped_or_absent_text_is_none(reference):
    assert trace(contents={"h": "hello"}).text(reference) is None


def test_the_reward_is_the_value_of_the_team():
    scores = (
        Score(channel="outcome", value=3.0, agent="0"),
        Score(channel="outcome", value=2.0, event="0#0"),
        Score(channel="outcome", value=0.5),
    )
    assert trace(event("0#0"), scores=scores).reward("outcome") == 0.5


def test_what_was_not_scored_is_none_and_never_zero():
    assert trace(event("0#0"), outcome=1.0).reward("format") is None
    zero = trace(event("0#0"), outcome=0.0)
    assert zero.reward("outcome") == 0.0


@pytest.mark.parametrize("kind", ["cost", "metric"])
def test_a_cost_or_a_metric_is_no_reward(kind):
    scores = (Score(channel="tokens", value=12.0, kind=kind),)
    assert Trace(id="t", scores=scores).reward("tokens") is None


def test_a_sound_trace_has_no_problems():
    sound = trace(turn("0#0"), turn("0#1"), edges=[("0#0", "0#1")], outcome=1.0)
    assert found(sound) == []


def test_a_loop_is_no_problem():
    assert found(trace(event("a"), event("b"), edges=[("a", "b"), ("b", "a")])) == []


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (trace(event("0#0"), event("0#0")), "event[1].id"),
        (trace(event("0#0"), agents=()), "event[0].agent"),
        (trace(event("0#0"), edges=[("0#0", "0#9")]), "edge[0].dst"),
        (trace(event("0#0"), edges=[("0#9", "0#0")]), "edge[0].src"),
        (trace(turn("0#0", chosen=2)), "event[0].decision.chosen"),
        (trace(scores=(Score(channel="c", value=1, agent="x"),)), "score[0].agent"),
        (trace(scores=(Score(channel="c", value=1, event="x"),)), "score[0].event"),
    ],
)
def test_every_problem_names_its_place(given, place):
    assert found(given) == [place]


def test_log_probabilities_must_fit_the_candidates():
    decision = Decision(candidates=("a", "b"), chosen=0, logprobs=(-1.0,))
    assert found(trace(event("0#0", decision=decision))) == ["event[0].decision.logprobs"]


def test_completion_log_probabilities_must_fit_the_completion():
    decision = Decision(completion_ids=(1, 2), completion_logprobs=(-1.0,))
    place = "event[0].decision.completion_logprobs"
    assert found(trace(event("0#0", decision=decision))) == [place]


def test_an_error_says_where_what_and_what_to_do():
    error = StrettoError("no such field", "t.jsonl:3: event.strat", 'did you mean "start"?')
    assert str(error) == 't.jsonl:3: event.strat: no such field (did you mean "start"?)'


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(StrettoError("what", "where", "hint")))
    assert (error.what, error.where, error.hint) == ("what", "where", "hint")


def test_a_near_name_is_suggested_and_else_all_are_listed():
    assert did_you_mean("rlo", ["grpo", "rloo"]) == 'did you mean "rloo"?'
    assert did_you_mean("RLOO", ["grpo", "rloo"]) == 'did you mean "rloo"?'
    assert did_you_mean("xyz", ["grpo", "rloo"]) == "known: grpo, rloo"
