"""Claude Code transcripts: what is known of a team while its events are made."""

from msgspec import Struct

from stretto.importers.claude_code.events import Lane
from stretto.importers.claude_code.mail import Letter
from stretto.importers.claude_code.tree import Node, Tree
from stretto.importers.loom import Loom

LEADS = ("team-lead", "lead", "main")
"""Names by which a sub-agent writes to the session that spawned it."""
EVERYBODY = ("*", "all")


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
