"""Measures of real transcripts, beside what a plain loop over their events gives."""

from collections import defaultdict

import pytest

from stretto.loading import load_all
from stretto.metrics import breakdown, critical_path, load_prices, measure

from ..importers.transcripts import DATA

NAMES = (
    *("claude_code/irrlicht_subagent-spawn", "claude_code/oh-my-posh"),
    *("claude_code/entireio_cli", "claude_code_teams/cybervpn_phase6/lead.jsonl"),
)
TEAM = NAMES[0]


@pytest.fixture(scope="module", params=NAMES)
def real(request):
    return imported(request.param)


def imported(name):
    if not (DATA / name).exists():
        pytest.skip(f"no {DATA / name}")
    return load_all(DATA / name)[0]


def test_bounds_hold(real):
    found = {name: each.value for name, each in measure(real).items()}
    assert found["span"] <= found["makespan"] + 1e-6
    assert found["parallelism"] <= found["average_width"] <= found["peak_width"]
    assert found["peak_agents"] <= min(found["peak_width"], found["agents"])
    assert sum(critical_path(real).by_kind.values()) == pytest.approx(1)
    for name, value in found.items():
        if name.endswith(("_share", "redundancy")) and value is not None:
            assert 0 <= value <= 1, name


def test_tables_add_up(real):
    found = measure(real)
    for by in ("agent", "role", "kind", "tool", "model", "decision"):
        for name in ("work", "price", "input_tokens", "output_tokens"):
            parts = [getattr(row, name) for row in breakdown(real, by)]
            total = sum(part for part in parts if part is not None)
            assert total == pytest.approx(found[name].value or 0.0), (by, name)


def test_prices_and_redundancy_are_those_of_a_loop(real):
    prices, models = load_prices(), {agent.id: agent.model for agent in real.agents}
    dollars, asked = 0.0, defaultdict(int)
    for event in real.events:
        if event.kind == "tool_call" and not event.attrs.get("waiting"):
            asked[event.tool, event.content] += 1
        tokens, price = event.tokens, prices.of(event.attrs.get("model") or models[event.agent])
        known = tokens and price and not tokens.unreliable and event.kind == "decision"
        if event.price is not None:
            dollars += event.price
        elif known and None not in (tokens.input, tokens.output):
            dollars += (
                tokens.input * price.input
                + tokens.output * price.output
                + (tokens.cache_read or 0) * price.cache_read
                + (tokens.cache_write or 0) * price.cache_write
                + event.attrs.get("cache_write_1h", 0) * (price.cache_write_1h - price.cache_write)
            ) / 1e6
    found = measure(real)
    assert (found["price"].value or 0.0) == pytest.approx(dollars)
    if asked:
        expected = 1 - len(asked) / sum(asked.values())
        assert found["tool_redundancy"].value == pytest.approx(expected)


def test_a_lead_works_or_waits_for_its_three_sub_agents():
    """Its two turns take 6.387 and 2.496 s; the session takes 22.350 s, and it never idles."""
    (lead, *_) = breakdown(imported(TEAM))
    assert lead.work == pytest.approx(6.387 + 2.496)
    assert lead.blocked == pytest.approx(22.350 - 6.387 - 2.496)
    assert lead.idle == pytest.approx(0, abs=1e-6)


def test_critical_steps_of_a_lead_and_the_longest_of_its_sub_agents():
    """The lead takes two turns around the sub-agents, which take 5, 2 and 4."""
    trace = imported(TEAM)
    turns = [event.agent for event in trace.events if event.kind == "decision"]
    assert [turns.count(name) for name in ("0", "0/0", "0/1", "0/2")] == [2, 5, 2, 4]
    assert measure(trace)["critical_steps"].value == 7
