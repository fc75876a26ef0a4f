"""Spans with the GenAI semantic conventions of OpenTelemetry, in all their versions.

`gen_ai.system` became `gen_ai.provider.name`, and messages moved from numbered attributes and span
events to `gen_ai.{input,output}.messages`. Emitters that are older than the conventions, or have
names of their own (Traceloop, Vercel, early pydantic-ai), are read as well.
"""

from typing import Any

from stretto.importers.kit.fields import known, text_at
from stretto.importers.spans.messages import asked, decoded, json_text, said
from stretto.importers.spans.records import Record
from stretto.importers.spans.span import Kind, Span, count_tokens

OPERATION = "gen_ai.operation.name"
OPERATIONS: dict[str, Kind] = {
    "chat": "turn",
    "generate_content": "turn",
    "text_completion": "turn",
    "create_agent": "create",
    "invoke_agent": "agent",
    "execute_tool": "tool",
    "retrieval": "tool",
    "embeddings": "tool",
    "create_memory": "tool",
    "update_memory": "tool",
    "upsert_memory": "tool",
    "delete_memory": "tool",
    "search_memory": "tool",
}
TRACELOOP: dict[str, Kind] = {"agent": "agent", "tool": "tool"}
MESSAGE_EVENTS = (
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.tool.message",
    "gen_ai.choice",
    "gen_ai.content.prompt",
    "gen_ai.content.completion",
    "gen_ai.client.inference.operation.details",
)
_USAGE = "gen_ai.usage"
_NAMES = ("gen_ai.agent.name", "agent_name")
_ADK = "gcp.vertex.agent"
_PROMPTS = (
    "gen_ai.input.messages",
    "gen_ai.prompt",
    "traceloop.entity.input",
    "ai.prompt.messages",
    "ai.prompt",
    f"{_ADK}.llm_request",
)
_REPLIES = (
    "gen_ai.output.messages",
    "gen_ai.completion",
    "traceloop.entity.output",
    f"{_ADK}.llm_response",
)
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "traceloop.entity.input",
    "ai.toolCall.args",
    f"{_ADK}.tool_call_args",
    "input",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "tool_response",
    "traceloop.entity.output",
    "ai.toolCall.result",
    f"{_ADK}.tool_response",
    "output",
)
_TOOLS = ("gen_ai.tool.name", "ai.toolCall.name", "traceloop.entity.name")
_CALL_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id")
_PROMPT_COUNTS = (f"{_USAGE}.input_tokens", f"{_USAGE}.prompt_tokens")
_OUTPUT_COUNTS = (f"{_USAGE}.output_tokens", f"{_USAGE}.completion_tokens")
_READ_COUNTS = (f"{_USAGE}.cache_read.input_tokens", f"{_USAGE}.cache_read_input_tokens")
_WRITE_COUNTS = (
    f"{_USAGE}.cache_creation.input_tokens",
    f"{_USAGE}.cache_creation_input_tokens",
    f"{_USAGE}.cache_write_input_tokens",
)
_PRICES = ("gen_ai.usage.cost", "operation.cost")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "model_name")
_TURN_SIGNS = (
    *(*_PROMPT_COUNTS, *_OUTPUT_COUNTS, "gen_ai.response.id", "gen_ai.response.model"),
    *(f"{_ADK}.llm_request", f"{_ADK}.llm_response"),
)
_READ: dict[Kind, tuple[str, ...]] = {
    "turn": (*_PROMPTS, *_REPLIES, *_PROMPT_COUNTS, *_OUTPUT_COUNTS, *_READ_COUNTS, *_WRITE_COUNTS),
    "tool": (*_ARGUMENTS, *_RESULTS, *_CALL_IDS, "gen_ai.tool.name"),
}
_FINAL = ("final_result", "output")
_TARGETS = ("gen_ai.agent.handoff.target.name", "gen_ai.handoff.target.agent.name")


def read(record: Record) -> Span:
    """Give the attributes of one span their meaning."""
    kind = _kind(record)
    target = _target(record)
    read_names = _READ.get(kind, ())
    named = _TOOLS if kind == "tool" else ()
    return Span(
        id=record.id,
        trace=record.trace,
        source=record.source,
        kind="handoff" if kind == "tool" and target else kind,
        label=record.text(OPERATION) or record.name.split(" ")[0],
        name=record.text(*named) or record.name.removeprefix("execute_tool ") or record.name,
        parent=record.parent,
        links=record.links,
        start=record.start,
        end=record.end,
        agent=_agent(record, kind),
        agent_id=record.text("gen_ai.agent.id") if kind != "tool" else None,
        target=target,
        error=record.error or record.text("error.type"),
        attrs=record.without(OPERATION, *read_names, *_PRICES, *_NAMES[:1]),
        **_content(record, kind),
    )


def _target(record: Record) -> str | None:
    """The agent that a tool hands to; ADK has one such tool, and the agent is its argument."""
    stated = record.text(*_TARGETS)
    if stated is None and record.text("gen_ai.tool.name") == "transfer_to_agent":
        return text_at(decoded(record.value(*_ARGUMENTS)), "agent_name")
    return stated


def _kind(record: Record) -> Kind:
    operation = record.text(OPERATION)
    if operation in OPERATIONS:
        return OPERATIONS[operation]
    traceloop = record.text("traceloop.span.kind")
    if traceloop is not None:
        return TRACELOOP.get(traceloop, "step")
    if record.text(*_TOOLS) or record.name.startswith("execute_tool"):
        return "tool"
    if record.name.startswith("invoke_agent") or record.name == "agent run":
        return "agent"
    is_turn = record.value("gen_ai.request.model", "llm.request.type") is not None
    return "turn" if is_turn and record.value(*_TURN_SIGNS) is not None else "step"


def _agent(record: Record, kind: Kind) -> str | None:
    """A tool may name the agent that it calls instead of that which called it."""
    if kind == "tool":
        return None
    named = record.text(*_NAMES)
    if named is None and kind == "agent":
        named = record.text("traceloop.entity.name")
        prefix, _, rest = record.name.partition(" ")
        named = named or (rest if prefix == "invoke_agent" and rest else None)
    return named


def _content(record: Record, kind: Kind) -> dict[str, Any]:
    if kind == "tool":
        return {
            "input": json_text(record.value(*_ARGUMENTS)),
            "output": json_text(record.value(*_RESULTS)) or said(_moments(record, reply=True))[0],
            "call_id": record.text(*_CALL_IDS),
        }
    seen, produced = _seen(record), _produced(record)
    text, calls = said(produced)
    model = record.text(*_MODELS)
    tokens = count_tokens(
        record.count(*_PROMPT_COUNTS),
        record.count(*_OUTPUT_COUNTS),
        record.count(*_READ_COUNTS),
        record.count(*_WRITE_COUNTS),
    )
    if kind == "turn":
        price = record.number(*_PRICES)
        entered = json_text(seen)
        return known(model=model, tokens=tokens, price=price, input=entered, output=text) | {
            "calls": calls
        }
    result = json_text(record.value(*_FINAL)) if kind == "agent" else None
    own = {"tokens": tokens, "model": model} if kind in ("agent", "create") else {}
    return known(input=asked(seen), output=result or text, **own)


def _seen(record: Record) -> Any:
    """What was put in: an attribute, numbered attributes, or span events."""
    found = record.value(*_PROMPTS)
    if found is not None:
        return decoded(found)
    return record.below("gen_ai.prompt") or _moments(record, reply=False)


def _produced(record: Record) -> Any:
    found = record.value(*_REPLIES)
    if found is None:
        found = record.below("gen_ai.completion") or _moments(record, reply=True)
    if found:
        return decoded(found)
    text = record.value("ai.response.text")
    calls = decoded(record.value("ai.response.toolCalls"))
    return [{"content": text, "tool_calls": _vercel(calls)}] if text or calls else None


def _vercel(calls: Any) -> list[Any]:
    return [
        {"id": call.get("toolCallId"), "name": call.get("toolName"), "args": call.get("args")}
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]


def _moments(record: Record, reply: bool) -> list[Any]:
    """Messages that stand in span events, or in an attribute that lists such events."""
    listed = decoded(record.value("events"))
    events = [(moment.name, moment.attributes) for moment in record.moments]
    for event in listed if isinstance(listed, list) else ():
        if isinstance(event, dict):
            events.append((str(event.get("event.name")), event))
    found: list[Any] = []
    for name, said_there in events:
        key = "gen_ai.output.messages" if reply else "gen_ai.input.messages"
        if name == "gen_ai.client.inference.operation.details" and key in said_there:
            found.append(decoded(said_there[key]))
        elif name in MESSAGE_EVENTS and (name in _REPLY_EVENTS) == reply:
            found.append(_event_message(name, said_there))
    return found


_REPLY_EVENTS = ("gen_ai.choice", "gen_ai.content.completion")


def _event_message(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """One message: its parts are attributes, or JSON in one attribute."""
    packed = decoded(attributes.get("gen_ai.event.content") or attributes.get("event_body"))
    body = attributes | (packed if isinstance(packed, dict) else {})
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    content = body.get("message") or body.get("content")
    content = content or body.get("gen_ai.prompt") or body.get("gen_ai.completion")
    message = decoded(content)
    inner = message if isinstance(message, dict) else {"content": message}
    named = body.get("role") or (role if role in ("system", "user", "tool") else "assistant")
    return {"role": named, "tool_calls": decoded(body.get("tool_calls")), **inner}
