"""The trace that Stretto wrote into an episode of verifiers, put together again.

It stands in `info.stretto` of the first trace of the episode, or in `task.data.stretto` of an
episode without traces; verifiers keeps both and reads neither.

| field | holds |
|---|---|
| `header`, `agents`, `events`, `edges`, `scores` | what a trace does |
| `said` | hashes of those of its texts that the messages hold |
| `texts` | its other texts, by hash |
| `around` | the hash of the episode without all this |
| `digest` | the hash of the fields above |

The hashes tell whether somebody changed it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from stretto.trace import Agent, Edge, Event, Header, Score, Trace, content_hash
from stretto.validate import problems

Json = dict[str, Any]


class _Remainder(Struct, forbid_unknown_fields=True):
    header: Header
    agents: tuple[Agent, ...]
    events: tuple[Event, ...]
    edges: tuple[Edge, ...]
    scores: tuple[Score, ...]
    said: tuple[str, ...]
    texts: dict[str, str]
    around: str
    digest: str


class _Call(Struct):
    arguments: str = ""


class _Message(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Node(Struct):
    message: _Message


class _Conversation(Struct):
    nodes: list[_Node]


def remainder(trace: Trace, episode: Json) -> Json:
    """The trace, but for the texts that the messages of its episode hold."""
    held = _texts(episode["traces"])
    parts = {name: getattr(trace, name) for name in ("agents", "events", "edges", "scores")}
    made = {
        "header": Header(**{name: getattr(trace, name) for name in Header.__struct_fields__}),
        **parts,
        "said": [name for name, text in trace.contents.items() if held.get(name) == text],
        "texts": {name: text for name, text in trace.contents.items() if held.get(name) != text},
        "around": _around(episode),
    }
    return msgspec.to_builtins(made | {"digest": _digest(made)})


def has_stretto_info(episode: Json) -> bool:
    """Whether an episode holds a trace that Stretto wrote, whole or not."""
    return any(True for _ in _infos(episode))


def is_unchanged(episode: Json) -> bool:
    """Whether an episode is, value for value, what Stretto wrote.

    The trace in it must be whole.
    """
    try:
        return next(_infos(episode))["around"] == _around(episode)
    except (OverflowError, RecursionError, UnicodeEncodeError):  # Stretto cannot write that
        return False


def from_stretto_info(episode: Json) -> Trace | None:
    """The trace in an episode; `None` where it is not whole.

    Of what stands around it, only the texts are looked at: see `is_unchanged`.
    """
    try:
        trace = _restored(next(_infos(episode), None), _texts(episode["traces"]))
    except (KeyError, OverflowError, RecursionError, UnicodeEncodeError, msgspec.ValidationError):
        return None
    return None if trace is None or any(problems(trace)) else trace


def _infos(episode: Json) -> Iterator[Any]:
    """What Stretto wrote into an episode."""
    holders = [_record(each, "info") for each in _traces(episode)]
    for holder in holders or [_record(_record(episode, "task"), "data")]:
        if "stretto" in holder:
            yield holder["stretto"]


def _around(episode: Json) -> str:
    traces, task = _traces(episode), _record(episode, "task")
    if traces:
        inner = [_without(each, "info") for each in traces]
        return _digest({**episode, "traces": inner})
    data = _without(_record(task, "data"), "stretto")
    return _digest({**episode, "task": {**task, "data": data}})


def _traces(episode: Json) -> list[Json]:
    found = episode.get("traces")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _record(holder: Json, name: str) -> Json:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}


def _without(record: Json, name: str) -> Json:
    return {key: value for key, value in record.items() if key != name}


def _digest(value: Any) -> str:
    return content_hash(msgspec.json.encode(value, order="sorted").decode())


def _restored(kept: Any, held: dict[str, str]) -> Trace | None:
    """Raises `KeyError` for a text that no message holds."""
    found = msgspec.convert(kept, _Remainder)
    if found.digest != _digest(_without(kept, "digest")):
        return None
    return Trace(
        **{name: getattr(found.header, name) for name in Header.__struct_fields__},
        agents=found.agents,
        events=found.events,
        edges=found.edges,
        scores=found.scores,
        contents=found.texts | {name: held[name] for name in found.said},
    )


def _texts(conversations: Any) -> dict[str, str]:
    """Everything that messages say, by hash.

    Raises `msgspec.ValidationError` for a message that Stretto does not write.
    """
    found = msgspec.convert(conversations, list[_Conversation])
    messages = [node.message for each in found for node in each.nodes]
    said = [text for each in messages for text in (each.content, each.reasoning_content)]
    said += [call.arguments for each in messages for call in each.tool_calls or ()]
    return {content_hash(text): text for text in said if text is not None}
