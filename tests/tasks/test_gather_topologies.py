"""The six topologies of `gather`: one table, and who hands out, who hands up, who is told."""

from collections import Counter
from itertools import chain
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks.conformance import check_task
from stretto.tasks.gather import RETURN, Gather, instance_of
from stretto.tasks.gather.scripts import scripts, team
from stretto.tasks.menus import size_of
from stretto.tasks.scripts import offered, score
from stretto.tasks.topology import NAMES, copied_to, seating
from stretto.team.engine import rollout
from stretto.team.interventions import Force, Null
from stretto.team.what_if import what_if

ALL = pytest.mark.parametrize("name", NAMES)
ONE_CELL = {"entities": 1, "attributes": 1, "cells_per_document": 1, "redundancy": 1}
LAZY = Scripted(lambda ask: RETURN)


def play(task, policies=None, seed=0):
    return rollout(task, policies or team(), [seed])[0]


def events(trace, kind):
    return [event for event in trace.events if event.kind == kind]


def seen(trace, agent):
    """What an agent saw, and what it could choose."""
    turns = [event.decision for event in trace.events if event.decision and event.agent == agent]
    return [(trace.text(turn.observation), turn.candidates) for turn in turns]


def workers_of(trace):
    return sum(agent.role == "worker" for agent in trace.agents)


# ---- the same in all


@ALL
@pytest.mark.parametrize("script", ["oracle", "silent"])
def test_the_table_is_perfect(name, script):
    for seed in range(6):
        task = Gather(topology=name, seed=seed)
        trace = play(task, scripts(task)[script], seed)
        assert trace.reward("outcome") == 1.0
        assert trace.topology == name
        assert (len(trace.agents) == 1) == (script == "silent")


@ALL
@given(seed=st.integers(0, 10**6), workers=st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_teams_sit_and_write_as_the_mask_says(name, seed, workers):
    trace = play(Gather(topology=name, seed=seed, workers=workers), seed=seed)
    order = {"lead": 0, "critic": 1, "sublead": 1, "worker": 2}
    agents = sorted(trace.agents, key=lambda agent: order[agent.role])
    seat = {agent.id: number for number, agent in enumerate(agents)}
    seats = seating(name, workers)
    assert tuple(agent.role for agent in agents) == seats.roles
    assert tuple(seat.get(agent.parent, -1) for agent in agents) == seats.parents
    letters = [event for event in trace.events if event.kind in ("message", "return")]
    if not seats.memory:
        assert {(seat[event.agent], seat[event.to]) for event in letters} <= seats.edges


@ALL
def test_instances_and_shares_do_not_depend_on_who_hands_them_out(name):
    task = Gather(topology=name, seed=3)
    assert instance_of(task) == instance_of(Gather(seed=3))
    given = [e.attrs["cells"] for e in events(play(task), "spawn") if e.attrs["role"] == "worker"]
    assert [*chain.from_iterable(given)] == list(instance_of(task).truth)


@ALL
def test_what_workers_leave_is_open_again_and_no_more_are_sent_than_may_be(name):
    trace = play(Gather(topology=name, workers=7), {**team(), "worker": LAZY})
    assert workers_of(trace) == 7
    assert trace.reward("outcome") == 1.0
    assert {e.agent for e in trace.events if e.tool == "write_cell"} == {"0"}


@ALL
@pytest.mark.parametrize(
    "size",
    [
        {"entities": 4},
        {"entities": 2, "attributes": 2, "workers": 1},
        {"entities": 5, "workers": 16, "wrong": 0.9, "cells_per_document": 5},
    ],
)
def test_every_topology_conforms(name, size):
    check_task(Gather(topology=name, seed=7, **size), episodes=8)


def test_in_a_star_nothing_is_recorded_of_the_others():
    trace = play(Gather())
    assert {tuple(e.attrs) for e in events(trace, "spawn")} == {("role", "cells")}
    assert {tuple(e.attrs) for e in events(trace, "return")} == {("filled", "left")}
    assert not events(trace, "message")
    assert set(Gather().harness.tools) == {"search", "read", "write_cell", "submit"}


def test_unknown_topologies_are_refused():
    with pytest.raises(StrettoError, match='no topology "swarn"') as caught:
        Gather(topology="swarn")
    assert caught.value.where == "task.topology"


# ---- hierarchical, planner_executor_critic


def test_a_sublead_hands_down_and_up():
    task = Gather(topology="hierarchical", entities=2, attributes=2)
    cells = list(instance_of(task).truth)
    trace = play(task)
    assert [(e.agent, e.to, e.attrs) for e in events(trace, "spawn")] == [
        ("0", "0/0", {"role": "sublead", "cells": cells[:2], "below": 2}),
        ("0/0", "0/0/0", {"role": "worker", "cells": cells[:1]}),
        ("0/0", "0/0/1", {"role": "worker", "cells": cells[1:2]}),
        ("0", "0/1", {"role": "sublead", "cells": cells[2:], "below": 2}),
        ("0/1", "0/1/0", {"role": "worker", "cells": cells[2:3]}),
        ("0/1", "0/1/1", {"role": "worker", "cells": cells[3:]}),
    ]
    assert seen(trace, "0/0") == [
        ("Filled: two cells.\nOpen: no cells.", ("report", "leave")),
    ]
    truth = instance_of(task).truth
    up = [e.attrs for e in events(trace, "return") if e.agent == "0/1"]
    assert up == [{"filled": {cell: truth[cell] for cell in cells[2:]}, "left": []}]


def test_a_sublead_hands_up_what_its_workers_left():
    task = Gather(topology="hierarchical", entities=2, attributes=2)
    trace = play(task, {**team(), "worker": LAZY})
    assert seen(trace, "0/0")[0][0] == "Filled: no cells.\nOpen: two cells."
    assert seen(trace, "0")[1][0] == "Open: four cells."


def test_what_a_critic_drops_the_lead_does_not_know_but_the_table_does():
    task = Gather(topology="planner_executor_critic", entities=2, attributes=2)
    trace = play(task)
    assert [a.role for a in trace.agents] == ["lead", "critic", *["worker"] * 4]
    (turn,) = [e.id for e in trace.events if e.decision and e.agent == "0/0"]
    assert seen(trace, "0/0")[0][1] == ("pass", "drop")
    assert trace.text(events(trace, "aggregate")[0].content).count(",") == 3
    dropped = what_if(trace, turn, Force("drop"), task=task, policies=team()).trace
    assert dropped.text(events(dropped, "aggregate")[0].content) == "Filled: none."
    assert dropped.reward("outcome") == 1.0


def test_who_stands_between_is_paid_for():
    task = Gather(topology="hierarchical", worker_cost=0.02, second_cost=0.0)
    trace = play(task)
    assert score(task, trace, priced=True) == pytest.approx(1 - 0.02 * (4 + 2))


# ---- debate, swarm


@pytest.mark.parametrize("name", ["debate", "swarm"])
def test_who_returns_tells_its_peers_what_it_read_of_cells_of_others(name):
    for seed in range(4):
        trace = play(Gather(topology=name, seed=seed, workers=5))
        owned = {e.to: set(e.attrs["cells"]) for e in events(trace, "spawn")}
        read = {agent: set() for agent in owned}
        for event in trace.events:
            if event.kind == "tool_result" and event.tool == "read":
                read[event.agent] |= event.attrs["statements"].keys()
        told = Counter((e.agent, e.to) for e in events(trace, "message"))
        assert told == Counter(
            {(f"0/{n}", f"0/{peer}"): 1 for n in range(5) for peer in copied_to(name, 5, n)}
        )
        for event in events(trace, "message"):  # nothing that it only heard itself
            assert event.attrs["read"].keys() == read[event.agent] - owned[event.agent]


def test_what_a_peer_told_need_not_be_read():
    """Somewhere a worker writes what it never read; without the message it has to read it."""
    for seed in range(30):
        task = Gather(topology="debate", seed=seed, workers=5)
        trace = play(task)
        plain = play(replace(task, topology="centralized"))
        reads = [sum(e.tool == "read" for e in events(t, "tool_call")) for t in (trace, plain)]
        if reads[0] < reads[1]:
            break
    else:
        pytest.fail("no message spared a reading")
    worlds = [
        what_if(trace, event.id, Null(), task=task, policies=team())
        for event in events(trace, "message")
    ]
    assert {world.difference for world in worlds} == {0.0}
    most = max(sum(e.tool == "read" for e in events(w.trace, "tool_call")) for w in worlds)
    assert most > reads[0]


def test_a_second_team_tells_its_own_peers():
    trace = play(Gather(topology="swarm", workers=6), some_at_a_time())
    teams = [e for e in events(trace, "spawn") if "team" in e.attrs]
    assert [e.attrs["team"] for e in teams] == [3, 3, 3, 2, 2]
    first = {e.to: int(e.to[2:]) - e.attrs["number"] for e in teams}
    told = [(e.agent, e.to) for e in events(trace, "message")]
    assert len(told) == 6 + 2
    assert all(first[sender] == first[receiver] for sender, receiver in told)


def some_at_a_time():
    """The lead sends half of those whom it may; they do nothing; then it works alone."""
    rest = team()["lead"]

    class Lead:
        def decide(self, asks):
            (ask,) = asks
            spawns = sorted(offered(ask, "spawn"), key=lambda choice: size_of(choice[6:]))[-2:]
            if "read memory" in ask.candidates or not spawns:
                return rest.decide(asks)
            return Scripted(lambda _: spawns[0]).decide(asks)

    return {**team(), "lead": Lead(), "worker": LAZY}


def test_two_hundred_debaters_are_quick():
    task = Gather(topology="debate", entities=100, attributes=4, workers=200)
    instance_of(task)
    began = process_time()
    trace = play(task)
    assert process_time() - began < 3.0  # of this process: the machine may be busy
    assert len(events(trace, "message")) == 200 * 199
    assert trace.reward("outcome") == 1.0


# ---- harness


def test_a_shared_memory_by_hand():
    task = Gather(topology="harness", **ONE_CELL)
    trace = play(task)
    assert [(e.agent, e.kind, e.tool) for e in trace.events[11:]] == [
        ("0/0", "decision", None),
        ("0/0", "tool_call", "memory.write"),
        ("0/0", "tool_result", "memory.write"),
        ("0/0", "return", None),
        ("0/0", "despawn", None),
        ("0", "decision", None),
        ("0", "tool_call", "memory.read"),
        ("0", "tool_result", "memory.read"),
        ("0", "decision", None),
        ("0", "aggregate", None),
        ("0", "tool_call", "submit"),
        ("0", "tool_result", "submit"),
        ("0", "stop", None),
    ]
    menus = [set(menu) for _, menu in seen(trace, "0")]
    assert menus[1:] == [{"read memory", "submit as is"}, {"submit as is"}]
    ((cell, value),) = instance_of(task).truth.items()
    (read,) = [e for e in trace.events if e.kind == "tool_result" and e.tool == "memory.read"]
    assert trace.text(read.content) == f"Filled: {cell} {value}."
    causes = {edge.src: edge.label for edge in trace.edges if edge.dst == read.id}
    assert causes["0/0#11"] == "tool_dependency"


def test_a_memory_says_what_is_new_since_it_was_read():
    trace = play(Gather(topology="harness", workers=6, entities=3), some_at_a_time())
    reads = [e for e in events(trace, "tool_result") if e.tool == "memory.read"]
    assert [len(e.attrs["left"]) for e in reads] == [9, 9, 9]
    causes = Counter(edge.dst for edge in trace.edges if edge.src.startswith("0/"))
    assert [causes[e.id] for e in reads] == [3, 2, 1]
    assert trace.reward("outcome") == 1.0


def test_a_lead_that_reads_no_memory_knows_of_nothing():
    task = Gather(topology="harness", entities=2)
    blunt = Scripted(lambda ask: offered(ask, "spawn", "submit")[0])
    trace = play(task, {**team(), "worker": LAZY, "lead": blunt})
    assert not [e for e in trace.events if e.tool == "memory.read"]
    assert trace.reward("outcome") == 0.0
