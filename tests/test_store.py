import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from stretto import files, store
from stretto.errors import StrettoError
from stretto.trace import (
    Agent,
    Decision,
    Edge,
    Event,
    Lineage,
    SafetyLabel,
    Score,
    Tokens,
    Trace,
)

from .examples import chain, event, trace, turn
from .strategies import examples, traces

FULL = Trace(
    id="t",
    task="demo/1",
    system="by hand",
    topology="swarm",
    harness="f00",
    seed=7,
    spec={"family": "demo", "size": 3},
    lineage=(Lineage(parent="t0", event="0#0", seed=9),),
    attrs={"note": ["ä", None, {"deep": 1.5}]},
    agents=(
        Agent(id="0", role="lead", name="Ada", model="m", attrs={"k": 1}),
        Agent(id="0/0", parent="0"),
    ),
    events=(
        Event(
            id="0#0",
            kind="decision",
            agent="0",
            start=0.0,
            duration=1.5,
            decision=Decision(
                type="spawn",
                candidates=("stop", "one"),
                logprobs=(-0.5, -1.0),
                chosen=1,
                policy="p@1",
                observation="o",
                prompt_ids=(1, 2),
                completion_ids=(3,),
                completion_logprobs=(-0.25,),
            ),
            tokens=Tokens(input=2, output=1, cache_read=0, cache_write=4, unreliable=("input",)),
            price=0.25,
        ),
        Event(
            id="0#1",
            kind="gossip",
            agent="0",
            to="0/0",
            tool="look",
            content="c",
            trusted=False,
            label=SafetyLabel(integrity="low", confidentiality="secret"),
            attrs={"": 0, "nested": {"x": []}},
        ),
    ),
    edges=(Edge("0#0", "0#1", "rumour", "heuristic"),),
    scores=(
        Score(channel="outcome", value=1.0),
        Score(channel="price", value=0.5, kind="cost", agent="0/0"),
        Score(channel="m", value=-2.0, kind="metric", event="0#1"),
    ),
    contents={"c": "text\nof two lines \u2028 and 😀", "o": ""},
)
LINES = store.encode(FULL).splitlines()

EVENT = b'{"record":"event","id":"0#1","kind":"message","agent":"0"'


def file_of(*lines, start=b'{"record":"trace","schema":1,"id":"t"}', end=b""):
    """A file with an agent `0`, these lines from line 3 on, and an end record."""
    agent = b'{"record":"agent","id":"0"}'
    return b"\n".join([start, agent, *lines, end or b'{"record":"end","events":1,"edges":0}', b""])


def refused(data):
    """The error for these bytes, read from a file called `f`."""
    with pytest.raises(StrettoError) as error:
        store.decode(data, "f")
    return error.value


# ---- round trips


def test_every_field_of_every_record_survives(tmp_path):
    store.write(tmp_path / "t.jsonl", [FULL])
    assert store.read(tmp_path / "t.jsonl") == [FULL]


def test_a_record_is_a_line():
    kinds = [line.split(b'"')[3].decode() for line in LINES]
    expected = ["trace", *["agent"] * 2, *["event"] * 2, "edge", *["score"] * 3]
    assert kinds == [*expected, *["content"] * 2, "end"]


def test_a_file_holds_any_number_of_traces_in_order(tmp_path):
    path = tmp_path / "t.jsonl"
    written = [trace(event("0#0"), id=name) for name in ("b", "a", "c")]
    stretto.save(path, written)
    assert stretto.load_all(path) == written
    with pytest.raises(StrettoError, match=r"holds 3 traces.*load_all"):
        stretto.load(path)


def test_the_three_lines_of_a_newcomer_work(tmp_path):
    path = tmp_path / "t.jsonl"
    stretto.save(path, [FULL])
    assert stretto.load(path) == stretto.load(str(path)) == FULL


def test_files_can_grow(tmp_path):
    path = tmp_path / "t.jsonl"
    for name in "ab":
        with path.open("ab") as file:
            file.write(store.encode(trace(event("0#0"), id=name)))
    assert [each.id for each in store.read(path)] == ["a", "b"]


def test_records_between_the_first_and_the_end_may_come_in_any_order():
    body = LINES[1:-1]
    for seed in range(5):
        random.Random(seed).shuffle(body)
        (found,) = store.decode(b"\n".join([LINES[0], *body, LINES[-1]]), "f")
        assert set(found.agents[0].id + found.agents[1].id) == set("00/0")
        assert sorted(each.id for each in found.events) == ["0#0", "0#1"]
        assert (found.edges, found.contents) == (FULL.edges, FULL.contents)


def test_blank_lines_and_carriage_returns_are_no_matter():
    assert store.decode(b"\r\n\n".join(LINES), "f") == [FULL]


@examples(80, shrink=False)
@given(traces())
def test_any_trace_survives(written):
    assert store.decode(store.encode(written), "f") == [written]


@examples(25, shrink=False)
@given(st.lists(traces(), max_size=3))
def test_any_traces_survive_together(written):
    data = b"".join(map(store.encode, written))
    assert store.decode(data, "f") == written


@pytest.mark.parametrize("text", ["\0", "\x1f\x7f", "\u2028\u2029", "😀" * 3, "e\u0301", "\ufffe"])
def test_unusual_characters_survive_everywhere(text):
    written = Trace(
        id=text,
        agents=(Agent(id=text),),
        events=(Event(id=text, kind=text, agent=text, attrs={text: text}),),
        edges=(Edge(text, text, text),),
        contents={text: text},
    )
    assert store.decode(store.encode(written), "f") == [written]


@pytest.mark.parametrize(
    "written",
    [
        trace(event("0#0"), id="half \ud83d"),
        trace(event("0#0", attrs={"cut": "half \ud83d"})),
        trace(event("0#0"), contents={"h": "half \ud83d"}),
    ],
    ids=["id", "attrs", "contents"],
)
def test_half_a_character_survives_or_is_refused_when_it_is_written(written):
    """JSON in UTF-8 has no lone surrogates, but transcripts that were cut have them."""
    try:
        data = store.encode(written)
    except StrettoError:
        return
    assert store.decode(data, "f") == [written]


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


NAN = float("nan")
UNREADABLE = {
    "nan": trace(event("0#0"), outcome=NAN),
    "inf": trace(event("0#0"), outcome=float("inf")),
    "nan in the attributes of an event": trace(event("0#0", attrs={"x": [{"y": NAN}]})),
    "nan in the attributes of an agent": trace(agents=(Agent(id="0", attrs={"x": NAN}),)),
    "nan in the attributes of the trace": trace(attrs={"x": {"y": NAN}}),
    "nan in the specification": trace(spec={"x": NAN}),
    "negative duration": trace(event("0#0", duration=-1.0)),
    "infinite start": trace(event("0#0", start=float("inf"))),
    "nan as price": trace(event("0#0", price=NAN)),
    "negative tokens": trace(event("0#0", tokens=Tokens(input=-1))),
    "negative choice": trace(turn("0#0", chosen=-1)),
    "nan as log-probability": trace(event("0#0", decision=Decision(logprobs=(NAN,)))),
    "impossible candidate": trace(
        event("0#0", decision=Decision(candidates=("a",), logprobs=(-float("inf"),)))
    ),
    "empty id": trace(event("", agent="0")),
    "empty kind": trace(event("0#0", kind="")),
    "evidence that does not exist": trace(event("0#0"), edges=[("0#0", "0#0", "x", "hunch")]),
    "doubled id": trace(event("0#0"), event("0#0")),
    "dangling edge": trace(event("0#0"), edges=[("0#0", "nowhere")]),
    "a value that JSON has not": trace(event("0#0", attrs={"x": object()})),
    "a value nested too deeply": trace(event("0#0", attrs={"x": nested(5_000)})),
}


@pytest.mark.parametrize("broken", UNREADABLE.values(), ids=UNREADABLE)
def test_nothing_is_written_that_could_not_be_read(broken, tmp_path):
    with pytest.raises(StrettoError):
        store.write(tmp_path / "t.jsonl", [broken])
    assert list(tmp_path.iterdir()) == []


# ---- bad input names file, line and field


@pytest.mark.parametrize(
    ("line", "where", "what"),
    [
        (EVENT + b"", "f:3", "cut off"),
        (EVENT[:20], "f:3", "cut off"),
        (
            EVENT + b',"duration":"long"}',
            "f:3: event.duration",
            "expected `float | null`, got `str`",
        ),
        (EVENT + b',"duration":-1}', "f:3: event.duration", "expected `float` >= 0"),
        (EVENT + b',"start":-0.5}', "f:3: event.start", "expected `float` >= 0"),
        (EVENT + b',"tokens":{"input":-1}}', "f:3: event.tokens.input", "expected `int` >= 0"),
        (EVENT + b',"decision":{"logprobs":[0.5]}}', "f:3: event.decision.logprobs[0]", "<= 0"),
        (EVENT + b',"attrs":[]}', "f:3: event.attrs", "expected `object`, got `array`"),
        (b'{"record":"event","id":"","kind":"k","agent":"0"}', "f:3: event.id", "length >= 1"),
        (b'{"record":"event","id":"x","agent":"0"}', "f:3: event", "missing required field `kind`"),
        (b'{"record":"edge","src":"a","dst":"b","evidence":"hunch"}', "f:3: edge.evidence", "enum"),
        (b'{"record":"score","channel":"c","value":null}', "f:3: score.value", "got `null`"),
        (b'{"record":"novel"}', "f:3: record", 'unknown record "novel"'),
        (b'{"record":5}', "f:3: record", 'unknown record "5"'),
        (b"{}", "f:3", "not a JSON object with a `record` field"),
        (b"[1]", "f:3", "not a JSON object with a `record` field"),
        (b'"record"', "f:3", "not a JSON object with a `record` field"),
        (b"hello", "f:3", "not a JSON object with a `record` field"),
        (b'{"record":"event",}', "f:3", "not a JSON object with a `record` field"),
        (b'{"record":"agent","id":"\xff\xfe"}', "f:3", "not a JSON object with a `record` field"),
    ],
)
def test_a_bad_line_is_told_with_file_line_and_field(line, where, what):
    error = refused(file_of(line))
    assert error.where == where
    assert what in error.what


@pytest.mark.parametrize(
    ("extra", "where", "hint"),
    [
        (b',"strat":1}', "f:3: event.strat", 'did you mean "start"?'),
        (b',"truncated":1}', "f:3: event.truncated", ""),
        (b',"decision":{"candidate":[]}}', "f:3: event.decision.candidate", '"candidates"?'),
        (b',"tokens":{"ouput":1}}', "f:3: event.tokens.ouput", 'did you mean "output"?'),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest_known_one(extra, where, hint):
    error = refused(file_of(EVENT + extra))
    assert (error.where, error.what) == (where, "no such field")
    assert hint in error.hint


def test_an_unknown_record_gets_a_suggestion():
    assert refused(file_of(b'{"record":"evnt"}')).hint == 'did you mean "event"?'


@pytest.mark.parametrize(
    ("lines", "where", "what"),
    [
        ([EVENT + b"}", EVENT + b"}"], "f:4: event.id", 'the id "0#1" is taken'),
        ([b'{"record":"agent","id":"0"}'], "f:3: agent.id", 'the id "0" is taken'),
        ([EVENT.replace(b'"agent":"0"', b'"agent":"1"') + b"}"], "f:3: event.agent", "no agent"),
        ([b'{"record":"edge","src":"0#1","dst":"x"}', EVENT + b"}"], "f:3: edge.dst", 'event "x"'),
        ([b'{"record":"edge","src":"y","dst":"0#1"}', EVENT + b"}"], "f:3: edge.src", 'event "y"'),
        ([b'{"record":"score","channel":"c","value":1,"event":"z"}'], "f:3: score.event", '"z"'),
        ([EVENT + b',"decision":{"chosen":0}}'], "f:3: event.decision.chosen", "none of the 0"),
    ],
)
def test_a_reference_that_does_not_fit_is_told_with_its_own_line(lines, where, what):
    error = refused(file_of(*lines))
    assert error.where == where
    assert what in error.what


def test_a_lineage_to_nowhere_is_told():
    start = LINES[0]
    body = [line for line in LINES[1:-1] if b'"0#0"' not in line]
    data = b"\n".join([start, *body, b'{"record":"end","events":1,"edges":0}'])
    assert refused(data).where == "f:1: trace.lineage"


def test_a_newer_schema_is_refused():
    newer = b'{"record":"trace","schema":2,"id":"t"}'
    error = refused(file_of(EVENT + b"}", start=newer))
    assert (error.where, error.hint) == ("f:1", "upgrade stretto")
    assert "schema version 2" in error.what


@pytest.mark.parametrize(
    "data",
    [
        file_of(EVENT + b"}", start=b'{"record":"trace","schema":2,"id":"t","place":"here"}'),
        file_of(b'{"record":"dream"}', start=b'{"record":"trace","schema":2,"id":"t"}'),
        file_of(EVENT + b',"mood":1}', start=b'{"record":"trace","schema":2,"id":"t"}'),
    ],
    ids=["field of the header", "record", "field of an event"],
)
def test_what_a_newer_schema_brings_is_not_taken_for_a_mistake(data):
    assert "schema version 2" in refused(data).what


@pytest.mark.parametrize("schema", [b"0", b"-1", b'"1"', b"null", b"1.5"])
def test_a_schema_that_never_was_is_refused(schema):
    start = b'{"record":"trace","schema":' + schema + b',"id":"t"}'
    assert refused(file_of(EVENT + b"}", start=start)).where.startswith("f:1")


def test_a_missing_schema_is_refused():
    error = refused(file_of(EVENT + b"}", start=b'{"record":"trace","id":"t"}'))
    assert error.where == "f:1: trace"
    assert "`schema`" in error.what


def test_a_missing_end_points_to_the_start_of_the_trace():
    error = refused(store.encode(trace(event("0#0"))) + b"\n".join(LINES[:-1]))
    assert error.where == "f:5"
    assert "no end record" in error.what


def test_a_second_start_without_an_end_points_to_the_first():
    assert refused(LINES[0] + b"\n" + b"\n".join(LINES)).where == "f:1"


def test_a_record_before_any_trace_is_refused():
    assert refused(b"\n".join(LINES[1:])).where == "f:1"


@pytest.mark.parametrize("place", [i for i, line in enumerate(LINES) if b'"content"' not in line])
def test_a_dropped_record_is_noticed(place):
    refused(b"\n".join([*LINES[:place], *LINES[place + 1 :]]))


def test_texts_may_be_dropped():
    kept = [line for line in LINES if not line.startswith(b'{"record":"content"')]
    (found,) = store.decode(b"\n".join(kept), "f")
    assert (found.events, found.contents) == (FULL.events, {})


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
def test_a_doubled_record_of_the_graph_is_noticed(place):
    refused(b"\n".join([*LINES[:place], LINES[place], *LINES[place:]]))


def test_an_end_record_may_count_only_events_and_edges():
    (found,) = store.decode(file_of(EVENT + b"}"), "f")
    assert [each.id for each in found.events] == ["0#1"]


def test_wrong_counts_are_told_at_the_end_record():
    error = refused(file_of(EVENT + b"}", end=b'{"record":"end","events":2,"edges":0}'))
    assert error.where == "f:4"
    assert "1 events" in error.what


# ---- files that are none


@pytest.mark.parametrize("read", [store.read, stretto.load, stretto.load_all])
def test_an_empty_file_is_an_error(read, tmp_path):
    path = tmp_path / "empty.jsonl"
    path.touch()
    with pytest.raises(StrettoError, match=r"empty\.jsonl: the file is empty"):
        read(path)


@pytest.mark.parametrize("read", [store.read, stretto.load, stretto.load_all])
def test_a_missing_file_is_an_error(read, tmp_path):
    with pytest.raises(StrettoError, match=r"gone\.jsonl: no such file"):
        read(tmp_path / "gone.jsonl")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(StrettoError, match="is a folder"):
        store.read(tmp_path)


def test_a_binary_file_is_told_as_one(tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(StrettoError, match=r"image\.png: .*binary"):
        store.read(path)


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_deep_nesting_is_refused_or_read(depth):
    line = EVENT + b',"attrs":{"x":' + b"[" * depth + b"]" * depth + b"}}"
    try:
        store.decode(file_of(line), "f")
    except StrettoError as error:
        assert error.where.startswith("f:3")


@examples(300)
@given(st.data())
def test_flipped_and_cut_bytes_raise_nothing_but_our_error(data):
    raw = bytearray(store.encode(FULL))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "drop", "insert"])):
            case "flip":
                raw[place] ^= 1 << data.draw(st.integers(0, 7))
            case "cut" if place:
                del raw[place:]
            case "insert":
                raw[place:place] = data.draw(st.binary(max_size=3))
            case _ if len(raw) > 1:
                del raw[place]
    try:
        store.decode(bytes(raw), "f")
    except StrettoError as error:
        assert error.where.startswith("f")


def test_every_cut_of_a_file_is_noticed():
    raw = store.encode(FULL)
    for length in range(1, len(raw) - 1, 7):
        refused(raw[:length])


# ---- writing is whole or not at all


def test_a_write_that_fails_midway_leaves_the_old_file_and_no_partial(tmp_path):
    path = tmp_path / "t.jsonl"
    store.write(path, [FULL])
    before = path.read_bytes()

    def chunks():
        yield b"half"
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        files.write_whole(path, chunks())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_our_error_and_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    store.write(path, [FULL])

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StrettoError, match=r"t\.jsonl: cannot be written: No space left"):
        store.write(path, [trace(event("0#0"))])
    assert store.read(path) == [FULL]
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfinished_write_is_invisible_until_it_is_whole(tmp_path):
    path = tmp_path / "t.jsonl"
    seen = []

    def chunks():
        yield b"first"
        seen.append(path.exists())
        yield b"second"

    files.write_whole(path, chunks())
    assert seen == [False]
    assert path.read_bytes() == b"firstsecond"


def test_who_is_reading_the_old_file_reads_it_to_its_end(tmp_path):
    path = tmp_path / "t.jsonl"
    store.write(path, [FULL])
    before = path.read_bytes()
    with path.open("rb") as reader:
        store.write(path, [trace(event("0#0"))])
        assert reader.read() == before
    assert path.read_bytes() != before


def test_writing_into_a_missing_folder_names_the_folder(tmp_path):
    with pytest.raises(StrettoError, match="gone: no such folder"):
        store.write(tmp_path / "gone" / "t.jsonl", [FULL])


def test_writing_over_a_folder_is_refused(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(StrettoError, match="runs: cannot be written"):
        store.write(tmp_path / "runs", [FULL])
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_pipe_is_written_to_directly():
    store.write(Path("/dev/null"), [FULL])
    assert Path("/dev/null").exists()
    assert not Path("/dev/null").is_file()


def test_a_large_trace_is_read_and_written_whole():
    many = [turn(f"0#{index}", float(index), 1.0) for index in range(2_000)]
    big = trace(*many, edges=chain(*(each.id for each in many)))
    assert store.decode(store.encode(big), "f") == [big]
