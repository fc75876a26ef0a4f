"""How fast a table of `gather` can be filled: not faster than what it takes is read.

Searching and writing are left out, so a speed-up over it is told too small, never too large.
"""

from stretto.tasks.gather import READ_SECONDS, Gather, instance_of
from stretto.tasks.gather.oracle import optimal_reading


def least_reading(task: Gather, agents: int) -> float:
    """The least virtual seconds in which so many agents read what fills the table rightly."""
    return optimal_reading(instance_of(task), max(agents, 1), READ_SECONDS).seconds


def serial_reading(task: Gather) -> float:
    """The same of one agent alone: one document after another."""
    return least_reading(task, 1)
