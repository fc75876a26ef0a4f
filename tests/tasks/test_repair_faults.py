"""Where the planted fault of `repair` lies, and when silence repairs a package."""

from itertools import product

import pytest
from msgspec.structs import replace

from stretto.tasks.conformance import check_task
from stretto.tasks.repair import Repair, instance_of
from stretto.tasks.repair.oracle import best_outcome, blame, silent_outcome
from stretto.tasks.repair.scripts import scripts, yardstick
from stretto.team.engine import rollout
from stretto.team.interventions import Replace
from stretto.team.what_if import what_if


def test_the_culprit_is_not_always_the_last_faulty_module() -> None:
    places: set[int] = set()
    for seed in range(30):
        task = Repair(seed=seed, fault="edit")
        instance = instance_of(task)
        assert instance.culprit in instance.faulty
        assert 0 < best_outcome(task) < 1
        places.add(len(instance.faulty) - instance.faulty.index(instance.culprit))
    assert len(places) >= 4


def test_the_blamed_patch_set_right_sets_the_package_right() -> None:
    for seed in range(8):
        task = Repair(layers=3, wide=3, healthy=1, seed=seed, fault="edit")
        policies = scripts(task)["oracle"]
        (trace,) = rollout(task, policies, [0])
        found = blame(task, trace)
        assert found is not None
        assert trace.reward("outcome") == pytest.approx(best_outcome(task))
        event = trace.events[trace.columns.row[found.event]]
        right = {**event.attrs, "written": event.attrs["patch"]}
        healed = what_if(trace, found.event, Replace("", right), task=task, policies=policies)
        assert healed.trace.reward("success") == 1.0


SMALL = [
    Repair(layers=2, wide=wide, healthy=healthy, workers=workers, topology=topology, seed=seed)
    for wide, healthy, workers, topology, seed in product(
        (1, 3), (0, 1), (1, 3), ("centralized", "harness"), range(6)
    )
]


def test_silence_repairs_exactly_the_packages_in_which_nobody_waits() -> None:
    found: set[bool] = set()
    for task in SMALL:
        (trace,) = rollout(task, scripts(task)["silent"], [0])
        assert trace.reward("outcome") == pytest.approx(silent_outcome(task))
        control = "silent" in yardstick(task).solved_by
        assert (trace.reward("success") == 1.0) == control
        found.add(control and len(instance_of(task).failing) > 1)
    assert found == {False, True}


def test_silence_is_enough_where_what_waits_is_spoilt_anyway() -> None:
    task = Repair(layers=2, wide=1, healthy=0, workers=1, patches=5, seed=357292, fault="edit")
    assert silent_outcome(task) == best_outcome(task) == 0.5
    assert check_task(task, episodes=8).normalised["silent"] == 1.0
    assert silent_outcome(replace(task, fault=None)) == 0.5


def test_one_faulty_module_below_a_healthy_one_conforms() -> None:
    task = Repair(
        layers=2, wide=1, healthy=1, patches=5, workers=3, topology="harness", seed=274177
    )
    assert (len(instance_of(task).faulty), len(instance_of(task).failing)) == (1, 2)
    assert check_task(task, episodes=8).normalised["silent"] == 1.0
    check_task(replace(task, topology="centralized"), episodes=8)
