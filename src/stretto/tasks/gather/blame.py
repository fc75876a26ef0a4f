"""Whose error was decisive in a faulty episode of `gather`."""

from stretto.tasks.faults import Blame
from stretto.tasks.gather import Gather, flaw_of
from stretto.trace import Event, Trace


def blame(task: Gather, trace: Trace) -> Blame | None:
    """Who read or wrote the planted error, and in which event; `None` where it did no harm.

    Exact: the flawed cell of the table is wrong as the fault says. Under `report` it was chosen
    rightly and written wrongly; under `read` its writer read the flawed statement before, which
    nobody but the reader in whose share the cell is ever gets to see.
    """
    flaw = flaw_of(task)
    told: dict[str, Event] = {}
    last: tuple[Event | None, Event | None] = (None, None)
    for event in trace.events:
        facts = event.attrs
        if event.kind != "tool_result":
            continue
        if event.tool == "read" and facts.get("doc") == flaw.document:
            if facts["statements"].get(flaw.cell) == flaw.value:
                told[event.agent] = event
        elif event.tool == "write_cell" and facts.get("cell") == flaw.cell:
            last = event, told.get(event.agent)
    write, read = last
    if task.fault is None or write is None or write.attrs["value"] != flaw.value:
        return None
    if task.fault == "report":
        return Blame(write.agent, write.id) if "meant" in write.attrs else None
    return Blame(read.agent, read.id) if read else None
