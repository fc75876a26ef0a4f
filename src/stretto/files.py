"""Files that are whole or absent, and errors that name them."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from stretto.errors import StrettoError

STDOUT = Path("/dev/stdout")
"""Standard output as a path; a command line says `-`."""
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises `StrettoError` where it is missing, a folder, unreadable or empty.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise StrettoError("no such file", str(path), "check the path") from None
    except IsADirectoryError:
        raise StrettoError("is a folder, not a file", str(path)) from None
    except OSError as error:
        raise StrettoError(f"cannot be read: {error.strerror}", str(path)) from None
    if not data:
        raise StrettoError("the file is empty", str(path))
    return data.removeprefix(b"\xef\xbb\xbf")  # a byte order mark says nothing


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file so that it is there whole or not at all, even if the process dies midway.

    A path that is no regular file (a pipe, a device) is written to directly.
    """
    if not path.name:
        raise StrettoError("this is no file name", str(path))
    if is_stream(path):
        _write_through(path, chunks)
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except FileNotFoundError:
        raise StrettoError("no such folder", str(path.parent), "create it first") from None
    except OSError as error:
        raise StrettoError(f"cannot be written: {error.strerror}", str(path)) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def output_path(path: Path) -> Path:
    """The path that a command line means: `-` is standard output."""
    return STDOUT if str(path) == "-" else path


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a device, also where the shell has led it to a file."""
    if path == STDOUT:
        return True
    regular = path.is_file() or path.is_dir()
    return path.exists() and (not regular or (path.is_file() and path.parent in _DEVICES))


PAGES = (".html", ".htm", ".md")
"""Endings of what nobody reads as traces."""


def is_inside(file: Path, folder: Path) -> bool:
    """Whether a file stands in a folder, or below one of it, by whatever name it is called."""
    return file.resolve().is_relative_to(folder.resolve())


def require_apart(source: Path, output: Path) -> None:
    """Raise `StrettoError` if writing would replace what is read: a file, or one of a folder."""
    if output.resolve() == source.resolve():
        raise StrettoError("this would replace the file that is read", str(output), "use -o")
    inside = source.is_dir() and is_inside(output, source)
    if inside and output.is_file() and output.suffix not in PAGES:
        raise StrettoError("this would replace a file of the folder that is read", str(output))


def require_writable(path: Path) -> None:
    """Raise `StrettoError` where `write_whole` would surely fail: to know it before long work."""
    if path.is_dir():
        raise StrettoError("cannot be written: is a folder", str(path))
    if not path.parent.is_dir():
        raise StrettoError("no such folder", str(path.parent), "create it first")
    if not os.access(path if is_stream(path) else path.parent, os.W_OK):
        raise StrettoError("cannot be written", str(path), "name another place")


def _write_through(path: Path, chunks: Iterable[bytes]) -> None:
    try:
        with open(1, "wb", closefd=False) if path == STDOUT else path.open("wb") as stream:
            stream.writelines(chunks)
    except BrokenPipeError:
        raise  # the reader has seen enough
    except OSError as error:
        raise StrettoError(f"cannot be written: {error.strerror}", str(path)) from None
