"""Claude Code transcripts: what is known of a team while its events are made."""

from msgspec import Struct

from stretto.importers.claude_code.calls import Call
from stretto.importers.claude_code.events import Lane
from stretto.importers.claude_code.groups import LEADS
from stretto.importers.claude_code.mail import Letter
from stretto.importers.claude_code.tree import Node, Tree
from stretto.importers.claude_code.workflows import Member
from stretto.importers.kit.loom import Loom, Source

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
    type: str | None = None
    """What the harness takes it for, where it is no mere text."""
    is_read: bool = False


class Heard(Struct):
    """A message as its receiver has it."""

    lane: Lane
    position: int
    text: str
    sender: str | None = None
    letter: Letter | None = None


class Step(Struct, frozen=True):
    """A change of a task."""

    number: int
    task: str
    agent: str
    status: str | None


class FanOut(Struct, frozen=True):
    """A workflow that was started."""

    call: Call
    caller: str
    """Path of the agent that started it."""
    paths: tuple[str, ...]
    """The agents of it that are known."""


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
        self.left: set[str] = set()
        """Agents that are known to have gone."""
        self.steps: list[Step] = []
        self.waits: list[tuple[str, str]] = []
        """A task, and another that has to be done before it."""
        self.handed: dict[tuple[str, str], int] = {}
        """By new owner and task: the event that hands it over."""
        self.fan_outs: list[FanOut] = []
        self.ended: dict[str | None, int] = {}
        """By id of the call: the event that says that its work in the background has ended."""
        self.notices: list[tuple[Source, str]] = []
        self.made: dict[str | None, tuple[int, str]] = {}
        """By id of the call: its event, and the tool."""
        self.by_key = {node.key: node.path for node in tree.nodes if node.key}
        calls = [node for node in tree.nodes if node.call is not None and node.member is None]
        self.by_call = {node.call.block.id: node.path for node in calls if node.call}
        self.lives: dict[str, list[tuple[float, str]]] = {}
        """By name: when agents of that name were spawned, and their paths."""
        for node in tree.nodes:
            if node.name:
                self.lives.setdefault(node.name, []).append((self._born(node), node.path))
        for each in self.lives.values():
            each.sort()

    def _born(self, node: Node) -> float:
        record = node.call.entry.record if node.call is not None else None
        seconds = self.loom.seconds(record.timestamp) if record is not None else None
        return 0.0 if seconds is None else seconds

    def find(self, lane: Lane, name: str | None, seconds: float | None) -> str | None:
        """The agent that has a name at a time.

        One that is not in the session gets an id of its own.
        """
        if not name or name in EVERYBODY:
            return None
        lives = self.lives.get(name, ())
        before = [path for born, path in lives if seconds is None or born <= seconds]
        found = before[-1] if before else lives[0][1] if lives else self.by_key.get(name)
        if found is None and name in LEADS:
            found = self._lead(lane)
        return found or self._stranger(name)

    def add_unknown(self, fan_out: FanOut) -> None:
        """Add an agent of a workflow of which nothing is known but that it was there."""
        children = sum(lane.node.parent == fan_out.caller for lane in self.lanes.values())
        path = f"{fan_out.caller}/{children}"
        member = Member("")
        node = Node(path, fan_out.caller, None, fan_out.call, None, "recorded", member)
        self.lanes[path] = Lane(node)

    def _lead(self, lane: Lane) -> str | None:
        """The agent at the root, for those below it and for members of its team."""
        root = self.lanes.get("0")
        if root is None or lane.path == "0" or root.is_member:
            return None
        return "0"

    def _stranger(self, name: str) -> str:
        path = f"@{name}" if name in self.lanes else name
        self.lanes[path] = Lane(Node(path, None, None, None, name))
        self.lives[name] = [(0.0, path)]
        return path
