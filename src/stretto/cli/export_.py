"""`stretto export FILE --to NAME -o OUT`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct
from rich.console import Console

from stretto import store
from stretto.cli.arguments import console, parse, print_json
from stretto.errors import StrettoError
from stretto.exporters import EXPORTERS, export, load_exporter, places, write
from stretto.files import output_path, read_bytes, require_apart
from stretto.loading import load_all
from stretto.trace import Trace


class Export(Struct, frozen=True, kw_only=True):
    """Write traces in the format of another program, and say what it could not hold.

    perfetto, chrome and otlp put all traces of a file into one; parquet writes five tables
    (OUT-events.parquet, OUT-edges.parquet, …) for all of them; atif, survey and graphml hold one
    trace a file, so that several go to OUT-1, OUT-2, … in the order of FILE.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of traces, or a transcript."""
    to: Annotated[str, tyro.conf.arg(metavar="NAME", help=f"One of {', '.join(EXPORTERS)}.")]
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="OUT")] = None
    """Where it goes, - for standard output; FILE with the ending of the format where absent."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Export, and say what was written and what was left out."""
    arguments = parse(Export, "export", argv)
    suffix = load_exporter(arguments.to).SUFFIX  # an unknown name is told before a file is read
    stem = arguments.file.resolve().name.partition(".")[0] or "traces"
    place = output_path(arguments.output or Path(stem + suffix))
    require_apart(arguments.file, place)
    traces = load_source(arguments.file)
    output = export(traces, arguments.to)
    for path in places(output, place):
        require_apart(arguments.file, path)
    paths = write(output, place)
    left_out = {what: count for what, count in output.left_out.items() if count}
    if arguments.json:
        found = {"to": arguments.to, "traces": len(traces), "files": list(map(str, paths))}
        ids = [trace.id for trace in traces]
        print_json({**found, "trace_ids": ids, "left_out": left_out}, place)
        return 0
    one_each = len(traces) > 1 and not load_exporter(arguments.to).ONE_FILE
    held = [f": {trace.id}" for trace in traces] if one_each else [""] * len(paths)
    out = console(place)
    for path, said in zip(paths, held, strict=True):
        out.print(f"wrote {path}{said}", markup=False)
    _warn(out, arguments.to, left_out)
    return 0


def _warn(out: Console, name: str, left_out: Mapping[str, int]) -> None:
    if left_out:
        said = "; ".join(f"{what}: {count:,}" for what, count in left_out.items())
        out.print(f"warning: {name} cannot hold everything; left out: {said}", markup=False)


def load_source(path: Path) -> list[Trace]:
    """All traces of a file; of one that was cut, the error says how to get those that are whole."""
    try:
        return load_all(path)
    except StrettoError as error:
        if not _has_whole(path):
            raise
        hint = f"`stretto import {path}` takes the traces that are whole out of it"
        raise StrettoError(error.what, error.where, hint) from None


def _has_whole(path: Path) -> bool:
    try:
        traces, is_cut = store.decode_whole(read_bytes(path), str(path))
    except StrettoError:
        return False
    return is_cut and bool(traces)
