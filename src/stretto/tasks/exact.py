"""Which exact values a family knows: where the functions are that compute them."""

from collections.abc import Callable, Mapping
from typing import Any

from stretto.tasks import imported

SERIAL: Mapping[str, str] = {
    "hops": "stretto.tasks.hops.oracle:work",
    "repair": "stretto.tasks.repair.oracle:serial_seconds",
}
"""`(task)` to `T*_serial`: virtual seconds of the best plan of one agent."""
SERIAL_BOUND: Mapping[str, str] = {
    **SERIAL,
    "gather": "stretto.tasks.gather.reading:serial_reading",
}
"""The same, or a lower bound on it."""
PARALLEL: Mapping[str, str] = {
    "agree": "stretto.tasks.agree.oracle:least_seconds",
    "gather": "stretto.tasks.gather.reading:least_reading",
    "hops": "stretto.tasks.hops.oracle:makespan",
    "repair": "stretto.tasks.repair.oracle:least_seconds",
}
"""`(task, agents)` to `T*_P`: the best plan of so many agents, or a lower bound on it."""
MESSAGES: Mapping[str, str] = {
    "agree": "stretto.tasks.agree.oracle:message_values",
    "hops": "stretto.tasks.hops.oracle:report_values",
    "jury": "stretto.tasks.jury.oracle:claim_values",
    "repair": "stretto.tasks.repair.oracle:report_values",
}
"""`(task, trace)` to the value of every report, by the id of its event."""
SHAPLEY: Mapping[str, str] = {
    "gather": "stretto.tasks.gather.shapley:agent_values",
    "hops": "stretto.tasks.hops.oracle:reporter_values",
    "repair": "stretto.tasks.repair.oracle:worker_values",
}
"""`(task, trace)` to the Shapley value of every agent; `None` or `StrettoError` where unknown."""
MARGINAL: Mapping[str, str] = {
    **SHAPLEY,
    "fanout": "stretto.tasks.games.fanout:agent_leave_one_out",
    "proxies": "stretto.tasks.games.proxies:agent_leave_one_out",
}
"""The same, or in games what the outcome loses without each agent."""


def exact_function(table: Mapping[str, str], family: str) -> Callable[..., Any] | None:
    """What one of these tables names for a family, imported on demand; `None` for nothing."""
    return imported(table[family]) if family in table else None
