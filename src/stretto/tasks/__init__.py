"""Task families, one file each, made from a specification by name.

A specification is `{"family": name, **parameters}`: a table of a recipe, or the `spec` of a trace.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from msgspec import Struct, ValidationError, convert

from stretto.errors import StrettoError, did_you_mean
from stretto.team.protocols import Task

__all__ = ["FAMILIES", "build", "family_of"]

FAMILIES: Mapping[str, str] = {
    "agree": "stretto.tasks.agree:Agree",
    "branch": "stretto.tasks.games.branch:Branch",
    "chain": "stretto.tasks.games.chain:Chain",
    "exam": "stretto.tasks.games.exam:Exam",
    "fanout": "stretto.tasks.games.fanout:Fanout",
    "gather": "stretto.tasks.gather:Gather",
    "hops": "stretto.tasks.hops:Hops",
    "jury": "stretto.tasks.jury:Jury",
    "ladder": "stretto.tasks.games.ladder:Ladder",
    "nest": "stretto.tasks.nest:Nest",
    "proxies": "stretto.tasks.games.proxies:Proxies",
    "repair": "stretto.tasks.repair:Repair",
    "scouts": "stretto.tasks.scouts:Scouts",
    "siege": "stretto.tasks.games.siege:Siege",
    "stragglers": "stretto.tasks.games.stragglers:Stragglers",
}
"""Every family by its name: where its struct of parameters is."""


def build(spec: Mapping[str, Any]) -> Task:
    """Make the task that `spec` describes; parameters that it leaves out have their defaults.

    Raises `StrettoError` for an unknown family, an unknown parameter, a value of the wrong type,
    and values that make no task.
    """
    parameters = dict(spec)
    kind = family_of(parameters.pop("family", None))
    for name in parameters:
        if name not in kind.__struct_fields__:
            hint = did_you_mean(name, kind.__struct_fields__)
            raise StrettoError(f'no parameter "{name}"', "task", hint)
    try:
        return cast(Task, convert(parameters, kind))
    except ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise StrettoError(what, f"task{path.rstrip('`')}") from None


def family_of(name: Any) -> type[Struct]:
    """The struct of a family, imported on demand; `StrettoError` for an unknown name."""
    if not isinstance(name, str) or name not in FAMILIES:
        what = f'no task family "{name}"' if name is not None else "no task family is named"
        raise StrettoError(what, "task.family", did_you_mean(str(name), FAMILIES))
    return imported(FAMILIES[name])


def imported(home: str) -> Any:
    """What is called so in its module, as in `module:name`."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
