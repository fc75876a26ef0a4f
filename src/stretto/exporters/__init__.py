"""Traces in the formats of others: one file a target.

An exporter is a module with

- `SUFFIX`: how the names of its files end;
- `ONE_FILE`: whether one file holds any number of traces; else each trace gets its own;
- `export(traces: Sequence[Trace]) -> Output`: the files, and what the format could not hold.

It is named in `EXPORTERS`, and loaded when it is needed.
"""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from stretto.errors import StrettoError, did_you_mean
from stretto.exporters.output import Output
from stretto.files import is_stream, write_whole
from stretto.trace import Trace
from stretto.validate import require_valid

__all__ = ["EXPORTERS", "Exporter", "Output", "export", "load_exporter", "places", "write"]

EXPORTERS = {
    "perfetto": "stretto.exporters.perfetto",
    "chrome": "stretto.exporters.chrome",
    "otlp": "stretto.exporters.otlp",
    "atif": "stretto.exporters.atif",
    "survey": "stretto.exporters.survey_file",
    "graphml": "stretto.exporters.graphml",
    "parquet": "stretto.exporters.parquet",
    "verifiers": "stretto.exporters.verifiers",
}
"""Format to the module that writes it."""


class Exporter(Protocol):
    """What a module in `EXPORTERS` offers."""

    SUFFIX: str
    ONE_FILE: bool

    def export(self, traces: Sequence[Trace]) -> Output:
        """The traces in the format; one only where it is not `ONE_FILE`."""
        ...


def load_exporter(name: str) -> Exporter:
    """The exporter of a format.

    Raises `StrettoError` for an unknown name, and where what it needs is not installed.
    """
    if name not in EXPORTERS:
        raise StrettoError(f'no format "{name}"', hint=did_you_mean(name, EXPORTERS))
    try:
        return cast(Exporter, import_module(EXPORTERS[name]))
    except ModuleNotFoundError as error:
        hint = f"pip install 'stretto[{'polars' if name == 'parquet' else name}]'"
        raise StrettoError(f"{error.name} is not installed", name, hint) from None


def export(traces: Sequence[Trace], format: str) -> Output:
    """Turn traces into another format; `files` has one entry a file.

    Raises `StrettoError` for an unknown format, and for traces that it cannot hold at all.
    """
    if not traces:
        raise StrettoError("nothing to export: there is no trace", format)
    exporter = load_exporter(format)
    if exporter.ONE_FILE or len(traces) == 1:
        return _try(exporter, traces)
    parts = [_try(exporter, [trace]) for trace in traces]
    left_out = sum((Counter(part.left_out) for part in parts), Counter[str]())
    width = len(str(len(parts)))  # so that they sort
    named = {f"{number:0{width}}": part.files[""] for number, part in enumerate(parts, start=1)}
    return Output(named, left_out)


def _try(exporter: Exporter, traces: Sequence[Trace]) -> Output:
    """Fields of structs, and texts, can hold what no format can write."""
    where = ascii(traces[0].id)
    for trace in traces:
        require_valid(trace, trace.id)
    try:
        return exporter.export(traces)
    except UnicodeEncodeError:
        hint = "replace lone surrogates"
        raise StrettoError("a text holds half a character", where, hint) from None
    except (OverflowError, RecursionError, TypeError) as error:
        raise StrettoError(f"a value that the format cannot hold: {error}", where) from None


def write(output: Output, path: Path) -> list[Path]:
    """Write the files of an output, each whole or not at all, and return their paths.

    A single file gets the name `path`; of several, each gets its own name put in before the first
    dot: `t.graphml` becomes `t-1.graphml` and `t-2.graphml`.
    """
    paths = places(output, path)
    for place, content in zip(paths, output.files.values(), strict=True):
        write_whole(place, [content])
    return paths


def places(output: Output, path: Path) -> list[Path]:
    """Where `write` puts the files of an output.

    Raises `StrettoError` for several files where `path` is a pipe or a device.
    """
    if len(output.files) > 1 and is_stream(path):
        what = f"{len(output.files)} files cannot go into one stream"
        raise StrettoError(what, str(path), "name a file with -o")
    return [_place(path, name) for name in output.files]


def _place(path: Path, name: str) -> Path:
    stem, dot, rest = path.name.partition(".")
    return path.with_name(f"{stem}-{name}{dot}{rest}") if name else path
