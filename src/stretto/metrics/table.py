"""Measures of many traces as one table: a row a trace, in parallel over sessions."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from string import digits as DIGITS
from typing import Any

from msgspec import Struct

from stretto.errors import StrettoError
from stretto.importers import FileReport, Notice, Session, import_session, plan
from stretto.importers.mistakes import raised
from stretto.metrics import Prices, load_prices, measure
from stretto.metrics.baselines import find_baseline, load_baselines
from stretto.metrics.pool import run_each
from stretto.trace import Trace

Row = dict[str, Any]

WHO = ("trace", "file", "format", "task", "system", "topology", "started")
"""The columns that say whose measures these are."""

DIED = "not read: the process that measured it died (out of memory?)"

PROBES = (
    "SELECT {0}.x FROM {0} WHERE {0}.x = 0",
    "SELECT {0}.x FROM {0} JOIN the_other_ ON {0}.x = the_other_.x ORDER BY {0}.x LIMIT 1",
    "SELECT the_other_.x, {0}.x AS y FROM the_other_ LEFT JOIN {0} ON the_other_.x = {0}.x",
    "SELECT {0}.x FROM {0} UNION ALL SELECT x FROM the_other_",
    "SELECT COUNT({0}.x) AS n FROM {0} GROUP BY {0}.x",
    "SELECT a.x FROM {0} a",
)
"""Places in SQL where the name of a table stands."""

_baselines = lru_cache(maxsize=1)(load_baselines)
"""Read once a process, not once a session."""


class Measured(Struct, frozen=True):
    """The rows of some sessions, and what was not read."""

    rows: tuple[Row, ...]
    """For each measure `m` the columns `m`, `m_how` and `m_reason`."""
    unread: tuple[FileReport, ...]
    warned: int = 0
    """Files that were read with warnings."""
    alone: Mapping[str, int] = {}
    """Traces for which no baseline was found, where some are given, by the reason."""


def measure_paths(
    paths: Sequence[str | Path],
    *,
    format: str | None = None,
    workers: int = 1,
    prices: Prices | None = None,
    baseline: Path | None = None,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """Measure every trace of files and folders.

    Args:
        paths: As for `stretto.importers.import_paths`.
        format: The format of all of them; detected where absent.
        workers: Processes; each holds one session at a time.
        prices: A table of prices; the one that comes with Stretto where none is given.
        baseline: A file with the same tasks done by a single agent; see `find_baseline`.
        show: Called after every session with how many are done, of how many.

    Raises `StrettoError` where nothing can be read.
    """
    planned = plan(paths, format)
    table = load_prices() if prices is None else prices
    _baselines.cache_clear()  # it may be another file by now
    task = partial(measure_session, prices=table, baseline=baseline)
    done: dict[int, Measured] = {}
    for index, found in run_each(task, planned.sessions, workers):
        done[index] = _unread(planned.sessions[index], DIED) if found is None else found
        show(len(done), len(planned.sessions))
    parts = [done[index] for index in sorted(done)]
    rows = tuple(row for part in parts for row in part.rows)
    unread = (*(report for part in parts for report in part.unread), *planned.skipped)
    if not rows:
        notices = (notice for report in unread for notice in report.warnings)
        said = next(notices, Notice(str(paths[0]), "no trace"))
        raise StrettoError(said.what, said.where)
    alone = sum((Counter(part.alone) for part in parts), Counter[str]())
    return Measured(rows, unread, sum(part.warned for part in parts), alone)


def measure_session(session: Session, prices: Prices, baseline: Path | None = None) -> Measured:
    """Measure the traces of one session; one that cannot be read is told."""
    try:
        imported = import_session(session)
    except StrettoError as error:
        return _unread(session, f"not read: {error.what}", error.where)
    traces = imported.traces
    against = [
        None if baseline is None else find_baseline(trace, _baselines(baseline)) for trace in traces
    ]
    pairs = zip(traces, against, strict=True)
    try:
        rows = tuple(_row(trace, session, prices, other) for trace, other in pairs)
    except Exception as error:  # a mistake of ours must not cost the other sessions
        what = f"not read: {raised(error)}; this is a mistake, please report it"
        return _unread(session, what)
    return Measured(
        rows=rows,
        unread=(),
        warned=sum(bool(file.warnings) for file in imported.report),
        alone=Counter(other for other in against if isinstance(other, str)),
    )


def _unread(session: Session, what: str, where: str = "") -> Measured:
    file = str(session.files[0])
    return Measured((), (FileReport(file=file, warnings=(Notice(where or file, what),)),))


def _row(trace: Trace, session: Session, prices: Prices, baseline: Trace | str | None) -> Row:
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
    for name, found in measure(trace, baseline=baseline, prices=prices).items():
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
    """What a table is called in SQL: the name of its file, in letters, digits and `_`.

    What SQL does not take as a name (`table`, `2026`) gets `t_` before it.
    """
    word = "".join(c if c.isalpha() or c in DIGITS else "_" for c in path.stem)
    return word if _is_name(word) else f"t_{word}"


def _is_name(word: str) -> bool:
    """Ask the parser itself: it knows which words are its own, and where."""
    polars = import_polars()
    frame = polars.DataFrame({"x": [0]})
    context = polars.SQLContext({word: frame, "the_other_": frame})
    try:
        for sql in PROBES:
            context.execute(sql.format(word), eager=True)
    except polars.exceptions.PolarsError:
        return False
    return True


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
