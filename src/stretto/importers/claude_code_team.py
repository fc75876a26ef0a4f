"""Claude Code transcripts, stage two: spawns, returns and messages between agents.

A result comes back in one of three ways: as the result of the spawning call, as a notification of a
background agent, or as the answer to a poll. One result can be recorded in several of them, and
several times in one; it is one `return`.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from msgspec import Struct

from stretto.importers.claude_code_calls import (
    DONE,
    POLL_TOOLS,
    Call,
    MessageInput,
    PollInput,
    Result,
    SpawnInput,
    convert,
    input_of,
)
from stretto.importers.claude_code_events import (
    MESSAGE_TOOL,
    Lane,
    known,
    weave_call,
    weave_human,
    weave_result,
    weave_tool,
)
from stretto.importers.claude_code_mail import (
    Letter,
    Notification,
    gone,
    letters,
    notifications,
    tag,
    usage_in,
)
from stretto.importers.claude_code_records import Entry, raw_text, text_of
from stretto.importers.claude_code_threads import said
from stretto.importers.claude_code_tree import Node, Tree
from stretto.importers.loom import Loom
from stretto.trace import Evidence

LEADS = ("team-lead", "lead", "main")
"""Names by which a sub-agent writes to the session that spawned it."""
EVERYBODY = ("*", "all")
LAUNCHED = ("Async agent launched", "Spawned successfully")
"""How the text begins that only says that an agent has started."""


class Return(Struct):
    """A result on its way."""

    number: int
    text: str
    via: str
    """Whether it came as the `result` of the call, as a `notification` or by a `poll`."""
    is_announced: bool = False
    is_read: bool = False


class Sent(Struct):
    """A message whose sender's record is there."""

    number: int
    sender: str
    to: str | None
    text: str


class Heard(Struct):
    """A message as its receiver has it."""

    lane: Lane
    position: int
    text: str
    sender: str | None = None
    letter: Letter | None = None


class Team:
    """All lanes of a session, and what passes between them."""

    def __init__(self, loom: Loom, tree: Tree, lanes: dict[str, Lane]) -> None:
        self.loom = loom
        self.tree = tree
        self.lanes = lanes
        self.spawns: dict[str, int] = {}
        self.returns: dict[str, list[Return]] = {}
        self.sent: list[Sent] = []
        self.heard: list[Heard] = []
        nodes = tree.nodes
        self.by_key = {node.key: node.path for node in nodes if node.key}
        self.by_name = {node.name: node.path for node in nodes if node.name}
        self.by_call = {node.call.block.id: node.path for node in nodes if node.call}
        self.made: dict[str | None, tuple[int, str]] = {}
        """By id of the call: its event, and the tool."""

    def find(self, lane: Lane, name: str | None) -> str | None:
        """The agent of a name; one that is not in the session gets an id of its own."""
        if not name or name in EVERYBODY:
            return None
        found = self.by_key.get(name) or self.by_name.get(name)
        if found is None and name in LEADS and lane.path != "0" and "0" in self.lanes:
            return "0"
        if found is not None:
            return found
        path = f"@{name}" if name in self.lanes else name
        node = Node(path, None, None, None, name)
        self.lanes[path] = Lane(node)
        self.by_name[name] = path
        return path


def weave_lane(team: Team, lane: Lane) -> None:
    """Add everything that an agent did and got, in order of its records."""
    begins: dict[int, list[Call]] = {}
    ends: dict[int, list[Call]] = {}
    for call in lane.calls:
        begins.setdefault(call.position, []).append(call)
        if call.result is not None:
            ends.setdefault(max(call.position, call.result.position), []).append(call)
    orphans = {result.position: result for result in lane.orphans}
    made: dict[int, int] = {}
    for position, entry in enumerate(lane.entries):
        for call in begins.get(position, ()):
            made[call.index] = _begin(team, lane, call)
            team.made.setdefault(call.block.id, (made[call.index], call.name))
        for call in ends.get(position, ()):
            _end(team, lane, call, made[call.index])
        if position in orphans:
            weave_result(team.loom, lane, orphans[position], None, None, orphan=True)
        _hear(team, lane, position, entry)


def _begin(team: Team, lane: Lane, call: Call) -> int:
    if call.is_spawn:
        return _begin_spawn(team, lane, call)
    if call.name == MESSAGE_TOOL:
        return _begin_message(team, lane, call)
    return weave_tool(team.loom, lane, call)


def _begin_spawn(team: Team, lane: Lane, call: Call) -> int:
    assert lane.node.thread is not None
    place = (lane.node.thread.key, call.index)
    asked, came = input_of(call, SpawnInput), call.came
    child = team.tree.spawned.get(place)
    to = child or team.tree.resumed[place]
    background = True if came.is_async or came.status == "async_launched" else None
    seconds = call.seconds if _is_answer(call) else None
    number = weave_call(
        team.loom,
        lane,
        call,
        "spawn" if child else "delegate",
        to=to,
        content=team.loom.store(asked.prompt),
        attrs=known(
            description=asked.description,
            subagent_type=asked.subagent_type,
            background=background,
            call_duration=seconds,
        ),
    )
    if child:
        team.spawns[child] = number
    else:
        team.sent.append(Sent(number, lane.path, to, asked.prompt or ""))
    return number


def _begin_message(team: Team, lane: Lane, call: Call) -> int:
    asked = input_of(call, MessageInput)
    name = asked.to or asked.recipient
    text = raw_text(asked.message) or raw_text(asked.content)
    to = team.find(lane, name)
    number = weave_call(
        team.loom,
        lane,
        call,
        "message",
        to=to,
        content=team.loom.store(text),
        attrs=known(recipient=name, summary=asked.summary, type=asked.type),
    )
    team.sent.append(Sent(number, lane.path, to, text))
    return number


def _end(team: Team, lane: Lane, call: Call, number: int) -> None:
    result = call.result
    assert result is not None
    if call.is_spawn:
        _end_spawn(team, lane, call, result, number)
        return
    answer = weave_result(team.loom, lane, result, call.name, number, call.position)
    if call.name in POLL_TOOLS:
        _poll(team, lane, call, result, answer)


def _is_answer(call: Call) -> bool:
    """Whether the result of a spawning call is that of the agent: no error, no mere launch."""
    result = call.result
    if result is None or result.block.is_error:
        return False
    status = call.came.status
    if status is not None:
        return status in DONE
    return not result.text.startswith(LAUNCHED)


def _end_spawn(team: Team, lane: Lane, call: Call, result: Result, number: int) -> None:
    came = call.came
    child = team.loom.drafts[number].event.to
    if child is None or not _is_answer(call):
        weave_result(team.loom, lane, result, call.name, number, call.position, status=came.status)
        return
    lane.used.add(result.position)
    text = raw_text(came.content) or result.text
    stated = known(
        total_tokens=came.total_tokens,
        total_duration_ms=came.total_duration_ms,
        total_tool_use_count=came.total_tool_use_count,
    )
    attrs = known(tool_use_id=call.block.id, status=came.status) | (stated or _tail_usage(text))
    back = _return(team, child, lane, result.entry, text, "result", attrs)
    _read(team, lane, back, max(result.position, call.position))
    if team.loom.drafts[number].event.kind == "delegate":
        team.loom.link(number, back.number, "causal", "derived")


def _tail_usage(text: str) -> dict[str, int]:
    """What a result says at its end, where its record says nothing beside it."""
    begin = text.rfind("<usage>")
    return usage_in(text[begin:]) if begin >= 0 else {}


def _return(
    team: Team,
    child: str,
    lane: Lane,
    entry: Entry,
    text: str,
    via: str,
    attrs: Mapping[str, Any],
) -> Return:
    time = entry.record.timestamp
    number = team.loom.add(
        child,
        "return",
        team.lanes[child].end_of_run(team.loom.seconds(time)),
        time,
        entry.source,
        to=team.lanes[child].node.parent or lane.path,
        content=team.loom.store(text),
        attrs={"via": via, **attrs},
    )
    back = Return(number, text, via)
    team.returns.setdefault(child, []).append(back)
    return back


def _read(team: Team, lane: Lane, back: Return, position: int) -> None:
    back.is_read = True
    team.loom.link(back.number, lane.reader(position), "return")
    seconds = team.loom.seconds(lane.entries[position].record.timestamp)
    if seconds is not None and "delivered" not in team.loom.drafts[back.number].event.attrs:
        team.loom.note(back.number, delivered=seconds)


class _PolledTask(Struct, frozen=True):
    status: str | None = None


class _Polled(Struct, frozen=True):
    task: _PolledTask = _PolledTask()


def _poll(team: Team, lane: Lane, call: Call, result: Result, answer: int) -> None:
    """A poll that finds its agent done brings the result; one that had come before is read now."""
    asked = input_of(call, PollInput)
    child = team.by_key.get(asked.task_id or asked.agent_id or "")
    polled = convert(result.entry.record.tool_use_result, _Polled).task.status
    status = polled or tag(result.text, "status")
    if child is None or result.block.is_error or status not in DONE:
        return
    earlier = team.returns.get(child)
    back = (
        earlier[-1]
        if earlier
        else _return(team, child, lane, result.entry, result.text, "poll", known(status=status))
    )
    back.is_read = True
    team.loom.link(back.number, answer, "return")


def _hear(team: Team, lane: Lane, position: int, entry: Entry) -> None:
    record = entry.record
    if record.type == "queue-operation" and record.operation == "enqueue":
        _announced(team, lane, position, raw_text(record.content))
    elif record.attachment is not None and record.attachment.type == "queued_command":
        _told(team, lane, position, text_of(record.attachment.prompt))
    elif record.type == "user":
        _told(team, lane, position, said(record))


def _announced(team: Team, lane: Lane, position: int, text: str) -> None:
    for news in notifications(text):
        child = _child_of(team, news)
        if child is None or not _is_result(news):
            continue
        lane.used.add(position)
        back = _late_news(team, child)
        last = team.returns[child][-1] if team.returns.get(child) else None
        if back is None and last is not None and not last.is_read and last.text == news.text:
            back = last
        if back is None:
            entry = lane.entries[position]
            back = _return(team, child, lane, entry, news.text, "notification", _stated(news))
        back.is_announced = True


def _told(team: Team, lane: Lane, position: int, text: str) -> None:
    if not text:
        return
    news, mail = notifications(text), letters(text)
    for each in news:
        _notified(team, lane, position, each)
    for letter in mail:
        _lettered(team, lane, position, letter)
    if news or mail:
        lane.used.add(position)
    elif not weave_human(team.loom, lane, position, text) and not lane.is_main:
        team.heard.append(Heard(lane, position, text))


def _child_of(team: Team, news: Notification) -> str | None:
    """The agent whose task it is; other tasks (shells, workflows) have none."""
    return team.by_key.get(news.task or "") or team.by_call.get(news.call)


def _is_result(news: Notification) -> bool:
    return news.has_result or news.status is None or news.status in DONE


def _stated(news: Notification) -> dict[str, Any]:
    return known(tool_use_id=news.call, status=news.status) | news.usage


def _late_news(team: Team, child: str) -> Return | None:
    """A result that a poll had brought before it was announced."""
    last = team.returns[child][-1] if team.returns.get(child) else None
    return last if last is not None and last.via == "poll" and not last.is_announced else None


def _notified(team: Team, lane: Lane, position: int, news: Notification) -> None:
    """News of a background task reach the model."""
    child = _child_of(team, news)
    if child is None or not _is_result(news):
        _background_ended(team, lane, position, news, child)
        return
    earlier = team.returns.get(child, [])
    unread = [back for back in earlier if not back.is_read]
    same = [back for back in unread or earlier[-1:] if back.text == news.text]
    back = next(iter(same or unread), None) or _late_news(team, child)
    if back is None:
        entry = lane.entries[position]
        back = _return(team, child, lane, entry, news.text, "notification", _stated(news))
    back.is_announced = True
    _read(team, lane, back, position)


def _background_ended(
    team: Team, lane: Lane, position: int, news: Notification, child: str | None
) -> None:
    """A background task that is no agent ended, or an agent failed: what its tool has to say."""
    entry = lane.entries[position]
    cause, tool = team.made.get(news.call, (None, None))
    if child is not None:
        cause, tool = team.spawns.get(child, cause), tool or "Agent"
    number = team.loom.add(
        lane.path,
        "tool_result",
        position,
        entry.record.timestamp,
        entry.source,
        tool=tool,
        content=team.loom.store(news.text),
        attrs=known(task_id=news.task, status=news.status, background=True, uuid=entry.record.uuid),
    )
    team.loom.link(cause, number, "tool_dependency")
    team.loom.link(number, lane.reader(position), "tool_dependency", "derived")


def _lettered(team: Team, lane: Lane, position: int, letter: Letter) -> None:
    name = gone(letter)
    if name is None:
        sender = team.find(lane, letter.sender)
        team.heard.append(Heard(lane, position, letter.text, sender, letter))
        return
    entry = lane.entries[position]
    number = team.loom.add(
        lane.path,
        "despawn",
        position,
        entry.record.timestamp,
        entry.source,
        to=team.find(lane, name),
        content=team.loom.store(letter.text),
    )
    team.loom.link(number, lane.reader(position), "causal", "derived")


def deliver(team: Team) -> None:
    """Link messages to the turns that read them.

    One whose sender's record is not there becomes an event of the sender all the same.
    """
    open_messages = list(team.sent)
    for heard in team.heard:
        found = next((sent for sent in open_messages if _is_same(sent, heard)), None)
        reader = heard.lane.reader(heard.position)
        if found is not None:
            team.loom.link(found.number, reader, "message", "derived")
            heard.lane.used.add(heard.position)
            if found.to is not None:
                open_messages.remove(found)
        elif heard.letter is not None and heard.sender is not None:
            team.loom.link(_receive(team, heard, heard.letter, heard.sender), reader, "message")


def _is_same(sent: Sent, heard: Heard) -> bool:
    if not sent.text.strip() or sent.to not in (None, heard.lane.path):
        return False
    if heard.sender is None:
        return sent.text.strip() in heard.text
    return sent.sender == heard.sender and sent.text.strip() == heard.text.strip()


def _receive(team: Team, heard: Heard, letter: Letter, sender: str) -> int:
    entry = heard.lane.entries[heard.position]
    time = letter.body.timestamp or entry.record.timestamp
    return team.loom.add(
        sender,
        "message",
        team.lanes[sender].place_at(team.loom.seconds(time)),
        time,
        entry.source,
        to=heard.lane.path,
        content=team.loom.store(letter.text),
        attrs=known(
            summary=letter.summary,
            type=letter.body.type,
            delivered=team.loom.seconds(entry.record.timestamp),
        ),
    )


def join_ends(team: Team) -> None:
    """Link every spawn to the first event of its agent, and its last event to its return."""
    for path, numbers in team.loom.of_agents().items():
        evidence = team.lanes[path].node.evidence
        team.loom.link(team.spawns.get(path), numbers[0], "spawn", evidence)
        for before, after in pairwise(numbers):
            if team.loom.drafts[after].event.kind == "return":
                _join_return(team, before, after, evidence)


def _join_return(team: Team, before: int, after: int, evidence: Evidence) -> None:
    last, back = team.loom.drafts[before].event, team.loom.drafts[after].event
    if last.kind == "return":
        team.loom.link(before, after, "temporal", "derived")
        return
    team.loom.link(before, after, "return", evidence)
    if last.kind != "decision" and last.start is not None and back.start is not None:
        gap = back.start - last.start - (last.duration or 0.0)
        team.loom.note(after, unrecorded=round(max(0.0, gap), 3))
