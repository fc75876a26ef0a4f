"""What was said, asked or done before."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.metrics import measure, shingles
from stretto.metrics.shingles import _buckets, _candidates, near_duplicates, shingle
from stretto.trace import content_hash

from ..examples import event, trace, turn
from ..strategies import examples

LONG = "the quick brown fox jumps over the lazy dog and runs far away into the deep dark wood"


def said(*rows, kind="message", drop=False, **fields):
    """Messages (receiver, text) or calls (tool, arguments) of agent 0."""
    name = "to" if kind == "message" else "tool"
    events = [
        event(f"0#{i}", kind, float(i), content=content_hash(text), **{name: to}, **fields)
        for i, (to, text) in enumerate(rows)
    ]
    contents = {} if drop else {content_hash(text): text for _, text in rows}
    return trace(*events, contents=contents)


def value(given, name):
    return measure(given)[name].value


def test_a_message_repeats_only_for_the_same_receiver():
    rows = ("a", "hello"), ("b", "hello"), ("a", "hello"), ("a", "bye")
    assert value(said(*rows), "message_redundancy") == 0.25


def test_a_call_repeats_for_the_same_tool_and_arguments():
    rows = ("grep", "x"), ("grep", "x"), ("read", "x"), ("grep", "y")
    assert value(said(*rows, kind="tool_call"), "tool_redundancy") == 0.25


def test_a_call_that_waits_is_left_out():
    waits = said(("wait", "x"), ("wait", "x"), kind="tool_call", attrs={"waiting": True})
    assert value(waits, "tool_redundancy") is None


def test_near_duplicates_are_guesses_and_include_exact_ones():
    changed = LONG.replace("wood", "woods")
    found = measure(said(("a", LONG), ("a", changed), ("a", LONG), ("b", changed)))
    assert found["message_redundancy"].value == 0.25
    assert found["message_near_redundancy"].value == 0.5
    assert found["message_near_redundancy"].how == "heuristic"


def test_dropped_texts_leave_what_hashes_can_tell():
    found = measure(said(("a", LONG), ("a", LONG), drop=True))
    assert found["message_redundancy"].value == 0.5
    assert found["message_near_redundancy"].value is None
    assert "1 of 1 texts were dropped" in found["message_near_redundancy"].reason


def test_what_has_no_content_is_left_out_and_said():
    given = trace(*said(("a", "x"), ("a", "x")).events, event("0#9", "message", 9.0, to="a"))
    found = measure(given)["message_redundancy"]
    assert found.value == 0.5
    assert "1 of 3 messages have no content" in found.reason


def test_an_action_is_repeated_when_its_answer_is_the_same_as_before():
    """x gets A, A, B: one repeats. Another agent's x counts for itself."""
    calls = [("0", "x", "A"), ("0", "x", "A"), ("0", "x", "B"), ("0", "y", "A"), ("1", "x", "B")]
    events, edges = [], []
    for place, (who, asked, answer) in enumerate(calls):
        call, result = f"{who}#c{place}", f"{who}#r{place}"
        events += [
            event(call, "tool_call", float(place), 1.0, tool="t", content=asked),
            event(result, "tool_result", place + 0.5, tool="t", content=answer),
        ]
        edges.append((call, result, "tool_dependency"))
    assert value(trace(*events, edges=edges), "repeated_actions") == 1.0
    backwards = trace(*events[::-1], edges=edges[::-1])
    assert value(backwards, "repeated_actions") == 1.0
    guessed = trace(*events, edges=[(*edge, "heuristic") for edge in edges])
    assert measure(guessed)["repeated_actions"].how == "heuristic"
    assert value(trace(*events), "repeated_actions") is None  # no answers are known
    assert value(trace(turn("0#0")), "repeated_actions") is None  # the source may not record calls


def test_calls_of_our_own_rollouts_repeat_by_their_attributes():
    """look(1), look(1), look(2) with answers A, A, A; an import says nothing of arguments."""
    events, edges = [], []
    for place, cell in enumerate((1, 1, 2)):
        events += [
            event(f"0#c{place}", "tool_call", float(place), 1.0, tool="look", attrs={"cell": cell}),
            event(f"0#r{place}", "tool_result", place + 1.0, tool="look", content="A"),
        ]
        edges.append((f"0#c{place}", f"0#r{place}", "tool_dependency"))
    own = measure(trace(*events, edges=edges, spec={"family": "f"}))
    assert own["tool_redundancy"].value == pytest.approx(1 / 3)
    assert own["tool_near_redundancy"].value == pytest.approx(1 / 3)
    assert own["repeated_actions"].value == 1.0
    imported = measure(trace(*events, edges=edges))
    assert imported["tool_redundancy"].reason == "no tool calls have a content"
    assert imported["repeated_actions"].value is None


def test_an_action_is_held_against_the_last_one_with_its_arguments():
    """x gets A, then y gets B, then x gets A again: what came between does not matter."""
    events, edges = [], []
    for place, (asked, answer) in enumerate((("x", "A"), ("y", "B"), ("x", "A"), ("x", "C"))):
        events += [
            event(f"0#c{place}", "tool_call", float(place), 1.0, tool="t", content=asked),
            event(f"0#r{place}", "tool_result", place + 0.5, tool="t", content=answer),
        ]
        edges.append((f"0#c{place}", f"0#r{place}", "tool_dependency"))
    assert value(trace(*events, edges=edges), "repeated_actions") == 1.0


# ---- shingles


def words_of(text):
    return tuple(word for word in "".join(c.lower() if c.isalnum() else " " for c in text).split())


def sets_of(text):
    words = words_of(text)
    if 0 < len(words) < 3:
        return {words}
    return {words[i : i + 3] for i in range(len(words) - 2)}


ascii_texts = st.text(st.sampled_from("ab, .C"), max_size=30)


@examples(100)
@given(st.lists(ascii_texts, max_size=6))
def test_shingles_are_runs_of_three_words(texts):
    found = shingle(texts)
    hashed = [set(found.hashes[a:b].tolist()) for a, b in zip(*ends(found), strict=True)]
    assert [len(each) for each in hashed] == [len(sets_of(text)) for text in texts]
    for one, left in zip(texts, hashed, strict=True):
        for other, right in zip(texts, hashed, strict=True):
            assert len(left & right) == len(sets_of(one) & sets_of(other))


def ends(found):
    return found.offsets[:-1].tolist(), found.offsets[1:].tolist()


def near(texts, group=None):
    places = np.arange(len(texts))
    return near_duplicates(texts, places, np.zeros_like(places) if group is None else group)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (LONG.upper() + "!", True),
        (LONG + " again", True),
        (LONG[: len(LONG) // 2], False),
        ("something else altogether that has nothing to do with it", False),
        ("", False),
    ],
)
def test_near_duplicates_by_hand(other, expected):
    assert near([LONG, other]).tolist() == [False, expected]


def test_near_duplicates_agree_with_the_jaccard_index():
    """Texts of 40 words with ever more of them changed, against the definition."""
    random = np.random.default_rng(3)
    vocabulary = [f"w{number}" for number in range(500)]
    for changes in range(6):
        for _ in range(20):
            base = random.choice(vocabulary, 40).tolist()
            other = base.copy()
            other[40 - changes :] = random.choice(vocabulary, changes).tolist()
            one, two = sets_of(" ".join(base)), sets_of(" ".join(other))
            alike = len(one & two) >= 0.8 * len(one | two)
            assert near([" ".join(base), " ".join(other)])[1] == alike


def test_groups_are_kept_apart_and_texts_without_spaces_have_words_too():
    assert near([LONG, LONG + " x"], np.array([0, 1])).tolist() == [False, False]
    chinese = "敏捷的棕色狐狸跳过了懒狗然后跑进了森林深处"
    assert near([chinese, chinese + "啊"]).tolist() == [False, True]


def test_text_beyond_a_chunk_and_broken_text():
    long = [f"{LONG} {number} " * 2000 for number in range(12)]
    assert len(shingle(long).offsets) == 13
    assert near([LONG + "\ud800", LONG + "\ud800 x"]).tolist() == [False, True]


def test_a_run_of_letters_without_end_is_several_words():
    """An image in base64: its beginning changes little, and a million letters cost no more."""
    blob = "".join(np.random.default_rng(0).choice(list("abcXYZ019"), 100_000).tolist())
    changed = blob[:5000] + "Q" + blob[5001:]
    other = blob[::-1]
    assert near([blob, changed, other]).tolist() == [False, True, False]
    began = time.process_time()
    shingle([blob * 20])
    assert time.process_time() - began < 1


@examples(100)
@given(st.lists(st.text(st.sampled_from("aé日\ud800 ."), max_size=200), min_size=1, max_size=5))
def test_a_text_has_the_same_shingles_whatever_stands_beside_it(texts):
    together = shingle(texts)
    for place, text in enumerate(texts):
        alone = shingle([text]).hashes.tolist()
        begin, end = together.offsets[place], together.offsets[place + 1]
        assert together.hashes[begin:end].tolist() == alone


def test_a_text_that_is_edited_step_by_step_nearly_repeats_the_one_before():
    """Twenty versions of a hundred words; a step changes three, at most nine of 98 shingles.

    A step keeps 89 of 107 shingles at least, 0.83; of the first, the last keeps next to nothing.
    """
    random = np.random.default_rng(1)
    versions = [random.choice(2000, 100)]
    for _ in range(19):
        versions.append(versions[-1].copy())
        versions[-1][random.choice(100, 3, replace=False)] = random.choice(2000, 3)
    found = near([" ".join(f"w{word}" for word in words) for words in versions])
    assert found.tolist() == [False] + [True] * 19


def test_candidates_are_the_last_of_a_bucket_and_its_first(monkeypatch):
    """Places 0, 1, 3, 4 and 5 share a bucket, 2 is alone; the last three are looked at."""
    monkeypatch.setattr(shingles, "RECENT", 3)
    pairs = _candidates(_buckets(np.array([7, 7, 5, 7, 7, 7], dtype=np.uint64)))
    found = [sorted(zip(*(side.tolist() for side in each), strict=True)) for each in pairs]
    assert found == [
        [(1, 0), (3, 1), (4, 3), (5, 4)],
        [(3, 0), (4, 1), (5, 3)],
        [(4, 0), (5, 1)],
        [(5, 0)],
    ]


def resembles(one, other):
    """Whether two texts share 0.8 of their runs of three words."""
    sets = [{tuple(words[i : i + 3]) for i in range(len(words) - 2)} for words in (one, other)]
    return len(sets[0] & sets[1]) >= 0.8 * len(sets[0] | sets[1])


def test_of_many_commands_of_one_form_all_that_repeat_are_found():
    """60 words to look for by 5 lengths, in any order: alike, yet near only for the same word."""
    random = np.random.default_rng(3)
    pairs = random.permutation([(word, length) for word in range(60) for length in range(5)])
    texts = [
        f"grep -n foo{word} src/file.py -r --include py -i -l --color never | head -n {length}"
        for word, length in pairs.tolist()
    ]
    words = ["".join(c if c.isalnum() else " " for c in text).split() for text in texts]
    expected = [any(resembles(each, old) for old in words[:i]) for i, each in enumerate(words)]
    assert sum(expected) == 240
    assert near(texts).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other"), [("École Normale", "ÉCOLE NORMALE"), ("in der Straße", "IN DER STRASSE")]
)
def test_case_is_folded_beyond_ascii(one, other):
    assert near([one, other]).tolist() == [False, True]


def test_near_duplicates_are_those_of_all_pairs():
    """Chains of edits in two groups, mixed up, against the plain comparison with all before."""
    random = np.random.default_rng(5)
    missed = wanted = 0
    for _ in range(12):
        texts = [random.choice(300, 40) for _ in range(4)]
        for _ in range(36):
            texts.append(texts[random.choice(len(texts))].copy())
            texts[-1][random.choice(40, random.integers(1, 3))] = random.choice(300)
        said = [" ".join(f"w{word}" for word in words) for words in texts]
        group = random.choice(2, len(said))
        sets = [sets_of(text) for text in said]
        expected = [
            any(
                group[j] == group[i] and len(sets[i] & sets[j]) >= 0.8 * len(sets[i] | sets[j])
                for j in range(i)
            )
            for i in range(len(said))
        ]
        found = near(said, group)
        assert not (found & ~np.array(expected)).any()  # none that is not one
        missed += int((np.array(expected) & ~found).sum())
        wanted += sum(expected)
    assert missed <= 0.03 * wanted
