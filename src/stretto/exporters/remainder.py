"""What of a trace an export says, and what it leaves out."""

from collections.abc import Container

from stretto.trace import Event, Header, Trace


def event_texts(trace: Trace, event: Event) -> dict[str, str]:
    """The texts of an event that are there: its own as `text`, what a turn saw as `observed`."""
    seen = event.decision.observation if event.decision is not None else None
    texts = {"text": trace.text(event.content), "observed": trace.text(seen)}
    return {name: text for name, text in texts.items() if text is not None}


def thought_of(trace: Trace, event: Event) -> str | None:
    """What a turn thought before it spoke: imports name the text, or keep it as it came."""
    named, kept = event.attrs.get("thinking"), event.attrs.get("reasoning")
    text = trace.text(named) if isinstance(named, str) else None
    return text or (kept if isinstance(kept, str) else None)


def loose_texts(trace: Trace) -> dict[str, str]:
    """The texts that no event refers to, by hash."""
    used = {event.content for event in trace.events}
    used |= {event.decision.observation for event in trace.events if event.decision is not None}
    return {name: text for name, text in trace.contents.items() if name not in used}


def count_left_out(trace: Trace, held: Container[str]) -> dict[str, int]:
    """Count what a format does not hold whose files carry events and agents' names only.

    `held` names the fields of the header that it does hold.
    """
    header = (name for name in Header.__struct_fields__ if name not in held)
    return {
        "scores": len(trace.scores),
        "texts that no event names": len(loose_texts(trace)),
        "agents with roles, names, parents, models or attributes": sum(
            any((agent.role, agent.name, agent.parent, agent.model, agent.attrs))
            for agent in trace.agents
        ),
        "fields of the trace": sum(getattr(trace, name) not in (None, {}, ()) for name in header),
    }
