"""The RepoRepair family: packages, the game, the six topologies, real tests, and mistakes."""

import ast
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks import build
from stretto.tasks.conformance import check_task
from stretto.tasks.repair import Repair, instance_of
from stretto.tasks.repair import sandbox as repair_sandbox
from stretto.tasks.repair.instance import (
    HIDDEN,
    VISIBLE,
    functions,
    mutants,
    overfitted,
    package,
    passes,
)
from stretto.tasks.repair.oracle import merge_conflicts
from stretto.tasks.repair.sandbox import Ran, cached_tests, run_tests
from stretto.tasks.repair.scripts import said, scripts
from stretto.tasks.repair.world import write
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout
from stretto.team.interventions import Null
from stretto.team.replay import replay
from stretto.team.what_if import what_if
from stretto.trace import Event, Trace

ONE = Repair(layers=1, healthy=0)
SMALL = Repair(layers=3, wide=2, healthy=1)


def run(task: Repair, script: str = "oracle", seed: int = 0) -> Trace:
    return rollout(task, scripts(task)[script], [seed])[0]


def test_mutants_by_hand() -> None:
    assert set(mutants("x + 2")) == {"x - 2", "x * 2", "x + 3", "x + 1"}
    assert "min(a(x), b(x), c(x))" in mutants("max(a(x), b(x), c(x))")
    assert "max(b(x), c(x))" in mutants("max(a(x), b(x), c(x))")


@pytest.mark.parametrize("seed", range(8))
def test_every_patch_but_one_is_told_by_both_suites(seed: int) -> None:
    instance = instance_of(Repair(seed=seed))
    for name, module in instance.modules.items():
        assert module.patches.count(module.right) == 1
        assert len(set(module.patches)) == 4
        assert (module.found != module.right) == (name in instance.faulty)
        for patch in {*module.patches, module.found} - {module.right}:
            wrong = {**instance.right, name: patch}
            assert not passes(instance, wrong, name, VISIBLE)
            assert not passes(instance, wrong, name, HIDDEN)
        assert said(module.says) == module.right
    assert len(instance.modules) - len(instance.faulty) == 2


@pytest.mark.parametrize("seed", range(8))
def test_the_layers(seed: int) -> None:
    """One module and `wide` by turns; imports lie one or two layers down."""
    task = Repair(layers=5, wide=3, seed=seed)
    names = list(instance_of(task).modules)
    layers = [names[:1], names[1:4], names[4:5], names[5:8], names[8:]]
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    assert len(names) == task.modules == 9
    for name, module in instance_of(task).modules.items():
        assert all(1 <= level[name] - level[each] <= 2 for each in module.imports)
        assert bool(module.imports) == (level[name] > 0)


def test_the_sandbox_says_what_the_functions_say() -> None:
    instance = instance_of(SMALL)
    for name, module in instance.modules.items():
        files = package(instance, instance.found, instance.closures[name])
        ran = run_tests({**files, f"test_{name}.py": module.visible})
        assert len(ran.passed) + len(ran.failed) == len(VISIBLE)
        assert bool(ran.failed) == (name in instance.failing)
        right, found = functions(instance.right)[name], functions(instance.found)[name]
        assert len(ran.passed) == sum(right(x) == found(x) for x in VISIBLE)


def test_an_overfitted_patch_passes_the_visible_suite_only() -> None:
    instance = instance_of(SMALL)
    name = instance.faulty[-1]
    sources = {**instance.right, name: overfitted(instance.right[name])}
    assert passes(instance, sources, name, VISIBLE)
    assert not passes(instance, sources, name, HIDDEN)


def test_one_module_by_a_worker_by_hand() -> None:
    trace = run(ONE)
    module = next(iter(instance_of(ONE).modules.values()))
    seconds = module.seconds
    assert [(event.agent, event.kind, event.tool, event.start) for event in trace.events] == [
        ("0", "decision", None, 0.0),
        ("0", "tool_call", "list", 0.0),
        ("0", "tool_result", "list", 0.5),
        ("0", "decision", None, 0.5),
        ("0", "spawn", None, 0.5),
        ("0/0", "decision", None, 0.5),
        ("0/0", "tool_call", "read", 0.5),
        ("0/0", "tool_result", "read", 1.5),
        ("0/0", "decision", None, 1.5),
        ("0/0", "tool_call", "edit", 1.5),
        ("0/0", "tool_result", "edit", 2.0),
        ("0/0", "decision", None, 2.0),
        ("0/0", "tool_call", "run_tests", 2.0),
        ("0/0", "tool_result", "run_tests", 2.0 + seconds),
        ("0/0", "decision", None, 2.0 + seconds),
        ("0/0", "return", None, 2.0 + seconds),
        ("0/0", "despawn", None, 2.0 + seconds),
        ("0", "decision", None, 2.0 + seconds),
        ("0", "aggregate", None, 2.0 + seconds),
        ("0", "stop", None, 2.0 + seconds),
    ]
    seen = [trace.text(e.decision.observation) for e in trace.events if e.decision]
    assert seen[0] == "The package does not pass its tests."
    assert seen[2] == f"Module: {module.name}.\nTests: not run."
    assert seen[4] == (
        f"Module: {module.name}.\nSays: {module.says}.\nCode: {module.right}.\nTests: not run."
    )
    assert {score.channel: score.value for score in trace.scores} == {
        "outcome": 1.0,
        "success": 1.0,
        "tests": 1.0,
    }


def test_a_patch_is_refused_while_an_import_fails() -> None:
    task = Repair(layers=2, wide=1, healthy=0)
    below, above = instance_of(task).modules
    plan = iter(["list", f"work {below}"])
    trace = rollout(task, {"lead": Scripted(lambda ask: next(plan, ask.candidates[-1]))}, [0])[0]
    assert {f"send {below}", f"work {below}"} <= set(candidates(trace, 1))
    assert f"send {above}" not in candidates(trace, 1)
    right = instance_of(task).modules[above].right
    world = task.begin(0)
    edit = {"module": above, "patch": right, "base": 0}
    assert task._edit(world, edit, ()).attrs["refused"] == "import"
    write(world, below, instance_of(task).modules[below].right)
    assert task._edit(world, edit, ()).attrs["refused"] == ""
    assert task._edit(world, {**edit, "base": 1}, ()).attrs["refused"] == "conflict"


def candidates(trace: Trace, number: int) -> tuple[str, ...]:
    decisions = [event.decision for event in trace.events if event.decision]
    return decisions[number].candidates


def test_two_workers_on_one_module_conflict() -> None:
    """Both read it, both patch it: the second patch is not merged, and it has to read again."""
    seeds = (
        seed
        for seed in range(99)
        if len(instance_of(Repair(layers=2, wide=2, healthy=1, seed=seed)).failing) == 2
    )
    task = Repair(layers=2, wide=2, healthy=1, workers=2, seed=next(seeds))

    def doubling(ask):
        sends = [choice for choice in ask.candidates if choice.startswith("send ")]
        return "list" if "list" in ask.candidates else sends[-1] if sends else ask.candidates[-1]

    worker = scripts(task)["oracle"]["worker"]
    (trace,) = rollout(task, {"lead": Scripted(doubling), "worker": worker}, [0])
    assert merge_conflicts(trace) == 1
    assert trace.reward("success") == 1.0
    assert replay(trace, task) is None
    assert merge_conflicts(run(task)) == 0


@pytest.mark.parametrize("topology", NAMES)
def test_the_oracle_repairs_everything_in_every_topology(topology: str) -> None:
    task = replace(SMALL, topology=topology)
    trace = run(task)
    assert trace.reward("success") == 1.0
    assert trace.topology == topology
    assert replay(trace, task) is None
    assert run(task, "solo").reward("success") == 1.0
    assert (run(task, "silent").reward("outcome") or 0.0) < 1.0
    kinds = {event.kind for event in trace.events}
    assert ("message" in kinds) <= (topology in ("debate", "swarm"))
    roles = {agent.role for agent in trace.agents}
    assert ("critic" in roles) == (topology == "planner_executor_critic")
    assert ("sublead" in roles) == (topology == "hierarchical")


def test_a_critic_finds_out_what_a_worker_does_not_say() -> None:
    task = replace(SMALL, topology="planner_executor_critic")
    policies = scripts(task)
    mixed = {**policies["oracle"], "worker": policies["silent"]["worker"]}
    (trace,) = rollout(task, mixed, [0])
    assert trace.reward("success") == 1.0


def test_a_lost_report_blocks_what_depends_on_it() -> None:
    trace = run(SMALL)
    first = next(event for event in trace.events if event.kind == "return")
    lost = what_if(trace, first.id, Null(), task=SMALL, policies=scripts(SMALL)["oracle"])
    assert (lost.difference or 0.0) < 0


def test_a_wrong_patch_is_seen_by_the_tests() -> None:
    right = next(iter(instance_of(ONE).modules.values())).right

    def wrongly(ask):
        edits = [choice for choice in ask.candidates if choice.startswith("edit ")]
        wrong = [choice for choice in edits if choice != f"edit {right}"]
        wanted = ["read", "report", *(wrong if len(edits) == 4 else []), "test"]
        return next(choice for choice in wanted if choice in ask.candidates)

    lead = scripts(ONE)["oracle"]["lead"]
    (trace,) = rollout(ONE, {"lead": lead, "worker": Scripted(wrongly)}, [0])
    tested = [e.attrs["passes"] for e in trace.events if "passes" in e.attrs and e.tool]
    assert tested == [False, False]  # the lead sends a second worker, and then no more
    assert trace.reward("outcome") == 0.0


def test_a_suite_that_does_not_run_is_an_error_and_no_score(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = Ran(error="did not end within 60 seconds")
    monkeypatch.setattr(repair_sandbox, "run_tests", lambda files: ran)
    monkeypatch.setattr(repair_sandbox, "_kept", {})
    with pytest.raises(StrettoError, match="the hidden suite did not end within 60 seconds"):
        run(ONE, "greedy")


def test_results_are_kept_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"test_kept.py": "def test_one():\n    assert 41 + 1 == 42\n"}
    first = cached_tests(files)
    monkeypatch.setattr(repair_sandbox, "run_tests", lambda files: Ran(error="ran again"))
    assert cached_tests(dict(files)) == first == Ran(passed=("test_kept.test_one",))
    other = {"test_kept.py": "def test_one():\n    assert 40 + 1 == 42\n"}
    assert cached_tests(other) == Ran(error="ran again")
    monkeypatch.undo()
    assert cached_tests(other).failed == ("test_kept.test_one",)  # an error was not kept


def test_every_file_is_a_program() -> None:
    instance = instance_of(SMALL)
    for text in package(instance, instance.found).values():
        ast.parse(text)


@pytest.mark.parametrize("topology", ["centralized", "planner_executor_critic", "harness"])
def test_it_keeps_the_rules_of_the_benchmark(topology: str) -> None:
    found = check_task(replace(SMALL, topology=topology), episodes=6)
    assert found.scores["oracle"] == found.scores["solo"] == 1.0


def test_it_keeps_them_with_its_fault_planted() -> None:
    assert check_task(replace(SMALL, fault="edit"), episodes=6).scores["oracle"] < 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layers": 0}, "task.layers: 0 makes no game (layers 1 to 12"),
        ({"wide": 81}, "task.wide: 81 makes no game"),
        ({"healthy": 12}, "task.healthy: 12 makes no game"),
        ({"patches": 1}, "task.patches: 1 makes no game"),
        ({"workers": 0}, "task.workers: 0 makes no game"),
        ({"second_cost": -1.0}, "task.second_cost: -1.0 makes no game"),
        ({"topology": "ring"}, 'task.topology: no topology "ring"'),
        ({"fault": "tests"}, "task.fault: Invalid enum value 'tests'"),
    ],
)
def test_mistakes_are_named(parameters: Mapping[str, object], message: str) -> None:
    with pytest.raises(StrettoError) as caught:
        build({"family": "repair", **parameters})
    assert str(caught.value).startswith(message)


def happened(kind: str, tool: str, start: float, **attrs: object) -> Event:
    return Event(id="0#0", kind=kind, agent="0", start=start, tool=tool, attrs=attrs)


def test_tests_say_nothing_of_a_patch_that_came_while_they_ran() -> None:
    """A run that began before the patch was merged has no result; one that began then has."""
    task = Repair(layers=1, wide=1, healthy=0)
    (name,) = instance_of(task).failing
    world = task.begin(0)
    right = instance_of(task).modules[name].right
    facts = {"module": name, "patch": right, "written": right, "refused": ""}
    task.apply(world, happened("tool_result", "edit", 2.0, **facts))
    for begun, found in ((1.5, None), (2.0, True)):
        tests = task.call(world, happened("tool_call", "run_tests", begun, module=name), 0)
        assert tests.attrs["passes"] is found
        listed = task.call(world, happened("tool_call", "list", begun), 0)
        assert listed.attrs["board"] == {name: found is True}
        assert listed.attrs["errors"] == ([] if found else [name])
