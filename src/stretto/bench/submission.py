"""A submission: a folder of traces, and a manifest that names each by its digest.

    manifest.json
    traces/hops-100-swarm-clean/1000000.jsonl
    traces/hops-100-swarm-clean/1000000.alone-0.jsonl

The manifest holds no numbers: a verifier computes all of them from the traces. Its digests cover
every byte of every trace, and its own digest covers the manifest.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stretto.bench.results import latest, read_rows
from stretto.bench.suite import Cell, Suite, Versions, versions
from stretto.errors import StrettoError
from stretto.files import read_bytes, write_whole
from stretto.team.engine import fingerprint

if TYPE_CHECKING:
    from stretto.bench.examinee import Examinee

MANIFEST, TRACES = "manifest.json", "traces"


class Filed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One episode of a submission."""

    cell: str
    seed: int
    attempt: int | None = None
    """Number of the attempt alone; `None` with a team."""
    sha256: str | None = None
    """Digest of its trace file; `None` where it has none."""
    missing: str | None = None
    """Why it has none: `limit`, `invalid` (forfeits, which score 0), or what failed (an error)."""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a submission says of itself."""

    policy: str
    about: dict[str, Any]
    versions: Versions
    split: str
    instances: int
    attempts: int
    cells: tuple[str, ...]
    harnesses: dict[str, str]
    """Cell to the fingerprint of its harness."""
    episodes: tuple[Filed, ...]
    digest: str = ""
    """SHA-256 of this manifest with an empty digest."""


def trace_name(cell: Cell, seed: int, attempt: int | None) -> str:
    """Where the trace of an episode is, below `traces`."""
    alone = "" if attempt is None else f".alone-{attempt}"
    return f"{cell.name}/{seed}{alone}.jsonl"


def digest_of(manifest: Manifest) -> str:
    """SHA-256 of a manifest with an empty digest."""
    return sha256(msgspec.json.encode(replace(manifest, digest=""), order="sorted")).hexdigest()


def write_manifest(folder: Path, suite: Suite, who: "Examinee") -> None:
    """Write the manifest of the traces that a run folder holds so far."""
    home = folder / "submission"
    home.mkdir(parents=True, exist_ok=True)
    episodes = tuple(_filed(folder, home, suite, who))
    alone = [each.attempt for each in episodes if each.attempt is not None]
    manifest = Manifest(
        policy=who.name,
        about=who.about,
        versions=versions(suite.split),
        split=suite.split.name,
        instances=suite.instances,
        attempts=max(alone, default=-1) + 1,
        cells=tuple(cell.name for cell in suite.cells),
        harnesses={cell.name: fingerprint(cell.task(suite.seeds[0])) for cell in suite.cells},
        episodes=episodes,
    )
    seal(home, manifest)


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


def _filed(folder: Path, home: Path, suite: Suite, who: "Examinee") -> Iterator[Filed]:
    names = {who.name: False, f"{who.name} alone": True}
    wanted = {cell.name for cell in suite.cells}
    try:
        rows = sorted(latest(read_rows(folder)), key=lambda row: row.key)
    except StrettoError:  # interrupted before the first episode
        return
    for row in rows:
        if row.policy not in names or row.cell.name not in wanted:
            continue
        attempt = row.attempt if names[row.policy] else None
        path = home / TRACES / trace_name(row.cell, row.seed, attempt)
        missing = row.error or (row.ended if row.ended in ("limit", "invalid") else None)
        digest = None if missing else sha256(read_bytes(path)).hexdigest()
        yield Filed(row.cell.name, row.seed, attempt, digest, missing)
