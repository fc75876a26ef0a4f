"""Exact Shapley values of the agents of each trace.

`φ_k = Σ_S |S|! (n - |S| - 1)! / n! · [v(S + k) - v(S)]` over the coalitions `S` without `k`
(Shapley 1953). What `v` is, and in which sense an agent is absent, is in
`stretto.credit.coalitional.coalitions`: the intervention must be named.

Under the masks the root is always there and gets `v({})`, what it earns alone; so the agents sum to
the return. Under `resample` the root is a player, and they sum to the return minus `v({})`, what
is expected when everything is drawn again. Positive is better than being absent; an agent without
any effect gets exactly 0.

Cost: `2^n` coalitions for `n` players, so at most 12; none in policy tokens under `mask_frozen`.
Larger teams: `sampled_shapley`. Where the task knows its own value in closed form (`gather` under
`mask_frozen`, with the recorded outcome as the reward), teams of any size are exact, at once.
"""

from collections.abc import Callable, Mapping

from stretto.credit.coalitional.agent_table import credit_agents
from stretto.credit.coalitional.coalitions import Coalitions, Intervention
from stretto.credit.coalitional.orders import Estimate, over_draws
from stretto.credit.coalitional.unions import exact, flat
from stretto.credit.setup import Setup
from stretto.credit.table import Credit, Group, outcome_reward
from stretto.rewards.outcome import outcome
from stretto.tasks import imported
from stretto.trace import Trace

MOST_PLAYERS = 12
"""Most players whose coalitions are enumerated."""

CLOSED = {"gather": "stretto.tasks.gather.shapley:gather_shapley"}
"""Task family to the function that says what its agents are worth under `mask_frozen`."""


def shapley(
    group: Group,
    unit: str = "agent",
    *,
    setup: Setup,
    intervention: Intervention,
    seed: int | None = None,
    draws: int = 1,
) -> Credit:
    """Mean contribution of every agent over all orders in which the team could have formed."""
    plain = group.reward in (outcome, outcome_reward) and intervention == "mask_frozen"

    def solve(game: Coalitions) -> Mapping[str, Estimate]:
        closed = _closed_form(game.trace) if plain and len(game.players) > MOST_PLAYERS else None
        if closed is not None:
            return {name: Estimate(value, 0.0) for name, value in closed(game.trace).items()}
        return over_draws(exact(flat(game.players), game.samples), game.exact)

    return credit_agents(
        group,
        "shapley",
        unit,
        solve,
        setup=setup,
        intervention=intervention,
        seed=seed,
        draws=draws,
    )


def _closed_form(trace: Trace) -> Callable[[Trace], Mapping[str, float]] | None:
    """Made for a trace by the one function that its task names, or `None`."""
    home = CLOSED.get(trace.spec.get("family", ""))
    if home is None:
        return None
    return imported(home)
