"""Train a tabular policy on stop credit, and compare its exact value with the exact optimum.

    python benchmarks/stop_credit.py [--game ladder scouts] [--steps 150] [--seeds 3]

The policy is a softmax over logits by observation, trained by Adam on the policy gradient with one
credit method; learning rate and entropy bonus fall linearly. Regret is 1 - value / optimum, of the
policy as it is and of its most probable choices. The optimum is that of a lead who knows the whole
state. Puppeteer as published stands beside it: its returns have no baseline, so its credit is also
shown less its mean in the batch.
"""

import argparse
from collections import defaultdict

import numpy as np

from stretto.credit import assign_credit
from stretto.credit.table import outcome_reward
from stretto.policies.softmax import Softmax
from stretto.rewards.mix import Mix, mixed
from stretto.tasks.games.ladder import Ladder, LadderRules
from stretto.tasks.games.tree import optimum
from stretto.tasks.games.truth import truth_of
from stretto.tasks.oracle import policy_probabilities
from stretto.tasks.scouts import Scouts
from stretto.tasks.scouts.oracle import scouts_oracle
from stretto.team.engine import rollout
from stretto.team.noise import key_of
from stretto.trace import Tokens

RATE, BETAS, ENTROPY = 0.15, (0.9, 0.99), 0.01


def main() -> None:
    """Train every method on every game, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--game", nargs="+", choices=["ladder", "scouts"], default=["ladder", "scouts"]
    )
    parser.add_argument("--method", nargs="+", default=list(METHODS))
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--episodes", type=int, default=192)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'game':8}{'credit':24}{'optimum':>9}{'value':>9}{'regret %':>10}{'greedy %':>10}")
    for name in options.game:
        task = Ladder() if name == "ladder" else Scouts()
        best = optimum(LadderRules(task)) if name == "ladder" else scouts_oracle(task).optimum
        for method in options.method:
            runs = [train(task, method, options, seed) for seed in range(options.seeds)]
            value, greedy = np.mean(runs, axis=0)
            regret, of_greedy = 100 * (1 - value / best), 100 * (1 - greedy / best)
            print(
                f"{name:8}{method:24}{best:9.4f}{value:9.4f}{regret:10.2f}{of_greedy:10.2f}",
                flush=True,
            )


METHODS = {
    "stop": {},
    "stop, exact weights": {"weight": np.inf},
    "temporal_difference": {},
    "puppeteer": {"max_steps": 100},
    "puppeteer - mean": {"max_steps": 100},
}


def train(task, method, options, seed):
    """Exact value of the policy at the end, and of its most probable choices."""
    logits, moments = {}, {}
    reward = mixed(Mix(), task.prices, 0) if isinstance(task, Scouts) else outcome_reward
    for step in range(options.steps):
        left = 1 - step / options.steps
        policy = Softmax(logits)
        seeds = [key_of(seed, f"{step} {n}") >> 2 for n in range(options.episodes)]
        traces = rollout(task, dict.fromkeys(task.harness.roles, policy), seeds)
        name, _, shift = method.partition(" - ")
        credit = assign_credit(
            counted(traces), name.partition(",")[0], unit="turn", reward=reward, **METHODS[method]
        )
        value = credit.value - credit.value.mean() if shift else credit.value
        gradient = gradients(traces, credit, value, policy, ENTROPY * left)
        adam(logits, moments, gradient, RATE * left, step + 1)
    greedy = {place: np.where(row == row.max(), 0.0, -800.0) for place, row in logits.items()}
    return exact(task, Softmax(logits)), exact(task, Softmax(greedy))


def counted(traces):
    """Puppeteer prices tokens: every turn counts one."""
    from msgspec.structs import replace

    one = Tokens(input=0, output=1)
    return [
        replace(
            t, events=tuple(replace(e, tokens=one) if e.kind == "decision" else e for e in t.events)
        )
        for t in traces
    ]


def gradients(traces, credit, value, policy, entropy):
    """Situation to the gradient of the mean return, with an entropy bonus."""
    known = dict(
        zip(
            zip(credit.trace, credit.name, strict=True),
            value / max(value.std(), 1e-12),
            strict=True,
        )
    )
    found = defaultdict(float)
    for trace in traces:
        for event in trace.events:
            if event.kind != "decision":
                continue
            place = (trace.text(event.decision.observation), event.decision.candidates)
            odds = np.exp(event.decision.logprobs)
            score = -odds.copy()
            score[event.decision.chosen] += 1
            spread = -odds * (
                np.log(np.maximum(odds, 1e-30)) - odds @ np.log(np.maximum(odds, 1e-30))
            )
            found[place] = found[place] + (
                known.get((trace.id, event.id), 0.0) * score + entropy * spread
            ) / len(traces)
    return found


def adam(logits, moments, gradient, rate, step):
    """One step uphill, in place."""
    for place, slope in gradient.items():
        first, second = moments.get(place, (0.0, 0.0))
        first = BETAS[0] * first + (1 - BETAS[0]) * slope
        second = BETAS[1] * second + (1 - BETAS[1]) * slope**2
        moments[place] = first, second
        move = first / (1 - BETAS[0] ** step) / (np.sqrt(second / (1 - BETAS[1] ** step)) + 1e-8)
        logits[place] = logits.get(place, np.zeros(len(slope))) + rate * move


def exact(task, policy):
    """Expected cost-adjusted return."""
    if isinstance(task, Ladder):
        return truth_of(task, {"lead": policy}).value
    oracle = scouts_oracle(task)
    return oracle.value(policy_probabilities(task, oracle, policy))


if __name__ == "__main__":
    main()
