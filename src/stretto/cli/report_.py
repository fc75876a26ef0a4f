"""`stretto report FILE|RUN -o out.html`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct

from stretto.cli.arguments import console, parse, print_json
from stretto.files import output_path, require_apart
from stretto.viewer.report import write_report


class Report(Struct, frozen=True, kw_only=True):
    """Write one self-contained HTML page, to be opened without a network."""

    source: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE|DIR")]
    """Traces or transcripts (a file or a folder), or the folder of a training run."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="HTML")] = Path("report.html")
    """Where the page goes."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Write the page and say what is on it."""
    arguments = parse(Report, "report", argv)
    output = output_path(arguments.output)
    require_apart(arguments.source, output)
    facts = write_report(arguments.source, output)
    if arguments.json:
        print_json({"output": str(output), **facts}, output)
    else:
        shown = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
        console(output).print(f"wrote {output} ({shown})", markup=False)
    return 0
