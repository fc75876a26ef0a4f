"""Instances of `hops`: a typed knowledge graph, and a question as a DAG of look-ups.

The graph has three types of entity (person, town, guild), and every type its own relations: three
that lead to one entity, and one that lists three people. Everybody also has numbered heirs. It is
never stored: what a relation leads to is a keyed draw, the same on every machine; only the lists
that must meet, and steps that would meet too early, are planted.

A question has `stages`. In each, `width` branches of `depth` hops run side by side to their ends,
and the ends are joined: the richest of them (`compare`), or the one person whom all their lists
name (`meet`). The branches of the first stage start apart, those of a later one at the heirs of
what the stage before it was joined to.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from stretto.tasks.menus import shuffled
from stretto.tasks.names import name_at
from stretto.tasks.words import number_word
from stretto.team.noise import key_of

TYPES = ("person", "town", "guild")
RELATIONS: Mapping[str, Mapping[str, str]] = {
    "person": {"mentor": "person", "home": "town", "guild": "guild"},
    "town": {"mayor": "person", "twin": "town", "patron": "guild"},
    "guild": {"master": "person", "seat": "town", "rival": "guild"},
}
"""Type to its relations, and the type that each leads to."""
LISTS: Mapping[str, str] = {"person": "pupils", "town": "citizens", "guild": "members"}
"""Type to the relation that lists people."""
LISTED = 3
"""How many people a list names."""
POPULATION = 9_000
"""Entities of the graph."""
HEIRS = tuple(f"heir {number_word(number)}" for number in range(1, 1000))
"""Relations of everybody, each to one person."""
_NUMBERS = {heir: number for number, heir in enumerate(HEIRS)}

Fact = tuple[str, str]
"""An entity and a relation."""


class Names:
    """The entities by their places; each is made when it is asked for, since few ever are."""

    def __init__(self, seed: int) -> None:
        self._base = key_of(seed, "hops")
        self._places: dict[str, int] = {}

    def __getitem__(self, place: int) -> str:
        """The name at a place."""
        name = name_at(self._base, place)
        self._places[name] = place
        return name

    def __iter__(self) -> Iterator[str]:
        return (self[place] for place in range(POPULATION))

    def place(self, name: str) -> int:
        """The place of a name; a trace may hold names that nobody has asked for here."""
        if name not in self._places:
            self._places = {each: place for place, each in enumerate(self)}
        return self._places[name]


class Stage(Struct, frozen=True):
    """One layer of the question."""

    starts: tuple[str, ...]
    """Where each branch starts, if all before it is answered rightly."""
    paths: tuple[tuple[str, ...], ...]
    """The relations of each branch, in order."""
    ends: tuple[tuple[str, ...], ...]
    """What each branch ends in: one entity, or a list."""
    answer: str
    """What the ends are joined to."""
    decisive: int
    """The branch whose end is the answer of a comparison; any one, drawn, otherwise."""


class Instance(Struct, frozen=True):
    """One question and the graph below it."""

    seed: int
    names: Names
    """Entities; the type of each follows from its place."""
    planted: Mapping[Fact, tuple[str, ...]]
    """Facts that no key draws."""
    stages: tuple[Stage, ...]

    def type_of(self, entity: str) -> str:
        """What kind of thing an entity is."""
        return TYPES[self.names.place(entity) % len(TYPES)]

    def menu(self, entity: str, following: str, lists: bool) -> tuple[str, ...]:
        """What may be looked up of an entity, in an order that says nothing.

        `following` is the relation that the question wants; where it is an heir, the choice is
        among heirs.
        """
        kind = self.type_of(entity)
        is_heir = following in _NUMBERS
        if is_heir:
            relations = heirs_like(following)
        else:
            relations = [*RELATIONS[kind], *([LISTS[kind]] if lists else [])]
        return tuple(shuffled(relations, self.seed, f"menu {entity} {is_heir}"))

    def look(self, entity: str, relation: str) -> tuple[str, ...]:
        """What a relation of an entity leads to: one entity, or the people of a list."""
        found = self.planted.get((entity, relation))
        if found is not None:
            return found
        what = f"{entity} {relation}"
        kind = self.type_of(entity)
        if relation == LISTS[kind]:
            return tuple(self.draw(f"{what} {number}", "person") for number in range(LISTED))
        return (self.draw(what, RELATIONS[kind].get(relation, "person")),)

    def wealth(self, entity: str) -> int:
        """What a comparison goes by."""
        return key_of(self.seed, f"wealth {entity}")

    def draw(self, what: str, kind: str) -> str:
        """An entity of a type, fixed by the seed and by what it is for."""
        place = key_of(self.seed, what) % (POPULATION // len(TYPES))
        return self.names[place * len(TYPES) + TYPES.index(kind)]


def heirs_like(heir: str) -> list[str]:
    """An heir, and the two whose numbers are nearest."""
    number = min(max(_NUMBERS[heir], 1), len(HEIRS) - 2)
    return list(HEIRS[number - 1 : number + 2])


def generate(*, width: int, depth: int, stages: int, query: str, seed: int) -> Instance:
    """Draw the question of these parameters; see `stretto.tasks.hops.Hops` for their meaning.

    Its branches meet nowhere before their ends: where a key would let them, a fact is planted.
    """
    planted: dict[Fact, tuple[str, ...]] = {}
    graph = Instance(seed, Names(seed), planted, ())
    starts = tuple(_starts(graph, width))
    used = set(starts)
    built: list[Stage] = []
    for number in range(stages):
        heirs = HEIRS[:width] if number else ()
        meets = query == "meet" and width > 1
        branches = _branches(graph, starts, heirs, depth - meets, used, planted)
        if meets:
            built.append(_meet(graph, branches, used, planted))
        else:
            built.append(_compare(graph, branches))
        starts = (built[-1].answer,) * width
    return replace(graph, stages=tuple(built))


def walk(instance: Instance, start: str, path: Sequence[str]) -> list[tuple[str, ...]]:
    """What every hop of a branch leads to."""
    found: list[tuple[str, ...]] = []
    for relation in path:
        found.append(instance.look(found[-1][0] if found else start, relation))
    return found


Branch = tuple[tuple[str, ...], tuple[str, ...]]
"""The entities of a branch, its start first, and the relations between them."""


def _branches(
    graph: Instance,
    starts: Sequence[str],
    heirs: Sequence[str],
    depth: int,
    used: set[str],
    planted: dict[Fact, tuple[str, ...]],
) -> list[Branch]:
    """One branch after the other, each with no entity in common with those before it."""
    found: list[Branch] = []
    for number, start in enumerate(starts):
        names, path = [start], list(heirs[number : number + 1])
        for hop in range(depth):
            kind = graph.type_of(names[-1])
            if hop >= len(path):
                draw = key_of(graph.seed, f"path {start} {number} {hop}")
                path.append(tuple(RELATIONS[kind])[draw % len(RELATIONS[kind])])
            if graph.look(names[-1], path[hop])[0] in used:
                leads_to = RELATIONS[kind].get(path[hop], "person")
                planted[names[-1], path[hop]] = (_unused(graph, names[-1], leads_to, used),)
            names += graph.look(names[-1], path[hop])
            used.add(names[-1])
        found.append((tuple(names), tuple(path)))
    return found


def _starts(graph: Instance, width: int) -> list[str]:
    """So many entities of any type."""
    found: list[str] = []
    for number in range(width):
        kind = TYPES[key_of(graph.seed, f"start {number}") % len(TYPES)]
        found.append(_unused(graph, f"start {number}", kind, set(found)))
    return found


def _unused(graph: Instance, what: str, kind: str, used: Set[str]) -> str:
    """An entity of a type that no branch has met."""
    draws = (graph.draw(f"unused {what} {attempt}", kind) for attempt in count())
    return next(name for name in draws if name not in used)


def _compare(graph: Instance, branches: Sequence[Branch]) -> Stage:
    ends = [names[-1] for names, _ in branches]
    richest = max(ends, key=graph.wealth)
    starts = tuple(names[0] for names, _ in branches)
    paths = tuple(path for _, path in branches)
    return Stage(starts, paths, tuple((end,) for end in ends), richest, ends.index(richest))


def _meet(
    graph: Instance,
    branches: Sequence[Branch],
    used: set[str],
    planted: dict[Fact, tuple[str, ...]],
) -> Stage:
    """Plant lists that have one person in common, and nobody else twice."""
    answer = _unused(graph, f"answer {branches[0][0][0]}", "person", used)
    used.add(answer)
    known = set(used)
    paths: list[tuple[str, ...]] = []
    ends: list[tuple[str, ...]] = []
    for names, path in branches:
        fact = names[-1], LISTS[graph.type_of(names[-1])]
        named = [answer]
        for place in range(1, LISTED):
            named.append(_unused(graph, f"list {fact} {place}", "person", known))
            known.add(named[-1])
        planted[fact] = tuple(shuffled(named, graph.seed, f"list {fact}"))
        paths.append((*path, fact[1]))
        ends.append(planted[fact])
    starts = tuple(names[0] for names, _ in branches)
    decisive = key_of(graph.seed, f"decisive {answer}") % len(branches)
    return Stage(starts, tuple(paths), tuple(ends), answer, decisive)
