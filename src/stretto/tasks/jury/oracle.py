"""The exact side of `jury`: posterior, best vote, what claims are worth, whose lie was decisive.

All of it takes time that hardly grows with the number of witnesses (see `jury.evidence`). How often
votes are right is computed in `jury.accuracy`, under planted lies in `jury.robust`, and without the
luck of a single case in `jury.luck`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from stretto.tasks.faults import Blame
from stretto.tasks.jury import COLOURS, Jury, case_of
from stretto.tasks.jury.evidence import Floats, Sign, chances
from stretto.tasks.topology import WORKER
from stretto.team.state import ROOT
from stretto.trace import Event, Trace


def posterior(task: Jury, claims: Mapping[int, int]) -> Floats:
    """Probability of every colour given these claims (witness to colour); shape (classes,)."""
    return _belief(task, _signs(task, claims))


def vote_on(task: Jury, claims: Mapping[str, Sequence[int]]) -> int:
    """The best vote for who knows claims only by what they say: piece (kind first) to colours."""
    signs = Counter((piece.split()[0], _counts(task, colours)) for piece, colours in claims.items())
    return _best(_belief(task, signs))


def best_vote(task: Jury, claims: Mapping[int, int]) -> int:
    """The colour of highest posterior; the first of those alike."""
    return _best(posterior(task, claims))


def received(trace: Trace) -> dict[int, int]:
    """The claims that reached the judge before it voted: witness to colour."""
    claims: dict[int, int] = {}
    for event in trace.events:
        returned = event.kind == "return" and event.to == ROOT
        read = event.kind == "tool_result" and event.tool == "memory.read"
        if returned or read:
            claims |= _claims(event)
    return claims


def claim_values(task: Jury, trace: Trace) -> dict[str, float]:
    """Value of every claim that a witness handed up, by the id of its event: information.

    By how much the best vote without that witness is less likely right than the best vote with it,
    both judged by everything that reached the judge. Never negative; what did not reach it is 0.
    """
    heard = received(trace)
    said = _said(task, heard)
    signs = _signs(task, heard)
    belief = _belief(task, signs)
    worth: dict[tuple[Sign, int] | None, float] = {None: 0.0}
    found: dict[str, float] = {}
    for event, claims in _reports(trace).items():
        ((witness, _),) = claims.items()
        known = None
        if witness in heard:
            item, colour = case_of(task).holds[witness], heard[witness]
            known = (case_of(task).kinds[item], _counts(task, said[item])), colour
            if known not in worth:  # claims alike are worth the same
                rest = _best(_belief(task, _without(signs, *known)))
                worth[known] = float(belief.max() - belief[rest])
        found[event] = worth[known]
    return found


def regret(task: Jury, trace: Trace) -> float | None:
    """The aggregator's regret: by how much its vote is less likely right than the best one.

    Given the claims that reached it. `None` where it never voted.
    """
    vote = voted(trace)
    if vote is None:
        return None
    belief = posterior(task, received(trace))
    return float(belief.max() - belief[vote])


def voted(trace: Trace) -> int | None:
    """The colour that the judge voted for; `None` where it never did."""
    stop = next((event for event in trace.events if event.kind == "stop"), None)
    colour = None if stop is None else stop.attrs.get("colour")
    return COLOURS.index(colour) if colour in COLOURS else None


def blame(task: Jury, trace: Trace, hidden: int) -> Blame | None:
    """The first report whose lie was decisive: told honestly, the best vote would be right.

    Decisive by the exact judge: the best vote on what reached it is wrong, and with what that
    witness saw in the place of what it said it is `hidden`, the right colour. `None` where no
    single witness is to blame.
    """
    heard = received(trace)
    if best_vote(task, heard) == hidden:
        return None
    saw = _seen(trace)
    for event, claims in _reports(trace).items():
        agent = event.partition("#")[0]
        ((witness, said),) = claims.items()
        honest = heard | {witness: saw[agent]}
        if said != saw[agent] and best_vote(task, honest) == hidden:
            return Blame(agent, event)
    return None


def _best(belief: Floats) -> int:
    return int(belief.round(12).argmax())


def _belief(task: Jury, signs: Mapping[Sign, int]) -> Floats:
    """Posterior given what was said about pieces of evidence.

    Witnesses that do not keep to the rules may say what so many liars cannot: then the nearest
    number of liars counts with which they can. There is one: in every piece's own claims, those
    that differ from one of them are lies.
    """
    heard = sum(sum(said) * count for (_, said), count in signs.items())
    silent = max(0, task.witnesses - heard)
    numbers = sorted(range(task.witnesses + 1), key=lambda number: abs(number - task.liars))
    found = (chances(signs, silent, task.classes, number) for number in numbers)
    likelihood = next(each for each in found if each.any())
    return likelihood / likelihood.sum()


def _said(task: Jury, claims: Mapping[int, int]) -> dict[int, list[int]]:
    """Piece of evidence to what was said about it."""
    said: dict[int, list[int]] = {}
    for witness, colour in claims.items():
        said.setdefault(case_of(task).holds[witness], []).append(colour)
    return said


def _signs(task: Jury, claims: Mapping[int, int]) -> Counter[Sign]:
    kinds = case_of(task).kinds
    said = _said(task, claims).items()
    return Counter((kinds[item], _counts(task, colours)) for item, colours in said)


def _counts(task: Jury, said: Sequence[int]) -> tuple[int, ...]:
    return tuple(said.count(colour) for colour in range(task.classes))


def _without(signs: Counter[Sign], sign: Sign, colour: int) -> Counter[Sign]:
    """The signs if one claim of this colour, about a piece of this sign, is left out."""
    kind, said = sign
    less = tuple(count - (each == colour) for each, count in enumerate(said))
    return signs - Counter([sign]) + Counter([(kind, less)])


def _reports(trace: Trace) -> dict[str, dict[int, int]]:
    """What witnesses handed up: id of the event to its claim; who said nothing is left out."""
    roles = {agent.id: agent.role for agent in trace.agents}
    found: dict[str, dict[int, int]] = {}
    for event in trace.events:
        written = event.kind == "tool_result" and event.tool == "memory.write"
        if (event.kind == "return" or written) and roles[event.agent] == WORKER:
            claims = _claims(event)
            if claims:
                found[event.id] = claims
    return found


def _seen(trace: Trace) -> dict[str, int]:
    """Agent to the colour that its evidence showed."""
    looks = (e for e in trace.events if e.kind == "tool_result" and e.tool == "inspect")
    return {event.agent: event.attrs["saw"] for event in looks}


def _claims(event: Event) -> dict[int, int]:
    return {int(number): colour for number, colour in event.attrs.get("claims", {}).items()}
