"""Whatever is changed in a record is noticed, and a fork keeps what it shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto import store
from stretto.errors import StrettoError
from stretto.policies.scripted import Scripted
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout
from stretto.team.protocols import Return, Spawn, Stop
from stretto.team.replay import fork, replay
from stretto.trace import Edge, SafetyLabel, Score, Tokens
from stretto.validate import problems

from ..strategies import examples
from .toy import GO, Crew, Dice, Play, crew

TASK = Crew()
SCOUTS = Scouts(horizon=8, width=3)
SEEDS = (0, 4, 7)
RECORDED = crew(SEEDS)


def live():
    dice = Dice()
    return {"lead": dice, "worker": dice}


def scouts(seeds):
    return rollout(SCOUTS, {"lead": Dice()}, seeds)


def rows(trace):
    return st.integers(0, len(trace.events) - 1)


def with_event(trace, row, event):
    return replace(trace, events=(*trace.events[:row], event, *trace.events[row + 1 :]))


def noticed(trace, task=TASK):
    """Whether a replay finds fault with a trace."""
    try:
        return replay(trace, task) is not None
    except StrettoError:
        return True


# ---- replay


@pytest.mark.parametrize("seed", range(10))
def test_what_was_recorded_replays(seed):
    assert replay(crew([seed])[0], TASK) is None
    assert replay(scouts([seed])[0], SCOUTS) is None


def test_a_trace_replays_after_it_was_written_and_read(tmp_path):
    store.write(tmp_path / "t.jsonl", RECORDED)
    assert [replay(each, TASK) for each in store.read(tmp_path / "t.jsonl")] == [None] * 3


def test_an_episode_that_stalled_or_was_cut_replays():
    for task in (Crew(max_events=9), Crew(capacity=1)):
        dice = Dice()
        (done,) = rollout(task, {"lead": dice, "worker": dice}, [4])
        assert replay(done, task) is None
    idle = Play({"0": []})
    (done,) = rollout(idle, {}, [0])
    assert (done.attrs, replay(done, idle)) == ({"ended": "stalled"}, None)


def test_an_episode_in_which_an_undeclared_role_decides_is_refused_or_replays():
    """What can be rolled out can be replayed."""
    task = Play({"0": [(Spawn("ghost"),), (Stop("done"),)], "0/0": [(Return("boo"),)]})
    try:
        (done,) = rollout(task, {"lead": GO, "ghost": GO}, [0])
    except StrettoError as error:
        assert "ghost" in str(error)
        return
    assert replay(done, task) is None


EDITS = {
    "id": lambda e: replace(e, id="x#1"),
    "kind": lambda e: replace(e, kind="gossip"),
    "agent": lambda e: replace(e, agent="9"),
    "start": lambda e: replace(e, start=e.start + 0.25),
    "start unknown": lambda e: replace(e, start=None),
    "duration": lambda e: replace(e, duration=e.duration + 0.25),
    "to": lambda e: replace(e, to="0/9"),
    "tool": lambda e: replace(e, tool="web"),
    "content": lambda e: replace(e, content="f00"),
    "price": lambda e: replace(e, price=9.0),
    "trusted": lambda e: replace(e, trusted=not e.trusted),
    "label": lambda e: replace(e, label=SafetyLabel(integrity="low")),
    "attrs": lambda e: replace(e, attrs={**e.attrs, "x": 1}),
}
DECISION_EDITS = {
    "type": lambda d: replace(d, type="stop"),
    "observation": lambda d: replace(d, observation="f00"),
    "more candidates": lambda d: replace(d, candidates=(*d.candidates, "dance")),
    "other candidates": lambda d: replace(d, candidates=tuple(c + "!" for c in d.candidates)),
    "nothing chosen": lambda d: replace(d, chosen=None),
    "a place that is none": lambda d: replace(d, chosen=len(d.candidates)),
}


@pytest.mark.parametrize("field", EDITS)
@examples(12)
@given(st.sampled_from(RECORDED), st.data())
def test_an_edited_event_is_noticed_where_it_is(field, recorded, data):
    row = data.draw(rows(recorded))
    event = EDITS[field](recorded.events[row])
    found = replay(with_event(recorded, row, event), TASK)
    assert found is not None
    if field not in ("id", "kind", "agent"):
        assert (found.event, found.field) == (event.id, field.split()[0])


@pytest.mark.parametrize("field", DECISION_EDITS)
@examples(12)
@given(st.sampled_from(RECORDED), st.data())
def test_an_edited_decision_is_noticed(field, recorded, data):
    turns = [row for row, event in enumerate(recorded.events) if event.kind == "decision"]
    row = data.draw(st.sampled_from(turns))
    event = recorded.events[row]
    edited = replace(event, decision=DECISION_EDITS[field](event.decision))
    assert noticed(with_event(recorded, row, edited))


@examples(25)
@given(st.sampled_from(RECORDED), st.data())
def test_another_choice_is_noticed(recorded, data):
    """Where the choice had an effect: nothing follows from one that was overtaken by the end."""
    effective = {edge.src for edge in recorded.edges if edge.label == "causal"}
    turns = [
        row
        for row, event in enumerate(recorded.events)
        if event.id in effective and event.decision and len(event.decision.candidates) > 1
    ]
    row = data.draw(st.sampled_from(turns))
    event = recorded.events[row]
    others = set(range(len(event.decision.candidates))) - {event.decision.chosen}
    chosen = data.draw(st.sampled_from(sorted(others)))
    edited = replace(event, decision=replace(event.decision, chosen=chosen))
    assert noticed(with_event(recorded, row, edited))


@examples(25)
@given(st.sampled_from(RECORDED), st.data())
def test_tokens_of_an_event_that_is_no_turn_are_noticed(recorded, data):
    effects = [row for row, event in enumerate(recorded.events) if event.kind != "decision"]
    row = data.draw(st.sampled_from(effects))
    edited = replace(recorded.events[row], tokens=Tokens(output=1))
    assert noticed(with_event(recorded, row, edited))


@pytest.mark.parametrize("change", ["drop", "double", "swap", "cut"])
@examples(12)
@given(st.sampled_from(RECORDED), st.data())
def test_a_missing_doubled_or_moved_event_is_noticed(change, recorded, data):
    events = list(recorded.events)
    row = data.draw(st.integers(1, len(events) - 1))
    match change:
        case "drop":
            del events[row]
        case "double":
            events.insert(row, events[row])
        case "swap":
            events[row - 1], events[row] = events[row], events[row - 1]
        case "cut":
            del events[row:]
    assert noticed(replace(recorded, events=tuple(events)))


@pytest.mark.parametrize("change", ["drop", "double", "src", "label", "evidence"])
@examples(8)
@given(st.sampled_from(RECORDED), st.data())
def test_an_edited_edge_is_noticed(change, recorded, data):
    edges = list(recorded.edges)
    row = data.draw(st.integers(0, len(edges) - 1))
    edge = edges[row]
    match change:
        case "drop":
            del edges[row]
        case "double":
            edges.append(edge)
        case "src":
            edges[row] = Edge(edge.dst, edge.dst, edge.label)
        case "label":
            edges[row] = replace(edge, label="rumour")
        case "evidence":
            edges[row] = replace(edge, evidence="derived")
    assert noticed(replace(recorded, edges=tuple(edges)))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: {"agents": t.agents[:-1]},
        lambda t: {"agents": (replace(t.agents[0], role="worker"), *t.agents[1:])},
        lambda t: {"scores": ()},
        lambda t: {"scores": (replace(t.scores[0], value=t.scores[0].value + 1e-9),)},
        lambda t: {"scores": (*t.scores, Score(channel="bonus", value=1.0))},
        lambda t: {"attrs": {"ended": "limit"}},
        lambda t: {"attrs": {}},
        lambda t: {"seed": t.seed + 1},
        lambda t: {"harness": "f00"},
        lambda t: {"task": "another"},
        lambda t: {"system": "another"},
        lambda t: {"topology": "swarm"},
        lambda t: {"spec": {"family": "another"}},
        lambda t: {"contents": dict.fromkeys(t.contents, "forged")},
    ],
    ids=[
        *("agent dropped", "role", "score dropped", "score", "score added", "end", "attrs"),
        *("seed", "harness", "task", "system", "topology", "spec", "texts"),
    ],
)
def test_an_edited_header_table_or_text_is_noticed(change):
    assert all(noticed(replace(each, **change(each))) for each in RECORDED)


def test_dropped_texts_are_no_divergence():
    assert replay(replace(RECORDED[0], contents={}), TASK) is None


def test_another_game_of_the_same_harness_is_noticed():
    (done,) = scouts([3])
    assert noticed(done, Scouts(horizon=8, width=2))
    assert noticed(done, Scouts(horizon=8, width=3, scout_cost=0.5))
    assert noticed(done, Scouts(horizon=8, width=3, reliability=0.99))


def test_another_version_of_the_harness_is_refused():
    other = Crew(message_latency=0.75)
    with pytest.raises(StrettoError, match="made with harness") as error:
        replay(RECORDED[0], other)
    assert error.value.where == RECORDED[0].id
    with pytest.raises(StrettoError, match="made with harness"):
        fork(RECORDED[0], other, "0#0", live())


def test_a_trace_without_a_seed_cannot_be_replayed():
    with pytest.raises(StrettoError, match="has no seed"):
        replay(replace(RECORDED[0], seed=None), TASK)


def test_a_divergence_shows_both_sides():
    events = RECORDED[0].events
    row = next(row for row, event in enumerate(events) if event.kind == "tool_result")
    forged = replace(events[row], attrs={"number": 99})
    found = replay(with_event(RECORDED[0], row, forged), TASK)
    assert (found.event, found.field) == (events[row].id, "attrs")
    assert (found.recorded, found.replayed) == ({"number": 99}, events[row].attrs)


# ---- fork


def parts(trace):
    fields = ("task", "system", "topology", "harness", "seed", "spec", "attrs", "agents", "events")
    return [getattr(trace, each) for each in (*fields, "edges", "scores", "contents")]


@pytest.mark.parametrize("recorded", RECORDED, ids=SEEDS)
def test_an_unchanged_fork_is_the_same_episode_at_every_event(recorded):
    for event in recorded.events:
        branch = fork(recorded, TASK, event.id, live())
        assert parts(branch) == parts(recorded)
        assert [(each.parent, each.event) for each in branch.lineage] == [(recorded.id, event.id)]


def test_an_unchanged_fork_of_scouts_is_the_same_episode_at_every_event():
    for recorded in scouts(range(5)):
        for event in recorded.events:
            branch = fork(recorded, SCOUTS, event.id, {"lead": Dice()})
            assert parts(branch) == parts(recorded)


@pytest.mark.parametrize("recorded", RECORDED, ids=SEEDS)
def test_a_fork_with_another_seed_keeps_the_prefix_and_replays(recorded):
    others = 0
    for row, event in enumerate(recorded.events):
        branch = fork(recorded, TASK, event.id, live(), seed=99)
        assert branch.events[: row + 1] == recorded.events[: row + 1]
        assert replay(branch, TASK) is None
        assert list(problems(branch)) == []
        assert branch.seed == recorded.seed
        assert branch.lineage[0].seed == 99
        others += branch.events != recorded.events
    assert others > len(recorded.events) / 2


def test_forks_survive_writing_and_then_replay(tmp_path):
    branch = fork(RECORDED[0], TASK, "0#3", live(), seed=5)
    again = fork(branch, TASK, branch.events[8].id, live(), seed=6)
    store.write(tmp_path / "t.jsonl", [branch, again])
    assert [replay(each, TASK) for each in store.read(tmp_path / "t.jsonl")] == [None, None]


@pytest.mark.parametrize("seed", [None, 123])
def test_a_fork_of_a_fork_replays_wherever_it_leaves(seed):
    """Also before the point at which its parent left."""
    branch = fork(RECORDED[1], TASK, RECORDED[1].events[12].id, live(), seed=99)
    for row, event in enumerate(branch.events):
        again = fork(branch, TASK, event.id, live(), seed=seed)
        assert again.events[: row + 1] == branch.events[: row + 1]
        assert list(problems(again)) == []
        assert replay(again, TASK) is None
        assert again.lineage[-1].parent == branch.id


def test_an_unchanged_fork_of_a_fork_draws_nothing_new():
    """It is its parent again, or, left before the parent itself left, the episode before that."""
    root = RECORDED[1]
    branch = fork(root, TASK, root.events[12].id, live(), seed=99)
    assert parts(branch) != parts(root)
    for row, event in enumerate(branch.events):
        again = fork(branch, TASK, event.id, live())
        known = [branch] if row >= 12 else [branch, root]
        assert parts(again) in [parts(each) for each in known]


def test_forks_that_leave_differently_have_different_names():
    places = [event.id for event in RECORDED[0].events[:6]]
    branches = [fork(RECORDED[0], TASK, at, live(), seed) for at in places for seed in (1, 2)]
    assert len({branch.id for branch in branches} | {RECORDED[0].id}) == 13


def test_the_parent_is_left_as_it_is():
    before = store.encode(RECORDED[0])
    branch = fork(RECORDED[0], TASK, "0#0", live(), seed=3)
    fork(branch, TASK, "0#0", live(), seed=4)
    replay(RECORDED[0], TASK)
    assert store.encode(RECORDED[0]) == before


def test_a_fork_at_no_event_is_an_error():
    with pytest.raises(StrettoError, match='no event "0#999" to fork at'):
        fork(RECORDED[0], TASK, "0#999", live())


def test_a_branch_shares_every_draw_that_it_can():
    """The first two scouts see the same, whether or not a third is sent."""

    def colours(choice):
        lead = Scripted(lambda ask: choice if ask.event == "0#0" else "stop")
        (done,) = rollout(SCOUTS, {"lead": lead}, [11])
        return {e.agent: e.attrs["colour"] for e in done.events if e.kind == "tool_result"}

    two, three = colours("two"), colours("three")
    assert {agent: three[agent] for agent in ("0/0", "0/1")} == {a: two[a] for a in ("0/0", "0/1")}


def test_another_seed_draws_anew_what_tools_answer():
    lead = {"lead": Scripted(lambda ask: "three" if ask.event == "0#0" else "stop")}
    (recorded,) = rollout(SCOUTS, lead, [11])

    def looks(done):
        return [e.attrs["colour"] for e in done.events if e.kind == "tool_result"]

    branches = [fork(recorded, SCOUTS, "0#0", lead, seed) for seed in range(12)]
    assert len({tuple(looks(each)) for each in branches}) > 2
    assert all(SCOUTS.begin(each.seed) == SCOUTS.begin(11) for each in branches)


def test_another_seed_draws_anew_what_is_decided():
    """After one and the same look, the lead decides this way or that."""
    first = {"lead": Scripted(lambda ask: "one" if ask.event == "0#0" else "stop")}
    (recorded,) = rollout(SCOUTS, first, [11])
    at = next(event.id for event in recorded.events if event.kind == "tool_call")
    branches = [fork(recorded, SCOUTS, at, {"lead": Dice()}, seed) for seed in range(12)]
    seconds = [[e.decision for e in each.events if e.decision][1] for each in branches]
    assert len({each.observation for each in seconds}) == 1
    assert len({each.choice for each in seconds}) > 1


def test_only_what_follows_the_fork_is_asked_of_the_live_policy():
    recorded = RECORDED[0]
    dice = Dice()
    at = recorded.events[10].id
    branch = fork(recorded, TASK, at, {"lead": dice, "worker": dice})
    kept = {event.id for event in recorded.events[:11]}
    asked = [name for call in dice.calls for name in call]
    turns = [event.id for event in branch.events if event.kind == "decision"]
    assert sorted(asked) == sorted(set(turns) - kept)
