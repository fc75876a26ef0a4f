"""A model behind an endpoint: one contract, patience, and failures that are never scores."""

import socket
import threading
import time
from contextlib import suppress

import pytest
from tests.bench.endpoints import said, serving
from tests.bench.exams import tiny

from stretto.bench.examinee import single
from stretto.bench.results import read_rows
from stretto.bench.run import run_exam
from stretto.bench.table import lines
from stretto.errors import StrettoError
from stretto.policies.endpoint import (
    Endpoint,
    EndpointPolicy,
    InvalidAnswerError,
    chosen_by,
    prompt_of,
)
from stretto.team.protocols import Ask
from stretto.trace import Tokens

pytest.importorskip("httpx2", reason="the extra `endpoint` is not installed")

ASK = Ask("0#0", "You lead.", "Two are open.", ("go left", "go right", "stop"), "lead", 5)


def counted(**usage):
    return said("1", usage={"prompt_tokens": 30, "completion_tokens": 1, **usage})


def cut(text):
    choice = {"message": {"content": text}, "finish_reason": "length"}
    return 200, {"choices": [choice]}


@pytest.fixture
def server():
    with serving() as found:
        yield found


@pytest.fixture
def policy(server):
    made, naps = [], []

    def make(**settings):
        url = settings.pop("url", server.url)
        defaults = {"key": "secret", "retries": 2, "backoff": 0.25, "timeout": 5.0}
        endpoint = Endpoint(url=url, model="m", **{**defaults, **settings})
        policy = EndpointPolicy(endpoint, naps.append)
        policy.naps = naps
        made.append(policy)
        return policy

    yield make
    for each in made:
        each.close()


def test_the_request_is_the_contract(server, policy):
    server.answer = lambda number, body: said(
        "2",
        usage={
            "prompt_tokens": 30,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 10},
        },
    )
    (answer,) = policy().decide([ASK])
    assert (answer.chosen, answer.policy) == (1, "m-1")
    assert answer.tokens == Tokens(input=20, output=1, cache_read=10)
    ((path, body, key),) = server.asked
    assert (path, key) == ("/v1/chat/completions", "Bearer secret")
    assert body["messages"][0] == {"role": "system", "content": "You lead."}
    assert body["messages"][1]["content"] == prompt_of(ASK)
    assert "1. go left\n2. go right\n3. stop" in prompt_of(ASK)


def test_several_asks_are_answered_in_order(server, policy):
    server.answer = lambda number, body: said("3" if "Two" in str(body) else "1")
    other = Ask("0/1#0", "", "One is open.", ("go", "stop"), "lead", 6)
    assert [a.chosen for a in policy().decide([ASK, other, ASK])] == [2, 0, 2]


def test_a_single_choice_costs_no_call(server, policy):
    (answer,) = policy().decide([Ask("0#0", "", "x", ("only",), "lead", 1)])
    assert answer.chosen == 0 and server.asked == []
    assert answer.tokens == Tokens(input=0, output=0)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("2", 1), (" 2. go right", 1), ("(3)", 2), ("go left", 0), ('"stop"', 2), ("2\n", 1)],
)
def test_answers_that_name_a_choice(text, chosen):
    assert chosen_by(text, ASK) == chosen


@pytest.mark.parametrize(
    "text", ["", "0", "4", "22", "I think left", "go", "go left or right", "9" * 5000, "²"]
)
def test_answers_that_name_none(text):
    with pytest.raises(InvalidAnswerError, match="none of 3 choices"):
        chosen_by(text, ASK)


def test_it_waits_longer_each_time(server, policy):
    server.answer = lambda number, body: said("1") if number == 3 else (503, {"error": "busy"})
    tried = policy()
    assert tried.decide([ASK])[0].chosen == 0
    assert tried.naps == [0.25, 0.5]


@pytest.mark.parametrize(
    ("answer", "calls", "words"),
    [
        ((503, {"error": "busy"}), 3, "status 503.*after 3 calls"),
        ((401, {"error": "who?"}), 1, "status 401"),
        ((200, b"<html>"), 1, "no reply but '<html>'"),
        ((200, b"\xff\xfe"), 1, "no reply"),
        ((200, b"[" * 100_000), 1, "no reply"),
        ((200, b'{"more":' + b"[" * 100_000), 1, "recursion"),
        ((200, {"choices": []}), 1, "length >= 1"),
        ((200, {"choices": [3]}), 1, "choices.0"),
        (said(None), 1, "holds no text"),
        (said(7), 1, "content"),
        (said([{"type": "image", "text": "1"}]), 1, "holds no text"),
        (said("1", model=3), 1, "model"),
        (counted(prompt_tokens_details=[1]), 1, "prompt_tokens_details"),
        (counted(prompt_tokens_details={"cached_tokens": "3"}), 1, "cached_tokens"),
        (counted(prompt_tokens_details={"cached_tokens": 31}), 1, "more cached tokens"),
        (counted(prompt_tokens=-1), 1, "prompt_tokens"),
        (counted(prompt_tokens=10**30), 1, "prompt_tokens"),
    ],
)
def test_what_stays_broken_is_one_clear_error(server, policy, answer, calls, words):
    server.answer = lambda number, body: answer
    with pytest.raises(StrettoError, match=words):
        policy().decide([ASK])
    assert len(server.asked) == calls


def test_nobody_there(policy):
    with pytest.raises(StrettoError, match="the endpoint failed"):
        policy(url="http://127.0.0.1:9/v1", retries=0).decide([ASK])
    with pytest.raises(StrettoError, match="the endpoint failed"):
        policy(url=f"http://{'a' * 70}/v1", retries=0).decide([ASK])


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x", "", "http://[::1", "http://", "http://h:99999"]
)
def test_what_is_no_address_is_seen_before_any_call(policy, url):
    with pytest.raises(StrettoError, match="as in http://localhost"):
        policy(url=url)


@pytest.mark.parametrize(
    "broken",
    [
        *({"timeout": value} for value in (float("nan"), float("inf"), -1.0, 0.0)),
        {"retries": -1},
        {"backoff": -1.0},
        {"concurrency": 0},
        {"answer_tokens": 0},
        {"key": "schlüssel"},
        {"key": "two\nlines"},
    ],
)
def test_numbers_and_keys_that_cannot_be_used(policy, broken):
    with pytest.raises(StrettoError, match=next(iter(broken))):
        policy(**broken)


def test_a_slow_answer_times_out(server, policy):
    wait = threading.Event()
    server.answer = lambda number, body: (wait.wait(2), said("1"))[1]
    with pytest.raises(StrettoError, match=r"no whole answer within 0.1 s"):
        policy(timeout=0.1, retries=0).decide([ASK])
    wait.set()


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"])
def test_an_answer_in_drops_times_out_as_a_whole(policy, head):
    """A byte every .02 s: no single read is late, neither in the head nor in the body."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener, head))
        thread.start()
        begin = time.monotonic()
        with pytest.raises(StrettoError, match=r"no whole answer within 0.2 s"):
            policy(
                url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.2, retries=0
            ).decide([ASK])
        assert time.monotonic() - begin < 2
        thread.join()


def drip(listener, head):
    peer, _ = listener.accept()
    with peer, suppress(OSError):
        peer.sendall(head)
        for byte in (b" " if head else b"HTTP/1.1 200 OK\r\nX: " + b"x") * 999:
            peer.sendall(bytes([byte]))
            time.sleep(0.02)


def test_a_list_of_parts_is_read(server, policy):
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "3"}]
    server.answer = lambda number, body: said(parts)
    assert policy().decide([ASK])[0].chosen == 2


@pytest.mark.parametrize("text", [None, "", "Let me think: left is"])
def test_an_answer_that_was_cut_is_no_answer_of_the_model(server, policy, text):
    server.answer = lambda number, body: cut(text)
    with pytest.raises(StrettoError, match=r"cut after 64 tokens.*--answer-tokens") as found:
        policy(answer_tokens=64).decide([ASK])
    assert not isinstance(found.value, InvalidAnswerError)
    assert server.asked[0][1]["max_tokens"] == 64


def test_a_cut_answer_that_names_a_choice_counts(server, policy):
    server.answer = lambda number, body: cut("2. go right, because")
    assert policy().decide([ASK])[0].chosen == 1


def test_a_probe_is_one_call(server, policy):
    policy().probe()
    assert len(server.asked) == 1
    server.answer = lambda number, body: (503, {})
    with pytest.raises(StrettoError, match=r"^http://127.0.0.1:\d+/v1.*status 503"):
        policy(url=f"http://me:secret@127.0.0.1:{server.server_port}/v1?key=secret").probe()
    assert len(server.asked) == 2


def sat(folder, policy, **settings):
    who = single("model", policy.about, policy, threads=2)
    run_exam(tiny(), folder, who, **settings)
    rows = [row for row in read_rows(folder) if row.policy == "model"]
    return rows, {line.policy: line for line in lines(rows)}["model"]


def test_a_model_sits_the_exam(server, policy, tmp_path):
    rows, line = sat(tmp_path, policy())
    assert line.episodes == 2 and line.errors == 0
    assert all(row.values["tokens"] > 0 for row in rows)


def test_a_failed_call_is_an_error_and_is_tried_again(server, policy, tmp_path):
    server.answer = lambda number, body: (500, {})
    rows, line = sat(tmp_path, policy(retries=0))
    assert (line.episodes, line.errors) == (0, 2)
    assert all(row.values == {} and "status 500" in row.error for row in rows)
    assert "outcome" not in line.means, "an error is no score"
    server.answer = lambda number, body: said("1")
    rows, line = sat(tmp_path, policy())
    assert (line.episodes, line.errors) == (2, 0)


def test_an_illegal_answer_forfeits(server, policy, tmp_path):
    server.answer = lambda number, body: said("I would rather not")
    _, line = sat(tmp_path, policy())
    assert (line.episodes, line.forfeits, line.errors) == (2, 2, 0)
    assert line.means["outcome"].mean == 0


def test_a_token_budget_ends_the_episode(server, policy, tmp_path):
    usage = {"prompt_tokens": 100, "completion_tokens": 1}
    server.answer = lambda number, body: said("1", usage=usage)
    rows, line = sat(tmp_path, policy(), tokens=150)
    assert {row.ended for row in rows} == {"limit"}
    assert line.forfeits == 2 and line.means["outcome"].mean == 0
