"""The exam: its cells, its bands, its split, and what must hold in every family."""

import json

import pytest
from msgspec.structs import replace

from stretto.bench.bands import LIMITS, band_of, bands_of, families, topologies_of
from stretto.bench.baselines import SCRIPTED
from stretto.bench.play import SLACK, sit
from stretto.bench.suite import FIRST, Cell, public_split, read_split, suite, versions
from stretto.bench.table import lines
from stretto.errors import StrettoError
from stretto.tasks.faults import faults_of
from stretto.tasks.topology import NAMES

SHORTEST = [Cell(f, next(iter(bands_of(f))), topologies_of(f)[0]) for f in families()]
SHORT = [
    Cell(family, band, topology)
    for family in families()
    for band in bands_of(family)
    if band in ("10", "100")
    for topology in dict.fromkeys((topologies_of(family)[0], topologies_of(family)[-1]))
]


def test_bands_by_the_number_of_events():
    assert [band_of(n) for n in (1, 31, 32, 316, 317, 3162, 3163, 10**6)] == [
        "10",
        "10",
        "100",
        "100",
        "1000",
        "1000",
        "more",
        "more",
    ]


@pytest.mark.parametrize("cell", SHORT, ids=lambda cell: cell.name)
def test_an_oracle_stays_in_its_band(cell):
    """In the first topology; in others it may take some more."""
    (row,) = sit(cell, FIRST, ["oracle"], replays=False)
    assert row.error is None
    events = int(row.values["events"])
    if cell.topology == topologies_of(cell.family)[0]:
        assert band_of(events) == cell.band
    assert events < SLACK * LIMITS[cell.band] / 2, "far from the limit"


@pytest.mark.parametrize("cell", SHORTEST, ids=lambda cell: cell.name)
def test_oracle_scores_1_and_chance_0(cell):
    """Of the cells that are cheap; families check the exact values themselves."""
    rows = [
        row
        for seed in public_split().seeds[:8]
        for row in sit(cell, seed, ["oracle", "random"], replays=False)
    ]
    found = {line.policy: line for line in lines(rows)}
    assert found["oracle"].norm.low == pytest.approx(1.0, abs=1e-9)
    assert found["random"].norm.high <= 0.05


def test_what_an_oracle_does_is_useful():
    """A rule of facts that misses a renamed tool would call all work useless."""
    for family in families():
        cell = Cell(family, "100", topologies_of(family)[0])
        (row,) = sit(cell, FIRST + 1, ["oracle"], replays=False)
        assert row.values["pseudo"] < 0.5, family


def test_cells_are_paired():
    found = suite()
    assert {cell.family for cell in found.cells} == set(families())
    assert {cell.topology for cell in found.cells if cell.family == "hops"} == set(NAMES)
    assert {c.condition for c in found.cells if (c.family, c.band) == ("hops", "100")} == {
        "clean",
        *faults_of("hops"),
    }
    assert all(c.condition == "clean" for c in found.cells if c.band != "100")
    assert found.seeds == public_split().seeds[:30]
    task, other = (Cell("hops", "10", name).task(FIRST) for name in NAMES[:2])
    assert replace(task, topology=other.topology) == other, "the instance is the same"


@pytest.mark.parametrize(
    ("only", "hint"),
    [
        ({"families": ["hopz"]}, "hops"),
        ({"bands": ["10000"]}, "1000"),
        ({"topologies": ["swam"]}, "swarm"),
        ({"conditions": ["sunny"]}, 'no condition "sunny"'),
    ],
)
def test_unknown_names_are_refused(only, hint):
    with pytest.raises(StrettoError, match=hint):
        suite(only=only)


def test_seeds_outside_the_split(tmp_path):
    with pytest.raises(StrettoError, match="seed 7 is outside the split"):
        suite().require_seed(7, "here")
    with pytest.raises(StrettoError, match="2000 instances"):
        suite(instances=2000)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([5, 6, 7]))
    own = suite(split=read_split(path), instances=2)
    assert own.seeds == (5, 6)
    assert versions(own.split).split != versions(public_split()).split
    for bad in ("[1, 1]", "[]", "{}", "[", f"[5, {FIRST}]"):
        path.write_text(bad)
        with pytest.raises(StrettoError):
            read_split(path)


def test_every_baseline_plays():
    rows = sit(Cell("hops", "10", "centralized"), FIRST, SCRIPTED, replays=True)
    assert {row.policy for row in rows} == set(SCRIPTED)
