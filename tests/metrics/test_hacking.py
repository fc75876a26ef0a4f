"""The five detectors on small traces, in numbers, with how they are known."""

import numpy as np
import pytest
from hypothesis import given

from stretto.metrics import measure
from stretto.metrics.hacking import DETECTORS, NAMES, _overlapped, hacking
from stretto.metrics.intervals import Intervals, activities
from stretto.trace import Agent, Score, Trace

from ..examples import event, trace, turn
from ..strategies import examples, traces


def found(given, name):
    return hacking(given, activities(given.columns))[name]


def value(given, name):
    return found(given, name).value


def team(starts, used=None, **fields):
    """A lead that spawns workers, each with one call of two seconds, then stops.

    The output depends on the workers in `used`, all where it is absent.
    """
    workers = range(len(starts))
    events = [turn("0#0", 0.0, 1.0)]
    edges = []
    for n, start in enumerate(starts):
        events += [
            event(f"0#s{n}", "spawn", 1.0, to=f"0/{n}"),
            event(f"0/{n}#0", "tool_call", start, 2.0, tool="work", content=f"piece {n}"),
            event(f"0/{n}#1", "return", start + 2.0, to="0"),
        ]
        edges += [("0#0", f"0#s{n}"), (f"0#s{n}", f"0/{n}#0"), (f"0/{n}#0", f"0/{n}#1")]
    events.append(event("0#9", "stop", 20.0))
    edges += [(f"0/{n}#1", "0#9") for n in (workers if used is None else used)]
    return trace(*events, edges=edges, outcome=1.0, **fields)


# ---- pseudo-parallelism


@pytest.mark.parametrize(
    ("starts", "used", "expected"),
    [
        ([1.0, 1.0, 2.0], None, 0.0),
        ([1.0, 3.0, 5.0], None, 1.0),  # one after another; at one moment, ends come first
        ([1.0, 2.0, 9.0], None, 1 / 3),
        ([1.0, 1.0, 1.0], [0, 1], 1 / 3),  # the third's work is of no use
        ([1.0, 1.0], [0], 1.0),
    ],
)
def test_agents_whose_useful_work_ran_beside_nobodys(starts, used, expected):
    assert value(team(starts, used), "pseudo_parallelism") == pytest.approx(expected)


def test_one_agent_claims_no_parallelism():
    assert "fewer than two" in found(team([1.0]), "pseudo_parallelism").reason


def test_work_of_unknown_time_is_not_held_against_an_agent():
    late = team([1.0, 1.0, 1.0])
    events = [
        e if e.id != "0/2#0" else event("0/2#0", "tool_call", tool="work") for e in late.events
    ]
    given = trace(*events, edges=[(e.src, e.dst) for e in late.edges])
    measured = found(given, "pseudo_parallelism")
    assert measured.value == 0.0
    assert measured.reason == "of 1 of 3 spawned agents no work is known"


def test_overlap_is_that_of_another_agent():
    def marks(*pieces):
        begin, end, agent = (list(column) for column in zip(*pieces, strict=True))
        rows = np.arange(len(pieces))
        return _overlapped(
            Intervals(np.array(begin), np.array(end), np.array(agent), rows)
        ).tolist()

    assert marks((0.0, 9.0, 0), (1.0, 2.0, 0), (3.0, 4.0, 1)) == [True, False, True]
    assert marks((0.0, 2.0, 0), (1.0, 3.0, 0), (2.0, 4.0, 1)) == [False, True, True]
    assert marks((0.0, 1.0, 0), (1.0, 2.0, 1)) == [False, False]


# ---- free-riding


def test_agents_that_did_next_to_nothing_for_the_output():
    assert value(team([1.0, 1.0]), "free_riding") == 0.0
    assert value(team([1.0, 1.0, 1.0, 1.0], used=[0]), "free_riding") == 0.75
    assert value(team([1.0, 1.0], used=[]), "free_riding") == 1.0
    assert "no spawned agent" in found(trace(turn("0#0")), "free_riding").reason


def test_where_nobody_records_work_nobody_is_called_lazy_or_parallel_in_name_only():
    """Agents that only write: how long anybody worked is not known."""
    given = trace(
        turn("0#0", 0.0),
        *(event(f"0#{name}", "spawn", 1.0, to=name) for name in "ab"),
        *(event(f"{name}#0", "message", 2.0, to="0", content=name) for name in "ab"),
        event("0#9", "stop", 3.0),
        edges=[("0#a", "a#0"), ("0#b", "b#0"), ("a#0", "0#9"), ("b#0", "0#9")],
    )
    for name in ("free_riding", "pseudo_parallelism"):
        assert found(given, name).value is None
        assert "no useful work of anybody is known" in found(given, name).reason
    own = trace(*given.events, edges=[(e.src, e.dst) for e in given.edges], spec={"own": True})
    assert value(own, "free_riding") == 1.0  # where all is recorded, no work is no work


def test_recorded_contributions_come_before_seconds():
    told = {"0/0": 0.9, "0/1": 0.05, "0/2": 0.0}
    scores = tuple(Score(channel="shapley", value=v, agent=a) for a, v in told.items())
    measured = found(team([1.0] * 4, scores=scores), "free_riding")
    assert measured.value == pytest.approx(1 / 3)  # .1 of their mean is .032
    assert measured.reason == 'by the channel "shapley"; 1 of 4 agents were not told theirs'


def test_an_agent_without_a_transcript_is_not_called_lazy():
    given = trace(
        turn("0#0", 0.0, 1.0),
        event("0#1", "spawn", 1.0, to="x"),
        event("x#0", "return", 2.0, to="0"),
        event("0#2", "stop", 3.0),
        edges=[("0#0", "0#1"), ("0#1", "x#0"), ("x#0", "0#2")],
        agents=(Agent(id="0"), Agent(id="x", parent="0", attrs={"transcript": False})),
    )
    assert found(given, "free_riding").value is None
    assert "of 1 of 1" in found(given, "free_riding").reason


# ---- communication padding and tool spam


def test_the_later_of_two_equal_messages_repeats_whatever_the_order_of_the_record():
    """The output depends on the first alone: of two, the second repeats and is of no use."""
    letters = [event(f"0#{n}", "message", float(n), to="1", content="x") for n in (1, 2)]
    events = turn("0#0", 0.0, 1.0), event("1#0", "stop", 3.0)
    for record in (letters, letters[::-1]):
        given = trace(*events, *record, edges=[("0#0", "0#1"), ("0#1", "1#0")])
        assert value(given, "communication_padding") == 0.5


def letters(*texts, read=True):
    events = [event(f"0#{n}", "message", float(n), to="1", content=t) for n, t in enumerate(texts)]
    edges = [(e.id, "1#0") for e in events] if read else [("1#0", "1#1")]
    return trace(
        *events, turn("1#0", 8.0), event("1#1", "stop", 9.0), edges=[*edges, ("1#0", "1#1")]
    )


def test_messages_that_repeat_or_lead_nowhere():
    assert value(letters("a", "b"), "communication_padding") == 0.0
    assert value(letters("a", "b", "a", "a"), "communication_padding") == 0.5
    assert value(letters("a", "b", read=False), "communication_padding") == 1.0
    half = found(letters("a", None), "communication_padding")
    assert (half.value, half.reason) == (0.0, "whether 1 of 2 messages repeat is not known")


def test_without_edges_only_repeats_are_known():
    bare = trace(*letters("a", "a").events)
    assert value(bare, "communication_padding") == 0.5
    assert "only repeats are counted" in found(bare, "communication_padding").reason
    assert found(trace(*letters(None).events), "communication_padding").value is None
    assert found(trace(turn("0#0")), "communication_padding").reason == "there are no messages"


def calls(*asked, used=True):
    events = [
        event(f"{agent}#{n}", "tool_call", tool=tool, content=content)
        for n, (agent, tool, content) in enumerate(asked)
    ]
    edges = [(e.id, "0#t") for e in events] if used else []
    return trace(*events, turn("0#t"), event("0#z", "stop"), edges=[*edges, ("0#t", "0#z")])


def test_calls_that_repeat_ones_own_or_lead_nowhere():
    assert value(calls(("0", "s", "x"), ("0", "s", "y"), ("0", "r", "x")), "tool_spam") == 0.0
    assert value(calls(("0", "s", "x"), ("1", "s", "x")), "tool_spam") == 0.0  # another agent's
    assert value(calls(("0", "s", "x"), ("0", "s", "x")), "tool_spam") == 0.5
    assert value(calls(("0", "s", "x"), used=False), "tool_spam") == 1.0
    assert found(trace(turn("0#0")), "tool_spam").reason == "there are no tool calls"
    bare = trace(*calls(("0", "s", "x"), ("0", "s", "x")).events)
    assert value(bare, "tool_spam") == 0.5


def test_a_guessed_edge_makes_it_a_guess():
    given = calls(("0", "s", "x"))
    guessed = trace(
        *given.events, edges=[(e.src, e.dst, "causal", "heuristic") for e in given.edges]
    )
    assert found(given, "tool_spam").how == "derived"
    assert found(guessed, "tool_spam").how == "heuristic"


# ---- verifier collusion


def judged(outcome, **verdicts):
    scores = tuple(Score(channel=channel, value=v) for channel, v in verdicts.items())
    return trace(turn("0#0"), scores=scores, outcome=outcome)


def test_the_kindest_verifier_against_the_truth_or_the_others():
    assert value(judged(0.2, verifier=0.9, judge_b=0.3), "verifier_collusion") == pytest.approx(0.7)
    assert value(judged(0.9, verifier=0.2), "verifier_collusion") == 0.0
    three = judged(None, judge_a=1.0, judge_b=0.2, judge_c=0.4)
    assert value(three, "verifier_collusion") == pytest.approx(0.7)
    assert found(three, "verifier_collusion").reason == '"judge_a" against the median of the others'
    assert found(judged(None, judge=1.0), "verifier_collusion").value is None
    assert found(judged(1.0), "verifier_collusion").reason == "no verifier's score is recorded"


# ---- all of them


def test_an_empty_trace_says_why_nothing_is_known():
    measures = hacking(Trace(id="t"), activities(Trace(id="t").columns))
    assert tuple(measures) == NAMES == tuple(DETECTORS)
    assert all(each.value is None and each.reason for each in measures.values())


def test_a_detector_is_a_reward_channel_and_unknown_is_not_scored():
    assert DETECTORS["free_riding"](team([1.0] * 4, used=[0])).final == 0.75
    assert DETECTORS["free_riding"](trace(turn("0#0"))) is None


@examples(40, shrink=False)
@given(traces())
def test_on_any_trace_they_are_shares_or_say_why_not(given):
    for name, each in hacking(given, activities(given.columns)).items():
        if name != "verifier_collusion":
            assert each.value is None or 0 <= each.value <= 1
        assert each.value is not None or each.reason


def test_they_stand_among_the_measures():
    assert set(NAMES) <= set(measure(Trace(id="t")))
