"""The exact side of `scouts`, by dynamic programming over (scouts asked, lead).

After `n` votes with one colour `d` ahead, the belief in red is `q^d / (q^d + (1-q)^d)`, whatever
`n` is; `n` only limits how many more may be asked. Values are in units of a right answer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from stretto.tasks.oracle import Probabilities
from stretto.tasks.scouts import Scouts, choice_at
from stretto.team.protocols import Choice

Floats = NDArray[np.float64]
Best = Callable[[Floats], Floats]


class ScoutsOracle:
    """Optimum, baselines, exact Q and the exact value of any policy of one game."""

    role = "lead"

    def __init__(self, game: Scouts) -> None:
        self._game = game
        self._size = game.horizon  # leads run from -size to size
        self._leads = np.arange(-self._size, self._size + 1)
        self._belief = 1 / (1 + ((1 - game.reliability) / game.reliability) ** self._leads)
        self._stop = np.maximum(self._belief, 1 - self._belief)
        self._moves = [self._transition(count) for count in range(1, game.width + 1)]

    @cached_property
    def choices(self) -> Sequence[Choice]:
        """Every distinct pair of observation and candidates, most open first."""
        game = self._game
        found = {
            choice_at(game, asked, lead): None
            for asked in range(game.horizon + 1)
            for lead in range(asked % 2, asked + 1, 2)
        }
        return tuple(found)

    @cached_property
    def q_values(self) -> Floats:
        """Exact value of every decision under the optimal continuation.

        Shape (horizon + 1, 2 * horizon + 1, width + 1): scouts asked, lead from `-horizon`, and
        how many scouts are spawned (0 is `stop`). Illegal decisions are `-inf`.
        """
        return self._backward(lambda q: q.max(axis=1))[1]

    @cached_property
    def optimum(self) -> float:
        """Value of the best adaptive policy."""
        return float(self.q_values[0, self._size].max())

    @cached_property
    def baselines(self) -> Mapping[str, float]:
        """Exact values of simpler policies, each the best of its kind.

        `one_shot` spawns once and answers; `adaptive_serial` spawns one at a time and may stop at
        any lead; `fixed_serial` spawns a fixed number one at a time; `random` picks among the legal
        choices alike; `guess` answers at once.
        """
        game = self._game
        centre = self._size
        asked = range(game.horizon + 1)
        accuracy = [self._accuracy(count) for count in asked]
        one_shot = max(
            accuracy[n] - game.scout_cost * n - game.round_cost for n in range(1, game.width + 1)
        )
        serial = max(accuracy[n] - (game.scout_cost + game.round_cost) * n for n in asked)
        values, _ = self._backward(lambda q: q[:, :2].max(axis=1))
        uniform = [np.full(len(c.candidates), 1 / len(c.candidates)) for c in self.choices]
        return {
            "adaptive_serial": float(values[0, centre]),
            "one_shot": max(one_shot, 0.5),
            "fixed_serial": serial,
            "random": self.value(uniform),
            "guess": 0.5,
        }

    def value(self, probabilities: Probabilities) -> float:
        """Exact value of the policy that decides with these probabilities."""
        policy = self._spread(probabilities)
        values = np.zeros(policy.shape[:2])
        for asked in range(self._game.horizon, -1, -1):
            q = self._q(asked, values)
            values[asked] = (policy[asked] * np.where(np.isfinite(q), q, 0.0)).sum(axis=1)
        return float(values[0, self._size])

    def optimal(self) -> Probabilities:
        """The optimal policy by observation; states that read alike are weighed by visits."""
        best = (self.q_values >= self.q_values.max(axis=2, keepdims=True) - 1e-12).astype(float)
        best /= best.sum(axis=2, keepdims=True)
        return self._gather(best)

    def visits(self, probabilities: Probabilities) -> Floats:
        """Expected visits an episode to each of `choices`."""
        weights = self._occupancy(self._spread(probabilities))
        result = np.zeros(len(self.choices))
        np.add.at(result, self._index, weights)
        return result

    def _gather(self, policy: Floats) -> Probabilities:
        weights = self._occupancy(policy) + 1e-12  # unvisited states count only among themselves
        total = [np.zeros(len(choice.candidates)) for choice in self.choices]
        for (n, lead), choice in np.ndenumerate(self._index):
            if abs(lead - self._size) <= n:
                total[choice] += weights[n, lead] * policy[n, lead, : len(total[choice])]
        return [row / row.sum() for row in total]

    @cached_property
    def _index(self) -> NDArray[np.int64]:
        """Which of `choices` each state (scouts asked, lead) reads as."""
        place = {choice: index for index, choice in enumerate(self.choices)}
        table = np.zeros((self._game.horizon + 1, len(self._leads)), dtype=np.int64)
        for n in range(self._game.horizon + 1):
            for lead in range(-n, n + 1):
                choice = choice_at(self._game, n, lead)
                table[n, lead + self._size] = place.get(choice, 0)
        return table

    def _spread(self, probabilities: Probabilities) -> Floats:
        """Probabilities by state, padded with 0 for illegal decisions."""
        table = np.zeros((len(self.choices), self._game.width + 1))
        for row, distribution in zip(table, probabilities, strict=True):
            row[: len(distribution)] = distribution
        return table[self._index]

    def _occupancy(self, policy: Floats) -> Floats:
        """Expected visits an episode to every state under a policy given by state."""
        visits = np.zeros(policy.shape[:2])
        visits[0, self._size] = 1.0
        for n in range(self._game.horizon):
            for count in range(1, min(self._game.width, self._game.horizon - n) + 1):
                visits[n + count] += (visits[n] * policy[n, :, count]) @ self._moves[count - 1]
        return visits

    def _backward(self, best: Best) -> tuple[Floats, Floats]:
        """Values and Q by state, last round first; `best` turns Q (leads, choices) into values."""
        horizon = self._game.horizon
        values = np.zeros((horizon + 1, len(self._leads)))
        q = np.full((horizon + 1, len(self._leads), self._game.width + 1), -np.inf)
        for n in range(horizon, -1, -1):
            q[n] = self._q(n, values)
            values[n] = best(q[n])
        return values, q

    def _q(self, asked: int, values: Floats) -> Floats:
        """Q of shape (leads, width + 1) after `asked` scouts, given the values further on."""
        game = self._game
        q = np.full((len(self._leads), game.width + 1), -np.inf)
        q[:, 0] = self._stop
        for count in range(1, min(game.width, game.horizon - asked) + 1):
            future = self._moves[count - 1] @ values[asked + count]
            q[:, count] = future - game.scout_cost * count - game.round_cost
        return q

    def _transition(self, count: int) -> Floats:
        """Probability of each next lead (column) from each lead (row) when `count` scouts look."""
        q, size = self._game.reliability, self._size
        matrix = np.zeros((2 * size + 1, 2 * size + 1))
        for red in range(count + 1):
            if_red = comb(count, red) * q**red * (1 - q) ** (count - red)
            if_blue = comb(count, red) * (1 - q) ** red * q ** (count - red)
            chance = self._belief * if_red + (1 - self._belief) * if_blue
            target = np.arange(2 * size + 1) + 2 * red - count
            inside = (target >= 0) & (target <= 2 * size)  # states beyond are never reached
            matrix[np.flatnonzero(inside), target[inside]] = chance[inside]
        return matrix

    def _accuracy(self, votes: int) -> float:
        """Probability that the majority of `votes` is right, ties by a fair coin."""
        q = self._game.reliability
        return sum(
            comb(votes, right)
            * q**right
            * (1 - q) ** (votes - right)
            * (1.0 if 2 * right > votes else 0.5 if 2 * right == votes else 0.0)
            for right in range(votes + 1)
        )


@lru_cache(maxsize=16)
def scouts_oracle(game: Scouts) -> ScoutsOracle:
    """The oracle of a game, built once."""
    return ScoutsOracle(game)
