"""Claude Code transcripts, stage two: messages between agents."""

from stretto.importers.claude_code.calls import Call, MessageInput, input_of
from stretto.importers.claude_code.events import Lane, known, weave_call
from stretto.importers.claude_code.mail import Letter, gone
from stretto.importers.claude_code.records import raw_text
from stretto.importers.claude_code.team import Heard, Sent, Team


def begin_message(team: Team, lane: Lane, call: Call) -> int:
    """Add a message that an agent writes by means of a tool."""
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


def lettered(team: Team, lane: Lane, position: int, letter: Letter) -> None:
    """Take note of a message that arrives, or add that a teammate has left."""
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
