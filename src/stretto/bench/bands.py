"""Length bands, and the instances of every family that fall into each.

A band is a range of events in the episode of the family's `oracle` in its first topology; others
may take some more. Scores of different bands are never pooled: what holds over twenty events says
nothing about three thousand.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from stretto.errors import StrettoError, did_you_mean
from stretto.tasks import FAMILIES, build, family_of
from stretto.tasks.scripts import SCRIPTS, scripts_of
from stretto.tasks.topology import NAMES
from stretto.team.engine import rollout
from stretto.team.protocols import Task

LIMITS: Mapping[str, float] = {
    "10": 31,
    "100": 316,
    "1000": 3_162,
    "more": float("inf"),
}
"""Band to the most events that belong to it; each begins where the one before ends."""

Spec = Mapping[str, Any]

_HOP: Spec = {"family": "hops", "width": 1, "depth": 2}
_TEAM: Spec = {"family": "hops", "width": 3, "depth": 2, "worker_cost": 0.0}

SIZES: Mapping[str, Mapping[str, Spec]] = {
    "agree": {
        "10": {"problem": "maximum", "members": 2},
        "100": {},
        "1000": {"members": 41},
        "more": {"members": 361},
    },
    "gather": {
        "10": {
            **{"entities": 1, "attributes": 1, "cells_per_document": 1},
            **{"redundancy": 4.0, "workers": 1},
        },
        "100": {"entities": 8, "workers": 4},
        "1000": {"entities": 60, "workers": 12},
        "more": {"entities": 200, "attributes": 4, "workers": 40},
    },
    "hops": {
        "10": {"width": 2, "depth": 2},
        "100": {"width": 8, "depth": 4, "worker_cost": 0.005},
        "1000": {"width": 16, "depth": 8, "stages": 2, "worker_cost": 0.001},
        "more": {"width": 40, "depth": 12, "stages": 3, "worker_cost": 0.0001},
    },
    "jury": {
        "10": {"witnesses": 2, "copies": 0, "liars": 0},
        "100": {},
        "1000": {"classes": 2, "witnesses": 100, "copies": 10, "liars": 5, "faint": 81},
        "more": {"classes": 2, "witnesses": 700, "copies": 5, "liars": 30, "faint": 686},
    },
    "nest": {
        "10": {"inner": (_HOP,), "jobs": 2, "abreast": 2},
        "100": {"inner": (_TEAM,), "jobs": 2, "abreast": 2},
        "1000": {"jobs": 12, "abreast": 6},
        "more": {"jobs": 40, "abreast": 20},
    },
    "repair": {
        "10": {"layers": 1, "wide": 1, "healthy": 0, "workers": 1},
        "100": {"layers": 3, "wide": 3, "healthy": 1, "workers": 2},
        "1000": {"layers": 8, "wide": 7, "workers": 6},
        "more": {"layers": 8, "wide": 60, "workers": 30, "worker_cost": 0.0002},
    },
    "scouts": {
        "10": {"width": 2, "horizon": 4},
        "100": {"width": 16, "horizon": 24, "scout_cost": 0.002},
        "1000": {
            **{"width": 128, "horizon": 256, "sizes": "doubling", "most_lead": 64},
            **{"reliability": 0.56, "scout_cost": 0.0003, "round_cost": 0.02},
        },
        "more": {
            **{"width": 768, "horizon": 1536, "sizes": "doubling", "most_lead": 150},
            **{"reliability": 0.525, "scout_cost": 0.00005, "round_cost": 0.02},
        },
    },
}
"""Family to the parameters of its instances in each band; where it has none, it cannot be so long.
"""


def band_of(events: int) -> str:
    """The band of an episode of so many events."""
    return next(band for band, most in LIMITS.items() if events <= most)


@cache
def bands_of(family: str) -> Mapping[str, Spec]:
    """Parameters of a family's instances by band.

    A family that is not in `SIZES` takes part with its default parameters, in the band that the
    episode of its oracle falls into.
    """
    if family in SIZES:
        return SIZES[family]
    task = make(family, {}, seed=0)
    (trace,) = rollout(task, scripts_of(task)["oracle"], [0])
    return {band_of(len(trace.events)): {}}


def topologies_of(family: str) -> tuple[str, ...]:
    """The topologies that a family offers; the one that it has where it has no choice."""
    if "topology" in family_of(family).__struct_fields__:
        return NAMES
    return (make(family, {}, seed=0).harness.topology,)


def make(
    family: str,
    parameters: Spec,
    seed: int,
    topology: str | None = None,
    fault: str | None = None,
) -> Task:
    """The instance with this seed; what its family has no parameter for is left out."""
    known = family_of(family).__struct_fields__
    own = {"seed": seed, "topology": topology, "fault": fault}
    given = {name: value for name, value in own.items() if name in known and value is not None}
    return build({"family": family, **parameters, **given})


def require(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raise `StrettoError` for a name that is not known."""
    for name in names:
        if name not in known:
            raise StrettoError(f'no {what} "{name}"', "bench", did_you_mean(name, known))


def families() -> tuple[str, ...]:
    """Every family that has scripts."""
    return tuple(sorted(SCRIPTS.keys() & FAMILIES.keys()))
