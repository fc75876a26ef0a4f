"""The exact truth about a game under given policies, by enumeration of its rules.

A decision's state is everything that happened before it, anywhere in the team, in record order.
`Q(h, a)` is the expected return to come after candidate `a`, `V(h) = Σ π(a|h) Q(h, a)`, the
advantage is `Q - V`. The gradient of the value by a logit is `Σ_h P(h) π(a|h) (Q(h, a) - V(h))`,
summed over the states `h` that read alike (Sutton et al., NeurIPS 1999, policy gradient theorem).
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stretto.errors import StrettoError, did_you_mean
from stretto.policies.softmax import Situation
from stretto.tasks import imported
from stretto.tasks.games.tree import Chance, Decide, End, Rules, State, explore, walk
from stretto.team.protocols import Ask, Policy, Task
from stretto.trace import Trace

Floats = NDArray[np.float64]

RULES: Mapping[str, str] = {
    "branch": "stretto.tasks.games.branch:BranchRules",
    "chain": "stretto.tasks.games.chain:ChainRules",
    "exam": "stretto.tasks.games.exam:ExamRules",
    "fanout": "stretto.tasks.games.fanout:FanoutRules",
    "ladder": "stretto.tasks.games.ladder:LadderRules",
    "proxies": "stretto.tasks.games.proxies:ProxiesRules",
    "scouts": "stretto.tasks.scouts.truth:ScoutsRules",
    "siege": "stretto.tasks.games.siege:SiegeRules",
    "stragglers": "stretto.tasks.games.stragglers:StragglersRules",
}
"""Family to the description of its games."""


def rules_of(task: Task) -> Rules:
    """The description of a game.

    Raises `StrettoError` for a family without one.
    """
    family = task.spec["family"]
    if family not in RULES:
        hint = did_you_mean(family, RULES)
        raise StrettoError(f'no exact truth is known for the family "{family}"', hint=hint)
    return imported(RULES[family])(task)


def truth_of(task: Task, policies: Mapping[str, Policy], channel: str = "outcome") -> "Truth":
    """The exact truth about `task` when `policies` play it, on one reward channel.

    Raises `StrettoError` for a family or channel without truth, a role without policy, and a policy
    that states no log-probabilities.
    """
    return Truth(task, rules_of(task), policies, channel)


class Truth:
    """Exact values of a game under its policies; a critic without error."""

    def __init__(
        self, task: Task, rules: Rules, policies: Mapping[str, Policy], channel: str
    ) -> None:
        """Evaluate every state of `rules`."""
        self._rules = rules
        self._tree = explore(rules)
        self._policy = _probabilities(task, rules, policies)
        self._values = self._backward(channel)

    @property
    def value(self) -> float:
        """Expected return of an episode."""
        return self._values[self._rules.start]

    @property
    def probabilities(self) -> Mapping[Situation, Floats]:
        """How the policies decide in every situation; shapes (candidates,)."""
        return self._policy

    def state_values(self, trace: Trace) -> Floats:
        """Return to come just before each decision, in record order; shape (decisions,)."""
        states = walk(self._rules, trace)
        return np.array([self._values[state] for state in states], dtype=np.float64)

    def action_values(self, trace: Trace) -> list[Floats]:
        """Return to come after each candidate of each decision; shapes (candidates,)."""
        return [self._following(state) for state in walk(self._rules, trace)]

    def advantages(self, trace: Trace) -> Floats:
        """`Q - V` of what was chosen at each decision, in record order; shape (decisions,)."""
        chosen = [e.decision.chosen or 0 for e in trace.events if e.decision is not None]
        pairs = zip(self.action_values(trace), chosen, strict=True)
        return np.array([q[index] for q, index in pairs]) - self.state_values(trace)

    def message_effects(self, trace: Trace) -> dict[str, float]:
        """Id of every message, delegation and return to its expected effect.

        That is the advantage of the decision that sent it: what it brought beyond a message that
        the policy draws again. Those that no decision of their sender caused are left out.
        """
        decisions = [event.id for event in trace.events if event.decision is not None]
        advantage = dict(zip(decisions, self.advantages(trace).tolist(), strict=True))
        wanted = {e.id for e in trace.events if e.kind in ("message", "delegate", "return")}
        owner = {event.id: event.agent for event in trace.events}
        return {
            edge.dst: advantage[edge.src]
            for edge in trace.edges
            if edge.dst in wanted and edge.src in advantage and owner[edge.src] == owner[edge.dst]
        }

    @cached_property
    def reach(self) -> Mapping[State, float]:
        """Probability that an episode comes by each state."""
        reach: dict[State, float] = defaultdict(float)
        reach[self._rules.start] = 1.0
        for state in self._tree.nodes:
            for after, share in zip(self._tree.moves[state], self._shares(state), strict=True):
                reach[after] += reach[state] * share
        return reach

    @cached_property
    def gradient(self) -> dict[Situation, Floats]:
        """Derivative of `value` by the logits of every situation; shapes (candidates,)."""
        total = {situation: np.zeros(len(row)) for situation, row in self._policy.items()}
        for state, node in self._tree.nodes.items():
            if isinstance(node, Decide):
                situation = (node.choice.observation, node.choice.candidates)
                advantage = self._following(state) - self._values[state]
                total[situation] += self.reach[state] * self._policy[situation] * advantage
        return total

    def _following(self, state: State) -> Floats:
        return np.array([self._values[after] for after in self._tree.moves[state]])

    def _shares(self, state: State) -> Floats:
        match self._tree.nodes[state]:
            case Decide(_, choice):
                return self._policy[choice.observation, choice.candidates]
            case Chance(probabilities):
                return np.array(probabilities)
            case End():
                return np.zeros(0)

    def _backward(self, channel: str) -> dict[State, float]:
        values: dict[State, float] = {}
        for state in reversed(self._tree.nodes):
            node = self._tree.nodes[state]
            if isinstance(node, End):
                values[state] = _payoff(node, channel)
                continue
            following = [values[after] for after in self._tree.moves[state]]
            paid = node.paid.get(channel, 0.0) if isinstance(node, Chance) else 0.0
            values[state] = paid + float(self._shares(state) @ following)
        return values


def _payoff(node: End, channel: str) -> float:
    if channel not in node.payoffs:
        hint = did_you_mean(channel, node.payoffs)
        raise StrettoError(f'the game pays nothing on the channel "{channel}"', hint=hint)
    return node.payoffs[channel]


def _probabilities(
    task: Task, rules: Rules, policies: Mapping[str, Policy]
) -> dict[Situation, Floats]:
    """Ask each role's policy once, for all the situations that it can meet."""
    by_role: dict[str, dict[Situation, None]] = defaultdict(dict)
    for node in explore(rules).nodes.values():
        if isinstance(node, Decide):
            by_role[node.role][node.choice.observation, node.choice.candidates] = None
    found: dict[Situation, Floats] = {}
    for role, situations in by_role.items():
        if role not in policies:
            raise StrettoError(f'no policy for role "{role}"', hint=did_you_mean(role, policies))
        asks = [Ask("truth", task.harness.system, *each, role, 0) for each in situations]
        answers = policies[role].decide(asks)
        for situation, answer in zip(situations, answers, strict=True):
            if not answer.logprobs:
                hint = "only a policy that knows its probabilities has an exact value"
                raise StrettoError("the policy states no log-probabilities", role, hint)
            found[situation] = np.exp(np.array(answer.logprobs))
    return found
