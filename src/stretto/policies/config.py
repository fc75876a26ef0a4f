"""Which policy, with which parameters."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

Rate = Annotated[float, Meta(gt=0)]


class LmConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A causal language model whose choices are constrained to the legal ones."""

    model: str = "smollm2"
    """`smollm2` (embedded), a local folder, or the name of a model on a hub."""
    learning_rate: Rate = 5e-5
    """Step size of AdamW."""


class TabularConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One logit for every pair of observation and choice."""

    learning_rate: Rate = 0.1
    """Step size of AdamW."""


class PolicyConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Who decides."""

    kind: Literal["lm", "tabular"] = "lm"
    """Which policy is trained."""
    lm: LmConfig = LmConfig()
    tabular: TabularConfig = TabularConfig()

    @property
    def learning_rate(self) -> float:
        """Step size of the policy that is trained."""
        return self.lm.learning_rate if self.kind == "lm" else self.tabular.learning_rate
