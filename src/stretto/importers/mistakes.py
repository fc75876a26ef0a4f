"""What an importer gets wrong, told in one line: another one may be of another package."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

from stretto.errors import StrettoError

T = TypeVar("T")


@contextmanager
def mistakes_told(importer: str, where: str) -> Generator[None]:
    """Whatever is raised inside is raised as a `StrettoError` that keeps its cause."""
    try:
        yield
    except StrettoError:
        raise
    except Exception as error:
        mistake = f'this is a mistake of the importer "{importer}", please report it'
        raise StrettoError(f"{raised(error)}; {mistake}", where) from error


def raised(error: Exception) -> str:
    """An error as a line: its type, and what it says first."""
    said = str(error).strip().splitlines()
    return ": ".join([type(error).__name__, *said[:1]])


def given(value: object, kind: type[T], function: str) -> T:
    """What a function of an importer gives; raises `TypeError` where it is of another kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{function} gives {type(value).__name__}, not {kind.__name__}")
    return value
