"""What an event costs: Stretto's engine beside the bare loops of LangGraph and AutoGen.

    python benchmarks/engine.py [--json]

Everything runs in one process, pinned to one core where the system allows it. A figure is the
median of its repeats. The comparison needs `pip install langgraph autogen-core`.

| row | what is timed |
|---|---|
| 300 agents | a whole rollout of `gather`, with its instance and its index made anew |
| 1k, 10k, 100k events | the same work per worker, ever more workers |
| own | what remains of it without the task's functions and the policy: an upper bound, since the
  clock around them is counted too |
| LangGraph | one node that loops through a conditional edge, a step |
| AutoGen | messages to two agents in turn, each awaited, which is its cheapest exchange |
"""

import argparse
import asyncio
import gc
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import perf_counter
from typing import Any

from stretto.tasks.gather import Gather
from stretto.tasks.gather.scripts import team
from stretto.team.engine import rollout
from stretto.team.protocols import Policy, Task

SIZES = {
    "300 agents": (299, 299),
    "1k events": (38, 2),
    "10k events": (380, 20),
    "100k events": (3800, 200),
}
"""Entities and workers."""
REPEATS = 7
STEPS = 10_000
"""Steps of a LangGraph loop and messages of an AutoGen exchange."""


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    agents: int | None
    events: int
    seconds: float
    microseconds: float
    """Per event, step or message."""
    own: float | None = None
    """The same without task and policy."""


def main() -> None:
    parser = argparse.ArgumentParser(description="What an event costs.")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    core = pin()
    figures, missing = measure()
    if as_json:
        rows = [asdict(figure) for figure in figures]
        print(json.dumps({"core": core, "figures": rows, "missing": missing}, indent=2))
    else:
        show(figures, missing, core)


def pin() -> int | None:
    """Stay on one core; `None` where the system has no such call."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def measure() -> tuple[list[Figure], list[str]]:
    """All figures, and what to install for those that are missing."""
    figures = gather_figures()
    missing: list[str] = []
    for package, loop in (("langgraph", langgraph_loop), ("autogen-core", autogen_exchange)):
        try:
            figures.append(loop(f"{package} {version(package)}"))
        except PackageNotFoundError:
            missing.append(f"{package} is not installed: pip install {package}")
    return figures, missing


def gather_figures() -> list[Figure]:
    """Roll out fresh instances, the sizes in turn, so that a busy moment hits all of them."""
    runs: dict[str, list[Figure]] = {}
    for seed in range(REPEATS + 1):
        for name, (entities, workers) in SIZES.items():
            runs.setdefault(name, []).append(gather_run(name, entities, workers, seed))
    return [middle(figures[1:]) for figures in runs.values()]  # the first round warms up


def gather_run(name: str, entities: int, workers: int, seed: int) -> Figure:
    """Roll out one fresh instance by the scripted team, then once more with a meter."""
    task = Gather(entities=entities, attributes=4, cells_per_document=4, workers=workers, seed=seed)
    trace, seconds = timed(lambda: rollout(task, team(), [0])[0])
    events = len(trace.events)
    own = own_seconds(task) / events * 1e6
    return Figure(name, len(trace.agents), events, seconds, seconds / events * 1e6, own)


def middle(figures: list[Figure]) -> Figure:
    """The median of every number."""
    columns = zip(*(asdict(figure).values() for figure in figures), strict=True)
    name, agents, events, *numbers = columns
    return Figure(name[0], agents[0], int(median(events)), *map(median, numbers))


def own_seconds(task: Task) -> float:
    """Seconds of a rollout outside the task's functions and the policy."""
    meter = Meter()
    methods = ("begin", "apply", "choose", "act", "react", "call", "scores")
    metered: Any = Metered(task, meter, methods)
    policies: Mapping[str, Any] = {
        role: Metered(policy, meter, ("decide",)) for role, policy in team().items()
    }
    _, seconds = timed(lambda: rollout(metered, policies, [0]))
    return seconds - meter.seconds


class Meter:
    """Adds up the seconds that some functions take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            start = perf_counter()
            result = function(*arguments)
            self.seconds += perf_counter() - start
            return result

        return run


class Metered:
    """A task or a policy whose methods are metered; the rest is as it was."""

    def __init__(self, target: Task | Policy, meter: Meter, methods: tuple[str, ...]) -> None:
        for name in dir(target):
            if not name.startswith("__"):
                value = getattr(target, name)
                setattr(self, name, meter.around(value) if name in methods else value)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, and the seconds that it takes."""
    gc.collect()
    start = perf_counter()
    result = work()
    return result, perf_counter() - start


def langgraph_loop(name: str) -> Figure:
    """Seconds a step of a graph with one node that calls itself."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(dict)
    graph.add_node("step", lambda left: {"left": left["left"] - 1})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda left: "step" if left["left"] else END)
    app = graph.compile()
    limit = {"recursion_limit": STEPS + 1}
    return repeated(name, lambda: app.invoke({"left": STEPS}, limit))


def autogen_exchange(name: str) -> Figure:
    """Seconds a message, with its answer, to one of two agents."""
    from autogen_core import (
        AgentId,
        MessageContext,
        RoutedAgent,
        SingleThreadedAgentRuntime,
        message_handler,
    )

    @dataclass
    class Ball:
        left: int

    class Player(RoutedAgent):
        @message_handler
        async def hit(self, message: Ball, ctx: MessageContext) -> Ball:
            return Ball(message.left - 1)

    async def play() -> None:
        runtime = SingleThreadedAgentRuntime()
        await Player.register(runtime, "player", lambda: Player("player"))
        runtime.start()
        ball, turn = Ball(STEPS), 0
        while ball.left:
            ball = await runtime.send_message(ball, AgentId("player", "even" if turn else "odd"))
            turn = 1 - turn
        await runtime.stop_when_idle()

    return repeated(name, lambda: asyncio.run(play()))


def repeated(name: str, work: Callable[[], Any]) -> Figure:
    """The median of three runs of `STEPS` steps, after a first one that warms up."""
    seconds = median([timed(work)[1] for _ in range(4)][1:])
    return Figure(name, None, STEPS, seconds, seconds / STEPS * 1e6)


def show(figures: list[Figure], missing: list[str], core: int | None) -> None:
    """Print the table."""
    print(f"{'':24}{'agents':>8}{'events':>9}{'seconds':>10}{'µs/event':>10}{'own µs':>9}")
    for row in figures:
        agents = "" if row.agents is None else row.agents
        own = "" if row.own is None else f"{row.own:.1f}"
        numbers = f"{row.events:>9}{row.seconds:>10.4f}{row.microseconds:>10.1f}{own:>9}"
        print(f"{row.name:24}{agents:>8}{numbers}")
    small, large = figures[1], figures[3]
    print(f"100k against 1k: {large.microseconds / small.microseconds:.2f} times a µs/event")
    print(*missing, sep="\n", end="\n" if missing else "")
    print("not pinned to a core" if core is None else f"on core {core}")


if __name__ == "__main__":
    main()
