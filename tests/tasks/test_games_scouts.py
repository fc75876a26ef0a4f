"""Two independent computations of the truth about scouts must agree."""

import numpy as np
import pytest
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.policies.softmax import Softmax
from stretto.rewards.mix import Mix, mixed
from stretto.tasks.games.tree import optimum
from stretto.tasks.games.truth import rules_of, truth_of
from stretto.tasks.oracle import oracle_of, policy_probabilities
from stretto.tasks.scouts import Scouts
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout

SMALL = Scouts(reliability=0.7, scout_cost=0.02, round_cost=0.03, width=3, horizon=7)
POLICY = Softmax(spread=0.5, seed=1)


ROUTES = [replace(SMALL, topology=name) for name in NAMES]
SHORT_MENU = Scouts(width=6, horizon=13, sizes="doubling", most_lead=4)


@pytest.mark.parametrize("game", [*ROUTES, SHORT_MENU, Scouts(horizon=20, width=4)])
def test_value_and_optimum_are_those_of_the_oracle(game):
    oracle = oracle_of(game)
    value = oracle.value(policy_probabilities(game, oracle, POLICY))
    assert truth_of(game, {"lead": POLICY}, "net").value == pytest.approx(value, abs=1e-12)
    assert optimum(rules_of(game), "net") == pytest.approx(oracle.optimum, abs=1e-12)


@pytest.mark.parametrize("game", ROUTES)
def test_values_to_come_leave_out_what_is_paid_already(game):
    """Before the last answer V is the probability of being right: 0.7 after a lead of one."""
    exact = truth_of(game, {"lead": POLICY}, "net")
    for trace in rollout(game, {"lead": POLICY}, range(20)):
        q = exact.action_values(trace)[-1]
        reports = [event.attrs["colour"] for event in trace.events if event.tool == "look"
                   and event.kind == "tool_result"]  # fmt: skip
        lead = abs(reports.count("red") - reports.count("blue"))
        assert q[0] == pytest.approx(1 / (1 + (3 / 7) ** lead))


def test_net_is_the_cost_adjusted_return():
    traces = rollout(SMALL, {"lead": POLICY}, range(3000))
    earned = np.array([mixed(Mix(), SMALL.prices, step=0)(trace).total for trace in traces])
    exact = truth_of(SMALL, {"lead": POLICY}, "net").value
    assert abs(earned.mean() - exact) < 4 * earned.std() / np.sqrt(len(earned))


def test_beliefs_are_those_of_honest_scouts():
    with pytest.raises(StrettoError, match='under the fault "lie"'):
        truth_of(replace(SMALL, fault="lie"), {"lead": POLICY}, "net")
