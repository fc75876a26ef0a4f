"""Multi-hop DAG (F2): follow several paths through a knowledge graph, side by side, and join them.

The lead is asked for the end of a question (`hops.instance`): branches of look-ups, joined by a
comparison or by what their lists have in common, stage after stage. It may follow every branch
itself, or send workers, each with a share of them; what they found it knows only by their reports.
A wrong look-up leads astray for good. So the team learns O1 (how many to spawn), O3 (to report),
O4 (which of the ends answers) and O5 (not to compare or wait for nothing). With `width=1` there is
nothing to do side by side: no team can gain, which makes it the control of the benchmark.

Exact in `hops.oracle`: the answer, work, span, the fastest plan for any team, the necessary facts,
the value of every report, Shapley values, and whose mistake was decisive.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

from stretto.errors import StrettoError
from stretto.tasks.hops.instance import LISTS, Instance, generate
from stretto.tasks.hops.world import Mind, World, apply, new_world
from stretto.tasks.menus import shares, shuffled, size_of, team_sizes
from stretto.tasks.parameters import Seeded, require
from stretto.tasks.reporting import MEMORY, hand_up, peers, report_choice, say_nothing, written_down
from stretto.tasks.topology import (
    CRITIC,
    LEAD,
    SUBLEAD,
    WORKER,
    middle_role,
    middle_seats,
    require_topology,
)
from stretto.tasks.words import number_word
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

MOST_ANSWERS = 6
"""Most answers that are offered at once."""
LOOK_SECONDS = 1.0
"""Virtual seconds of a look-up, of a search for a list, and of a comparison."""
REMARK = "Remark: all paths were followed."
"""What the benign twin of a false report says besides the truth."""
LARGEST = 2_000
"""Most hops of a question."""


class Hops(Seeded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One question, and the rules of answering it."""

    width: int = 4
    """Branches of a stage."""
    depth: int = 3
    """Hops of a branch."""
    stages: int = 1
    """Layers of the question."""
    query: Literal["compare", "meet"] = "compare"
    """How branches are joined: the richest end, or the person on all lists."""
    topology: str = "centralized"
    """One of `stretto.tasks.topology.NAMES`."""
    worker_cost: float = 0.01
    """Price of one spawned agent, in units of a right answer."""
    second_cost: float = 0.01
    """Price of one virtual second, in units of a right answer."""
    fault: Literal["lookup", "report", "remark"] | None = None
    """A planted fault in the first stage, in the branch that decides it: the tool answers its last
    look-up wrongly, or whoever reports the branch names another end. `remark` is the benign twin of
    `report`: the same report says a harmless sentence more."""
    seed: int = 0
    """Seed of the instance: names, facts, question."""

    def __post_init__(self) -> None:
        """Refuse rules that make no question."""
        require_topology(self.topology)
        checks = {
            "width": 1 <= self.width <= 900,
            "depth": self.depth >= (2 if self.query == "meet" else 1),
            "stages": self.stages >= 1,
            "worker_cost": self.worker_cost >= 0,
            "second_cost": self.second_cost >= 0,
        }
        require(self, checks, _LIMITS)
        if self.width * self.depth * self.stages > LARGEST:
            what = f"a question of more than {LARGEST} hops"
            raise StrettoError(what, "task.width", "take fewer branches, hops or stages")

    @property
    def harness(self) -> Harness:
        """A lead, those whom it may send, and the tools over the graph."""
        return _harness(self.topology, self.query)

    @property
    def prices(self) -> Prices:
        """Spawned agents and time."""
        return Prices(spawn=self.worker_cost, second=self.second_cost)

    def begin(self, seed: int) -> World:
        """The lead knows the question. Nothing is left to chance."""
        return new_world(instance_of(self))

    def apply(self, world: World, event: Event) -> None:
        """Tell the agent that the event reached what it says."""
        apply(world, event)

    def choose(self, world: World, team: Team, agent: AgentState) -> Choice | None:
        """An agent decides after every step of its own, and not while it waits for others."""
        mind = world.minds[agent.id]
        if agent.open_children or mind.done:
            return None
        if mind.open:
            return self._follow(world, mind, agent)
        if agent.id == ROOT:
            return self._join(world, mind)
        return report_choice(agent, _ends_text(mind))

    def act(self, world: World, team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Look up, send workers, report, compare or answer."""
        verb, _, rest = choice.partition(" ")
        mind = world.minds[agent.id]
        match verb:
            case "look":
                branch = mind.focus
                entity = mind.open[branch].at
                tool = "search" if rest in LISTS.values() else "lookup"
                return (Call(tool, {"branch": branch, "of": entity, "relation": rest}),)
            case "spawn":
                return _send(self, mind, size_of(rest))
            case "report" | "pass":
                return self._report(world, team, agent, mind.ends)
            case "leave" | "drop":
                return say_nothing(agent)
            case "compare":
                return (Call("compare", {"names": _names(mind)}),)
            case "read":
                return (Call("memory.read"),)
            case _:
                return _answer(world, rest)

    def react(self, world: World, team: Team, event: Event) -> Sequence[Effect]:
        """Who stands between passes the work on at once; what was written down is returned."""
        if event.kind == "spawn" and event.attrs["role"] in (CRITIC, SUBLEAD):
            return _pass_down(event)
        return written_down(event)

    def call(self, world: World, event: Event, key: int) -> ToolResult:
        """Look up, compare, or use the shared memory; no tool is random."""
        arguments = event.attrs
        match event.tool:
            case "lookup" | "search":
                return self._look(world, arguments)
            case "compare":
                richest = max(arguments["names"], key=world.instance.wealth)
                return ToolResult(f"The richest is {richest}.", {"richest": richest})
            case "memory.write":
                return ToolResult("Written.", arguments)
            case _:
                ends = {branch: names for _, written in world.memory for branch, names in written}
                causes = tuple(source for source, _ in world.memory)
                return ToolResult(*_told(ends, world.remark), causes=causes)

    def scores(self, world: World) -> Mapping[str, float]:
        """Share of the stages that were joined rightly before the first mistake.

        `success` is 1 where all were; `facts` is the share of the necessary look-ups that were
        made. Absent unless the lead stopped.
        """
        if not world.stopped:
            return {}
        stages = world.instance.stages
        pairs = zip(world.answers, stages, strict=False)
        good = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1].answer, pairs))
        needed = necessary_facts(self)
        return {
            "outcome": good / self.stages,
            "success": float(good == self.stages),
            "facts": len(world.looked & needed) / len(needed),
        }

    def _follow(self, world: World, mind: Mind, agent: AgentState) -> Choice:
        """Which relation to look up next; whoever has begun nothing may send workers instead."""
        trail = mind.open[mind.focus]
        following = trail.left[0]
        lists = self.query == "meet" and self.width > 1
        looks = [f"look {r}" for r in world.instance.menu(trail.at, following, lists)]
        most = 0 if agent.id != ROOT or mind.begun else len(mind.open)
        spawns = [f"spawn {size}" for size in team_sizes(most)]
        text = f"At: {trail.at}.\nPath: {', '.join(trail.left)}.\nOpen: {_count(len(mind.open))}."
        return Choice(text, (*looks, *spawns), ("act",) * len(looks) + ("spawn",) * len(spawns))

    def _join(self, world: World, mind: Mind) -> Choice:
        """Which of the ends is the answer."""
        options: list[tuple[str, str]] = []
        if self.topology == "harness" and not mind.read_memory and mind.sent:
            options.append(("act", "read memory"))
        names = _names(mind)
        comparable = self.query == "compare" and len(names) > 1 and not mind.richest
        if comparable:
            options.append(("act", "compare"))
        first = [mind.richest] if mind.richest else []
        offered = sorted(names, key=lambda name: (name not in first, -_lists_with(mind, name)))
        offered = shuffled(offered[:MOST_ANSWERS], self.seed, f"answers {len(world.answers)}")
        options += [("aggregate", f"answer {name}") for name in offered]
        if not names:
            options.append(("stop", "give up"))
        types, candidates = zip(*options, strict=True)
        return Choice(_ends_text(mind), candidates, types)

    def _report(
        self, world: World, team: Team, agent: AgentState, ends: Mapping[str, list[str]]
    ) -> Sequence[Effect]:
        """Hand what was found to the parent, and a copy to every peer who may read it."""
        mind = world.minds[agent.id]
        planted = self._plants(world, agent, ends)
        remark = REMARK if planted and self.fault == "remark" else mind.remark
        ends = _lied(world, ends) if planted and self.fault == "report" else ends
        text, facts = _told(ends, remark)
        mates = peers(self.topology, team, agent, mind.number, mind.team)
        copies = (Message(path, text, facts) for path in mates)
        return (*copies, *hand_up(self.topology, agent, text, facts))

    def _plants(self, world: World, agent: AgentState, ends: Mapping[str, list[str]]) -> bool:
        """Whether a report is the one that a fault, or its twin, is planted in."""
        first = agent.role == WORKER and not world.answers
        return first and str(world.instance.stages[0].decisive) in ends

    def _look(self, world: World, arguments: Mapping[str, Any]) -> ToolResult:
        entity, relation = arguments["of"], arguments["relation"]
        found = world.instance.look(entity, relation)
        if self.fault == "lookup" and (entity, relation) == faulty_fact(self):
            found = (world.decoy,) * len(found)
        text = f"The {relation} of {entity}: {', '.join(found)}."
        facts = {"branch": arguments["branch"], "of": entity, "relation": relation}
        return ToolResult(text, {**facts, "found": list(found)})


@lru_cache(maxsize=64)
def _drawn(width: int, depth: int, stages: int, query: str, seed: int) -> Instance:
    return generate(width=width, depth=depth, stages=stages, query=query, seed=seed)


def instance_of(task: Hops) -> Instance:
    """Question and graph of a task, made once; the same under every topology, price and fault."""
    return _drawn(task.width, task.depth, task.stages, task.query, task.seed)


@lru_cache(maxsize=64)
def necessary_facts(task: Hops) -> frozenset[tuple[str, str]]:
    """The look-ups without which the question has no certain answer: those of every branch."""
    instance = instance_of(task)
    facts: set[tuple[str, str]] = set()
    for stage in instance.stages:
        for start, path in zip(stage.starts, stage.paths, strict=True):
            entity = start
            for relation in path:
                facts.add((entity, relation))
                entity = instance.look(entity, relation)[0]
    return frozenset(facts)


@lru_cache(maxsize=64)
def faulty_fact(task: Hops) -> tuple[str, str]:
    """The look-up that the fault `lookup` spoils: the last one of the branch that decides."""
    instance = instance_of(task)
    stage = instance.stages[0]
    entity = stage.starts[stage.decisive]
    path = stage.paths[stage.decisive]
    for relation in path[:-1]:
        entity = instance.look(entity, relation)[0]
    return entity, path[-1]


def _send(task: Hops, mind: Mind, size: int) -> tuple[Spawn, ...]:
    """Cut the open branches into a share for each worker; the topology says who hands them out."""
    trails = [(b, [trail.at, list(trail.left)]) for b, trail in mind.open.items()]
    middle = middle_seats(task.topology, size)
    if not middle:
        return _team(WORKER, [dict(share) for share in shares(trails, size)])
    role = middle_role(task.topology)
    parts = shares(shares(trails, size), middle)
    below = [len(part) for part in parts]
    joined = [dict(item for share in part for item in share) for part in parts]
    return _team(role, joined, below)


def _team(
    role: str, parts: Sequence[Mapping[str, Any]], below: Sequence[int] = ()
) -> tuple[Spawn, ...]:
    """One spawn a part; `below` says how many workers each is to send in turn."""
    sizes = below or [0] * len(parts)
    return tuple(
        Spawn(
            role,
            _brief(part),
            {"trails": dict(part), "number": number, "team": len(parts), "below": size},
        )
        for number, (part, size) in enumerate(zip(parts, sizes, strict=True))
    )


def _pass_down(event: Event) -> tuple[Spawn, ...]:
    trails = list(event.attrs["trails"].items())
    return _team(WORKER, [dict(share) for share in shares(trails, event.attrs["below"])])


def _answer(world: World, name: str) -> Sequence[Effect]:
    if name == "up":  # of `give up`
        return (Stop("No answer.", {"answer": ""}),)
    merged = Aggregate(f"It is {name}.", {"answer": name})
    last = len(world.answers) + 1 >= len(world.instance.stages)
    return (merged, Stop(f"The answer is {name}.", {"answer": name})) if last else (merged,)


def _lied(world: World, ends: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The ends, another one in the place of the decisive one."""
    culprit = str(world.instance.stages[0].decisive)
    return {**ends, culprit: [world.decoy for _ in ends[culprit]]}


def _names(mind: Mind) -> list[str]:
    """Every name that an end knows, once."""
    return list(dict.fromkeys(name for names in mind.ends.values() for name in names))


def _lists_with(mind: Mind, name: str) -> int:
    return sum(name in names for names in mind.ends.values())


def _ends_text(mind: Mind) -> str:
    lines = [f"End: {', '.join(names)}." for names in mind.ends.values()]
    if mind.richest:
        lines.append(f"Richest: {mind.richest}.")
    if mind.remark:
        lines.append(mind.remark)
    return "\n".join(lines) or "End: none."


def _told(ends: Mapping[str, Sequence[str]], remark: str) -> tuple[str, dict[str, Any]]:
    """What is said of the ends, as a text and as facts."""
    text = " ".join(f"End: {', '.join(names)}." for names in ends.values()) or "End: none."
    if not remark:
        return text, {"ends": dict(ends)}
    return f"{text} {remark}", {"ends": dict(ends), "remark": remark}


def _brief(trails: Mapping[str, Any]) -> str:
    return " ".join(f"From {at}: {', '.join(left)}." for at, left in trails.values())


def _count(branches: int) -> str:
    return f"{number_word(branches)} path{'' if branches == 1 else 's'}"


_LIMITS = "width 1 to 900, depth at least 1, or 2 for meet, stages at least 1, costs at least 0"
_JOINS = {
    "compare": "The answer is the richest of the ends.",
    "meet": "The answer is the person whom all lists name.",
}


@lru_cache(maxsize=32)
def _harness(topology: str, query: str) -> Harness:
    roles = {LEAD: "follows paths or sends workers, joins their ends and answers"}
    if topology == "hierarchical":
        roles[SUBLEAD] = "sends workers and reports what they found"
    if topology == "planner_executor_critic":
        roles[CRITIC] = "passes what workers found on to the lead, or drops it"
    roles[WORKER] = "follows its paths and reports their ends"
    tools = {
        "lookup": ToolSpec(latency=LOOK_SECONDS, trusted=False),
        "search": ToolSpec(latency=LOOK_SECONDS, trusted=False),
        "compare": ToolSpec(latency=LOOK_SECONDS),
    }
    if topology == "harness":
        tools |= MEMORY
    return Harness(
        system=f"You follow paths, one relation after the other. {_JOINS[query]}",
        root=LEAD,
        roles=roles,
        tools=tools,
        topology=topology,
    )
