"""What the agents of `repair` know, what they see, and how events change it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stretto.tasks.repair.instance import REMARK, Instance
from stretto.tasks.repair.sandbox import Ran
from stretto.tasks.topology import CRITIC
from stretto.tasks.words import number_word
from stretto.team.protocols import Choice
from stretto.team.state import ROOT, AgentState
from stretto.trace import Event

MOST_READY = 6
"""Most modules that the lead is offered at once."""
MOST_SENT = 2
"""How often a module is given out, where it is reported to fail still."""
MOST_ERRORS = 2
"""After so many runs that did not end, an agent cannot try again."""


@dataclass(slots=True)
class Mind:
    """What one agent knows: only what its own events told it."""

    module: str = ""
    """The module that it works on."""
    read: bool = False
    says: str = ""
    code: str = ""
    """The module's expression as it read or wrote it last."""
    patches: tuple[str, ...] = ()
    version: int = 0
    """How often the module had been patched when it was read."""
    passes: bool | None = None
    """What the last run of its tests said; `None` after a patch, or before a run."""
    errors: int = 0
    """Runs of its tests that did not end."""
    refused: str = ""
    """Why the last patch was not merged."""
    tried: set[str] = field(default_factory=set[str])
    board: dict[str, bool] = field(default_factory=dict[str, bool])
    """Module to whether its tests pass, as far as the lead knows."""
    ahead: dict[str, int] = field(default_factory=dict[str, int])
    """Module to the seconds of tests of the longest chain of failing modules above it."""
    seconds: dict[str, int] = field(default_factory=dict[str, int])
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    away: set[str] = field(default_factory=set[str])
    """Modules that were given out, and are not known to fail still."""
    out: set[str] = field(default_factory=set[str])
    """Modules that somebody works on."""
    sent: dict[str, int] = field(default_factory=dict[str, int])
    """How often each module was given out."""
    stale: bool = False
    """Whether somebody came back since the lead looked at the results."""
    waits: bool = False
    done: bool = False


@dataclass(slots=True)
class World:
    """One episode."""

    instance: Instance
    sources: dict[str, str]
    """The package: module to expression."""
    minds: dict[str, Mind]
    """What each agent knows, by its path."""
    versions: dict[str, int] = field(default_factory=dict[str, int])
    """How often each module was patched."""
    edits: dict[str, str] = field(default_factory=dict[str, str])
    """Module to the event of its last patch."""
    patched: dict[str, float] = field(default_factory=dict[str, float])
    """Module to the time of its last patch."""
    ran: dict[str, Ran] = field(default_factory=dict[str, Ran])
    """What came of the visible tests of each module that no patch has reached since."""
    submitted: bool = False


def lead_choice(mind: Mind, agent: AgentState, workers: int, looks: bool) -> Choice | None:
    """Whom to send where; `None` while the lead can only wait."""
    if not mind.board:
        return Choice("The package does not pass its tests.", ("list", "submit"), ("act", "stop"))
    out = agent.open_children
    ready, again = ready_modules(mind)
    look = looks and mind.stale
    if out and (mind.waits or out >= workers or not (ready or look)):
        return None
    options = [("act", "list")] if look else []
    options += [("spawn", f"send {name}") for name in (*ready, *again)]
    if out:
        options.append(("act", "wait"))
    else:
        options += [("act", f"work {name}") for name in ready]
        options.append(("stop", "submit"))
    types, candidates = zip(*options, strict=True)
    lines = [
        f"Ready: {name}, {number_word(mind.seconds[name])}, then {_many(mind.ahead[name])}."
        for name in ready
    ]
    lines += [f"Sent: {name}." for name in again]
    failing = sum(not passes for passes in mind.board.values())
    lines += [f"Failing: {number_word(failing)}.", f"Out: {number_word(out)}."]
    return Choice("\n".join(lines), candidates, types)


def ready_modules(mind: Mind) -> tuple[list[str], list[str]]:
    """Modules that fail and may be patched, as far as the lead knows: new ones, and ones given out.

    Two who work on one module get into each other's way; but who never reports may have failed.
    """
    ready: list[str] = []
    again: list[str] = []
    for name, passes in mind.board.items():
        blocked = passes or not all(mind.board[each] for each in mind.imports[name])
        if not blocked and mind.sent.get(name, 0) < MOST_SENT:
            (again if name in mind.away else ready).append(name)
    return ready[:MOST_READY], again[: MOST_READY - len(ready[:MOST_READY])]


def work_choice(mind: Mind, agent: AgentState) -> Choice:
    """What to do to one module."""
    options: list[tuple[str, str]] = []
    if not mind.read:
        options.append(("act", "read"))
    else:
        code = mind.code.removesuffix(REMARK)
        open_patches = (p for p in mind.patches if p != code and p not in mind.tried)
        options += [("act", f"edit {patch}") for patch in open_patches]
        if mind.passes is None and mind.errors < MOST_ERRORS:
            options.append(("act", "test"))
    if agent.id == ROOT:
        options.append(("aggregate", "finish"))
    else:
        if mind.passes is not None:
            options.append(("communicate", "report"))
        options.append(("communicate", "leave"))
    types, candidates = zip(*options, strict=True)
    lines = [f"Module: {mind.module}."]
    if mind.read:
        lines += [f"Says: {mind.says}.", f"Code: {mind.code}."]
    if mind.refused:
        lines.append(f"Refused: {mind.refused}.")
    lines.append(f"Tests: {_STATES[mind.passes]}.")
    return Choice("\n".join(lines), candidates, types)


def middle_choice(mind: Mind, agent: AgentState) -> Choice | None:
    """What a critic or a sub-lead makes of its worker's report; `None` while the worker is out."""
    if agent.open_children:
        return None
    critic = agent.role == CRITIC
    words = ("pass", "drop") if critic else ("report", "leave")
    options = [("communicate", word) for word in words]
    if critic and not mind.read:
        options = [("act", "test"), *options]
    types, candidates = zip(*options, strict=True)
    return Choice(f"Module: {mind.module}.\nTests: {_STATES[mind.passes]}.", candidates, types)


def report_text(mind: Mind) -> str:
    """What is said of a module."""
    return f"{mind.module}: {_STATES[mind.passes]}."


def learn(world: World, event: Event) -> None:
    """Fold an event into the package and into what its agents know."""
    if event.kind in _LEARN:
        _LEARN[event.kind](world, event)


def _decided(world: World, event: Event) -> None:
    if event.decision is not None:
        world.minds[event.agent].waits = event.decision.choice == "wait"


def _spawned(world: World, event: Event) -> None:
    module = event.attrs["module"]
    world.minds[event.to or ""] = Mind(module=module)
    if event.agent == ROOT:
        _give_out(world.minds[ROOT], module)
        world.minds[ROOT].out.add(module)


def _give_out(mind: Mind, module: str) -> None:
    mind.away.add(module)
    mind.sent[module] = mind.sent.get(module, 0) + 1


def _returned(world: World, event: Event) -> None:
    world.minds[event.agent].done = True
    parent = world.minds[event.to or ROOT]
    module, passes = event.attrs["module"], event.attrs["passes"]
    if event.to == ROOT:
        parent.stale, parent.waits = True, False
        parent.out.discard(module)
        _note(parent, module, passes)
    else:
        parent.passes = passes


def _note(mind: Mind, module: str, passes: bool | None) -> None:
    """What the lead makes of a report: a module that fails still may be given out again."""
    if passes is not None:
        mind.board[module] = passes
    if passes is False:
        mind.away.discard(module)


def _finished(world: World, event: Event) -> None:
    """The lead puts away the module that it worked on itself."""
    mind = world.minds[event.agent]
    if "module" in event.attrs:
        _note(mind, event.attrs["module"], event.attrs["passes"])
        mind.module, mind.read, mind.passes, mind.refused = "", False, None, ""
        mind.tried.clear()


def _called(world: World, event: Event) -> None:
    """Whoever comes back while the lead looks is not in what it sees."""
    if event.tool == "list":
        world.minds[event.agent].stale = False


def _resulted(world: World, event: Event) -> None:
    _TOOLS[event.tool or ""](world, world.minds[event.agent], event)


def _listed(world: World, mind: Mind, event: Event) -> None:
    mind.board = dict(event.attrs["board"])
    mind.away = {name for name in mind.away if mind.board[name] or name in mind.out}
    modules = world.instance.modules
    mind.seconds = {name: module.seconds for name, module in modules.items()}
    mind.imports = {name: module.imports for name, module in modules.items()}
    mind.ahead = _ahead(mind)


def _ahead(mind: Mind) -> dict[str, int]:
    """Seconds of the longest chain of failing modules that wait for each one."""
    found = dict.fromkeys(mind.board, 0)
    for name in reversed(mind.board):
        own = found[name] + (0 if mind.board[name] else mind.seconds[name])
        for below in mind.imports[name]:
            found[below] = max(found[below], own)
    return found


def _read(world: World, mind: Mind, event: Event) -> None:
    attrs = event.attrs
    if event.agent == ROOT and not mind.module:
        _give_out(mind, attrs["module"])
    mind.module, mind.read, mind.refused, mind.errors = attrs["module"], True, "", 0
    mind.says, mind.code, mind.version = attrs["says"], attrs["code"], attrs["version"]
    mind.patches, mind.passes = tuple(attrs["patches"]), None


def _edited(world: World, mind: Mind, event: Event) -> None:
    attrs = event.attrs
    module: str = attrs["module"]
    mind.refused = attrs["refused"]
    if mind.refused:
        mind.read = mind.refused != "conflict"
        return
    write(world, module, attrs["written"] + attrs.get("remark", ""))
    world.versions[module] = mind.version = world.versions.get(module, 0) + 1
    world.edits[module] = event.id
    world.patched[module] = event.start or 0.0
    mind.code, mind.passes = attrs["patch"] + attrs.get("remark", ""), None
    mind.tried.add(attrs["patch"])


def write(world: World, module: str, code: str) -> None:
    """Change a module; what its tests, and those of what depends on it, said is no longer known."""
    world.sources[module] = code
    for name in world.instance.above[module]:
        world.ran.pop(name, None)


def overtaken(world: World, since: float) -> set[str]:
    """Modules that a patch has reached since then: tests begun before say nothing of them."""
    late = (name for name, time in world.patched.items() if time > since)
    return {above for name in late for above in world.instance.above[name]}


def _tested(world: World, mind: Mind, event: Event) -> None:
    mind.passes = event.attrs["passes"]
    mind.errors += event.attrs["passes"] is None
    mind.read = True  # a critic tests once


def _stopped(world: World, event: Event) -> None:
    world.submitted = world.minds[event.agent].done = True


_LEARN: Mapping[str, Callable[[World, Event], None]] = {
    "decision": _decided,
    "spawn": _spawned,
    "return": _returned,
    "aggregate": _finished,
    "tool_call": _called,
    "tool_result": _resulted,
    "stop": _stopped,
}
_TOOLS: Mapping[str, Callable[[World, Mind, Event], None]] = {
    "list": _listed,
    "read": _read,
    "edit": _edited,
    "run_tests": _tested,
}
_STATES = {True: "pass", False: "fail", None: "not run"}


def _many(seconds: int) -> str:
    return number_word(min(seconds, 999))
