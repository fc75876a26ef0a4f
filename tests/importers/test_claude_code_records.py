"""Stage one: lines to records, whatever their shape."""

import json

import pytest

from stretto.importers.claude_code.records import Message, raw_text, read_records, text_of

from .transcripts import assistant, record, user


def load(*lines):
    data = b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )
    return read_records(data, "f.jsonl")


def notices(transcript):
    return [str(notice) for notice in transcript.notices]


def test_records_keep_their_order_and_line():
    transcript = load(user("a", 0), b"\n", user("b", 1))
    assert [(e.line, e.record.message.content) for e in transcript.entries] == [(1, "a"), (3, "b")]
    assert str(transcript.entries[1].source) == "f.jsonl:3"


def test_a_line_that_is_not_json_is_named_and_counted():
    transcript = load(user("a", 0), b"{oops}\n", b"[1]\n", b'{"uuid": "x"}\n', user("b", 1))
    assert len(transcript.entries) == 2
    assert transcript.skipped == {"(no record)": 3}
    assert notices(transcript) == [
        "f.jsonl:2: not JSON: skipped",
        "f.jsonl:3: not a JSON object: skipped",
        "f.jsonl:4: a record without a type: skipped",
    ]


def test_a_file_that_is_cut_anywhere_yields_what_is_whole():
    whole = json.dumps(user("a", 0)).encode() + b"\n"
    last = json.dumps(user("b", 1)).encode()
    for cut in range(1, len(last)):
        transcript = read_records(whole + last[:cut], "f.jsonl")
        assert len(transcript.entries) == 1
        assert notices(transcript) == ["f.jsonl:2: the file is cut in this record: skipped"]
    assert len(read_records(whole + last, "f.jsonl").entries) == 2


def test_a_field_of_the_wrong_type_costs_the_field_and_not_the_record():
    odd = user([{"type": "text", "text": 5}, 7, "plain"], 0)
    odd |= {"timestamp": "soon", "version": 3}
    transcript = load(odd)
    (entry,) = transcript.entries
    assert entry.record.uuid == "u0"
    assert entry.record.timestamp is entry.record.version is None
    assert text_of(entry.record.message.content) == "[text]\n\nplain"
    assert len(transcript.notices) == 4
    assert all("f.jsonl:1: " in notice and "left out" in notice for notice in notices(transcript))


@pytest.mark.parametrize("usage", [None, "many", {"input_tokens": "5"}, {"output_tokens": 2.5}, []])
def test_usage_of_any_shape_leaves_the_message(usage):
    (entry,) = load(assistant("m", 0, "hello", usage=usage)).entries
    assert isinstance(entry.record.message, Message)
    assert text_of(entry.record.message.content) == "hello"


def test_unknown_fields_are_counted_and_known_ones_are_not():
    transcript = load(user("a", 0, slug="s", brandNew=1), user("b", 1, brandNew=2, other=None))
    assert transcript.unknown_fields == {"brandNew": 2}
    assert not transcript.notices


def test_halves_of_surrogate_pairs_and_broken_utf8_do_not_cost_the_record():
    half = json.dumps(user("x", 0)).replace('"x"', '"\\ud83d!"').encode() + b"\n"
    broken = json.dumps(user("y", 1)).encode().replace(b'"y"', b'"y\xff"') + b"\n"
    transcript = load(half, broken)
    assert [e.record.message.content[-1] for e in transcript.entries] == [
        "!",
        "\N{REPLACEMENT CHARACTER}",
    ]
    for entry in transcript.entries:
        entry.record.message.content.encode()


def test_times_without_a_zone_are_utc_and_steps_back_are_counted():
    late = user("a", 5) | {"timestamp": "2026-01-01T00:00:05"}
    transcript = load(late, user("b", 2), record("summary", 0, timestamp=None), user("c", 3))
    assert transcript.stepped_back == 1
    first, second = (transcript.entries[place].record.timestamp for place in (0, 3))
    assert (first - second).total_seconds() == 2


def test_the_text_of_a_result_of_any_shape():
    def text(content):
        (entry,) = load(
            user([{"type": "tool_result", "tool_use_id": "t", "content": content}], 0)
        ).entries
        return raw_text(entry.record.message.content[0].content)

    assert text("plain") == "plain"
    assert text([{"type": "text", "text": "a"}, {"type": "image", "source": {}}]) == "a\n\n[image]"
    assert text(["a", "b"]) == "a\n\nb"
    assert text({"odd": 1}) == '{"odd": 1}'
    assert text(None) == ""


def test_nesting_without_end_is_no_crash():
    deep = b'{"type":"user","data":' + b"[" * 100_000 + b"\n"
    transcript = load(deep, user("a", 0))
    assert len(transcript.entries) == 1
