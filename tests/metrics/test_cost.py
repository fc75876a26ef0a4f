"""Prices by the table, coordination, the baseline, and the tables by part."""

import pytest
from hypothesis import given

from stretto.errors import StrettoError
from stretto.metrics import breakdown, load_prices, measure
from stretto.trace import Agent, Decision, Score, Tokens

from ..examples import event, trace, turn
from ..strategies import examples, traces

TABLE = """
date = 2026-01-02
[models]
small = { input = 1, output = 10, cache_read = 0.1, cache_write = 2, up_to = 1000 }
bare = { input = 1, output = 10 }
"""


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(TABLE)
    return load_prices(path)


def spent(prices, model="small", **tokens):
    given = trace(turn("0#0", tokens=Tokens(**tokens)), agents=(Agent(id="0", model=model),))
    return measure(given, prices=prices)["price"]


def test_price_by_hand(prices):
    """100 + 20/10 + 30·2 + 5·10 millionths."""
    found = spent(prices, input=100, cache_read=20, cache_write=30, output=5)
    assert found.value == pytest.approx(212e-6)
    assert (found.how, found.reason) == ("derived", "")


def test_what_the_source_states_for_the_run_is_the_price_where_turns_cannot_all_be_priced(prices):
    turns = turn("0#0", tokens=Tokens(input=1, output=1)), turn("0#1", tokens=Tokens(input=1))
    agents = (Agent(id="0", model="small"),)
    stated = (Score(channel="cost_usd", value=0.5, kind="cost"),)
    found = measure(trace(*turns, agents=agents, scores=stated), prices=prices)["price"]
    assert (found.value, found.how) == (0.5, "recorded")
    assert found.reason == "what the source states for the whole run"
    all_known = trace(turns[0], agents=agents, scores=stated)
    assert measure(all_known, prices=prices)["price"].value == pytest.approx(11e-6)


@pytest.mark.parametrize(
    "name", ["small", "Small", "acme/small", "small-20260102", "small@2026-01-02"]
)
def test_names_of_models(prices, name):
    assert spent(prices, name, input=100, output=0).value == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("huge", {"input": 1, "output": 1}),
        (None, {"input": 1, "output": 1}),
        ("small", {"input": 1}),
        ("small", {"output": 1}),
        ("small", {"input": 1001, "output": 1}),
        ("small", {"input": 1, "cache_read": 1000, "output": 1}),
        ("small", {"input": 1, "output": 1, "unreliable": ("output",)}),
        ("small", {"input": 1, "output": 1, "cache_read": 1, "unreliable": ("cache_read",)}),
        ("bare", {"input": 1, "output": 1, "cache_read": 1}),
    ],
)
def test_what_is_not_priced(prices, model, tokens):
    found = spent(prices, model, **tokens)
    assert found.value is None
    assert "1 of 1 turns have no price" in found.reason


def test_the_reason_names_the_model_and_the_date(prices):
    found = spent(prices, "huge", input=1, output=1)
    assert "the table of 2026-01-02 has no price for huge (1)" in found.reason


def test_recorded_prices_come_first_and_returns_are_not_counted_again(prices):
    given = trace(
        turn("0#0", price=0.5, tokens=Tokens(input=1, output=1)),
        event("0#1", "tool_call", price=0.25),
        event("0#2", "return", price=0.75),
        agents=(Agent(id="0", model="small"),),
    )
    found = measure(given, prices=prices)["price"]
    assert (found.value, found.how) == (0.75, "recorded")


def test_some_unpriced_turns_make_a_lower_bound(prices):
    given = trace(turn("0#0", price=0.5), turn("0#1"))
    found = measure(given, prices=prices)["price"]
    assert found.value == 0.5
    assert "a lower bound" in found.reason


def test_the_own_table_is_dated_and_has_prices_above_zero():
    own = load_prices()
    assert own.date.year >= 2026
    assert len(own.models) > 50
    for name, price in own.models.items():
        assert 0 < price.input <= price.output, name
        assert price.cache_read is None or price.cache_read < price.input, name
        assert own.of(name) == price


@pytest.mark.parametrize(
    "text", ["date = 1", "date = 2026-01-01\n[models]\nx = { inptu = 1 }", "["]
)
def test_a_table_that_is_none_is_an_error(tmp_path, text):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(StrettoError, match=r"p\.toml"):
        load_prices(path)
    with pytest.raises(StrettoError, match=r"missing\.toml"):
        load_prices(tmp_path / "missing.toml")


# ---- coordination


def test_a_turn_coordinates_by_its_type_or_by_what_it_did():
    tokens = Tokens(input=9, output=1)
    asks = Decision(type="communicate")
    given = trace(
        event("0#0", decision=asks, tokens=tokens),
        turn("0#1", tokens=tokens),
        event("0#2", "spawn", to="0/0"),
        turn("0#3", tokens=Tokens(input=20)),
        edges=[("0#1", "0#2")],
    )
    found = measure(given)["coordination_share"]
    assert found.value == 0.5
    assert "the tokens of 1 turns are not all known" in found.reason


# ---- baseline


def test_overhead_against_a_single_agent(prices):
    tokens = Tokens(input=10, output=0)
    team = trace(
        *(turn("0#0", 0.0, 1.0, tokens=tokens), turn("1#0", 0.0, 2.0, tokens=tokens)),
        turn("2#0", 0.0, 2.0, tokens=tokens),
        agents=tuple(Agent(id=name, model="small") for name in "012"),
    )
    solo = trace(
        turn("0#0", 0.0, 3.0, tokens=Tokens(input=20, output=0)),
        agents=(Agent(id="0", model="small"),),
    )
    found = measure(team, baseline=solo, prices=prices)
    assert found["turn_overhead"].value == 2.0
    assert found["token_overhead"].value == 0.5
    assert found["price_overhead"].value == pytest.approx(0.5)
    assert found["speedup"].value == 1.5
    assert "no single-agent baseline" in measure(team)["speedup"].reason


# ---- tables

CREW = trace(
    turn("0#0", 0.0, 1.0, tokens=Tokens(input=10, output=2)),
    event("0#1", "tool_call", 1.0, 3.0, tool="grep", price=0.5),
    event("0#2", "tool_call", 1.0, 1.0, tool="read"),
    turn("1#0", 0.0, 5.0, tokens=Tokens(input=30, output=6)),
    edges=[("0#0", "0#1"), ("0#0", "0#2")],
    roles={"0": "lead", "1": "worker"},
)


def table(by):
    return {row.key: row for row in breakdown(CREW, by)}


def test_rows_by_agent_and_role_by_hand():
    for by, keys in (("agent", ("0", "1")), ("role", ("lead", "worker"))):
        one, two = (table(by)[key] for key in keys)
        assert (one.events, one.input_tokens, one.output_tokens, one.price) == (3, 10, 2, 0.5)
        assert (one.work, one.blocked, one.idle) == (5, 0, 0)
        assert (one.token_share, one.work_share) == (0.25, 0.5)
        assert (two.events, two.price, two.work, two.idle) == (1, None, 5, 0)


def test_a_turn_is_split_evenly_over_the_calls_that_it_made():
    rows = table("tool")
    assert (rows["grep"].events, rows["grep"].input_tokens, rows["grep"].work) == (1, 5, 3)
    assert (rows["read"].input_tokens, rows["read"].output_tokens, rows["read"].work) == (5, 1, 1)
    assert (rows[None].input_tokens, rows[None].work) == (30, 6)
    assert rows["grep"].price == 0.5


def test_rows_by_kind_and_event():
    assert table("kind")["tool_call"].work == 4
    assert table("kind")["tool_call"].input_tokens is None
    assert table("event")["1#0"].work_share == 0.5
    assert table("decision")["act"].events == 2


def test_rows_say_what_is_missing_and_what_is_a_guess():
    rows = table("agent")
    assert rows["0"].reason == "1 of 1 turns have no price"
    silent = breakdown(trace(turn("0#0", 0.0, 1.0, price=1.0)))[0]
    assert (silent.price, silent.reason) == (1.0, "1 of 1 turns do not say all their tokens")
    assert {row.how for row in rows.values()} == {"derived"}
    guessed = trace(*CREW.events, edges=[("0#0", "0#1", "causal", "heuristic")])
    assert {row.how for row in breakdown(guessed, "tool")} == {"heuristic"}
    assert {row.how for row in breakdown(guessed, "kind")} == {"derived"}


def test_an_unknown_part_is_an_error():
    with pytest.raises(StrettoError, match='did you mean "agent"'):
        breakdown(CREW, "agnet")


PARTS = ("agent", "role", "kind", "decision", "tool", "model", "event")


@examples(60, shrink=False)
@given(traces())
def test_every_table_adds_up_to_the_measures(given):
    found = measure(given)
    for by in PARTS:
        rows = breakdown(given, by)
        for name in ("input_tokens", "output_tokens", "price", "work"):
            parts = [getattr(row, name) for row in rows if getattr(row, name) is not None]
            total = found[name].value
            assert (total is None) == (not parts), (by, name)
            assert sum(parts) == pytest.approx(total or 0.0, rel=1e-6)


@examples(60, shrink=False)
@given(traces())
def test_any_trace_is_measured(given):
    found = measure(given)
    for name, each in found.items():
        assert each.value is None or each.value == each.value, name
        assert each.value is not None or each.reason, name
    if found["peak_width"].value is not None and found["parallelism"].value is not None:
        assert found["parallelism"].value <= found["peak_width"].value * (1 + 1e-6)
        assert found["peak_agents"].value <= found["peak_width"].value


def test_token_overhead_says_of_how_many_turns_any_tokens_are_unknown():
    """Prompts of 10 and 10, samples of 5 and nobody knows; the baseline takes 10 and 5."""
    both, half = Tokens(input=10, output=5), Tokens(input=10)
    given = trace(turn("0#0", tokens=both), turn("0#1", tokens=half))
    found = measure(given, baseline=trace(turn("0#0", tokens=both)))["token_overhead"]
    assert found.value == pytest.approx(25 / 15 - 1)
    assert found.reason == "the tokens of 1 turns are not all known: a lower bound"
