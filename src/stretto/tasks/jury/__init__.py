"""Bayesian debate (F5): a judge hears witnesses, some of whom copy and some of whom lie.

A colour is hidden. Every witness has one piece of evidence, which shows the right colour with a
probability that its kind tells (`KINDS`), else any other. Some witnesses have the *same* piece as
another (a copy: it counts once), and `liars` of them, nobody knows who, say another colour than
they saw. A claim names its piece of evidence, so copies can be told; two claims that name one
piece and differ show that somebody lies. The judge calls the witnesses, hears what reaches it, and
votes. So the team learns O3 (to say what one saw, not what others said), O4 (to weigh, not to
count) and O5. What each witness knows is private: alone, the judge can only guess.

In the topologies `debate` and `swarm` witnesses hear each other before they speak to the judge:
who then follows the crowd destroys what it knows. Exact: the posterior, the best vote, what every
claim is worth, the judge's regret and the decisive lie (`jury.oracle`), how often votes are right
and Shapley values (`jury.accuracy`), the same when the strongest lie (`jury.robust`), and the score
of an episode without its luck (`jury.luck`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Literal

from msgspec import Struct

from stretto.tasks.menus import invented, shares, shuffled
from stretto.tasks.parameters import Seeded, require
from stretto.tasks.reporting import MEMORY, hand_up, report_choice, say_nothing, written_down
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
from stretto.team.noise import key_of, uniform
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

COLOURS = ("red", "blue", "green", "white")
KINDS: Mapping[str, float] = {"keen": 0.85, "fair": 0.7, "dim": 0.55, "faint": 0.51}
"""Kind of evidence to the probability that it shows the right colour."""
DRAWN = ("keen", "fair", "dim")
"""The kinds that are drawn for a piece that is not faint."""
LIES: Mapping[str, int] = {"lie": 1, "two_lies": 2, "three_lies": 3}
"""Planted fault to the number of witnesses, strongest first, who lie."""
REMARK = "The sky was clear that day."
"""What the strongest witness adds to its claim where the planted fault is only a remark."""
TABLE = 12
"""Most witnesses who debate with each other; more of them sit at several tables, or what is said
would grow with their square."""
DEBATES = ("debate", "swarm")
"""Topologies in which witnesses hear each other before they speak to the judge."""


class Jury(Seeded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one case; what is hidden and seen is part of the chance."""

    classes: int = 3
    """How many colours it may be, all alike."""
    witnesses: int = 7
    """How many witnesses there are."""
    copies: int = 2
    """How many of them have the same piece of evidence as another."""
    liars: int = 1
    """How many of them lie, drawn anew in every episode; the number is known to all."""
    faint: int = 0
    """How many pieces of evidence are faint, that is, show hardly anything; others never are."""
    topology: str = "centralized"
    """One of `stretto.tasks.topology.NAMES`."""
    fault: Literal["lie", "two_lies", "three_lies", "remark"] | None = None
    """A planted fault: the strongest witnesses lie, and nobody else; the judge knows `liars`.

    `remark` is the benign twin: the strongest witness adds words to its claim that say nothing.
    """
    seed: int = 0
    """Seed of the case: who has which piece of evidence, and of what kind."""

    def __post_init__(self) -> None:
        """Refuse rules that make no case."""
        require_topology(self.topology)
        checks = {
            "classes": 2 <= self.classes <= len(COLOURS),
            "witnesses": 1 <= self.witnesses <= 900,
            "copies": 0 <= self.copies < self.witnesses,
            "liars": 0 <= self.liars <= self.witnesses,
            "faint": 0 <= self.faint <= self.witnesses - self.copies,
            "fault": self.lies <= self.witnesses,
        }
        require(self, checks, _LIMITS)

    @property
    def harness(self) -> Harness:
        """A judge, witnesses, and what each can look at."""
        return _harness(self.topology, self.classes, self.liars, self.faint > 0)

    @property
    def lies(self) -> int:
        """How many planted lies there are."""
        return LIES.get(self.fault or "", 0)

    @property
    def prices(self) -> Prices:
        """Nothing costs."""
        return Prices()

    def begin(self, seed: int) -> "World":
        """Draw the hidden colour, what every piece of evidence shows, who lies and how."""
        case = case_of(self)
        hidden = key_of(seed, "hidden") % self.classes
        seen = [_shown(self, seed, hidden, item) for item in range(len(case.kinds))]
        drawn = shuffled([str(n) for n in range(self.witnesses)], seed, "liars")[: self.liars]
        liars = case.strongest[: self.lies] if self.lies else [int(n) for n in drawn]
        lies = {n: _other(self, seed, f"lie {n}", seen[case.holds[n]]) for n in liars}
        return World(case, hidden, seen, lies)

    def apply(self, world: "World", event: Event) -> None:
        """Tell the agent that the event reached what it says."""
        _learn(world, event)

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The judge votes when nobody is out; a witness speaks when it has seen its evidence."""
        mind = world.minds[agent.id]
        if agent.open_children or mind.done:
            return None
        colours = COLOURS[: self.classes]
        if agent.id == ROOT:
            return self._judge(mind, colours)
        if agent.role != WORKER:
            return report_choice(agent, _claims_text(self, mind.claims))
        says = [f"say {colour}" for colour in shuffled(colours, self.seed, f"say {mind.number}")]
        text = _sight_text(self, mind)
        return Choice(text, (*says, "stay silent"), ("communicate",) * (len(says) + 1))

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Call the witnesses, speak, pass on, or vote."""
        verb, _, rest = choice.partition(" ")
        mind = world.minds[agent.id]
        match verb:
            case "call":
                return _call_witnesses(self)
            case "say":
                return self._say(world, team, agent, COLOURS.index(rest))
            case "stay" | "leave" | "drop":
                return say_nothing(agent)
            case "report" | "pass":
                return self._hand_up(world, agent, mind.claims)
            case "read":
                return (Call("memory.read"),)
            case _:
                verdict = {"colour": rest}
                merged = (Aggregate(f"It is {rest}.", verdict),) if mind.claims else ()
                return (*merged, Stop(f"The colour is {rest}.", verdict))

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """A witness looks at its evidence at once; who stands between calls its witnesses."""
        if event.kind != "spawn":
            return written_down(event)
        numbers: list[int] = event.attrs["witnesses"]
        if event.attrs["role"] == WORKER:
            return (Call("inspect", {"witness": numbers[0]}),)
        return tuple(_summon(number) for number in numbers)

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """Look at the evidence, listen to the others, or use the shared memory."""
        match event.tool:
            case "inspect":
                number = event.attrs["witness"]
                saw = world.seen[world.case.holds[number]]
                text = f"The {world.case.piece(number)} shows {COLOURS[saw]}."
                return ToolResult(text, {"saw": saw})
            case "listen":
                return ToolResult("You have listened.")
            case "memory.write":
                return ToolResult("Written.", event.attrs)
            case _:
                claims = {number: colour for _, said in world.memory for number, colour in said}
                causes = tuple(source for source, _ in world.memory)
                text = _claims_text(self, claims)
                return ToolResult(text, {"claims": claims}, causes=causes)

    def scores(self, world: "World") -> Mapping[str, float]:
        """1 for the right colour (`outcome`, `success`); absent if the judge never voted."""
        if world.vote is None:
            return {}
        right = float(world.vote == world.hidden)
        return {"outcome": right, "success": right}

    def _judge(self, mind: "Mind", colours: Sequence[str]) -> Choice:
        options: list[tuple[str, str]] = []
        if not mind.called:
            options.append(("spawn", "call witnesses"))
        elif self.topology == "harness" and not mind.read_memory:
            options.append(("act", "read memory"))
        order = shuffled(colours, self.seed, "votes")
        options += [("aggregate" if mind.claims else "stop", f"vote {c}") for c in order]
        types, candidates = zip(*options, strict=True)
        return Choice(_claims_text(self, mind.claims), candidates, types)

    def _say(self, world: "World", team: Team, agent: AgentState, colour: int) -> Sequence[Effect]:
        """Speak to the judge, or, in a debate, to the other witnesses first."""
        mind = world.minds[agent.id]
        told = world.lies.get(mind.number, colour)
        claims = {str(mind.number): told}
        if self.topology not in DEBATES or mind.listened:
            return self._hand_up(world, agent, claims)
        text = _claims_text(self, claims)
        peers = heard_by(self.topology, self.witnesses, mind.number)
        paths = (f"{ROOT}/{peer}" for peer in peers)
        said = (Message(path, text, {"claims": claims}) for path in paths if path in team.agents)
        return (*said, Call("listen"))

    def _hand_up(
        self, world: "World", agent: AgentState, claims: Mapping[str, int]
    ) -> Sequence[Effect]:
        facts = {"claims": dict(claims)}
        return hand_up(self.topology, agent, _claims_text(self, claims), facts)


class Case(Struct, frozen=True):
    """Who has which evidence."""

    kinds: tuple[str, ...]
    """Kind of every piece of evidence."""
    names: tuple[str, ...]
    """Name of every piece."""
    holds: tuple[int, ...]
    """The piece that each witness has."""

    @property
    def strongest(self) -> list[int]:
        """The witnesses by how reliable their evidence is, the best first; in order where alike."""
        return sorted(range(len(self.holds)), key=lambda n: -KINDS[self.kinds[self.holds[n]]])

    def piece(self, witness: int) -> str:
        """Kind and name of what a witness has."""
        item = self.holds[witness]
        return f"{self.kinds[item]} {self.names[item]}"


@dataclass(slots=True)
class Mind:
    """What one agent knows: only what its own events told it."""

    number: int = -1
    """Which witness it is; -1 for others."""
    saw: int | None = None
    """The colour that its evidence shows."""
    claims: dict[str, int] = field(default_factory=dict)
    """Witness to the colour that it was heard to say."""
    called: bool = False
    listened: bool = False
    read_memory: bool = False
    done: bool = False


@dataclass(slots=True)
class World:
    """One episode."""

    case: Case
    hidden: int
    """Index into `COLOURS`."""
    seen: list[int]
    """What every piece of evidence shows."""
    lies: dict[int, int]
    """Lying witness to what it says, whatever it wants to say."""
    minds: dict[str, Mind] = field(default_factory=lambda: {ROOT: Mind()})
    memory: list[tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=list)
    """The shared memory: the event that wrote, and claims."""
    vote: int | None = None


@lru_cache(maxsize=64)
def _case(witnesses: int, copies: int, faint: int, seed: int) -> Case:
    items = witnesses - copies
    drawn = (DRAWN[key_of(seed, f"kind {n}") % len(DRAWN)] for n in range(items - faint))
    kinds = (*drawn, *["faint"] * faint)
    again = [key_of(seed, f"copy {n}") % items for n in range(copies)]
    pairs = [f"{place} {item}" for place, item in enumerate([*range(items), *again])]
    holds = tuple(int(pair.split()[1]) for pair in shuffled(pairs, seed, "seats"))
    return Case(kinds, tuple(invented(seed, "jury", items)), holds)


def case_of(task: Jury) -> Case:
    """Who has which evidence: the same under every topology, fault and number of liars."""
    return _case(task.witnesses, task.copies, task.faint, task.seed)


def heard_by(topology: str, witnesses: int, number: int) -> tuple[int, ...]:
    """The other witnesses who hear what this one says; in a debate, all at its table."""
    if topology != "debate":
        return copied_to(topology, witnesses, number)
    tables = shares(range(witnesses), ceil(witnesses / TABLE))
    return tuple(n for table in tables if number in table for n in table if n != number)


def _shown(task: Jury, seed: int, hidden: int, item: int) -> int:
    right = uniform(key_of(seed, f"evidence {item}")) < KINDS[case_of(task).kinds[item]]
    return hidden if right else _other(task, seed, f"error {item}", hidden)


def _other(task: Jury, seed: int, what: str, colour: int) -> int:
    """Any other colour."""
    step = 1 + key_of(seed, what) % (task.classes - 1)
    return (colour + step) % task.classes


def _call_witnesses(task: Jury) -> tuple[Spawn, ...]:
    middle = middle_seats(task.topology, task.witnesses)
    if not middle:
        return tuple(_summon(number) for number in range(task.witnesses))
    role = middle_role(task.topology)
    parts = shares(range(task.witnesses), middle)
    return tuple(Spawn(role, "Hear your witnesses.", {"witnesses": list(p)}) for p in parts)


def _summon(number: int) -> Spawn:
    return Spawn(WORKER, "Look at your evidence and say what you saw.", {"witnesses": [number]})


def _learn(world: World, event: Event) -> None:
    attrs = event.attrs
    mind = world.minds[event.agent]
    match event.kind:
        case "spawn":
            works = attrs["role"] == WORKER
            world.minds[event.to or ""] = Mind(attrs["witnesses"][0] if works else -1)
            mind.called = True
        case "tool_result":
            _resulted(world, mind, event)
        case "message" | "return":
            world.minds[event.to or ROOT].claims.update(attrs.get("claims", {}))
            mind.done = mind.done or event.kind == "return"
        case "stop":
            world.vote = COLOURS.index(attrs["colour"])
            mind.done = True
        case _:
            pass


def _resulted(world: World, mind: Mind, event: Event) -> None:
    match event.tool:
        case "inspect":
            mind.saw = event.attrs["saw"]
        case "listen":
            mind.listened = True
        case "memory.write":
            world.memory.append((event.id, tuple(event.attrs["claims"].items())))
        case _:
            mind.read_memory = True
            mind.claims.update(event.attrs["claims"])


def _sight_text(task: Jury, mind: Mind) -> str:
    """What a witness saw and heard; nothing, where its look was taken away."""
    heard = [_claims_text(task, mind.claims)] if mind.claims else []
    if mind.saw is None:
        return "\n".join(["You see nothing.", *heard])
    piece = case_of(task).piece(mind.number)
    return "\n".join([f"You see: {COLOURS[mind.saw]}, {piece}.", *heard])


def _claims_text(task: Jury, claims: Mapping[str, int]) -> str:
    case = case_of(task)
    lines = [f"Claim: {COLOURS[c]}, {case.piece(int(number))}." for number, c in claims.items()]
    if task.fault == "remark" and str(case.strongest[0]) in claims:
        lines.append(REMARK)
    return "\n".join(lines) or "No claims."


_LIMITS = (
    f"classes 2 to {len(COLOURS)}, witnesses 1 to 900, copies fewer than witnesses, "
    "liars and planted lies no more than witnesses, faint no more than pieces of evidence"
)


@lru_cache(maxsize=64)
def _harness(topology: str, classes: int, liars: int, faint: bool) -> Harness:
    roles = {LEAD: "calls the witnesses and votes"}
    if topology == "hierarchical":
        roles[SUBLEAD] = "hears some witnesses and reports their claims"
    if topology == "planner_executor_critic":
        roles[CRITIC] = "passes claims on to the judge, or drops them"
    roles[WORKER] = "looks at its evidence and says what it saw"
    tools = {"inspect": ToolSpec(latency=1.0, trusted=False)}
    if topology == "harness":
        tools |= MEMORY
    if topology in DEBATES:
        tools["listen"] = ToolSpec(latency=1.0, trusted=False)
    weakest = ", dim than faint" if faint else ""
    return Harness(
        system=f"The colour is {' or '.join(COLOURS[:classes])}. Keen evidence is better than "
        f"fair, fair than dim{weakest}; claims about one piece of evidence count once. "
        f"Liars: {number_word(liars)}.",
        root=LEAD,
        roles=roles,
        tools=tools,
        topology=topology,
    )
