"""Claude Code transcripts: the spawn tree, which gives every agent its path."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from stretto.importers.claude_code.calls import (
    TEAMMATE,
    WORKFLOW_TOOL,
    Call,
    SpawnInput,
    input_of,
)
from stretto.importers.claude_code.mail import letters
from stretto.importers.claude_code.threads import Meta, Thread, order
from stretto.importers.claude_code.workflows import Member, Run
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
    member: Member | None = None
    """What is known of an agent of a workflow."""

    @property
    def name(self) -> str | None:
        """What the source calls it."""
        if self.member is not None:
            return self.member.label or self.key
        given = input_of(self.call, SpawnInput).name if self.call else None
        return given or (self.thread.name if self.thread else None) or self.key

    @property
    def is_counted(self) -> bool:
        """Whether it is known of a workflow that it had this agent, and nothing else of it."""
        return self.member is not None and self.key is None

    @property
    def told_by(self) -> Evidence:
        """How it is known that a message to it is the prompt of its spawn."""
        return "heuristic" if self.evidence == "heuristic" else "derived"

    @property
    def is_teammate(self) -> bool:
        """Whether it works until it is shut down, and never returns."""
        return self.call is not None and self.call.came.status == TEAMMATE


class Tree(Struct, frozen=True):
    """All agents of a session."""

    nodes: tuple[Node, ...]
    """Parents before their children, children in the order of their spawns."""
    spawned: Mapping[CallKey, str]
    """Path of the agent that a call starts."""
    resumed: Mapping[CallKey, str]
    """Path of the agent that a call lets go on."""
    fanned: Mapping[CallKey, tuple[str, ...]]
    """Paths of the agents of the workflow that a call starts."""


def build_tree(
    threads: Sequence[Thread], calls: Mapping[str, Sequence[Call]], runs: Mapping[str, Run]
) -> Tree:
    """Link spawns to threads: by recorded ids, else by name, else by the text of the prompt.

    A thread that no spawn claims is a root of its own: who spawned it is not known.
    """
    named = {call.child for made in calls.values() for call in made if call.is_spawn}
    growing = _Growing(threads, calls, named, runs)
    for thread in _roots_first(threads, named):
        growing.add_root(thread)
    return Tree(tuple(growing.nodes), growing.spawned, growing.resumed, growing.fanned)


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
        runs: Mapping[str, Run],
    ) -> None:
        self.calls = calls
        self.runs = runs
        self.by_task = {run.task: run for run in runs.values() if run.task is not None}
        self.by_key = {thread.key: thread for thread in threads if thread.source != "main"}
        self.by_call = {t.call: t for t in self.by_key.values() if t.call is not None}
        self.nodes: list[Node] = []
        self.paths: dict[str, str] = {}
        self.spawned: dict[CallKey, str] = {}
        self.resumed: dict[CallKey, str] = {}
        self.fanned: dict[CallKey, tuple[str, ...]] = {}
        self.roots = 0
        self.by_name: dict[str, list[Thread]] = {}
        self.by_prompt: dict[str, list[Thread]] = {}
        self.by_parent: dict[str | None, list[Thread]] = {}
        for thread in self.by_key.values():
            self.by_parent.setdefault(_parent_of(thread.meta), []).append(thread)
            if thread.name is not None:
                self.by_name.setdefault(thread.name, []).append(thread)
            if thread.key not in named and thread.call is None:
                for text in _asked(thread):
                    self.by_prompt.setdefault(text, []).append(thread)

    def add_root(self, thread: Thread) -> None:
        """Add a thread that nobody has claimed so far, and everything below it."""
        if thread.key in self.paths:
            return
        waiting = deque([self._add(Node(str(self.roots), None, thread, None, thread.key or None))])
        self.roots += 1
        while waiting:
            waiting += self._children(waiting.popleft())

    def _add(self, node: Node) -> Node:
        self.nodes.append(node)
        if node.thread is not None:
            self.paths[node.thread.key] = node.path
        if node.key is not None:
            self.paths[node.key] = node.path
        return node

    def _children(self, node: Node) -> list[Node]:
        thread = node.thread
        if thread is None:
            return []
        children: list[Node] = []
        for call in self.calls[thread.key]:
            place = (thread.key, call.index)
            if call.is_spawn:
                self._spawn(node, call, place, children)
            elif call.name == WORKFLOW_TOOL:
                self._fan_out(node, call, place, children)
        for orphan in self.by_parent.get(thread.key, ()):
            if orphan.key not in self.paths:
                path = f"{node.path}/{len(children)}"
                children.append(self._add(Node(path, node.path, orphan, None, orphan.key)))
        return children

    def _spawn(self, node: Node, call: Call, place: CallKey, children: list[Node]) -> None:
        key = input_of(call, SpawnInput).resume or call.child
        if key is not None and key in self.paths and call.came.status != TEAMMATE:
            self.resumed[place] = self.paths[key]
            return
        path = f"{node.path}/{len(children)}"
        children.append(self._add(self._child(path, node.path, call, key)))
        self.spawned[place] = path

    def _fan_out(self, node: Node, call: Call, place: CallKey, children: list[Node]) -> None:
        run = self.runs.get(call.run or "") or self.by_task.get(call.task or "")
        members = run.members if run is not None else ()
        fanned: list[str] = []
        for member in members:
            if member.agent in self.paths:
                continue
            path = f"{node.path}/{len(children)}"
            thread = self.by_key.get(member.agent)
            here = Node(path, node.path, thread, call, member.agent, "recorded", member)
            children.append(self._add(here))
            fanned.append(path)
        self.fanned[place] = tuple(fanned)

    def _child(self, path: str, parent: str, call: Call, key: str | None) -> Node:
        """The agent of a call: by its id, by the call's, by its name, else by what it was asked."""
        thread = self._free(self.by_key.get(key or "") or self.by_call.get(call.block.id or ""))
        evidence: Evidence = "recorded"
        if thread is None:
            thread, evidence = self._by_name(call), "derived"
        if thread is None:
            thread, evidence = self._by_prompt(call, key), "heuristic"
        if thread is None:
            evidence = "recorded"
        key = key or (thread.key if thread is not None else None)
        return Node(path, parent, thread, call, key, evidence)

    def _free(self, thread: Thread | None) -> Thread | None:
        return None if thread is None or thread.key in self.paths else thread

    def _by_name(self, call: Call) -> Thread | None:
        """A thread of the name that is given: asked the same, else the first that began later."""
        asked = input_of(call, SpawnInput)
        free = [t for t in self.by_name.get(asked.name or "", ()) if t.key not in self.paths]
        if len(free) < 2:
            return next(iter(free), None)
        same = [thread for thread in free if _normal(asked.prompt or "") in _asked(thread)]
        made = order(call.entry.record.timestamp)
        later = [t for t in free if order(t.entries[0].record.timestamp) >= made]
        return (same or later or free)[0]

    def _by_prompt(self, call: Call, key: str | None) -> Thread | None:
        """A thread that was asked exactly this and that nothing else names.

        One with an id of its own is not the agent of a call that names another id, except for
        members of a team, whose ids are names.
        """
        is_any = key is None or call.came.status == TEAMMATE
        waiting = self.by_prompt.get(_normal(input_of(call, SpawnInput).prompt or ""), [])
        free = (thread for thread in waiting if thread.key not in self.paths)
        found = next((each for each in free if is_any or each.source == "inline"), None)
        if found is not None:
            waiting.remove(found)
        return found


def _parent_of(meta: Meta) -> str | None:
    """The thread that a description names as the parent, for one whose call is not recorded."""
    return meta.parent_agent_id or ("" if meta.spawn_depth == 1 else None)


def _asked(thread: Thread) -> set[str]:
    """What a thread was asked first; members of a team are asked by a message."""
    first = thread.prompt
    texts = {_normal(text) for text in (first, *(letter.text for letter in letters(first)))}
    return texts - {""}


def _normal(text: str) -> str:
    return " ".join(text.split())
