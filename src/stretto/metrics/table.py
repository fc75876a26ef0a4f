"""Measures of many traces as one table: a row a trace, in parallel over sessions."""

import re
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.importers import FileReport, Notice, Session, import_session, plan
from stretto.metrics import Prices, load_prices, measure
from stretto.trace import Trace

Row = dict[str, Any]

WHO = ("trace", "file", "format", "task", "system", "topology", "started")
"""The columns that say whose measures these are."""

IN_FLIGHT = 4
"""Sessions a worker that are handed out ahead: so that a folder never stands in memory."""


class Measured(Struct, frozen=True):
    """The rows of some sessions, and what was not read."""

    rows: tuple[Row, ...]
    """For each measure `m` the columns `m`, `m_how` and `m_reason`."""
    unread: tuple[FileReport, ...]
    warned: int = 0
    """Files that were read with warnings."""


def measure_paths(
    paths: Sequence[str | Path],
    *,
    format: str | None = None,
    workers: int = 1,
    prices: Prices | None = None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Measure every trace of files and folders.

    Args:
        paths: As for `stretto.importers.import_paths`.
        format: The format of all of them; detected where absent.
        workers: Processes; each holds one session at a time.
        prices: A table of prices; the one that comes with Stretto where none is given.
        show: Called after every session with how many are done, of how many.

    Raises `StrettoError` where nothing can be read.
    """
    planned = plan(paths, format)
    table = load_prices() if prices is None else prices
    done: dict[int, Measured] = {}
    for index, found in _each(planned.sessions, table, workers):
        done[index] = found
        show(len(done), len(planned.sessions))
    parts = [done[index] for index in sorted(done)]
    rows = tuple(row for part in parts for row in part.rows)
    unread = (*(report for part in parts for report in part.unread), *planned.skipped)
    if not rows:
        notices = (notice for report in unread for notice in report.warnings)
        said = next(notices, Notice(str(paths[0]), "no trace"))
        raise StrettoError(said.what, said.where)
    return Measured(rows, unread, sum(part.warned for part in parts))


def _each(
    sessions: Sequence[Session], prices: Prices, workers: int
) -> Iterator[tuple[int, Measured]]:
    """Measure sessions one by one, or by several processes, in the order in which they end."""
    if workers <= 1 or len(sessions) == 1:
        yield from ((index, measure_session(each, prices)) for index, each in enumerate(sessions))
        return
    waiting = iter(enumerate(sessions))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        with _interrupts_for_us_only():
            running = {
                pool.submit(measure_session, each, prices): index
                for index, each in _some(waiting, workers * IN_FLIGHT)
            }
        while running:
            ended = next(as_completed(running))
            yield running.pop(ended), ended.result()
            for index, each in _some(waiting, 1):
                running[pool.submit(measure_session, each, prices)] = index


@contextmanager
def _interrupts_for_us_only() -> Generator[None]:
    """Let the processes that start meanwhile ignore ^C: this one ends them."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _some(waiting: Iterator[tuple[int, Session]], most: int) -> Iterator[tuple[int, Session]]:
    for _, item in zip(range(most), waiting, strict=False):
        yield item


def measure_session(session: Session, prices: Prices) -> Measured:
    """Measure the traces of one session; one that cannot be read is told."""
    try:
        imported = import_session(session)
    except StrettoError as error:
        notice = Notice(error.where or str(session.files[0]), f"not read: {error.what}")
        return Measured((), (FileReport(file=str(session.files[0]), warnings=(notice,)),))
    rows = tuple(_row(trace, session, prices) for trace in imported.traces)
    return Measured(rows, (), sum(bool(file.warnings) for file in imported.report))


def _row(trace: Trace, session: Session, prices: Prices) -> Row:
    who = (
        trace.id,
        str(session.files[0]),
        session.format,
        trace.task,
        trace.system,
        trace.topology,
        trace.attrs.get("started"),
    )
    row: Row = dict(zip(WHO, who, strict=True))
    for name, found in measure(trace, prices=prices).items():
        row[name] = found.value
        row[f"{name}_how"] = found.how if found.value is not None else None
        row[f"{name}_reason"] = found.reason or None
    return row


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows as Parquet, whole or not at all.

    Raises `StrettoError` where polars is not installed or the file cannot be written.
    """
    from io import BytesIO

    from stretto.files import write_whole

    polars = import_polars()
    measures = {name for row in rows for name in row}
    texts = {n for n in measures if n in WHO or n.endswith(("_how", "_reason"))}
    schema = {
        name: polars.String if name in texts else polars.Float64 for row in rows for name in row
    }
    buffer = BytesIO()
    polars.DataFrame(list(rows), schema=schema).write_parquet(buffer)
    write_whole(path, [buffer.getvalue()])


def table_name(path: Path) -> str:
    """What a table is called in SQL: the name of its file, in letters, digits and `_`."""
    return re.sub(r"\W", "_", path.stem)


def import_polars() -> Any:
    """The polars module.

    Raises `StrettoError` that says how to install it.
    """
    try:
        import polars
    except ModuleNotFoundError:
        hint = "pip install 'stretto[polars]'"
        raise StrettoError("tables need polars, which is not installed", hint=hint) from None
    return polars
