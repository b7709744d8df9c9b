"""The claims about safe policies and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from urbe.paper.models import MODELS
from urbe.paper.safe_policies.cells import CONFIDENCE, METHODS
from urbe.paper.safe_policies.results import Outcome
from urbe.report.content import Verdict
from urbe.report.numbers import decide
from urbe.statistics.estimates import Interval, frequency_interval


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """On models drawn from the prior: whether guarantees hold, and which planner guarantees most."""
    drawn = [each for each in outcomes if each.truth == "drawn"]
    return [*_holding(drawn), *_order(drawn)]


def _holding(drawn: Sequence[Outcome]) -> list[Verdict]:
    """Whether guarantees hold as often as they must, all models together, at the worst length of the log."""
    verdicts = []
    for name in METHODS:
        total = sum(each.data_sets for each in drawn)
        counts = [
            sum(round(each.failures[name][i].estimate * each.data_sets) for each in drawn)
            for i in range(len(drawn[0].transitions))
        ]
        worst = frequency_interval(max(counts), total)
        verdicts.append(
            decide(
                f"{name} keeps its guarantee in {CONFIDENCE:.0%} of the data sets or more.",
                f"At the worst length, the share of {total} data sets in which it held",
                Interval(1.0 - worst.estimate, 1.0 - worst.high, 1.0 - worst.low),
                above=CONFIDENCE,
            )
        )
    return verdicts


def _order(drawn: Sequence[Outcome]) -> list[Verdict]:
    """Whether each planner guarantees more than the next, on the longest logs."""
    return [
        decide(
            f"{MODELS[each.model].title}: {first} guarantees more than {second}.",
            f"With {each.transitions[-1]} transitions, the mean difference of the guaranteed values",
            differences[-1],
        )
        for each in drawn
        for (first, second), differences in each.ahead.items()
    ]
