"""OTLP/JSON with the GenAI semantic conventions (v0.1, all of it "development"), as a target.

One line of the file is one export request and holds one trace, as the file exporter of the
OpenTelemetry collector writes it: ids are hex, times decimal strings of nanoseconds. Viewers read
the `gen_ai.*` attributes; what the conventions cannot say stands in `stretto.*`, so that importing
the file again gives the same trace (`stretto.exporters.otlp_restore`).

| span | parent | `gen_ai.operation.name` | what it carries |
|---|---|---|---|
| the run | none | `invoke_workflow` | `stretto.header.*`, `stretto.count.*` |
| one an agent | its parent's span, else the run | `invoke_agent` | `stretto.agent.*` |
| one an event | its agent's span | `chat`, `execute_tool` or none | `stretto.event.*` |

- `stretto.schema` on the resource: version of the record format. With it, all of this is there.
- `stretto.header.F`, `stretto.agent.F`, `stretto.event.F`: field `F` of `Header`, `Agent`, `Event`
  where it is not the default. Numbers, strings and booleans are values of that type; the fields
  in `JSON_FIELDS` are strings of JSON, in the form that Stretto's own records have.
- `stretto.count.agents`, `.events`, `.edges`, `.scores`: how many there must be.
- `stretto.row` on the spans of agents and events: their place in the trace, from 0.
- An edge is a link of the span of its effect to the span of its cause, with `stretto.edge.label`,
  `stretto.edge.evidence` and `stretto.edge.row`.
- A score is a span event `gen_ai.evaluation.result` on the span of its event, else of its agent,
  else of the run: `gen_ai.evaluation.name` is the channel, `gen_ai.evaluation.score.value` the
  value, `stretto.score.kind`, `.agent`, `.event` and `.row` the rest.
- The text of an event stands in the attribute that `TEXT_ATTRIBUTES` names for its kind, else in
  `stretto.text`; what a turn saw in `gen_ai.input.messages`. Messages are JSON with one part. Texts
  that no event refers to are in `stretto.contents` on the run, a JSON object by hash.

Times of the spans are for viewers: an unknown start is that of the event before. Exact ones are in
`stretto.event.start` and `stretto.event.duration`.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from stretto.exporters.output import Output
from stretto.exporters.remainder import event_texts, loose_texts
from stretto.exporters.timing import Span, epoch, nanoseconds, spans
from stretto.trace import SCHEMA, Agent, Edge, Event, Header, Score, Tokens, Trace

SUFFIX = ".otlp.jsonl"
ONE_FILE = True

SCHEMA_ATTRIBUTE = "stretto.schema"
JSON_FIELDS = ("decision", "tokens", "label", "attrs", "spec", "lineage")
OBSERVATION = "gen_ai.input.messages"
TEXT_ATTRIBUTES = {
    "decision": "gen_ai.output.messages",
    "tool_call": "gen_ai.tool.call.arguments",
    "tool_result": "gen_ai.tool.call.result",
}
"""Kind of event to the attribute that holds its text."""
OTHER_TEXT = "stretto.text"
OPERATIONS = {"decision": "chat", "tool_call": "execute_tool"}
COUNTED = ("agents", "events", "edges", "scores")
EVALUATION = "gen_ai.evaluation.result"

Json = dict[str, Any]


def export(traces: Sequence[Trace]) -> Output:
    """The traces, one export request a line.

    Raises `StrettoError` for times that OTLP cannot hold.
    """
    seen: dict[str, int] = {}
    lines: list[bytes] = []
    for trace in traces:
        copy = seen[trace.id] = seen.get(trace.id, -1) + 1
        lines.append(msgspec.json.encode(_Writer(trace, copy).request()))
    return Output({"": b"".join(line + b"\n" for line in lines)})


class _Writer:
    """Writes one trace; holds what its spans refer to."""

    def __init__(self, trace: Trace, copy: int) -> None:
        self.trace = trace
        self.trace_id = _digest(16, trace.id, str(copy))
        self.epoch = epoch(trace)
        self.spans = spans(trace)
        self.agents = {agent.id: agent for agent in trace.agents}
        self.links = self._links()
        self.scores = self._scores()

    def request(self) -> Json:
        """The export request."""
        resource = {"service.name": self.trace.system or "stretto", SCHEMA_ATTRIBUTE: SCHEMA}
        made = [self._run()]
        made += [self._agent(row, agent) for row, agent in enumerate(self.trace.agents)]
        encoded = [msgspec.Raw(msgspec.json.encode(span)) for span in made]
        encoded += [  # one by one: a million spans as dictionaries would not fit
            msgspec.Raw(msgspec.json.encode(self._event(row, event)))
            for row, event in enumerate(self.trace.events)
        ]
        scope = {"scope": {"name": "stretto"}, "spans": encoded}
        written = {"resource": {"attributes": attributes(resource)}, "scopeSpans": [scope]}
        return {"resourceSpans": [written]}

    def _run(self) -> Json:
        said = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": self.trace.task}
        said |= _fields("header", self.trace, Header)
        said |= {f"stretto.count.{part}": len(getattr(self.trace, part)) for part in COUNTED}
        if loose := loose_texts(self.trace):
            said["stretto.contents"] = _text_of(loose)
        return self._span("run", "", None, f"invoke_workflow {self.trace.task}", said, None)

    def _agent(self, row: int, agent: Agent) -> Json:
        said: Json = {"gen_ai.operation.name": "invoke_agent", **self._who(agent)}
        said |= _fields("agent", agent, Agent) | {"stretto.row": row}
        above = self._id("agent", agent.parent) if agent.parent else self._id("run", "")
        times = self.spans.of_agent.get(agent.id)
        name = f"invoke_agent {agent.name or agent.role or agent.id}"
        return self._span("agent", agent.id, above, name, said, times)

    def _event(self, row: int, event: Event) -> Json:
        agent = self.agents[event.agent]
        operation = OPERATIONS.get(event.kind)
        said: Json = {"gen_ai.operation.name": operation} if operation else {}
        model = event.model or agent.model
        said |= self._who(agent) | _usage(event.tokens) | self._texts(event)
        if event.model is not None:
            said["gen_ai.request.model"] = model
        if event.tool is not None:
            said["gen_ai.tool.name"] = event.tool
        said |= _fields("event", event, Event) | {"stretto.row": row}
        of = event.tool if event.kind != "decision" else model
        name = " ".join(filter(None, [operation or event.kind, of]))
        above = self._id("agent", event.agent)
        return self._span("event", event.id, above, name, said, self.spans.of_event[row])

    def _span(
        self, part: str, name: str, above: str | None, title: str, said: Json, times: Span | None
    ) -> Json:
        begin, end = times or self.spans.whole
        parent = {} if above is None else {"parentSpanId": above}
        return {
            "traceId": self.trace_id,
            "spanId": self._id(part, name),
            **parent,
            "name": title,
            "kind": 3 if said.get("gen_ai.operation.name") == "chat" else 1,
            "startTimeUnixNano": str(self.epoch + nanoseconds(begin, self.trace.id)),
            "endTimeUnixNano": str(self.epoch + nanoseconds(end, self.trace.id)),
            "attributes": attributes(said),
            "events": [self._score(row, score) for row, score in self.scores.get((part, name), ())],
            "links": [self._link(row, edge) for row, edge in self.links.get(name, ())]
            if part == "event"
            else [],
        }

    def _id(self, part: str, name: str) -> str:
        return _digest(8, self.trace_id, part, name)

    def _who(self, agent: Agent) -> Json:
        said: Json = {"gen_ai.conversation.id": self.trace.id, "gen_ai.agent.id": agent.id}
        optional = {"gen_ai.agent.name": agent.name, "gen_ai.request.model": agent.model}
        return said | {name: value for name, value in optional.items() if value is not None}

    def _texts(self, event: Event) -> Json:
        said: Json = {}
        texts = event_texts(self.trace, event)
        if (text := texts.get("text")) is not None:
            name = TEXT_ATTRIBUTES.get(event.kind, OTHER_TEXT)
            said[name] = _message("assistant", text) if event.kind == "decision" else text
        if (seen := texts.get("observed")) is not None:
            said[OBSERVATION] = _message("user", seen)
        return said

    def _links(self) -> dict[str, list[tuple[int, Edge]]]:
        links: dict[str, list[tuple[int, Edge]]] = {}
        for row, edge in enumerate(self.trace.edges):
            links.setdefault(edge.dst, []).append((row, edge))
        return links

    def _link(self, row: int, edge: Edge) -> Json:
        said = {"label": edge.label, "evidence": edge.evidence, "row": row}
        return {
            "traceId": self.trace_id,
            "spanId": self._id("event", edge.src),
            "attributes": attributes({f"stretto.edge.{name}": v for name, v in said.items()}),
        }

    def _scores(self) -> dict[tuple[str, str], list[tuple[int, Score]]]:
        scores: dict[tuple[str, str], list[tuple[int, Score]]] = {}
        for row, score in enumerate(self.trace.scores):
            of = ("event", score.event) if score.event is not None else ("agent", score.agent)
            place = ("run", "") if of[1] is None else (of[0], of[1])
            scores.setdefault(place, []).append((row, score))
        return scores

    def _score(self, row: int, score: Score) -> Json:
        said: Json = {
            "gen_ai.evaluation.name": score.channel,
            "gen_ai.evaluation.score.value": float(score.value),
        }
        own = {"kind": score.kind, "agent": score.agent, "event": score.event, "row": row}
        said |= {f"stretto.score.{name}": value for name, value in own.items() if value is not None}
        end = self.spans.whole[1]
        return {
            "timeUnixNano": str(self.epoch + nanoseconds(end, self.trace.id)),
            "name": EVALUATION,
            "attributes": attributes(said),
        }


def attributes(said: Json) -> list[Json]:
    """Attributes as OTLP has them: a list of keys with typed values."""
    return [{"key": name, "value": _any_value(value)} for name, value in said.items()]


def _any_value(value: str | bool | int | float) -> Json:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def _fields(part: str, record: Struct, kind: type[Struct]) -> Json:
    """The fields of a record that are not the default, as attributes."""
    said: Json = {}
    for field, default in _defaults(kind):
        value = getattr(record, field)
        if value != default and value not in (None, {}, ()):
            said[f"stretto.{part}.{field}"] = _text_of(value) if field in JSON_FIELDS else value
    return said


@cache
def _defaults(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in fields(kind))


def _usage(tokens: Tokens | None) -> Json:
    """Tokens as the conventions count them, prompt tokens with the cached ones; none distrusted."""
    if tokens is None:
        return {}
    prompt = (tokens.input, tokens.cache_read, tokens.cache_write)
    doubtful = set(tokens.unreliable)
    said: dict[str, int | None] = {
        "input_tokens": None if tokens.input is None else sum(count or 0 for count in prompt),
        "output_tokens": tokens.output,
        "cache_read.input_tokens": tokens.cache_read,
        "cache_creation.input_tokens": tokens.cache_write,
    }
    sources = {"output_tokens": {"output"}, "cache_read.input_tokens": {"cache_read"}}
    sources["cache_creation.input_tokens"] = {"cache_write"}
    everything = {"input", "cache_read", "cache_write"}
    return {
        f"gen_ai.usage.{name}": count
        for name, count in said.items()
        if count is not None and not doubtful & sources.get(name, everything)
    }


def _message(role: str, text: str) -> str:
    message: Json = {"role": role, "parts": [{"type": "text", "content": text}]}
    if role == "assistant":
        message["finish_reason"] = "unknown"
    return _text_of([message])


def _text_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _digest(size: int, *names: str) -> str:
    joined = "\0".join(names).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=size).hexdigest()
