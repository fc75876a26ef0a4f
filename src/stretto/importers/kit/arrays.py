"""Records in a JSON array, as `jq -s` writes them: read as the lines that they would be.

A record's line is then its place in the array, from 1.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from stretto.files import read_bytes
from stretto.importers.kit.heads import SIZE, Head

BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
PEEK = 1 << 10
"""Bytes in which an array has begun."""

_between = re.compile(r"[\s,\[\]]*")
_decoder = json.JSONDecoder()


def first_records(head: Head) -> Sequence[Any]:
    """The objects in the first lines of a file, or the first ones of an array."""
    if BEGIN.match(head.data) is None:
        return head.lines
    return Head(unrolled(head.data[:SIZE])).lines


def lines_in(file: Path) -> Iterator[bytes]:
    """The lines of a file, one after another; of an array, its items.

    Raises `OSError` where it cannot be read, `StrettoError` where an array cannot.
    """
    with file.open("rb") as stream:
        if BEGIN.match(stream.read(PEEK)) is None:
            stream.seek(0)
            yield from stream
            return
    yield from unrolled(read_bytes(file)).split(b"\n")


def unrolled(data: bytes) -> bytes:
    """The items of an array of records, one a line; anything else as it came.

    Where an array is cut or damaged, its last line is no record.
    """
    if BEGIN.match(data) is None:
        return data
    try:
        items = [bytes(item) for item in msgspec.json.decode(data, type=list[Raw])]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        items = _whole_items(data)
    return b"\n".join(map(_on_one_line, items))


def _on_one_line(item: bytes) -> bytes:
    """An item without the blanks of an array that is set out for people."""
    try:
        return msgspec.json.format(item, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return item.replace(b"\n", b" ")


def _whole_items(data: bytes) -> list[bytes]:
    """The items up to the damage, of several arrays, too; and all that is left from there."""
    text = data.decode("latin-1")  # a character a byte: the text of an item is decoded later
    place = 0
    found: list[bytes] = []
    with suppress(ValueError, RecursionError):
        while True:
            start = _end_of_gap(text, place)
            place = _decoder.raw_decode(text, start)[1]
            found.append(text[start:place].encode("latin-1"))
    left = text[_end_of_gap(text, place) :].encode("latin-1")
    if not left and not data.rstrip().endswith(b"]"):
        left = b","  # cut behind a whole item, it is cut all the same
    return [*found, left]


def _end_of_gap(text: str, place: int) -> int:
    gap = _between.match(text, place)
    return gap.end() if gap is not None else place
