"""The claims about safe policies and their verdicts, on models drawn from the prior."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from urbe.paper.models import MODELS
from urbe.paper.safe_policies.cells import CONFIDENCE, METHODS
from urbe.paper.safe_policies.results import Planned
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics.verdicts import Mean, Question, Share, Test


def verdicts(table: Sequence[Planned]) -> list[Verdict]:
    """Whether guarantees hold as often as they must, and which planner guarantees most."""
    drawn = [each for each in table if each.truth == "drawn"]
    return [
        *(verdict for name in METHODS for verdict in _keeps(drawn, name)),
        *(verdict for pair in pairwise(METHODS) for verdict in _more(drawn, *pair)),
    ]


def _keeps(drawn: Sequence[Planned], name: str) -> list[Verdict]:
    """All models together; whether it is so for logs of every length."""
    lengths = drawn[0].transitions.tolist() if drawn else []
    questions = []
    for i, length in enumerate(lengths):
        shares = [each.failures[name][i] for each in drawn]
        trials = sum(share.trials for share in shares)
        kept = trials - sum(share.successes for share in shares)
        title = f"With {length} transitions, the share in which it held"
        questions.append(Question(title, Share(kept, trials, "data sets"), CONFIDENCE))
    return judge(f"{name} keeps its guarantee in more than {CONFIDENCE:.0%} of the data sets.", [Test(questions)])


def _more(drawn: Sequence[Planned], first: str, second: str) -> list[Verdict]:
    """On the longest logs."""
    tests = [
        Test(
            [
                Question(
                    f"With {each.transitions[-1]} transitions, the mean difference of the guaranteed values",
                    Mean(each.guaranteed[first][:, -1] - each.guaranteed[second][:, -1], of="data sets"),
                )
            ],
            reading=MODELS[each.model].title,
        )
        for each in drawn
    ]
    return judge(f"{first} guarantees more than {second}.", tests)
