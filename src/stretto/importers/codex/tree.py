"""Codex rollouts: who spawned whom.

A child says its parent in its `session_meta`. Which call spawned it is told by the harness's record
of the call or by the output of the call. Where neither names the child, its own rollout does: a
child of the caller that was born during the call and whose id or name the call holds (derived), or
that was asked the same (heuristic).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from stretto.importers.codex.calls import Call, Script
from stretto.importers.kit.fields import text_at, time_at
from stretto.importers.kit.strand import paths
from stretto.trace import Evidence

ROOT = "/root"
SLACK = timedelta(seconds=1)
"""By which clocks of two threads may differ."""


class Node(Struct):
    """One agent."""

    key: str
    """Id of its thread; its name in the tree where that is not known."""
    id: str = ""
    """Path of the spawn tree."""
    parent: str | None = None
    """Key of its parent."""
    script: Script | None = None
    """`None` where its rollout is not there."""
    born: datetime | None = None
    call: Call | None = None
    """The call that spawned it."""
    evidence: Evidence = "recorded"
    """How that is known."""
    name: str | None = None
    """As in `/root/task` (v2)."""

    @property
    def depth(self) -> int:
        """How many agents stand above it."""
        return self.id.count("/")


class Tree:
    """The agents of a run."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        """`scripts` are all threads of the run."""
        self.nodes = {script.thread.id: _node(script) for script in scripts}
        self._named: dict[str, str] = {}
        self._spawned: dict[int, Node] = {}
        for node in list(self.nodes.values()):
            self._add_parent(node)
        for script in scripts:
            self._name(script)
        open_calls = [each for script in scripts for each in self._spawned_by(script)]
        for script, call in open_calls:
            self._guess(script, call)
        self._place()

    def find(self, caller: str, name: str | None) -> Node | None:
        """The agent that another one names, by the id of its thread or by its name in the tree."""
        if name is None:
            return None
        own = self.nodes[caller].name or ROOT
        names = (name, self._named.get(name), self._named.get(f"{own}/{name}"))
        return next((self.nodes[n] for n in names if n is not None and n in self.nodes), None)

    def spawned(self, call: Call) -> Node | None:
        """The agent that a call spawned."""
        return self._spawned.get(id(call))

    def _name(self, script: Script) -> None:
        thread = script.thread
        name = thread.path or (ROOT if not thread.is_child else None)
        if name is not None and self._named.setdefault(name, thread.id) == thread.id:
            self.nodes[thread.id].name = name

    def _add_parent(self, node: Node) -> None:
        """An agent that is known as a parent only."""
        if node.parent is None or node.parent in self.nodes or node.script is None:
            return
        name = (node.script.thread.path or "").rpartition("/")[0] or None
        self.nodes[node.parent] = Node(node.parent, born=node.born, name=name)
        if name is not None:
            self._named.setdefault(name, node.parent)

    def _spawned_by(self, script: Script) -> list[tuple[Script, Call]]:
        """Take the agents that a thread spawned; the calls for which none is named are left."""
        left: list[tuple[Script, Call]] = []
        for call in script.calls.values():
            if call.action != "spawn":
                continue
            key = None if call.is_refused else self._child(call)
            if key is not None:
                self._claim(key, script, call, "recorded")
            elif call.may_have_spawned:
                left.append((script, call))
        return left

    def _child(self, call: Call) -> str | None:
        receivers = call.facts.receivers if call.facts is not None else ()
        key = next(iter(receivers), None) or text_at(call.answered, "agent_id")
        name = text_at(call.answered, "task_name")
        return key or self._named.get(name or "") or name

    def _claim(self, key: str, script: Script, call: Call, evidence: Evidence) -> None:
        node = self.nodes.setdefault(key, Node(key, born=call.entry.time))
        if node.call is not None or key == script.thread.id:
            return
        node.call, node.evidence = call, evidence
        self._spawned[id(call)] = node
        node.parent = node.parent or script.thread.id
        node.name = node.name or text_at(call.answered, "task_name")
        if node.name is not None:
            self._named.setdefault(node.name, key)

    def _guess(self, script: Script, call: Call) -> None:
        """A call whose output names nobody may have spawned a child that nothing else claims."""
        free = sorted(self._born_during(script, call), key=_by_birth)
        named = next((node.key for node in free if _is_named(node, call)), None)
        asked = next((n.key for n in free if call.prompt and _first_words(n) == call.prompt), None)
        if named is not None:
            self._claim(named, script, call, "derived")
        elif asked is not None:
            self._claim(asked, script, call, "heuristic")

    def _born_during(self, script: Script, call: Call) -> Iterator[Node]:
        """The children that a thread can have spawned by a call, told from the times."""
        begin, end = call.entry.time, call.output.time if call.output is not None else None
        for node in self.nodes.values():
            if node.parent != script.thread.id or node.call is not None or node.script is None:
                continue
            early = node.born is not None and begin is not None and node.born < begin - SLACK
            late = node.born is not None and end is not None and node.born > end + SLACK
            if not early and not late:
                yield node

    def _place(self) -> None:
        """Give ids, in order of birth."""
        ordered = sorted(self.nodes.values(), key=_by_birth)
        found = paths({node.key: node.parent for node in ordered})
        for node in ordered:
            node.id = found[node.key]
            if "/" not in node.id:
                node.parent = None
        self.nodes = {node.key: node for node in sorted(ordered, key=lambda node: node.depth)}


def _node(script: Script) -> Node:
    thread = script.thread
    times = [entry.time for entry in thread.entries if entry.time is not None]
    born = time_at(thread.meta, "timestamp") or min(times, default=None)
    return Node(thread.id, parent=thread.parent, script=script, born=born)


def _by_birth(node: Node) -> tuple[bool, str, str]:
    return (node.born is None, node.born.isoformat() if node.born else "", node.key)


def _is_named(node: Node, call: Call) -> bool:
    """Whether the output of a call holds the id of a thread, or the call its name in the tree."""
    task = text_at(call.arguments, "task_name")
    return node.key in call.answer or (task is not None and task == _last_name(node))


def _last_name(node: Node) -> str | None:
    return node.name.rpartition("/")[2] if node.name is not None else None


def _first_words(node: Node) -> str | None:
    """What a thread was asked first."""
    return next(iter(node.script.prompts.values()), None) if node.script is not None else None
