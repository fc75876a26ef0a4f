"""The agreement family: graphs, rounds of talk, and its exact side against brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks import topology
from stretto.tasks.agree import (
    Agree,
    anchors,
    culprit,
    instance_of,
    name_of,
    rounds_needed,
    talk_of,
)
from stretto.tasks.agree.instance import ALL_TALK, COLOURS, Instance
from stretto.tasks.agree.oracle import blame, bounds, member_values, new_facts
from stretto.tasks.agree.scripts import _flood
from stretto.tasks.agree.solve import (
    agreed,
    assignment_cost,
    best_assignment,
    distances,
    eccentricity,
    least_cost,
    proper_colouring,
    random_cost,
)
from stretto.tasks.conformance import check_task
from stretto.tasks.scripts import scripts_of
from stretto.tasks.words import number_word
from stretto.team.engine import rollout
from stretto.team.interventions import Null
from stretto.team.replay import replay
from stretto.team.what_if import what_if

PROBLEMS = ("majority", "maximum", "colouring", "cost")
TASKS = st.builds(
    Agree,
    problem=st.sampled_from(PROBLEMS),
    members=st.sampled_from([3, 5, 7, 9]),
    degree=st.sampled_from([2.0, 3.0, 4.5]),
    topology=st.sampled_from(topology.NAMES),
    seed=st.integers(0, 10**6),
)


def run(task, script="oracle", seed=0):
    return rollout(task, scripts_of(task)[script], [seed])[0]


def rounds_of(trace):
    """Most rounds that anybody waited for."""
    agents = [e.agent for e in trace.events if e.tool in ("round", "memory.read")]
    return max((agents.count(agent) // 2 for agent in set(agents)), default=0)


# ---- the game


def test_three_in_a_debate_by_hand():
    task = Agree(members=3, topology="debate")
    inputs = instance_of(task).inputs
    winner = COLOURS[agreed("majority", inputs)]
    assert sorted(inputs).count(agreed("majority", inputs)) == 2
    trace = run(task)
    own = {n: f"{name_of(n)}: {COLOURS[inputs[n]]}." for n in range(3)}
    turns = [e.decision for e in trace.events if e.decision and e.agent == "0/1"]
    assert [trace.text(turn.observation) for turn in turns] == [
        f"You are two.\nRound: none.\n{own[1]}",
        f"You are two.\nRound: one.\n{own[1]}\n{own[0]}\n{own[2]}",
    ]
    assert [turn.choice for turn in turns] == ["share", f"commit {winner}"]
    assert set(turns[0].candidates) == {"share", "wait", "commit red", "commit blue"}
    assert sum(e.kind == "message" for e in trace.events) == 6
    assert {s.channel: s.value for s in trace.scores} == {
        "outcome": 1.0,
        "success": 1.0,
        "right": 1.0,
    }


def test_what_is_written_in_a_round_is_read_when_it_is_over():
    """On a star nobody but the hub knows all after one round, whoever happens to act first."""
    task = Agree(topology="centralized")
    trace = run(task)
    facts = {}
    for event in trace.events:
        if event.decision and event.agent != "0":
            text = trace.text(event.decision.observation)
            facts.setdefault(event.agent, []).append(text.count(": ") - 1)
    assert facts["0/0"] == [1, 7, 7]
    assert all(facts[f"0/{n}"] == [1, 2, 7] for n in range(1, 7))


@pytest.mark.parametrize("name", topology.NAMES)
def test_nobody_writes_to_whom_the_topology_does_not_let_it(name):
    task = Agree(topology=name, members=9)
    allowed = {(a, b) for a, others in enumerate(talk_of(task)) for b in others}
    for script in ("oracle", "random"):
        for event in run(task, script).events:
            if event.kind == "message":
                ends = tuple(int(path.rpartition("/")[2]) for path in (event.agent, event.to))
                assert ends in allowed
    assert bool(allowed) == (name != "harness")


def test_in_a_swarm_neighbours_talk():
    task = Agree(members=9)
    pairs = {pair for pair, _ in instance_of(task).edges}
    assert {(a, b) for a, others in enumerate(talk_of(task)) for b in others if a < b} == pairs


def test_proposals_reach_the_neighbours_and_the_last_one_counts():
    task = Agree(problem="colouring", members=5, topology="debate")
    trace = run(task, "greedy")
    text = trace.text([e for e in trace.events if e.decision and e.agent == "0/4"][-1]
                      .decision.observation)  # fmt: skip
    assert all(f"{name_of(n)} takes " in text for n in range(4))


def test_who_talks_for_ever_must_commit_in_the_end():
    task = Agree(members=3)
    policy = Scripted(lambda ask: "wait" if "wait" in ask.candidates else ask.candidates[0])
    (trace,) = rollout(task, {"lead": policy, "member": policy}, [0])
    assert trace.attrs["ended"] == "stop"
    assert rounds_of(trace) == 5


def test_a_maximum_is_chosen_among_the_largest_known():
    task = Agree(problem="maximum", members=9, topology="debate")
    trace = run(task)
    last = [e.decision for e in trace.events if e.decision and e.agent == "0/0"][-1]
    best = sorted(instance_of(task).inputs)[-4:]
    assert {c for c in last.candidates if c.startswith("commit")} == {
        f"commit {number_word(n)}" for n in best
    }


@settings(max_examples=25, deadline=None)
@given(TASKS)
def test_the_oracle_is_right_after_the_least_rounds(task):
    trace = run(task)
    assert trace.reward("outcome") == trace.reward("success") == 1.0
    assert rounds_of(trace) == bounds(task).rounds
    assert replay(trace, task) is None
    written = sum(e.kind == "message" for e in trace.events)
    entries = sum(e.tool == "memory.write" for e in trace.events) // 2
    assert written + entries >= bounds(task).messages


@settings(max_examples=15, deadline=None)
@given(TASKS, st.integers(0, 99))
def test_chance_keeps_the_rules(task, seed):
    trace = run(task, "random", seed)
    assert replay(trace, task) is None
    assert trace.attrs["ended"] == "stop"
    assert 0 <= trace.reward("outcome") <= 1


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"members": 1, "problem": "cost"}, "task.members"),
        ({"members": 8}, "task.members"),
        ({"members": 901}, "task.members"),
        ({"members": 151, "problem": "colouring"}, "task.members"),
        ({"degree": 1.0}, "task.degree"),
        ({"degree": float("nan")}, "task.degree"),
        ({"problem": "cost", "fault": "lie"}, "task.fault"),
        ({"topology": "ring"}, "task.topology"),
    ],
)
def test_impossible_rules_are_refused(parameters, where):
    with pytest.raises(StrettoError) as caught:
        Agree(**parameters)
    assert caught.value.where == where


# ---- instances


@settings(max_examples=30, deadline=None)
@given(TASKS)
def test_instances_are_what_they_should_be(task):
    instance = instance_of(task)
    members = range(task.members)
    swarm = replace(task, topology="swarm")
    assert len(distances(talk_of(swarm), 0)) == task.members  # connected
    assert all(a < b for (a, b), _ in instance.edges)
    if task.problem == "majority":
        assert sorted(np.bincount(instance.inputs)) == [task.members // 2, task.members // 2 + 1]
    if task.problem == "maximum":
        assert len(set(instance.inputs)) == task.members
    if task.problem == "colouring":
        colours = best_assignment(instance, task.members)
        assert assignment_cost(instance, colours) == 0
    for member in members:
        for other, weight in instance.neighbours(member):
            assert (member, weight) in instance.neighbours(other)


def test_colourings_are_near_the_threshold():
    task = Agree(problem="colouring", members=100, degree=4.5)
    assert len(instance_of(task).edges) == 225
    assert anchors(task) == (75.0, 0)


# ---- the exact side


def test_a_line_by_hand():
    talk = ((1,), (0, 2), (1,))
    assert distances(talk, 0) == {0: 0, 1: 1, 2: 2}
    assert eccentricity(talk) == 2
    with pytest.raises(StrettoError, match="cannot be reached"):
        eccentricity(((1,), (0,), ()))


@settings(max_examples=25, deadline=None)
@given(TASKS)
def test_rounds_are_the_farthest_distance(task):
    talk = talk_of(task)
    if task.topology != "harness":
        far = [max(distances(talk, start).values()) for start in range(task.members)]
        assert eccentricity(talk) == rounds_needed(task) == max(far)


@pytest.mark.parametrize("members", [65, 67, 99, 101, 361])
def test_a_large_debate_is_one_of_rows_and_columns(members):
    task = Agree(members=members, topology="debate")
    talk = talk_of(task)
    assert rounds_needed(task) == 2
    assert max(map(len, talk)) <= 2 * (members**0.5 + 1)
    assert all(a in talk[b] for a, others in enumerate(talk) for b in others)
    whole = talk_of(Agree(members=ALL_TALK - 1, topology="debate"))
    assert {len(others) for others in whole} == {ALL_TALK - 2}


@pytest.mark.parametrize(
    ("name", "rounds"),
    [("debate", 1), ("centralized", 2), ("planner_executor_critic", 3), ("harness", 1)],
)
def test_rounds_of_the_topologies(name, rounds):
    assert rounds_needed(Agree(topology=name, members=9)) == rounds


def test_one_round_less_is_not_enough():
    for name in ("centralized", "hierarchical", "planner_executor_critic"):
        task = Agree(problem="maximum", members=9, topology=name)
        short = rounds_needed(task) - 1
        policy = Scripted(lambda ask, short=short: _flood(ask, "maximum", short))
        (trace,) = rollout(task, {"lead": policy, "member": policy}, [0])
        far = distances(talk_of(task), int(np.argmax(instance_of(task).inputs)))
        right = sum(distance <= short for distance in far.values()) / 9
        assert trace.reward("right") == right


def brute_force(instance, members):
    """Least cost over every assignment."""
    rows = product(range(3), repeat=members)
    return min(assignment_cost(instance, dict(enumerate(row))) for row in rows)


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 7), st.integers(0, 10**6))
def test_elimination_finds_the_least_cost(members, seed):
    instance = instance_of(Agree(problem="cost", members=members, seed=seed))
    found = best_assignment(instance, members)
    assert assignment_cost(instance, found) == brute_force(instance, members)


def test_a_weighted_triangle_by_hand():
    edges = (((0, 1), 5), ((0, 2), 5), ((1, 2), 5))
    prices = ((0, (0, 9, 9)), (1, (0, 1, 9)), (2, (0, 9, 3)))
    assert least_cost(edges, prices) == {0: 0, 1: 1, 2: 2}
    instance = Instance(edges, (), tuple(row for _, row in prices))
    assert assignment_cost(instance, {0: 0, 1: 1, 2: 2}) == 4
    assert random_cost(instance) == pytest.approx(5 + 18 / 3 + 10 / 3 + 12 / 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.data())
def test_backtracking_finds_a_colouring_exactly_where_there_is_one(members, data):
    pairs = [(a, b) for b in range(members) for a in range(b)]
    chosen = data.draw(st.sets(st.sampled_from(pairs)))
    edges = tuple((pair, 1) for pair in sorted(chosen))
    found = proper_colouring(tuple(range(members)), edges)
    instance = Instance(edges, (), ())
    exists = brute_force(instance, members) == 0
    assert (found is not None) == exists
    if found is not None:
        assert assignment_cost(instance, found) == 0


def test_graphs_that_three_colours_do_not_colour_are_refused():
    four = Instance(tuple(((a, b), 1) for b in range(4) for a in range(b)), (), ())
    with pytest.raises(StrettoError, match="three colours"):
        best_assignment(four, 4)


def test_shapley_values_of_inputs():
    task = Agree(members=3)
    inputs = instance_of(task).inputs
    values = member_values(task)
    winner = agreed("majority", inputs)
    assert values.sum() == pytest.approx(1.0)
    # Two of three for the winner: alone 1, with the third 1/2, all together 1.
    assert values == pytest.approx([7 / 12 if x == winner else -1 / 6 for x in inputs])
    top = member_values(Agree(problem="maximum", members=5))
    numbers = instance_of(Agree(problem="maximum", members=5)).inputs
    assert top == pytest.approx([float(x == max(numbers)) for x in numbers])
    for refused in (Agree(members=15), Agree(problem="cost")):
        with pytest.raises(StrettoError, match="not enumerated"):
            member_values(refused)


def test_messages_that_say_nothing_new_can_be_lost():
    task = Agree(members=7)
    policies = scripts_of(task)["oracle"]
    trace = run(task)
    news = new_facts(trace)
    assert sum(news.values()) == 7 * 6  # everybody learns all the others' inputs
    redundant = [event for event, count in news.items() if not count]
    assert len(redundant) > 5
    for event in redundant[:8]:
        lost = what_if(trace, event, Null(), task=task, policies=policies)
        assert lost.difference == 0.0


def test_in_a_star_every_first_message_to_the_hub_counts():
    task = Agree(topology="centralized", members=5)
    news = new_facts(run(task))
    first = {event: count for event, count in news.items() if not event.startswith("0/0#")}
    assert sorted(first.values()) == [0, 0, 0, 0, 1, 1, 1, 1]


# ---- blame


@pytest.mark.parametrize("problem", ["majority", "maximum"])
@pytest.mark.parametrize("name", topology.NAMES)
def test_the_lie_is_decisive(problem, name):
    task = Agree(problem=problem, members=5, topology=name, fault="lie")
    trace = run(task)
    liar = culprit(task)
    assert trace.reward("success") == 0.0
    assert trace.reward("right") <= 1 / 5  # only the liar knows better
    assert run(replace(task, fault=None)).reward("success") == 1.0
    found = blame(task, trace)
    assert found.agent == f"0/{liar}" == found.event.partition("#")[0]
    assert blame(task, run(task, "silent")) is None
    assert blame(replace(task, fault=None), trace) is None


# ---- the benchmark's rules


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["swarm", "harness", "planner_executor_critic"])
def test_the_family_conforms(problem, name):
    found = check_task(Agree(problem=problem, topology=name), episodes=16)
    assert found.normalised["silent"] < 0.6


@pytest.mark.parametrize("name", topology.NAMES)
def test_two_members_need_one_round_and_one_message_each(name):
    task = Agree(problem="maximum", members=2, topology=name)
    trace = run(task)
    assert trace.reward("outcome") == 1.0
    assert rounds_of(trace) == bounds(task).rounds == 1
    assert bounds(task).messages == 2
    assert len(trace.events) <= 31
    assert run(task, "silent").reward("outcome") == 0.0
    check_task(task, episodes=16)


@pytest.mark.parametrize("name", ["debate", "harness"])
def test_hundreds_of_members(name):
    trace = run(Agree(members=361, topology=name))
    assert trace.reward("success") == 1.0
    assert len(trace.events) > 3_162


def test_a_hundred_members():
    task = Agree(members=101)
    trace = run(task)
    assert trace.reward("success") == 1.0
    assert len(trace.events) > 4_000


@pytest.mark.parametrize("name", ["swarm", "centralized", "debate"])
def test_the_order_of_what_is_recorded_at_once_changes_no_value(name):
    """Messages before the spawns of their readers, and backwards within every second."""
    task = Agree(members=5, topology=name, fault="lie")
    trace = run(task)
    mixed = sorted(reversed(trace.events), key=lambda event: event.start)
    early = sorted(trace.events, key=lambda event: event.kind != "message")
    for events in (mixed, early):
        other = replace(trace, events=tuple(events))
        assert new_facts(other) == new_facts(trace)
    assert sum(new_facts(trace).values()) == 5 * 4


def test_names_of_members_change_no_value():
    task = Agree(members=5, fault="lie")
    trace = run(task)
    other = replace(
        trace,
        events=tuple(replace(e, agent=f"a{e.agent}", to=e.to and f"a{e.to}") for e in trace.events),
    )
    assert new_facts(other) == new_facts(trace)
    told = blame(task, trace)
    assert blame(task, other) == replace(told, agent=f"a{told.agent}")
