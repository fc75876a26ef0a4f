"""Blame on real failures: Who&When as a task for methods that say who erred, and at which step.

184 failed runs of AG2 and Magentic-One teams, each labelled with the agent and the step whose
correction would have turned it (Zhang et al., arXiv 2505.00212). A guess counts if it is *equal* to
the label. The evaluation that came with the set asks whether one text contains the other, so that
step 1 is right where 12 is; published step figures are therefore too high by an unknown amount.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stretto.bench.gain import Interval, mean_interval
from stretto.errors import StrettoError, did_you_mean
from stretto.files import read_bytes
from stretto.importers.who_and_when import step_of

HUMAN = "human"
_ERROR = re.compile(r"traceback|exception|error|failed|exitcode: [1-9]|not found", re.IGNORECASE)


class Published(Struct, frozen=True):
    """A figure that others report."""

    what: str
    agent: float
    step: float
    source: str


PUBLISHED = (
    Published(
        "best method of the paper, each column's own",
        0.535,
        0.142,
        "abstract of arXiv 2505.00212; matched by substring",
    ),
)


class Case(Struct, frozen=True):
    """One failed run."""

    name: str
    subset: str
    speakers: tuple[str, ...]
    """Who spoke at every step; `human` for the person."""
    texts: tuple[str, ...]
    agent: str
    """The agent that is labelled."""
    step: int
    """The step that is labelled, from 0."""


class Guess(Struct, frozen=True):
    """Who erred, and when."""

    agent: str
    step: int


class Score(Struct, frozen=True):
    """How often a method was right."""

    method: str
    subset: str
    cases: int
    agent: Interval
    step: Interval


Method = Callable[[Case], Sequence[Guess]]
"""The guesses of a method, all alike; more than one stand for a draw among them."""


def _all(case: Case) -> list[Guess]:
    """Every step of an agent, all alike."""
    return [Guess(who, step) for step, who in enumerate(case.speakers) if who != HUMAN]


def _first(case: Case) -> list[Guess]:
    """The first step of an agent."""
    return _all(case)[:1]


def _last(case: Case) -> list[Guess]:
    """The last step of an agent."""
    return _all(case)[-1:]


def _busiest(case: Case) -> list[Guess]:
    """The first step of the agent that spoke most often; of several, of who spoke first."""
    guesses = _all(case)
    counts = Counter(guess.agent for guess in guesses)
    return sorted(guesses, key=lambda guess: -counts[guess.agent])[:1]


def _first_error(case: Case) -> list[Guess]:
    """The step before the first text that tells of an error; the last step where none does."""
    steps = _all(case)
    for place, guess in enumerate(steps):
        if _ERROR.search(case.texts[guess.step]):
            return [steps[max(0, place - 1)]]
    return steps[-1:]


def _repeat(case: Case) -> list[Guess]:
    """The first step that says again what its agent said before; the last step where none does."""
    said: set[tuple[str, str]] = set()
    for guess in _all(case):
        key = guess.agent, case.texts[guess.step].strip()
        if key in said:
            return [guess]
        said.add(key)
    return _last(case)


METHODS: Mapping[str, Method] = {
    "random": _all,
    "first": _first,
    "last": _last,
    "busiest": _busiest,
    "first-error": _first_error,
    "repeat": _repeat,
}
"""Methods that need neither a model nor a replay."""


def method(name: str) -> Method:
    """A method by its name."""
    if name not in METHODS:
        raise StrettoError(f'no method "{name}"', "--method", did_you_mean(name, METHODS))
    return METHODS[name]


def evaluate(cases: Sequence[Case], name: str, guess: Method) -> list[Score]:
    """Agent and step accuracy of a method by exact match, on every subset."""
    if not cases:
        raise StrettoError("there are no labelled runs", "blame")
    subsets = sorted({case.subset for case in cases})
    return [
        _score(name, subset, [(case, guess(case)) for case in cases if case.subset == subset])
        for subset in subsets
    ]


def _score(name: str, subset: str, pairs: Sequence[tuple[Case, Sequence[Guess]]]) -> Score:
    agent = [_share(guesses, lambda g, case=case: g.agent == case.agent) for case, guesses in pairs]
    step = [_share(guesses, lambda g, case=case: g.step == case.step) for case, guesses in pairs]
    return Score(name, subset, len(pairs), mean_interval(agent), mean_interval(step))


def _share(guesses: Sequence[Guess], right: Callable[[Guess], bool]) -> float:
    return sum(map(right, guesses)) / len(guesses) if guesses else 0.0


def read_cases(path: Path) -> list[Case]:
    """The labelled runs of a folder, or of one file.

    A run whose labelled step is beyond its history is kept: no guess of its step can be right.

    Raises `StrettoError` where there are none, or for a file that is no labelled run.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        raise StrettoError("holds no JSON file", str(path), "point at a copy of Who&When")
    return [_read(file) for file in files]


def _read(file: Path) -> Case:
    try:
        document = msgspec.json.decode(read_bytes(file))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StrettoError(f"not JSON: {error}", str(file)) from None
    fields: dict[str, Any] = document if isinstance(document, dict) else {}
    history, agent, step = (
        fields.get("history"),
        fields.get("mistake_agent"),
        step_of(fields.get("mistake_step")),
    )
    if not isinstance(history, list) or not isinstance(agent, str) or step is None:
        hint = "it needs history, mistake_agent and mistake_step"
        raise StrettoError("not a labelled run of Who&When", str(file), hint)
    speakers = tuple(_speaker(said) for said in history)
    if set(speakers) <= {HUMAN}:
        raise StrettoError("no agent speaks in this run", str(file), "nobody could be blamed")
    named = any(isinstance(said, dict) and said.get("name") for said in history)
    return Case(
        file.stem,
        "algorithm-generated" if named else "hand-crafted",
        speakers,
        tuple(str(said.get("content", "")) if isinstance(said, dict) else "" for said in history),
        agent,
        step,
    )


def _speaker(said: Any) -> str:
    """`Orchestrator (thought)` speaks as `Orchestrator`."""
    fields: dict[str, Any] = said if isinstance(said, dict) else {}
    return str(fields.get("name") or fields.get("role") or "").partition(" (")[0]
