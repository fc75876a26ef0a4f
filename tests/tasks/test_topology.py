"""The six topologies as masks: who sits where, who spawns whom, who may write to whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks.gather import Gather
from stretto.tasks.hops import Hops
from stretto.tasks.jury import Jury
from stretto.tasks.menus import invented, shares, shuffled, size_of, team_sizes
from stretto.tasks.scripts import scripts_of
from stretto.tasks.topology import NAMES, copied_to, require_topology, seating
from stretto.team.engine import rollout
from stretto.trace import TOPOLOGIES

ALL = pytest.mark.parametrize("name", NAMES)


def test_a_star_by_hand():
    seats = seating("centralized", 2)
    assert seats.roles == ("lead", "worker", "worker")
    assert seats.parents == (-1, 0, 0)
    assert seats.mask.tolist() == [[False, True, True], [True, False, False], [True, False, False]]


def test_a_debate_is_everybody_with_everybody():
    mask = seating("debate", 3).mask
    assert (mask == ~np.eye(4, dtype=bool)).all()


def test_a_swarm_is_a_star_and_a_ring():
    assert seating("swarm", 4).edges - seating("centralized", 4).edges == {
        (1, 2), (2, 3), (3, 4), (4, 1), (2, 1), (3, 2), (4, 3), (1, 4),
    }  # fmt: skip


def test_a_critic_stands_between_the_workers_and_the_lead():
    seats = seating("planner_executor_critic", 2)
    assert seats.roles == ("lead", "critic", "worker", "worker")
    assert seats.parents == (-1, 0, 1, 1)
    assert seats.edges == {(0, 2), (0, 3), (2, 1), (3, 1), (1, 0)}


def test_a_hierarchy_has_as_many_subleads_as_workers_each():
    seats = seating("hierarchical", 9)
    assert seats.roles == ("lead", *["sublead"] * 3, *["worker"] * 9)
    assert seats.parents == (-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
    assert (4, 1) in seats.edges and (1, 4) in seats.edges
    assert (4, 0) not in seats.edges and (4, 5) not in seats.edges


def test_a_harness_has_a_memory_in_the_place_of_messages():
    seats = seating("harness", 3)
    assert seats.memory and not seats.edges
    assert not any(seating(name, 3).memory for name in NAMES if name != "harness")


@ALL
@given(workers=st.integers(0, 30))
def test_everybody_is_spawned_by_somebody_before_and_nobody_writes_to_itself(name, workers):
    seats = seating(name, workers)
    assert seats.roles.count("worker") == workers
    assert all(-1 <= parent < seat for seat, parent in enumerate(seats.parents))
    assert seats.parents.count(-1) == 1
    assert not seats.mask.diagonal().any()


@ALL
@given(workers=st.integers(1, 12))
def test_every_worker_reaches_the_lead_unless_there_is_a_memory(name, workers):
    seats = seating(name, workers)
    size = len(seats.roles)
    reach = np.linalg.matrix_power(seats.mask.astype(int) + np.eye(size, dtype=int), size)
    assert (reach[-workers:, 0] > 0).all() != seats.memory


@ALL
@given(workers=st.integers(1, 12))
def test_copies_go_only_where_the_mask_allows(name, workers):
    seats = seating(name, workers)
    first = len(seats.roles) - workers
    for worker in range(workers):
        for other in copied_to(name, workers, worker):
            assert (first + worker, first + other) in seats.edges


@ALL
@pytest.mark.parametrize(
    "task", [Hops(width=4, depth=2, worker_cost=0.0), Jury(witnesses=5), Gather()]
)
def test_teams_sit_and_write_as_the_mask_says(name, task):
    task = replace(task, topology=name)
    (trace,) = rollout(task, scripts_of(task)["oracle"], [0])
    order = {"lead": 0, "critic": 1, "sublead": 1, "worker": 2}
    agents = sorted(trace.agents, key=lambda agent: order[agent.role])
    seat = {agent.id: number for number, agent in enumerate(agents)}
    seats = seating(name, sum(agent.role == "worker" for agent in agents))
    assert tuple(agent.role for agent in agents) == seats.roles
    assert tuple(seat.get(agent.parent, -1) for agent in agents) == seats.parents
    for event in trace.events:
        if event.kind in ("message", "return") and not seats.memory:
            assert (seat[event.agent], seat[event.to]) in seats.edges


def test_the_names_are_those_of_the_trace_and_others_are_refused():
    assert set(NAMES) == set(TOPOLOGIES) - {"mixed", "unknown"}
    with pytest.raises(StrettoError, match='no topology "swarn"') as caught:
        require_topology("swarn")
    assert caught.value.hint == 'did you mean "swarm"?'


def test_team_sizes_are_halves_of_the_most():
    assert team_sizes(9) == ("two", "three", "five", "nine")
    assert team_sizes(1) == ("one",)
    assert team_sizes(0) == ()
    assert [size_of(word) for word in team_sizes(300)] == [38, 75, 150, 300]


@given(st.lists(st.integers(), max_size=20), st.integers(1, 20))
def test_shares_are_even_and_complete(items, count):
    parts = shares(items, count)
    assert [item for part in parts for item in part] == items
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shuffles_are_fixed_by_seed_and_purpose():
    items = [str(n) for n in range(20)]
    assert sorted(shuffled(items, 1, "a")) == sorted(items)
    assert shuffled(items, 1, "a") == shuffled(items[::-1], 1, "a")
    assert shuffled(items, 1, "a") != shuffled(items, 2, "a") != shuffled(items, 2, "b")


def test_invented_names_are_distinct():
    assert len(set(invented(3, "x", 5_000))) == 5_000
