"""Reward channels by name, and how a recipe or a preset asks for one: a `Term`."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from inspect import signature
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, get_type_hints

import msgspec
import numpy as np
from msgspec import Meta, Struct

from stretto.errors import StrettoError, did_you_mean
from stretto.rewards.cost import cost
from stretto.rewards.individual import constant, individual
from stretto.rewards.orchestration import anneal, finish, parallel
from stretto.rewards.outcome import outcome
from stretto.rewards.planning import aggregation, speedup, split
from stretto.rewards.process import discounted, folding, process
from stretto.rewards.ranges import NonNegative
from stretto.rewards.role import role
from stretto.rewards.shaping import shaping
from stretto.rewards.stopping import overlong, step_costs, stopping, token_budget
from stretto.rewards.stream import Stream
from stretto.rewards.tool_use import tool_calls, tool_format, tool_use, used_tool
from stretto.rewards.verifier import debate, verifiers
from stretto.trace import Trace

Channel = Callable[..., Stream | None]
"""A trace, and parameters by keyword, to a stream; `None` means that it was not scored."""

Channels = Mapping[str, Channel]

CHANNELS: Channels = {
    "aggregation": aggregation,
    "constant": constant,
    "cost": cost,
    "debate": debate,
    "discounted": discounted,
    "finish": finish,
    "folding": folding,
    "individual": individual,
    "outcome": outcome,
    "overlong": overlong,
    "parallel": parallel,
    "process": process,
    "role": role,
    "shaping": shaping,
    "speedup": speedup,
    "split": split,
    "step_costs": step_costs,
    "stopping": stopping,
    "token_budget": token_budget,
    "tool_calls": tool_calls,
    "tool_format": tool_format,
    "tool_use": tool_use,
    "used_tool": used_tool,
    "verifiers": verifiers,
}
"""Every channel that a trace alone can be scored on."""


PRICES = ("cost", "overlong", "step_costs", "stopping", "token_budget")
"""Channels that are prices: with the outcome they make the utility."""


class Term(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One channel of a mix."""

    channel: str
    """A name of `CHANNELS`."""
    name: str = ""
    """What the mix calls it, where that is not the name of the channel."""
    weight: float = 1.0
    """What its stream is multiplied by."""
    anneal: Annotated[int, Meta(ge=0)] = 0
    """Steps over which the weight falls linearly to 0; 0 keeps it."""
    schedule: tuple[tuple[NonNegative, float], ...] = ()
    """Points (step, factor) of the weight, linear between them, flat outside; not with `anneal`."""
    normalise: bool = False
    """Whether to divide by the standard deviation of its totals over the group."""
    optional: bool = False
    """Whether a trace that it does not score goes without it; else such a trace is not scored."""
    parameters: dict[str, Any] = {}
    """What the channel's function takes beside the trace."""

    @property
    def is_wanted(self) -> bool:
        """Whether it is part of the utility: the outcome, or a price."""
        return self.channel == "outcome" or self.channel in PRICES


OWN = ("weight", "anneal", "schedule", "normalise", "optional")
"""The keys of a term that are no parameters of its channel."""
OF = "of"
"""The key that names the channel, where a mix has several terms of one channel."""
_EMPTY = Trace(id="empty")


def read_term(name: str, value: Any, known: Channels = CHANNELS) -> Term:
    """A term from plain data: a weight, or a table of `OWN` keys and parameters of the channel.

    With a key `of` the table is of that channel, and `name` is free.

    Raises `StrettoError` that names the key, and the nearest one or the limit of its value.
    """
    table: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {"weight": value}
    channel = _channel(name, table.pop(OF, name), known)
    types = parameters_of(known[channel])
    _check_keys(name, table, types, _required(known[channel]))
    own = {key: table[key] for key in OWN if key in table}
    label = name if name != channel else ""
    term = _convert({"channel": channel, "name": label, **own}, Term, name)
    _check_weights(name, term)
    given = {key: table[key] for key in types if key in table}
    checked = {key: _convert(each, types[key], f"{name}.{key}") for key, each in given.items()}
    _try(name, known[channel], checked)
    return msgspec.structs.replace(term, parameters=checked)


def _channel(name: str, of: Any, known: Channels) -> str:
    channel: str = _convert(of, str, f"{name}.{OF}")
    if channel not in known:
        raise StrettoError(f'no reward channel "{channel}"', name, did_you_mean(channel, known))
    if channel != name and name in known:
        hint = f'give this term of "{channel}" another name'
        raise StrettoError(f'"{name}" is another channel', name, hint)
    return channel


def _check_keys(
    name: str, table: Mapping[str, Any], types: Mapping[str, Any], needed: Iterable[str]
) -> None:
    for key, value in table.items():
        if key not in OWN and key not in types:
            raise StrettoError(f'no key "{key}"', name, did_you_mean(key, [*OWN, OF, *types]))
        if not _is_finite(value):
            raise StrettoError("not every number is finite", f"{name}.{key}")
    for key in needed:
        if key not in table:
            raise StrettoError(f'the key "{key}" is needed', name, f"write a table with {key}")


def _is_finite(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


def _check_weights(name: str, term: Term) -> None:
    if term.anneal and term.schedule:
        raise StrettoError("both anneal and schedule", name, "one of them says it all")
    if any(later <= before for (before, _), (later, _) in pairwise(term.schedule)):
        raise StrettoError("the steps of a schedule must rise", f"{name}.schedule")


def _try(name: str, function: Channel, parameters: Mapping[str, Any]) -> None:
    """Refuse what no single type says, as an unknown rule: a channel refuses it of any trace."""
    try:
        function(_EMPTY, **parameters)
    except StrettoError as error:
        where = f"{name}.{error.where}" if error.where else name
        raise StrettoError(error.what, where, error.hint) from None


def write_term(term: Term) -> dict[str, Any]:
    """The table that `read_term` makes this term of; what has its default is left out."""
    default = Term(channel=term.channel)
    own = {key: getattr(term, key) for key in OWN if getattr(term, key) != getattr(default, key)}
    other = {OF: term.channel} if term.name else {}
    return {**other, "weight": term.weight, **own, **term.parameters}


@lru_cache(maxsize=256)
def parameters_of(function: Channel) -> Mapping[str, Any]:
    """What a channel takes beside the trace, of which types and in which ranges."""
    hints = get_type_hints(function, include_extras=True)
    return {name: hints[name] for name in list(signature(function).parameters)[1:]}


@lru_cache(maxsize=256)
def _required(function: Channel) -> tuple[str, ...]:
    given = list(signature(function).parameters.values())[1:]
    return tuple(each.name for each in given if each.default is each.empty)


def weight_at(term: Term, step: int) -> float:
    """The weight of a term at a training step (from 0)."""
    if term.schedule:
        steps, factors = zip(*term.schedule, strict=True)
        return term.weight * float(np.interp(step, steps, factors))
    return anneal(term.weight, step, term.anneal)


def stream_of(
    term: Term, trace: Trace, agent: str | None = None, known: Channels = CHANNELS
) -> Stream | None:
    """What a trace earned on the channel of a term, unweighted.

    With `agent`, that agent alone, on a channel that can tell agents apart.
    """
    function = known[term.channel]
    own = {"agent": agent} if agent is not None and "agent" in parameters_of(function) else {}
    return function(trace, **term.parameters, **own)


def _convert(value: Any, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise StrettoError(f"{what[0].lower()}{what[1:]}", f"{where}{path.rstrip('`')}") from None
