"""What it costs to read and check a large file of the survey's schema.

    python benchmarks/load.py [--events 100000] [--checker FILE] [--schema FILE] [--json]

The trace is made up: 300 agents, each with a chain of events, and messages across. A figure is the
processor's time (user and system) in milliseconds, the median of repeats that the rows take in
turns. Ours makes a whole `Trace` and checks the types of all fields, doubled ids, references of
edges and agents, and loops.

| row | what is timed |
|---|---|
| load and loops | `stretto.load(path)` to a checked trace, which is then kept |
| load and loops, freed | the same, and to free it again, as the checkers do |
| from_survey | from bytes in memory |
| own fields | the same document with one more field in every event |
| own records | the same trace as Stretto's JSONL |
| survey's checker (stand-in) | what the `validate_trace.py` of the survey does, in our words |
| survey's checker | with `--checker FILE`: the `validate` of that very script |
| whole process | Python's start and all imports too |
| jsonschema | Draft 2020-12 on the survey's own `--schema`; neither ids nor references |

The survey's checker looks for required fields, known types of events and edges, doubled ids,
references and signs; neither at the types of fields nor for loops.

In process numpy is loaded, as it is after a first measure, and ids are compared by their hashes. A
fresh process does not import it for this, and looks the ids of its first such file up in a dict.

On two idle processors, with `--checker` and `--schema`, in four runs: 116 to 125 ms, the survey's
checker 257 to 274 (2.1 to 2.3 times as long), with both freed 134 to 141 (1.8 to 1.9 times), as
whole processes 248 to 273 against 324 to 350 (1.3), and jsonschema 7,200 to 7,500 (61).
"""

import argparse
import gc
import json
import random
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

import stretto
import stretto.columns  # numpy, which all that works on a trace loads
from stretto import store
from stretto.importers.survey.schema import from_survey
from stretto.trace import LABELS, Trace
from stretto.validate import find_loop

AGENTS = 300
REPEATS = 11
TYPES = ("orchestrator_decision", "message", "tool_call", "tool_result", "return", "aggregate")
KNOWN_TYPES = {*TYPES, "spawn", "despawn", "human_intervention", "safety_event"}


class Figure(Struct, frozen=True):
    """One row of the table."""

    name: str
    seconds: float


def main() -> None:
    """Time everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--checker", type=Path, help="the survey's validate_trace.py")
    parser.add_argument("--schema", type=Path, help="the survey's trace_schema.json")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        figures = measure(Path(folder), document(options.events), options.checker, options.schema)
    if options.json:
        print(json.dumps({each.name: each.seconds for each in figures}))
        return
    ours = figures[0].seconds
    print(f"{options.events} events; {'':34}{'ms':>9}{'ours = 1':>10}")
    for row in figures:
        print(f"{row.name:50}{row.seconds * 1e3:>9.0f}{row.seconds / ours:>10.2f}")


def measure(
    folder: Path, given: dict[str, Any], checker: Path | None, schema: Path | None
) -> list[Figure]:
    """All rows of the table, ours first."""
    path, records = folder / "survey.json", folder / "records.jsonl"
    path.write_text(json.dumps(given))
    own = {**given, "events": [{**event, "mood": 1} for event in given["events"]]}
    data, with_own = path.read_bytes(), json.dumps(own).encode()
    stretto.save(records, [from_survey(data, "survey.json")])
    lines = records.read_bytes()
    load = "import sys, stretto; from stretto.validate import find_loop as loop"
    load = f"{load}; sys.exit(loop(stretto.load({str(path)!r})))"
    rows: dict[str, Callable[[], Any]] = {
        "load and loops": lambda: checked(stretto.load(path)),
        "load and loops, freed": lambda: checked(stretto.load(path)).id,
        "from_survey and loops": lambda: checked(from_survey(data, "survey.json")),
        "own fields and loops": lambda: checked(from_survey(with_own, "own.json")),
        "own records and loops": lambda: checked(store.decode(lines, "records")[0]),
        "survey's checker (stand-in)": lambda: survey_checks(json.loads(path.read_text())),
        "json.loads alone": lambda: json.loads(path.read_text()),
        "load and loops, whole process": lambda: process("-c", load),
    }
    if checker is not None:
        validate = runpy.run_path(str(checker))["validate"]
        rows["survey's checker"] = lambda: silently(validate, path)
        rows["survey's checker, whole process"] = lambda: process(str(checker), str(path))
    figures = in_turns(rows, REPEATS)
    if schema is not None:
        import jsonschema

        validator = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
        slow = {"jsonschema": lambda: validator.validate(json.loads(data))}
        figures += in_turns(slow, 1)
    return figures


def in_turns(rows: dict[str, Callable[[], Any]], repeats: int) -> list[Figure]:
    """The median time of each row; what a row returns is freed outside of the clock."""
    spent: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(repeats):
        for name, work in rows.items():
            gc.collect()
            began = processor_time()
            kept = work()
            spent[name].append(processor_time() - began)
            del kept
    return [Figure(name, median(seconds)) for name, seconds in spent.items()]


def processor_time() -> float:
    """Seconds of this process and of those that it ran: other work on the machine counts less."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def checked(trace: Trace) -> Trace:
    """The trace, which must be free of loops."""
    if find_loop(trace) is not None:
        raise SystemExit("the made-up trace has a loop")
    return trace


def process(*arguments: str) -> None:
    """Run Python on these arguments in a process of its own."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def silently(validate: Callable[[Path], None], path: Path) -> None:
    """Call the survey's checker, which prints."""
    with redirect_stdout(StringIO()):
        validate(path)


def document(events: int) -> dict[str, Any]:
    """A made-up run of a swarm in the survey's schema."""
    draw = random.Random(0)
    edges: list[dict[str, str]] = []
    for row in range(1, events):
        before = row - AGENTS if row >= AGENTS else 0
        edges.append({"src": f"e{before}", "dst": f"e{row}", "type": "causal"})
        if draw.random() < 0.4:
            edges.append({"src": f"e{draw.randrange(row)}", "dst": f"e{row}", "type": "message"})
    return {
        "trace_id": "made-up",
        "task_id": "none",
        "system": "benchmark",
        "topology": "swarm",
        "events": [event(row, draw) for row in range(events)],
        "edges": edges,
        "rewards": {"team": 1.0},
        "costs": {"tokens": 5, "wall_clock_s": 2},
    }


def event(row: int, draw: random.Random) -> dict[str, Any]:
    """One event with the fields that its type has."""
    kind = draw.choice(TYPES)
    agent = f"agent_{row % AGENTS}"
    role = "worker" if row % AGENTS else "lead"
    made: dict[str, Any] = {"id": f"e{row}", "t": row / 4, "type": kind, "agent": agent}
    made |= {"role": role, "content_ref": f"sha256:{draw.getrandbits(256):064x}"}
    if kind in ("message", "return"):
        made |= {"from": agent, "to": f"agent_{draw.randrange(AGENTS)}"}
    if kind.startswith("tool"):
        made |= {"tool": "search.web", "trusted": kind == "tool_call"}
    return made


def survey_checks(given: dict[str, Any]) -> None:
    """What the survey's checker checks, in its order and by its means."""
    require(given, {"trace_id", "task_id", "events", "edges", "rewards", "costs"})
    ids: set[str] = set()
    for each in given["events"]:
        require(each, {"id", "t", "type", "agent"})
        if each["type"] not in KNOWN_TYPES or each["id"] in ids or each["t"] < 0:
            raise SystemExit(f"a bad event: {each['id']}")
        ids.add(each["id"])
    for each in given["edges"]:
        require(each, {"src", "dst", "type"})
        if each["type"] not in LABELS or each["src"] not in ids or each["dst"] not in ids:
            raise SystemExit(f"a bad edge: {each}")
    if any(value < 0 for value in given["costs"].values()):
        raise SystemExit("a negative cost")


def require(record: dict[str, Any], names: set[str]) -> None:
    """Refuse a record without one of these fields."""
    if names - set(record):
        raise SystemExit(f"missing fields: {names - set(record)}")


if __name__ == "__main__":
    main()
