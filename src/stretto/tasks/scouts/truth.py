"""The rules of `scouts` as a tree, so that every decision of a trace has its exact value.

`scouts.oracle` computes the same by matrices over whole rounds; here every report is a draw of its
own, red with probability `b q + (1 - b)(1 - q)` at belief `b`. The channel `outcome` is what the
answer earns, `net` is that less the price of a round. A planted fault has no exact values here.
"""

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.tasks.games.tree import Chance, Decide, End, Node, State
from stretto.tasks.scouts import COLOURS, Scouts, choice_at, sizes_at, told
from stretto.tasks.scouts.lattice import round_price
from stretto.trace import Event


class ScoutsRules(Struct, frozen=True):
    """States: (scouts asked, lead of red, scouts still out, scouts of the round)."""

    game: Scouts
    start: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        """Refuse a game in which a scout lies: beliefs are those of honest ones."""
        if self.game.fault:
            what = f'no exact values are known under the fault "{self.game.fault}"'
            raise StrettoError(what, "task.fault", "take the game without it")

    def node(self, state: State) -> Node:
        """A decision where nobody is out, else the next report; a lead alone is an answer."""
        game = self.game
        asked, lead, out, sent = _parts(state)
        belief = _belief(game, lead)
        if out < 0:
            right = max(belief, 1 - belief)
            return End({"outcome": right, "net": right})
        if not out:
            return Decide("lead", choice_at(game, asked, lead))
        red = belief * game.reliability + (1 - belief) * (1 - game.reliability)
        paid = -round_price(game, sent) if out == sent else 0.0
        return Chance((red, 1 - red), {"net": paid})

    def after(self, state: State, move: int) -> State:
        """Candidate 0 stops, the others send a team; a report is red (0) or blue (1)."""
        asked, lead, out, sent = _parts(state)
        if not out:
            size = sizes_at(self.game, asked)[move - 1] if move else 0
            return (asked + size, lead, size, size) if move else (asked, lead, -1, 0)
        left = out - 1
        return asked, lead + 1 - 2 * move, left, sent if left else 0

    def outcome(self, state: State, event: Event) -> int | None:
        """A scout's report shows its colour."""
        colour = told(event)
        return None if colour is None else COLOURS.index(colour)


def _parts(state: State) -> tuple[int, int, int, int]:
    assert isinstance(state, tuple)
    asked, lead, out, sent = state
    return asked, lead, out, sent


def _belief(game: Scouts, lead: int) -> float:
    """Probability of red where red is `lead` votes ahead."""
    return 1 / (1 + ((1 - game.reliability) / game.reliability) ** lead)
