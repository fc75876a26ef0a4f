"""Channels that follow from a trace or its oracle: by hand, and only where nothing is recorded."""

import pytest
from msgspec.structs import replace

import stretto
from stretto.policies.scripted import Scripted
from stretto.policies.softmax import Softmax
from stretto.rewards.channels import CHANNELS
from stretto.rewards.derived import anywhere, malformed, of_agents, of_events, of_team
from stretto.rewards.planning import speedup
from stretto.rewards.stopping import overlong, token_budget
from stretto.tasks import build
from stretto.tasks.games.fanout import Fanout, agent_leave_one_out
from stretto.tasks.games.proxies import Proxies
from stretto.tasks.hops import Hops
from stretto.tasks.hops.oracle import work
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout
from stretto.trace import Decision, Score, Tokens

from ..examples import event, trace, turn
from ..importers.transcripts import DATA, REAL

TEAM = [
    turn("l#0"),
    event("w#0", "tool_call", tool="read"),
    event("w#1", "tool_result", tool="read", attrs={"is_error": True}),
    event("v#0", "tool_call", tool="edit"),
    event("v#1", "tool_result", tool="edit", attrs={"refused": ""}),
]


def played(game, choose, seed=0):
    policy = Scripted(choose)
    (found,) = rollout(game, dict.fromkeys(game.harness.roles, policy), [seed])
    return found


def two_of_three(ask):
    """The lead spawns three workers, of which the third poses."""
    if "work" not in ask.candidates:
        return "three" if "three" in ask.candidates else "submit"
    return "pose" if "three" in ask.prompt else "work"


# ---- format


def test_an_agent_without_a_failed_or_refused_call_is_well_formed():
    assert of_agents(trace(*TEAM), "format") == {"l": 1.0, "w": 0.0, "v": 1.0}
    assert of_team(trace(*TEAM), "format") == 0.0
    fine = event("w#1", "tool_result", tool="read")
    assert of_team(trace(*TEAM[:2], fine), "format") == 1.0


def test_format_is_not_known_where_nothing_could_have_shown_it():
    """An import of turns and calls alone records neither results nor errors."""
    bare = trace(*TEAM[:2])
    assert of_agents(bare, "format") == {}
    assert of_team(bare, "format") is None
    assert anywhere(bare, "format") is None
    said = event("w#1", "return", attrs={"invalid": True})
    assert of_agents(trace(*TEAM[:2], said), "format") == {"l": 1.0, "w": 0.0}


@REAL
@pytest.mark.parametrize(
    "name",
    [
        "agentrx/magentic_one_ground_truth.json",
        "chatdev/1.0_log_small.log",
        "claude_code/irrlicht_orphan-cleanup.jsonl",
        "mast/metagpt/run_1.json",
        "who_and_when/Hand-Crafted/6.json",
    ],
)
def test_what_is_imported_without_results_has_no_format(name):
    for given in stretto.load_all(DATA / name):
        assert given.agents
        assert of_agents(given, "format") == {}
        assert of_team(given, "format") is None


def test_an_agent_that_never_acted_has_no_format():
    given = trace(*TEAM, roles={"l": "lead", "w": "worker", "v": "worker", "idle": "worker"})
    assert of_agents(given, "format") == {"l": 1.0, "w": 0.0, "v": 1.0}
    own = played(Proxies(), lambda ask: "none" if "none" in ask.candidates else "submit")
    assert of_agents(own, "format") == {"0": 1.0}  # no tool was called, but it would be known


@pytest.mark.parametrize(
    ("kind", "attrs", "expected"),
    [
        ("tool_result", {"error": "no such page"}, True),
        ("tool_result", {"refused": "conflict"}, True),
        ("return", {"invalid": True}, True),
        ("return", {"error": "quoted"}, False),  # no result of a tool
        ("tool_result", {"refused": ""}, False),
    ],
)
def test_what_counts_as_malformed(kind, attrs, expected):
    assert malformed(event("a#0", kind, attrs=attrs)) is expected


def test_what_is_recorded_counts_alone():
    """Also where it is recorded of one agent only: the others were not judged."""
    one = Score(channel="format", value=0.5, agent="w")
    given = trace(*TEAM, scores=(one,))
    assert of_agents(given, "format") == {"w": 0.5}
    assert anywhere(given, "format") == 0.5
    assert of_team(trace(*TEAM, scores=(Score(channel="format", value=0.25),)), "format") == 0.25


# ---- verifier


def test_results_that_say_whether_somebody_passed_are_verdicts():
    """A worker that works, one that poses and one that clicks: `.7, .95, .3` by chance."""
    game = Proxies(passes=(1.0, 0.0, 0.0))
    found = played(game, two_of_three)
    verdicts = of_events(found, "verifier")
    owner = {each.id: each.agent for each in found.events}
    assert {owner[name]: value for name, value in verdicts.items()} == {
        "0/0": 1.0,
        "0/1": 1.0,
        "0/2": 0.0,
    }
    assert of_events(trace(*TEAM), "verifier") == {}


# ---- marginal


def test_leave_one_out_of_proxies_by_hand():
    """`.2 + 2·.4 - 3·.1 = .7`; without a worker that works `.2 + .4 - .2`, else `.2 + .8 - .2`."""
    found = of_agents(played(Proxies(), two_of_three), "marginal")
    assert found == pytest.approx({"0": 0.7, "0/0": 0.3, "0/1": 0.3, "0/2": -0.1})


def test_leave_one_out_of_a_vote():
    game = Fanout(workers=3, rule="and")
    policies = dict.fromkeys(game.harness.roles, Softmax(spread=2.0, seed=1))
    for found in rollout(game, policies, range(8)):
        values = of_agents(found, "marginal")
        assert values == {"0": 0.0, **agent_leave_one_out(game, found)}


def test_a_trace_of_no_such_family_has_no_marginal_and_no_judge():
    assert of_agents(trace(*TEAM, outcome=1.0), "marginal") == {}
    assert of_agents(trace(*TEAM, outcome=1.0), "judge") == {}


def test_the_parts_of_a_question_of_one_stage_add_up_to_its_answer():
    """Shapley values are efficient: the branches are worth the whole answer."""
    game = Hops()
    (found,) = rollout(game, scripts_of(game)["oracle"], [0])
    values = of_agents(found, "marginal")
    assert values["0"] == 0.0
    assert sum(values.values()) == pytest.approx(1.0)


# ---- files that no task wrote

ODD = [None, "yes", 3, -0.5, ["x"], {"a": 1}, True]


@pytest.mark.parametrize("value", ODD, ids=str)
def test_attributes_of_another_type_are_unknown_and_no_crash(value):
    names = ("passed", "is_error", "error", "refused", "invalid")
    given = trace(turn("l#0"), event("l#1", "tool_result", attrs=dict.fromkeys(names, value)))
    expected = {"l#1": 1.0} if value is True else {}
    assert of_events(given, "verifier") == expected
    assert of_agents(given, "format") == {"l": float(not value)}


SCRIPTED = ("gather", "hops", "repair")


def odd(events, value):
    """The same events with other attributes; what is empty stays, as who was not refused."""
    return tuple(
        replace(each, attrs={name: old and value for name, old in each.attrs.items()})
        for each in events
    )


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize("family", [*SCRIPTED, "exam", "fanout", "proxies", "siege"])
def test_an_oracle_that_cannot_read_a_trace_says_nothing(family, value):
    game = build({"family": family})
    random = dict.fromkeys(game.harness.roles, Softmax(seed=1))
    policies = scripts_of(game)["oracle"] if family in SCRIPTED else random
    (found,) = rollout(game, policies, [0])
    bare = tuple(replace(each, attrs={}) for each in found.events)
    for events in (odd(found.events, value), bare):
        given = replace(found, events=events)
        for channel in ("marginal", "judge", "format", "verifier", "serial_seconds"):
            for read in (of_agents, of_events, of_team):
                read(given, channel)
        if family == "hops":
            assert set(of_agents(given, "marginal").values()) <= {0.0}


@pytest.mark.parametrize("spec", [{"family": ["x"]}, {"family": "hops", "width": "?"}, {"a": 1}])
def test_a_spec_that_makes_no_task_has_no_oracle(spec):
    given = replace(trace(*TEAM, outcome=1.0), spec=spec)
    for channel in ("marginal", "judge"):
        assert of_agents(given, channel) == {}
    assert of_team(given, "serial_seconds") is None


def test_an_exam_without_a_mark_or_without_a_question_is_not_judged():
    spec = {"family": "exam"}
    roles = {"0": "proposer", "0/0": "solver"}
    asked = event("0#0", decision=Decision(candidates=("easy", "broken"), chosen=1))
    mark = Score(channel="verifier", value=1.0)
    silent = event("0#0")
    for first, scores, expected in [
        (asked, (mark,), {"0": 0.0, "0/0": 1.0}),
        (asked, (), {"0": 0.0}),
        (silent, (mark,), {"0/0": 1.0}),
        (silent, (), {}),
    ]:
        given = trace(first, event("0/0#0"), roles=roles, scores=scores, outcome=1.0)
        assert of_agents(replace(given, spec=spec), "judge") == expected


# ---- serial plans, tokens


def test_a_team_of_hops_is_held_against_the_best_serial_plan():
    game = Hops()
    (found,) = rollout(game, scripts_of(game)["oracle"], [0])
    expected = found.reward("outcome") * min(work(game) / found.columns.last_end, 8) / 8
    assert speedup(found).total == pytest.approx(expected)
    assert speedup(trace(*TEAM, outcome=1.0)) is None


def test_a_policy_without_tokens_is_told_in_words():
    """Seen `There is work.`, four sizes, and one chosen; `The work is in.`, `submit`, twice."""
    found = played(Proxies(), lambda ask: "none" if "none" in ask.candidates else "submit")
    assert token_budget(found, budget=100).total == pytest.approx(
        -((3 + 4 + 1) + (4 + 1 + 1)) / 100
    )
    assert overlong(found).total == 0.0


def test_an_import_that_does_not_say_its_tokens_stays_unknown():
    assert token_budget(trace(turn("l#0"))) is None
    partly = turn("l#0", tokens=Tokens(input=3, output=4)), turn("l#1")
    assert token_budget(trace(*partly)) is None


def test_no_channel_computes_what_it_is_not_asked_for(monkeypatch):
    def fail(*given):
        raise AssertionError("an oracle was asked")

    monkeypatch.setattr("stretto.rewards.derived.marginal", fail)
    monkeypatch.setattr("stretto.rewards.derived.AGENTS", {"marginal": fail})
    found = played(Proxies(), two_of_three)
    for name in ("outcome", "parallel", "finish", "verifiers", "tool_calls"):
        CHANNELS[name](found)
