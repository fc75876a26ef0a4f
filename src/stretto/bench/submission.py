"""A submission: a folder of traces, and a manifest that names each by its digest.

    submission/my-model/manifest.json
    submission/my-model/traces/hops-100-swarm-clean/1000000.jsonl
    submission/my-model/traces/hops-100-swarm-clean/1000000.alone-0.jsonl

The manifest holds no numbers: a verifier computes all of them from the traces. Its digests cover
every byte of every trace, and its own digest covers the manifest. A folder holds the submission of
one policy with one set of settings.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from stretto.bench.baselines import ALONE, SCRIPTED
from stretto.bench.results import ROWS, Row, latest, make_folder, read_rows
from stretto.bench.suite import Cell, Suite, Versions, versions
from stretto.bench.table import BEST_OF, MAJORITY
from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes, write_whole
from stretto.team.engine import fingerprint

if TYPE_CHECKING:
    from stretto.bench.examinee import Examinee

SUBMISSION, MANIFEST, TRACES = "submission", "manifest.json", "traces"
FORFEITS = ("limit", "invalid")
BASELINES = (*SCRIPTED, BEST_OF, MAJORITY)
LONGEST = 100
"""Most characters of a policy's name."""
ABOUT = ("kind", "model", "address", "temperature", "answer_tokens", "parameters", "dtype")
"""What a manifest may say of a policy; there is no room for a score."""


class Filed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One episode of a submission."""

    cell: str
    seed: int
    attempt: int | None = None
    """Number of the attempt alone; `None` with a team."""
    sha256: str | None = None
    """Digest of its trace file; `None` where it has none."""
    missing: Literal["limit", "invalid", "error"] | None = None
    """Why it has none: `limit` and `invalid` are forfeits, which score 0; an `error` is not scored.
    """


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a submission says of itself."""

    policy: str
    about: dict[str, str | int | float | None]
    """Facts of the policy, of the kinds in `ABOUT`."""
    versions: Versions
    split: str
    instances: int
    attempts: Annotated[int, Meta(ge=0)]
    tokens: float | None
    """Most tokens of an episode; `None` where there was no limit."""
    cells: tuple[str, ...]
    harnesses: dict[str, str]
    """Cell to the fingerprint of its harness."""
    episodes: tuple[Filed, ...]
    digest: str = ""
    """SHA-256 of this manifest with an empty digest."""


def require_policy(name: str, about: Mapping[str, Any], where: str) -> None:
    """Raise `StrettoError` for a policy that could pass for a baseline, or break a table."""
    hint = "rename it: rows of two policies with one name could not be told apart"
    if name.casefold() in BASELINES or name.casefold().endswith(ALONE):
        raise StrettoError(f"{name!r} is the name of a baseline", where, hint)
    if not name.isprintable() or "|" in name or name != name.strip() or not name:
        hint = 'a name has visible characters, but no "|", and no spaces around it'
        raise StrettoError(f"{name[:LONGEST]!r} is no name of a policy", where, hint)
    if len(name) > LONGEST:
        raise StrettoError(f"a name of {len(name)} characters", where, f"take at most {LONGEST}")
    for key, value in about.items():
        if key not in ABOUT or not isinstance(value, str | int | float | None):
            raise StrettoError(f'"about" holds "{key}": {value!r}', where, did_you_mean(key, ABOUT))


def home_of(folder: Path, policy: str) -> Path:
    """Where the submission of a policy is, below a folder of results."""
    return folder / SUBMISSION / (re.sub(r"[^\w.]+", "-", policy).strip("-.") or "policy")


def located(path: Path) -> Path:
    """The submission at a path: the folder itself, or the only one that it holds.

    Raises `StrettoError` where it holds several.
    """
    inner = sorted(each.parent for each in path.glob(f"*/{MANIFEST}"))
    if (path / MANIFEST).exists() or not inner:
        return path
    if len(list(path.iterdir())) > 1:
        names = ", ".join(str(each) for each in inner)
        raise StrettoError("holds more than one submission", str(path), f"name one: {names}")
    return inner[0]


def trace_name(cell: Cell, seed: int, attempt: int | None) -> str:
    """Where the trace of an episode is, below `traces`."""
    alone = "" if attempt is None else f".alone-{attempt}"
    return f"{cell.name}/{seed}{alone}.jsonl"


def trace_path(home: Path, cell: Cell, seed: int, attempt: int | None) -> Path:
    """The file of the trace of an episode."""
    return home / TRACES / trace_name(cell, seed, attempt)


def digest_of(manifest: Manifest) -> str:
    """SHA-256 of a manifest with an empty digest."""
    return sha256(msgspec.json.encode(replace(manifest, digest=""), order="sorted")).hexdigest()


def open_submission(
    folder: Path, suite: Suite, who: "Examinee", attempts: int, tokens: float | None
) -> list[Row]:
    """Begin the submission of a policy, or go on with it; the rows that need not be played again.

    What a process that was killed left behind is removed.

    Raises `StrettoError` for results of another policy of this name, or with other settings.
    """
    home = home_of(folder, who.name)
    if (home / MANIFEST).exists():
        _require_same(home, suite, who, attempts, tokens)
    elif _rows(folder, who):
        hint = "take another name or another folder"
        raise StrettoError(f'rows of "{who.name}" are here without its traces', str(folder), hint)
    make_folder(home)
    rows = [row for row, each in _filed(folder, who) if each.missing != "error"]
    named = {trace_path(home, row.cell, row.seed, _attempt(row, who)) for row in rows}
    _tidy(home, named)
    write_manifest(folder, suite, who, attempts, tokens)
    return rows


def write_manifest(
    folder: Path, suite: Suite, who: "Examinee", attempts: int, tokens: float | None
) -> None:
    """Write the manifest of all traces of a policy that a run folder holds so far."""
    found = list(_filed(folder, who))
    place = {seed: number for number, seed in enumerate(suite.split.seeds, start=1)}
    cells = sorted({*suite.cells, *(row.cell for row, _ in found)})
    manifest = Manifest(
        policy=who.name,
        about=who.about,
        versions=versions(suite.split),
        split=suite.split.name,
        instances=max([suite.instances, *(place[row.seed] for row, _ in found)]),
        attempts=attempts,
        tokens=tokens,
        cells=tuple(cell.name for cell in cells),
        harnesses={cell.name: fingerprint(cell.task(suite.seeds[0])) for cell in cells},
        episodes=tuple(each for _, each in found),
    )
    seal(home_of(folder, who.name), manifest)


def seal(home: Path, manifest: Manifest) -> None:
    """Write a manifest with its digest."""
    whole = replace(manifest, digest=digest_of(manifest))
    write_whole(home / MANIFEST, [msgspec.json.format(msgspec.json.encode(whole)) + b"\n"])


def read_manifest(home: Path) -> Manifest:
    """Read a manifest.

    Raises `StrettoError` for one that says more than it may, such as a score.
    """
    path = home / MANIFEST
    try:
        return msgspec.json.decode(read_bytes(path), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "numbers are computed from the traces; a manifest reports none"
        raise StrettoError(f"not a manifest: {error}", str(path), hint) from None


def _require_same(
    home: Path, suite: Suite, who: "Examinee", attempts: int, tokens: float | None
) -> None:
    """Rows that were made otherwise would silently stand for this policy."""
    before = read_manifest(home)
    own = {"policy": who.name, "about": who.about, "attempts": attempts, "tokens": tokens}
    for name, value in {**own, "versions": versions(suite.split)}.items():
        theirs = getattr(before, name)
        if theirs != value:
            what = f"holds a submission with another {name}: {theirs!r}, not {value!r}"
            raise StrettoError(what, str(home), "take another folder, or another name")


def _tidy(home: Path, named: set[Path]) -> None:
    """Remove traces that no row knows, parts of files, and folders that are empty then."""
    for partial in home.glob(".*.partial"):
        partial.unlink()
    for path in (home / TRACES).glob("*/*"):
        if path not in named and path.suffix in (".jsonl", ".partial"):
            path.unlink()
    for path in (home / TRACES).glob("*"):
        with suppress(OSError):
            path.rmdir()


def _rows(folder: Path, who: "Examinee") -> list[Row]:
    """The rows of a policy, with its team and alone."""
    if not (folder / ROWS).exists():
        return []
    try:
        rows: Sequence[Row] = read_rows(folder)
    except StrettoError:  # interrupted before the first episode
        return []
    own = (row for row in latest(rows) if row.policy in (who.name, who.name + ALONE))
    return sorted(own, key=lambda row: row.key)


def _attempt(row: Row, who: "Examinee") -> int | None:
    return None if row.policy == who.name else row.attempt


def _filed(folder: Path, who: "Examinee") -> Iterator[tuple[Row, Filed]]:
    """The rows of a policy whose traces are there or need not be."""
    home = home_of(folder, who.name)
    for row in _rows(folder, who):
        attempt = _attempt(row, who)
        path = trace_path(home, row.cell, row.seed, attempt)
        if row.error is not None:
            yield row, Filed(row.cell.name, row.seed, attempt, missing="error")
        elif row.ended in ("limit", "invalid"):
            yield row, Filed(row.cell.name, row.seed, attempt, missing=row.ended)
        elif path.is_file():
            digest = sha256(read_bytes(path)).hexdigest()
            yield row, Filed(row.cell.name, row.seed, attempt, digest)
