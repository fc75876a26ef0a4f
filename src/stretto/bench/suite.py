"""What an exam consists of: cells of instances, and the versions that made them."""

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

import stretto
from stretto.bench.bands import (
    LIMITS,
    bands_of,
    families,
    make,
    require,
    topologies_of,
)
from stretto.errors import StrettoError
from stretto.files import read_bytes
from stretto.tasks.faults import faults_of
from stretto.tasks.topology import NAMES
from stretto.team.protocols import Task

VERSION = 1
"""Version of the suite: of its cells, metrics and harness contract."""
CLEAN = "clean"
"""The condition without a planted fault; every other one is named after its fault."""
INSTANCES = 30
"""Least instances of a cell of which a mean is worth reporting."""
FAULTY = "100"
"""The band in which faults are planted."""
FIRST, COUNT = 1_000_000, 1_000
"""The public split: so many seeds from the first on. All others are free to train on."""


class Cell(Struct, frozen=True, order=True):
    """Instances that are compared with each other, and with nothing else."""

    family: str
    band: str
    """One of `bands.LIMITS`."""
    topology: str
    condition: str = CLEAN

    @property
    def name(self) -> str:
        """As in `hops-100-swarm-clean`; also the name of a folder."""
        return f"{self.family}-{self.band}-{self.topology}-{self.condition}"

    def task(self, seed: int) -> Task:
        """The instance of this cell with a seed."""
        fault = None if self.condition == CLEAN else self.condition
        return make(self.family, bands_of(self.family)[self.band], seed, self.topology, fault)


class Split(Struct, frozen=True):
    """Seeds that the exam draws its instances from."""

    name: str
    """`public` or `private`; results tell no more of a private one than its digest and the seeds
    that were played."""
    seeds: tuple[int, ...]

    @property
    def digest(self) -> str:
        """Names the seeds without telling them."""
        return sha256(msgspec.json.encode(self.seeds)).hexdigest()


class Suite(Struct, frozen=True):
    """Cells, and the seeds that all of them share, so that everything is paired."""

    cells: tuple[Cell, ...]
    split: Split
    instances: int = INSTANCES
    """The first so many seeds of the split."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every cell."""
        return self.split.seeds[: self.instances]

    def require_seed(self, seed: int, where: str) -> None:
        """Raise `StrettoError` for a seed that this exam does not ask for."""
        if seed not in self.split.seeds:
            first, last = self.split.seeds[0], self.split.seeds[-1]
            hint = f"the {self.split.name} split has seeds from {first} to {last}"
            raise StrettoError(f"seed {seed} is outside the split", where, hint)


class Versions(Struct, frozen=True, forbid_unknown_fields=True):
    """What made the instances; a number is only comparable under the same."""

    stretto: str
    suite: int
    generator: str
    """Digest of the source of tasks, scripts, engine and bands."""
    split: str
    """Digest of the split's seeds."""


def public_split() -> Split:
    """The seeds that everybody knows."""
    return Split("public", tuple(range(FIRST, FIRST + COUNT)))


def read_split(path: Path | None) -> Split:
    """A private split: a JSON list of seeds; the public one where no path is given."""
    if path is None:
        return public_split()
    try:
        seeds = msgspec.json.decode(read_bytes(path), type=tuple[int, ...])
    except msgspec.DecodeError as error:
        raise StrettoError(f"no list of seeds: {error}", str(path)) from None
    if not seeds or len(set(seeds)) < len(seeds):
        raise StrettoError("a split is a list of distinct seeds", str(path))
    if public := sorted(set(seeds) & set(public_split().seeds)):
        what = f"{len(public)} of its seeds are in the public split, as {public[0]}"
        raise StrettoError(what, str(path), "a private split has seeds that nobody knows")
    return Split("private", seeds)


def versions(split: Split) -> Versions:
    """The versions at work here."""
    return Versions(stretto.__version__, VERSION, generator(), split.digest)


@cache
def generator() -> str:
    """Digest of every source file that an episode depends on."""
    root = Path(stretto.__file__).parent
    files = sorted(file for part in ("tasks", "team") for file in (root / part).rglob("*.py"))
    files.append(root / "bench" / "bands.py")
    names = [(str(file.relative_to(root)), file.read_bytes()) for file in files]
    whole = sha256()
    for name, data in names:
        whole.update(name.encode() + b"\0" + sha256(data).digest())
    return whole.hexdigest()


def suite(
    *,
    split: Split | None = None,
    instances: int = INSTANCES,
    only: dict[str, Sequence[str]] | None = None,
) -> Suite:
    """The exam: all families × bands × topologies, and planted faults in one band.

    Args:
        split: Where the seeds come from; the public split by default.
        instances: Instances of a cell.
        only: Any of `families`, `bands`, `topologies`, `conditions`, to what they are limited to.

    Raises `StrettoError` for an unknown name, and for fewer seeds than instances.
    """
    wanted = {name: names for name, names in (only or {}).items() if names}
    found = split or public_split()
    require("task family", wanted.get("families", ()), families())
    require("length band", wanted.get("bands", ()), tuple(LIMITS))
    require("topology", wanted.get("topologies", ()), NAMES)
    require("condition", wanted.get("conditions", ()), _conditions(wanted.get("families", ())))
    if not 1 <= instances <= len(found.seeds):
        what = f"{instances} instances; the {found.name} split has {len(found.seeds)} seeds"
        raise StrettoError(what, "bench", "take fewer instances, and at least one")
    cells = tuple(cell for cell in _cells(wanted) if _fits(cell, wanted))
    if not cells:
        hint = f"drop one of the limits; faults are planted in the band {FAULTY} only"
        raise StrettoError("no cell is left of the exam", "bench", hint)
    return Suite(cells, found, instances)


def require_cell(cell: Cell) -> None:
    """Raise `StrettoError` for a cell that no exam has."""
    require("task family", [cell.family], families())
    require("length band", [cell.band], tuple(LIMITS))
    require("topology", [cell.topology], topologies_of(cell.family))
    require("condition", [cell.condition], _conditions([cell.family]))


def _conditions(names: Sequence[str]) -> tuple[str, ...]:
    """Every condition that some of these families has, or any where none is named."""
    faults = {fault for family in names or families() for fault in faults_of(family)}
    return CLEAN, *sorted(faults)


def _cells(wanted: dict[str, Sequence[str]]) -> Iterator[Cell]:
    for family in wanted.get("families") or families():
        for band in bands_of(family):
            for topology in topologies_of(family):
                yield Cell(family, band, topology)
                if band == FAULTY:
                    for fault in faults_of(family):
                        yield Cell(family, band, topology, fault)


def _fits(cell: Cell, wanted: dict[str, Sequence[str]]) -> bool:
    places = {
        "bands": cell.band,
        "topologies": cell.topology,
        "conditions": cell.condition,
    }
    return all(not wanted.get(name) or value in wanted[name] for name, value in places.items())


def to_json(suite: Suite) -> dict[str, Any]:
    """What names a suite: its cells, its seeds by digest, and the versions."""
    return {
        "cells": [cell.name for cell in suite.cells],
        "split": suite.split.name,
        "instances": suite.instances,
        "versions": msgspec.to_builtins(versions(suite.split)),
    }
