"""From a recipe to a run, and from a finished run to its result."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from stretto.errors import StrettoError
from stretto.learn import run_folder
from stretto.learn.channels import KNOWN
from stretto.learn.loop import Run, exact_value, restore, warnings
from stretto.learn.recipe import Recipe
from stretto.policies.build import build_policy, load_policy
from stretto.policies.trainable import Trainable
from stretto.rewards.mix import pays_apart, score_group
from stretto.tasks import build
from stretto.tasks.oracle import Oracle, oracle_of, policy_probabilities
from stretto.team.engine import rollout
from stretto.team.noise import key_of


def start(recipe: Recipe, folder: Path) -> Run:
    """Begin a run in a new folder."""
    run = _assemble(recipe, folder)
    run_folder.create(folder, recipe)
    return run


def resume(folder: Path, recipe: Recipe | None = None) -> Run:
    """Go on from the newest checkpoint; whatever came after it is done again.

    Raises `StrettoError` where there is no run, it is complete, or `recipe` differs from its own.
    """
    if run_folder.read_result(folder) is not None:
        hint = f"see it with: stretto eval {folder}"
        raise StrettoError("the run is complete: nothing to go on with", str(folder), hint)
    saved = run_folder.reopen(folder, recipe)
    run = _assemble(saved, folder)
    checkpoint = run_folder.load_checkpoint(folder)
    run_folder.rewind(folder, checkpoint)
    if checkpoint is not None:
        restore(run, checkpoint)
    return run


def finished(folder: Path, recipe: Recipe) -> dict[str, Any] | None:
    """The result of a run that is complete, else `None`.

    Raises `StrettoError` where there is no run, or `recipe` differs from its own.
    """
    run_folder.reopen(folder, recipe)
    result = run_folder.read_result(folder)
    if result is not None:
        _leave(folder)  # it may have been killed between its result and its report
    return result


def finish(run: Run) -> dict[str, Any]:
    """Write the learned policy, the result and the report of a complete run."""
    run.policy.export(run.folder / "weights")
    result = summary(run) | {"warnings": warnings(run)}
    result |= {} if run.oracle else _sampled(run, run.recipe.train.episodes)
    run_folder.write_result(run.folder, result)
    _leave(run.folder)
    return result


def _leave(folder: Path) -> None:
    """What a complete run still needs: its report, and no checkpoint."""
    from stretto.viewer.report import write_report

    if not (folder / "report.html").exists():
        write_report(folder, folder / "report.html")
    run_folder.drop_checkpoints(folder)


def evaluate(folder: Path, episodes: int) -> dict[str, Any]:
    """Value the policy of a run: that of a finished one, else of its newest checkpoint.

    The value is exact where the task has an oracle; else `mean`, and `low` to `high` (95 %, normal
    approximation), of the cost-adjusted return over fresh episodes.

    Raises `StrettoError` where nothing has been learned yet.
    """
    recipe = run_folder.reopen(folder, None)
    result = run_folder.read_result(folder)
    spent: dict[str, Any] = {}
    if result is not None:
        run = _assemble(recipe, folder, load_policy(recipe.policy, folder / "weights"))
        run.step = recipe.train.steps
        spent = {key: result[key] for key in ("seconds", "tokens_generated", "tokens_trained")}
    else:
        checkpoint = run_folder.load_checkpoint(folder)
        if checkpoint is None:
            raise StrettoError("no checkpoint yet: nothing has been learned", str(folder))
        run = _assemble(recipe, folder)
        restore(run, checkpoint)
    return summary(run) | spent | ({} if run.oracle else _sampled(run, episodes))


def _sampled(run: Run, episodes: int) -> dict[str, float]:
    seeds = [key_of(run.recipe.seed, f"eval/{index}") >> 11 for index in range(episodes)]
    traces = rollout(run.task, dict.fromkeys(run.task.harness.roles, run.policy), seeds)
    reward = run.recipe.reward
    if pays_apart(reward):  # then the team's own value is the outcome less prices
        reward = msgspec.structs.replace(reward, preset="")
    earned = score_group(reward, run.task.prices, run.recipe.train.steps, traces, KNOWN)
    returns = np.array([stream.total for stream in earned.values() if stream is not None])
    mean, half = returns.mean(), 1.96 * returns.std(ddof=1) / len(returns) ** 0.5
    return {"mean": float(mean), "low": float(mean - half), "high": float(mean + half)}


def summary(run: Run) -> dict[str, Any]:
    """The learned policy beside optimum and baselines."""
    oracle = run.oracle
    return {
        "value": exact_value(run),
        "optimum": oracle.optimum if oracle else None,
        "baselines": dict(oracle.baselines) if oracle else {},
        "seconds": round(run.seconds, 1),
        "tokens_generated": run.tokens["generated"],
        "tokens_trained": run.tokens["trained"],
        "steps": run.step,
        "seed": run.recipe.seed,
        "policy": run.policy.about,
        "task": run.task.spec,
        "decisions": _decisions(run, oracle) if oracle else None,
    }


def _decisions(run: Run, oracle: Oracle) -> dict[str, Any]:
    """How the policy decides where nothing is ruled out, beside the optimum."""
    probabilities = policy_probabilities(run.task, oracle, run.policy)
    optimal = oracle.optimal()
    widest = max(len(choice.candidates) for choice in oracle.choices)
    rows = [
        index for index, choice in enumerate(oracle.choices) if len(choice.candidates) == widest
    ]
    return {
        "states": [oracle.choices[index].observation for index in rows],
        "choices": list(oracle.choices[rows[0]].candidates),
        "probabilities": [probabilities[index].round(6).tolist() for index in rows],
        "optimal": [optimal[index].round(6).tolist() for index in rows],
        "visits": oracle.visits(probabilities)[rows].round(6).tolist(),
    }


def _assemble(recipe: Recipe, folder: Path, policy: Trainable | None = None) -> Run:
    task = build(recipe.task)
    policy = policy or build_policy(recipe.policy)
    config = recipe.policy
    optimiser = torch.optim.AdamW(
        policy.parameters(), lr=config.learning_rate, weight_decay=0.0, fused=True
    )
    reference = build_policy(recipe.policy) if recipe.train.kl else None
    return Run(recipe, folder, task, oracle_of(task), policy, reference, optimiser)
