"""The training loop, flat: roll out, score, credit, update, look at the exact value, write down."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from torch import Tensor

from stretto.learn import run_folder
from stretto.learn.batch import Batch, make_batch
from stretto.learn.channels import KNOWN
from stretto.learn.losses import divergence, entropy, policy_loss
from stretto.learn.parallelism import mean_speedup
from stretto.learn.recipe import Recipe, TrainConfig
from stretto.learn.scoring import credit_turns
from stretto.policies.trainable import Trainable
from stretto.rewards.watch import (
    LEAST,
    Sighting,
    hacked,
    pays_proxies,
    proxy_correlation,
    sight,
    spawns_for_nothing,
)
from stretto.tasks.oracle import Oracle, policy_probabilities
from stretto.team.engine import rollout
from stretto.team.noise import key_of
from stretto.team.protocols import Task
from stretto.trace import Trace

Metrics = dict[str, Any]


@dataclass
class Run:
    """A run under way."""

    recipe: Recipe
    folder: Path
    task: Task
    oracle: Oracle | None
    policy: Trainable
    reference: Trainable | None
    """The untrained policy, where the loss has a KL term."""
    optimiser: torch.optim.Optimizer
    step: int = 0
    """Steps done."""
    seconds: float = 0.0
    """Time spent, earlier sessions included."""
    tokens_before: dict[str, int] = field(default_factory=lambda: {"generated": 0, "trained": 0})
    """Tokens of earlier sessions."""
    seen: list[Sighting] = field(default_factory=list)
    """Proxy and utility of every step done."""
    halted: str = ""
    """Why the run was interrupted by itself; empty where it was not."""

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens so far."""
        return {
            "generated": self.tokens_before["generated"] + self.policy.tokens_generated,
            "trained": self.tokens_before["trained"] + self.policy.tokens_trained,
        }


def train(run: Run, show: Callable[[Metrics], None], stopping: Callable[[], bool]) -> bool:
    """Go on until the recipe's last step, until `stopping` says so, or until the reward is hacked.

    In any case the last step is in a checkpoint; the return says whether the run is complete.
    """
    config = run.recipe.train
    began = time.perf_counter() - run.seconds
    while run.step < config.steps and not stopping() and not run.halted:
        traces, metrics = take_step(run)
        run.step += 1
        run.seconds = time.perf_counter() - began
        metrics = {"step": run.step, "seconds": round(run.seconds, 3), **metrics}
        run_folder.append(run.folder, metrics, traces[: config.keep_traces])
        show(metrics)
        run.halted = _halts(run)
        due = run.step % config.checkpoint_every == 0 or run.step == config.steps
        if due or run.halted or stopping():
            save(run)
    return run.step == config.steps


def take_step(run: Run) -> tuple[Sequence[Trace], Metrics]:
    """One rollout of a group of episodes, and one update."""
    config = run.recipe.train
    traces = rollout(run.task, dict.fromkeys(run.task.harness.roles, run.policy), _seeds(run))
    reward, prices = run.recipe.reward, run.task.prices
    credit, returns = credit_turns(reward, prices, run.step, traces, config.credit)
    batch = make_batch(traces, credit, run.task.harness.system, config.normalise)
    losses = [_update(run, batch) for _ in range(config.epochs)]
    run.policy.updated()
    run.seen.append(_sight(run, traces))
    metrics = {
        "reward": _mean(returns),
        "proxy": run.seen[-1].proxy,
        "utility": run.seen[-1].utility,
        "proxy_correlation": proxy_correlation(run.seen),
        "spawning": run.seen[-1].spawning,
        "speedup": run.seen[-1].speedup,
        "outcome": _mean([trace.reward("outcome") for trace in traces]),
        "value": exact_value(run),
        **losses[-1],
        "turns": len(batch.ask),
        "episodes": config.episodes,
        "tokens_generated": run.tokens["generated"],
        "tokens_trained": run.tokens["trained"],
    }
    return traces, metrics


def _sight(run: Run, traces: Sequence[Trace]) -> Sighting:
    seen = sight(run.recipe.reward, run.task.prices, traces, KNOWN)
    return seen if seen.spawning is None else replace(seen, speedup=mean_speedup(traces))


def _halts(run: Run) -> str:
    """Why the run ought to be interrupted; empty where it need not."""
    config = run.recipe.train
    if run.step == config.steps or not config.stop_on_hacking or not _is_hacked(run, run.step):
        return ""
    correlation = proxy_correlation(run.seen)
    return f"the proxy rises while the utility falls (correlation {correlation:.2f})"


def _is_hacked(run: Run, step: int) -> bool:
    """Whether what was seen up to a step, at which a proxy is still paid for, is a hack."""
    paid = pays_proxies(run.recipe.reward, run.task.prices, step, KNOWN)
    return paid and hacked(run.seen[:step])


def warnings(run: Run) -> list[str]:
    """What a run so far should be looked at for: a reward that was hacked, spawning for nothing."""
    found: list[str] = []
    step = next((n for n in range(LEAST, run.step + 1) if _is_hacked(run, n)), None)
    if step is not None:
        found.append(f"the proxy rose while the utility fell, as was sure at step {step}")
    if spawns_for_nothing(run.seen):
        found.append("spawning rose while speed-up (work over critical path) stayed flat")
    return found


def exact_value(run: Run) -> float | None:
    """Exact value of the policy as it is now, or `None` for a task without an oracle."""
    if run.oracle is None:
        return None
    return run.oracle.value(policy_probabilities(run.task, run.oracle, run.policy))


def save(run: Run) -> None:
    """Checkpoint everything that the next step depends on."""
    state = {
        "policy": run.policy.state(),
        "optimiser": run.optimiser.state_dict(),
        "seconds": run.seconds,
        "tokens": run.tokens,
    }
    run_folder.save_checkpoint(run.folder, run.step, state)


def restore(run: Run, checkpoint: dict[str, Any]) -> None:
    """Go back to a checkpoint."""
    run.policy.restore(checkpoint["policy"])
    run.optimiser.load_state_dict(checkpoint["optimiser"])
    run.step = checkpoint["step"]
    rows = run_folder.read_metrics(run.folder, run.step)
    run.seen = [Sighting(*map(row.get, Sighting.__struct_fields__)) for row in rows]
    run.seconds = checkpoint["seconds"]
    # Which prompts a model computes together changes the last bits. The run that was interrupted
    # had computed the oracle's together when it went on, so a resumed one must, to stay equal.
    exact_value(run)
    read_again = {"generated": run.policy.tokens_generated, "trained": run.policy.tokens_trained}
    run.tokens_before = {
        name: count - read_again[name] for name, count in checkpoint["tokens"].items()
    }


def _seeds(run: Run) -> list[int]:
    """Seeds of this step's episodes: never the same twice in a run, nor in runs of other seeds."""
    episodes = range(run.recipe.train.episodes)
    return [key_of(run.recipe.seed, f"{run.step}/{index}") >> 11 for index in episodes]


def _update(run: Run, batch: Batch) -> Metrics:
    config = run.recipe.train
    log_probs = [each.double() for each in run.policy.log_probs(batch.asks)]
    spread = entropy(log_probs, batch)
    loss = policy_loss(log_probs, batch, config.clip) - _entropy_weight(run, config) * spread
    if run.reference is not None:
        loss = loss + config.kl * divergence(log_probs, _reference(run, batch), batch)
    for group in run.optimiser.param_groups:
        group["lr"] = learning_rate(run.recipe, run.step)
    run.optimiser.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(run.policy.parameters(), config.gradient_norm)
    run.optimiser.step()
    return {"loss": loss.item(), "entropy": spread.item(), "gradient_norm": norm.item()}


def learning_rate(recipe: Recipe, step: int) -> float:
    """Step size at a step (from 0): it rises over the warm-up, and falls linearly to the end."""
    config = recipe.train
    rise = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    return recipe.policy.learning_rate * rise * (1 - step / config.steps)


def _entropy_weight(run: Run, config: TrainConfig) -> float:
    return config.entropy * (1 - run.step / config.steps)


def _reference(run: Run, batch: Batch) -> list[Tensor]:
    assert run.reference is not None
    with torch.no_grad():
        return [each.double() for each in run.reference.log_probs(batch.asks)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
