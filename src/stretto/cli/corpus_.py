"""`stretto corpus ACTION`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from msgspec import Struct
from msgspec.structs import asdict

from stretto.cli.arguments import console, parse, print_json
from stretto.corpus import EXCLUDED, POOL, add, coverage, flaws, read_pool, statistics
from stretto.corpus.flaws import require_flawless
from stretto.corpus.statistics import page
from stretto.corpus.tables import EXCLUDED_FIELDS, PAPER_FIELDS
from stretto.errors import StrettoError, did_you_mean


class Files(Struct, frozen=True, kw_only=True):
    """Where the pool is, and how to print."""

    papers: Annotated[Path, tyro.conf.arg(metavar="FILE")] = POOL
    """The pool; by default the one that comes with Stretto."""
    excluded: Annotated[Path, tyro.conf.arg(metavar="FILE")] = EXCLUDED
    """The exclusion log; by default the one that comes with Stretto."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print one JSON object."""


class Stats(Files, frozen=True, kw_only=True, tag="stats"):
    """Counts and cross-tabs of the pool."""


class Check(Files, frozen=True, kw_only=True, tag="check"):
    """Look for values outside of the vocabulary, and for doubled records.

    Exit code 0 if all is well, 1 with a line for each flaw if not.
    """


class Modules(Files, frozen=True, kw_only=True, tag="modules"):
    """Which module of Stretto implements which paper, read from the code."""


class Add(Files, frozen=True, kw_only=True, tag="add"):
    """Add a paper to the pool, and say which counts it changes."""

    key: str
    """As in `dr-mas`."""
    title: str
    first_author: str
    """As in `Littman, Michael L.`"""
    year: str
    identifier: str
    """arXiv:…, doi:…, OpenReview:…, ACL:… or a URL."""
    category: str
    is_rl: str
    """Whether it trains by reinforcement learning: yes, no or partial."""
    reward_type: str = "NA"
    credit_granularity: str = "NA"
    orchestration_form: str = "NA"
    scenario: str = "general"
    is_core: str = "supporting"


class Exclude(Files, frozen=True, kw_only=True, tag="exclude"):
    """Add a record to the exclusion log, and say which counts it changes."""

    record_id: str
    """As in `E033`."""
    title: str
    source: str
    """Where it was found, as in `arXiv`."""
    query_family: str
    """What was searched for, as in `credit assignment`."""
    identifier: str
    """arXiv:…, doi:…, OpenReview:…, ACL:… or a URL."""
    date_screened: str
    """As in `2026-04-26`."""
    stage: str
    reason: str


Action = (
    Annotated[Stats, tyro.conf.subcommand("stats", prefix_name=False)]
    | Annotated[Check, tyro.conf.subcommand("check", prefix_name=False)]
    | Annotated[Modules, tyro.conf.subcommand("modules", prefix_name=False)]
    | Annotated[Add, tyro.conf.subcommand("add", prefix_name=False)]
    | Annotated[Exclude, tyro.conf.subcommand("exclude", prefix_name=False)]
)
ACTIONS = ("stats", "check", "modules", "add", "exclude")


class Corpus(Struct, frozen=True, kw_only=True):
    """The tagged pool of papers on learning in teams of LLM agents; every action knows --json."""

    action: tyro.conf.OmitArgPrefixes[Action]


def main(argv: Sequence[str]) -> int:
    """Do one thing with the pool."""
    if argv and not argv[0].startswith("-") and argv[0] not in ACTIONS:
        raise StrettoError(f'no action "{argv[0]}"', "corpus", did_you_mean(argv[0], ACTIONS))
    match parse(Corpus, "corpus", argv).action:
        case Stats() as given:
            return _stats(given)
        case Check() as given:
            return _check(given)
        case Modules() as given:
            return _modules(given)
        case Add() as given:
            return _grow(given, PAPER_FIELDS)
        case Exclude() as given:
            return _grow(given, EXCLUDED_FIELDS)


def _stats(given: Stats) -> int:
    found = statistics(require_flawless(read_pool(given.papers, given.excluded)))
    if given.json:
        print_json(found)
    else:
        console().print(page(found), markup=False)
    return 0


def _check(given: Check) -> int:
    pool = read_pool(given.papers, given.excluded)
    found = list(flaws(pool))
    if given.papers == POOL:
        coverage([row.values["key"] for row in pool.papers.rows])
    counts = {"papers": len(pool.papers.rows), "excluded": len(pool.excluded.rows)}
    if given.json:
        print_json({"ok": not found, **counts, "flaws": found})
    else:
        for flaw in found:
            console().print(str(flaw.error()), markup=False)
        said = ", ".join(f"{count} {name}" for name, count in counts.items())
        console().print(f"{said}: {f'{len(found)} flaws' if found else 'fine'}", markup=False)
    return 1 if found else 0


def _modules(given: Modules) -> int:
    pool = require_flawless(read_pool(given.papers, given.excluded))
    title = {row.values["key"]: row.values["title"] for row in pool.papers.rows}
    found = coverage(title)
    implemented = {key: modules for key, modules in found.items() if modules}
    if given.json:
        print_json({"papers": len(found), "implemented": len(implemented), "modules": found})
        return 0
    width = max(map(len, implemented), default=0)
    for key, modules in implemented.items():
        console().print(f"{key:<{width}}  {title[key]}", markup=False)
        for module in modules:
            console().print(f"{'':<{width}}  {module}", markup=False)
    console().print(f"{len(implemented)} of {len(found)} are implemented; --json lists all")
    return 0


def _grow(given: Add | Exclude, fields: Sequence[str]) -> int:
    record = {name: value for name, value in asdict(given).items() if name in fields}
    changes = add(record, given.papers, given.excluded)
    if given.json:
        print_json({"added": record, "changes": changes})
        return 0
    for change in changes:
        console().print(f"{change.cell}: {change.before} → {change.after}", markup=False)
    return 0
