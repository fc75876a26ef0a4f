"""What a turn costs: its own model, one-hour caches, causes of a missing price, tables of users."""

import pytest

from stretto.errors import StrettoError
from stretto.metrics import breakdown, load_prices, measure
from stretto.metrics.prices import model_name
from stretto.trace import Agent, Tokens

from ..examples import event, trace, turn

TABLE = """
date = 2026-01-02
[models]
big = { input = 10, output = 100, cache_write = 20, cache_write_1h = 30 }
small = { input = 1, output = 10, cache_write = 2, up_to = 1000 }
"""
AGENTS = (Agent(id="0", model="big"),)


def table_of(path, text):
    path.write_text(text)
    return load_prices(path)


@pytest.fixture
def prices(tmp_path):
    return table_of(tmp_path / "prices.toml", TABLE)


def priced(prices, *turns, agents=AGENTS):
    return measure(trace(*turns, agents=agents), prices=prices)["price"]


def wrote(name, written, long, **attrs):
    tokens = Tokens(input=0, output=0, cache_write=written)
    return turn(name, tokens=tokens, attrs={"cache_write_1h": long, **attrs})


# ---- one-hour caches


def test_a_one_hour_write_has_its_own_price(prices):
    """100 of 300 written tokens stay for an hour: 200·20 + 100·30 millionths."""
    found = priced(prices, wrote("0#0", 300, 100))
    assert found.value == pytest.approx(7000e-6)
    assert (found.how, found.reason) == ("derived", "")


def test_it_is_a_lower_bound_without_a_price_of_its_own(prices):
    """300·2 millionths, since a write for an hour costs no less than one for five minutes."""
    given = wrote("0#0", 300, 100, model="small"), wrote("0#1", 300, 0, model="small")
    found = priced(prices, *given)
    assert found.value == pytest.approx(1200e-6)
    assert found.reason == (
        "the one-hour cache writes of 1 of 2 turns are priced as five-minute ones, since the table "
        "of 2026-01-02 has no price for them: a lower bound"
    )
    (row,) = breakdown(trace(*given, agents=AGENTS), "model", prices)
    assert (row.key, row.reason) == (
        "small",
        "1 of 2 turns have one-hour cache writes priced as five-minute ones; "
        "2 of 2 durations are unknown",
    )


@pytest.mark.parametrize("long", [-5, float("nan"), "many", None])
def test_a_count_that_is_none_is_left_out(prices, long):
    assert priced(prices, wrote("0#0", 300, long)).value == pytest.approx(6000e-6)


def test_no_more_than_was_written_is_for_an_hour(prices):
    assert priced(prices, wrote("0#0", 300, 900)).value == pytest.approx(9000e-6)


def test_only_one_hour_writes_need_only_their_price(tmp_path):
    text = "date = 2026-01-02\n[models]\nbig = {input = 1, output = 1, cache_write_1h = 2}"
    prices = table_of(tmp_path / "p.toml", text)
    assert priced(prices, wrote("0#0", 300, 300)).value == pytest.approx(600e-6)
    assert priced(prices, wrote("0#0", 300, 299)).value is None


def test_the_own_table_bills_an_hour_at_twice_the_prompt():
    """By hand from Anthropic's page: Haiku 4.5 $2, Sonnet 4.5 $6, Opus 4.1 $30, Haiku 3 $0.50."""
    own = load_prices()
    for name, dollars in (
        *(("claude-haiku-4-5", 2), ("claude-sonnet-4-5", 6)),
        *(("claude-opus-4-1", 30), ("claude-3-haiku", 0.5), ("claude-3-5-haiku", 1.6)),
    ):
        assert own.of(name).cache_write_1h == dollars, name
    for name, price in own.models.items():
        if price.cache_write_1h is not None:
            assert price.cache_write_1h == pytest.approx(2 * price.input), name


# ---- the model of a turn


def test_a_turn_is_priced_by_its_own_model(prices):
    """Two turns of 100 prompt tokens: 100·10 of the agent's model, 100·1 of its own."""
    tokens = Tokens(input=100, output=0)
    own = turn("0#1", 1.0, 2.0, tokens=tokens, attrs={"model": "acme/Small"})
    calls = event("0#2", "spawn", 3.0, to="0/0", attrs={"model": "small"})
    given = (turn("0#0", 0.0, 1.0, tokens=tokens), own, calls)
    assert priced(prices, *given).value == pytest.approx(1100e-6)
    rows = {row.key: row for row in breakdown(trace(*given, agents=AGENTS), "model", prices)}
    assert {key: row.price for key, row in rows.items()} == pytest.approx(
        {"big": 1000e-6, "acme/Small": 100e-6}
    )
    assert (rows["big"].events, rows["acme/Small"].events) == (2, 1)
    assert (rows["big"].work, rows["acme/Small"].work) == (1.0, 2.0)


def test_idle_time_is_that_of_the_agents_model(prices):
    """All turns are of other models than the agent's; its idle second stays with its own."""
    attrs = {"model": "small"}
    given = trace(
        turn("0#0", 0.0, 1.0, attrs=attrs), turn("0#1", 2.0, 1.0, attrs=attrs), agents=AGENTS
    )
    rows = {row.key: row for row in breakdown(given, "model", prices)}
    assert (rows["big"].idle, rows["big"].work, rows["big"].events) == (1.0, None, 0)
    assert (rows["small"].idle, rows["small"].work) == (None, 2.0)


def test_a_model_that_is_no_word_is_none(prices):
    tokens = Tokens(input=100, output=0)
    given = [turn(f"0#{n}", tokens=tokens, attrs={"model": m}) for n, m in enumerate(("", 7, None))]
    assert priced(prices, *given).value == pytest.approx(3000e-6)


# ---- causes


def test_every_cause_is_counted(prices):
    known = {"input": 1, "output": 1}
    tokens = (
        Tokens(**known),
        Tokens(**known, unreliable=("output",)),
        Tokens(input=1, unreliable=("input",)),
        Tokens(input=1),
        None,
    )
    models = ("huge", "vast", "huge", "small", "big")
    counts = (known, known, known, {"input": 1001, "output": 1}, {**known, "cache_read": 5})
    turns = [turn(f"0#{n}", tokens=each) for n, each in enumerate(tokens)]
    turns += [
        turn(f"0#{n}", tokens=Tokens(**each), attrs={"model": model})
        for n, (model, each) in enumerate(zip(models, counts, strict=True), start=len(tokens))
    ]
    turns.append(turn("1#0", tokens=Tokens(**known)))
    found = priced(prices, *turns, agents=(*AGENTS, Agent(id="1")))
    assert found.value == pytest.approx(110e-6)
    assert found.reason == (
        "10 of 11 turns have no price: tokens unknown (2), tokens unreliable (2), model unknown "
        "(1), the table of 2026-01-02 has no price for huge, vast (3), prompt longer than the "
        "prices hold for (1), no price for cached tokens (1): a lower bound"
    )


def test_only_three_models_without_a_price_are_named(prices):
    tokens = Tokens(input=1, output=1)
    given = [turn(f"0#{n}", tokens=tokens, attrs={"model": n * "x"}) for n in range(1, 5)]
    assert "has no price for x, xx, xxx, … (4)" in priced(prices, *given).reason


# ---- tables of users


@pytest.mark.parametrize(
    "key", ["Small", "acme/small", "ACME/Small-latest", "small@latest", "small"]
)
def test_keys_are_read_as_names_are(tmp_path, key):
    text = f'date = 2026-01-02\n[models]\n"{key}" = {{ input = 1, output = 1 }}'
    prices = table_of(tmp_path / "p.toml", text)
    assert prices.of("small").input == prices.of("other/SMALL-20260102").input == 1


def test_a_key_with_a_date_is_for_that_release_alone(tmp_path):
    text = """
    date = 2026-01-02
    [models]
    "Acme/Small@2026-01-02" = { input = 5, output = 5 }
    small = { input = 1, output = 1 }
    """
    prices = table_of(tmp_path / "p.toml", text)
    assert prices.of("small-20260102").input == prices.of("small-2026-01-02").input == 5
    assert prices.of("small-20260103").input == prices.of("small-latest").input == 1


@pytest.mark.parametrize("value", ["-1", "inf", "nan", "-inf"])
@pytest.mark.parametrize("field", ["input", "output", "cache_read", "cache_write_1h"])
def test_a_price_is_a_number_of_dollars(tmp_path, field, value):
    prices = {"input": 1, "output": 1, field: value}
    fields = ", ".join(f"{name} = {each}" for name, each in prices.items())
    with pytest.raises(StrettoError, match=f'p.toml.*`{field}` of "tiny" is {value}'):
        table_of(tmp_path / "p.toml", f"date = 2026-01-02\n[models]\ntiny = {{ {fields} }}")


def test_no_price_and_no_prompt_are_prices(tmp_path):
    text = "date = 2026-01-02\n[models]\nown = { input = 0, output = 0 }"
    tokens = Tokens(input=9, output=9)
    prices = table_of(tmp_path / "p.toml", text)
    found = priced(prices, turn("0#0", tokens=tokens), agents=(Agent(id="0", model="own"),))
    assert (found.value, found.reason) == (0.0, "")
    with pytest.raises(StrettoError, match=r"`up_to` of \"own\" is -1"):
        table_of(tmp_path / "p.toml", text.replace(" }", ", up_to = -1 }"))


def test_two_keys_of_one_model_are_an_error(tmp_path):
    text = "date = 2026-01-02\n[models]\n" + "\n".join(
        f'"{key}" = {{ input = 1, output = 1 }}' for key in ("Small", "acme/small")
    )
    with pytest.raises(StrettoError, match='"Small" and "acme/small" are one model'):
        table_of(tmp_path / "p.toml", text)


@pytest.mark.parametrize("head", ["[models.gpt-4.1]\n", "[models]\ngpt-4.1."])
def test_a_name_with_a_dot_wants_quotes(tmp_path, head):
    text = f"date = 2026-01-02\n{head}input = 1\n"
    with pytest.raises(StrettoError, match=r'quote a name with a dot: \[models."gpt-4.1"\]'):
        table_of(tmp_path / "p.toml", text)


@pytest.mark.parametrize("key", ["", "openai/"])
def test_a_key_that_names_no_model_is_an_error(tmp_path, key):
    text = f'date = 2026-01-02\n[models."{key}"]\ninput = 1\noutput = 1\n'
    with pytest.raises(StrettoError, match=f'p.toml: "{key}" names no model'):
        table_of(tmp_path / "p.toml", text)


@pytest.mark.parametrize(
    ("price", "what"),
    [
        ('{ input = "1", output = 1 }', "Expected `float`, got `str`"),
        ("{ input = 1 }", "missing required field `output`"),
        ("{ input = 1, output = 1, ouput = 1 }", "unknown field `ouput`"),
        ("3", "Expected `object`, got `int`"),
    ],
)
def test_an_error_in_a_price_names_the_model(tmp_path, price, what):
    text = f"date = 2026-01-02\n[models]\ngood = {{ input = 1, output = 1 }}\nbad = {price}\n"
    with pytest.raises(StrettoError, match=f'p.toml: "bad": .*{what}.*see stretto/metrics/prices'):
        table_of(tmp_path / "p.toml", text)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("us-gov.anthropic.claude-3-haiku-20240307-v1:0:48k", "claude-3-haiku"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("anthropic:claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("openai:gpt-4o", "gpt-4o"),
        ("google-vertex:gemini-2.5-pro", "gemini-2.5-pro"),
        ("openai/gpt-4o:free", "gpt-4o"),
        (" GPT-4.1-2025-04-14 ", "gpt-4.1"),
    ],
)
def test_a_model_is_known_by_the_names_that_providers_give_it(name, known):
    prices = load_prices()
    assert prices.of(name) is prices.models[known]


@pytest.mark.parametrize("name", ["mistral:7b", "llama3:8b", "claude-v1", "gemini-2.0-flash"])
def test_a_tag_or_a_number_of_its_own_stays_in_a_name(name):
    assert model_name(name) == name
