"""The tables of exact values name functions that exist, and that take what the tables say."""

from inspect import signature

import pytest

from stretto.rewards.derived import of_agents, of_team
from stretto.tasks import FAMILIES, exact
from stretto.tasks.exact import exact_function
from stretto.tasks.gather import READ_SECONDS, Gather
from stretto.tasks.gather.reading import least_reading, serial_reading
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout

TABLES = {
    "SERIAL": ("task",),
    "SERIAL_BOUND": ("task",),
    "PARALLEL": ("task", "agents"),
    "MESSAGES": ("task", "trace"),
    "SHAPLEY": ("task", "trace"),
    "MARGINAL": ("task", "trace"),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_entry_is_a_function_of_what_its_table_says(name):
    table = getattr(exact, name)
    for family in table:
        assert family in FAMILIES
        (first, *others) = signature(exact_function(table, family)).parameters
        assert first in ("task", "game")
        assert tuple(others) == TABLES[name][1:]


def test_a_family_without_an_entry_has_no_function():
    assert exact_function(exact.SERIAL, "chain") is None
    assert exact_function(exact.SERIAL, "") is None


def test_four_documents_of_a_cell_each_are_four_readings():
    """Two agents read two each, side by side."""
    task = Gather(entities=2, attributes=2, cells_per_document=1)
    assert serial_reading(task) == least_reading(task, 0) == 4 * READ_SECONDS
    assert least_reading(task, 2) == 2 * READ_SECONDS
    assert least_reading(task, 9) == READ_SECONDS
    (trace,) = rollout(task, scripts_of(task)["oracle"], [0])
    assert of_team(trace, "serial_seconds") == 4 * READ_SECONDS
    assert sum(of_agents(trace, "marginal").values()) == pytest.approx(1.0)
