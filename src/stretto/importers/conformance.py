"""A test that every importer must pass; run it on your own.

```python
from pathlib import Path
from stretto.importers.conformance import check_importer

check_importer("my_package.my_importer", [Path("a-folder-of-its-files")])
```
"""

import random
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stretto import store
from stretto.errors import StrettoError
from stretto.importers.kit.heads import Head, read_head
from stretto.importers.kit.report import Imported
from stretto.importers.plan import MATCH, Session, importer, plan
from stretto.importers.run import joined, read_each, read_session
from stretto.trace import Trace
from stretto.validate import is_digest, problems

CUTS = 12
FLIPS = 24
NOISE = (b"", b"{}", b"[]", b"null", b"\x00\xff\x80PNG", b'{"a": 1}\n{"a": 2}\n', b"some words\n")
"""What no importer may take for its own."""


def check_importer(name: str, paths: Sequence[str | Path]) -> None:
    """Check that an importer keeps the rules, on files of its format.

    It recognises its files and no noise; gives the same traces twice and in any order of paths,
    valid, with all the texts that digests name, and unchanged by a round trip through a file;
    reports every file, with the spawns and returns that the traces hold; and of a file that is cut
    or damaged reads what is whole, and says so, or raises a `StrettoError`, nothing else.

    Args:
        name: A format of `IMPORTERS`, or the dotted name of a module.
        paths: Files and folders of the format; they are copied before they are damaged.

    Raises `StrettoError` that names the rule and the file where one is broken.
    """
    _check_recognition(name, paths)
    imported = _imported(name, paths)
    _require(bool(imported.traces), "it reads no trace", str(paths[0]))
    for trace in imported.traces:
        _check_trace(trace)
    _check_report(imported)
    again = _imported(name, list(reversed(list(paths))))
    same = {store.encode(trace) for trace in again.traces} == {
        store.encode(trace) for trace in imported.traces
    }
    _require(same, "a second import, paths in reverse, gives other traces", str(paths[0]))
    for path in paths:
        _check_damage(name, Path(path))


def _imported(name: str, paths: Sequence[str | Path]) -> Imported:
    """As `import_paths`, but a mistake of the importer is not made a notice."""
    return joined(read_each(paths, name, read_session))


def _unasked(name: str, file: Path) -> Imported:
    """What an importer reads of a file, also of one that no longer looks like its format."""
    read_head(file)
    groups = importer(name).sessions([file])
    return joined(read_session(Session(name, tuple(group))) for group in groups)


def _check_recognition(name: str, paths: Sequence[str | Path]) -> None:
    module = importer(name)
    for noise in NOISE:
        score = module.recognise(Head(noise)).score
        _require(score < MATCH, f"it takes {noise!r} for its own ({score})", name)
    for session in plan(paths, name).sessions:
        likeness = module.recognise(read_head(session.files[0]))
        _require(likeness.score >= MATCH, f"not recognised: {likeness.why}", str(session.files[0]))


def _check_trace(trace: Trace) -> None:
    for problem in problems(trace):
        where = f"{trace.id}: {problem.part} {problem.index}, {problem.field}"
        raise StrettoError(problem.what, where, problem.hint)
    for event in trace.events:
        name = event.content  # not a digest: a reference that the source brought
        known = name is None or name in trace.contents or not is_digest(name)
        _require(known, f"event {event.id} refers to a text that is not there", trace.id)
    restored = store.decode(store.encode(trace), trace.id)
    _require(restored == [trace], "a round trip through a file changes it", trace.id)


def _check_report(imported: Imported) -> None:
    for kind, said in (("spawn", "spawns"), ("return", "returns")):
        told = sum(getattr(file, said) for file in imported.report)
        held = sum(event.kind == kind for trace in imported.traces for event in trace.events)
        _require(told == held, f"the report says {told} {said}, the traces hold {held}", "report")


def _check_damage(name: str, path: Path) -> None:
    files = [f for f in sorted(path.rglob("*")) if f.is_file()] if path.is_dir() else [path]
    for file in files:
        data = file.read_bytes()
        for damaged in (*_cuts(data), *_flips(data)):
            torn = len(damaged) < len(data) and _is_torn(damaged)
            with _copied(path, file, damaged) as copy:
                _check_damaged(name, copy, file, damaged, torn)


def _is_torn(data: bytes) -> bool:
    """Whether JSON ends in the middle; other files do not show it."""
    last = data.rstrip().rpartition(b"\n")[2]
    return last.startswith((b"{", b"[")) and not last.endswith((b"}", b"]"))


def _check_damaged(name: str, copy: Path, file: Path, data: bytes, torn: bool) -> None:
    try:
        importer(name).recognise(Head(data))  # planning would make a mistake a notice
        imported = _imported(name, [copy]) if copy.is_dir() else _unasked(name, copy)
    except StrettoError:
        return
    except Exception as error:
        what = f"damaged, it raises {type(error).__name__}: {error}"
        raise StrettoError(what, str(file), "only StrettoError may be raised") from error
    for trace in imported.traces:
        _check_trace(trace)
    warned = any(report.warnings for report in imported.report)
    _require(warned or not torn, "cut in the middle, no warning says so", str(file))


def _cuts(data: bytes) -> Iterator[bytes]:
    draw = random.Random(len(data))
    yield from (data[: draw.randrange(len(data) + 1)] for _ in range(CUTS))


def _flips(data: bytes) -> Iterator[bytes]:
    draw = random.Random(len(data) + 1)
    for count in range(1, FLIPS + 1):
        damaged = bytearray(data)
        for _ in range(count if data else 0):
            damaged[draw.randrange(len(data))] = draw.randrange(256)
        yield bytes(damaged)


@contextmanager
def _copied(path: Path, file: Path, data: bytes) -> Generator[Path]:
    """A copy of a file or folder in which one file holds other bytes."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        if path.is_dir():
            shutil.copytree(path, copy)
            (copy / file.relative_to(path)).write_bytes(data)
        else:
            copy.write_bytes(data)
        yield copy


def _require(fine: bool, what: str, where: str) -> None:
    if not fine:
        raise StrettoError(what, where)
