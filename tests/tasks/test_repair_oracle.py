"""What is exact about `repair`: schedules against brute force, toggled faults, values, blame."""

from collections.abc import Sequence, Set
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks.gather.oracle import Makespan
from stretto.tasks.repair import Repair, _read, hidden, instance_of
from stretto.tasks.repair import oracle as repair_oracle
from stretto.tasks.repair.instance import REMARK, passes
from stretto.tasks.repair.oracle import (
    agent_values,
    best_schedule,
    blame,
    jobs,
    least_seconds,
    list_schedule,
    needed_repairs,
    outcome_with,
    report_values,
    schedule,
    span,
    work,
)
from stretto.tasks.repair.scripts import scripts
from stretto.tasks.repair.world import Mind, work_choice, write
from stretto.tasks.topology import NAMES, WORKER
from stretto.team.engine import rollout
from stretto.team.interventions import Null, Replace
from stretto.team.state import AgentState
from stretto.team.what_if import what_if
from stretto.trace import Event, Trace

SMALL = Repair(layers=3, wide=2, healthy=1)


def run(task: Repair, script: str = "oracle", seed: int = 0) -> Trace:
    return rollout(task, scripts(task)[script], [seed])[0]


def brute_force(lengths: Sequence[int], before: Sequence[Set[int]], workers: int) -> int:
    """Every job in every order that respects the predecessors, as early as a worker is free.

    Each job goes into the first gap that holds it, so every active schedule comes up.
    """
    best = sum(lengths)
    for order in permutations(range(len(lengths))):
        place = {job: number for number, job in enumerate(order)}
        if any(place[earlier] > place[job] for job in place for earlier in before[job]):
            continue
        start: dict[int, int] = {}
        for job in order:
            ready = max((start[e] + lengths[e] for e in before[job]), default=0)
            while not fits(start, lengths, ready, lengths[job], workers):
                ready += 1
            start[job] = ready
        best = min(best, max(start[job] + lengths[job] for job in start))
    return best


def fits(
    start: dict[int, int], lengths: Sequence[int], begin: int, length: int, workers: int
) -> bool:
    return all(
        sum(start[job] <= moment < start[job] + lengths[job] for job in start) < workers
        for moment in range(begin, begin + length)
    )


def test_a_schedule_by_hand() -> None:
    """Longest chain first takes 5 and 4 together; 3, 3 and 3 then need two rounds."""
    assert schedule([3, 3, 2, 2, 2], [set()] * 5, 2) == Makespan(6, certified=True)
    assert list_schedule([3, 3, 2, 2, 2], [set()] * 5, 2) == 7
    assert schedule([1, 4, 4, 1], [set(), {0}, {0}, {1, 2}], 2) == Makespan(6, certified=True)
    assert schedule([1, 4, 4, 1], [set(), {0}, {0}, {1, 2}], 1) == Makespan(10, certified=True)
    assert schedule([], [], 3) == Makespan(0, certified=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_best_schedule_by_brute_force(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    before = [
        set(data.draw(st.lists(st.integers(0, job - 1), max_size=2))) if job else set[int]()
        for job in range(count)
    ]
    workers = data.draw(st.integers(1, 3))
    found = schedule(lengths, before, workers)
    assert found == Makespan(brute_force(lengths, before, workers), certified=True)
    assert found.value <= list_schedule(lengths, before, workers)


def test_waiting_for_a_long_chain_can_be_best() -> None:
    """An idle worker may be right: the search finds it, list scheduling never does."""
    lengths, before = [1, 2, 3, 3, 4], [set(), set(), set(), {0}, {3}]
    for workers in (2, 3):
        assert schedule(lengths, before, workers).value == brute_force(lengths, before, workers)


@pytest.mark.parametrize("seed", range(6))
def test_bounds(seed: int) -> None:
    task = Repair(seed=seed)
    lengths = jobs(task)
    assert work(task) == sum(lengths.values())
    assert best_schedule(task, 1).value * 0.5 == work(task)
    assert best_schedule(task, 99).value * 0.5 == span(task)
    best = [best_schedule(task, workers).value * 0.5 for workers in (1, 2, 3, 99)]
    assert best == sorted(best, reverse=True)
    assert best[2] >= max(span(task), work(task) / 3)


def test_packages_tell_schedules_apart() -> None:
    """On layered graphs the bound is loose and list scheduling is not optimal, again and again."""
    loose = suboptimal = 0
    for seed in range(20):
        task = Repair(seed=seed)
        lengths, before = repair_oracle._graph(task)
        best = best_schedule(task)
        assert best.certified
        bound = max(round(span(task) * 2), -(-sum(lengths) // task.workers))
        loose += best.value > bound
        suboptimal += list_schedule(lengths, before, task.workers) > best.value
    assert loose >= 5
    assert suboptimal >= 3


@pytest.mark.parametrize("seed", range(2))
def test_nobody_is_faster_than_the_best_schedule(seed: int) -> None:
    task = Repair(seed=seed)
    solo, team = run(task, "solo"), run(task)
    assert solo.events[-1].start == least_seconds(task, 1) == 0.5 + work(task)
    assert least_seconds(task, 4) == 0.5 + best_schedule(task).value * 0.5
    assert least_seconds(task, 4) <= (team.events[-1].start or 0.0) < least_seconds(task, 1)


@pytest.mark.parametrize("topology", NAMES)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_certain_plan_is_faster_in_any_topology(topology: str, workers: int) -> None:
    """That of the oracle and of one agent alone; with one worker it is the oracle's, exactly."""
    for seed in range(4):
        task = replace(SMALL, topology=topology, workers=workers, seed=seed, wide=3)
        least = least_seconds(task, workers + 1)
        seconds = run(task).events[-1].start or 0.0
        assert 0 < least <= seconds
        assert run(task, "solo").events[-1].start == 0.5 + work(task)
        if workers == 1 and topology == "swarm":
            assert least == seconds


def test_least_seconds_by_hand() -> None:
    """One faulty module with tests of two seconds: listed, read, patched, and tested or seen."""
    drawn = (Repair(layers=1, wide=1, healthy=0, workers=1, seed=seed) for seed in range(99))
    one = next(t for t in drawn if [m.seconds for m in instance_of(t).modules.values()] == [2])
    assert least_seconds(one, 1) == least_seconds(one, 2) == 0.5 + 1.0 + 0.5 + 2.0
    looked = replace(one, topology="harness")
    assert least_seconds(looked, 2) == 0.5 + 1.0 + 0.5 + 0.5 == run(looked).events[-1].start


def test_what_fails_through_others_is_no_job_of_its_own_where_results_are_looked_at() -> None:
    spared = 0
    for seed in range(6):
        task = replace(SMALL, wide=3, seed=seed)
        instance = instance_of(task)
        healthy = set(instance.failing) - set(instance.faulty)
        spared += len(healthy)
        looked, critic = (replace(task, topology=name) for name in (NAMES[5], NAMES[1]))
        assert jobs(looked) == dict.fromkeys(instance.faulty, 1.5)
        assert set(jobs(task)) == set(jobs(critic)) == set(instance.failing)
        for name in instance.failing:
            seconds = instance.modules[name].seconds
            assert jobs(task)[name] == seconds + (1.0 if name in healthy else 1.5)
            assert jobs(critic)[name] == seconds + (0.0 if name in healthy else 1.5)
    assert spared


def test_the_smallest_repair_is_the_planted_one() -> None:
    """By all subsets of all modules: nothing smaller repairs the package, nothing else as small."""
    for seed in range(6):
        task = replace(SMALL, seed=seed)
        instance = instance_of(task)
        good = [
            set(chosen)
            for size in range(len(instance.faulty) + 1)
            for chosen in combinations(instance.modules, size)
            if outcome_with(task, set(chosen)) == 1.0
        ]
        assert good == [set(instance.faulty)]


def test_faults_do_not_hide_each_other() -> None:
    """Whatever else is repaired, an unrepaired module fails, and what passes goes on to pass."""
    instance = instance_of(Repair(layers=4, wide=2, healthy=1, seed=5))
    passing: dict[frozenset[str], set[str]] = {}
    for size in range(len(instance.faulty) + 1):
        for chosen in combinations(instance.faulty, size):
            fixed = {name: instance.right[name] for name in chosen}
            sources = {**instance.found, **fixed}
            good = {name for name in sources if passes(instance, sources, name)}
            assert good & set(instance.faulty) <= set(chosen)
            passing[frozenset(chosen)] = good
            for name in chosen:
                assert passing[frozenset(chosen) - {name}] <= good


def test_toggling_agrees_with_the_sandbox() -> None:
    instance = instance_of(SMALL)
    for chosen in ((), instance.faulty[:1], instance.faulty[1:], instance.faulty):
        sources = {**instance.found, **{name: instance.right[name] for name in chosen}}
        ran = hidden(instance, sources)
        bad = {test.partition(".")[0].removeprefix("test_") for test in ran.failed}
        share = sum(name not in bad for name in instance.failing) / len(instance.failing)
        assert outcome_with(SMALL, set(chosen)) == share


def test_what_a_module_needs() -> None:
    instance = instance_of(SMALL)
    for name in instance.modules:
        needed = needed_repairs(SMALL, name)
        assert needed <= set(instance.closures[name]) & set(instance.faulty)
        assert (name in needed) == (name in instance.faulty)
        found = {each.name: each.found for each in instance.modules.values()}
        ran = hidden(instance, {**found, **{each: instance.right[each] for each in needed}})
        assert not any(test.startswith(f"test_{name}") for test in ran.failed)


@pytest.mark.parametrize("topology", ["centralized", "hierarchical", "swarm"])
def test_a_report_is_worth_what_is_lost_without_it(topology: str) -> None:
    task = replace(SMALL, topology=topology)
    trace, policies = run(task), scripts(task)["oracle"]
    worth = report_values(task, trace)
    assert len(worth) == len(instance_of(task).failing)
    assert max(worth.values()) > 0
    for event, value in worth.items():
        lost = what_if(trace, event, Null(), task=task, policies=policies)
        assert -(lost.difference or 0.0) == pytest.approx(value)


def test_shapley_values_sum_to_the_outcome() -> None:
    trace = run(SMALL)
    values = agent_values(SMALL, trace)
    assert sum(values.values()) == pytest.approx(1.0)
    assert "0" not in values
    assert agent_values(SMALL, run(SMALL, "solo")) == {"0": pytest.approx(1.0)}
    shares: dict[str, float] = dict.fromkeys(values, 0.0)
    owner = {
        event.agent: event.attrs["module"]
        for event in trace.events
        if event.tool == "edit" and "written" in event.attrs
    }
    orders = list(permutations(values))
    for order in orders:
        done: set[str] = set()
        for agent in order:
            gain = outcome_with(SMALL, done | {owner[agent]}) - outcome_with(SMALL, done)
            shares[agent] += gain / len(orders)
            done.add(owner[agent])
    assert values == pytest.approx(shares)


def test_the_planted_fault_is_decisive() -> None:
    task = replace(SMALL, fault="edit")
    trace, policies = run(task), scripts(task)["oracle"]
    assert trace.reward("success") == 0.0
    found = blame(task, trace)
    assert found is not None
    event = trace.events[trace.columns.row[found.event]]
    assert event.agent == found.agent
    assert event.attrs["module"] == instance_of(task).culprit
    right = {**event.attrs, "written": event.attrs["patch"]}
    healed = what_if(trace, found.event, Replace("", right), task=task, policies=policies)
    assert healed.trace.reward("success") == 1.0
    assert blame(SMALL, run(SMALL)) is None
    assert blame(task, run(task, "silent")) is None  # nobody came so far


@pytest.mark.parametrize("topology", ["centralized", "planner_executor_critic", "harness"])
@pytest.mark.parametrize("script", ["oracle", "greedy", "random", "blind", "silent", "solo"])
def test_a_remark_moves_no_script(topology: str, script: str) -> None:
    """The benign twin of an overfitted patch: the same patch, with a comment behind it."""
    clean = replace(SMALL, topology=topology)
    twin = replace(clean, fault="remark")
    for seed in range(3):
        before, after = run(clean, script, seed), run(twin, script, seed)
        assert after.scores == before.scores
        assert [(e.id, e.start, e.kind) for e in after.events] == [
            (e.id, e.start, e.kind) for e in before.events
        ]
        assert _choices(after) == _choices(before)
        assert blame(twin, after) is None
    if script == "oracle":
        (remark,) = (event for event in after.events if "remark" in event.attrs)
        assert (after.text(remark.content) or "").endswith(REMARK)
        reads = [e.id for e in after.events if e.decision and REMARK in _seen(after, e)]
        assert reads
        assert {event.partition("#")[0] for event in reads} == {remark.agent}
        fault = replace(clean, fault="edit")
        culprit = blame(fault, run(fault))
        assert culprit is not None
        assert remark.id == culprit.event


def _seen(trace: Trace, event: Event) -> str:
    assert event.decision is not None
    return trace.text(event.decision.observation) or ""


def _choices(trace: Trace) -> list[str]:
    return [event.decision.choice or "" for event in trace.events if event.decision]


def test_who_reads_a_remark_is_offered_the_same_patches() -> None:
    task = replace(SMALL, fault="remark")
    name = instance_of(task).culprit
    module = instance_of(task).modules[name]
    world = task.begin(0)
    for each in instance_of(task).faulty:
        write(world, each, instance_of(task).modules[each].right)
    facts = {"module": name, "patch": module.right, "base": 0}
    written = task._edit(world, facts, ())
    assert written.attrs["written"] == module.right
    write(world, name, module.right + written.attrs["remark"])
    read = _read(world, name, ())
    assert read.attrs["code"] == f"{module.right}  # as it says"
    mind = Mind(module=name, read=True, code=read.attrs["code"], patches=module.patches)
    offered = work_choice(mind, AgentState("0/0", WORKER, "0")).candidates
    edits = {choice for choice in offered if choice.startswith("edit ")}
    assert edits == {f"edit {patch}" for patch in module.patches if patch != module.right}


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StrettoError, match="workers and jobs must be positive"):
        schedule([1], [set()], 0)
    monkeypatch.setattr(repair_oracle, "MOST_PLAYERS", 1)
    with pytest.raises(StrettoError, match="agents are too many to enumerate"):
        agent_values(SMALL, run(SMALL))
    with pytest.raises(StrettoError, match="faults are too many to toggle"):
        needed_repairs(SMALL, list(instance_of(SMALL).modules)[-1])
    monkeypatch.setattr(repair_oracle, "SEARCH_STATES", 1)
    lengths, before = [1, 2, 3, 3, 4, 5], [set(), set(), set(), {0}, {1}, {2}]
    found = schedule(lengths, before, 2)
    assert found.certified is (found.value == max(8, 9))
    loose = Repair(seed=next(seed for seed in range(20) if not _tight(Repair(seed=seed))))
    assert not best_schedule(loose).certified
    assert least_seconds(loose, 4) == repair_oracle.quick_bound(loose)


def _tight(task: Repair) -> bool:
    lengths, before = repair_oracle._graph(task)
    bound = max(round(span(task) * 2), -(-sum(lengths) // task.workers))
    return list_schedule(lengths, before, task.workers) == bound
