"""Two groups of traces: paired by task and seed, or held apart."""

import numpy as np
import pytest

from stretto.errors import StrettoError
from stretto.metrics import groups
from stretto.metrics.groups import compare_groups
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.trace import Agent

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
    assert (agents.low, agents.high, agents.no_interval) == (None, None, "all gaps are equal")
    assert agents.less == sum(gap < 0 for gap in gaps)
    same = compare_groups(many, many).measures.values()
    assert {(each.difference, each.low, each.high) for each in same} == {(0, None, None)}
    assert {each.no_interval for each in same} == {"all gaps are equal"}


def test_the_interval_is_that_of_the_pairs_in_which_a_measure_is_known():
    """Gaps 0, 0, 0, 0, 0, 10; in four more pairs the work of the second is unknown.

    Their mean is 5/3, their variance 50/3, the standard error 5/3; t of 5 degrees is 2.5706.
    """
    gaps = [0, 0, 0, 0, 0, 10, None, None, None, None]
    first = runs(*[1.0] * 10)
    second = runs(*[None if gap is None else 1.0 + gap for gap in gaps])
    work = compare_groups(first, second).measures["work"]
    assert work.traces == (6, 6)
    assert work.difference == pytest.approx(5 / 3)
    assert (work.high - work.difference) == pytest.approx(2.5706 * 5 / 3, rel=2e-3)
    assert (work.difference - work.low) == pytest.approx(2.5706 * 5 / 3, rel=2e-3)
    assert (work.greater, work.less, work.no_interval) == (1, 0, "")


def test_few_pairs_have_no_interval():
    work = compare_groups(runs(1, 2, 3, 4, 5), runs(2, 2, 3, 4, 9)).measures["work"]
    assert (work.difference, work.low, work.high) == (1.0, None, None)
    assert work.no_interval == "fewer than 6 pairs"


def test_gaps_that_are_equal_but_for_rounding_have_no_interval():
    """0.1 + 0.2 is not 0.3: the gaps differ by a ten-millionth of a billionth."""
    first = [0.1 * n for n in range(8)]
    work = compare_groups(runs(*first), runs(*[each + 0.2 for each in first])).measures["work"]
    assert work.difference == pytest.approx(0.2)
    assert (work.low, work.high, work.no_interval) == (None, None, "all gaps are equal")


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Normal gaps: 95 % of 400 intervals, give or take three standard errors of that share."""
    random = np.random.default_rng(3)
    for count in (6, 30):
        gaps = 20 + random.normal(1, 1, (400, count))
        found = [groups._interval(float(each.mean()), each) for each in gaps]
        assert 0.95 - 0.033 < np.mean([low <= 21 <= high for low, high in found]) < 0.95 + 0.033


def test_how_the_worst_is_known_and_what_is_missing_is_told():
    """The second group's helpers left no transcript, in two of three; a bound of it is none."""
    hidden = (Agent(id="0"), Agent(id="0/0", parent="0", attrs={"transcript": False}))
    second = [
        trace(*each.events, task="t", seed=each.seed, agents=hidden if each.seed else each.agents)
        for each in runs(2.0, 3.0, 4.0)
    ]
    found = compare_groups(runs(1.0, 1.0, 1.0), second).measures
    assert found["agents"].how == "recorded" and found["agents"].reason == ""
    assert found["work"].how == "derived"
    assert found["work"].reason == (
        "in the second: 2 of 3 traces: 1 of 2 agents left no transcript"
    )
    assert found["work"].no_interval == "fewer than 6 pairs"


@pytest.mark.parametrize("task", ["unknown", "t"])
def test_groups_of_unknown_or_other_tasks_are_not_paired(task):
    """Means 2 and 5; no pair says which is greater.

    Variances 0.8 and 1.2 of 6 and 6: an error of 0.5774 at 9.6 degrees of freedom, where t of 10
    is 2.2281.
    """
    one, other = (1, 1, 2, 2, 3, 3), (4, 4, 4, 6, 6, 6)
    found = compare_groups(
        runs(*one, task=task, seeds=False), runs(*other, task="unknown", seeds=False)
    )
    assert not found.paired
    assert found.left_out == (0, 0)
    assert found.reason == "the two groups have no known task and seed in common"
    work = found.measures["work"]
    assert work.traces == (6, 6)
    assert (work.first, work.second, work.difference) == (2.0, 5.0, 3.0)
    assert (work.greater, work.less) == (None, None)
    reach = 2.2281 * (0.8 / 6 + 1.2 / 6) ** 0.5
    assert (work.low, work.high) == pytest.approx((3 - reach, 3 + reach), rel=2e-3)


def test_the_interval_of_groups_that_are_apart_has_the_variance_of_both():
    """Means of 40 and 60 normal values: t of some 98 degrees of freedom is 1.984."""
    random = np.random.default_rng(4)
    one, other = random.normal(20, 2, 40), random.normal(20, 3, 60)
    found = compare_groups(runs(*one, task="unknown"), runs(*other, task="unknown"))
    work = found.measures["work"]
    error = np.sqrt(one.var(ddof=1) / 40 + other.var(ddof=1) / 60)
    assert work.high - work.low == pytest.approx(2 * 1.984 * error, rel=2e-3)


def test_a_small_group_that_has_no_partner_has_no_interval():
    six = runs(3.0, 5.0, 3.0, 5.0, 3.0, 5.0)
    work = compare_groups(runs(1.0, task="unknown"), six).measures["work"]
    assert (work.difference, work.low, work.high) == (3.0, None, None)
    assert work.no_interval == "a group of fewer than 6 traces"
    flat = compare_groups(runs(*[1.0] * 6, task="unknown"), runs(*[4.0] * 6)).measures["work"]
    assert (flat.difference, flat.low, flat.no_interval) == (3.0, None, "neither group varies")


def test_an_empty_group_is_refused():
    with pytest.raises(StrettoError, match="a group has no traces"):
        compare_groups([], runs(1.0))
