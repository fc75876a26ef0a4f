"""What it costs to measure a trace: seconds of all of `stretto.measure`, on one core.

    python benchmarks/measure.py [--events 10000 100000 1000000] [--longer 1] [--json]

The trace is a lead with one worker per hundred events. Every worker thinks, calls a tool, reads its
answer, and writes to the lead or to a neighbour; some calls and messages repeat, some nearly. The
trace is written and read once in memory, so that its texts are as fresh as those of a file.
`columns` is the time to lay the events out in numpy columns, which every later use shares;
`measures` is all of `measure` after that. Times are processor seconds of this one thread, so that
others on the machine count little; the least of its repeats is shown. The last line is seconds an
event at the largest size over those at the one before; 1 is linear.

Texts of calls and messages are looked at word by word, so that their length counts, too; `--longer
8` makes them eight times as long. On one idle processor 987,939 events took 2.8 s with 48 MB of
texts, and 4.0 s with 376 MB.
"""

import argparse
import json
import os
from dataclasses import asdict, dataclass
from random import Random
from time import process_time

import msgspec

from stretto.metrics import measure
from stretto.trace import Agent, Decision, Edge, Event, Tokens, Trace, content_hash

SIZES = (10_000, 100_000, 1_000_000)
REPEATS = 5
STEPS = 24
"""Turns of a worker; each is a turn, a call, its result, and for every third a message."""
WORDS = [f"word{number}" for number in range(5000)]


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    events: int
    edges: int
    text_mb: float
    columns: float
    measures: float
    total: float


class Maker:
    """Collects the events of a made-up team."""

    def __init__(self, longer: int) -> None:
        self.longer = longer
        self.events: list[Event] = []
        self.edges: list[Edge] = []
        self.texts: dict[str, str] = {}
        self.counters: dict[str, int] = {}
        self.random = Random(7)

    def add(self, agent: str, kind: str, start: float, cause: str | None, **fields: object) -> str:
        number = self.counters.get(agent, 0)
        self.counters[agent] = number + 1
        event = Event(id=f"{agent}#{number}", kind=kind, agent=agent, start=start, **fields)
        self.events.append(event)
        if cause is not None:
            self.edges.append(Edge(cause, event.id))
        return event.id

    def text(self, words: int) -> str:
        """A new text, one in five times an old one with a changed end."""
        said = " ".join(self.random.choices(WORDS, k=words * self.longer))
        if self.texts and self.random.random() < 0.2:
            said = self.last + f" {self.random.choice(WORDS)}"
        else:
            self.last = said
        self.texts[name := content_hash(said)] = said
        return name


def team(events: int, longer: int = 1) -> Trace:
    """A lead and its workers, of about so many events."""
    maker = Maker(longer)
    workers = max(1, events // (STEPS * 10 // 3 + 3))
    lead = maker.add("0", "decision", 0.0, None, duration=2.0, tokens=Tokens(input=900, output=90))
    lanes = [worker(maker, lead, f"0/{number}", workers) for number in range(workers)]
    for _ in range(STEPS):
        for lane in lanes:
            next(lane)
    returns = [next(lane) for lane in lanes]
    end = maker.add("0", "decision", 200.0, None, duration=3.0, tokens=Tokens(input=9, output=9))
    maker.edges += [Edge(each, end, "return") for each in returns]
    maker.add("0", "stop", 203.0, end)
    agents = (Agent(id="0", role="lead", model="claude-sonnet-4-5"), *crew(workers))
    return Trace(
        id="made",
        agents=agents,
        events=tuple(maker.events),
        edges=tuple(maker.edges),
        contents=maker.texts,
    )


def crew(workers: int) -> list[Agent]:
    model = "claude-haiku-4-5"
    return [Agent(id=f"0/{n}", role="worker", parent="0", model=model) for n in range(workers)]


def worker(maker: Maker, lead: str, agent: str, workers: int):
    """One event after another of a worker; the last is the id of its return."""
    before = maker.add("0", "spawn", 2.0, lead, to=agent, duration=0.0)
    clock = 2.0
    for step in range(STEPS):
        think, work = 1 + maker.random.random(), 5 * maker.random.random()
        tokens = Tokens(input=40, output=60, cache_read=500 * step)
        turn = maker.add(
            agent, "decision", clock, before, duration=think, tokens=tokens, decision=Decision()
        )
        clock += think
        call = maker.add(
            agent, "tool_call", clock, turn, duration=work, tool="grep", content=maker.text(8)
        )
        clock += work
        before = maker.add(
            agent, "tool_result", clock, call, tool="grep", content=maker.text(3), trusted=step > 0
        )
        if step % 3 == 2:
            to = f"0/{maker.random.randrange(workers)}"
            maker.add(agent, "message", clock, before, to=to, duration=0.1, content=maker.text(20))
        yield ""
    yield maker.add(agent, "return", clock, before, to="0", content=maker.text(20))


def time_of(made: Trace) -> Figure:
    """The least over fresh copies, each as if it had just been read."""
    record = msgspec.json.encode(made)
    rows: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        trace = msgspec.json.decode(record, type=Trace)
        start = process_time()
        _ = trace.columns
        middle = process_time()
        measure(trace)
        rows.append((middle - start, process_time() - middle))
        del trace
    laid, measured = (min(column) for column in zip(*rows, strict=True))
    size = sum(map(len, made.contents.values())) / 1e6
    return Figure(len(made.events), len(made.edges), size, laid, measured, laid + measured)


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to measure a trace.")
    parser.add_argument("--events", type=int, nargs="+", default=SIZES)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--longer", type=int, default=1, help="how many times as long texts are")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    time_of(team(1000))  # warms up
    figures = [time_of(team(events, arguments.longer)) for events in arguments.events]
    if arguments.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
    else:
        show(figures)


def show(figures: list[Figure]) -> None:
    names = f"{'columns s':>10} {'measures s':>11} {'total s':>8}"
    print(f"{'events':>10} {'edges':>10} {'text MB':>8} {names}")
    for each in figures:
        times = f"{each.columns:10.3f} {each.measures:11.3f} {each.total:8.3f}"
        print(f"{each.events:10,} {each.edges:10,} {each.text_mb:8.1f} {times}")
    if len(figures) > 1:
        last, before = figures[-1], figures[-2]
        ratio = (last.total / last.events) / (before.total / before.events)
        print(f"seconds an event, last size over the one before: {ratio:.2f}")


if __name__ == "__main__":
    main()
