"""Two groups of traces: paired by task and seed, or held apart."""

import numpy as np
import pytest

from stretto.errors import StrettoError
from stretto.metrics.groups import compare_groups
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout

from ..examples import trace, turn


def lead(first):
    return {"lead": Scripted(lambda ask: first if "none" in ask.prompt else "stop")}


def runs(*seconds, task="t", seeds=True):
    """A trace of one turn each; no duration where the work is not to be known."""
    return [
        trace(turn("0#0", 0.0, each), task=task, seed=seed if seeds else None)
        for seed, each in enumerate(seconds)
    ]


def test_groups_are_paired_by_task_and_seed():
    """Three scouts at once take one second; one takes one as well, and costs two agents less."""
    many = rollout(Scouts(horizon=3, width=3), lead("three"), range(10))
    few = rollout(Scouts(horizon=3, width=3), lead("one"), range(4, 14))
    found = compare_groups(many, few)
    assert (found.paired, found.reason, found.left_out) == (True, "", (4, 4))
    agents = found.measures["agents"]
    assert agents.traces == (6, 6)
    assert agents.first == 4.0
    gaps = [
        len(few[n].agents) - len(many[n + 4].agents) for n in range(6)
    ]  # the same seeds, by hand
    assert agents.difference == pytest.approx(sum(gaps) / 6)
    assert agents.low <= agents.difference <= agents.high
    assert agents.less == sum(gap < 0 for gap in gaps)
    assert compare_groups(many, few) == found  # the bootstrap has a seed
    same = compare_groups(many, many).measures
    assert {(each.difference, each.low, each.high) for each in same.values()} == {(0, 0, 0)}


def test_the_interval_is_that_of_the_pairs_in_which_a_measure_is_known():
    """Gaps 0, 0, 0, 0, 0, 10; in four more pairs the work of the second is unknown.

    The mean of six draws of six is 10 k / 6 with k of a binomial of 6 and 1/6: at least 97.5 % of
    them are 0, 1, 2 or 3 tens (0.335 + 0.402 + 0.201 + 0.054), and 2.5 % are nothing.
    """
    gaps = [0, 0, 0, 0, 0, 10, None, None, None, None]
    first = runs(*[1.0] * 10)
    second = runs(*[None if gap is None else 1.0 + gap for gap in gaps])
    work = compare_groups(first, second).measures["work"]
    assert work.traces == (6, 6)
    assert (work.difference, work.low, work.high) == (pytest.approx(10 / 6), 0.0, 5.0)
    assert (work.greater, work.less) == (1, 0)


def test_one_pair_has_no_interval():
    work = compare_groups(runs(1.0), runs(3.0)).measures["work"]
    assert (work.difference, work.low, work.high) == (2.0, None, None)
    assert work.reason == "one pair has no interval"


@pytest.mark.parametrize("task", ["unknown", "t"])
def test_groups_of_unknown_or_other_tasks_are_not_paired(task):
    """Means 2 and 5; no pair says which is greater."""
    found = compare_groups(
        runs(1.0, 2.0, 3.0, task=task, seeds=False), runs(4.0, 6.0, task="unknown", seeds=False)
    )
    assert not found.paired
    assert found.left_out == (0, 0)
    assert found.reason == "the two groups have no known task and seed in common"
    work = found.measures["work"]
    assert work.traces == (3, 2)
    assert (work.first, work.second, work.difference) == (2.0, 5.0, 3.0)
    assert (work.greater, work.less) == (None, None)
    assert 1.0 <= work.low < 3.0 < work.high <= 5.0


def test_the_interval_of_groups_that_are_apart_has_the_variance_of_both():
    """Means of 40 and 60 normal values: 1.96 standard errors to either side, to a fifth."""
    random = np.random.default_rng(4)
    one, other = random.normal(20, 2, 40), random.normal(20, 3, 60)
    found = compare_groups(runs(*one, task="unknown"), runs(*other, task="unknown"))
    work = found.measures["work"]
    error = np.sqrt(one.var() / 40 + other.var() / 60)
    assert work.high - work.low == pytest.approx(2 * 1.96 * error, rel=0.2)


def test_a_group_of_one_that_has_no_partner_has_no_interval():
    work = compare_groups(runs(1.0, task="unknown"), runs(3.0, 5.0)).measures["work"]
    assert (work.difference, work.low, work.high) == (3.0, None, None)
    assert work.reason == "a group of one trace has no interval"


def test_an_empty_group_is_refused():
    with pytest.raises(StrettoError, match="a group has no traces"):
        compare_groups([], runs(1.0))
