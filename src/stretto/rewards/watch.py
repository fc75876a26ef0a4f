"""Whether what is easy to pay for still goes with what is wanted, over the steps of a run.

The *proxy* is what every channel pays that is neither the outcome nor a price, at its hand-set
weight, whatever its schedule. The *utility* is the outcome less all prices. Hacking is the proxy up
while the utility goes down (reward over-optimisation: Gao et al., arXiv 2210.10760).
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stretto.rewards.channels import CHANNELS, PRICES, Channels, Term, stream_of, weight_at
from stretto.rewards.compose import preset_of
from stretto.rewards.mix import Mix, pays_apart, terms_of
from stretto.rewards.stream import Floats
from stretto.team.protocols import Prices
from stretto.trace import Trace

NEUTRAL = ("constant", "shaping")
"""Channels that move no policy."""
WINDOW, LEAST = 40, 10
"""Steps that are looked back upon, and how many there must be."""
SURE = 3.5
"""Standard errors from which on a difference counts: it is looked at after every step, so that the
usual two would end one run of noise in two within 200 steps; this ends one in a hundred."""


class Sighting(Struct, frozen=True):
    """What one step paid, means over its rollouts."""

    proxy: float | None
    """`None` where no channel is a proxy, or none was scored."""
    utility: float | None
    """`None` where no rollout has an outcome."""
    spawning: float | None = None
    """PARL's `r_parallel`; `None` where spawning is not paid for."""
    speedup: float | None = None
    """Work over critical path; `None` where spawning is not paid for, and where not known."""


def sight(
    mix: Mix, prices: Prices, traces: Sequence[Trace], known: Channels = CHANNELS
) -> Sighting:
    """Proxy and utility of a step's rollouts; a proxy whose weight is 0 by now is still told.

    Where a preset pays agents apart, its terms are told for all agents together. How fast the teams
    were is not seen here.
    """
    terms = _all_terms(mix, prices, known)
    wanted = [Term(channel="outcome"), *(term for term in terms if term.channel in PRICES)]
    spawning = [replace(t, weight=1.0) for t in proxies(terms) if t.channel == "parallel"]
    return Sighting(
        _mean(proxies(terms), traces, known),
        _mean(wanted, traces, known),
        _mean(spawning[:1], traces, known),
    )


def _all_terms(mix: Mix, prices: Prices, known: Channels) -> list[Term]:
    shares = preset_of(mix.preset).shares if pays_apart(mix) else ()
    return [*terms_of(mix, prices, known), *(term for share in shares for term in share.terms)]


def proxies(terms: Sequence[Term]) -> list[Term]:
    """The terms that are proxies: what is paid for, and is neither wanted in itself nor a price."""
    return [t for t in terms if t.weight > 0 and not t.is_wanted and t.channel not in NEUTRAL]


def pays_proxies(mix: Mix, prices: Prices, step: int, known: Channels = CHANNELS) -> bool:
    """Whether a proxy has any weight at this step."""
    return any(weight_at(term, step) for term in proxies(_all_terms(mix, prices, known)))


def _mean(terms: Sequence[Term], traces: Sequence[Trace], known: Channels) -> float | None:
    means: list[float] = []
    for term in terms:
        streams = (stream_of(term, trace, known=known) for trace in traces)
        totals = [stream.total for stream in streams if stream is not None]
        means += [term.weight * float(np.mean(totals))] if totals else []
    return sum(means) if means else None


def proxy_correlation(history: Sequence[Sighting]) -> float | None:
    """Correlation of proxy and utility over the last `WINDOW` steps.

    `None` for fewer than `LEAST` steps with both, and where one of them never moved.
    """
    proxy, utility = _window(history)
    if len(proxy) < LEAST or not proxy.std() or not utility.std():
        return None
    return float(np.corrcoef(proxy, utility)[0, 1])


def hacked(history: Sequence[Sighting]) -> bool:
    """Whether, in the last `WINDOW` steps, the proxy surely rose while the utility surely fell.

    All three must be `SURE`: a negative correlation (Fisher's z), a second half of the window with
    more proxy than the first, and with less utility (Welch's t). Noise that moves both against each
    other on a plateau is no hack. One that is over within a few steps is missed: utility must still
    be seen to fall.
    """
    found = proxy_correlation(history)
    if found is None:
        return False
    proxy, utility = _window(history)
    negative = np.arctanh(np.clip(found, -1 + 1e-12, 1 - 1e-12)) < -SURE / np.sqrt(len(proxy) - 3)
    return bool(negative and _drift(proxy) > SURE and _drift(utility) < -SURE)


def _drift(values: Floats) -> float:
    """Difference of the later half to the earlier one in standard errors."""
    half = len(values) // 2
    parts = values[:half], values[half:]
    error = np.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in parts))
    return float((parts[1].mean() - parts[0].mean()) / max(error, 1e-12))


def flat_speedup(parallel: Sequence[float], speedup: Sequence[float], gain: float = 0.1) -> bool:
    """PARL's trap: instantiation goes up while speed-up stays flat.

    Whether `r_parallel` rose by more than `gain` of its mean from the first third of the steps to
    the last, and the speed-up (work over critical path) by no more than `gain` of its own.
    """
    return _rise(parallel) > gain >= _rise(speedup)


def spawns_for_nothing(history: Sequence[Sighting]) -> bool:
    """Whether the steps so far, `LEAST` or more of which know both, are PARL's trap."""
    spawning, speedup = _pairs((each.spawning, each.speedup) for each in history)
    return len(spawning) >= LEAST and flat_speedup(spawning.tolist(), speedup.tolist())


def _rise(values: Sequence[float]) -> float:
    """Relative difference of the last third to the first."""
    third = max(len(values) // 3, 1)
    first, last = (float(np.mean(part)) for part in (values[:third], values[-third:]))
    middle = (abs(first) + abs(last)) / 2
    return (last - first) / middle if middle else 0.0


def _window(history: Sequence[Sighting]) -> tuple[Floats, Floats]:
    return _pairs((each.proxy, each.utility) for each in history[-WINDOW:])


def _pairs(values: Iterable[tuple[float | None, float | None]]) -> tuple[Floats, Floats]:
    """Those steps of which both are known."""
    known = [(one, other) for one, other in values if one is not None and other is not None]
    array = np.array(known, dtype=np.float64).reshape(-1, 2)
    return array[:, 0], array[:, 1]
