"""The engine: runs episodes in virtual time and writes each as a trace.

Events are recorded in the order in which they take effect, so starts never decrease. The loop
gathers the open decisions of all agents of all running episodes and asks each role's policy once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop
from typing import Any

from msgspec import to_builtins
from msgspec.json import encode

from stretto.errors import StrettoError, did_you_mean
from stretto.garbage import paused_collector
from stretto.team import state
from stretto.team.effects import act
from stretto.team.episode import ARRIVAL_LABEL, Episode, SeedOf, keep, later, record
from stretto.team.interventions import Force, Interventions, Resample
from stretto.team.noise import key_of
from stretto.team.protocols import Answer, Ask, Choice, Policy, Task
from stretto.team.state import ROOT, AgentState, new_team
from stretto.trace import Agent, Decision, Event, Lineage, Score, Trace, content_hash


@dataclass(slots=True)
class Open:
    """A decision that waits for its answer."""

    agent: AgentState
    choice: Choice
    ask: Ask
    observation: str
    """Content hash."""
    answers: tuple[Event, ...]
    """What had reached the agent when it looked."""
    forced: str | None
    """The candidate that an intervention chooses in the policy's place."""


def rollout(task: Task, policies: Mapping[str, Policy], seeds: Sequence[int]) -> list[Trace]:
    """Run one episode a seed, side by side, and return their traces in that order.

    `policies` names a policy for every role that ever decides.

    Raises `StrettoError` for a role without one, and for seeds that are no sequence.
    """
    if isinstance(seeds, int):
        raise StrettoError("seeds is one number", hint=f"one episode a seed: seeds=[{seeds}]")
    episodes = [begin(task, seed) for seed in seeds]
    run(episodes, policies)
    return [finish(episode) for episode in episodes]


def begin(
    task: Task,
    seed: int,
    seed_of: SeedOf | None = None,
    interventions: Interventions | None = None,
) -> Episode:
    """An episode before its first event.

    `seed_of` may give single events another seed, `interventions` may change single events.
    """
    harness = task.harness
    team = new_team(harness.root)
    seeds: SeedOf = seed_of or (lambda _: seed)
    episode = Episode(task, harness, seed, task.begin(seed), team, seeds, interventions or {})
    episode.agents.append(Agent(id=ROOT, role=harness.root))
    episode.reached[ROOT] = None
    return episode


def run(episodes: Sequence[Episode], policies: Mapping[str, Policy]) -> None:
    """Advance all episodes until each has ended."""
    running = list(episodes)
    with paused_collector():
        while running:
            running = play_round(running, policies)


def play_round(running: Sequence[Episode], policies: Mapping[str, Policy]) -> list[Episode]:
    """Bring every episode to its next decisions, answer them all, and return who goes on."""
    waiting = [(episode, _advance(episode)) for episode in running]
    opened = [item for _, items in waiting for item in items]
    answers = iter(_ask(opened, policies))
    for episode, items in waiting:
        for item in items:
            _decide(episode, item, next(answers))
    return [episode for episode, items in waiting if items]


def finish(episode: Episode, lineage: tuple[Lineage, ...] = ()) -> Trace:
    """The trace of an ended episode, with its team scores."""
    task, harness = episode.task, episode.harness
    state.settle(episode.team)
    scores = task.scores(episode.world)
    return Trace(
        id=f"{task.id}@{episode.seed}" + "".join(f"+{fork.event}@{fork.seed}" for fork in lineage),
        task=task.id,
        system="stretto",
        topology=harness.topology,
        harness=fingerprint(task),
        seed=episode.seed,
        spec=task.spec,
        lineage=lineage,
        attrs={"ended": episode.ended, **_interventions(episode)},
        agents=tuple(episode.agents),
        events=tuple(episode.events),
        edges=tuple(episode.edges),
        scores=tuple(Score(channel=name, value=value) for name, value in scores.items()),
        contents=episode.contents,
    )


def _interventions(episode: Episode) -> dict[str, Any]:
    done = to_builtins(episode.interventions)
    return {"interventions": done} if done else {}


def fingerprint(task: Task) -> str:
    """Name the harness of a task: equal exactly if prompts, tools, roles and clock are equal."""
    return content_hash(encode(task.harness, order="sorted").decode())


def _advance(episode: Episode) -> list[Open]:
    """Process what is due until somebody has to decide; an empty list means the end."""
    while True:
        opened = _open_decisions(episode)
        if opened:
            return opened
        if episode.ended or not episode.agenda:
            episode.ended = episode.ended or "stalled"
            return []
        now = episode.team.time = episode.agenda[0][0]
        while episode.agenda and episode.agenda[0][0] == now and not episode.ended:
            heappop(episode.agenda)[3]()


def _open_decisions(episode: Episode) -> list[Open]:
    if episode.ended:
        return []
    opened: list[Open] = []
    reached, episode.reached = episode.reached, {}
    for path in reached:
        agent = episode.team.agents[path]
        if episode.team.free(agent):
            choice = episode.task.choose(episode.world, episode.team, agent)
            if choice is not None:
                opened.append(_open(episode, agent, choice))
    return opened


def _open(episode: Episode, agent: AgentState, choice: Choice) -> Open:
    event = f"{agent.id}#{agent.counter}"
    do = episode.interventions.get(event)
    key = key_of(do.seed if isinstance(do, Resample) else episode.seed_of(event), event)
    if not choice.candidates:
        raise StrettoError("a choice among nothing", event, "return None while nothing is open")
    if agent.role not in episode.harness.roles:
        hint = did_you_mean(agent.role, episode.harness.roles)
        raise StrettoError(f'the harness declares no role "{agent.role}"', event, hint)
    if choice.types and len(choice.types) != len(choice.candidates):
        raise StrettoError(
            f"{len(choice.types)} types for {len(choice.candidates)} candidates", event
        )
    system = episode.harness.system
    ask = Ask(event, system, choice.observation, choice.candidates, agent.role, key)
    observation = keep(episode, choice.observation)
    forced = do.candidate if isinstance(do, Force) else None
    if forced is not None and forced not in choice.candidates:
        hint = did_you_mean(forced, choice.candidates)
        raise StrettoError(f'"{forced}" cannot be forced: it is no candidate', event, hint)
    return Open(agent, choice, ask, observation, tuple(agent.arrived), forced)


def _ask(opened: Sequence[Open], policies: Mapping[str, Policy]) -> list[Answer]:
    """Ask each role's policy once; answers come back in the order of `opened`."""
    by_role: dict[str, list[int]] = {}
    answers: dict[int, Answer] = {}
    for index, item in enumerate(opened):
        if item.forced is None:
            by_role.setdefault(item.ask.role, []).append(index)
        else:
            answers[index] = Answer(item.choice.candidates.index(item.forced), "forced")
    for role, indices in by_role.items():
        if role not in policies:
            raise StrettoError(f'no policy for role "{role}"', hint=did_you_mean(role, policies))
        replies = policies[role].decide([opened[index].ask for index in indices])
        if len(replies) != len(indices):
            what = f"{len(replies)} answers to {len(indices)} asks"
            raise StrettoError(what, f'the policy of role "{role}"')
        answers.update(zip(indices, replies, strict=True))
    return [answers[index] for index in range(len(opened))]


def _decide(episode: Episode, item: Open, answer: Answer) -> None:
    agent, choice = item.agent, item.choice
    if not 0 <= answer.chosen < len(choice.candidates):
        what = f"choice {answer.chosen} of {len(choice.candidates)} candidates"
        raise StrettoError(what, item.ask.event, "answer with an index into the candidates")
    thinking = episode.harness.thinking.get(agent.role, 0.0)
    decision = Decision(
        type=choice.types[answer.chosen] if choice.types else "act",
        candidates=choice.candidates,
        logprobs=answer.logprobs,
        chosen=answer.chosen,
        policy=answer.policy,
        observation=item.observation,
        prompt_ids=answer.prompt_ids,
        completion_ids=answer.completion_ids,
        completion_logprobs=answer.completion_logprobs,
    )
    causes = [(answered.id, ARRIVAL_LABEL[answered.kind]) for answered in item.answers]
    if agent.last_decision is not None:
        causes.append((agent.last_decision, "temporal"))
    event = Event(
        id=item.ask.event,
        kind="decision",
        agent=agent.id,
        start=episode.team.time,
        duration=thinking,
        decision=decision,
        tokens=answer.tokens,
    )
    record(episode, event, causes)
    chosen = choice.candidates[answer.chosen]
    if thinking:
        later(episode, thinking, lambda: act(episode, agent, event, chosen))
    else:
        act(episode, agent, event, chosen)
