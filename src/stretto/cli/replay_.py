"""`stretto replay FILE`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct

from stretto.cli.arguments import console, parse, print_json
from stretto.errors import StrettoError
from stretto.loading import load_all
from stretto.tasks import build
from stretto.team.replay import Divergence, replay
from stretto.trace import Trace


class Replay(Struct, frozen=True, kw_only=True):
    """Run recorded episodes again and compare every event, observation hashes included.

    Exit code 0 if all come out the same, 1 if one does not.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """A file of traces that a Stretto team wrote."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Replay every trace of a file."""
    arguments = parse(Replay, "replay", argv)
    traces = load_all(arguments.file)
    found = [(trace, divergence) for trace in traces if (divergence := _replay(trace))]
    if arguments.json:
        divergences = [{"trace": t.id, "divergence": divergence} for t, divergence in found]
        print_json(
            {
                "traces": len(traces),
                "reproduced": len(traces) - len(found),
                "divergences": divergences,
            }
        )
    else:
        _show(traces, found)
    return 1 if found else 0


def _replay(trace: Trace) -> Divergence | None:
    if not trace.spec:
        hint = "only traces that a Stretto team wrote can be replayed"
        raise StrettoError("the trace does not say how to rebuild its task", trace.id, hint)
    return replay(trace, build(trace.spec))


def _show(traces: Sequence[Trace], found: Sequence[tuple[Trace, Divergence]]) -> None:
    events = sum(len(trace.events) for trace in traces)
    hashes = sum(event.kind == "decision" for trace in traces for event in trace.events)
    out = console()
    for trace, divergence in found:
        what = f"recorded {divergence.recorded!r}, replayed {divergence.replayed!r}"
        out.print(f"{trace.id}: {divergence.event}: {divergence.field}: {what}", markup=False)
    same = len(traces) - len(found)
    out.print(
        f"{same} of {len(traces)} traces reproduced "
        f"({events:,} events, {hashes:,} observation hashes compared)"
    )
