"""From a configuration to a trainable policy."""

from pathlib import Path

from stretto.policies.config import PolicyConfig
from stretto.policies.trainable import Trainable


def build_policy(config: PolicyConfig) -> Trainable:
    """The untrained policy; fetches the model where it is not there yet."""
    if config.kind == "tabular":
        from stretto.policies.tabular import Tabular

        return Tabular()
    from stretto.policies.lm_policy import LmPolicy

    return LmPolicy(config.lm.model)


def load_policy(config: PolicyConfig, weights: Path) -> Trainable:
    """The policy that a finished run left in its `weights` folder."""
    if config.kind == "tabular":
        from stretto.policies.tabular import Tabular

        return Tabular.open(weights)
    from stretto.policies.lm_policy import LmPolicy

    return LmPolicy(str(weights))
