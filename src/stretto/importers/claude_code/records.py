"""Claude Code transcripts, stage one: every line as a typed record, nothing interpreted.

A transcript is a file of JSON lines. Formats of many versions are one format here: every field is
optional, `content` is text or blocks, and a field of the wrong type is left out with a notice
instead of costing the record.
"""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Raw, Struct, field

from stretto.importers.kit.loom import Source
from stretto.importers.kit.report import Notice

Amount = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What a column can hold."""


class CacheCreation(Struct, frozen=True, gc=False):
    """Tokens written to a cache, by how long they are kept."""

    ephemeral_1h_input_tokens: Amount | None = None


class Usage(Struct, frozen=True, gc=False):
    """Tokens as the API counts them."""

    input_tokens: Amount | None = None
    output_tokens: Amount | None = None
    cache_read_input_tokens: Amount | None = None
    cache_creation_input_tokens: Amount | None = None
    cache_creation: CacheCreation | None = None
    iterations: Raw = Raw()
    """Every call behind the message, also those of another model, which the counts leave out."""


class Block(Struct, frozen=True, gc=False):
    """A part of a message: text, thinking, a tool call, the result of one."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()
    tool_use_id: str | None = None
    content: Raw = Raw()
    is_error: bool | None = None


Content = list[Block | str] | str | None


class Message(Struct, frozen=True, gc=False):
    """What a person, the harness or the model said."""

    id: str | None = None
    model: str | None = None
    content: Content = None
    usage: Usage | None = None
    stop_reason: str | None = None


class Attachment(Struct, frozen=True, gc=False):
    """Something that the harness put before the model; a command that had waited in a queue."""

    type: str | None = None
    prompt: Content = None
    command_mode: str | None = field(default=None, name="commandMode")


class Origin(Struct, frozen=True, gc=False):
    """Where a user record comes from."""

    kind: str | None = None


class Record(Struct, frozen=True, gc=False, rename="camel"):
    """One line of a transcript: the fields that matter for what the team did."""

    type: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    timestamp: datetime | None = None
    session_id: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    agent_name: str | None = None
    team_name: str | None = None
    message: Message | str | None = None
    tool_use_result: Raw = Raw()
    request_id: str | None = None
    data: "Progress | None" = None
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    source_assistant: str | None = field(default=None, name="sourceToolAssistantUUID")
    attachment: Attachment | None = None
    operation: str | None = None
    subtype: str | None = None
    content: Raw = Raw()
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    origin: Origin | str | None = None
    version: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    stream_session: str | None = field(default=None, name="session_id")
    """Where the stream of `--output-format stream-json` has the id of the session."""
    stream_call: str | None = field(default=None, name="parent_tool_use_id")
    """In that stream, the call whose sub-agent speaks."""
    stream_version: str | None = field(default=None, name="claude_code_version")
    """What its first record has as `version`."""
    total_cost_usd: float | None = field(default=None, name="total_cost_usd")
    """US dollars, which its last record states, as the fields after this one."""
    model_usage: Raw = Raw()
    is_error: bool | None = field(default=None, name="is_error")
    num_turns: int | None = field(default=None, name="num_turns")
    duration_ms: float | None = field(default=None, name="duration_ms")


class Progress(Struct, frozen=True, gc=False, rename="camel"):
    """News of a tool that is at work; of a sub-agent, its own record."""

    type: str | None = None
    agent_id: str | None = None
    message: Record | str | None = None


class Entry(Struct, frozen=True, gc=False):
    """A record and where it stands."""

    file: str
    line: int
    record: Record
    call: str | None = None
    """Id of the tool call that the record is news of."""

    @property
    def source(self) -> Source:
        """File and line."""
        return Source(self.file, self.line)


class Transcript(Struct, frozen=True):
    """All records of a file."""

    file: str
    entries: tuple[Entry, ...]
    skipped: dict[str, int]
    """Lines that are no record."""
    unknown_fields: dict[str, int]
    stepped_back: int
    notices: tuple[Notice, ...]


# fmt: off
_IGNORED = (
    "aiTitle", "attributionMcpServer", "attributionMcpTool", "attributionSkill", "compactMetadata",
    "customTitle", "durationMs", "effort", "entrypoint", "error", "hasOutput",
    "hookAdditionalContext", "hookCount", "hookErrors", "hookInfos", "isSnapshotUpdate",
    "lastPrompt", "leafUuid", "level", "logicalParentUuid", "maxRetries", "messageCount",
    "messageId", "mode", "pendingWorkflowCount", "permissionMode", "prNumber", "prRepository",
    "prUrl", "preventedContinuation", "promptId", "promptSource", "retryAttempt", "retryInMs",
    "slug", "snapshot", "sourceToolUseID", "stopReason", "summary", "thinkingMetadata", "todos",
    "toolUseID", "userType",
)
# fmt: on
"""Fields that are known and say nothing about what the team did."""

_Strict = msgspec.defstruct(
    "_Strict",
    [(name, Raw, Raw()) for name in _IGNORED],
    bases=(Record,),
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
)
_IGNORED_STREAMED = {
    "agents",
    "apiKeySource",
    "duration_api_ms",
    "errors",
    "event",
    "fast_mode_state",
    "mcp_servers",
    "model",
    "output_style",
    "permission_denials",
    "plugins",
    "result",
    "skills",
    "slash_commands",
    "stop_reason",
    "structured_output",
    "tools",
    "usage",
}
"""The same in a stream; too rare to make every record wider."""
_KNOWN = _IGNORED_STREAMED | {name.encode_name for name in msgspec.structs.fields(_Strict)}

_strict = cast("msgspec.json.Decoder[Record]", msgspec.json.Decoder(_Strict))
_lenient = msgspec.json.Decoder(Record)
_names = msgspec.json.Decoder(dict[str, Raw])
_content = msgspec.json.Decoder(Content)

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def read_records(data: bytes, file: str) -> Transcript:
    """Decode all lines of a transcript; what is no record is counted and named by its line."""
    reader = _Reader(file)
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line and not line.isspace():
            reader.read(line, number, is_last=number == len(lines))
    return reader.transcript()


def text_of(content: Content) -> str:
    """The readable part of a message; a picture and the like is named in brackets."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = (block if isinstance(block, str) else _block_text(block) for block in content)
    return "\n\n".join(text for text in texts if text)


def raw_text(raw: Raw) -> str:
    """The readable part of a content that is not decoded yet; any other JSON as it came."""
    data = bytes(raw)
    if not data:
        return ""
    try:
        return text_of(_content.decode(data))
    except (msgspec.DecodeError, RecursionError):
        return data.decode("utf-8", "replace")


def _block_text(block: Block) -> str:
    if block.text is not None or block.tool_use_id is not None:
        return block.text or ""  # the result of a tool has its own text
    return f"[{block.type}]" if block.type else ""


class _Reader:
    """Collects the records of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.entries: list[Entry] = []
        self.skipped: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.notices: list[Notice] = []
        self.stepped_back = 0
        self.newest: datetime | None = None

    def transcript(self) -> Transcript:
        return Transcript(
            self.file,
            tuple(self.entries),
            dict(self.skipped),
            dict(self.unknown),
            self.stepped_back,
            tuple(self.notices),
        )

    def read(self, line: bytes, number: int, is_last: bool) -> None:
        record = self._decode(line, number, is_last)
        if record is None:
            return
        if record.timestamp is not None:
            self.stepped_back += self.newest is not None and record.timestamp < self.newest
            self.newest = record.timestamp
        self.entries.append(Entry(self.file, number, record, record.stream_call))

    def _decode(self, line: bytes, number: int, is_last: bool) -> Record | None:
        try:
            record = _strict.decode(line)
        except (msgspec.DecodeError, RecursionError):
            record = self._second_look(line, number, is_last)
        if record is None or record.type is None:
            if record is not None:
                self._drop(number, "a record without a type")
            return None
        return with_zone(_with_names(record))

    def _second_look(self, line: bytes, number: int, is_last: bool) -> Record | None:
        """Read a line that has a field nobody knows, a wrong type, or that is no JSON."""
        try:
            names = _names.decode(line)
            record = _lenient.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return self._mend(line, number, is_last)
        self.unknown.update(names.keys() - _KNOWN)
        return record

    def _mend(self, line: bytes, number: int, is_last: bool) -> Record | None:
        """Take out of a record what has the wrong type, and read the rest."""
        try:
            tree = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            what = "the file is cut in this record" if is_last else "not JSON"
            self._drop(number, what)
            return None
        if not isinstance(tree, dict):
            self._drop(number, "not a JSON object")
            return None
        self.unknown.update(cast("dict[str, Any]", tree).keys() - _KNOWN)
        while True:
            try:
                return _lenient.decode(_clean_json(tree))
            except (msgspec.DecodeError, RecursionError, ValueError) as error:
                what, _, path = str(error).partition(" - at `$")
                path = path.rstrip("`")
                if not path or not _remove(tree, path):
                    self._drop(number, "not a record that can be read")
                    return None
                self._note(number, f"{path.lstrip('.')} is left out: {what[0].lower()}{what[1:]}")

    def _drop(self, number: int, what: str) -> None:
        self.skipped["(no record)"] += 1
        self._note(number, f"{what}: skipped")

    def _note(self, number: int, what: str) -> None:
        self.notices.append(Notice(str(Source(self.file, number)), what))


def _with_names(record: Record) -> Record:
    """The record with its session and version where a transcript has them."""
    if record.session_id is not None or record.stream_session is None:
        return record
    version = record.version or record.stream_version
    return msgspec.structs.replace(record, session_id=record.stream_session, version=version)


def with_zone(record: Record) -> Record:
    """The record with its time in UTC."""
    time = record.timestamp
    if time is None or time.tzinfo is UTC:
        return record
    return msgspec.structs.replace(record, timestamp=as_utc(time))


def as_utc(time: datetime) -> datetime:
    """Take a time without a zone as UTC, which is what the harness writes."""
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:  # the first or last day that there is
        return time.replace(tzinfo=UTC)


def _clean_json(tree: Any) -> bytes:
    """Encode with halves of surrogate pairs replaced: UTF-8 cannot carry them."""
    return json.dumps(tree, ensure_ascii=False).encode("utf-8", "replace")


def _remove(tree: Any, path: str) -> bool:
    """Delete the value at a path as msgspec writes it (`.message.content[0].id`)."""
    steps = [int(index) if index else name for name, index in _STEP.findall(path)]
    try:
        for step in steps[:-1]:
            tree = tree[step]
        del tree[steps[-1]]
    except (LookupError, TypeError):
        return False
    return True
