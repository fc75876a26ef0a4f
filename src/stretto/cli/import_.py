"""`stretto import PATH… -o t.jsonl`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import tyro
from msgspec import Struct
from rich.console import Console

from stretto import store
from stretto.cli.arguments import console, parse, print_json
from stretto.errors import StrettoError
from stretto.files import is_inside, output_path, require_apart
from stretto.importers import FileReport, Imported, Notice, detect, import_each
from stretto.trace import Trace


class Import(Struct, frozen=True, kw_only=True):
    """Turn the logs of any harness into traces, session by session."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
    """Files, or folders of them, in any mix of formats."""
    format: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The format, as in `claude-code`; detected by content where absent."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("traces.jsonl")
    """Where the traces go; - is standard output. If it stands in a folder that is read, what an
    earlier import wrote there is left out."""
    report: tyro.conf.FlagCreatePairsOff[bool] = False
    """Say for every file what was read, skipped, unpaired, unknown or unreliable."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object, with the report of every file."""


MOST_WARNINGS = 5
"""Warnings that are shown without `--report`."""


def main(argv: Sequence[str]) -> int:
    """Import, write the traces, and say what they hold."""
    arguments = parse(Import, "import", argv)
    output = output_path(arguments.output)
    require_no_source(arguments.paths, output)
    counts: Counter[str] = Counter()
    files: list[FileReport] = []
    found = import_each(arguments.paths, arguments.format)
    found = chain((next(found),), found)  # what is there is looked up before anything is written
    store.write(output, _counted(_without(found, output), counts, files))
    if arguments.json:
        print_json({"output": str(output), **_totals(counts), "report": files}, output)
        return 0
    out = console(output)
    for file in files if arguments.report else ():
        out.print("\n".join(_told(file)), markup=False)
    if not arguments.report:
        _summarise(files, out)
    said = ", ".join(f"{count:,} {name}" for name, count in _totals(counts).items())
    out.print(f"wrote {output}: {said}", markup=False)
    return 0


def require_no_source(paths: Sequence[Path], output: Path) -> None:
    """Raise `StrettoError` if writing would replace a file that is read, or stands beside it.

    In a folder that is read, only what Stretto wrote may be replaced.
    """
    for path in paths:
        if not path.is_dir():
            require_apart(path, output)
        elif is_inside(output, path) and output.is_file() and not _is_own(output):
            raise StrettoError("this would replace a file of the folder that is read", str(output))


def _is_own(file: Path) -> bool:
    try:
        return detect(file) == "stretto"
    except StrettoError:
        return False


def _without(parts: Iterator[Imported], output: Path) -> Iterator[Imported]:
    """What is imported, less what an earlier import wrote to the same place."""
    place = output.resolve()
    for part in parts:
        if part.traces and [Path(file.file).resolve() for file in part.report] == [place]:
            notice = Notice(str(output), "not read: this is where the traces go")
            yield Imported((), (FileReport(file=str(output), warnings=(notice,)),))
        else:
            yield part


def _counted(
    parts: Iterator[Imported], counts: Counter[str], files: list[FileReport]
) -> Iterator[Trace]:
    """The traces one by one, each forgotten after it is written; counts and reports are kept."""
    for part in parts:
        files.extend(part.report)
        for trace in part.traces:
            counts["traces"] += 1
            for name in ("agents", "events", "edges"):
                counts[name] += len(getattr(trace, name))
            yield trace


def _totals(counts: Counter[str]) -> dict[str, int]:
    return {name: counts[name] for name in ("traces", "agents", "events", "edges")}


def _summarise(files: Sequence[FileReport], out: Console) -> None:
    """What there is to know about all files together, and the first warnings."""
    totals: Counter[str] = Counter()
    for file in files:
        totals.update(_counts(file))
    said = [f"{len(files):,} file{'s' if len(files) > 1 else ''}"]
    said += [f"{count:,} {name}" for name, count in totals.items() if count]
    out.print(", ".join(said), markup=False)
    notices = [notice for file in files for notice in file.warnings]
    for notice in notices[:MOST_WARNINGS]:
        out.print(f"  {notice}", markup=False)
    if len(notices) > MOST_WARNINGS:
        out.print(f"  and {len(notices) - MOST_WARNINGS} more warnings; --report lists all")


def _counts(file: FileReport) -> dict[str, int]:
    return {
        "records": file.records,
        "skipped": sum(file.skipped.values()),
        "duplicates": file.duplicates,
        "spawns": file.spawns,
        "returns": file.returns,
        "unpaired": file.unpaired,
        "turns with unreliable tokens": file.unreliable_tokens,
        "records out of time order": file.stepped_back,
        "unknown fields": len(file.unknown_fields),
    }


def _told(file: FileReport) -> Iterator[str]:
    """All that is known of one file, line by line."""
    said = ", ".join(f"{count:,} {name}" for name, count in _counts(file).items() if count)
    yield f"{file.file}: {said or 'nothing read'}"
    lists: dict[str, dict[str, Any]] = {"skipped": dict(file.skipped)}
    lists["unknown fields"] = dict(file.unknown_fields)
    for name, found in lists.items():
        if found:
            yield f"  {name}: {', '.join(f'{kind} {count:,}' for kind, count in found.items())}"
    yield from (f"  {notice}" for notice in file.warnings)
