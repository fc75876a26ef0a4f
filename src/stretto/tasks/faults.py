"""Which faults a family can plant, as the type of its parameter `fault` says; who is to blame."""

from functools import cache
from typing import Any, get_args, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from stretto.errors import StrettoError
from stretto.tasks import family_of
from stretto.team.protocols import Task


class Blame(Struct, frozen=True):
    """Whose mistake or lie was decisive."""

    agent: str
    event: str
    """Id of the event without whose error the outcome would be right."""


@cache
def faults_of(family: str) -> tuple[str, ...]:
    """The faults that a family can plant, by name; the first one is its main one."""
    kind = family_of(family)
    if "fault" not in kind.__struct_fields__:
        return ()
    hint = get_type_hints(kind)["fault"]
    words = [word for part in get_args(hint) for word in (get_args(part) or (part,))]
    return tuple(word for word in words if isinstance(word, str))


def with_fault(task: Task) -> Task | None:
    """The task with the first fault of its family; `None` where it can have none, or has one."""
    known: Any = task
    names = faults_of(task.spec["family"])
    if not names or known.fault is not None:
        return None
    try:
        return replace(known, fault=names[0])
    except StrettoError:  # its parameters leave no room for it
        return None
