"""The team is what its events make it."""

import pytest
from msgspec.structs import replace

from stretto.tasks.scouts import Scouts
from stretto.team.protocols import Call, Message, Spawn
from stretto.team.state import ROOT, apply, child_path, fold, new_team
from stretto.trace import Event

from .toy import POLICIES, Crew, Dice, Play, crew, ended


def event(name, kind, start=1.0, **fields):
    return Event(id=name, kind=kind, agent=name.partition("#")[0], start=start, **fields)


def folded(*events):
    """The team after these events, each caused by all that came before it."""
    team = new_team("lead")
    for row, each in enumerate(events):
        apply(team, each, [before.id for before in events[:row]])
    return team


def is_free(team, agent=ROOT):
    return team.free(team[agent])


SPAWN = event("0#0", "spawn", to="0/0", content="brief", attrs={"role": "worker"})


def test_a_new_team_is_one_idle_root():
    team = new_team("lead")
    assert list(team.agents) == [ROOT]
    assert (team[ROOT].role, team[ROOT].parent, is_free(team)) == ("lead", None, True)
    assert (team.alive, team.stopped, team.time) == (1, False, 0.0)


def test_a_spawn_adds_a_child():
    team = folded(SPAWN)
    child = team["0/0"]
    assert (child.role, child.parent, child.brief) == ("worker", "0", "brief")
    assert child.arrived == [SPAWN]
    assert is_free(team, "0/0")
    assert (team.alive, team[ROOT].children, team[ROOT].open_children) == (2, 1, 1)
    assert child_path(team[ROOT]) == "0/1"


def test_every_event_moves_the_counter_of_its_agent_only():
    team = folded(SPAWN, event("0/0#0", "gossip"), event("0/0#1", "message", to="0"))
    assert (team[ROOT].counter, team["0/0"].counter) == (1, 2)


def test_an_agent_with_an_open_call_is_not_free():
    call, result = event("0#0", "tool_call"), event("0#1", "tool_result")
    assert not is_free(folded(call))
    team = folded(call, result)
    assert is_free(team)
    assert team[ROOT].arrived == [result]


def test_a_decision_takes_in_what_had_arrived():
    team = folded(event("0#0", "tool_call"), event("0#1", "tool_result"), event("0#2", "decision"))
    assert team[ROOT].arrived == []
    assert team[ROOT].last_decision == "0#2"


def test_what_came_in_while_a_decision_was_under_way_waits_for_the_next():
    call, result = event("0#0", "tool_call"), event("0#1", "tool_result")
    team = folded(call, result)
    apply(team, event("0#2", "decision"), [])
    assert team[ROOT].arrived == [result]


def test_an_agent_is_busy_until_its_turn_is_over():
    team = folded(event("0#0", "decision", 1.0, duration=2.0))
    assert not is_free(team)
    team.time = 2.5
    assert not is_free(team)
    team.time = 3.0
    assert is_free(team)


@pytest.mark.parametrize("kind", ["message", "delegate"])
def test_a_message_arrives_after_its_latency_and_not_before(kind):
    sent = event("0#1", kind, 1.0, duration=0.5, to="0/0")
    for now, arrived in ((1.0, [SPAWN]), (1.25, [SPAWN]), (1.5, [SPAWN, sent])):
        later = event("0#2", "gossip", now)
        team = fold(as_trace(SPAWN, sent, later))
        assert team["0/0"].arrived == arrived


def as_trace(*events):
    (template,) = crew([0])
    return replace(template, agents=template.agents[:1], events=events, edges=())


def test_a_return_reaches_the_parent_and_closes_the_child_once():
    first, second = event("0/0#0", "return", to="0"), event("0/0#1", "return", to="0")
    team = folded(SPAWN, first, second)
    assert team[ROOT].open_children == 0
    assert team[ROOT].arrived == [first, second]
    assert team[ROOT].returns == ["0/0#0", "0/0#1"]
    assert team["0/0"].alive


def test_an_aggregate_uses_up_the_returns():
    team = folded(SPAWN, event("0/0#0", "return", to="0"), event("0#1", "aggregate"))
    assert team[ROOT].returns == []


def test_a_return_of_the_root_reaches_nobody():
    assert folded(event("0#0", "return")).agents[ROOT].returns == []


@pytest.mark.parametrize("returned", [False, True])
def test_whoever_leaves_is_counted_once(returned):
    gone = event("0#1", "despawn", to="0/0")
    before = [event("0/0#0", "return", to="0")] if returned else []
    team = folded(SPAWN, *before, gone, event("0#2", "despawn", to="0/0"))
    assert not team["0/0"].alive
    assert not is_free(team, "0/0")
    assert (team.alive, team[ROOT].open_children) == (1, 0)


def test_a_stop_stops_the_team():
    assert folded(event("0#0", "stop")).stopped


@pytest.mark.parametrize("kind", ["human", "safety", "gossip"])
def test_events_without_a_meaning_change_only_the_counter(kind):
    team, fresh = folded(event("0#0", kind)), new_team("lead")
    fresh[ROOT].counter = 1
    fresh.time = 1.0
    assert team == fresh


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("latency", [0.0, 0.5, 1.5])
def test_the_team_is_the_fold_of_its_events(seed, latency):
    dice = Dice()
    task = Crew(message_latency=latency)
    episode, done = ended(task, {"lead": dice, "worker": dice}, seed)
    assert fold(done) == episode.team


def test_a_message_that_was_answered_is_done_with():
    heard = (lambda agent: any(e.kind == "message" for e in agent.arrived)), ()
    turns = {"0": [(Spawn("worker"), Message("0/0", "hello"))], "0/0": [heard]}
    episode, done = ended(Play(turns, message_latency=0.5), POLICIES, 0)
    assert (episode.team["0/0"].arrived, episode.team["0/0"].coming) == ([], {})
    assert fold(done) == episode.team


def test_what_arrived_is_in_the_order_of_arrival():
    """A message at 0.5, a result at 1 and one at 3, to an agent that does not decide again."""
    turns = {
        "0": [(Spawn("worker"), Message("0/0", "hello"))],
        "0/0": [(Call("slow"), Call("quick"))],
    }
    episode, done = ended(Play(turns, message_latency=0.5), POLICIES, 0)
    kinds = ["message", "tool_result", "tool_result"]
    assert [each.kind for each in episode.team["0/0"].arrived] == kinds
    assert fold(done) == episode.team


@pytest.mark.parametrize("limit", [1, 7, 13, 22])
def test_the_team_of_an_episode_that_was_cut_is_the_fold_of_its_events(limit):
    dice = Dice()
    for seed in range(6):
        task = Crew(max_events=limit)
        episode, done = ended(task, {"lead": dice, "worker": dice}, seed)
        assert fold(done) == episode.team


@pytest.mark.parametrize("seed", range(8))
def test_what_a_decision_answers_had_arrived_before(seed):
    """Folded up to each decision, the team knows all that its edges come from."""
    (done,) = crew([seed])
    for row, each in enumerate(done.events):
        if each.kind == "decision":
            now = event("0#x", "gossip", each.start)
            agent = fold(replace(done, events=(*done.events[:row], now)))[each.agent]
            answered = {e.src for e in done.edges if e.dst == each.id and e.label != "temporal"}
            assert answered <= {arrived.id for arrived in agent.arrived}
            temporal = [e.src for e in done.edges if e.dst == each.id and e.label == "temporal"]
            assert temporal == ([agent.last_decision] if agent.last_decision else [])


@pytest.mark.parametrize("task", [Crew(), Scouts(horizon=6, width=3)], ids=["crew", "scouts"])
def test_the_world_is_the_fold_of_its_events(task):
    dice = Dice()
    for seed in range(10):
        episode, done = ended(task, {"lead": dice, "worker": dice}, seed)
        world = task.begin(seed)
        for each in done.events:
            task.apply(world, each)
        assert world == episode.world
