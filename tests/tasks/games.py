"""One small game of every kind, and the policies that play them."""

from functools import cache

from stretto.policies.softmax import Softmax
from stretto.tasks.games.branch import Branch
from stretto.tasks.games.chain import Chain
from stretto.tasks.games.exam import Exam
from stretto.tasks.games.fanout import Fanout, vote_at
from stretto.tasks.games.ladder import Ladder
from stretto.tasks.games.proxies import Proxies
from stretto.tasks.games.siege import Siege
from stretto.tasks.games.stragglers import Stragglers
from stretto.tasks.games.truth import truth_of
from stretto.tasks.scouts import Scouts
from stretto.team.engine import rollout

ROLES = (
    *("lead", "manager", "speaker", "worker"),
    *("proposer", "solver", "judge", "evaluator", "attacker", "defender"),
)
POLICIES = dict.fromkeys(ROLES, Softmax(spread=0.8, seed=3))

GAMES = {
    "branch": Branch(),
    "chain": Chain(agents=3, words=2),
    "chain_bernoulli": Chain(noise="bernoulli", dominated="upstream"),
    "chain_gaussian": Chain(noise="gaussian", dominated="downstream"),
    "exam": Exam(),
    "fanout": Fanout(workers=3, rule="xor"),
    "fanout_teams": Fanout(workers=4, teams=2, ignored=1),
    "ladder": Ladder(steps=3),
    "proxies": Proxies(most=2),
    "proxies_ways": Proxies(most=2, ways=("work", "rest", "chat", "spam")),
    "scouts": Scouts(horizon=5, width=2),
    "siege": Siege(),
    "stragglers": Stragglers(workers=2),
}


def channel_of(game):
    """The channel on which every episode is scored."""
    return "eventual" if isinstance(game, Stragglers) else "outcome"


@cache
def played(name, episodes):
    """Episodes of a game by the policies above."""
    return rollout(GAMES[name], POLICIES, range(episodes))


@cache
def truth(name):
    """The truth about it."""
    return truth_of(GAMES[name], POLICIES, channel_of(GAMES[name]))


def decisions(trace):
    return [event for event in trace.events if event.decision is not None]


def voting(*yes):
    """Workers that say yes with these probabilities."""
    rows = {
        (vote_at(seat).observation, vote_at(seat).candidates): [1 - p, p]
        for seat, p in enumerate(yes)
    }
    return dict.fromkeys(("lead", "manager", "worker"), Softmax.of(rows))
