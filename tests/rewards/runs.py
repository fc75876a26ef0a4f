"""Short runs of the training loop on small games, and what they are worth exactly."""

from stretto.learn import session
from stretto.learn.loop import train
from stretto.learn.recipe import resolve
from stretto.tasks.games.truth import truth_of


def trained(task, reward, folder, steps, credit="grpo"):
    """A complete run of a table, and its metrics."""
    settings = {"steps": steps, "episodes": 48, "warmup": 0, "entropy": 0.0, "keep_traces": 0}
    table = {
        "task": task,
        "reward": reward,
        "policy": {"kind": "tabular", "tabular": {"learning_rate": 0.4}},
        "train": {**settings, "credit": credit, "checkpoint_every": steps},
    }
    run, rows = session.start(resolve(table, "the test"), folder / "run"), []
    assert train(run, rows.append, lambda: False)
    return run, rows


def value(run, channel="outcome", policy=None):
    """Exact expected value of a run's policy, or of another, on a channel of its game."""
    policies = dict.fromkeys(run.task.harness.roles, policy or run.policy)
    return truth_of(run.task, policies, channel).value
