"""R1: one outcome, shared by the whole team (survey §6, Table 10)."""

from stretto.rewards.stream import Stream, final
from stretto.trace import Trace


def outcome(trace: Trace, channel: str = "outcome") -> Stream | None:
    """The team's recorded value on `channel`, paid at the end; `None` if not scored."""
    value = trace.reward(channel)
    return None if value is None else final(trace, value)
