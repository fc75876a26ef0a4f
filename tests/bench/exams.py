"""What the tests of the benchmark share: a tiny exam, and policies that can sit it."""

from stretto.bench.examinee import single
from stretto.bench.run import run_exam
from stretto.bench.submission import home_of
from stretto.bench.suite import suite
from stretto.policies.softmax import Softmax
from stretto.team.protocols import Answer
from stretto.trace import Tokens


class Counting:
    """A uniform policy that states log-probabilities and tokens, as a model would."""

    def __init__(self):
        self._policy = Softmax()

    def decide(self, asks):
        return [
            Answer(a.chosen, a.policy, a.logprobs, tokens=Tokens(input=31, output=2))
            for a in self._policy.decide(asks)
        ]


def tiny(instances=2, **only):
    """The shortest cell of `hops`, or what `only` says."""
    limits = {"families": ["hops"], "bands": ["10"], "topologies": ["swarm"]}
    limits = {**limits, "conditions": ["clean"], **only}
    return suite(instances=instances, only=limits)


def submitted(folder, instances=2, attempts=0, **only):
    """Let `Counting` sit a tiny exam; the folder of its submission."""
    who = single("counting", {"kind": "test"}, Counting())
    run_exam(tiny(instances, **only), folder, who, attempts=attempts)
    return home_of(folder, "counting")
