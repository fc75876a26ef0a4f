"""`stretto redact FILE -o OUT`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct

from stretto import store
from stretto.cli.arguments import console, parse, print_json
from stretto.cli.export_ import load_source
from stretto.files import output_path, require_apart
from stretto.redaction import Contents, Redaction, redact_all


class Redact(Struct, frozen=True, kw_only=True):
    """Take texts and private strings out of a trace file, so that it can be shared.

    E-mail addresses, user names in paths, keys, tokens and passwords become placeholders, the same
    one throughout the file. Events, edges, times, tokens and counts stay as they were.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of traces, or a transcript."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="OUT")] = Path("redacted.jsonl")
    """Where the redacted traces go; - is standard output."""
    contents: Contents = "hash"
    """Texts: keep them without private strings, leave a salted hash of each, or drop them."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Redact, write, and say what was taken out."""
    arguments = parse(Redact, "redact", argv)
    output = output_path(arguments.output)
    require_apart(arguments.file, output)
    traces, report = redact_all(load_source(arguments.file), arguments.contents)
    store.write(output, traces)
    if arguments.json:
        said = {"output": str(output), "traces": len(traces), "report": report}
        print_json(said, output)
    else:
        _say(output, report)
    return 0


def _say(output: Path, report: Redaction) -> None:
    out = console(output)
    for kind, fields in sorted(report.replaced.items()):
        where = ", ".join(f"{count:,} in {field}" for field, count in sorted(fields.items()))
        out.print(f"{kind}: {report.distinct[kind]:,} different: {where}", markup=False)
    for what, count in sorted(report.texts.items()):
        out.print(f"texts {what}: {count:,}", markup=False)
    if report.turns_without_ids:
        out.print(f"turns without their token ids: {report.turns_without_ids:,}", markup=False)
    out.print(f"wrote {output}", markup=False)
