"""Small juries, and all that can be claimed in them by brute force."""

from itertools import combinations, product

from hypothesis import strategies as st

from stretto.tasks import topology
from stretto.tasks.jury import KINDS, Jury, case_of
from stretto.tasks.scripts import scripts_of
from stretto.team.engine import rollout

SMALL = [
    Jury(classes=2, witnesses=3, copies=1, liars=1),
    Jury(classes=3, witnesses=3, copies=1, liars=1, seed=1),
    Jury(classes=2, witnesses=4, copies=2, liars=2, seed=2),
    Jury(classes=3, witnesses=3, copies=0, liars=0, seed=3),
    Jury(classes=2, witnesses=4, copies=3, liars=1, seed=4),
]
CASES = st.builds(
    Jury,
    classes=st.integers(2, 4),
    witnesses=st.integers(3, 7),
    copies=st.integers(0, 2),
    liars=st.integers(0, 2),
    topology=st.sampled_from(topology.NAMES),
    seed=st.integers(0, 10**6),
)


def run(task, script="oracle", seed=0):
    return rollout(task, scripts_of(task)[script], [seed])[0]


def enumerate_claims(task):
    """Probability of every (hidden colour, claims of all), by what is shown, who lies and how."""
    case, colours = case_of(task), range(task.classes)
    joint = {}
    liars = list(combinations(range(task.witnesses), task.liars))
    for hidden in colours:
        for shown in product(colours, repeat=len(case.kinds)):
            chance = 1 / task.classes / len(liars)
            for kind, colour in zip(case.kinds, shown, strict=True):
                r = KINDS[kind]
                chance *= r if colour == hidden else (1 - r) / (task.classes - 1)
            for lying in liars:
                says = [
                    [c for c in colours if (c != shown[item]) == (n in lying)]
                    for n, item in enumerate(case.holds)
                ]
                ways = (task.classes - 1) ** task.liars
                for claims in product(*says):
                    key = hidden, claims
                    joint[key] = joint.get(key, 0.0) + chance / ways
    return joint
