"""verifiers: the message graph, who its agents are, labels both ways, loops."""

import json

import pytest
from hypothesis import given, settings

from stretto.errors import StrettoError
from stretto.exporters import verifiers as target
from stretto.graph import topological_order
from stretto.importers import detect, import_paths
from stretto.importers.conformance import check_importer
from stretto.trace import Agent, Decision, Edge, Event, Score, Tokens, Trace

from .labelled import names, scores
from .oddities import fares_well, odd
from .transcripts import arrows, kinds


def node(parent, role, content, *links, ids=(), sampled=0, **message):
    """A message; the last `sampled` of its token ids were sampled."""
    fixed = len(ids) - sampled
    made = {
        "semantic_parents": [{"node": src, "type": label} for src, label in links],
        "message": {"role": role, "content": content, **message},
        "sampled": role == "assistant",
        "timestamp": 1.0,
        "token_ids": list(ids),
        "mask": [place >= fixed for place in range(len(ids))],
        "logprobs": [-0.5] * sampled,
    }
    return made | ({} if parent is None else {"parent": parent})


def called(place, start, end, prompt=3, output=1, **usage):
    usage = {"prompt_tokens": prompt, "completion_tokens": output, **usage}
    time = {"start": 1000.0 + start, "end": 1000.0 + end}
    return {"node": place, "model": "m", "usage": usage, "time": time}


def tool(use, name):
    return {"id": use, "type": "function", "name": name, "arguments": "{}"}


NODES = [
    node(None, "system", "s", ids=[1, 2]),
    node(0, "user", "do", ids=[3]),
    node(1, "assistant", "ask", ids=[4, 5, 6], sampled=2, tool_calls=[tool("c1", "task")]),
    node(0, "user", "sub", ids=[7]),
    node(3, "assistant", "sub answer", (2, "subagent_call"), ids=[8, 9], sampled=1),
    node(2, "tool", "sub answer", ids=[10], tool_call_id="c1"),
    node(
        *(5, "assistant", "final", (4, "subagent_return"), (2, "continuation"), (4, "x:review")),
        ids=[11, 12],
        sampled=1,
    ),
]
CALLS = [
    called(2, 0, 1, output=2),
    called(4, 1.5, 2),
    called(6, 2.5, 4, 5, cached_input_tokens=4, cost=0.5),
]
TASK = {"type": "T", "data": {}, "key": "k1"}
TRACE = {
    "version": 1,
    "id": "t1",
    "verifiers": {"version": "0.4.0"},
    "task": TASK,
    "agent": {"name": "solver", "trainable": True, "config": {}},
    "nodes": NODES,
    "calls": CALLS,
    "rewards": {"acc": {"score": 1.0, "weight": 0.5}, "unscored": None},
    "metrics": {"num_turns": 3.0},
    "ok": True,
    "stop_condition": "agent_completed",
}
EPISODE = {"id": "e1", "env": {"id": "env"}, "task": TASK, "ok": True, "traces": [TRACE]}


def trace_with(*nodes, calls=None):
    calls = [called(n, n, n + 0.5) for n in range(len(nodes))] if calls is None else calls
    return TRACE | {"nodes": list(nodes), "calls": calls, "rewards": {}, "metrics": {}}


def read(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return import_paths([path]).traces


@pytest.mark.parametrize("record", [EPISODE, TRACE], ids=["episode", "trace alone"])
def test_a_call_of_a_sub_agent_is_a_spawn_and_its_report_a_return(tmp_path, record):
    (trace,) = read(tmp_path / "traces.jsonl", record)
    assert names(trace) == {"0": "solver", "0/0": None}
    (spawn,), (back,) = kinds(trace, "spawn"), kinds(trace, "return")
    assert (spawn.agent, spawn.to, trace.text(spawn.content)) == ("0", "0/0", "sub")
    assert (back.agent, back.to, trace.text(back.content)) == ("0/0", "0", "sub answer")
    first, sub, last = kinds(trace, "decision")
    assert (sub.agent, last.start, last.duration) == ("0/0", 2.5, 1.5)
    assert (spawn.id, sub.id) in arrows(trace, "spawn")
    assert (back.id, last.id) in arrows(trace, "return")
    assert {e.evidence for e in trace.edges if (e.src, e.dst) == (first.id, last.id)} == {
        "recorded"
    }
    assert (sub.id, last.id) in arrows(trace, "x:review")
    assert [turn.decision.type for turn in (first, sub, last)] == ["spawn", "stop", "stop"]
    (call,) = kinds(trace, "tool_call")
    assert (call.start, call.duration) == (1.0, 1.5)  # until the turn that read the result


def test_a_turn_of_another_model_than_its_agents_says_so(tmp_path):
    other = [*CALLS[:2], CALLS[2] | {"model": "n"}]
    (trace,) = read(tmp_path / "traces.jsonl", TRACE | {"calls": other})
    assert [agent.model for agent in trace.agents] == ["m", "m"]
    assert [e.attrs.get("model") for e in kinds(trace, "decision")] == [None, None, "n"]


def test_tokens_scores_and_ids(tmp_path):
    (trace,) = read(tmp_path / "traces.jsonl", EPISODE)
    first, _, last = kinds(trace, "decision")
    assert last.tokens == Tokens(input=5, output=1, cache_read=4)
    assert last.price == 0.5
    assert first.decision.completion_ids == (5, 6)
    assert first.decision.completion_logprobs == (-0.5, -0.5)
    assert scores(trace) == {"acc": 1.0, "num_turns": 3.0}
    assert trace.attrs["reward_weights"] == {"acc": 0.5}
    assert (trace.id, trace.task, trace.system) == ("e1", "k1", "verifiers 0.4.0")


def test_a_compaction_and_a_continuation_stay_with_their_agent(tmp_path):
    record = trace_with(
        node(None, "user", "go"),
        node(0, "assistant", "a"),
        node(None, "user", "sub"),
        node(2, "assistant", "b", (1, "subagent_call")),
        node(3, "assistant", "try", (3, "compaction_attempt")),
        node(None, "user", "short"),
        node(5, "assistant", "c", (4, "compaction")),
        node(None, "user", "aside"),
        node(7, "assistant", "d"),
    )
    (trace,) = read(tmp_path / "traces.jsonl", record)
    whose = {trace.text(e.content): e.agent for e in kinds(trace, "decision")}
    assert whose == {"a": "0", "b": "0/0", "try": "0/0", "c": "0/0", "d": "0"}
    assert len(arrows(trace, "compaction")) == len(arrows(trace, "compaction_attempt")) == 1


def test_a_second_call_of_the_same_context_is_a_delegation(tmp_path):
    record = trace_with(
        node(None, "user", "go"),
        node(0, "assistant", "a"),
        node(None, "user", "sub"),
        node(2, "assistant", "b", (1, "subagent_call")),
        node(1, "assistant", "c", (3, "subagent_return"), (3, "agent_message")),
        node(3, "assistant", "d", (4, "subagent_call")),
    )
    (trace,) = read(tmp_path / "traces.jsonl", record)
    assert len(trace.agents) == 2
    assert [e.kind for e in kinds(trace, "spawn", "delegate", "message", "return")] == [
        *("spawn", "return", "message", "delegate")
    ]


def test_a_cancel_may_close_a_loop(tmp_path):
    record = trace_with(
        node(None, "user", "go"),
        node(0, "assistant", "a"),
        node(None, "user", "sub"),
        node(2, "assistant", "b", (1, "subagent_call"), (4, "subagent_cancel")),
        node(1, "assistant", "c", (3, "subagent_return")),
    )
    (trace,) = read(tmp_path / "traces.jsonl", record)
    assert [(e.agent, e.to) for e in kinds(trace, "despawn")] == [("0", "0/0")]
    assert len(arrows(trace, "subagent_cancel")) == 1
    with pytest.raises(StrettoError, match="form a loop"):
        topological_order(trace)
    assert links(target.export([trace])) == {
        (1, 3, "subagent_call"),
        (4, 3, "subagent_cancel"),
        (3, 4, "subagent_return"),
    }


def test_traces_of_an_episode_are_agents_with_scores_of_their_own(tmp_path):
    other = TRACE | {"id": "t2", "agent": {"name": "judge"}, "rewards": {"acc": {"score": 0.0}}}
    (trace,) = read(tmp_path / "traces.jsonl", EPISODE | {"traces": [TRACE, other]})
    assert names(trace) == {"0": "solver", "0/0": None, "1": "judge", "1/0": None}
    found = {(s.channel, s.agent): s.value for s in trace.scores}
    assert (found["acc", "0"], found["acc", "1"]) == (1.0, 0.0)
    assert trace.reward("acc") is None


def links(output):
    """All semantic parents of an export, as (from, to, label)."""
    return {
        (link["node"], place, link["type"])
        for line in output.files[""].splitlines()
        for trace in json.loads(line)["traces"]
        for place, each in enumerate(trace["nodes"])
        for link in each.get("semantic_parents", ())
    }


def test_the_way_back_gives_the_same_graph(tmp_path):
    (trace,) = read(tmp_path / "traces.jsonl", EPISODE)
    output = target.export([trace])
    (back,) = json.loads(output.files[""])["traces"]
    for old, new in zip(NODES, back["nodes"], strict=True):
        for field in ("parent", "token_ids", "mask", "logprobs", "sampled"):
            assert new.get(field) == (old.get(field) or new.get(field))
        for field in ("role", "content", "tool_call_id"):
            assert new["message"].get(field) == old["message"].get(field)
        assert new.get("semantic_parents", []) == old["semantic_parents"]
    assert [call["usage"] for call in back["calls"]] == [call["usage"] for call in CALLS]
    assert [call["time"] for call in back["calls"]] == [call["time"] for call in CALLS]
    assert back["rewards"] == {"acc": {"score": 1.0, "weight": 0.5}}
    assert output.left_out == {}
    (again,) = read(tmp_path / "again.jsonl", json.loads(output.files[""]))
    assert (again.agents, again.events, again.edges) == (trace.agents, trace.events, trace.edges)


def test_a_team_of_ours_becomes_one_graph():
    """A lead of two turns, a worker of one; prompts that grow, so that tokens lie end to end."""

    def turn(name, agent, at, prompt, sampled):
        decision = Decision(
            prompt_ids=prompt, completion_ids=sampled, completion_logprobs=(-1.0,) * len(sampled)
        )
        return Event(id=name, kind="decision", agent=agent, start=at, decision=decision)

    events = (
        turn("a", "0", 0.0, (1, 2), (3,)),
        Event(id="s", kind="spawn", agent="0", to="0/0"),
        turn("b", "0/0", 1.0, (8,), (9,)),
        Event(id="r", kind="return", agent="0/0", to="0"),
        turn("c", "0", 2.0, (1, 2, 3, 4), (5,)),
        turn("d", "0", 3.0, (7,), (6,)),
    )
    pairs = ["as", "br", "ac:temporal", "sb:spawn", "rc:return", "cd:temporal"]
    edges = tuple(Edge(p[0], p[1], p[3:] or "causal") for p in pairs)
    trace = Trace(
        id="t",
        agents=(Agent(id="0", role="lead"), Agent(id="0/0", parent="0")),
        events=events,
        edges=edges,
        scores=(Score(channel="win", value=0.0),),
    )
    output = target.export([trace])
    (made,) = json.loads(output.files[""])["traces"]
    assert links(output) == {
        (0, 1, "subagent_call"),
        (1, 2, "subagent_return"),
        (0, 2, "continuation"),
        (2, 3, "continuation"),
    }
    tokens = [(each.get("parent"), each["token_ids"], each["mask"]) for each in made["nodes"]]
    assert tokens == [
        (None, [1, 2, 3], [False, False, True]),
        (None, [8, 9], [False, True]),
        (0, [4, 5], [False, True]),
        (None, [7, 6], [False, True]),  # its prompt is another: a root of its own
    ]
    assert made["rewards"] == {"win": {"score": 0.0, "weight": 1.0}}
    assert output.left_out == {}


def test_a_near_miss_says_why(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({"env": {}, "task": {}, "traces": [{}]}) + "\n")
    with pytest.raises(StrettoError, match='closest is verifiers: traces without "nodes"'):
        detect(tmp_path / "x.jsonl")


@given(odd(EPISODE))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_odd_fields_never_break_it(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("odd") / "traces.jsonl"
    path.write_text(json.dumps(document) + "\n")
    fares_well(path, "verifiers")


def test_it_keeps_the_rules(tmp_path):
    read(tmp_path / "traces.jsonl", EPISODE, EPISODE | {"id": "e2"}, TRACE | {"id": "t3"})
    check_importer("verifiers", [tmp_path / "traces.jsonl"])
