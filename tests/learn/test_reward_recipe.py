"""A mistake in what a recipe pays is told when it is read: file, key, limit or nearest name."""

from math import nan

import pytest

from stretto.errors import StrettoError
from stretto.learn.channels import KNOWN
from stretto.learn.recipe import resolve
from stretto.rewards.channels import parameters_of, read_term

EXAM, PROXIES = {"family": "exam"}, {"family": "proxies"}


def refused(task, reward):
    with pytest.raises(StrettoError) as error:
        resolve({"task": task, "reward": reward}, "r.toml")
    assert error.value.where.startswith("r.toml: reward.")
    return error.value.where.removeprefix("r.toml: reward."), f"{error.value.what} {error.value}"


@pytest.mark.parametrize(
    ("channel", "key", "value", "told"),
    [
        ("token_budget", "budget", 0, "> 0"),
        ("overlong", "soft", 5000, "soft = 5000 must be less than hard = 5000"),
        ("overlong", "soft", -1, ">= 0"),
        ("speedup", "most", 0, "> 0"),
        ("speedup", "most", -1, "> 0"),
        ("step_costs", "max_steps", -1, ">= 1"),
        ("step_costs", "max_steps", 0, ">= 1"),
        ("parallel", "most", 0, ">= 1"),
        ("tool_calls", "most", -3, ">= 1"),
        ("tool_use", "most", 0, ">= 1"),
        ("tool_use", "most", 10**400, "<= 1"),
        ("token_budget", "budget", 10**400, "out of range"),
        ("discounted", "gamma", -1, ">= 0"),
        ("shaping", "gamma", 5, "<= 1"),
        ("folding", "limit", 0, ">= 1"),
        ("stopping", "turn", -0.1, ">= 0"),
        ("cost", "spawn", -1, ">= 0"),
        ("used_tool", "tools", [], ">= 1"),
        ("tool_use", "schedule", [[0, nan], [1, 1.0]], "finite"),
        ("tool_use", "schedule", [[0.0, 1.0], [float("inf"), 1.0]], "finite"),
        ("verifiers", "channels", [], "no verifier is named"),
        ("verifiers", "channels", ["judge", "rule:answred"], 'did you mean "answered"?'),
        ("verifiers", "combine", "mni", 'did you mean "min"?'),
        ("shaping", "potential", "rule:don", 'did you mean "done"?'),
        ("role", "role", "slover", 'did you mean "solver"?'),
    ],
)
def test_a_value_that_would_die_or_lie_in_training_is_told_by_its_key(channel, key, value, told):
    where, text = refused(EXAM, {"channels": {channel: {key: value} | needed(channel, key)}})
    assert where == f"channels.{channel}.{key}"
    assert told in text


def needed(channel, key):
    rest = {"step_costs": {"max_steps": 6}, "role": {"role": "solver"}, "folding": {"limit": 9}}
    return {name: value for name, value in rest.get(channel, {}).items() if name != key}


def test_steps_before_the_first_are_told():
    where, text = refused(EXAM, {"channels": {"tool_use": {"schedule": [[-1, 0.0], [1, 1.0]]}}})
    assert where == "channels.tool_use.schedule[0][0]"
    assert ">= 0" in text


@pytest.mark.parametrize("of", [3, ["finish"], {"a": 1}, True])
def test_of_is_a_word(of):
    where, text = refused(EXAM, {"channels": {"mine": {"of": of}}})
    assert where == "channels.mine.of"
    assert "expected `str`" in text


def test_a_term_is_not_called_as_another_channel_is():
    where, text = refused(EXAM, {"channels": {"parallel": {"of": "finish"}}})
    assert where == "channels.parallel"
    assert '"parallel" is another channel' in text
    assert read_term("finish", {"of": "finish"}).channel == "finish"


@pytest.mark.parametrize("channel", ["folding", "role", "step_costs"])
def test_what_a_channel_cannot_do_without_is_named(channel):
    (key,) = needed(channel, "")
    where, text = refused(EXAM, {"channels": {channel: 1.0}})
    assert where == f"channels.{channel}"
    assert f'the key "{key}" is needed' in text


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("preset", "PARL", 'did you mean "parl"?'),
        ("balance", "grad", 'did you mean "gradient"?'),
        ("balance", "Variance", 'did you mean "variance"?'),
    ],
)
def test_a_word_that_is_not_known_gets_a_suggestion(key, value, told):
    where, text = refused(EXAM, {key: value})
    assert where == key
    assert told in text


@pytest.mark.parametrize(
    ("preset", "task", "channel"),
    [
        ("sharp", PROXIES, {"outcome": 50.0}),
        ("sharp", PROXIES, {"individual": {"channel": "marginal"}}),
        ("mae", EXAM, {"role": {"role": "judge"}}),
    ],
)
def test_what_a_preset_pays_apart_cannot_be_replaced(preset, task, channel):
    where, text = refused(task, {"preset": preset, "channels": channel})
    assert where == f"channels.{next(iter(channel))}"
    assert f'"{preset}" pays agents apart' in text
    (name, value), *_ = channel.items()
    table = value if isinstance(value, dict) else {"weight": value}
    more = {"preset": preset, "channels": {"more": {"of": name, **table}}}
    assert "more" in resolve({"task": task, "reward": more}, "r.toml").reward.channels


@pytest.mark.parametrize("channel", KNOWN)
def test_every_channel_can_be_read_with_what_it_has_by_itself(channel):
    term = read_term(channel, needed(channel, "") or 1.0, KNOWN)
    assert set(term.parameters) <= set(parameters_of(KNOWN[channel]))
