"""The beginning of a file, decoded once, by which importers tell their format."""

from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stretto.errors import StrettoError
from stretto.importers.kit.reading import whole_prefix

SIZE = 1 << 18
"""Bytes that are looked at; more where the first line is longer."""

LINES = 20
"""Lines that are looked at."""

_ARCHIVE = b"PK\x03\x04"

_PACKED = {
    _ARCHIVE: "a zip archive: unpack it first",
    b"\x1f\x8b": "packed by gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it first",
    b"\xfd7zXZ": "packed by xz: unpack it first",
    b"BZh": "packed by bzip2: unpack it first",
}
"""How files begin that are no text, and what to do with them."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"{\0", b"[\0", b"\0{", b"\0[")
"""How JSON in UTF-16 begins, with and without a byte order mark."""


class Head:
    """What stands at the beginning of a file."""

    def __init__(self, data: bytes) -> None:
        """`data` are the first bytes of the file, without a byte order mark."""
        self.data = data

    @cached_property
    def lines(self) -> tuple[Any, ...]:
        """The first lines that are JSON objects; empty for a document of many lines.

        An archive has none, though texts may stand in it as they are.
        """
        if self.data.startswith(_ARCHIVE):
            return ()
        decoded = (_decoded(line) for line in self.data.split(b"\n"))
        return tuple(islice((line for line in decoded if isinstance(line, dict)), LINES))

    @cached_property
    def document(self) -> Any:
        """The document, or as much of it as stands in the head; `None` where it is no JSON."""
        if not self.data.lstrip().startswith((b"{", b"[")):
            return None
        whole = _decoded(self.data) if len(self.data) <= SIZE else None
        return whole if whole is not None else _decoded(whole_prefix(self.data[:SIZE]))

    @property
    def is_torn(self) -> bool:
        """Whether the whole file is here, and is JSON that was cut."""
        here = len(self.data) <= SIZE and self.document is not None
        return here and not self.lines and _decoded(self.data) is None

    @cached_property
    def nested(self) -> tuple[dict[str, Any], ...]:
        """The first objects of a list that is the document, or that a field of it holds."""
        document = self.document
        lists = document.values() if isinstance(document, dict) else (document,)
        items = (each for value in lists if isinstance(value, list) for each in value)
        return tuple(islice((each for each in items if isinstance(each, dict)), LINES))

    @cached_property
    def obstacle(self) -> str:
        """Why no text can be read, as in `packed by gzip: unpack it first`; empty for a text."""
        if self.data.startswith(_UTF_16):
            return "in UTF-16: write it in UTF-8"
        return next((what for sign, what in _PACKED.items() if self.data.startswith(sign)), "")


def read_head(path: Path) -> Head:
    """The head of a file.

    Raises `StrettoError` for one that is missing, empty or cannot be read.
    """
    if path.is_fifo():
        hint = "write it to a file first"
        raise StrettoError("is a pipe, and a file is read more than once", str(path), hint)
    try:
        with path.open("rb") as file:
            data = file.read(SIZE)
            data = data if b"\n" in data else data + file.readline()
    except FileNotFoundError:
        raise StrettoError("no such file", str(path), "check the path") from None
    except OSError as error:
        raise StrettoError(f"cannot be read: {error.strerror}", str(path)) from None
    if not data.strip():
        raise StrettoError("the file is empty", str(path))
    return Head(data.removeprefix(b"\xef\xbb\xbf"))


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
