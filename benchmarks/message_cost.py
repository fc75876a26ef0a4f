"""Policy tokens to credit every message of a large team: incremental beside full-suffix replay.

    python benchmarks/message_cost.py [--agents 100] [--messages 30] [--draws 4]

A `gather` trace with a lead and 99 workers, whose policy mostly searches, reads and writes. For
every message the decision that sent it is compared with its first other candidate.

- *incremental*: the world shares every draw, and only who sees something new is asked (`what_if`).
- *full suffix, coupled*: the same world, but every decision after the message is asked again. The
  differences are the same numbers, so the standard error is too.
- *full suffix, fresh*: as rollouts from a prefix are usually made, with new randomness after the
  message. Its standard error is larger; the last line says how many tokens it needs for that of the
  incremental replay, measured on a sample of messages with several draws each.
"""

import argparse

import numpy as np

from stretto.credit.counterfactual.message import message
from stretto.credit.setup import Setup
from stretto.credit.table import as_group, outcome_reward
from stretto.policies.softmax import Softmax
from stretto.tasks.gather import Gather
from stretto.tasks.menus import size_of
from stretto.team.engine import rollout
from stretto.team.interventions import Force
from stretto.team.replay import fork
from stretto.team.what_if import what_ifs

PREFERENCES = {"write": 4.0, "read": 3.0, "search": 2.0, "spawn": 6.0, "return": 0.0, "submit": 0.0}
"""Logit of a candidate by its first word."""


class Diligent(Softmax):
    """Prefers to write what it read, then to read, then to search; sends as many as it can."""

    def logits(self, observation, candidates):
        """Logits of a situation; shape (candidates,)."""
        rows = [PREFERENCES[each.partition(" ")[0]] for each in candidates]
        sends = [i for i, each in enumerate(candidates) if each.startswith("spawn")]
        for place in sorted(sends, key=lambda i: size_of(candidates[i].partition(" ")[2]))[-1:]:
            rows[place] += 6.0
        return np.array(rows)


def main() -> None:
    """Roll out, credit every message, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--messages", type=int, default=30, help="messages of the fresh comparison")
    parser.add_argument("--draws", type=int, default=4, help="draws for each of them")
    options = parser.parse_args()
    workers = options.agents - 1
    task = Gather(entities=workers, attributes=3, workers=workers)
    policy = Diligent()
    setup = Setup(task, {"lead": policy, "worker": policy})
    trace = next(
        t
        for s in range(50)
        for t in rollout(task, setup.policies, [s])
        if len(t.agents) == options.agents
    )
    group = as_group(trace, outcome_reward)
    credit = message(group, "message", setup=setup, fan_out=2)
    worlds = coupled(trace, credit, setup)
    incremental, suffix = (sum(world[place] for world in worlds) for place in (2, 3))
    print(
        f"{len(trace.agents)} agents, {turns(trace.events)} decisions, {len(credit.name)} messages"
    )
    print(f"message credit, fan-out 2: {credit.policy_tokens.sum()} policy tokens")
    print(f"incremental           {incremental:8,} policy tokens")
    print(f"full suffix, coupled  {suffix:8,} ({suffix / incremental:.1f} times, same differences)")
    ours, fresh = spreads(trace, worlds, setup, options)
    factor = max(1.0, (fresh / ours) ** 2) if ours else float("inf")
    print(f"standard deviation of a difference over draws: {ours:.5f} coupled, {fresh:.5f} fresh")
    fresh_tokens = suffix * factor
    times = fresh_tokens / incremental
    print(f"full suffix, fresh    {fresh_tokens:8,.0f} ({times:.0f} times, same error)")
    print(f"share: {incremental / suffix:.4f} coupled; at most .1 is the target")


def turns(events):
    """Decisions among events."""
    return sum(event.kind == "decision" for event in events)


def coupled(trace, credit, setup):
    """One world a message: sender, candidate, policy tokens, and decisions after it there."""
    sender = {
        e.dst: e.src
        for e in trace.edges
        if e.dst in set(credit.name) and e.src.partition("#")[0] == e.dst.partition("#")[0]
    }
    changes = []
    for name in credit.name:
        event = trace.events[trace.columns.row[sender[name]]]
        others = [c for c in event.decision.candidates if c != event.decision.choice]
        if others:
            changes.append((event.id, others[0]))
    worlds = what_ifs(
        trace,
        [(event, Force(name)) for event, name in changes],
        task=setup.task,
        policies=setup.policies,
    )
    return [
        (
            event,
            do,
            world.policy_tokens,
            turns(world.trace.events[world.trace.columns.row[event] + 1 :]),
        )
        for (event, do), world in zip(changes, worlds, strict=True)
    ]


def spreads(trace, worlds, setup, options):
    """Standard deviation of the difference, given what was before, with shared and fresh draws."""
    step = max(1, len(worlds) // options.messages)
    shared, fresh = [], []
    for event, name, *_ in worlds[::step][: options.messages]:
        bases = [
            fork(trace, setup.task, event, setup.policies, seed=900 + n)
            for n in range(options.draws)
        ]
        others = [
            what_ifs(base, [(event, Force(name))], task=setup.task, policies=setup.policies)[
                0
            ].trace
            for base in bases
        ]
        ours = [
            base.reward("outcome") - other.reward("outcome")
            for base, other in zip(bases, others, strict=True)
        ]
        crossed = [
            base.reward("outcome") - other.reward("outcome")
            for base, other in zip(bases, others[1:] + others[:1], strict=True)
        ]
        shared.append(np.var(ours, ddof=1))
        fresh.append(np.var(crossed, ddof=1))
    return float(np.sqrt(np.mean(shared))), float(np.sqrt(np.mean(fresh)))


if __name__ == "__main__":
    main()
