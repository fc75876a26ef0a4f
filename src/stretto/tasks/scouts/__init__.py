"""Stop & Spawn (F6): ask unreliable scouts, several at once, and stop in time.

A hidden colour is red or blue. The lead may spawn up to `width` scouts at once; each looks once
and is right with probability `reliability`. Every scout costs `scout_cost`, every round of waiting
costs `round_cost`, and the answer (the colour with more votes, a coin where they tie) pays 1 if it
is right. So the lead learns O1 (whether and how many to spawn) and O5 (when to stop). Its exact
optimum is computed in `scouts.oracle`.

Only the lead decides; a topology is the way that reports take to it. Subleads and a critic send
the scouts of a round, listen until all have looked, and pass on how many saw which colour; they
cost as much as scouts. In `swarm` a scout also writes to its neighbours on a ring, in `debate` to
everybody at its table of `TABLE`, so that a round of n scouts has at most (TABLE - 1) n messages.
In `harness` scouts write to the shared memory and the lead reads it, which takes its time.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, Literal

from msgspec import Struct

from stretto.tasks.menus import shares, size_of
from stretto.tasks.parameters import require, spec_of
from stretto.tasks.reporting import MEMORY, MEMORY_SECONDS, hand_up, written_down
from stretto.tasks.topology import LEAD, copied_to, middle_role, middle_seats, require_topology
from stretto.tasks.words import number_word
from stretto.team.noise import key_of, uniform
from stretto.team.protocols import (
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

COLOURS = ("red", "blue")
SCOUT = "scout"
LOOK_SECONDS = 1.0
"""Virtual seconds of one look."""
TABLE = 8
"""Most scouts at one table of a debate."""
MOST_SCOUTS = 2_000
"""Most scouts of an episode."""
LARGEST = 900
"""Most scouts of a round, and the largest lead that is read apart: both are said in words."""


class Scouts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one game."""

    reliability: float = 0.65
    """Probability that a scout reports the true colour."""
    scout_cost: float = 0.004
    """Price of one scout, in units of a right answer."""
    round_cost: float = 0.01
    """Price of one round of waiting, in units of a right answer."""
    width: int = 8
    """Most scouts that can be spawned at once."""
    horizon: int = 60
    """Most scouts in an episode."""
    sizes: Literal["all", "doubling"] = "all"
    """The team sizes on offer: all up to `width`, or one, two, four and so on, and `width`."""
    most_lead: int = 12
    """Leads from here on read alike."""
    topology: str = "centralized"
    """One of `stretto.tasks.topology.NAMES`."""
    fault: Literal["lie"] | None = None
    """A planted fault: one scout of the first round, drawn, reports the other colour than it saw.
    Nobody knows."""

    def __post_init__(self) -> None:
        """Refuse rules that make no game."""
        require_topology(self.topology)
        checks = {
            "reliability": 0.5 <= self.reliability < 1,
            "scout_cost": 0 <= self.scout_cost < inf,
            "round_cost": 0 <= self.round_cost < inf,
            "width": 1 <= self.width <= min(self.horizon, LARGEST),
            "horizon": self.horizon <= MOST_SCOUTS,
            "most_lead": 1 <= self.most_lead <= LARGEST,
        }
        require(self, checks, _LIMITS)

    @property
    def id(self) -> str:
        """All episodes of one game form a group: the hidden colour is part of the chance."""
        return "scouts"

    @property
    def spec(self) -> dict[str, Any]:
        """Name and rules."""
        return spec_of(self)

    @property
    def harness(self) -> Harness:
        """One lead, scouts that look once, one unit of virtual time a look."""
        return _harness(self.width, self.sizes, self.topology)

    @property
    def prices(self) -> Prices:
        """Spawned agents, and virtual seconds: a look takes one."""
        return Prices(spawn=self.scout_cost, second=self.round_cost)

    def begin(self, seed: int) -> "World":
        """Draw the hidden colour, the coin for a tie, and who may lie."""
        hidden, coin = (int(uniform(key_of(seed, name)) < 0.5) for name in ("hidden", "coin"))
        return World(hidden, coin, key_of(seed, "liar"))

    def apply(self, world: "World", event: Event) -> None:
        """Note who sits where, and what has reached whom."""
        match event.kind:
            case "spawn":
                _seat(world, event)
            case "return":
                _hear(world, event, event.to or ROOT)
            case "tool_result":
                _resulted(world, event)
            case "stop":
                world.answer = COLOURS.index(event.attrs["colour"])
            case _:
                pass

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The lead decides whenever no scout is out."""
        if agent.role != LEAD or agent.open_children:
            return None
        return choice_at(self, sum(world.votes), world.votes[0] - world.votes[1])

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Spawn that many scouts, or answer."""
        if choice == "stop":
            colour = COLOURS[_verdict(world)]
            return (Stop(f"The colour is {colour}.", {"colour": colour}),)
        return _send(self.topology, size_of(choice))

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """A scout looks once, reports and leaves; who stands between waits and passes on."""
        match event.kind, event.tool:
            case "spawn", _:
                if event.attrs["role"] == SCOUT:
                    return (Call("look"),)
                return (*_scouts("", event.attrs["scouts"]), _listen(LOOK_SECONDS))
            case "tool_result", "look":
                return self._report(world, team, event)
            case "tool_result", "listen":
                if event.agent == ROOT:
                    return (Call("memory.read"),)
                votes = event.attrs.get("votes", [0, 0])
                return (Return(_tally_text(votes), {"votes": votes}), Despawn(event.agent))
            case _:
                return written_down(event)

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """One look, right with probability `reliability`; or what has been reported so far."""
        if event.tool == "look":
            right = uniform(key) < self.reliability
            colour = COLOURS[world.hidden if right else 1 - world.hidden]
            return ToolResult(f"It looks {colour}.", {"colour": colour})
        if event.tool == "memory.write":
            return ToolResult("Written.", event.attrs)
        if event.tool == "listen" and event.agent == ROOT:
            return ToolResult("You have waited.")
        reports = world.reports.get(event.agent, [])
        votes = [sum(colour == named for _, colour in reports) for named in COLOURS]
        causes = tuple(source for source, _ in reports)
        return ToolResult(_tally_text(votes), {"votes": votes}, causes=causes)

    def scores(self, world: "World") -> Mapping[str, float]:
        """1 for the right colour (`outcome`, `success`); absent if the lead never answered."""
        if world.answer is None:
            return {}
        right = float(world.answer == world.hidden)
        return {"outcome": right, "success": right}

    def _report(self, world: "World", team: Team, look: Event) -> Sequence[Effect]:
        """Tell the peers, and hand it up."""
        agent = team.agents[look.agent]
        colour = look.attrs.get("colour", "nothing")  # an intervention may say anything
        if self.fault and agent.id == world.liar and colour in COLOURS:
            colour = COLOURS[1 - COLOURS.index(colour)]
        text, facts = f"I saw {colour}.", {"colour": colour}
        peers = _peers(self.topology, agent.id, *world.seats.get(agent.id, (0, 1)))
        coming = (peer for peer in peers if peer in team.agents or peer in team.never_came)
        written = (Message(peer, text, facts) for peer in coming)
        return (*written, *hand_up(self.topology, agent, text, facts))


@dataclass(slots=True)
class World:
    """One episode: what is hidden, and what has been reported."""

    hidden: int
    """Index into `COLOURS`."""
    coin: int
    """The answer where the votes tie."""
    draw: int
    """Key by which the liar is drawn."""
    votes: list[int] = field(default_factory=lambda: [0, 0])
    """Votes that have reached the lead, by colour."""
    reports: dict[str, list[tuple[str, str]]] = field(
        default_factory=dict[str, list[tuple[str, str]]]
    )
    """Who has not read them yet, to reports: the event that made it, and the colour."""
    seats: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Scout with peers to its number in its team, and the size of that."""
    first: list[str] = field(default_factory=list[str])
    """The scouts of the first round: who came before anybody had looked."""
    looked: bool = False
    answer: int | None = None

    @property
    def liar(self) -> str | None:
        """The scout of the first round with whom a planted lie lies; the same if others leave."""
        return min(self.first, key=lambda path: key_of(self.draw, path), default=None)


@lru_cache(maxsize=1024)
def _menu(width: int, sizes: str) -> tuple[int, ...]:
    if sizes == "all":
        return tuple(range(1, width + 1))
    doublings = [1 << power for power in range(width.bit_length())]
    return tuple(sorted({*doublings, width}))


def sizes_at(game: Scouts, asked: int) -> tuple[int, ...]:
    """The team sizes on offer after `asked` scouts, smallest first: those that are still left."""
    menu = _menu(game.width, game.sizes)
    return menu[: bisect(menu, game.horizon - asked)]


def seats_taken(game: Scouts, count: int) -> int:
    """How many agents are spawned where `count` scouts are sent: those in the middle count, too."""
    return count + middle_seats(game.topology, count)


def round_seconds(game: Scouts) -> float:
    """Virtual seconds of a round: the look, and writing and reading where there is a memory."""
    return LOOK_SECONDS + (2 * MEMORY_SECONDS if game.topology == "harness" else 0.0)


@lru_cache(maxsize=65_536)
def choice_at(game: Scouts, asked: int, lead: int) -> Choice:
    """What the lead is asked after `asked` votes with one colour `lead` votes ahead.

    It reads by how much a colour is ahead, and may stop or spawn as many scouts as are on offer.
    """
    words = tuple(number_word(size) for size in sizes_at(game, asked))
    types = ("stop",) + ("spawn",) * len(words)
    ahead = number_word(min(abs(lead), game.most_lead))
    return Choice(f"The lead is {ahead}.", ("stop", *words), types)


def told(event: Event) -> str | None:
    """The colour that an event hands up from a scout; `None` for any other event."""
    written = event.kind == "tool_result" and event.tool == "memory.write"
    colour = event.attrs.get("colour") if written or event.kind == "return" else None
    return colour if colour in COLOURS else None


def arrived(event: Event) -> tuple[int, int]:
    """Votes for red and for blue that an event brings to the lead."""
    if event.kind == "return" and event.to == ROOT:
        colour = told(event)
        if colour is not None:
            return int(colour == COLOURS[0]), int(colour == COLOURS[1])
    elif event.kind != "tool_result" or event.tool != "memory.read":
        return 0, 0
    red, blue = event.attrs.get("votes", (0, 0))
    return red, blue


def _hear(world: World, event: Event, reader: str) -> None:
    """Votes count at once where the lead hears them; others keep what they hear."""
    for colour, count in enumerate(arrived(event)):
        world.votes[colour] += count
    colour = told(event)
    if colour is not None and (reader != ROOT or event.kind == "tool_result"):
        world.reports.setdefault(reader, []).append((event.id, colour))


def _resulted(world: World, event: Event) -> None:
    _hear(world, event, ROOT)
    world.looked = world.looked or event.tool == "look"
    if event.tool in ("listen", "memory.read"):
        world.reports.pop(event.agent, None)


def _seat(world: World, event: Event) -> None:
    path, attrs = event.to or "", event.attrs
    if attrs["role"] == SCOUT and not world.looked:
        world.first.append(path)
    if "team" in attrs:
        world.seats[path] = attrs["number"], attrs["team"]


def _send(topology: str, count: int) -> Sequence[Effect]:
    """A round of scouts; the topology says who sends them, and how the lead hears of them."""
    middle = middle_seats(topology, count)
    if middle:
        role = middle_role(topology)
        parts = shares(range(count), middle)
        return tuple(Spawn(role, _BRIEF_MIDDLE, {"scouts": len(part)}) for part in parts)
    scouts = _scouts(topology, count)
    return (*scouts, _listen(LOOK_SECONDS + MEMORY_SECONDS)) if topology == "harness" else scouts


def _scouts(topology: str, count: int) -> tuple[Spawn, ...]:
    if topology not in ("debate", "swarm"):
        return (Spawn(SCOUT, BRIEF),) * count
    return tuple(Spawn(SCOUT, BRIEF, {"number": n, "team": count}) for n in range(count))


def _listen(seconds: float) -> Call:
    return Call("listen", {"waiting": True}, latency=seconds)


def _peers(topology: str, path: str, number: int, team: int) -> list[str]:
    """Paths of the other scouts that a scout writes to."""
    first, size = 0, team
    if topology == "debate":
        first = number - number % TABLE
        size = min(TABLE, team - first)
    parent, _, last = path.rpartition("/")
    begin = int(last) - number + first  # a lead sends several teams, one after the other
    return [f"{parent}/{begin + peer}" for peer in copied_to(topology, size, number - first)]


def _tally_text(votes: Sequence[int]) -> str:
    counts = [f"{count} {colour}" for count, colour in zip(votes, COLOURS, strict=True)]
    return f"They saw: {', '.join(counts)}."


def _verdict(world: World) -> int:
    red, blue = world.votes
    return world.coin if red == blue else int(blue > red)


BRIEF = "Look once and report the colour."
_BRIEF_MIDDLE = "Send scouts and pass on what they saw."
_LIMITS = (
    f"0.5 <= reliability < 1, costs >= 0, 1 <= width <= horizon <= {MOST_SCOUTS}, "
    f"width and most_lead at most {LARGEST}"
)


@lru_cache(maxsize=64)
def _harness(width: int, sizes: str, topology: str) -> Harness:
    most = f"one to {number_word(width)}" if width > 1 else "one"
    if sizes != "all":
        most = ", ".join(number_word(size) for size in _menu(width, sizes))
    tools = {"look": ToolSpec(latency=LOOK_SECONDS, trusted=False)}
    if topology in ("hierarchical", "planner_executor_critic", "harness"):
        tools["listen"] = ToolSpec(latency=LOOK_SECONDS, trusted=False)
    if topology == "harness":
        tools |= MEMORY
    return Harness(
        system="You lead a team of scouts. "
        f"Answer with one word: stop, or how many scouts to send, {most}.",
        root=LEAD,
        roles={LEAD: "decides how many scouts to send, and when to stop"},
        tools=tools,
        topology=topology,
    )
