"""Private-input agreement, colouring and costs (F4): only neighbours talk, and all must fit.

Every member of a graph knows its own input only (`agree.instance`). Time runs in rounds of a
second: in each, a member shares all that it knows with those to whom it may write, proposes a
colour to them, waits, or commits to its answer for good. There are four problems:

- `majority`, `maximum`: all must commit to the same function of *all* inputs (a consensus without
  inputs is reached by saying nothing). A fixed answer of the whole team is the majority in every
  second instance: that is what chance scores (`agree.scripts.yardstick`). It is never the maximum,
  since who has heard of nobody can commit to its own number only;
- `colouring`: no two neighbours may commit to one colour, near the threshold of colourability;
- `cost`: the weights of pairs that are coloured alike and the prices of colours must be least.

`topology` is the independent variable: it says who may write to whom. So the team learns O3 (what
to pass on, and for how long) and O5 (when enough is known to commit). Exact: the answers and least
costs (`agree.solve`), least rounds and messages, Shapley values, which messages of a trace said
anything new, and whose lie was decisive (`agree.oracle`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from stretto.tasks.agree.instance import COLOURS, Instance, generate, talk_edges
from stretto.tasks.agree.solve import (
    agreed,
    assignment_cost,
    best_assignment,
    eccentricity,
    random_cost,
)
from stretto.tasks.menus import shuffled, size_of
from stretto.tasks.parameters import Seeded, require
from stretto.tasks.reporting import MEMORY
from stretto.tasks.topology import require_topology
from stretto.tasks.words import number_word
from stretto.team.noise import key_of
from stretto.team.protocols import (
    Aggregate,
    Call,
    Choice,
    Despawn,
    Effect,
    Harness,
    Message,
    Prices,
    Return,
    Spawn,
    Stop,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event

ROUND_SECONDS = 1.0
"""Virtual seconds of a round."""
MOST_NUMBERS = 4
"""Most numbers that a member is offered to commit to."""
MORE_ROUNDS = 2
"""Rounds beyond the number of members after which a member must commit."""
MEMBER = "member"


class Agree(Seeded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One graph of members, and what they must agree on."""

    problem: Literal["majority", "maximum", "colouring", "cost"] = "majority"
    """What all commits together must be."""
    members: int = 7
    """How many members the graph has; odd where a majority is wanted."""
    degree: float = 4.5
    """Mean number of neighbours; the partial 2-trees of `cost` have their own."""
    topology: str = "swarm"
    """One of `stretto.tasks.topology.NAMES`: who may write to whom; in a swarm, neighbours."""
    fault: Literal["lie"] | None = None
    """A planted fault: a member whose input decides the consensus tells a wrong one."""
    seed: int = 0
    """Seed of the instance: graph and inputs."""

    def __post_init__(self) -> None:
        """Refuse rules that make no problem."""
        require_topology(self.topology)
        odd = self.members % 2 == 1 or self.problem != "majority"
        checks = {
            "members": 2 <= self.members <= (150 if self.problem == "colouring" else 900) and odd,
            "degree": 2 <= self.degree <= 6,
            "fault": self.fault is None or self.problem in ("majority", "maximum"),
        }
        require(self, checks, _LIMITS)

    @property
    def harness(self) -> Harness:
        """Somebody who calls the members and closes, and the members."""
        return _harness(self.problem, self.members, self.topology)

    @property
    def prices(self) -> Prices:
        """Nothing costs: rounds and messages are measured."""
        return Prices()

    def begin(self, seed: int) -> "World":
        """Nobody is called yet. Nothing is left to chance."""
        return World(instance_of(self))

    def apply(self, world: "World", event: Event) -> None:
        """Put what is written into the reader's inbox, to be read when its round is over."""
        _learn(self, world, event)

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """A member decides once a round; who calls them waits for all commits."""
        if agent.open_children:
            return None
        if agent.id == ROOT:
            return Choice("Call the members, or close.", ("close",) if world.minds else ("call",))
        mind = world.minds[agent.id]
        if mind.committed:
            return None
        commits = self._commits(mind)
        talk: list[str] = []
        if mind.round < self.members + MORE_ROUNDS:
            talk = ["share", "wait"]
            if self.problem in ("colouring", "cost"):
                talk += [f"propose {colour}" for colour in COLOURS]
        types = ["act" if choice == "wait" else "communicate" for choice in talk]
        return Choice(_observe(mind), (*talk, *commits), (*types, *["stop"] * len(commits)))

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Write to whom one may, and wait for the round to end; or commit."""
        verb, _, rest = choice.partition(" ")
        match verb:
            case "call":
                briefs = ((n, f"You are {name_of(n)}.") for n in range(self.members))
                return tuple(Spawn(MEMBER, text, {"number": n}) for n, text in briefs)
            case "close":
                return (Aggregate("All have committed."), Stop("Closed."))
            case "commit":
                value = _value(rest)
                return (Return(f"I commit to {rest}.", {"value": value}), Despawn(agent.id))
            case "wait":
                return self._round()
            case _:
                mind = world.minds[agent.id]
                takes = {str(mind.number): rest} if verb == "propose" else {}
                facts = self._told(mind) if verb == "share" else {}
                return self._write(team, mind, {"facts": facts, "takes": takes})

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """Nothing follows without a decision."""
        return ()

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """Wait for the end of a round, or use the shared memory."""
        if event.tool == "memory.write":
            return ToolResult("Written.", event.attrs)
        if event.tool == "round":
            return ToolResult("The round is over.")
        facts: dict[str, str] = {}
        takes: dict[str, str] = {}
        for _, written in world.memory:
            facts |= written["facts"]
            takes |= written["takes"]
        causes = tuple(source for source, _ in world.memory)
        text = " ".join(facts.values()) or "Nothing."
        return ToolResult(text, {"facts": facts, "takes": takes}, causes=causes)

    def scores(self, world: "World") -> Mapping[str, float]:
        """Outcome 1 where all is as well as can be, never below 0.

        Consensus: the share of members who are right (also `right`), less the share that is right
        where each member guesses on its own. Members who all guess alike are right together or not
        at all: in a majority that earns 1 in every second instance, so ½ is what chance scores.
        Else: how far the cost lies below that of random colours, on the way to the optimum; who
        did not commit makes it 0. `success`: all right, or the optimum. Absent unless closed.
        """
        if not world.closed:
            return {}
        if self.problem in ("majority", "maximum"):
            truth = agreed(self.problem, world.instance.inputs)
            right = sum(value == truth for value in world.commits.values()) / self.members
            guess = 0.5 if self.problem == "majority" else 1 / self.members
            outcome = max(0.0, (right - guess) / (1 - guess))
            return {"outcome": outcome, "success": float(right == 1), "right": right}
        if len(world.commits) < self.members:
            return {"outcome": 0.0, "success": 0.0}
        low, best = anchors(self)
        cost = assignment_cost(world.instance, world.commits)
        return {
            "outcome": max(0.0, (low - cost) / (low - best)),
            "success": float(cost == best),
        }

    def _commits(self, mind: "Mind") -> list[str]:
        if self.problem == "maximum":
            known = set(heard_inputs(mind).values())
            words = [number_word(number) for number in sorted(known)[-MOST_NUMBERS:]]
        else:
            words = list(COLOURS[:2] if self.problem == "majority" else COLOURS)
        return [f"commit {w}" for w in shuffled(words, self.seed, f"commit {mind.number}")]

    def _told(self, mind: "Mind") -> dict[str, str]:
        """All facts that a member knows; its own is another where the fault lies with it."""
        told = dict(mind.facts)
        if self.fault and mind.number == culprit(self):
            told[str(mind.number)] = lie_of(self)
        return told

    def _write(self, team: Team, mind: "Mind", content: Mapping[str, Any]) -> Sequence[Effect]:
        if self.topology == "harness":
            return (Call("memory.write", content), *self._round())
        told = content["facts"] or {n: f"{name_of(int(n))} takes {c}." for n, c in
                                    content["takes"].items()}  # fmt: skip
        text = " ".join(told.values())
        paths = (f"{ROOT}/{other}" for other in talk_of(self)[mind.number])
        mail = tuple(Message(path, text, content) for path in paths if path in team.agents)
        return (*mail, *self._round())

    def _round(self) -> tuple[Call]:
        tool = "memory.read" if self.topology == "harness" else "round"
        return (Call(tool, latency=ROUND_SECONDS),)


@dataclass(slots=True)
class Mind:
    """What one member knows: only what its own events told it."""

    number: int
    facts: dict[str, str]
    """Member to what is known about it, as a sentence; the first word counts."""
    takes: dict[str, str] = field(default_factory=dict)
    """Member to the colour that it last proposed."""
    inbox: list[Mapping[str, Any]] = field(default_factory=list)
    """What came in during the round."""
    round: int = 0
    committed: bool = False


@dataclass(slots=True)
class World:
    """One episode."""

    instance: Instance
    minds: dict[str, Mind] = field(default_factory=dict)
    """What each member knows, by its path."""
    commits: dict[int, int] = field(default_factory=dict)
    """Member to its answer."""
    memory: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """The shared memory: the event that wrote, and what."""
    closed: bool = False


@lru_cache(maxsize=64)
def _instance(problem: str, members: int, degree: float, seed: int) -> Instance:
    return generate(problem, members, degree, seed)


def instance_of(task: Agree) -> Instance:
    """Graph and inputs of a task: the same under every topology and fault."""
    return _instance(task.problem, task.members, task.degree, task.seed)


@lru_cache(maxsize=64)
def talk_of(task: Agree) -> tuple[tuple[int, ...], ...]:
    """The members to whom each may write; nobody, where there is a shared memory."""
    return talk_edges(task.topology, instance_of(task), task.members)


@lru_cache(maxsize=64)
def rounds_needed(task: Agree) -> int:
    """Rounds after which everybody can know everything, and not earlier."""
    return 1 if task.topology == "harness" else eccentricity(talk_of(task))


@lru_cache(maxsize=64)
def anchors(task: Agree) -> tuple[float, float]:
    """Expected cost of random colours, and the least cost."""
    instance = instance_of(task)
    best = assignment_cost(instance, best_assignment(instance, task.members))
    return random_cost(instance), best


@lru_cache(maxsize=64)
def culprit(task: Agree) -> int:
    """The member with whom the planted fault lies: drawn from those whose input is the answer.

    The margin is one, so each of them is decisive.
    """
    inputs = instance_of(task).inputs
    truth = agreed(task.problem, inputs)
    able = [member for member, given in enumerate(inputs) if given == truth]
    return able[key_of(task.seed, "culprit") % len(able)]


def heard_inputs(mind: "Mind") -> dict[int, int]:
    """Member to its input, as far as somebody knows or believes."""
    return {
        int(member): _value(fact.rstrip(".").split(": ")[1]) for member, fact in mind.facts.items()
    }


def name_of(member: int) -> str:
    """Members are called by their numbers, from one: who is who is part of the problem."""
    return number_word(member + 1)


def lie_of(task: Agree) -> str:
    """What the member with whom the planted fault lies says of itself, as a sentence."""
    liar = culprit(task)
    if task.problem == "maximum":
        return _fact(liar, number_word(0))
    return _fact(liar, COLOURS[1 - instance_of(task).inputs[liar]])


def _fact(member: int, given: str) -> str:
    return f"{name_of(member)}: {given}."


def own_fact(task: Agree, member: int) -> str:
    """What a member knows at first, as a sentence."""
    instance = instance_of(task)
    if task.problem == "majority":
        return _fact(member, COLOURS[instance.inputs[member]])
    if task.problem == "maximum":
        return _fact(member, number_word(instance.inputs[member]))
    pairs = instance.neighbours(member)
    if task.problem == "colouring":
        return f"{name_of(member)} beside {', '.join(name_of(other) for other, _ in pairs)}."
    weights = ", ".join(f"{name_of(other)} at {number_word(w)}" for other, w in pairs)
    prices = zip(COLOURS, instance.prices[member], strict=True)
    costs = ", ".join(f"{colour} {number_word(price)}" for colour, price in prices)
    return f"{name_of(member)} beside {weights}; {costs}."


def _learn(task: Agree, world: World, event: Event) -> None:
    match event.kind:
        case "spawn":
            number = event.attrs["number"]
            world.minds[event.to or ""] = Mind(number, {str(number): own_fact(task, number)})
        case "message":
            world.minds[event.to or ""].inbox.append(event.attrs)
        case "tool_result":
            _resulted(world, event)
        case "return":
            mind = world.minds[event.agent]
            mind.committed = True
            world.commits[mind.number] = event.attrs["value"]
        case "stop":
            world.closed = True
        case _:
            pass


def _resulted(world: World, event: Event) -> None:
    if event.tool == "memory.write":
        world.memory.append((event.id, event.attrs))
        return
    mind = world.minds[event.agent]
    mind.round += 1
    read = [event.attrs] if event.tool == "memory.read" else mind.inbox
    for content in read:
        facts = content.get("facts", {})
        if not facts.keys() <= mind.facts.keys():  # most of what is told is known
            mind.facts |= {
                member: fact for member, fact in facts.items() if member not in mind.facts
            }
        mind.takes |= content.get("takes", {})
    mind.inbox = []


def _observe(mind: Mind) -> str:
    lines = [f"You are {name_of(mind.number)}.", f"Round: {number_word(mind.round)}."]
    lines += mind.facts.values()
    lines += [f"{name_of(int(other))} takes {colour}." for other, colour in mind.takes.items()]
    return "\n".join(lines)


def _value(word: str) -> int:
    return COLOURS.index(word) if word in COLOURS else size_of(word)


_LIMITS = (
    "members 2 to 900, of a colouring to 150 (exact in seconds up to there), odd for a majority; "
    "degree 2 to 6; faults only for majority and maximum"
)
_WANTED = {
    "majority": "All must commit to the colour that most have.",
    "maximum": "All must commit to the largest number.",
    "colouring": "No two beside each other may commit to one colour.",
    "cost": "Two beside each other with one colour cost what stands there; colours cost their "
    "price; all together must cost least.",
}


@lru_cache(maxsize=64)
def _harness(problem: str, members: int, topology: str) -> Harness:
    tools = {"round": ToolSpec(latency=ROUND_SECONDS)}
    return Harness(
        system=f"You are one of {number_word(members)} members. {_WANTED[problem]}",
        root="lead",
        roles={"lead": "calls the members and closes", MEMBER: "shares, proposes and commits"},
        tools=MEMORY if topology == "harness" else tools,
        topology=topology,
    )
