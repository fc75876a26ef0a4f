"""JSON from files that may be cut or damaged: what is whole, and a notice of what is not."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.importers.kit.report import Notice

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|"', re.DOTALL)
_CLOSER = {b"{": b"}", b"[": b"]"}
_PLACE = re.compile(r"\(byte (\d+)\)")
_REPAIRS = 3
"""How often a document is cut shorter before it is given up."""


class Line(NamedTuple):
    """One record of a file of JSON lines."""

    number: int
    """Line in the file, from 1."""
    value: Any
    """A JSON object, or another kind where that was asked for."""


class Lines(NamedTuple):
    """The whole records of a file, and notices of the lines that hold none."""

    records: tuple[Line, ...]
    warnings: tuple[Notice, ...]


class Document(NamedTuple):
    """A JSON document, or what is whole of it, with a notice if that is not all."""

    value: Any
    warnings: tuple[Notice, ...]


class Torn(NamedTuple):
    """As `Document`, with where the cut went through."""

    value: Any
    warnings: tuple[Notice, ...]
    depth: int
    """Brackets that were open at the cut; 0 for a document that is whole."""


def read_lines(path: Path) -> Lines:
    """Read a file of one JSON object a line; a line that is none is left out with a notice.

    Raises `StrettoError` where no line is whole.
    """
    return parse_lines(read_bytes(path), str(path))


def parse_lines(data: bytes, name: str, kinds: tuple[type, ...] = (dict,)) -> Lines:
    """As `read_lines`, of bytes; `name` stands for the file in notices.

    Args:
        data: The content of a file.
        name: What the file is called.
        kinds: What a line may hold; others are left out.
    """
    records: list[Line] = []
    warnings: list[Notice] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = None
        if isinstance(value, kinds):
            records.append(Line(number, value))
        else:
            warnings.append(Notice(f"{name}:{number}", "is no whole record: left out"))
    if not records:
        raise StrettoError("holds no whole record", name, "one JSON object a line is expected")
    return Lines(tuple(records), tuple(warnings))


def read_document(path: Path) -> Document:
    """Read a JSON document; one that is cut or damaged yields what stands whole before that.

    Raises `StrettoError` with line and column where nothing is whole.
    """
    return parse_document(read_bytes(path), str(path))


def parse_document(data: bytes, name: str) -> Document:
    """As `read_document`, of bytes; `name` stands for the file in notices."""
    torn = parse_torn(data, name)
    return Document(torn.value, torn.warnings)


def parse_torn(data: bytes, name: str) -> Torn:
    """As `parse_document`, for who must know whether the last values are whole."""
    text, left, depth = data, _REPAIRS, 0
    place = len(data)
    while True:
        try:
            value = msgspec.json.decode(text)
        except RecursionError:
            raise StrettoError("is nested too deeply", name) from None
        except UnicodeDecodeError as error:
            place = min(place, error.start)
        except msgspec.DecodeError as error:
            found = _PLACE.search(str(error))
            place = min(place, int(found[1]) if found else len(text))
            if not left:
                raise _malformed(data, place, name) from None
        else:
            notices = (_cut(data, place, name),) if text is not data else ()
            return Torn(value, notices, depth)
        left -= 1
        text, depth = _prefix(data[:place])
        if not text or left < 0:
            raise _malformed(data, place, name)


def whole_prefix(data: bytes) -> bytes:
    """The values that are whole at the beginning of a cut JSON document, with brackets closed.

    Empty where there is none.
    """
    return _prefix(data)[0]


def _prefix(data: bytes) -> tuple[bytes, int]:
    """The same, and how many brackets were closed for it."""
    stack: list[bytes] = []
    depth = end = 0
    key = False  # whether an object waits for a name
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token == b'"':  # a string that does not end
            break
        if token in _CLOSER:
            stack.append(token)
            key = token == b"{"
            depth, end = len(stack), match.end()
        elif token in (b"}", b"]"):
            if not stack:
                break
            stack.pop()
            key = False
            depth, end = len(stack), match.end()
        elif token == b",":
            depth, end = len(stack), match.start()
            key = bool(stack) and stack[-1] == b"{"
        elif token == b":":
            key = False
        elif token.startswith(b'"') and not key:
            depth, end = len(stack), match.end()
        if not stack:
            break
    return data[:end] + b"".join(_CLOSER[opener] for opener in reversed(stack[:depth])), depth


def line_of(data: bytes, place: int) -> int:
    """The line of a byte, from 1."""
    return data.count(b"\n", 0, place) + 1


def _cut(data: bytes, place: int, name: str) -> Notice:
    what = "the document is cut or damaged here: what stands before is read"
    return Notice(f"{name}:{line_of(data, place)}", what)


def _malformed(data: bytes, place: int, name: str) -> StrettoError:
    column = place - (data.rfind(b"\n", 0, place) + 1) + 1
    return StrettoError("is no JSON", f"{name}:{line_of(data, place)}:{column}")
