"""An exam: one agent asks, one answers, one marks; each of them can have its own aim.

The proposer sets an easy, a hard or a broken question. The solver works on it or bluffs. The grader
(called `judge` or `evaluator`) marks strictly, kindly, or only rambles: then no fault was found and
the answer stands. A strict mark follows what is right; a kind one likes a bluff better than work.
The true utility is what a right answer to that question is worth. This is where mixes that pay
roles apart (MAE, CoMAS) can be held against what they must lead to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from stretto.tasks.games.game import Game
from stretto.tasks.games.tree import Chance, Decide, End, HistoryRules, Node, State, moves_of
from stretto.tasks.parameters import require
from stretto.team.noise import uniform
from stretto.team.protocols import (
    Call,
    Choice,
    Effect,
    Harness,
    Return,
    Spawn,
    Stop,
    ToolResult,
    ToolSpec,
)
from stretto.team.state import ROOT, AgentState, Team
from stretto.trace import Event, Trace

QUESTIONS, ANSWERS, MARKS = (
    ("easy", "hard", "broken"),
    ("work", "bluff"),
    ("strict", "kind", "ramble"),
)
BROKEN, WORK, STRICT, RAMBLE = 2, 0, 0, 2
"""Places in the tuples above."""


class Exam(Game, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of one game."""

    grader: Literal["judge", "evaluator"] = "judge"
    """Role of the agent that marks: MAE's name for it, or that of CoMAS."""
    worth: tuple[float, float, float] = (0.4, 1.0, 0.0)
    """Utility of a right answer to an easy, a hard, a broken question."""
    solved: tuple[float, float, float] = (0.9, 0.6, 0.0)
    """Probability that work on such a question gives a right answer; a bluff is never right."""
    strict: tuple[float, float] = (0.1, 0.9)
    """Probability that a strict mark passes a wrong, a right answer."""
    kind: tuple[float, float] = (0.7, 0.95)
    """Probability that a kind mark passes work, a bluff."""

    def __post_init__(self) -> None:
        """Refuse rules that make no game."""
        chances = ("solved", "strict", "kind")
        checks = {name: all(0 <= p <= 1 for p in getattr(self, name)) for name in chances}
        require(self, checks, "probabilities 0 to 1")

    @property
    def harness(self) -> Harness:
        """A proposer, a solver, a grader, and the tools of the last two."""
        return harness_of(self.grader)

    def begin(self, seed: int) -> "World":
        """Nothing is asked yet."""
        return World()

    def apply(self, world: "World", event: Event) -> None:
        """Keep what was asked, answered and marked."""
        match event.kind, event.tool:
            case "decision", _ if event.decision is not None and event.agent == ROOT:
                world.question = world.question or event.decision.choice or ""
                world.asked += 1
            case "return", _ if event.attrs.get("answer"):
                world.answer = str(event.attrs["answer"])
                world.right = bool(event.attrs.get("right"))
            case "tool_result", "mark":
                world.passed = bool(event.attrs.get("passed"))
            case _:
                pass

    def choose(self, world: "World", team: Team, agent: AgentState) -> Choice | None:
        """The proposer asks, has it marked and closes; the others answer and mark."""
        if agent.id == ROOT:
            return None if agent.open_children else STEPS[min(world.asked, len(STEPS) - 1)]
        if agent.last_decision:
            return None
        return answer_at(world.question) if agent.role == "solver" else MARK

    def act(self, world: "World", team: Team, agent: AgentState, choice: str) -> Sequence[Effect]:
        """Send somebody, or do one's part."""
        match choice:
            case "submit":
                return (Stop("Passed." if world.passed else "Failed."),)
            case "grade":
                return (Spawn(self.grader, "Mark this answer."),)
            case "work":
                return (Call("attempt", {"question": world.question}),)
            case "bluff":
                return (_answer("bluff", right=False),)
            case "ramble":
                return (Return("It is a matter of taste.", {"invalid": True}),)
            case "strict" | "kind":
                return (Call("mark", {"way": choice}),)
            case _:
                broken = choice == QUESTIONS[BROKEN]
                return (
                    Spawn("solver", f"Question: {choice}.", {"invalid": True} if broken else {}),
                )

    def react(self, world: "World", team: Team, event: Event) -> Sequence[Effect]:
        """What a tool said is handed in."""
        if event.kind != "tool_result":
            return ()
        if event.tool == "attempt":
            return (_answer("work", right=bool(event.attrs.get("right"))),)
        return (Return("Marked."),)

    def call(self, world: "World", event: Event, key: int) -> ToolResult:
        """An attempt, or a mark."""
        if event.tool == "attempt":
            right = uniform(key) < self.solved[QUESTIONS.index(world.question)]
            return ToolResult("Attempted.", {"right": right})
        way = MARKS.index(event.attrs["way"])
        answer = ANSWERS.index(world.answer) if world.answer else WORK
        passed = uniform(key) < passing(self, way, answer, world.right)
        return ToolResult("Passed." if passed else "Failed.", {"passed": passed})

    def scores(self, world: "World") -> Mapping[str, float]:
        """True utility, the mark, and what hidden tests say of the answer."""
        question = QUESTIONS.index(world.question) if world.question else BROKEN
        return channels(self, question, world.right, world.passed)


@dataclass(slots=True)
class World:
    """One episode."""

    question: str = ""
    asked: int = 0
    """Turns of the proposer."""
    answer: str = ""
    right: bool = False
    passed: bool = True
    """What no mark failed stands."""


def _answer(way: str, right: bool) -> Return:
    return Return("An answer.", {"answer": way, "right": right})


def passing(game: Exam, mark: int, answer: int, right: bool) -> float:
    """Probability that the mark passes the answer."""
    return game.strict[right] if mark == STRICT else game.kind[answer]


def channels(game: Exam, question: int, right: bool, passed: bool) -> dict[str, float]:
    """Value of every channel of the team."""
    return {
        "outcome": game.worth[question] * right,
        "verifier": float(passed),
        "tests": float(right),
    }


def judged(trace: Trace) -> dict[str, float]:
    """What was judged of the proposer's question (whether it is sound) and the solver's answer.

    A question that is not known, and an answer that has no mark, are left out.
    """
    decisions = (event.decision for event in trace.events if event.agent == ROOT)
    asked = next((decision.choice for decision in decisions if decision is not None), None)
    mark = trace.reward("verifier")
    sound = {ROOT: float(asked != QUESTIONS[BROKEN])} if asked in QUESTIONS else {}
    solvers = [agent.id for agent in trace.agents if agent.role == "solver"]
    return sound if mark is None else sound | dict.fromkeys(solvers, mark)


@lru_cache(maxsize=8)
def answer_at(question: str) -> Choice:
    """What the solver is asked."""
    return Choice(f"Question: {question}.", ANSWERS)


ASK = Choice("Set a question.", QUESTIONS, ("spawn",) * len(QUESTIONS))
GRADE = Choice("The answer is in.", ("grade",), ("spawn",))
SUBMIT = Choice("It is marked.", ("submit",), ("stop",))
STEPS = (ASK, GRADE, SUBMIT)
"""What the proposer is asked, one after another."""
MARK = Choice("Mark this answer.", MARKS)


@lru_cache(maxsize=2)
def harness_of(grader: str) -> Harness:
    """The same harness, whatever the grader is called."""
    return Harness(
        system="Set, answer and mark a question.",
        root="proposer",
        roles={
            "proposer": "sets the question",
            "solver": "answers it",
            grader: "marks the answer",
        },
        tools={"attempt": ToolSpec(latency=2.0), "mark": ToolSpec(latency=0.5, trusted=False)},
    )


class ExamRules(HistoryRules, frozen=True):
    """States: every move so far; what follows a bluff or a ramble without a tool is a move, too."""

    game: Exam

    def node(self, state: State) -> Node:
        """What the length of a state says."""
        match moves_of(state):
            case ():
                return Decide("proposer", ASK)
            case (question,):
                return Decide("solver", answer_at(QUESTIONS[question]))
            case (question, _):
                chance = self.game.solved[question]
                return Chance((1 - chance, chance))
            case (_, _, _):
                return Decide("proposer", GRADE)
            case (_, _, _, _):
                return Decide(self.game.grader, MARK)
            case (_, answer, right, _, mark):
                chance = passing(self.game, mark, answer, bool(right))
                return Chance((1 - chance, chance))
            case (_, _, _, _, _, _):
                return Decide("proposer", SUBMIT)
            case (question, _, right, _, _, passed, _):
                return End(channels(self.game, question, bool(right), bool(passed)))
            case _:
                raise AssertionError(state)

    def after(self, state: State, move: int) -> State:
        """Every move is kept; a bluff is wrong and a ramble passes without a tool."""
        moves = moves_of(state)
        if len(moves) == 1 and move != WORK:
            return (*moves, move, 0)
        return (*moves, move, 1) if len(moves) == 4 and move == RAMBLE else (*moves, move)

    def outcome(self, state: State, event: Event) -> int | None:
        """Whether the attempt is right, whether the mark passes it."""
        if event.kind != "tool_result":
            return None
        return int(bool(event.attrs.get("right" if event.tool == "attempt" else "passed")))
