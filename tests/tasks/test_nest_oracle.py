"""What is exact about a nest: sums over its jobs, by hand, by brute force, and by scripts."""

from collections.abc import Callable
from itertools import permutations
from statistics import fmean

import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks.agree import oracle as agree_oracle
from stretto.tasks.gather.oracle import score_table
from stretto.tasks.jury import accuracy as jury_accuracy
from stretto.tasks.jury import oracle as jury_oracle
from stretto.tasks.nest import Nest
from stretto.tasks.nest.oracle import exact, least_seconds, optimum, played
from stretto.tasks.nest.scripts import scripts
from stretto.tasks.repair import oracle as repair_oracle
from stretto.tasks.scouts import Scouts
from stretto.tasks.scouts.oracle import scouts_oracle
from stretto.team.engine import rollout
from stretto.team.interventions import Null
from stretto.team.what_if import what_if
from stretto.trace import Trace

GATHER = {"family": "gather", "entities": 2, "attributes": 2, "workers": 3}
HOPS = {"family": "hops", "width": 3, "depth": 2, "worker_cost": 0.0}
MIXED = Nest(inner=(GATHER, HOPS), jobs=4, abreast=2, topology="centralized")


def run(task: Nest, script: str = "oracle") -> Trace:
    return rollout(task, scripts(task)[script], [0])[0]


def test_the_optimum_is_the_mean_of_the_jobs() -> None:
    assert optimum(MIXED) == 1.0
    game = Scouts()
    task = Nest(inner=({"family": "scouts"}, HOPS), jobs=2, topology="centralized")
    free = scouts_oracle(replace(game, scout_cost=0.0, round_cost=0.0))
    chance = free.value(scouts_oracle(game).optimal())  # of a right answer, whatever it costs
    assert optimum(task) == pytest.approx((chance + 1) / 2)
    assert scouts_oracle(game).optimum < chance < free.optimum


def test_shapley_values_of_gather_by_every_order_of_joining() -> None:
    """A worker adds the cells that it wrote; leads are always there."""
    task = Nest(inner=(GATHER,), jobs=2, topology="centralized")
    trace = run(task)
    values = exact(task, trace).agents
    for job in played(task, trace):
        truth = job.leaf.world.instance.truth
        wrote: dict[str, dict[str, str]] = {}
        for event in job.trace.events:
            if event.kind == "tool_result" and event.tool == "write_cell":
                wrote.setdefault(event.agent, {})[event.attrs["cell"]] = event.attrs["value"]
        players = [agent.id for agent in job.trace.agents[1:]]
        for player in players:
            gains: list[float] = []
            for order in permutations(players):
                before = order[: order.index(player)]
                tables = [before, (*before, player)]
                low, high = (
                    score_table(truth, {c: v for p in who for c, v in wrote.get(p, {}).items()})
                    for who in tables
                )
                gains.append(high.item.f1 - low.item.f1)
            assert values[job.leaf.outer[player]] == pytest.approx(fmean(gains) / 2)


def test_shapley_values_sum_to_what_the_teams_added() -> None:
    values = exact(MIXED, run(MIXED)).agents
    assert sum(values.values()) == pytest.approx(1.0)
    assert all(path.count("/") == 2 or values[path] == 0 for path in values)


def test_a_report_is_worth_what_is_lost_without_it() -> None:
    task = Nest(inner=(HOPS,), jobs=3, topology="centralized")
    trace, policies = run(task), scripts(task)["oracle"]
    worth = exact(task, trace).messages
    assert len(worth) == 9
    for event, value in worth.items():
        lost = what_if(trace, event, Null(), task=task, policies=policies)
        assert -(lost.difference or 0.0) == pytest.approx(value)
    assert sum(worth.values()) == pytest.approx(1.0)  # in each job one report decides


def test_values_of_a_family_are_those_of_the_job_over_the_number_of_jobs() -> None:
    repair = {"family": "repair", "layers": 2, "wide": 2, "healthy": 0}
    inner = (repair, {"family": "jury"}, {"family": "agree", "members": 5})
    task = Nest(inner=inner, jobs=3, topology="centralized")
    trace = run(task)
    found = exact(task, trace)
    jobs = {job.leaf.kind: job for job in played(task, trace)}
    first, second, third = (jobs[kind] for kind in ("repair", "jury", "agree"))
    repairs = repair_oracle.agent_values(first.leaf.task, first.trace)
    witnesses = enumerate(jury_accuracy.witness_values(second.leaf.task))
    members = enumerate(agree_oracle.member_values(third.leaf.task))
    assert found.agents == {
        **{first.leaf.outer[path]: value / 3 for path, value in repairs.items()},
        **{second.leaf.outer[f"0/{number}"]: value / 3 for number, value in witnesses},
        **{third.leaf.outer[f"0/{number}"]: value / 3 for number, value in members},
    }
    claims = jury_oracle.claim_values(second.leaf.task, second.trace)
    reports = repair_oracle.report_values(first.leaf.task, first.trace)
    assert sorted(found.messages.values()) == sorted(
        value / 3 for value in (*claims.values(), *reports.values())
    )
    assert sum(repairs.values()) == pytest.approx(1.0)


def test_values_of_a_nest_in_a_nest() -> None:
    deep = {"family": "nest", "inner": [HOPS], "jobs": 2}
    task = Nest(inner=(deep, HOPS), jobs=2, topology="centralized")
    values = exact(task, run(task)).agents
    assert sum(values.values()) == pytest.approx(1.0)
    assert sum(value for path, value in values.items() if path.count("/") == 3) == 0.5


def test_the_schedule_by_hand() -> None:
    """Jobs of 4 and 2 seconds of look-ups: longest first, they end at 6 on two machines."""
    long, short = ({**HOPS, "width": 1, "depth": depth} for depth in (4, 2))
    task = Nest(inner=(short, long), jobs=4, abreast=2, topology="centralized")
    best = exact(task, run(task)).schedule
    assert (best.seconds, best.best, best.serial, best.certified) == (6.0, 6.0, 12.0, True)
    alone = exact(task, run(task, "solo")).schedule
    assert (alone.seconds, alone.best, alone.serial) == (12.0, 6.0, 12.0)
    assert least_seconds(task) == 6.0


@pytest.mark.parametrize("script", ["oracle", "greedy", "solo"])
def test_nobody_beats_the_bound(script: str) -> None:
    for abreast in (1, 2, 4):
        task = replace(MIXED, abreast=abreast)
        bound = least_seconds(task)
        assert bound is not None
        found = exact(task, run(task, script)).schedule
        assert bound <= found.best <= found.seconds <= found.serial


def test_an_unknown_bound_is_absent() -> None:
    assert least_seconds(Nest(inner=({"family": "scouts"},), jobs=1)) is None
    assert exact(MIXED, run(MIXED, "random")).agents.keys() <= {
        agent.id for agent in run(MIXED, "random").agents
    }


FAULTY = {
    "agree": ({"family": "agree", "members": 5}, "message"),
    "gather": (GATHER, "tool_result"),
    "hops": (HOPS, "tool_result"),
    "repair": ({"family": "repair", "layers": 2, "wide": 2, "healthy": 0}, "tool_result"),
}


@pytest.mark.parametrize("family", FAULTY)
def test_the_planted_fault_is_found_in_its_job(family: str) -> None:
    inner, kind = FAULTY[family]
    task = Nest(inner=(inner,), jobs=3, fault="job", topology="swarm")
    trace = run(task)
    found = exact(task, trace).blame
    assert set(found) == {task.faulty}
    agent, event = found[task.faulty or 0]
    assert trace.events[trace.columns.row[event]].kind == kind
    assert trace.events[trace.columns.row[event]].agent == agent != "0"
    clean = replace(task, fault=None)
    assert (trace.reward("outcome") or 0.0) < (run(clean).reward("outcome") or 0.0)
    assert exact(clean, run(clean)).blame == {}


@pytest.mark.parametrize(("family", "script"), [("jury", "oracle"), ("scouts", "greedy")])
def test_a_lie_is_blamed_where_it_decided(family: str, script: str) -> None:
    """Whether it does is left to chance: in some jobs, and those are lost by it."""
    task = Nest(inner=({"family": family, "fault": "lie"},), jobs=80, topology="centralized")
    trace = run(task, script)
    found = exact(task, trace).blame
    lost = {job.leaf.index for job in played(task, trace) if job.leaf.scores["outcome"] == 0}
    assert 0 < len(found) < task.jobs
    assert found.keys() <= lost
    roles = {agent.id: agent.role for agent in trace.agents}
    assert all(roles[agent] != f"{family}.lead" for agent, _ in found.values())


def test_a_fault_of_a_template_is_found_too() -> None:
    task = Nest(inner=(HOPS, {**HOPS, "fault": "report"}), jobs=4, topology="centralized")
    trace = run(task)
    assert trace.reward("outcome") == 0.5
    assert set(exact(task, trace).blame) == {1, 3}


def test_a_family_with_prices_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from stretto.tasks.nest import oracle as nest_oracle
    from stretto.tasks.scripts import Yardstick

    monkeypatch.setattr(nest_oracle, "yardstick_of", lambda task: Yardstick(best=1.0, priced=True))
    with pytest.raises(StrettoError, match="only its outcome less prices is known"):
        optimum(MIXED)


def called(trace: Trace, name: Callable[[str], str]) -> Trace:
    """The same episode, its agents called otherwise."""

    def new(text: str) -> str:
        agent, mark, number = text.partition("#")
        return name(agent) + mark + number

    events = (
        replace(e, id=new(e.id), agent=new(e.agent), to=None if e.to is None else new(e.to))
        for e in trace.events
    )
    agents = (replace(a, id=new(a.id), parent=a.parent and new(a.parent)) for a in trace.agents)
    edges = (replace(e, src=new(e.src), dst=new(e.dst)) for e in trace.edges)
    return replace(trace, agents=tuple(agents), events=tuple(events), edges=tuple(edges))


def siblings(agent: str) -> str:
    return {"0/0": "0/1", "0/1": "0/0"}.get(agent, agent)


def numbered(agent: str) -> str:
    return f"agent {sum(map(ord, agent)) * 1_000 + len(agent)}.{agent[::-1]}"


@pytest.mark.parametrize("name", [siblings, numbered])
@pytest.mark.parametrize("topology", ["centralized", "harness", "planner_executor_critic"])
def test_names_of_agents_move_nothing(name: Callable[[str], str], topology: str) -> None:
    task = replace(MIXED, topology=topology, fault="job")
    trace = run(task)
    other = called(trace, name)

    def new(event: str) -> str:
        agent, _, number = event.partition("#")
        return f"{name(agent)}#{number}"

    before, after = exact(task, trace), exact(task, other)
    assert after.agents == {name(agent): value for agent, value in before.agents.items()}
    assert after.messages == {new(event): value for event, value in before.messages.items()}
    assert after.blame == {job: (name(a), new(e)) for job, (a, e) in before.blame.items()}
    assert (after.optimum, after.schedule) == (before.optimum, before.schedule)
    pairs = zip(played(task, trace), played(task, other), strict=True)
    assert all(one.trace == two.trace for one, two in pairs)


def test_events_may_have_ids_of_their_own() -> None:
    """Agents are called otherwise, and the events' ids are what they were."""
    trace = run(MIXED)
    other = called(trace, numbered)
    kept = (replace(e, id=old.id) for e, old in zip(other.events, trace.events, strict=True))
    other = replace(other, events=tuple(kept), edges=trace.edges)
    assert exact(MIXED, other).messages == exact(MIXED, trace).messages


def test_an_event_that_does_not_fit_is_named() -> None:
    trace = run(MIXED)
    spawn = next(event for event in trace.events if event.kind == "spawn")
    rest = tuple(event for event in trace.events if event is not spawn)
    lost = next(event for event in rest if event.agent == spawn.to)
    with pytest.raises(StrettoError, match=f"{lost.id}: this event does not fit"):
        exact(MIXED, replace(trace, events=rest))
    twice = tuple(e for event in trace.events for e in [event] * (1 + (event is spawn)))
    with pytest.raises(StrettoError, match=spawn.id):
        exact(MIXED, replace(trace, events=twice))
