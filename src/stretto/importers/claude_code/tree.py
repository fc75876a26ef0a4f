"""Claude Code transcripts: the spawn tree, which gives every agent its path."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from stretto.importers.claude_code.calls import Call, SpawnInput, input_of
from stretto.importers.claude_code.threads import Thread
from stretto.trace import Evidence

CallKey = tuple[str, int]
"""Thread and place of a call in it."""


class Node(Struct, frozen=True):
    """An agent: a thread, a spawn, or both."""

    path: str
    parent: str | None
    thread: Thread | None
    """`None` where its transcript is not there."""
    call: Call | None
    """The call that spawned it; `None` for a root, or where unknown."""
    key: str | None
    """Its id in the source."""
    evidence: Evidence = "recorded"
    """How it is known that the call spawned the thread."""

    @property
    def name(self) -> str | None:
        """What the source calls it."""
        given = input_of(self.call, SpawnInput).name if self.call else None
        return given or (self.thread.name if self.thread else None) or self.key

    @property
    def is_teammate(self) -> bool:
        """Whether it works until it is shut down, and never returns."""
        return self.call is not None and self.call.came.status == "teammate_spawned"


class Tree(Struct, frozen=True):
    """All agents of a session."""

    nodes: tuple[Node, ...]
    """Parents before their children, children in the order of their spawns."""
    spawned: Mapping[CallKey, str]
    """Path of the agent that a call starts."""
    resumed: Mapping[CallKey, str]
    """Path of the agent that a call lets go on."""


def build_tree(threads: Sequence[Thread], calls: Mapping[str, Sequence[Call]]) -> Tree:
    """Link spawns to threads: by recorded ids, else by the text of the prompt.

    A thread that no spawn claims is a root of its own: who spawned it is not known.
    """
    named = {call.child for made in calls.values() for call in made if call.is_spawn}
    growing = _Growing(threads, calls, named)
    for thread in _roots_first(threads, named):
        growing.add_root(thread)
    return Tree(tuple(growing.nodes), growing.spawned, growing.resumed)


def _roots_first(threads: Sequence[Thread], named: Collection[str | None]) -> Iterator[Thread]:
    """The main thread, then those that no result names, then the rest."""
    yield from (thread for thread in threads if thread.source == "main")
    others = [thread for thread in threads if thread.source != "main"]
    yield from sorted(others, key=lambda thread: thread.key in named)


class _Growing:
    """The tree while it is built, breadth first."""

    def __init__(
        self,
        threads: Sequence[Thread],
        calls: Mapping[str, Sequence[Call]],
        named: Collection[str | None],
    ) -> None:
        self.calls = calls
        self.by_key = {thread.key: thread for thread in threads if thread.source != "main"}
        self.by_call = {t.call: t for t in self.by_key.values() if t.call is not None}
        self.by_name = {t.name: t for t in self.by_key.values() if t.name is not None}
        self.nodes: list[Node] = []
        self.paths: dict[str, str] = {}
        self.spawned: dict[CallKey, str] = {}
        self.resumed: dict[CallKey, str] = {}
        self.roots = 0
        self.by_prompt: dict[str, list[Thread]] = {}
        for thread in self.by_key.values():
            if thread.key not in named and thread.call is None and thread.prompt:
                self.by_prompt.setdefault(_normal(thread.prompt), []).append(thread)

    def add_root(self, thread: Thread) -> None:
        """Add a thread that nobody has claimed so far, and everything below it."""
        if thread.key in self.paths:
            return
        waiting = [self._add(Node(str(self.roots), None, thread, None, thread.key or None))]
        self.roots += 1
        while waiting:
            node = waiting.pop(0)
            waiting += self._children(node)

    def _add(self, node: Node) -> Node:
        self.nodes.append(node)
        if node.thread is not None:
            self.paths[node.thread.key] = node.path
        if node.key is not None:
            self.paths[node.key] = node.path
        return node

    def _children(self, node: Node) -> list[Node]:
        if node.thread is None:
            return []
        children: list[Node] = []
        for call in self.calls[node.thread.key]:
            place = (node.thread.key, call.index)
            if not call.is_spawn:
                continue
            key = input_of(call, SpawnInput).resume or call.child
            if key is not None and key in self.paths:
                self.resumed[place] = self.paths[key]
                continue
            path = f"{node.path}/{len(children)}"
            children.append(self._add(self._child(path, node.path, call, key)))
            self.spawned[place] = path
        return children

    def _child(self, path: str, parent: str, call: Call, key: str | None) -> Node:
        thread = self.by_key.get(key or "") or self.by_call.get(call.block.id or "")
        evidence: Evidence = "recorded"
        if thread is None:
            thread, evidence = self.by_name.get(input_of(call, SpawnInput).name or ""), "derived"
        if thread is None and key is None:
            thread, evidence = self._by_prompt(call), "heuristic"
        if thread is not None and thread.key in self.paths:
            thread = None
        if thread is None:
            evidence = "recorded"
        key = key or (thread.key if thread is not None else None)
        return Node(path, parent, thread, call, key, evidence)

    def _by_prompt(self, call: Call) -> Thread | None:
        """A thread that was asked exactly this and that nothing else names."""
        waiting = self.by_prompt.get(_normal(input_of(call, SpawnInput).prompt or ""))
        return waiting.pop(0) if waiting else None


def _normal(text: str) -> str:
    return " ".join(text.split())
