"""Values that a trace carries on a named channel; what is not there was not scored."""

import numpy as np

from stretto.trace import Event, Trace


def of_agents(trace: Trace, channel: str) -> dict[str, float]:
    """Agent to its value on a channel."""
    return {
        score.agent: score.value
        for score in trace.scores
        if score.channel == channel and score.agent is not None and score.event is None
    }


def of_events(trace: Trace, channel: str) -> dict[str, float]:
    """Event to its value on a channel."""
    return {
        score.event: score.value
        for score in trace.scores
        if score.channel == channel and score.event is not None
    }


def of_team(trace: Trace, channel: str) -> float | None:
    """The team's value on a channel, of whatever kind; `None` if not scored."""
    for score in trace.scores:
        if score.channel == channel and score.agent is None and score.event is None:
            return score.value
    return None


def anywhere(trace: Trace, channel: str) -> float | None:
    """The team's value, else the mean over the agents or events that were scored."""
    value = of_team(trace, channel)
    values = [score.value for score in trace.scores if score.channel == channel]
    return value if value is not None or not values else float(np.mean(values))


def failed(event: Event) -> bool:
    """Whether the record says that this tool result is an error."""
    said = event.attrs.get("is_error") or event.attrs.get("error")
    return event.kind == "tool_result" and bool(said)
