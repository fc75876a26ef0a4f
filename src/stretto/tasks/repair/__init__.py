"""RepoRepair (F3): repair a package of modules that import each other, several at once.

Tests of some modules fail (`repair.instance`). A module says in words what it should compute; a
patch is chosen from a menu. A patch is merged only while the tests of all that the module imports
pass, so repairs have an order, and modules that fail may be right themselves. The tests are run
for real, in a sandbox (`repair.sandbox`); what ran once is kept by its content, so that episodes
are fast, and the same every time. The lead sends a worker a module, at most `workers` at once, or
works itself; it knows a module is repaired by what is reported only. A hidden suite decides. So
the team learns O1 and O2 (whom to send where, long chains first), O3 (to report), O4 (to believe
only tests that were run) and O5 (when to submit).

Exact in `repair.oracle`: the smallest repair, what each failure needs, work, span and the best
schedule (P|prec|C_max), the value of every report, Shapley values, merge conflicts and blame.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from stretto.errors import StrettoError
from stretto.tasks.parameters import Seeded, require
from stretto.tasks.repair.instance import REMARK, Instance, generate, overfitted, package
from stretto.tasks.repair.sandbox import Ran, cached_batch, cached_tests
from stretto.tasks.repair.world import (
    Mind,
    World,
    lead_choice,
    learn,
    middle_choice,
    overtaken,
    report_text,
    work_choice,
)
from stretto.tasks.topology import CRITIC, LEAD, SUBLEAD, WORKER, copied_to, require_topology
from stretto.team.protocols import (
    Aggregate,
    Call,
    Choice,
    Despawn,
    Effect,
    Harness,
    Message,
    Prices,
    Return,
    Spawn,
    Stop,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event

READ_SECONDS = 1.0
"""Virtual seconds of reading a module."""
EDIT_SECONDS = 0.5
"""Virtual seconds of a patch."""
LIST_SECONDS = 0.5
"""Virtual seconds of looking at the results of all tests."""
MIDDLE = {"hierarchical": SUBLEAD, "planner_executor_critic": CRITIC}
"""Topology to the role that stands between the lead and each worker."""


class Repair(Seeded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One package, and the rules of repairing it."""

    layers: int = 4
    """Layers of the module graph, by turns one module and `wide` modules; at most 12, since calls
    multiply from layer to layer."""
    wide: int = 5
    """Modules of every second layer."""
    healthy: int = 2
    """Modules without a fault."""
    patches: int = 4
    """Patches on offer for each module; one is right."""
    workers: int = 3
    """Most workers that are out at once."""
    topology: str = "centralized"
    """One of `stretto.tasks.topology.NAMES`."""
    worker_cost: float = 0.002
    """Price of one spawned agent, in units of a repaired package."""
    second_cost: float = 0.002
    """Price of one virtual second, in units of a repaired package."""
    fault: Literal["edit", "remark"] | None = None
    """A planted fault: the right patch of one faulty module, drawn, is written so that it passes
    the visible suite, and not the hidden one. `remark` is its benign twin: the same patch is
    written with a harmless comment behind it, which its writer and later readers see."""
    seed: int = 0
    """Seed of the instance: names, modules, faults."""

    def __post_init__(self) -> None:
        """Refuse rules that make no package."""
        require_topology(self.topology)
        checks = {
            "layers": 1 <= self.layers <= 12,
            "wide": 1 <= self.wide <= 80,
            "healthy": 0 <= self.healthy < self.modules,
            "patches": 2 <= self.patches <= 5,
            "workers": 1 <= self.workers <= 99,
            "worker_cost": self.worker_cost >= 0,
            "second_cost": self.second_cost >= 0,
        }
        require(self, checks, _LIMITS)

    @property
    def modules(self) -> int:
        """Number of modules."""
        return self.layers // 2 * (1 + self.wide) + self.layers % 2

    @property
    def harness(self) -> Harness:
        """A lead, those whom it may send, and the tools over the package."""
        return _harness(self.topology)

    @property
    def prices(self) -> Prices:
        """Spawned agents and time."""
        return Prices(spawn=self.worker_cost, second=self.second_cost)

    def begin(self, seed: int) -> World:
        """The package as it is found. Nothing is left to chance."""
        instance = instance_of(self)
        return World(instance, dict(instance.found), {ROOT: Mind()})

    def apply(self, world: World, event: Event) -> None:
        """Change the package, and tell the agent that the event reached what it says."""
        learn(world, event)

    def choose(self, world: World, team: Team, agent: AgentState) -> Choice | None:
        """An agent decides after every step of its own, and not while it waits for others."""
        mind = world.minds[agent.id]
        if mind.done:
            return None
        if mind.module:
            if agent.role in MIDDLE.values():
                return middle_choice(mind, agent)
            return work_choice(mind, agent)
        return lead_choice(mind, agent, self.workers, self.topology == "harness")

    def act(self, world: World, team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Call a tool, send somebody, report, or submit."""
        verb, _, rest = choice.partition(" ")
        mind = world.minds[agent.id]
        match verb:
            case "list":
                return (Call("list"),)
            case "send":
                role = MIDDLE.get(self.topology, WORKER)
                return (Spawn(role, f"Repair {rest}.", {"module": rest}),)
            case "work":
                return (Call("read", {"module": rest}),)
            case "read":
                return (Call("read", {"module": mind.module}),)
            case "edit":
                facts = {"module": mind.module, "patch": rest, "base": mind.version}
                return (Call("edit", facts),)
            case "test":
                seconds = world.instance.modules[mind.module].seconds
                return (Call("run_tests", {"module": mind.module}, latency=float(seconds)),)
            case "wait":
                return ()
            case _:
                return self._end(team, agent, mind, verb)

    def react(self, world: World, team: Team, event: Event) -> Sequence[Effect]:
        """Who stands between sends a worker at once."""
        if event.kind == "spawn" and event.attrs["role"] in MIDDLE.values():
            module = event.attrs["module"]
            return (Spawn(WORKER, f"Repair {module}.", {"module": module}),)
        return ()

    def call(self, world: World, event: Event, key: int) -> ToolResult:
        """List, read, patch or test; no tool is random."""
        facts, causes = event.attrs, _causes(world, event)
        match event.tool:
            case "list":
                return _list(world, overtaken(world, event.start or 0.0), causes)
            case "read":
                return _read(world, facts["module"], causes)
            case "edit":
                return self._edit(world, facts, causes)
            case _:
                return _test(world, facts["module"], event.start or 0.0, causes)

    def scores(self, world: World) -> Mapping[str, float]:
        """Share of the modules failing at first that pass the hidden suite; absent if unsubmitted.

        `success` is 1 where all modules pass. `tests` is the share of hidden tests that pass.

        Raises `StrettoError` where the hidden suite could not be run: that is no score.
        """
        if not world.submitted:
            return {}
        ran = hidden(world.instance, world.sources)
        if ran.error:
            raise StrettoError(f"the hidden suite {ran.error}", self.id, "run the episode again")
        bad = {test.partition(".")[0].removeprefix("test_") for test in ran.failed}
        repaired = sum(name not in bad for name in world.instance.failing)
        return {
            "outcome": repaired / len(world.instance.failing),
            "success": float(not bad),
            "tests": len(ran.passed) / (len(ran.passed) + len(ran.failed)),
        }

    def _edit(self, world: World, facts: Mapping[str, Any], causes: tuple[str, ...]) -> ToolResult:
        """Merge a patch, unless an import fails or somebody else was faster."""
        name, patch = facts["module"], facts["patch"]
        module = world.instance.modules[name]
        why = ""
        if facts["base"] != world.versions.get(name, 0):
            why = "conflict"
        elif any(ran.error or ran.failed for ran in visible(world, module.imports).values()):
            why = "import"
        planted = name == world.instance.culprit and patch == module.right
        written = overfitted(patch) if planted and self.fault == "edit" else patch
        result = {"module": name, "patch": patch, "written": written, "refused": why}
        remark = REMARK if planted and self.fault == "remark" and not why else ""
        if remark:
            result["remark"] = remark
        return ToolResult(f"{_EDITED[why]}{remark}", result, causes=causes)

    def _end(self, team: Team, agent: AgentState, mind: Mind, verb: str) -> Sequence[Effect]:
        """Say what became of a module, say nothing, or submit the package."""
        if verb == "submit":
            merged = (Aggregate("Merged."),) if agent.returns else ()
            return (*merged, Stop("The package is submitted."))
        told = {"module": mind.module, "passes": mind.passes}
        if agent.id == ROOT:
            return (Aggregate(report_text(mind), told),)
        silent = verb in ("leave", "drop") or self.topology == "harness"
        if silent:
            return (Return("Done.", {"module": mind.module, "passes": None}), Despawn(agent.id))
        text = report_text(mind)
        copies = [Message(peer, text, told) for peer in self._peers(team, agent)]
        return (*copies, Return(text, told), Despawn(agent.id))

    def _peers(self, team: Team, agent: AgentState) -> list[str]:
        """Workers that are out and may read what this one reports."""
        parent, _, number = agent.id.rpartition("/")
        others = copied_to(self.topology, team.agents[parent].children, int(number))
        paths = (f"{parent}/{other}" for other in others)
        return [path for path in paths if path in team.agents and team.agents[path].alive]


@lru_cache(maxsize=64)
def instance_of(task: Repair) -> Instance:
    """The package of a task, made once for all of its episodes."""
    return generate(
        layers=task.layers,
        wide=task.wide,
        healthy=task.healthy,
        patches=task.patches,
        seed=task.seed,
    )


def visible(world: World, names: Collection[str]) -> dict[str, Ran]:
    """What the visible tests of modules say; those run again that a patch has reached since."""
    new = {name: _suite(world, name) for name in names if name not in world.ran}
    found = cached_batch(new)
    world.ran.update((name, ran) for name, ran in found.items() if not ran.error)
    return {name: found[name] if name in found else world.ran[name] for name in names}


def hidden(instance: Instance, sources: Mapping[str, str]) -> Ran:
    """Run the hidden tests of all modules."""
    files = {f"test_{name}.py": module.hidden for name, module in instance.modules.items()}
    return cached_tests({**files, **package(instance, sources)})


def _suite(world: World, name: str) -> dict[str, str]:
    """A module, all that it depends on, and its visible tests."""
    files = package(world.instance, world.sources, world.instance.closures[name])
    return {**files, f"test_{name}.py": world.instance.modules[name].visible}


def _list(world: World, late: Collection[str], causes: tuple[str, ...]) -> ToolResult:
    """Which modules pass; those whose tests do not end, or that are late, are told apart."""
    runs = visible(world, world.instance.modules)
    errors = [name for name, ran in runs.items() if ran.error or name in late]
    failing = [name for name, ran in runs.items() if ran.failed and name not in errors]
    board = {name: not (ran.failed or name in errors) for name, ran in runs.items()}
    text = f"Failing: {', '.join(failing) or 'none'}. Not run: {', '.join(errors) or 'none'}."
    return ToolResult(text, {"board": board, "errors": errors}, causes=causes)


def _test(world: World, name: str, since: float, causes: tuple[str, ...]) -> ToolResult:
    """Whether a module passes; not known if a patch has reached it since the tests began."""
    ran = visible(world, [name])[name]
    error = "overtaken by a patch" if name in overtaken(world, since) else ran.error
    passes = None if error else not ran.failed
    found = {"module": name, "passes": passes, "failed": len(ran.failed), "error": error}
    return ToolResult(_TESTED[passes], found, causes=causes)


def _read(world: World, name: str, causes: tuple[str, ...]) -> ToolResult:
    module = world.instance.modules[name]
    code = world.sources[name]
    facts = {
        "module": name,
        "says": module.says,
        "code": code,
        "patches": list(module.patches),
        "version": world.versions.get(name, 0),
    }
    return ToolResult(f"{name} says: {module.says}. Its code: {code}.", facts, causes=causes)


def _causes(world: World, event: Event) -> tuple[str, ...]:
    """The patches of others that an answer reflects."""
    name = event.attrs.get("module")
    names = world.instance.closures[name] if name else world.instance.modules
    edits = (world.edits[each] for each in names if each in world.edits)
    return tuple(edit for edit in edits if edit.partition("#")[0] != event.agent)


_TESTED = {True: "All pass.", False: "Some fail.", None: "The tests did not end."}
_EDITED = {
    "": "Written.",
    "import": "Refused: what it imports fails.",
    "conflict": "Refused: somebody changed it, read it again.",
}
_LIMITS = (
    "layers 1 to 12, wide 1 to 80, healthy less than all modules, patches 2 to 5, workers 1 to 99, "
    "costs at least 0"
)


@lru_cache(maxsize=8)
def _harness(topology: str) -> Harness:
    roles = {LEAD: "sends workers to modules or repairs them itself, and submits the package"}
    if topology in MIDDLE:
        roles[MIDDLE[topology]] = "checks what a worker did, and passes it on to the lead"
    roles[WORKER] = "repairs one module and reports"
    return Harness(
        system="You repair a package. A module is right if its code does what it says.",
        root=LEAD,
        roles=roles,
        tools={
            "list": ToolSpec(latency=LIST_SECONDS),
            "read": ToolSpec(latency=READ_SECONDS, trusted=False),
            "edit": ToolSpec(latency=EDIT_SECONDS),
            "run_tests": ToolSpec(latency=1.0),
        },
        topology=topology,
    )
