"""What tokens cost: a dated table of list prices, and the prices of turns by it."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from math import inf
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from stretto.columns import Columns, Flags, Floats, Ints
from stretto.errors import StrettoError
from stretto.metrics.keys import models
from stretto.metrics.measure import join
from stretto.metrics.unpriced import Lost, why
from stretto.trace import Trace

VERSION = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
"""How the name of one release of a model ends."""

PROVIDER = re.compile(
    r"^(anthropic|openai|openrouter|(azure|bedrock|google|vertex)[\w-]*):|^([a-z-]+\.)?anthropic\."
)
"""What providers put before the name of a model, other than with a `/`."""

VARIANT = re.compile(r"(-v\d+:\d+(:\w+)?|\[1m\]|:free)$")
"""What they put after it, which is not the model: Bedrock's version, a longer context, a plan."""

LONG_WRITE = "cache_write_1h"
"""The attribute of a turn that says how many of its `Tokens.cache_write` are kept for an hour."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens of one model."""

    input: float
    """Prompt tokens that are computed."""
    output: float
    """Sampled tokens."""
    cache_read: float | None = None
    """Prompt tokens that are read from a cache; a turn that has some is not priced without it."""
    cache_write: float | None = None
    """Prompt tokens that are written to a cache; a turn that has some is not priced without it."""
    cache_write_1h: float | None = None
    """Those that are kept for an hour; without it they cost at least `cache_write`."""
    up_to: int | None = None
    """Longest prompt, in tokens, for which these prices hold."""


QUOTE = 'quote a name with a dot: [models."gpt-4.1"]'
EXAMPLE = "see stretto/metrics/prices.toml for an example"

RATES = ("input", "output", "cache_read", "cache_write", "cache_write_1h")


class Prices(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of prices."""

    date: date
    """The day on which they were the list prices."""
    models: Mapping[str, Price]
    """By the name of the model as `model_name` writes it."""

    def of(self, model: str | None) -> Price | None:
        """The price of a model by any of its names, or `None` where the table has none.

        `anthropic/claude-haiku-4-5-20251001` is found as `claude-haiku-4-5`, unless the table has
        a price of that release; so are `us.anthropic.claude-haiku-4-5-20251001-v1:0` and
        `anthropic/claude-haiku-4.5`.
        """
        name = model_name(model or "")
        return self.models.get(name) or self.models.get(VERSION.sub("", name))


def model_name(model: str) -> str:
    """The name of a model as one of all that providers write.

    It is in lower case, without provider, variant and `latest`, with its date in digits. The
    numbers of a Claude stand between dashes.
    """
    name = VARIANT.sub("", PROVIDER.sub("", model.strip().lower().rpartition("/")[2]))
    name = name.replace(".", "-") if name.startswith("claude") else name
    return VERSION.sub(lambda found: _digits(found[1]), name)


def _digits(version: str) -> str:
    return "" if version == "latest" else f"-{version.replace('-', '')}"


def load_prices(path: Path | str | None = None) -> Prices:
    """Read a table of prices; the one that comes with Stretto where no path is given.

    Its keys are names of models as anybody writes them (see `model_name`); one with a date is for
    that release alone.

    Raises `StrettoError` for a file that is none, for a price that is no number of dollars, for a
    key that names no model, and for two prices of one model.
    """
    if path is None:
        return _own_prices()
    try:
        return _checked(_decoded(Path(path).read_bytes(), str(path)), str(path))
    except OSError as error:
        raise StrettoError(error.strerror or "cannot be read", str(path)) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise StrettoError(str(error), str(path), EXAMPLE) from None


def _decoded(text: bytes, where: str) -> Prices:
    """A table; each price by itself first, so that an error names its model."""
    table = msgspec.toml.decode(text)
    models = table.get("models")
    for key, price in models.items() if isinstance(models, dict) else ():
        try:
            msgspec.convert(price, Price)
        except msgspec.ValidationError as error:
            is_cut = isinstance(price, dict) and any(isinstance(v, dict) for v in price.values())
            raise StrettoError(f'"{key}": {error}', where, QUOTE if is_cut else EXAMPLE) from None
    return msgspec.convert(table, Prices)


@cache
def _own_prices() -> Prices:
    text = (files("stretto.metrics") / "prices.toml").read_bytes()
    return _checked(_decoded(text, "prices.toml"), "prices.toml")


def _checked(table: Prices, where: str) -> Prices:
    """A table with the names of its models as `Prices.of` looks for them."""
    keys: dict[str, str] = {}
    for key, price in table.models.items():
        for field in (*RATES, "up_to"):
            value = getattr(price, field)
            if value is not None and not 0 <= value < inf:
                raise StrettoError(f'`{field}` of "{key}" is {value}', where, "at least 0, finite")
        name = model_name(key)
        if not name:
            raise StrettoError(f'"{key}" names no model', where, EXAMPLE)
        if name in keys:
            raise StrettoError(f'"{keys[name]}" and "{key}" are one model', where, "keep one")
        keys[name] = key
    by_name = {name: table.models[key] for name, key in keys.items()}
    return msgspec.structs.replace(table, models=by_name)


class Priced(Struct, frozen=True):
    """What the events of a trace cost."""

    dollars: Floats
    """US dollars by event: of turns and of tool calls; NaN where unknown."""
    from_table: bool
    """Whether any of it comes from the table."""
    too_low: Flags
    """Turns with one-hour cache writes that are priced as five-minute ones."""
    unpriced: str = ""
    """Which turns have no price or one that is too low, and why; empty where there are none."""


def price_events(trace: Trace, prices: Prices) -> Priced:
    """Prices as recorded; else, for turns, tokens times the price of the model.

    The model is the turn's own (`attrs.model`), where it says one, else the agent's. What the
    source gets wrong is not priced. Other events than turns and tool calls are left out: what a
    return says it cost has been counted in its agent's own turns.
    """
    columns = trace.columns
    turns, calls = columns.is_kind("decision"), columns.is_kind("tool_call")
    dollars = np.where(turns | calls, columns.price, np.nan)
    too_low = np.zeros(len(dollars), dtype=bool)
    rows = np.flatnonzero(turns & np.isnan(dollars))
    if not len(rows):
        return Priced(dollars, False, too_low)
    bill = _bill(trace, rows, prices)
    dollars[rows], too_low[rows] = bill.dollars, bill.too_low
    unknown = int(np.isnan(bill.dollars).sum())
    reason = _reason(int(turns.sum()), unknown, int(bill.too_low.sum()), bill.causes, prices.date)
    return Priced(dollars, unknown < len(rows), too_low, reason)


def _reason(turns: int, unknown: int, too_low: int, causes: str, of: date) -> str:
    lost = f"{unknown} of {turns} turns have no price: {causes}" if unknown else ""
    low = (
        f"the one-hour cache writes of {too_low} of {turns} turns are priced as five-minute ones, "
        f"since the table of {of} has no price for them"
    )
    return join(lost, low if too_low else "")


class _Bill(Struct, frozen=True):
    """What some turns cost by the table."""

    dollars: Floats
    too_low: Flags
    causes: str
    """Why some have no price."""


def _bill(trace: Trace, rows: Ints, prices: Prices) -> _Bill:
    columns, (code, words) = trace.columns, models(trace)
    found = [prices.of(model) for model in words]
    model, limit = code[rows], _numbers(found, "up_to", inf)
    rates = np.stack([_numbers(found, name, np.nan) for name in RATES])[:, model]
    cost, too_low = _cost(columns, rows, rates)
    too_long = columns.input_tokens[rows] > limit[model]
    cost[too_long | np.isnan(columns.input_tokens[rows])] = np.nan
    unknown = np.isnan(cost)
    in_table = np.array([price is not None for price in found], dtype=bool)
    lost = Lost(rows[unknown], model[unknown], words, in_table, too_long[unknown])
    return _Bill(cost / 1e6, too_low & ~unknown, why(columns, lost, prices.date))


def _numbers(found: Sequence[Price | None], name: str, none: float) -> Floats:
    values = [None if price is None else getattr(price, name) for price in found]
    return np.array([none if value is None else value for value in values], dtype=np.float64)


def _cost(columns: Columns, rows: Ints, rates: Floats) -> tuple[Floats, Flags]:
    """Millionths of dollars by row, NaN without the tokens or a price; and where they are too low.

    `rates` has a line for each of `RATES` and a column a row.
    """
    input_, output, read, write, long_write = rates
    fresh, cached, written = columns.prompt_tokens[:, rows]
    cached, written = np.nan_to_num(cached), np.nan_to_num(written)
    kept = np.minimum(_long_writes(columns, rows, written), written)
    too_low = (kept > 0) & np.isnan(long_write)
    long_write = np.where(np.isnan(long_write), write, long_write)
    cost = fresh * input_ + columns.output_tokens[rows] * output
    for count, rate in ((cached, read), (written - kept, write), (kept, long_write)):
        cost += np.where(count > 0, count * rate, 0.0)
    return cost, too_low


def _long_writes(columns: Columns, rows: Ints, written: Floats) -> Floats:
    """Tokens by row that are kept for an hour; 0 where nothing is said of them."""
    found = np.zeros(len(rows))
    for place in np.flatnonzero(written > 0).tolist():
        said = columns.events[rows[place]].attrs.get(LONG_WRITE)
        if isinstance(said, int | float) and said > 0:
            found[place] = said
    return found
