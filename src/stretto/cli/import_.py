"""`stretto import PATH… -o t.jsonl`."""

from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct


class Import(Struct, frozen=True, kw_only=True):
    """Turn transcripts of a harness into traces."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
    """Transcript files, or folders of them."""
    format: str | None = None
    """The format, as in `claude-code`; detected by content where absent."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("traces.jsonl")
    """Where the traces go."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""
