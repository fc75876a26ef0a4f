"""`stretto bench run | show | verify | submit-check | blame`."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import tyro
from msgspec import Meta, Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stretto.cli.arguments import console, parse, print_json
from stretto.cli.progress_bar import progress
from stretto.errors import StrettoError, did_you_mean
from stretto.files import PAGES, is_inside, read_bytes, require_writable, write_whole

if TYPE_CHECKING:
    from stretto.bench.examinee import Examinee
    from stretto.bench.suite import Suite

Names = tuple[str, ...]
Count = Annotated[int, Meta(ge=1)]
TABLE_WIDTH = 260
"""Columns of a table that is no terminal's."""
Positive = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Flag = tyro.conf.FlagCreatePairsOff[bool]


class Run(Struct, frozen=True, kw_only=True):
    """Run the exam: all baselines, and one policy if one is named. Goes on where it stopped."""

    out: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folder of the results; the traces of the policy come into DIR/submission/POLICY."""
    policy: str | None = None
    """The policy under exam: script:NAME, lm, lm:MODEL, or the folder of a training run."""
    model: Annotated[str | None, tyro.conf.arg(metavar="URL")] = None
    """Address of an OpenAI-compatible endpoint whose model sits the exam."""
    name: str = "default"
    """Name of the model at the endpoint."""
    families: Names = ()
    """Families to take; all where absent."""
    bands: Names = ()
    """Length bands to take: 10, 100, 1000, more."""
    topologies: Names = ()
    """Topologies to take."""
    conditions: Names = ()
    """Conditions to take: clean, or the names of planted faults."""
    instances: Count = 30
    """Instances of a cell."""
    attempts: Count = 1
    """How often the policy plays each instance alone, for best-of-n and majority."""
    tokens: Positive | None = None
    """Most tokens of an episode of the policy; who takes more forfeits it."""
    answer_tokens: Count = 1024
    """Most tokens of an answer of the endpoint, thoughts included."""
    timeout: Seconds = 60.0
    """Seconds until a whole call to the endpoint counts as failed."""
    retries: Annotated[int, Meta(ge=0, le=20)] = 4
    """How often a failed call is made again."""
    concurrency: Count = 8
    """Episodes, and calls to the endpoint, at once."""
    no_baselines: Flag = False
    """Play the policy under exam only."""
    workers: Count = os.cpu_count() or 1
    """Processes that play the baselines, the embedded model and trained runs."""
    split: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A private split: a JSON list of seeds."""
    html: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the leaderboard as one self-contained page."""
    markdown: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the standing table; into its place on a page that has one already."""
    json: Flag = False
    """Print one JSON object."""


class Show(Struct, frozen=True, kw_only=True):
    """Show the table of an exam, finished or not; as text, Markdown or a page."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folder of results."""
    html: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the leaderboard as one self-contained page."""
    markdown: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the standing table; into its place on a page that has one already."""
    json: Flag = False
    """Print one JSON object a line of the table."""


class Verify(Struct, frozen=True, kw_only=True):
    """Play every trace of a submission again and compute its numbers; exit code 2 if refused."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SUBMISSION")]
    """Folder with manifest.json and traces."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Add the verified rows to these results, for a leaderboard."""
    split: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The private split that it was made on."""
    json: Flag = False
    """Print one JSON object."""


class SubmitCheck(Struct, frozen=True, kw_only=True):
    """The cheap part of verify: versions, completeness and digests; nothing is played again."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SUBMISSION")]
    """Folder with manifest.json and traces."""
    split: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """The private split that it was made on."""
    json: Flag = False
    """Print one JSON object."""


class Blame(Struct, frozen=True, kw_only=True):
    """Score methods of blame on labelled failures (Who&When), by exact match."""

    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
    """A copy of Who&When, or a part of it."""
    method: Names = ()
    """Methods to score; all where absent."""
    json: Flag = False
    """Print one JSON object."""


def main(argv: Sequence[str]) -> int:
    """Dispatch to one of the verbs."""
    if not argv or argv[0] in ("-h", "--help"):
        told = {name: (kind.__doc__ or "").splitlines()[0] for name, (kind, _) in VERBS.items()}
        lines = (f"  {name:<13} {what}" for name, what in told.items())
        print("usage: stretto bench COMMAND [ARGUMENT ...]\n\n" + "\n".join(lines))
        print("\n`stretto bench COMMAND --help` says more; every command knows --json.")
        sys.exit(0 if argv else 2)
    if argv[0] not in VERBS:
        raise StrettoError(f'no command "bench {argv[0]}"', hint=did_you_mean(argv[0], VERBS))
    kind, verb = VERBS[argv[0]]
    return verb(parse(kind, f"bench {argv[0]}", argv[1:]))


def _wide() -> Console:
    """Where tables go: as wide as they are, unless a terminal folds them."""
    return console() if sys.stdout.isatty() else Console(highlight=False, width=TABLE_WIDTH)


def _run(command: Run) -> int:
    from stretto.bench.results import open_folder
    from stretto.bench.run import run_baselines, run_exam
    from stretto.bench.suite import read_split, suite

    limits = ("families", "bands", "topologies", "conditions")
    only = {name: getattr(command, name) for name in limits}
    if command.no_baselines and command.policy is None and command.model is None:
        raise StrettoError("nothing to play", "--no-baselines", "name a --policy or a --model")
    exam = suite(split=read_split(command.split), instances=command.instances, only=only)
    with _examinee(command) as who:
        open_folder(command.out, exam)
        _require_writable(command)
        if not command.no_baselines:
            with progress("instances") as show:
                run_baselines(exam, command.out, workers=command.workers, show=show)
        if who is not None:
            with progress("episodes") as show:
                run_exam(
                    exam,
                    command.out,
                    who,
                    attempts=command.attempts,
                    tokens=command.tokens,
                    workers=command.workers,
                    show=show,
                )
    pages = {"html": command.html, "markdown": command.markdown}
    _show(Show(folder=command.out, json=command.json, **pages))
    if who is not None:
        _require_a_score(command.out, exam, who.name)
    return 0


@contextmanager
def _examinee(command: Run) -> Generator["Examinee | None"]:
    """Who sits the exam; an endpoint is known to answer, and closed in the end."""
    from stretto.bench.examinee import examinee, single
    from stretto.bench.submission import require_policy

    if command.model is None:
        who = None if command.policy is None else examinee(command.policy)
        if who is not None:
            require_policy(who.name, who.about, "the policy under exam")
        yield who
        return
    if command.policy is not None:
        raise StrettoError("one policy sits an exam", "bench run", "--policy or --model, not both")
    from stretto.policies.endpoint import Endpoint, EndpointPolicy

    endpoint = Endpoint(
        url=command.model,
        model=command.name,
        timeout=command.timeout,
        retries=command.retries,
        concurrency=command.concurrency,
        answer_tokens=command.answer_tokens,
    )
    with closing(EndpointPolicy(endpoint)) as policy:
        require_policy(command.name, policy.about, "--name")
        policy.probe()
        yield single(command.name, policy.about, policy, command.concurrency)


def _require_writable(command: Run | Show) -> None:
    """Raise `StrettoError` where a page could not be written: to know it before long work."""
    from stretto.bench.text import insert

    for path in (command.html, command.markdown):
        if path is not None:
            require_writable(path)
            _require_page(path, command.out if isinstance(command, Run) else command.folder)
    if command.markdown is not None:
        insert(_said(command.markdown), "")


def _require_page(path: Path, folder: Path) -> None:
    """Raise `StrettoError` where a page would take the place of a result."""
    if is_inside(path, folder) and path.suffix not in PAGES:
        hint = f"name a file with one of {', '.join(PAGES)}"
        raise StrettoError("this would stand among the results", str(path), hint)


def _said(page: Path) -> str:
    """What a page says so far; nothing where there is none, or no file but a pipe."""
    if not page.is_file() or not page.stat().st_size:
        return ""
    try:
        return read_bytes(page).decode()
    except UnicodeDecodeError as error:
        raise StrettoError(f"not a page of UTF-8 text: {error}", str(page)) from None


def _require_a_score(folder: Path, exam: "Suite", name: str) -> None:
    """Raise `StrettoError` where every episode of the policy is an error."""
    from stretto.bench.baselines import ALONE
    from stretto.bench.results import read_rows

    cells, seeds = set(exam.cells), set(exam.seeds)
    rows = [row for row in read_rows(folder) if row.policy in (name, name + ALONE)]
    errors = [row.error for row in rows if row.cell in cells and row.seed in seeds]
    if errors and None not in errors:
        hint = "the next run tries them again"
        raise StrettoError(f'every episode of "{name}" is an error', str(folder), hint)


def _show(command: Show) -> int:
    from stretto.bench.results import read_rows
    from stretto.bench.table import lines
    from stretto.bench.text import COLUMNS, cells, groups, insert, markdown

    _require_writable(command)
    rows = read_rows(command.folder)
    found = lines(rows)
    if command.markdown is not None:
        whole = insert(_said(command.markdown), markdown(found))
        write_whole(command.markdown, [whole.encode()])
    if command.html is not None:
        from stretto.bench.page import leaderboard

        write_whole(command.html, [leaderboard(found, command.folder, len(rows)).encode()])
    reasons = Counter(row.error for row in rows if row.error is not None).most_common(1)
    if command.json:
        print_json({"episodes": len(rows), "errors": reasons, "lines": found})
        return 0
    out = _wide()
    for title, own in groups(found) if command.html is command.markdown is None else ():
        table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
        for number, column in enumerate(COLUMNS):
            table.add_column(column, justify="left" if number < 2 else "right")
        for line in own:
            table.add_row(*map(Text, cells(line)))
        out.print(table)
    errors, forfeits = (sum(getattr(x, n) for x in found) for n in ("errors", "forfeits"))
    out.print(f"{len(rows):,} episodes, {errors:,} errors (not scored), {forfeits:,} forfeits (0)")
    for reason, count in reasons:
        out.print(Text(f"most frequent error, {count:,} times: {' '.join(reason.split())}"))
    return 0


def _verify(command: Verify) -> int:
    from stretto.bench.results import append, open_folder
    from stretto.bench.suite import read_split
    from stretto.bench.table import lines
    from stretto.bench.verify import check, verify

    split = read_split(command.split)
    found = check(command.folder, split)
    with progress("traces") as show:
        rows = verify(command.folder, split, show)
    if command.out is not None:
        open_folder(command.out, found.suite)
        append(command.out, rows)
    if command.json:
        print_json({"verified": len(rows), "caveat": found.caveat, "lines": lines(rows)})
    else:
        console().print(f"verified: {len(rows):,} episodes played again, every number recomputed")
        _warn(found.caveat)
    return 0


def _submit_check(command: SubmitCheck) -> int:
    from stretto.bench.suite import read_split
    from stretto.bench.verify import check

    found = check(command.folder, read_split(command.split))
    missing = sum(each.missing is not None for each, _ in found.episodes)
    said = {"episodes": len(found.episodes), "missing": missing, "digest": found.manifest.digest}
    if command.json:
        print_json({**said, "caveat": found.caveat})
    else:
        console().print(
            f"complete: {len(found.episodes):,} episodes, {missing:,} of them without a trace; "
            f"digest {found.manifest.digest}"
        )
        _warn(found.caveat)
    return 0


def _warn(caveat: str) -> None:
    if caveat:
        console().print(f"but: {caveat}")


def _blame(command: Blame) -> int:
    from stretto.bench.blame import METHODS, PUBLISHED, evaluate, method, read_cases
    from stretto.bench.text import interval

    cases = read_cases(command.path)
    names = command.method or tuple(METHODS)
    scores = [score for name in names for score in evaluate(cases, name, method(name))]
    if command.json:
        print_json({"scores": scores, "published": msgspec.to_builtins(PUBLISHED)})
        return 0
    table = Table(box=None, pad_edge=False)
    for number, column in enumerate(("subset", "method", "runs", "agent", "step")):
        table.add_column(column, justify="left" if number < 2 else "right")
    for score in sorted(scores, key=lambda score: score.subset):
        words = score.subset, score.method, str(score.cases)
        table.add_row(*map(Text, (*words, interval(score.agent, 3), interval(score.step, 3))))
    out = _wide()
    out.print(table)
    for each in PUBLISHED:
        out.print(f"published: {each.what}: agent {each.agent}, step {each.step} ({each.source})")
    return 0


VERBS: dict[str, tuple[type[Any], Callable[[Any], int]]] = {
    "run": (Run, _run),
    "show": (Show, _show),
    "verify": (Verify, _verify),
    "submit-check": (SubmitCheck, _submit_check),
    "blame": (Blame, _blame),
}
