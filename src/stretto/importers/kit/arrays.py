"""Records in a JSON array, as `jq -s` writes them: read as the lines that they would be.

A record's line is then its place in the array, from 1.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from stretto.files import read_bytes
from stretto.importers.kit.heads import SIZE, Head

BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
PEEK = 1 << 10
"""Bytes in which an array has begun."""

_FOLLOWERS = b",[]{"
"""What may follow an item; a brace where lines follow an array."""

_between = re.compile(rb"[\s,\[\]]*")
_next = re.compile(rb"\}\s*,\s*\{")
_object = re.compile(rb"\{\s*[\"}]")
_byte = re.compile(r"(trailing characters )?\(byte (\d+)\)")


class _Damage(NamedTuple):
    """The last item that is damaged."""

    row: int
    """Its place among the items; -1 where none is."""
    end: int
    """Where it breaks."""


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

    Where an array is damaged, a line that is no record stands for each damaged part; where it is
    cut, the last line is none.
    """
    if BEGIN.match(data) is None:
        return data
    try:
        items = [bytes(item) for item in msgspec.json.decode(data, type=list[Raw])]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        items = list(_whole_items(data))
    return b"\n".join(map(_on_one_line, items))


def _on_one_line(item: bytes) -> bytes:
    """An item without the blanks of an array that is set out for people."""
    try:
        return msgspec.json.format(item, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return item.replace(b"\n", b" ")


def _whole_items(data: bytes) -> Iterator[bytes]:
    """The items of one or several arrays; what is damaged is one item, up to the next whole one."""
    found: list[slice] = []
    damage = _Damage(-1, 0)
    place = ended = _end_of_gap(data, 0)
    while place < len(data):
        begin, (end, is_whole) = place, _item(data, place)
        if not is_whole:
            since = found[damage.row :] if damage.row >= 0 else []
            if _is_inside(data, damage, len(since), slice(ended, place)):
                begin = since[0].start
                del found[damage.row :]  # with what were parts of it
            damage = _Damage(len(found), end)
            after = _next.search(data, place)
            end = after.start() + 1 if after is not None else len(data)
        found.append(slice(begin, end))
        ended, place = end, _end_of_gap(data, end)
    yield from (data[each] for each in found)
    if damage.row < len(found) - 1 and not data.rstrip().endswith(b"]"):
        yield b","  # cut behind a whole item, it is cut all the same


def _item(data: bytes, place: int) -> tuple[int, bool]:
    """Where the value that begins here ends or breaks, and whether it is whole.

    It is only if something follows that may follow an item.
    """
    try:
        msgspec.json.decode(memoryview(data)[place:], type=Raw)
    except (UnicodeDecodeError, RecursionError):
        return place, False
    except msgspec.DecodeError as error:
        byte = _byte.search(str(error))
        end = place + int(byte[2]) if byte is not None else len(data)
        if byte is None or not byte[1]:
            return end, False
        return end - 1, data[end - 1] in _FOLLOWERS  # it names the byte behind the one too many
    return len(data), True


def _is_inside(data: bytes, damage: _Damage, since: int, gap: slice) -> bool:
    """Whether what breaks behind a gap is part of the item that was damaged `since` items ago.

    It is where that item had not broken yet, where no object begins, or behind a list of parts.
    """
    if since == 1:
        return gap.stop < damage.end or _object.match(data, gap.stop) is None
    return since > 1 and b"]" in data[gap] and data[gap.stop] in b'}"'


def _end_of_gap(data: bytes, place: int) -> int:
    gap = _between.match(data, place)
    return gap.end() if gap is not None else place
