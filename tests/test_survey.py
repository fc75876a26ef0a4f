import json
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

import stretto
from stretto.errors import StrettoError
from stretto.exporters.survey import TYPE_OF_KIND, to_survey
from stretto.importers import import_paths
from stretto.importers.conformance import check_importer
from stretto.importers.survey.records import BareEdge, BareEvent
from stretto.importers.survey.schema import from_survey
from stretto.trace import LABELS, Agent, Edge, Event, Lineage, Score, Tokens, Trace, content_hash

from .examples import event, trace, turn
from .strategies import damaged, examples, traces

SURVEY = Path(__file__).parents[2] / "shared" / "data" / "survey"

SMALL = {
    "trace_id": "t",
    "task_id": "q",
    "events": [{"id": "e", "t": 0, "type": "spawn", "agent": "a", "role": "lead", "to": "b"}],
    "edges": [],
    "rewards": {"team": 1},
    "costs": {"tokens": 5, "wall_clock_s": 2},
}


@cache
def validator():
    import jsonschema

    path = SURVEY / "trace_schema.json"
    if not path.exists():
        pytest.skip("the survey's schema is not here")
    return jsonschema.Draft202012Validator(json.loads(path.read_text()))


def assert_valid(document):
    validator().validate(json.loads(json.dumps(document)))


@pytest.fixture(scope="module")
def example():
    path = SURVEY / "example_trace.json"
    if not path.exists():
        pytest.skip("the survey's example is not here")
    return path


def read(document):
    return from_survey(json.dumps(document).encode(), "f.json")


def there_and_back(given):
    return read(json.loads(json.dumps(to_survey(given))))


def as_multiset(given):
    """Scores of a survey file are objects by channel: they have no order."""
    return replace(given, scores=tuple(sorted(given.scores, key=repr)))


# ---- the survey's own example


def test_the_example_is_written_back_as_it_was(example):
    document = json.loads(example.read_text())
    assert to_survey(from_survey(example.read_bytes(), "example")) == document


def test_the_example_is_imported_by_its_content(example):
    assert import_paths([example]).traces == (stretto.load(example),)
    check_importer("survey", [example])


def test_the_example_is_valid_again(example):
    assert_valid(to_survey(from_survey(example.read_bytes(), "example")))


def test_the_example_is_understood(example):
    given = stretto.load(example)
    assert (given.id, given.task, given.topology) == (
        "demo-trace-001",
        "demo-task-browser-research",
        "centralized",
    )
    kinds = [each.kind for each in given.events]
    expected = ["decision", "spawn", "spawn", "message", "tool_call", "tool_result", "return"]
    assert kinds == [*expected, "aggregate"]
    assert [each.start for each in given.events] == [float(second) for second in range(8)]
    assert given.agents == (
        Agent(id="orchestrator", role="lead"),
        Agent(id="planner_1", role="planner", parent="orchestrator"),
        Agent(id="executor_1", role="executor", parent="orchestrator"),
        Agent(id="browser.search"),
    )
    assert given.events[5].trusted is False
    assert given.events[0].trusted is None
    assert given.events[0].duration is None
    assert given.events[1].attrs == {"role": "planner"}  # of the new agent
    assert given.events[3].attrs == {"from": "planner_1"}
    assert given.edges[4] == Edge("e4", "e5", "tool_dependency")
    assert given.reward("orchestration") == 0.3
    assert Score(channel="wall_clock_s", value=420, kind="cost") in given.scores
    assert Score(channel="protocol_overhead", value=0.18, kind="metric") in given.scores


# ---- from the survey


def test_what_a_file_says_explicitly_is_written_again():
    explicit = {**SMALL, "topology": "unknown", "metrics": {}}
    assert to_survey(read(explicit)) == explicit
    assert to_survey(read(SMALL)) == SMALL


def test_extra_fields_of_events_survive():
    mood = {**SMALL["events"][0], "mood": {"deep": [1, None]}, "from": "x", "label": "l"}
    assert to_survey(read({**SMALL, "events": [mood]})) == {**SMALL, "events": [mood]}


def happened(*events):
    """A document of events `(type, agent, role or None, to or None)`."""
    records = [
        {"id": f"e{row}", "t": row, "type": kind, "agent": agent}
        | {name: text for name, text in (("role", role), ("to", to)) if text is not None}
        for row, (kind, agent, role, to) in enumerate(events)
    ]
    return {**SMALL, "events": records}


def test_an_agent_has_the_role_of_its_first_event_and_others_say_theirs():
    document = happened(
        ("message", "a", "lead", None),
        ("return", "a", "lead", None),
        ("return", "a", "judge", None),
        ("return", "a", None, None),
        ("return", "b", None, None),
        ("return", "b", "worker", None),
    )
    given = read(document)
    silent = {"survey_silent": True}
    assert given.agents == (
        Agent(id="a", role="lead"),
        Agent(id="b", role="worker", attrs=silent),
    )
    roles = [each.attrs.get("role", "own") for each in given.events]
    assert roles == ["own", "own", "judge", None, "own", "worker"]
    assert to_survey(given) == document


def test_the_role_of_a_spawn_is_not_that_of_the_spawner():
    document = happened(("spawn", "a", "worker", "b"), ("return", "a", "lead", None))
    given = read(document)
    assert given.agents == (Agent(id="a", role="lead"),)
    assert [each.attrs for each in given.events] == [{"role": "worker"}, {}]
    assert to_survey(given) == document


def test_an_agent_whose_events_say_no_role_has_that_of_its_spawn():
    document = happened(
        ("message", "a", "lead", None),
        ("spawn", "a", "worker", "b"),
        ("return", "b", None, None),
        ("return", "b", "judge", None),
    )
    given = read(document)
    worker = Agent(id="b", role="worker", parent="a", attrs={"survey_silent": True})
    assert given.agents == (Agent(id="a", role="lead"), worker)
    assert [each.attrs for each in given.events[2:]] == [{}, {"role": "judge"}]
    assert to_survey(given) == document


def test_who_was_spawned_before_it_acted_has_a_parent():
    document = happened(
        ("spawn", "a", None, "b"),
        ("spawn", "b", None, "a"),  # acted before
        ("spawn", "b", None, "b"),
        ("spawn", "a", None, "c"),
        ("spawn", "b", None, "c"),  # the first one counts
        ("return", "c", None, None),
    )
    given = read(document)
    assert given.agents == (Agent(id="a"), Agent(id="b", parent="a"), Agent(id="c", parent="a"))
    assert to_survey(given) == document


def test_roles_of_agents_are_written_where_the_survey_looks_for_them():
    agents = (Agent(id="0", role="lead"), Agent(id="0/0", role="worker", parent="0"))
    events = (
        Event(id="0#0", kind="spawn", agent="0", start=0.0, to="0/0", attrs={"role": "worker"}),
        Event(id="0#1", kind="stop", agent="0", start=1.0),
        Event(id="0/0#0", kind="return", agent="0/0", start=1.0),
    )
    given = Trace(id="t", agents=agents, events=events)
    written = to_survey(given)["events"]
    assert [each.get("role") for each in written] == ["worker", "lead", "worker"]
    assert "agents" not in written[0].get("stretto", {}).get("trace", {})  # the events say it all
    assert there_and_back(given) == given


def test_unknown_types_and_labels_are_kept():
    events = [
        {"id": "e", "t": 1, "type": "dream", "agent": "a"},
        {"id": "f", "t": 1, "type": "stop", "agent": "a"},
    ]
    edges = [{"src": "e", "dst": "f", "type": "rumour"}]
    given = read({**SMALL, "events": events, "edges": edges})
    assert [each.kind for each in given.events] == ["dream", "stop"]
    assert given.edges[0].label == "rumour"
    assert there_and_back(given) == given


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        ({"trace_id": ""}, "f.json: trace_id", "length >= 1"),
        ({"task_id": 3}, "f.json: task_id", "expected `str`"),
        ({"events": []}, "f.json: events", "length >= 1"),
        ({"rewards": {"team": "high"}}, "f.json: rewards[...]", "expected `float`"),
        ({"rewards": {"": 1}}, "f.json: rewards", "length >= 1"),
        ({"rewards": {"team": None}}, "f.json: rewards[...]", "expected `float`"),
        ({"edges": [{"src": "e", "dst": "e"}]}, "f.json: edges[0]", "missing required field"),
        ({"verdict": 1}, "f.json: document", "unknown field `verdict`"),
        ({"costs": {"tokens": -2}}, "f.json: costs.tokens", "-2 is below 0"),
        ({"edges": [{"src": "e", "dst": "z", "type": "causal"}]}, "f.json: edges[0].dst", '"z"'),
    ],
)
def test_a_bad_document_is_told_with_its_field(change, where, what):
    with pytest.raises(StrettoError) as error:
        read({**SMALL, **change})
    assert error.value.where == where
    assert what in error.value.what


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"t": -1}, "f.json: events[1].t"),
        ({"t": None}, "f.json: events[1].t"),
        ({"agent": ""}, "f.json: events[1].agent"),
        ({"trusted": "yes"}, "f.json: events[1].trusted"),
        ({"id": "e"}, "f.json: events[1].id"),
        ({"stretto": {"duration": -1}}, "f.json: events[1].stretto.duration"),
        ({"stretto": 5}, "f.json: events[1].stretto"),
    ],
)
def test_a_bad_event_is_told_with_its_place_and_field(change, where):
    second = {"id": "f", "t": 1, "type": "spawn", "agent": "a", **change}
    with pytest.raises(StrettoError) as error:
        read({**SMALL, "events": [*SMALL["events"], second]})
    assert error.value.where == where


def test_a_role_of_null_is_none():
    event = {**SMALL["events"][0], "type": "return"}
    assert read({**SMALL, "events": [{**event, "role": None}]}) == read(
        {**SMALL, "events": [{name: value for name, value in event.items() if name != "role"}]}
    )


def test_a_field_of_ours_that_somebody_else_wrote_is_no_loss_in_silence():
    event = {**SMALL["events"][0], "stretto": {"foo": 1}}
    with pytest.raises(StrettoError, match="unknown field `foo`"):
        read({**SMALL, "events": [event]})


def test_an_evidence_that_does_not_exist_is_refused():
    events = [{**SMALL["events"][0], "stretto": {"trace": {"edges": {"0": ["causal", "hunch"]}}}}]
    edges = [{"src": "e", "dst": "e", "type": "causal"}]
    with pytest.raises(StrettoError):
        read({**SMALL, "events": events, "edges": edges})


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"trace_id": "\xff"}', b"null"])
def test_what_is_no_such_document_is_our_error(data):
    with pytest.raises(StrettoError, match=r"^f\.json:"):
        from_survey(data, "f.json")


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b'{"trace_id": "t",\n "task_id": q}', "f.json:2:13"),
        (b'{"trace_id": "t",\n "task_id": "q"', "f.json:2:16"),
        (b'{"trace_id": "\xff"}', "f.json:1:15"),
        (b"", "f.json:1:1"),
    ],
)
def test_broken_json_is_told_with_line_and_column(data, where):
    with pytest.raises(StrettoError) as error:
        from_survey(data, "f.json")
    assert error.value.where == where


def test_a_file_with_fields_of_its_own_reads_as_one_without():
    """The quick way and the thorough way agree on all that both can read."""
    events = [{**SMALL["events"][0], "content_ref": "c", "trusted": False, "from": "x"}]
    events.append({"id": "f", "t": 2.5, "type": "return", "agent": "b"})
    document = {**SMALL, "events": events, "edges": [{"src": "e", "dst": "f", "type": "return"}]}
    plain = read(document)
    marked = read({**document, "events": [*events[:1], {**events[1], "mood": 1}]})
    assert marked.events[1].attrs == {"mood": 1}
    assert replace(marked, events=plain.events) == plain
    assert marked.events[0] == plain.events[0]
    assert replace(marked.events[1], attrs={}) == plain.events[1]


@pytest.mark.parametrize(
    ("record", "known"), [(BareEvent, TYPE_OF_KIND.values()), (BareEdge, LABELS)]
)
def test_the_quick_way_knows_every_type_that_is_written(record, known):
    (types,) = [f.type for f in fields(record) if f.name == "type"]
    assert set(get_args(types)) == set(known)


@examples(200)
@given(damaged(json.dumps(SMALL).encode()))
def test_flipped_and_cut_bytes_raise_nothing_but_our_error(data):
    try:
        from_survey(data, "f.json")
    except StrettoError as error:
        assert error.where.startswith("f.json")


def test_a_file_is_the_same_trace_however_its_fields_are_ordered(tmp_path):
    """`load` tells a file that begins as the schema does at once, and any other by its content."""
    plain, other = tmp_path / "plain.json", tmp_path / "other.json"
    plain.write_text(json.dumps(SMALL))
    other.write_text(json.dumps(dict(reversed(SMALL.items()))))
    assert stretto.load(plain) == stretto.load(other) == read(SMALL)


# ---- to the survey

RICH = Trace(
    id="t",
    task="q",
    topology="gossip",
    harness="f00",
    seed=0,
    spec={"family": "demo"},
    lineage=(Lineage(parent="t0", event="0#0", seed=9),),
    attrs={"ended": "stop"},
    agents=(Agent(id="0", role="lead"), Agent(id="0/0", parent="0")),
    events=(
        turn("0#0", 0.0, 1.0, tokens=Tokens(input=3, output=2)),
        Event(id="0#1", kind="stop", agent="0", attrs={"t": 1, "role": 5, "from": "x"}),
        Event(id="0#2", kind="orchestrator_decision", agent="0", start=2.0),
    ),
    edges=(Edge("0#0", "0#1", "rumour", "heuristic"), Edge("0#1", "0#2", "causal", "derived")),
    scores=(
        Score(channel="outcome", value=1.0),
        Score(channel="price", value=2.0, kind="cost"),
        Score(channel="outcome", value=0.5, agent="0"),
    ),
    contents={"h": "text"},
)


def test_all_of_it_comes_back():
    assert there_and_back(RICH) == RICH


def test_a_text_under_the_digest_of_another_is_refused():
    document = to_survey(replace(RICH, contents={content_hash("a"): "b"}))
    with pytest.raises(StrettoError, match=r"f\.json: contents\[0\]\.text: .* has another hash"):
        read(document)


def test_what_is_written_is_valid():
    assert_valid(to_survey(RICH))


def test_required_costs_are_measured_where_they_are_not_recorded():
    costs = to_survey(RICH)["costs"]
    assert costs == {"price": 2.0, "tokens": 5.0, "wall_clock_s": 2.0}
    recorded = replace(RICH, scores=(Score(channel="tokens", value=9.0, kind="cost"),))
    assert to_survey(recorded)["costs"] == {"tokens": 9.0, "wall_clock_s": 2.0}


def test_measured_costs_do_not_come_back_as_recorded():
    assert there_and_back(trace(turn("0#0", 0.0, 1.0))).scores == ()


def test_a_trace_without_events_is_refused():
    with pytest.raises(StrettoError, match="at least one event"):
        to_survey(Trace(id="t"))


def test_a_graph_with_a_loop_can_be_written():
    looped = trace(turn("0#0", 0.0, 1.0), event("0#1"), edges=[("0#0", "0#1"), ("0#1", "0#0")])
    assert_valid(to_survey(looped))
    assert there_and_back(looped) == looped


def test_the_order_of_scores_comes_back():
    scores = (Score(channel="m", value=1.0, kind="metric"), Score(channel="r", value=2.0))
    given = trace(event("0#0"), scores=scores)
    assert there_and_back(given) == given


def test_no_score_of_a_doubled_channel_is_lost_in_silence():
    scores = (Score(channel="r", value=1.0), Score(channel="r", value=2.0))
    try:
        given = there_and_back(trace(event("0#0"), scores=scores))
    except StrettoError:
        return
    assert sorted(score.value for score in given.scores) == [1.0, 2.0]


@st.composite
def roles(draw):
    """A trace in which roles of agents and of events agree, or not."""
    role = st.sampled_from([None, "lead", "worker"])
    agents = [Agent(id=name, role=draw(role)) for name in "ab"]
    if draw(st.booleans()):
        agents[1] = replace(agents[1], parent="a")
    attrs = st.just({}) | st.fixed_dictionaries({"role": role | st.just(5)})
    kinds = st.sampled_from(["spawn", "stop", "message"])
    ends = st.sampled_from([None, "a", "b"])
    events = [
        Event(id=f"e{row}", kind=kind, agent=agent, start=0.0, to=to, attrs=more)
        for row, (kind, agent, to, more) in enumerate(
            draw(st.lists(st.tuples(kinds, st.sampled_from("ab"), ends, attrs), min_size=1))
        )
    ]
    return Trace(id="t", agents=tuple(agents), events=tuple(events))


@examples(300)
@given(roles())
def test_roles_come_back_whether_agents_or_events_say_them(given):
    written = to_survey(given)
    assert there_and_back(given) == given
    assert to_survey(there_and_back(given)) == written


@examples(60, shrink=False)
@given(traces(least_events=1))
def test_any_trace_comes_back_but_for_the_order_of_scores(given):
    assert as_multiset(there_and_back(given)) == as_multiset(given)


@examples(40, shrink=False)
@given(traces(least_events=1))
def test_any_trace_is_written_validly(given):
    assert_valid(to_survey(given))
