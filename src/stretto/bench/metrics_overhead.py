"""E4: what the protocol cost (benchmark-and-safety §4)."""

from collections.abc import Mapping

from stretto.bench.metrics_team import LETTERS
from stretto.bench.tokens import turn_tokens
from stretto.metrics.cost import coordination_share
from stretto.trace import Trace

Values = dict[str, float | None]


def overhead(trace: Trace) -> Values:
    """Tokens, turns, events, and the share that was coordination; `trace` must be `counted`.

    - `coordination = ξ`: share of tokens of turns that decide about the team, or that spawn,
      delegate, write or merge
    - `messages_per_turn = c`: messages, delegations and returns a turn
    """
    columns = trace.columns
    turns = int(columns.is_kind("decision").sum())
    letters = int(columns.is_kind(*LETTERS).sum())
    tokens = sum(turn_tokens(trace).values())
    outcome = trace.reward("outcome")
    return {
        "tokens": float(tokens),
        "turns": float(turns),
        "events": float(len(trace.events)),
        "agents": float(len(trace.agents)),
        "coordination": coordination_share(columns, "").value,
        "messages_per_turn": letters / turns if turns else None,
        "score_per_1000": None if outcome is None or not tokens else 1000 * outcome / tokens,
    }


def token_overhead(team: float, solo: float) -> float | None:
    """`O = (T_team - T_solo) / T_solo`, of tokens or of turns; `None` over nothing."""
    return None if not solo else (team - solo) / solo


def efficiency(score: float, team: float, solo: float) -> float | None:
    """`E_c = S / (T_team / T_solo)`: what a team scores per turn that one agent would need."""
    return score * solo / team if team else None


def error_ratio(team: float, solo: float) -> float | None:
    """`A_out = (1 - S_team) / (1 - S_solo)`; `None` where one agent makes no error."""
    return None if solo >= 1 else (1 - team) / (1 - solo)


def containment(clean: Mapping[int, bool], faulty: Mapping[int, bool]) -> float | None:
    """`1 - P(final wrong | planted, else right)`, over the instances solved without the fault.

    Args:
        clean: Instance to whether it was solved without the fault.
        faulty: The same with it.
    """
    right = [seed for seed, solved in clean.items() if solved and seed in faulty]
    return sum(faulty[seed] for seed in right) / len(right) if right else None
