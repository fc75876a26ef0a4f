"""Which single-agent baseline a trace is held against, and why none."""

import pytest

from stretto.metrics import measure
from stretto.metrics.baselines import find_baseline

from ..examples import event, trace, turn

AGAINST = ("turn_overhead", "token_overhead", "price_overhead", "speedup")


def run(id, seconds=1.0, **fields):
    return trace(turn("0#0", 0.0, seconds), id=id, **fields)


@pytest.mark.parametrize(
    ("own", "others", "why"),
    [
        ({"task": "x"}, [{"task": "y"}], "the baseline is of another task"),
        ({}, [{"task": "x"}, {"task": "y"}], "the task is not known, and there are 2 baselines"),
        (
            {"task": "x", "seed": 1},
            [{"task": "x", "seed": 2}, {"task": "y", "seed": 1}],
            "no baseline is of the same task and seed",
        ),
        (
            {"task": "x", "seed": 1},
            [{"task": "x", "seed": 1}] * 2,
            "2 baselines are of the same task and seed",
        ),
    ],
)
def test_a_baseline_that_does_not_fit_is_the_reason_of_what_is_unknown(own, others, why):
    given = run("own", **own)
    baseline = find_baseline(given, [run(f"b{n}", **each) for n, each in enumerate(others)])
    assert baseline == why
    found = measure(given, baseline=baseline)
    assert {(found[name].value, found[name].reason) for name in AGAINST} == {(None, why)}


def test_the_baseline_of_a_trace():
    """The only one where its task is not known to be another; else that of task and seed."""
    own, one = run("own", task="x", seed=1), run("one")
    assert find_baseline(own, [one]) is one
    fitting = run("fitting", task="x", seed=1)
    assert find_baseline(own, [run("other", task="x", seed=2), fitting]) is fitting


def test_a_baseline_of_several_agents_is_told():
    """Two turns of two agents in two seconds, against one turn in one."""
    pair = trace(turn("0#0", 0.0, 1.0), turn("1#0", 1.0, 1.0), event("1#1", "stop", 2.0))
    found = measure(run("own"), baseline=pair)
    assert (found["turn_overhead"].value, found["speedup"].value) == (-0.5, 2.0)
    assert all("the baseline has 2 agents" in found[name].reason for name in AGAINST)
    assert "agents" not in measure(pair, baseline=run("own"))["turn_overhead"].reason
