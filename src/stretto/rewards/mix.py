"""R8: a weighted mix of reward channels, with schedules, per-channel scales, and balance."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from stretto.errors import StrettoError, did_you_mean
from stretto.rewards.balance import SPREAD, Balance, factors, spreads
from stretto.rewards.channels import (
    CHANNELS,
    PRICES,
    Channels,
    Term,
    read_term,
    stream_of,
    weight_at,
    write_term,
)
from stretto.rewards.compose import preset_of, preset_rewards, weighted
from stretto.rewards.outcome import outcome
from stretto.rewards.presets import TEAM, Preset, Share
from stretto.rewards.ranges import Count, NonNegative
from stretto.rewards.stream import Floats, Reward, Stream, add, scale
from stretto.team.protocols import Prices
from stretto.trace import Trace


class Mix(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the team is paid: the outcome, or a preset; less costs; and what else is named."""

    cost: NonNegative = 1.0
    """Weight of the task's prices for spawns and time."""
    parallel: NonNegative = 0.0
    """PARL's λ1: pays for spawning."""
    finish: NonNegative = 0.0
    """PARL's λ2: pays for sub-agents that return."""
    most: Count = 8
    """Spawns that earn all of λ1."""
    anneal: Annotated[int, Meta(ge=0)] = 0
    """Steps over which λ1 and λ2 fall to 0; 0 keeps them, and invites spawning for nothing."""
    preset: str = ""
    """A published mix that takes the place of the plain outcome; empty for none."""
    balance: Balance = "none"
    """How the weights of all but the outcome and prices follow the group: `rewards.balance`."""
    channels: dict[str, Any] = {}
    """Channel to its weight, or to a table of weight, schedule and parameters."""


def checked(mix: Mix, roles: Collection[str], known: Channels = CHANNELS) -> Mix:
    """The same mix with every channel written as a table; `roles` are those of the task.

    Raises `StrettoError` for an unknown preset, channel, key, rule or role, for a value out of its
    range, and where a preset pays agents apart for a scale that follows the group and for a channel
    that would take the place of one of the preset.
    """
    _preset(mix)
    terms = {name: _named(name, value, known) for name, value in mix.channels.items()}
    for name, term in terms.items():
        role = term.parameters.get("role")
        if role is not None and role not in roles:
            hint = did_you_mean(role, roles)
            raise StrettoError(f'the task has no role "{role}"', f"channels.{name}.role", hint)
    tables = {name: write_term(term) for name, term in terms.items()}
    whole = msgspec.structs.replace(mix, channels=tables)
    if pays_apart(mix):
        _check_apart(whole, known)
    return whole


def _named(name: str, value: Any, known: Channels) -> Term:
    try:
        return read_term(name, value, known)
    except StrettoError as error:
        raise StrettoError(error.what, f"channels.{error.where}", error.hint) from None


def _check_apart(mix: Mix, known: Channels) -> None:
    what = f'"{mix.preset}" pays agents apart'
    if _follows_group(mix, terms_of(mix, Prices(), known)):
        raise StrettoError(f"{what}: it has no scale", "preset", "leave out balance and normalise")
    paid = {term.channel for share in preset_of(mix.preset).shares for term in share.terms}
    for name in sorted(paid & mix.channels.keys()):
        hint = f'to pay everybody more, name it otherwise and say of = "{name}"'
        raise StrettoError(f'{what}: its "{name}" cannot be replaced', f"channels.{name}", hint)


def _follows_group(mix: Mix, terms: Sequence[Term]) -> bool:
    return mix.balance != "none" or any(term.normalise for term in terms)


def _preset(mix: Mix) -> Preset | None:
    try:
        return preset_of(mix.preset) if mix.preset else None
    except StrettoError as error:
        raise StrettoError(error.what, "preset", error.hint) from None


def pays_apart(mix: Mix) -> bool:
    """Whether the preset pays agents or roles each their own: see `score_agents`."""
    preset = _preset(mix)
    return preset is not None and [share.to for share in preset.shares] != [TEAM]


def _team_share(mix: Mix) -> Share:
    """What the team is paid before prices: the preset, else the outcome."""
    preset = _preset(mix)
    if preset is None:
        return Share(terms=(Term(channel="outcome"),))
    return Share(terms=()) if pays_apart(mix) else preset.shares[0]


def terms_of(mix: Mix, prices: Prices, known: Channels = CHANNELS) -> tuple[Term, ...]:
    """All terms that pay the team, the outcome first; what is named replaces its like."""
    price = {"spawn": prices.spawn, "second": prices.second}
    most = {"most": mix.most}
    extra = (
        Term(channel="cost", weight=mix.cost, optional=True, parameters=price),
        Term(channel="parallel", weight=mix.parallel, anneal=mix.anneal, parameters=most),
        Term(channel="finish", weight=mix.finish, anneal=mix.anneal, optional=True),
    )
    found = {term.channel: term for term in _team_share(mix).terms}
    found |= {term.channel: term for term in extra if term.weight}
    found |= {name: read_term(name, value, known) for name, value in mix.channels.items()}
    return tuple(sorted(found.values(), key=lambda term: term.channel != "outcome"))


def mixed(mix: Mix, prices: Prices, step: int, known: Channels = CHANNELS) -> Reward:
    """The reward of training step `step`, as all terms are weighed then.

    A trace without an outcome is not scored.

    Raises `StrettoError` for a mix that normalises or balances: that needs the whole group, see
    `score_group`; and from the reward, for a trace that a term which is not optional cannot score.
    """
    if _follows_group(mix, terms_of(mix, prices, known)):
        raise StrettoError("a mix that follows the group's scale needs the group: score_group")

    def reward(trace: Trace) -> Stream | None:
        return score_group(mix, prices, step, [trace], known)[trace.id]

    return reward


def score_group(
    mix: Mix, prices: Prices, step: int, traces: Sequence[Trace], known: Channels = CHANNELS
) -> dict[str, Stream | None]:
    """What every trace of a group earned at training step `step`, by the id of the trace.

    A channel that is normalised is divided by the standard deviation of its totals over the traces
    of the group that it scored; one without any spread is left as it is. A trace without an outcome
    is not scored.

    Raises `StrettoError` for a trace that a term which is not optional cannot score, and for a
    preset that pays agents apart.
    """
    if pays_apart(mix):
        raise StrettoError(f'"{mix.preset}" pays agents apart, not the team', hint="score_agents")
    terms = [term for term in terms_of(mix, prices, known) if weight_at(term, step)]
    kept = {trace.id: trace for trace in traces if outcome(trace) is not None}
    parts = [_streams(mix, terms, trace, known) for trace in kept.values()]
    weight = _weights(mix, terms, step, parts, list(kept.values()))
    scored = {
        name: _sum([scale(s, w) for s, w in zip(own, weight, strict=True) if s is not None], trace)
        for (name, trace), own in zip(kept.items(), parts, strict=True)
    }
    return {trace.id: scored.get(trace.id) for trace in traces}


def score_agents(
    mix: Mix, prices: Prices, step: int, traces: Sequence[Trace], known: Channels = CHANNELS
) -> dict[str, dict[str, Stream]]:
    """What each agent earned at a step under a preset that pays agents apart: by agent, by trace.

    To what the preset pays come the prices and channels of the mix, the same for all. An agent
    that is not paid, or whose part was not scored, is left out of that trace.
    """
    terms = terms_of(mix, prices, known)
    found: dict[str, dict[str, Stream]] = {}
    for trace in traces:
        shared = weighted(terms, trace, step, known=known)
        if terms and shared is None:
            raise StrettoError("a channel of the mix did not score this trace", trace.id)
        for agent, stream in preset_rewards(mix.preset, trace, step).items():
            if stream is not None:
                own = stream if shared is None else add([stream, shared])
                found.setdefault(agent, {})[trace.id] = own
    return found


def _streams(mix: Mix, terms: Sequence[Term], trace: Trace, known: Channels) -> list[Stream | None]:
    """The stream of every term, unweighted; those of a preset multiplied by its gate."""
    share = _team_share(mix)
    gate = 1.0 if share.gate is None else _total(share.gate, trace, known)
    found: list[Stream | None] = []
    for term in terms:
        stream = stream_of(term, trace, known=known)
        if stream is None and not term.optional:
            hint = "score it, or say optional = true for this channel"
            what = f'not scored on the reward channel "{term.name or term.channel}"'
            raise StrettoError(what, trace.id, hint)
        gated = stream is not None and term in share.terms
        found.append(scale(stream, gate) if stream is not None and gated else stream)
    return found


def _total(gate: Term, trace: Trace, known: Channels) -> float:
    stream = stream_of(gate, trace, known=known)
    if stream is None:
        raise StrettoError("the gate of the preset is not scored", trace.id)
    return stream.total


def _weights(
    mix: Mix,
    terms: Sequence[Term],
    step: int,
    parts: Sequence[Sequence[Stream | None]],
    traces: Sequence[Trace],
) -> Floats:
    weight = np.array([weight_at(term, step) for term in terms])
    normal = np.array([term.normalise for term in terms], dtype=bool)
    if not len(traces) or not _follows_group(mix, terms):
        return weight
    totals = np.array(
        [[np.nan if s is None else s.total for s in own] for own in parts], dtype=np.float64
    ).T
    spread = spreads(totals)
    unit = np.where(normal & (spread > SPREAD), spread, 1.0)
    totals = totals / unit[:, None]
    wanted = np.array([term.is_wanted for term in terms], dtype=bool)
    price = np.array([term.channel in PRICES for term in terms], dtype=bool)
    utility = _outcomes(traces) + np.nansum(weight[price, None] * totals[price], axis=0)
    balance = factors(mix.balance, totals, utility, traces)
    return weight / unit * np.where(wanted, 1.0, balance)


def _outcomes(traces: Sequence[Trace]) -> Floats:
    return np.array([stream.total for trace in traces if (stream := outcome(trace)) is not None])


def _sum(streams: Sequence[Stream], trace: Trace) -> Stream:
    return add(streams) if streams else Stream(np.zeros(len(trace.events)))
