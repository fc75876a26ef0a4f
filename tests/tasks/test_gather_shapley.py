"""Exact Shapley values of agents of `gather`, against computations by other means."""

from itertools import combinations
from math import comb
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.credit import Setup, assign_credit
from stretto.errors import StrettoError
from stretto.rewards.stream import final
from stretto.tasks.gather import Gather, instance_of
from stretto.tasks.gather.oracle import score_table
from stretto.tasks.gather.scripts import random, team
from stretto.tasks.gather.shapley import Share, _gauss, gather_shapley, shares_of, worker_values
from stretto.tasks.scouts import Scouts
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout


def worth(here, shares, lead, rows, columns):
    """`F1 = 2 R / (columns · P + columns · rows)` of the lead and those here whom nobody lacks."""
    there = [shares[index] for index in here if all(a in here for a in line(shares, index))]
    touched = lead.rows.union(*(share.rows for share in there))
    right = lead.right + sum(share.right for share in there)
    return 2 * right / (columns * (len(touched) + rows))


def line(shares, index):
    """Those whom an agent needs."""
    above = shares[index].above
    return [] if above is None else [above, *line(shares, above)]


def brute(shares, lead, rows, columns):
    """By the definition, over all coalitions."""
    count = len(shares)
    found = np.zeros(count)
    for k in range(count):
        others = [index for index in range(count) if index != k]
        for size in range(count):
            for here in combinations(others, size):
                game = (shares, lead, rows, columns)
                gain = worth([*here, k], *game) - worth(here, *game)
                found[k] += gain / (count * comb(count - 1, size))
    return found


def counted(shares, lead, rows, columns, k):
    """One worker's value by counting coalitions by size and rows: no integrals, workers in order.

    `number[s, p, touched]` coalitions of `s` others touch `p` rows, the last shared one or not;
    `right` holds the sum of their right cells. Only for shares that are runs of cells.
    """
    order = sorted(range(len(shares)), key=lambda j: min(shares[j].rows))
    total = 0.0
    for joined in (True, False):
        number, right = tally(shares, order, k, joined, len(lead.rows), lead.right)
        sizes, touched = np.indices(number.shape)
        chance = 1 / (
            len(shares) * np.array([float(comb(len(shares) - 1, s)) for s in sizes[:, 0]])
        )
        value = 2 * right / (columns * (touched + rows)) * chance[:, None]
        total += value.sum() if joined else -value.sum()
    return total


def tally(shares, order, k, joined, base_rows, base_right):
    count, most = len(order), base_rows + len(frozenset().union(*(s.rows for s in shares)))
    number = np.zeros((2, count, most + 1))
    number[0, 0, base_rows] = 1.0
    right = number * base_right
    last = None
    for j in order:
        own = shares[j]
        first, final = min(own.rows), max(own.rows)
        if last != first:  # nobody before it has touched this row
            number[0], right[0] = number.sum(axis=0), right.sum(axis=0)
            number[1], right[1] = 0.0, 0.0
        here, gone = (np.zeros_like(number) for _ in range(2))
        here_right, gone_right = (np.zeros_like(number) for _ in range(2))
        for touched in (0, 1):
            fresh = len(own.rows) - touched
            grow = 0 if j == k else 1
            here[1, grow:, fresh:] += number[touched, : count - grow, : most + 1 - fresh]
            here_right[1, grow:, fresh:] += (
                right[touched, : count - grow, : most + 1 - fresh]
                + own.right * number[touched, : count - grow, : most + 1 - fresh]
            )
            stays = touched if first == final else 0
            gone[stays] += number[touched]
            gone_right[stays] += right[touched]
        if j == k:
            number, right = (here, here_right) if joined else (gone, gone_right)
        else:
            number, right = here + gone, here_right + gone_right
        last = final
    return number.sum(axis=0), right.sum(axis=0)


NOTHING = Share(0, frozenset())


def test_two_workers_by_hand():
    """A table of two rows of one cell; each worker fills one, the second wrongly.

    v(1) = 2/3, v(2) = 0, v(1, 2) = 2/4: the first gets (2/3 + 1/2) / 2, the other the rest.
    """
    shares = [Share(1, frozenset({0})), Share(0, frozenset({1}))]
    expected = [7 / 12, 1 / 2 - 7 / 12]
    assert worker_values(shares, NOTHING, 2, 1).tolist() == pytest.approx(expected, abs=1e-14)


def test_a_worker_and_whom_it_needs_by_hand():
    """One cell, written by a worker that a critic sent: worth 1 together, nothing alone."""
    shares = [Share(0, frozenset()), Share(1, frozenset({0}), above=0)]
    assert worker_values(shares, NOTHING, 1, 1).tolist() == pytest.approx([0.5, 0.5], abs=1e-14)
    idle = Share(0, frozenset(), above=0)  # changes nothing
    found = worker_values([*shares, idle], NOTHING, 1, 1).tolist()
    assert found == pytest.approx([0.5, 0.5, 0.0], abs=1e-14)


def test_workers_that_did_alike_get_alike():
    shares = [Share(3, frozenset({row})) for row in range(40)]
    found = worker_values(shares, NOTHING, 50, 3)
    assert found == pytest.approx(
        np.full(40, worth(range(40), shares, NOTHING, 50, 3) / 40), abs=1e-13
    )


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_shares_against_all_coalitions(data):
    """Rows are shared in any way, with the lead too; some workers did nothing."""
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    some = st.builds(Share, st.integers(0, 5), st.frozensets(st.integers(0, rows - 1)))
    shares = data.draw(st.lists(some, max_size=7))
    lead = data.draw(some)
    found = worker_values(shares, lead, rows, columns)
    assert found == pytest.approx(brute(shares, lead, rows, columns), abs=1e-12)
    idle = [k for k, share in enumerate(shares) if share == NOTHING]
    assert not found[idle].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("policies", [team(), random()])
def test_an_episode_against_the_game_that_is_run(policies, name):
    """The value of a coalition by folding the record without the others, over all coalitions."""
    task = Gather(entities=4, workers=4, topology=name)
    for trace in rollout(task, policies, range(2)):
        setup = Setup(task, policies)
        options = {"setup": setup, "intervention": "mask_frozen", "reward": paid}
        run = assign_credit(trace, "shapley", **options).of(trace.id)
        assert gather_shapley(trace) == pytest.approx(run, abs=1e-12)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_any_chain_of_command_against_all_coalitions(data):
    """Agents need others, who may need others; rows are shared in any way."""
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    shares = [
        Share(
            data.draw(st.integers(0, 3)),
            data.draw(st.frozensets(st.integers(0, rows - 1), max_size=3)),
            data.draw(st.sampled_from([None, *range(index)])),
        )
        for index in range(data.draw(st.integers(0, 6)))
    ]
    lead = Share(1, frozenset({0}))
    found = worker_values(shares, lead, rows, columns)
    assert found == pytest.approx(brute(shares, lead, rows, columns), abs=1e-12)


def paid(world):
    return final(world, world.reward("outcome") or 0.0)


@pytest.fixture(scope="module")
def crowd():
    """300 workers, whose shares split rows; one agent in ten wrote its first cell wrongly."""
    task = Gather(entities=220, workers=300)
    trace = rollout(task, team(), [0])[0]
    events = []
    for event in trace.events:
        if event.tool == "write_cell" and event.agent.endswith("7"):
            event = replace(event, attrs=event.attrs | {"value": "nonsense"})
        events.append(event)
    return task, replace(trace, events=tuple(events))


def test_three_hundred_agents_in_under_a_second_and_exact(crowd):
    task, trace = crowd
    own = shares_of(trace, task)
    workers = [agent.id for agent in trace.agents[1:]]
    assert len(workers) == 300
    gather_shapley(trace)  # the instance is drawn once
    began = process_time()
    found = gather_shapley(trace)
    assert process_time() - began < 1.0  # of this process: the machine may be busy
    shares = [own[name] for name in workers]
    assert len({share.right for share in shares}) > 2
    for k in (0, 7, 151, 299):
        expected = counted(shares, own["0"], task.entities, task.attributes, k)
        assert found[workers[k]] == pytest.approx(expected, abs=1e-11)
    table = {
        e.attrs["cell"]: e.attrs["value"]
        for e in trace.events
        if e.kind == "tool_result" and e.tool == "write_cell"
    }
    f1 = score_table(instance_of(task).truth, table).item.f1
    assert sum(found.values()) == pytest.approx(f1, abs=1e-11)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 150])
def test_nodes_are_those_of_numpy(count):
    node, weight = np.polynomial.legendre.leggauss(count)
    found, own = _gauss(count)
    order = np.argsort(found)
    assert found[order] == pytest.approx((node + 1) / 2, abs=1e-15)
    assert own[order] == pytest.approx(weight / 2, abs=1e-14)


def test_counting_agrees_with_all_coalitions():
    """What the 300 are compared with is right where everything can be enumerated."""
    rng = np.random.default_rng(0)
    shares, cell = [], 0
    for size in rng.integers(1, 6, size=8):
        rows = frozenset(range(cell // 3, (cell + size - 1) // 3 + 1))
        shares.append(Share(int(rng.integers(0, size + 1)), rows))
        cell += size
    lead = Share(2, frozenset({40}))
    expected = brute(shares, lead, 45, 3)
    for k in range(8):
        assert counted(shares, lead, 45, 3, k) == pytest.approx(expected[k], abs=1e-12)


def test_the_method_uses_it_for_large_teams(crowd):
    task = Gather(entities=30, workers=40)
    trace = rollout(task, team(), [0])[0]
    setup = Setup(task, team())
    credit = assign_credit(trace, "shapley", setup=setup, intervention="mask_frozen")
    assert credit.of(trace.id) == dict(gather_shapley(trace))
    assert not credit.policy_tokens.any()
    with pytest.raises(StrettoError, match="too many to enumerate"):
        assign_credit(trace, "shapley", setup=setup, intervention="mask_rerun")


def test_what_is_refused():
    game = rollout(Scouts(), random(), [0])[0]
    with pytest.raises(StrettoError, match="not one of gather"):
        gather_shapley(game)
    trace = rollout(Gather(), team(), [0])[0]
    twice = [
        replace(e, attrs=e.attrs | {"cell": "gofap colour"}) if e.tool == "write_cell" else e
        for e in trace.events
    ]
    with pytest.raises(StrettoError, match="two agents wrote gofap colour: 0/"):
        gather_shapley(replace(trace, events=tuple(twice)))
    wide = [Share(1, frozenset({row, row + 9})) for row in range(9)]
    with pytest.raises(StrettoError, match="9 rows are shared"):
        worker_values([*wide, Share(1, frozenset(range(9, 18)))], NOTHING, 18, 1)
