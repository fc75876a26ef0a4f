"""What redaction takes out, what it leaves, and that it can be trusted with both."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stretto import store
from stretto.errors import StrettoError
from stretto.metrics import measure, measure_by_group
from stretto.private_strings import replace_private
from stretto.redaction import redact, redact_all
from stretto.trace import Agent, Decision, Edge, SafetyLabel, Score, Tokens, content_hash

from .examples import event, trace, turn
from .strategies import examples, traces

REAL = Path(__file__).parents[2] / "shared" / "data" / "traces"
SALT = bytes(range(16))
MODES = ("keep", "hash", "drop")

KEY = "sk-proj-" + "Ab3dEf6h" * 3
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAb+/=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

PRIVATE = {
    # text: (kind, what is replaced)
    "write to ann.b+c@mail.example.org, now": ("e-mail", "ann.b+c@mail.example.org"),
    '{"to":"x\\nann@example.org"}': ("e-mail", "ann@example.org"),  # behind an escaped line break
    "ls /home/ann/work": ("user", "ann"),
    "open /Users/ann.lee/x": ("user", "ann.lee"),
    "file:///home/ann/x": ("user", "ann"),
    r"C:\Users\Ann Lee\x.txt": ("user", "Ann Lee"),
    r'{"p":"C:\\Users\\ann\\x"}': ("user", "ann"),
    "c:/users/ann": ("user", "ann"),
    "projects/-home-ann-code": ("user", "ann"),
    "a/-home-page and useradd --home-dir": None,
    "~/.claude/projects -Users-ann-code": ("user", "ann"),
    f"export K={KEY}": ("key", KEY),
    f'{{"k":"a\\n{KEY}"}}': ("key", KEY),
    "ghp_" + "a1B2" * 9: ("key", "ghp_" + "a1B2" * 9),
    "id AKIAIOSFODNN7EXAMPLE.": ("key", "AKIAIOSFODNN7EXAMPLE"),
    "hf_" + "aB3d" * 8: ("key", "hf_" + "aB3d" * 8),
    "xoxb-1234567890-abcdef": ("key", "xoxb-1234567890-abcdef"),
    "AIza" + "aB3-" * 9: ("key", "AIza" + "aB3-" * 9),
    f"jwt {JWT}!": ("token", JWT),
    "Authorization: Bearer abc123def456": ("token", "abc123def456"),
    "Authorization: Basic YW5uOnNlY3JldA==": ("token", "YW5uOnNlY3JldA=="),
    f"key:\n{PEM}\nend": ("private key", PEM),
    "-----BEGIN PRIVATE KEY-----\\nMIIE, cut": (
        "private key",
        "-----BEGIN PRIVATE KEY-----\\nMIIE, cut",
    ),
    "postgres://ann:hunter2@db/x": ("password", "hunter2"),
    'password = "hunter2"': ("password", "hunter2"),
    r'{"a":"{\"password\": \"hunter2\"}"}': ("password", "hunter2"),
    "password: hunter2": ("password", "hunter2"),
    "password: string": None,
    "<token:1f0c9a22b4d7> <password:1f0c9a22b4d7>": None,  # placeholders are no assignments
    "MY_API_KEY=q8Zr2LmX0vTn4KwB": ("password", "q8Zr2LmX0vTn4KwB"),
    "api_key: os.environ.get": None,
    "the bearer certificates": None,
    "tokens: 12345, token = next_token": None,
    "see @dataclass and user@localhost": None,
    "v1.2.3 of https://example.org/a/b?c=d": None,
    "sk-learn and task-sk-": None,
}


@pytest.mark.parametrize("text", PRIVATE)
def test_what_is_private_and_what_is_not(text):
    found = []

    def name(kind, string):
        found.append((kind, string))
        return "<x>"

    expected = PRIVATE[text]
    replaced = replace_private(text, name)
    assert found == ([] if expected is None else [expected])
    assert replaced == (text if expected is None else text.replace(expected[1], "<x>"))


def test_a_json_text_stays_json():
    value = {
        "cmd": "cat /home/ann/x\nmail ann@example.org",
        "key": KEY,
        "path": "C:\\Users\\ann\\x",
    }
    once, twice = json.dumps(value), json.dumps(json.dumps(value))
    for text, load in ((once, json.loads), (twice, lambda t: json.loads(json.loads(t)))):
        read = load(replace_private(text, lambda kind, _: f"<{kind}>"))
        assert read == {
            "cmd": "cat /home/<user>/x\nmail <e-mail>",
            "key": "<key>",
            "path": "C:\\Users\\<user>\\x",
        }


def private_run():
    """A run with something private in every field that can hold it."""
    mail, home = "zoe@example.org", "/home/zoe/code"
    texts = (f"I am {mail}.", f"You are {mail}.", "nothing private")
    names = [content_hash(text) for text in texts]
    decision = Decision(
        candidates=("go", f"ask {mail}"),
        logprobs=(-0.5, -1.0),
        chosen=1,
        observation=names[0],
        prompt_ids=(1, 2),
        completion_ids=(3,),
        completion_logprobs=(-0.1,),
    )
    kept = replace(decision, observation=names[2], candidates=("go",), logprobs=(), chosen=0)
    return trace(
        event(f"{mail}#0", "decision", 0.0, 2.0, content=names[1], decision=decision),
        event("b#0", "message", 2.0, 1.0, to=mail, content=names[1], attrs={"thinking": names[0]}),
        event("b#1", "tool_call", 3.0, tool="read", attrs={home: [home, 7, None], "waiting": True}),
        event("b#2", "decision", 4.0, decision=kept),
        edges=((f"{mail}#0", "b#0", "message"),),
        agents=(
            Agent(id=mail, name=mail),
            Agent(id="b", parent=mail, attrs={"prompt": f"Hi {mail}"}),
        ),
        scores=(Score(channel="outcome", value=1.0, agent=mail, event=f"{mail}#0"),),
        contents=dict(zip(names, texts, strict=True)),
        spec={"who": mail, "seed": 3},
        attrs={"cwd": home, "format": "claude-code", "started": "2026-01-01T00:00:00"},
    )


@pytest.mark.parametrize("mode", MODES)
def test_nothing_private_is_left_anywhere_and_the_file_can_be_read(mode, tmp_path):
    store.write(tmp_path / "t.jsonl", [redact(private_run(), mode)[0]])
    written = (tmp_path / "t.jsonl").read_text()
    assert "zoe" not in written
    assert store.read(tmp_path / "t.jsonl")
    if mode != "keep":
        assert "I am" not in written
        assert "ask" not in written
        assert content_hash("nothing private") not in written


def test_the_same_string_gets_the_same_placeholder_and_references_still_lead_there():
    redacted, _ = redact(private_run(), "keep", SALT)
    first, second, *_ = redacted.events
    mail = redacted.agents[0].id
    assert re.fullmatch(r"<e-mail:[0-9a-f]{12}>", mail)
    assert (first.id, first.agent, second.to) == (f"{mail}#0", mail, mail)
    assert redacted.edges == (Edge(f"{mail}#0", "b#0", "message"),)
    assert (redacted.scores[0].agent, redacted.scores[0].event) == (mail, first.id)
    assert redacted.agents[1].parent == mail
    assert redacted.agents[1].attrs == {"prompt": f"Hi {mail}"}
    assert redacted.text(first.content) == f"You are {mail}."
    assert redacted.text(first.decision.observation) == f"I am {mail}."
    assert second.attrs == {"thinking": first.decision.observation}
    assert all(content_hash(text) == name for name, text in redacted.contents.items())
    assert redacted.spec == {"who": mail, "seed": 3}


def test_home_paths_are_replaced_in_attributes_and_their_names():
    redacted, _ = redact(private_run(), "keep", SALT)
    ((path, (inner, *rest)), waiting) = redacted.events[2].attrs.items()
    assert path == inner == redacted.attrs["cwd"]
    assert re.fullmatch(r"/home/<user:[0-9a-f]{12}>/code", path)
    assert (rest, waiting) == ([7, None], ("waiting", True))


def test_a_user_that_a_path_names_is_replaced_wherever_the_name_is_a_word():
    said = "cd /home/annlee/x; git push annlee/fix; annleeds; ubuntu at /home/ubuntu"
    other = trace(event("0#0", "message"), attrs={"git_branch": "annlee/fix"})
    traces = [
        trace(
            event("0#0", "message", content=content_hash(said)), contents={content_hash(said): said}
        ),
        other,
    ]
    (first, second), report = redact_all(traces, "keep", SALT)
    (text,) = first.contents.values()
    user = re.search("<user:[0-9a-f]{12}>", text)[0]
    assert text.startswith(f"cd /home/{user}/x; git push {user}/fix; annleeds; ubuntu at /home/")
    assert second.attrs["git_branch"] == f"{user}/fix"
    assert report.distinct["user"] == 2


def with_a_path_in(place):
    """A run that names a user in one place, and in a text that has no path."""
    said = "branch ZORKMID/fix by Zorkmid"
    home = {"cwd": "/home/zorkmid/p"}
    fields = {"spec": home} if place == "spec" else {}
    return trace(
        event("0#0", "message", content=content_hash(said), attrs=home if place == "event" else {}),
        agents=(Agent(id="0", attrs=home if place == "agent" else {}),),
        contents={content_hash(said): said},
        **fields,
    )


@pytest.mark.parametrize("place", ["event", "agent", "spec"])
def test_a_user_that_is_named_anywhere_is_known_everywhere_in_any_case(place):
    redacted, report = redact(with_a_path_in(place), "keep", SALT)
    (text,) = redacted.contents.values()
    user = re.search("<user:[0-9a-f]{12}>", text)[0]
    assert text == f"branch {user}/fix by {user}"
    assert f"/home/{user}/p" in repr(redacted)
    assert report.distinct == {"user": 1}


def test_a_user_that_is_a_common_word_takes_no_other_text_along():
    said = "The user is root, not an admin: /home/user /home/root /home/admin"
    run = trace(
        event("0#0", "message", content=content_hash(said)), contents={content_hash(said): said}
    )
    (text,) = redact(run, "keep", SALT)[0].contents.values()
    assert text.startswith("The user is root, not an admin: /home/<user:")


def words_with(mail):
    """A run whose words, which the model leaves to imports, hold an address."""
    return trace(
        event("0#0", f"mail {mail}", label=SafetyLabel(integrity=mail, confidentiality="a b")),
        event("0#1", "message", tokens=Tokens(input=1, output=2, unreliable=("output", mail))),
        edges=(("0#0", "0#1", f"cc {mail}"), ("0#0", "0#1", "message")),
        attrs={"format": f"by {mail}", "started": mail},
        topology=mail,
    )


@pytest.mark.parametrize("mode", MODES)
def test_words_that_the_model_does_not_know_are_looked_at_too(mode):
    redacted, _ = redact(words_with("zoe@example.org"), mode, SALT)
    mail = redacted.topology
    assert re.fullmatch("<e-mail:[0-9a-f]{12}>", mail)
    assert [each.kind for each in redacted.events] == [f"mail {mail}", "message"]
    assert [edge.label for edge in redacted.edges] == [f"cc {mail}", "message"]
    assert redacted.events[0].label.integrity == mail
    assert (redacted.events[0].label.confidentiality == "a b") == (mode == "keep")
    assert redacted.events[1].tokens == Tokens(input=1, output=2, unreliable=("output", mail))
    assert redacted.attrs["started"] == mail
    assert "zoe" not in repr(redacted)


def test_hashed_texts_show_who_repeated_what_and_no_more():
    redacted, report = redact(private_run(), "hash", SALT)
    first, second, third, _ = redacted.events
    assert redacted.contents == {}
    assert first.content == second.content != first.decision.observation
    assert second.attrs == {"thinking": first.decision.observation}
    assert third.attrs["waiting"] is True
    assert first.decision.chosen == 1
    assert len(set(first.decision.candidates)) == 2
    assert redacted.attrs["format"] == "claude-code"
    assert redacted.attrs["started"] == "2026-01-01T00:00:00"
    assert report.texts["hashed"] == 3
    other, _ = redact(private_run(), "hash")
    assert other.events[0].content != first.content  # another salt


def test_dropped_texts_leave_no_trace():
    redacted, report = redact(private_run(), "drop")
    assert [each.content for each in redacted.events] == [None] * 4
    assert redacted.events[0].decision.candidates == ("", "")
    assert redacted.events[1].attrs == {"thinking": None}
    assert redacted.spec == {"who": None, "seed": 3}
    assert report.texts["dropped"] == 3


def test_token_ids_stay_only_where_the_text_does():
    redacted, report = redact(private_run(), "keep")
    first, *_, last = redacted.events
    assert (first.decision.prompt_ids, first.decision.completion_logprobs) == ((), ())
    assert last.decision.prompt_ids == (1, 2)
    assert report.turns_without_ids == 1
    assert redact(private_run(), "hash")[1].turns_without_ids == 2


def test_the_report_counts_by_kind_and_field():
    _, report = redact(private_run(), "keep")
    assert report.distinct == {"e-mail": 1, "user": 1}
    assert report.replaced["user"] == {"event.attrs": 2, "trace.attrs": 1}
    mails = report.replaced["e-mail"]
    assert (mails["contents"], mails["agent.id"], mails["event.id"], mails["trace.spec"]) == (
        2,
        1,
        1,
        1,
    )
    assert report.texts == {"changed": 2}


def test_traces_of_one_file_share_their_placeholders():
    (one, other), report = redact_all([private_run(), private_run()], "keep")
    assert one == other
    assert report.distinct == {"e-mail": 1, "user": 1}
    assert report.replaced["user"]["trace.attrs"] == 2


def test_redacting_again_changes_nothing_more():
    once, _ = redact(private_run(), "keep")
    twice, report = redact(once, "keep")
    assert twice == once
    assert not report.replaced


def shape(run):
    """All of a trace but its words."""
    agents = {agent.id: row for row, agent in enumerate(run.agents)}
    events = {each.id: row for row, each in enumerate(run.events)}
    return {
        "agents": [agents.get(agent.parent) for agent in run.agents],
        "events": [
            (
                e.kind,
                agents[e.agent],
                agents.get(e.to),
                e.start,
                e.duration,
                e.tokens,
                e.price,
                e.trusted,
            )
            for e in run.events
        ],
        "choices": [
            e.decision and (e.decision.type, e.decision.logprobs, e.decision.chosen)
            for e in run.events
        ],
        "edges": [(events[e.src], events[e.dst], e.label, e.evidence) for e in run.edges],
        "scores": [(s.value, s.kind, agents.get(s.agent), events.get(s.event)) for s in run.scores],
        "forks": [(events[fork.event], fork.seed) for fork in run.lineage],
        "topology": (run.topology, run.seed),
    }


STRUCTURAL = ("structure", "E2 parallelism", "E4 overhead")


def structural(run):
    groups = measure_by_group(run)
    return {name: groups[name] for name in STRUCTURAL}


with_secrets = traces().map(
    lambda run: replace(
        run,
        contents={
            f"r{row}": f"{text} a{row}@example.org"
            for row, text in enumerate(run.contents.values())
        },
    )
)


@examples(40)
@given(with_secrets, st.sampled_from(MODES))
def test_the_graph_times_and_counts_stay_the_same(run, mode):
    redacted, _ = redact(run, mode)
    assert shape(redacted) == shape(run)
    assert structural(redacted) == structural(run)
    assert store.decode(store.encode_checked(redacted), "f") == [redacted]
    assert "@example.org" not in repr(redacted)


@examples(40)
@given(traces())
def test_what_holds_nothing_private_stays_as_it_is(run):
    run = replace(run, events=tuple(map(without_ids, run.events)))
    redacted, report = redact(run, "keep")
    assert redacted == run
    assert not report.replaced


def without_ids(turn):
    """An event without token ids: those of a turn whose text is not there do not stay."""
    if turn.decision is None:
        return turn
    wiped = dict.fromkeys(("prompt_ids", "completion_ids", "completion_logprobs"), ())
    return replace(turn, decision=replace(turn.decision, **wiped))


def test_real_runs_keep_their_measures():
    path = REAL / "claude_code" / "irrlicht_subagent-spawn"
    if not path.exists():
        pytest.skip("the real transcripts are not here")
    from stretto.loading import load_all

    for run in load_all(path):
        for mode in MODES:
            redacted, _ = redact(run, mode)
            assert shape(redacted) == shape(run)
            assert structural(redacted) == structural(run)
            assert "/Users/user" not in store.encode(redacted).decode()


def test_a_wrong_mode_and_a_short_salt_are_refused():
    with pytest.raises(StrettoError, match='did you mean "hash"'):
        redact(private_run(), "hsh")
    with pytest.raises(StrettoError, match="16 to 64 bytes"):
        redact(private_run(), "keep", b"short")


@pytest.mark.parametrize("mode", ["keep", "hash", "drop"])
def test_a_run_costs_the_same_whichever_model_each_turn_had(mode):
    tokens = Tokens(input=1_000_000, output=0)
    turns = turn("0#0", tokens=tokens), turn("0#1", tokens=tokens, attrs={"model": "gpt-4o"})
    given = trace(*turns, agents=(Agent(id="0", model="claude-opus-4-1"),))
    found, _ = redact_all([given], mode)
    price = measure(found[0])["price"]
    assert price.value is not None
    assert price == measure(given)["price"]
