"""WideTable (F1): fill a table from documents that overlap and contradict each other.

The documents of an instance each state a few cells of the table (`gather.instance`). Agents find
them by full-text search, read them, and write cells to a shared table; where copies disagree, the
better source is right. The lead may do all of it alone, or send workers, each with a share of the
open cells; it sees their cells only through what they return. So the team learns O1 (how many to
spawn), O4 (which copy to believe) and O5 (when to stop reading, return and submit).

The table is one and the same in every topology; they differ in who hands out shares and who is
told. In `debate` and `swarm` a worker that returns also tells its peers what it read of cells that
are not its own: who still has one open need not look for it.

Exact: how good a table is and the least reading that fills it (`gather.oracle`), what every agent
is worth (`gather.shapley`), and whose error was decisive (`gather.blame`).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal

from stretto.errors import StrettoError
from stretto.tasks.gather.fault import Flaw, flaw, spoilt
from stretto.tasks.gather.instance import (
    VOCABULARY,
    Index,
    Instance,
    document_count,
    generate,
    standing,
)
from stretto.tasks.gather.oracle import score_table
from stretto.tasks.gather.world import Mind, Notes, World, apply, new_world
from stretto.tasks.menus import deal, shares, size_of, team_sizes
from stretto.tasks.names import NAMES
from stretto.tasks.parameters import Seeded, require
from stretto.tasks.reporting import MEMORY, hand_up, peers, report_choice, say_nothing, written_down
from stretto.tasks.topology import (
    CRITIC,
    LEAD,
    SUBLEAD,
    WORKER,
    copied_to,
    middle_role,
    middle_seats,
    require_topology,
)
from stretto.tasks.words import number_word
from stretto.team.noise import key_of
from stretto.team.protocols import (
    Aggregate,
    Call,
    Choice,
    Effect,
    Harness,
    Message,
    Prices,
    Spawn,
    Stop,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event

MOST_HITS = 8
"""Most documents that a search shows at once; more of the same search show the further ones."""
MOST_SEARCHES = 3
"""Most cells that are offered for a search at once."""
MOST_WRITES = 4
"""Most values that are offered for writing at once."""
SUBMIT, RETURN = "submit as is", "return as is"
"""What ends the work of the lead, and of a worker.

Longer than a reading and shorter than a search, in letters and in words: whoever takes the longest
or the shortest choice gets nowhere.
"""
READ_SECONDS = 2.0
"""Virtual seconds that reading a document takes."""


class Gather(Seeded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One instance, and the rules of filling its table."""

    entities: int = 6
    """Rows of the table."""
    attributes: int = 3
    """Columns of the table."""
    cells_per_document: int = 3
    """Most cells that a document states."""
    redundancy: float = 2.0
    """How many times as many documents there are as are needed."""
    wrong: float = 0.4
    """Probability that a statement is wrong where a better source states the cell."""
    workers: int = 4
    """Most workers in an episode."""
    worker_cost: float = 0.01
    """Price of one spawned agent, in units of a perfect table."""
    second_cost: float = 0.004
    """Price of one virtual second, in units of a perfect table."""
    topology: str = "centralized"
    """One of `stretto.tasks.topology.NAMES`."""
    fault: Literal["read", "report"] | None = None
    """A planted fault in one cell (`gather.fault`): the best source on it states another value to
    whoever has it to fill, or the worker that fills it rightly writes another value."""
    seed: int = 0
    """Seed of the instance: names, values, documents."""

    def __post_init__(self) -> None:
        """Refuse rules that make no table, and more documents than there are names for."""
        require_topology(self.topology)
        checks = {
            "entities": self.entities >= 1,
            "attributes": 1 <= self.attributes <= len(VOCABULARY),
            "cells_per_document": 1 <= self.cells_per_document <= 12,
            "redundancy": 1 <= self.redundancy <= 10,
            "wrong": 0 <= self.wrong <= 1,
            "workers": 1 <= self.workers <= 999,
            "worker_cost": self.worker_cost >= 0,
            "second_cost": self.second_cost >= 0,
        }
        require(self, checks, _LIMITS, "table")
        names = self.entities + document_count(self.cells, self.cells_per_document, self.redundancy)
        if names > NAMES:
            what = f"{names} entities and documents are more than the {NAMES} names"
            raise StrettoError(what, "task.entities", "take fewer entities or less redundancy")

    @property
    def cells(self) -> int:
        """Number of cells of the table."""
        return self.entities * self.attributes

    @property
    def harness(self) -> Harness:
        """A lead, those whom it may send, and tools over documents and one shared table."""
        return _harness(self.topology)

    @property
    def prices(self) -> Prices:
        """Spawned agents and time."""
        return Prices(spawn=self.worker_cost, second=self.second_cost)

    def begin(self, seed: int) -> World:
        """An empty table; the lead knows which cells it has. Nothing is left to chance."""
        return new_world(instance_of(self))

    def apply(self, world: World, event: Event) -> None:
        """Tell the agent that the event reached what it says, and fill the shared table."""
        apply(world, event)

    def choose(self, world: World, team: Team, agent: AgentState) -> Choice | None:
        """An agent decides after every step of its own, and not while it waits for others.

        The order of its menu says nothing: it is dealt by instance, agent and turn.
        """
        if agent.open_children:
            return None
        mind = world.minds[agent.id]
        if agent.role in _MIDDLE:
            return report_choice(agent, _tally(mind))
        writes = _writable(mind)
        options = [("act", f"write {cell} {value}") for cell, value, _ in writes]
        options += [("act", f"read {name}") for name in mind.hits]
        if mind.skip:
            options.append(("act", "more"))
        options += [("act", f"search {cell}") for cell in islice(mind.unsearched, MOST_SEARCHES)]
        if agent.id == ROOT:
            if mind.untold and self.topology == "harness":
                options.append(("act", "read memory"))
            options += [("spawn", f"spawn {size}") for size in self._team_sizes(mind, agent)]
        options.append(("stop", SUBMIT if agent.id == ROOT else RETURN))
        deal(options, key_of(self.seed, f"menu {agent.id}#{mind.turns}"))
        types, candidates = zip(*options, strict=True)
        return Choice(_observe(mind, writes), candidates, types)

    def act(self, world: World, team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Call a tool, send workers, hand up what was found, or submit the table."""
        verb, _, rest = choice.partition(" ")
        mind = world.minds[agent.id]
        match verb:
            case "search":
                return (Call("search", {"q": rest, "k": MOST_HITS}),)
            case "more":
                return (Call("search", {"q": mind.focus, "k": MOST_HITS, "skip": mind.skip}),)
            case "read":
                memory = rest == "memory"
                return (Call("memory.read") if memory else Call("read", {"doc": rest}),)
            case "write":
                cell, _, value = rest.rpartition(" ")
                return (Call("write_cell", {"cell": cell, "value": value}),)
            case "spawn":
                return _send(self.topology, tuple(mind.open), size_of(rest))
            case "return" | "report" | "pass":
                return self._hand_up(team, agent, mind)
            case "leave" | "drop":
                return say_nothing(agent)
            case _:
                merged = (Aggregate(_listed(mind.filled)),) if agent.returns else ()
                return (*merged, Call("submit"))

    def react(self, world: World, team: Team, event: Event) -> Sequence[Effect]:
        """Who stands between sends workers at once; a submitted table ends the episode."""
        if event.kind == "tool_result" and event.tool == "submit":
            return (Stop(_filled(event.attrs["filled"]), {"filled": event.attrs["filled"]}),)
        if event.kind == "spawn" and event.attrs["role"] in _MIDDLE:
            return _team(self.topology, shares(event.attrs["cells"], event.attrs["below"]))
        return written_down(event) if self.topology == "harness" else ()

    def call(self, world: World, event: Event, key: int) -> ToolResult:
        """Search, read, write, submit, or use the shared memory; no tool is random."""
        facts = event.attrs
        match event.tool:
            case "search":
                return _search(self, world.instance, facts["q"], facts["k"], facts.get("skip", 0))
            case "read":
                return self._read(world, event.agent, facts["doc"])
            case "write_cell":
                return ToolResult("Written.", self._as_written(event.agent, facts))
            case "memory.write":
                return ToolResult("Written.", facts)
            case "memory.read":
                return _recall(world.memory)
            case _:
                filled = len(world.table)
                return ToolResult(_filled(filled), {"filled": filled})

    def scores(self, world: "World") -> Mapping[str, float]:
        """F1 by cell (also the outcome) and by row, and perfection; absent unless submitted."""
        if not world.submitted:
            return {}
        score = score_table(world.instance.truth, world.table)
        return {
            "outcome": score.item.f1,
            "item_f1": score.item.f1,
            "row_f1": score.row.f1,
            "success": float(score.success),
        }

    def _team_sizes(self, mind: Mind, agent: AgentState) -> tuple[str, ...]:
        """How many workers the lead may send while it has nothing in hand: halves of the most."""
        most = min(self.workers - max(agent.children, mind.sent), len(mind.open))
        if mind.hits or mind.notes or most < 1:
            return ()
        return team_sizes(most)

    def _hand_up(self, team: Team, agent: AgentState, mind: Mind) -> Sequence[Effect]:
        """Hand what was filled and left to the parent, and what was read to peers."""
        left = list(mind.open)
        facts = {"filled": dict(mind.filled), "left": left}
        up = hand_up(self.topology, agent, _handed(mind.filled, left), facts)
        if not mind.team:
            return up
        read = {cell: dict(sources) for cell, sources in mind.spare.items()}
        mates = peers(self.topology, team, agent, mind.number, mind.team)
        text = _noted(read)
        return (*(Message(path, text, {"read": read}) for path in mates), *up)

    def _read(self, world: World, agent: str, name: str) -> ToolResult:
        """A document as it is, but for the planted fault."""
        document = world.instance.documents[name]
        if self.fault == "read":
            document = spoilt(document, flaw_of(self), world.minds[agent].open)
        statements = dict(document.statements)  # the record keeps no part of the instance
        facts = {"doc": document.name, "title": document.title, "statements": statements}
        return ToolResult(document.text, facts)

    def _as_written(self, agent: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a cell is set to: what was chosen, but for the planted fault."""
        if self.fault != "report" or agent == ROOT:
            return facts
        planted, chosen = flaw_of(self), facts["value"]
        if facts["cell"] != planted.cell or chosen != instance_of(self).truth[planted.cell]:
            return facts
        return {"cell": planted.cell, "value": planted.value, "meant": chosen}


@lru_cache(maxsize=1024)
def instance_of(task: Gather) -> Instance:
    """Table and documents of a task, made once for all of its episodes."""
    return generate(
        entities=task.entities,
        attributes=task.attributes,
        cells_per_document=task.cells_per_document,
        redundancy=task.redundancy,
        wrong=task.wrong,
        seed=task.seed,
    )


@lru_cache(maxsize=256)
def _index(task: Gather) -> Index:
    return Index(instance_of(task).documents.values())


@lru_cache(maxsize=1024)
def flaw_of(task: Gather) -> Flaw:
    """What a planted fault spoils in a task: the same for every fault and topology."""
    return flaw(instance_of(task), task.seed)


def _search(task: Gather, instance: Instance, query: str, most: int, skip: int) -> ToolResult:
    """Documents from place `skip` on, and whether there are more than are shown."""
    names = _index(task).search(query, most + 1, skip)
    hits = {name: instance.documents[name].title for name in names[:most]}
    text = "; ".join(f"{name}, {title}" for name, title in hits.items()) or "Nothing found."
    facts = {"q": query, "hits": hits}
    if len(names) > most:
        return ToolResult(f"{text}; and more", {**facts, "more": skip + most})
    return ToolResult(text, facts)


def _recall(memory: Sequence[Event]) -> ToolResult:
    """All that was written down since the memory was read."""
    filled: dict[str, str] = {}
    for event in memory:
        filled |= event.attrs.get("filled", {})
    left = [cell for event in memory for cell in event.attrs.get("left", ())]
    causes = tuple(event.id for event in memory)
    return ToolResult(_handed(filled, left), {"filled": filled, "left": left}, causes=causes)


def _send(topology: str, cells: Sequence[str], size: int) -> tuple[Spawn, ...]:
    """Cut the open cells, row by row, into as many runs as there are workers."""
    runs = shares(cells, size)
    middle = middle_seats(topology, size)
    if not middle:
        return _team(topology, runs)
    parts = [(len(part), tuple(chain.from_iterable(part))) for part in shares(runs, middle)]
    role = middle_role(topology)
    return tuple(_spawn(role, part, {"below": below}) for below, part in parts)


def _team(topology: str, runs: Sequence[Sequence[str]]) -> tuple[Spawn, ...]:
    """A worker for every run of cells; who has peers knows its place among them."""
    size = len(runs)
    places = [
        {"number": number, "team": size} if copied_to(topology, size, number) else {}
        for number in range(size)
    ]
    return tuple(_spawn(WORKER, run, place) for run, place in zip(runs, places, strict=True))


def _spawn(role: str, cells: Sequence[str], more: Mapping[str, int]) -> Spawn:
    return Spawn(role, f"Find {', '.join(cells)}.", {"cells": list(cells), **more})


def _writable(mind: Mind) -> list[tuple[str, str, str]]:
    """Some cells, values and titles that were read: first of the focus, then the latest."""
    if not mind.notes:
        return []
    others = (cell for cell in reversed(mind.notes) if cell != mind.focus)
    cells = (mind.focus, *islice(others, MOST_WRITES)) if mind.focus in mind.notes else others
    rows = ((cell, *note) for cell in cells for note in _weightiest(mind.notes[cell]))
    return list(islice(rows, MOST_WRITES))


def _weightiest(sources: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Values of the best sources, as many as can be offered, in the order in which they came."""
    if len(sources) <= MOST_WRITES:
        return sources.items()
    ranked = sorted(sources, key=lambda value: standing(sources[value]), reverse=True)
    kept = set(ranked[:MOST_WRITES])
    return [note for note in sources.items() if note[0] in kept]


def _observe(mind: Mind, writes: Sequence[tuple[str, str, str]]) -> str:
    """What the agent sees: how much is open, what it found, what it read."""
    lines = [f"Open: {_count(len(mind.open))}."]
    if mind.focus:
        lines.append(f"Searched: {mind.focus}.")
    if mind.hits:
        hits = "; ".join(f"{name}, {title}" for name, title in mind.hits.items())
        lines.append(f"Found: {hits}.")
    if writes:
        notes = "; ".join(f"{cell} {value}, {title}" for cell, value, title in writes)
        lines.append(f"Read: {notes}.")
    return "\n".join(lines)


def _noted(notes: Notes) -> str:
    said = (f"{c} {v}, {title}" for c, sources in notes.items() for v, title in sources.items())
    return f"Read: {'; '.join(said) or 'nothing'}."


def _tally(mind: Mind) -> str:
    """What who stands between sees: how much its workers filled and left."""
    return f"Filled: {_count(len(mind.filled))}.\nOpen: {_count(len(mind.open))}."


def _handed(filled: Mapping[str, str], left: Sequence[str]) -> str:
    return _listed(filled) + (f" Not found: {', '.join(left)}." if left else "")


def _listed(filled: Mapping[str, str]) -> str:
    return f"Filled: {', '.join(f'{cell} {value}' for cell, value in filled.items()) or 'none'}."


def _filled(count: int) -> str:
    return f"The table has {_count(count)} filled."


def _count(cells: int) -> str:
    """How many cells, in words; from a thousand on they read alike."""
    if cells >= 1000:
        return "a thousand cells or more"
    return f"{number_word(cells) if cells else 'no'} cell{'' if cells == 1 else 's'}"


_LIMITS = (
    f"entities >= 1, attributes 1 to {len(VOCABULARY)}, cells_per_document 1 to 12, "
    "redundancy 1 to 10, wrong 0 to 1, workers 1 to 999, costs >= 0"
)
_MIDDLE = (CRITIC, SUBLEAD)


@lru_cache(maxsize=8)
def _harness(topology: str) -> Harness:
    roles = {LEAD: "sends workers or does the work itself, and submits the table"}
    if topology == "hierarchical":
        roles[SUBLEAD] = "sends workers and reports what they filled"
    if topology == "planner_executor_critic":
        roles[CRITIC] = "passes what workers filled on to the lead, or drops it"
    roles[WORKER] = "fills its share of the cells and returns them"
    tools = {
        "search": ToolSpec(latency=1.0, trusted=False),
        "read": ToolSpec(latency=READ_SECONDS, trusted=False),
        "write_cell": ToolSpec(latency=0.1),
        "submit": ToolSpec(latency=0.1),
    }
    if topology == "harness":
        tools |= MEMORY
    return Harness(
        system=(
            "You fill a table from documents. Where they disagree, a register is better than a "
            "survey, a survey than a letter, a letter than a rumour, and of two alike the later "
            "is right."
        ),
        root=LEAD,
        roles=roles,
        tools=tools,
        topology=topology,
    )
