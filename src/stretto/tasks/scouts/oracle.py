"""The exact side of `scouts`, by dynamic programming over (scouts asked, lead).

After `n` votes with one colour `d` ahead, the belief in red is `q^d / (q^d + (1-q)^d)`, whatever
`n` is; `n` only limits how many more may be asked. Values are in units of a right answer. A
topology changes what a round costs, and nothing else. Of a planted fault the lead knows nothing:
the oracle is that of the game without it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stretto.tasks.faults import Blame
from stretto.tasks.oracle import Probabilities
from stretto.tasks.scouts import COLOURS, Scouts, choice_at, sizes_at, told
from stretto.tasks.scouts.lattice import (
    Floats,
    accuracies,
    as_believed,
    backward,
    best_shares,
    forward,
    given_red,
    leads_after,
    round_price,
)
from stretto.team.protocols import Choice
from stretto.team.replay import seed_of
from stretto.trace import Trace


class ScoutsOracle:
    """Optimum, baselines, exact Q and the exact value of any policy of one game."""

    role = "lead"

    def __init__(self, game: Scouts) -> None:
        self._game = replace(game, fault=None)
        self._most = len(sizes_at(game, 0))

    @cached_property
    def choices(self) -> Sequence[Choice]:
        """Every distinct pair of observation and candidates, most open first."""
        return tuple(dict.fromkeys(self._read_at.values()))

    @cached_property
    def q_values(self) -> Floats:
        """Exact value of every decision under the optimal continuation; for games of some hundreds.

        Shape (horizon + 1, 2 * horizon + 1, 1 + team sizes on offer): scouts asked, lead from
        `-horizon`, and the decision (0 is `stop`). Illegal decisions, and leads that so many votes
        cannot have, are `-inf`.
        """
        horizon = self._game.horizon
        q = np.full((horizon + 1, 2 * horizon + 1, self._most + 1), -np.inf)
        for asked in range(horizon + 1):
            row = self.q_after(asked)
            q[asked, leads_after(asked) + horizon, : len(row)] = row.T
        return q

    def q_after(self, asked: int) -> Floats:
        """`q_values` after so many votes; shape (decisions on offer, asked + 1), by red votes."""
        return as_believed(self._game, given_red(self._game, asked, self._values))

    @cached_property
    def optimum(self) -> float:
        """Value of the best adaptive policy."""
        return float(self._values[0, 0])

    @cached_property
    def baselines(self) -> Mapping[str, float]:
        """Exact values of simpler policies, each the best of its kind.

        `one_shot` spawns once and answers; `adaptive_serial` spawns one at a time and may stop at
        any lead; `fixed_serial` spawns a fixed number one at a time; `random` picks among the legal
        choices alike; `guess` answers at once.
        """
        game = self._game
        right = accuracies(game, game.horizon)
        one_shot = max(right[n] - round_price(game, n) for n in sizes_at(game, 0))
        serial = (right - round_price(game, 1) * np.arange(game.horizon + 1)).max()
        values = backward(game, _one_at_a_time)
        uniform = [np.full(len(c.candidates), 1 / len(c.candidates)) for c in self.choices]
        return {
            "adaptive_serial": float(values[0, 0]),
            "one_shot": max(float(one_shot), 0.5),
            "fixed_serial": float(serial),
            "random": self.value(uniform),
            "guess": 0.5,
        }

    def value(self, probabilities: Probabilities) -> float:
        """Exact value of the policy that decides with these probabilities."""
        return float(self._evaluate(probabilities)[0, 0])

    def optimal(self) -> Probabilities:
        """The optimal policy by observation; states that read alike are weighed by visits."""
        return self._optimal

    @cached_property
    def by_sight(self) -> Probabilities:
        """The likelier choice of `optimal` at every observation: what the script `oracle` plays."""
        return [np.eye(len(row))[int(row.argmax())] for row in self._optimal]

    @cached_property
    def best(self) -> float:
        """Value of `by_sight`: `optimum`, but for what the lead cannot read."""
        return float(self._by_sight_values[0, 0])

    def worth(self, game: Scouts, asked: int, red: int, lie: int = 0) -> tuple[Floats, float]:
        """What every decision is worth in a state, and what that of `by_sight` is.

        With `by_sight` from there on, and for who knows what can be known: the votes, and a lie.

        Args:
            game: The game that is played; it may have a fault, of which `by_sight` knows nothing.
            asked: Votes so far.
            red: Those of them that are for red.
            lie: 1 where one of these said red and had seen blue, -1 the other way round.
        """
        q = as_believed(game, given_red(game, asked, self._by_sight_values), lie)[:, red]
        shares = self._shares(self._by_sight_table, asked)[:, red]
        return q, float(q @ shares)

    def visits(self, probabilities: Probabilities) -> Floats:
        """Expected visits an episode to each of `choices`."""
        table = self._table(probabilities)
        result = np.zeros(len(self.choices))
        for asked, visits, _ in forward(self._game, lambda asked: self._shares(table, asked)):
            np.add.at(result, self._index(asked), visits)
        return result

    @cached_property
    def _values(self) -> Floats:
        """What is to come in every state given red, where the best is done."""
        return backward(self._game, lambda _, q: best_shares(q))

    @cached_property
    def _by_sight_table(self) -> Floats:
        return self._table(self.by_sight)

    @cached_property
    def _by_sight_values(self) -> Floats:
        return self._evaluate(self.by_sight)

    def _evaluate(self, probabilities: Probabilities) -> Floats:
        table = self._table(probabilities)
        return backward(self._game, lambda asked, _: self._shares(table, asked))

    @cached_property
    def _optimal(self) -> Probabilities:
        total = np.zeros((len(self.choices), self._most + 1))
        played = forward(self._game, lambda asked: best_shares(self.q_after(asked)))
        for asked, visits, shares in played:
            weights = visits + 1e-12  # unvisited states count only among themselves
            np.add.at(total[:, : len(shares)], self._index(asked), (weights * shares).T)
        rows = zip(total, self.choices, strict=True)
        return [row[: len(choice.candidates)] / row.sum() for row, choice in rows]

    @cached_property
    def _read_at(self) -> Mapping[tuple[int, int], Choice]:
        """What is read, by how many team sizes are on offer and by how much a colour is ahead."""
        game = self._game
        found: dict[tuple[int, int], Choice] = {}
        for asked in range(game.horizon + 1):
            offered = len(sizes_at(game, asked))
            for lead in range(asked % 2, min(asked, game.most_lead + 1) + 1, 2):
                place = offered, min(lead, game.most_lead)
                if place not in found:
                    found[place] = choice_at(game, asked, lead)
        return found

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """Place in `choices` by team sizes on offer and by lead."""
        table = np.zeros((self._most + 1, self._game.most_lead + 1), dtype=np.int64)
        order = {choice: place for place, choice in enumerate(self.choices)}
        for (offered, lead), choice in self._read_at.items():
            table[offered, lead] = order[choice]
        return table

    def _index(self, asked: int) -> NDArray[np.int64]:
        """Which of `choices` every state after so many votes reads as; shape (asked + 1,)."""
        ahead = np.minimum(np.abs(leads_after(asked)), self._game.most_lead)
        return self._places[len(sizes_at(self._game, asked)), ahead]

    def _table(self, probabilities: Probabilities) -> Floats:
        """Probabilities by choice, padded with 0 for illegal decisions."""
        table = np.zeros((len(self.choices), self._most + 1))
        for row, distribution in zip(table, probabilities, strict=True):
            row[: len(distribution)] = distribution
        return table

    def _shares(self, table: Floats, asked: int) -> Floats:
        return table[self._index(asked), : 1 + len(sizes_at(self._game, asked))].T


def looks(trace: Trace) -> Mapping[str, str]:
    """Scout to the colour that it saw."""
    seen = (e for e in trace.events if e.kind == "tool_result" and e.tool == "look")
    return {e.agent: e.attrs["colour"] for e in seen if e.attrs.get("colour") in COLOURS}


def blame(task: Scouts, trace: Trace) -> Blame | None:
    """The report whose lie was decisive: told honestly, the answer would be right.

    The answer is that of the votes, a tie broken as it is in this episode. `None` where the answer
    is right, or where no single report is to blame.
    """
    world = task.begin(seed_of(trace))
    saw = looks(trace)
    told_by: dict[str, tuple[str, str]] = {}
    for e in trace.events:
        if (colour := told(e)) is not None and e.agent in saw:
            told_by.setdefault(e.agent, (e.id, colour))  # one vote a scout
    reports = {event: (agent, said) for agent, (event, said) in told_by.items()}
    lead = sum(1 if said == COLOURS[0] else -1 for _, said in reports.values())
    if _right(lead, world.hidden, world.coin):
        return None
    for event, (agent, said) in reports.items():
        turn = 2 if saw[agent] == COLOURS[0] else -2
        if said != saw[agent] and _right(lead + turn, world.hidden, world.coin):
            return Blame(agent, event)
    return None


def _right(lead: int, hidden: int, coin: int) -> bool:
    answer = coin if lead == 0 else int(lead < 0)
    return answer == hidden


def _one_at_a_time(asked: int, q: Floats) -> Floats:
    shares = np.zeros_like(q)
    shares[:2] = best_shares(q[:2])
    return shares


@lru_cache(maxsize=16)
def _oracle(game: Scouts) -> ScoutsOracle:
    return ScoutsOracle(game)


def scouts_oracle(game: Scouts) -> ScoutsOracle:
    """The oracle of a game, built once; topologies that cost the same share one."""
    alike = game.topology in ("debate", "swarm")
    topology = "centralized" if alike else game.topology
    return _oracle(replace(game, fault=None, topology=topology))
