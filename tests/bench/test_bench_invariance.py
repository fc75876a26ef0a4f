"""What moves which metrics: copies of messages, padding, names; and where teams must not gain."""

import pytest
from msgspec.structs import replace

from stretto.bench.bands import make
from stretto.bench.play import sit, values_of
from stretto.bench.suite import Cell, public_split
from stretto.bench.table import lines
from stretto.tasks.scripts import scripts_of, yardstick_of
from stretto.team.engine import rollout
from stretto.trace import Edge, Event

E1 = {"outcome", "score", "success", "utility", "judged", "luck", "best", "chance"}
E2 = {
    "makespan",
    "work",
    "span",
    "own_parallelism",
    "speedup",
    "optimality",
    "utilisation",
    "pseudo",
    "critical_steps",
    "straggler",
    "workers",
}
E3 = {
    "redundancy",
    "message_plus",
    "message_zero",
    "message_minus",
    "free_riders",
    "aggregation_regret",
    "flips",
    "milestones",
    "largest_share",
}
E4 = {
    "tokens",
    "turns",
    "events",
    "agents",
    "coordination",
    "messages_per_turn",
    "score_per_1000",
}


def played(family, topology=None, **parameters):
    task = make(family, parameters, 3, topology)
    (trace,) = rollout(task, scripts_of(task)["oracle"], [3])
    return task, trace


def measured(task, trace):
    return values_of(task, trace, 20.0, yardstick_of(task))


def moved(task, before, after):
    old, new = measured(task, before), measured(task, after)
    assert old.keys() == E1 | E2 | E3 | E4
    return {
        name
        for name in old
        if old[name] != (None if new[name] is None else pytest.approx(new[name]))
    }


def with_copies(trace, kind):
    """Every event of a kind twice."""
    events, edges = [], list(trace.edges)
    for event in trace.events:
        events.append(event)
        if event.kind == kind:
            events.append(replace(event, id=event.id + "x"))
            edges += [
                Edge(e.src, event.id + "x", e.label) for e in trace.edges if e.dst == event.id
            ]
    return replace(trace, events=tuple(events), edges=tuple(edges))


def padded(trace):
    """The worker who is done first asks once more what it asked before, in time that it has."""
    back = next(e for e in trace.events if e.kind == "return")
    own = [e for e in trace.events if e.agent == back.agent]
    turn = next(e for e in own if e.kind == "decision")
    call = next(e for e in own if e.kind == "tool_call")
    result = next(e for e in own if e.kind == "tool_result")
    ids = [f"{back.agent}#9{n}" for n in range(3)]
    extra = [
        replace(turn, id=ids[0], start=back.start),
        replace(call, id=ids[1], start=back.start, duration=0.5),
        replace(result, id=ids[2], start=back.start + 0.5),
    ]
    links = [(back.id, ids[0]), (ids[0], ids[1]), (ids[1], ids[2])]
    labels = ("causal", "causal", "tool_dependency")
    edges = [Edge(*pair, label) for pair, label in zip(links, labels, strict=True)]
    at = next(n for n, e in enumerate(trace.events) if (e.start or 0) > back.start + 0.5)
    events = (*trace.events[:at], *extra, *trace.events[at:])
    return replace(trace, events=events, edges=(*trace.edges, *edges))


def renamed(trace, one, other):
    """Two siblings with each other's names."""

    def name(text):
        head, mark, rest = (text or "").partition("#")
        new = {one: other, other: one}.get(head, head)
        return None if text is None else new + mark + rest

    def event(each: Event):
        return replace(each, id=name(each.id), agent=name(each.agent), to=name(each.to))

    return replace(
        trace,
        agents=tuple(replace(a, id=name(a.id), parent=name(a.parent)) for a in trace.agents),
        events=tuple(map(event, trace.events)),
        edges=tuple(Edge(name(e.src), name(e.dst), e.label, e.evidence) for e in trace.edges),
    )


@pytest.mark.parametrize("family", ["hops", "jury"])
def test_copies_of_messages_move_e3_and_e4_only(family):
    task, trace = played(family, "debate", **({"width": 4} if family == "hops" else {}))
    found = moved(task, trace, with_copies(trace, "message"))
    assert "messages_per_turn" in found
    assert found <= E3 | E4


def test_copies_of_reports_lower_their_value():
    """Of two reports that say the same, neither is missed."""
    task, trace = played("hops", "centralized", width=4)
    before = measured(task, trace)["message_plus"]
    after = measured(task, with_copies(trace, "return"))["message_plus"]
    assert before is not None and after is not None and after < before


def test_padding_moves_e2_and_e4_only():
    task, trace = played("gather", entities=8)
    found = moved(task, trace, padded(trace))
    assert {"tokens", "work", "pseudo", "own_parallelism"} <= found
    assert found <= E2 | E4
    old, new = measured(task, trace), measured(task, padded(trace))
    assert new["pseudo"] > old["pseudo"]


@pytest.mark.parametrize("family", ["gather", "hops", "jury"])
def test_names_of_agents_move_nothing(family):
    task, trace = played(family, None if family == "gather" else "swarm")
    assert moved(task, trace, renamed(trace, "0/0", "0/1")) == set()


def cell_lines(cell, instances):
    names = ("oracle", "solo", "slips")
    seeds = public_split().seeds[:instances]
    rows = [row for seed in seeds for row in sit(cell, seed, names, replays=False)]
    return {line.policy: line for line in lines(rows)}


def test_no_gain_where_there_is_nothing_to_share():
    """`gather` with one worker, and a question of `hops` too short to be worth a team."""
    for cell in (Cell("gather", "10", "centralized"), Cell("hops", "10", "centralized")):
        team = cell_lines(cell, 10)["oracle"]
        assert team.gain.high <= 0
        assert team.utility_gain.high <= 0


def test_a_gain_of_utility_where_work_can_be_shared():
    """`gather` with four workers: the same table at the same tokens, in less time."""
    team = cell_lines(Cell("gather", "100", "centralized"), 10)["oracle"]
    assert team.gain.mean == pytest.approx(0.0, abs=0.02)
    assert team.utility_gain.low > 0.05
