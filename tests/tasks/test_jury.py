"""The jury family: the case, the game, and its exact side against enumeration and simulation."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks import topology
from stretto.tasks.conformance import check_task
from stretto.tasks.jury import COLOURS, KINDS, LIES, REMARK, TABLE, Jury, case_of, heard_by
from stretto.tasks.jury.accuracy import accuracy
from stretto.tasks.jury.oracle import (
    best_vote,
    blame,
    claim_values,
    posterior,
    received,
    regret,
    vote_on,
)
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.team.interventions import Null
from stretto.team.replay import replay
from stretto.team.what_if import what_if

from .juries import CASES, SMALL, enumerate_claims, run

# ---- the game


def test_a_lone_honest_witness_by_hand():
    task = Jury(classes=2, witnesses=1, copies=0, liars=0)
    (kind,), (name,) = case_of(task).kinds, case_of(task).names
    trace = run(task, seed=1)
    (look,) = [e for e in trace.events if e.tool == "inspect" and e.kind == "tool_result"]
    saw = COLOURS[look.attrs["saw"]]
    seen = [(e.agent, trace.text(e.decision.observation), e.decision.choice)
            for e in trace.events if e.decision]  # fmt: skip
    assert seen == [
        ("0", "No claims.", "call witnesses"),
        ("0/0", f"You see: {saw}, {kind} {name}.", f"say {saw}"),
        ("0", f"Claim: {saw}, {kind} {name}.", f"vote {saw}"),
    ]
    assert trace.events[-1].attrs == {"colour": saw}
    hidden = task.begin(1).hidden
    assert trace.reward("outcome") == trace.reward("success") == float(COLOURS[hidden] == saw)


def test_a_liar_says_another_colour_than_it_saw_whatever_it_wants_to_say():
    task = Jury(witnesses=4, copies=0, liars=2)
    for seed in range(20):
        trace, world = run(task, seed=seed), task.begin(seed)
        said = received(trace)
        lied = {n for n in said if said[n] != world.seen[world.case.holds[n]]}
        assert lied == set(world.lies) and len(lied) == 2


def test_copies_see_the_same_and_name_the_same_piece():
    task = Jury(witnesses=5, copies=3, liars=0)
    case = case_of(task)
    trace = run(task)
    for (a, said), (b, other) in combinations(received(trace).items(), 2):
        if case.piece(a) == case.piece(b):
            assert said == other
    assert len({case.piece(n) for n in range(5)}) == 2


@pytest.mark.parametrize("name", ["centralized", "debate"])
def test_who_was_not_let_see_says_nothing(name):
    task = Jury(witnesses=3, copies=0, topology=name)
    policies = scripts_of(task)["oracle"]
    trace = run(task)
    look = next(e.id for e in trace.events if e.tool == "inspect" and e.kind == "tool_result")
    world = what_if(trace, look, Null(), task=task, policies=policies).trace
    assert world.attrs["ended"] == "stop"
    assert set(received(world)) == {1, 2}


def test_what_is_hidden_shown_and_lied_about_is_as_likely_as_it_should_be():
    task = Jury(classes=3, witnesses=2, copies=0, liars=1)
    worlds = [task.begin(seed) for seed in range(3_000)]
    for colour in range(3):
        share = np.mean([w.hidden == colour for w in worlds])
        assert abs(share - 1 / 3) < 4 * (2 / 9 / 3_000) ** 0.5
    kind = case_of(task).kinds[0]
    right = np.mean([w.seen[0] == w.hidden for w in worlds])
    assert abs(right - KINDS[kind]) < 4 * (0.25 / 3_000) ** 0.5
    assert abs(np.mean([0 in w.lies for w in worlds]) - 0.5) < 4 * (0.25 / 3_000) ** 0.5


@pytest.mark.parametrize("name", topology.NAMES)
def test_every_topology_brings_the_same_claims_to_the_judge(name):
    task = Jury(topology=name)
    for seed in range(5):
        assert received(run(task, seed=seed)) == received(run(Jury(), seed=seed))


def test_in_a_debate_witnesses_hear_each_other_before_they_speak_to_the_judge():
    trace = run(Jury(topology="debate", witnesses=3, copies=0))
    texts = [
        trace.text(e.decision.observation) for e in trace.events if e.agent == "0/1" and e.decision
    ]
    assert [text.count("Claim: ") for text in texts] == [0, 2]
    assert sum(e.kind == "message" for e in trace.events) == 6
    ring = run(Jury(topology="swarm", witnesses=5))
    assert sum(e.kind == "message" for e in ring.events) == 10


def test_many_witnesses_debate_at_tables():
    assert heard_by("debate", TABLE, 3) == tuple(n for n in range(TABLE) if n != 3)
    two = [heard_by("debate", TABLE + 2, n) for n in range(TABLE + 2)]
    assert {len(heard) for heard in two} == {TABLE // 2}
    assert all(n in two[other] for n, heard in enumerate(two) for other in heard)
    messages = {}
    for witnesses in (60, 120):
        trace = run(Jury(classes=2, witnesses=witnesses, copies=0, topology="debate"))
        messages[witnesses] = sum(e.kind == "message" for e in trace.events)
    assert messages == {60: 60 * 11, 120: 120 * 11}


def test_faint_pieces_are_as_many_as_said_and_hold_others_as_they_were():
    task = Jury(witnesses=40, copies=4, faint=30)
    kinds = case_of(task).kinds
    assert kinds.count("faint") == 30 and len(kinds) == 36
    assert "faint" not in case_of(Jury(witnesses=900, copies=0)).kinds
    assert "dim than faint" in task.harness.system


@settings(max_examples=15, deadline=None)
@given(CASES, st.integers(0, 99), st.sampled_from(["oracle", "random"]))
def test_replay_diverges_nowhere(task, seed, script):
    trace = run(task, script, seed)
    assert replay(trace, task) is None
    assert trace.attrs["ended"] == "stop"


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"classes": 1}, "task.classes"),
        ({"classes": 5}, "task.classes"),
        ({"witnesses": 0}, "task.witnesses"),
        ({"copies": 7}, "task.copies"),
        ({"liars": 8}, "task.liars"),
        ({"faint": 6}, "task.faint"),
        ({"witnesses": 1, "copies": 0, "fault": "two_lies"}, "task.fault"),
        ({"topology": "jury"}, "task.topology"),
    ],
)
def test_impossible_rules_are_refused(parameters, where):
    with pytest.raises(StrettoError) as caught:
        Jury(**parameters)
    assert caught.value.where == where


# ---- the exact side


def test_one_witness_by_hand():
    task = Jury(classes=3, witnesses=1, copies=0, liars=0)
    r = KINDS[case_of(task).kinds[0]]
    assert posterior(task, {0: 1}).tolist() == pytest.approx([(1 - r) / 2, r, (1 - r) / 2])
    assert posterior(task, {}).tolist() == pytest.approx([1 / 3] * 3)
    assert accuracy(task) == pytest.approx(r)
    assert accuracy(task, []) == pytest.approx(1 / 3)
    lying = replace(task, liars=1)
    assert posterior(lying, {0: 1})[1] == pytest.approx((1 - r) / 2)


def test_a_copy_counts_once():
    task = Jury(classes=2, witnesses=2, copies=1, liars=0)
    r = KINDS[case_of(task).kinds[0]]
    assert posterior(task, {0: 1, 1: 1})[1] == pytest.approx(r)
    assert accuracy(task) == pytest.approx(r)


def test_claims_that_no_honest_witness_could_make_are_taken_for_the_fewest_lies():
    task = Jury(classes=2, witnesses=2, copies=1, liars=0)
    assert posterior(task, {0: 0, 1: 1}).tolist() == pytest.approx([0.5, 0.5])
    three = Jury(classes=2, witnesses=3, copies=2, liars=0)
    r = KINDS[case_of(three).kinds[0]]
    assert posterior(three, {0: 0, 1: 1, 2: 1})[1] == pytest.approx(r)


@pytest.mark.parametrize("task", SMALL)
def test_the_posterior_equals_enumeration(task):
    joint = enumerate_claims(task)
    assert sum(joint.values()) == pytest.approx(1.0)
    for claims in product(range(task.classes), repeat=task.witnesses):
        row = np.array([joint.get((hidden, claims), 0.0) for hidden in range(task.classes)])
        if row.sum():
            found = posterior(task, dict(enumerate(claims)))
            assert found == pytest.approx(row / row.sum(), abs=1e-12)


def test_the_oracle_is_right_as_often_as_computed():
    task = Jury(copies=3, liars=2, seed=5)
    for script, expected in (("oracle", accuracy(task)), ("silent", 1 / 3)):
        right = [t.reward("success") for t in rollout(task, scripts_of(task)[script], range(800))]
        assert abs(np.mean(right) - expected) < 4 * np.std(right) / 800**0.5


@settings(max_examples=15, deadline=None)
@given(CASES, st.integers(0, 99))
def test_the_vote_goes_by_what_claims_say_not_by_who_says_it(task, seed):
    heard = received(run(task, "random", seed))
    by_piece = {}
    for witness, colour in heard.items():
        by_piece.setdefault(case_of(task).piece(witness), []).append(colour)
    belief = posterior(task, heard)
    assert belief[vote_on(task, by_piece)] == pytest.approx(belief.max())


@settings(max_examples=15, deadline=None)
@given(CASES, st.integers(0, 99))
def test_claims_are_never_worth_less_than_nothing_and_the_oracle_regrets_nothing(task, seed):
    trace = run(task, "oracle", seed)
    assert regret(task, trace) == pytest.approx(0.0)
    assert all(value >= 0 for value in claim_values(task, trace).values())
    assert len(claim_values(task, trace)) == task.witnesses
    assert (regret(task, run(task, "greedy", seed)) or 0.0) >= 0


def test_without_the_claim_the_best_judge_votes_as_the_value_says():
    """Replay and the exact receiver agree: the oracle judge is that receiver."""
    task = Jury(witnesses=4, copies=1, liars=1, seed=6)
    policies = scripts_of(task)["oracle"]
    for seed in range(6):
        trace = run(task, seed=seed)
        belief = posterior(task, received(trace))
        for event, value in claim_values(task, trace).items():
            world = what_if(trace, event, Null(), task=task, policies=policies).trace
            vote = COLOURS.index(world.events[-1].attrs["colour"])
            assert belief.max() - belief[vote] == pytest.approx(value)


def test_the_regret_of_voting_without_hearing():
    task = Jury()
    assert regret(task, run(task, "solo")) == pytest.approx(0.0)  # nothing reached it
    trace = run(task, "greedy", 3)
    belief = posterior(task, received(trace))
    vote = COLOURS.index(trace.events[-1].attrs["colour"])
    assert regret(task, trace) == pytest.approx(belief.max() - belief[vote])


def test_the_planted_lie_is_found_where_it_decides():
    task = Jury(witnesses=4, copies=0, liars=0, fault="lie", seed=7)
    strongest, found = case_of(task).strongest[0], 0
    for seed in range(60):
        trace, world = run(task, seed=seed), task.begin(seed)
        assert set(world.lies) == {strongest}
        heard = received(trace)
        honest = heard | {strongest: world.seen[world.case.holds[strongest]]}
        decides = best_vote(task, heard) != world.hidden == best_vote(task, honest)
        blamed = blame(task, trace, world.hidden)
        assert (blamed is not None) == decides
        if blamed:
            found += 1
            assert blamed.agent == f"0/{strongest}" == blamed.event.partition("#")[0]
    assert found > 5


@pytest.mark.parametrize(("fault", "count"), LIES.items())
def test_the_strongest_lie_and_nobody_else(fault, count):
    task = Jury(fault=fault, liars=2)
    best = case_of(task).strongest
    assert [KINDS[case_of(task).kinds[case_of(task).holds[n]]] for n in best] == sorted(
        (KINDS[case_of(task).kinds[piece]] for piece in case_of(task).holds), reverse=True
    )
    assert all(set(task.begin(seed).lies) == set(best[:count]) for seed in range(20))


@pytest.mark.parametrize("name", topology.NAMES)
def test_a_remark_is_heard_and_changes_nothing(name):
    clean, twin = Jury(topology=name), Jury(topology=name, fault="remark")
    for script in ("oracle", "greedy", "random", "blind", "silent", "solo"):
        for seed in range(3):
            before, after = run(clean, script, seed), run(twin, script, seed)
            assert after.scores == before.scores
            assert received(after) == received(before)
            assert [e.id for e in after.events] == [e.id for e in before.events]
    told = run(twin)
    votes = [e.decision for e in told.events if e.decision and e.agent == "0"]
    assert REMARK in told.text(votes[-1].observation)
    assert REMARK not in run(clean).contents.values()


def test_honest_juries_blame_nobody():
    task = Jury(liars=0)
    assert all(blame(task, run(task, seed=s), task.begin(s).hidden) is None for s in range(20))


@pytest.mark.parametrize("name", topology.NAMES)
def test_the_family_conforms(name):
    check_task(Jury(topology=name), episodes=48)


def test_a_hundred_witnesses_conform():
    rules = {"witnesses": 100, "copies": 10, "liars": 5, "faint": 81}
    check_task(Jury(classes=2, topology="hierarchical", **rules), episodes=8)


def test_votes_on_many_claims_are_exact():
    """900 keen pieces: likelihoods far below the smallest number that a computer knows."""
    task = Jury(classes=2, witnesses=900, copies=0, liars=0)
    kinds = case_of(task).kinds
    keen = [n for n in range(900) if kinds[case_of(task).holds[n]] == "keen"]
    claims = {n: place % 2 for place, n in enumerate(keen)}
    odd = len(keen) % 2
    r = KINDS["keen"]
    assert posterior(task, claims)[0] == pytest.approx(r if odd else 0.5)
    assert posterior(task, dict.fromkeys(range(900), 1)).tolist() == [0.0, 1.0]
