"""The rule that judges claims, and the text that states it.

A claim says that a quantity is above a number, or below it. A quantity is estimated from replicates with an interval:

    Mean     of numbers, or of paired differences: Student's, restricted to possible values
    Ratio    of positive numbers, or of paired ratios: Student's for the mean logarithm, then exponentiated
    Share    k of n: Clopper and Pearson's [ClopperPearson1934]
    ExactNumber    computed rather than sampled: the number itself

and the interval decides. A claim is tested under one or more assumptions (readings of the paper), and under each by
one or more questions, which must all hold. `Rule` judges all tests of a claim together; `Rule.text` states the rule in
words, for the report.

Shares get Clopper and Pearson's interval rather than Wilson's: it is within [0, 1] like Wilson's, and it covers with at
least its confidence for every probability and every n. The rule adds up the errors of many intervals, each with a
confidence close to 1, where Wilson's interval covers too rarely. Probabilities computed for each replicate are not
counts: they are a `Mean` within [0, 1]. Restricting an interval to possible values costs no coverage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from scipy import special

from urbe import checks
from urbe.statistics.estimates import ConfidenceInterval, mean_interval
from urbe.types import FloatArray

Outcome = Literal["holds", "does not hold", "undecided", "not testable"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

PROBABILITY = (0.0, 1.0)
"""The range of a probability, for `Mean.within`."""

DECIMALS = 10
"""Numbers are rounded to this decimal: smaller differences come from the order of additions."""

LEAST = 2
"""An interval of a mean needs at least this many replicates."""


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean over replicates of a number, or of a difference between two that share a seed.

    Attributes:
      samples: `(n,)` one for each replicate; not testable with fewer than two, or if one is missing (NaN).
      within: the possible values.
      of: the name of the replicates, in the plural.

    >>> print("%.2f [%.2f, %.2f]" % Mean(np.array([0.9, 1.0, 0.95]), PROBABILITY).interval(0.95))
    0.95 [0.83, 1.00]
    """

    samples: FloatArray
    within: tuple[float, float] = (-np.inf, np.inf)
    of: str = "seeds"
    text: ClassVar[str] = (
        "A mean over replicates, of differences by replicate if two agents are compared, has Student's interval, "
        "restricted to possible values, [0, 1] for a probability"
    )

    def interval(self, confidence: float) -> ConfidenceInterval | None:
        """Student's interval, restricted to `within`; None with fewer than two replicates."""
        samples = np.round(np.asarray(self.samples, dtype=np.float64), DECIMALS)
        if len(samples) < LEAST or not np.isfinite(samples).all():
            return None
        estimate, low, high = np.round(mean_interval(samples, confidence=confidence), DECIMALS).tolist()
        return ConfidenceInterval(estimate, max(low, self.within[0]), min(high, self.within[1]))

    @property
    def size(self) -> str:
        """`10 seeds`."""
        return f"{len(self.samples)} {self.of}"


@dataclass(frozen=True, eq=False)
class Ratio:
    """The geometric mean over replicates of a positive number, or of a ratio of two that share a seed.

    Attributes:
      samples: `(n,)` one for each replicate, above 0.
      of: the name of the replicates, in the plural.
    """

    samples: FloatArray
    of: str = "seeds"
    text: ClassVar[str] = "a ratio has the same interval for its logarithm"

    def interval(self, confidence: float) -> ConfidenceInterval | None:
        """The interval of the mean logarithm, exponentiated."""
        found = Mean(np.log(self.samples)).interval(confidence)
        return None if found is None else ConfidenceInterval(*np.exp(found).tolist())

    @property
    def size(self) -> str:
        """`10 seeds`."""
        return f"{len(self.samples)} {self.of}"


@dataclass(frozen=True)
class Share:
    """A share of trials.

    Attributes:
      successes, trials: k of n, n >= 1.
      of: the name of the trials, in the plural.

    >>> print("%.3f [%.3f, %.3f]" % Share(0, 20).interval(0.95))
    0.000 [0.000, 0.168]
    """

    successes: int
    trials: int
    of: str = "trials"
    text: ClassVar[str] = "a share, k of n, has Clopper and Pearson's interval, which is within [0, 1]"

    def __post_init__(self) -> None:
        checks.whole_number("trials", self.trials, 1)
        if checks.whole_number("successes", self.successes, 0) > self.trials:
            raise ValueError(f"successes is {self.successes}, expected at most the {self.trials} trials.")

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval:
        """An interval with at least the stated coverage for every probability."""
        k, n, tail = self.successes, self.trials, 0.5 - 0.5 * checks.confidence(confidence)
        low = float(special.betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
        high = float(special.betaincinv(k + 1, n - k, 1.0 - tail)) if k < n else 1.0
        return ConfidenceInterval(k / n, low, high)

    @property
    def size(self) -> str:
        """`18 of 20 data sets`."""
        return f"{self.successes} of {self.trials} {self.of}"


@dataclass(frozen=True)
class ExactNumber:
    """A number that was computed, not sampled."""

    value: float
    text: ClassVar[str] = "a number that was computed rather than sampled has no error"

    def interval(self, confidence: float) -> ConfidenceInterval | None:
        """The number; None if it is missing."""
        return ConfidenceInterval(self.value, self.value, self.value) if np.isfinite(self.value) else None

    @property
    def size(self) -> str:
        """Empty: there are no replicates."""
        return ""


Quantity = Mean | Ratio | Share | ExactNumber


@dataclass(frozen=True, eq=False)
class Question:
    """The question whether a quantity is on one side of a number.

    Attributes:
      name: name of the quantity in the evidence.
      quantity: the estimated quantity.
      number: the number it is compared with.
      side: the claimed side.
    """

    name: str
    quantity: Quantity
    number: float = 0.0
    side: Literal["above", "below"] = "above"


@dataclass(frozen=True, eq=False)
class Test:
    """A claim under one assumption.

    Attributes:
      questions: must all hold; empty if the agents of the claim were not run.
      premises: premises of the claim; if there are any, at least one must hold.
      reading: the assumption, in a few words.
      note: a sentence that is added to the evidence.
    """

    questions: Sequence[Question]
    premises: Sequence[Question] = ()
    reading: str = ""
    note: str = ""
    __test__: ClassVar[bool] = False  # not a test case for pytest


class Answer(NamedTuple):
    """The answer to a question; without an interval it is not testable."""

    question: Question
    interval: ConfidenceInterval | None
    outcome: Outcome


class Judgement(NamedTuple):
    """The result of a test.

    Attributes:
      outcome: under this assumption.
      answers, premises: to its questions.
      supposed: whether one of the premises holds; None if there are none.
    """

    outcome: Outcome
    answers: tuple[Answer, ...]
    premises: tuple[Answer, ...]
    supposed: Outcome | None


@dataclass(frozen=True)
class Rule:
    """How claims are judged.

    Attributes:
      confidence: simultaneous confidence of all intervals of a claim.

    >>> better = Question("A - B", Mean(np.array([1.0, 2.0, 1.5])))
    >>> (found,) = Rule().judge([Test([better])])
    >>> found.outcome, "%.2f [%.2f, %.2f]" % found.answers[0].interval
    ('holds', '1.50 [0.26, 2.74]')
    >>> Rule().judge([Test([better], reading="one"), Test([better], reading="another")])[0].outcome
    'undecided'
    """

    confidence: float = 0.95

    def __post_init__(self) -> None:
        checks.confidence(self.confidence)

    @property
    def text(self) -> str:
        """The rule in words."""
        kinds = "; ".join(kind.text for kind in (Mean, Ratio, Share, ExactNumber))
        error = 1.0 - self.confidence
        return (
            f"A claim says that a quantity is above a number, or below it. {kinds}. The intervals of a claim, over all "
            f"its comparisons and assumptions, hold simultaneously with confidence {100 * self.confidence:g} %: each "
            f"of K intervals has confidence 1 - {error:.2g} / K (Bonferroni). The claim holds when its interval lies "
            "entirely on the claimed side, does not hold when no part of it does, and is undecided otherwise. The "
            "number itself is not on the claimed side: agents with equal results in every replicate have an interval "
            f"of zero width, and neither is better. Means are rounded to {DECIMALS} decimals before. A mean or ratio "
            f"of fewer than {LEAST} replicates, or with a missing number, is not testable. A claim of several "
            "comparisons holds when all of them hold, and does not hold when one of them does not; otherwise it is not "
            "testable if one of them is not, and undecided if all are testable. A claim with premises needs one that "
            "holds; without it, the claim is undecided if a premise is undecided, and not testable otherwise. A claim "
            "holds when it holds under every assumption. When it holds under some, they are named. When it holds under "
            "none, it does not hold if one assumption decides so; otherwise it is undecided, or not testable if no "
            "assumption could be tested."
        )

    def judge(self, tests: Sequence[Test]) -> list[Judgement]:
        """Judges a claim under all its assumptions; all intervals hold simultaneously.

        Args:
          tests: the tests of one claim.
        """
        asked = [question for test in tests for question in (*test.questions, *test.premises)]
        sampled = sum(
            question.quantity.interval(self.confidence) is not None
            for question in asked
            if not isinstance(question.quantity, ExactNumber)
        )
        level = 1.0 - (1.0 - self.confidence) / max(sampled, 1)
        return [_judgement(test, level) for test in tests]

    def conclude(self, readings: Mapping[str, Iterable[Outcome]]) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome of a claim, and the assumptions under which it holds if it does not hold under all.

        Args:
          readings: the outcomes under each assumption; the claim holds under it when all of them hold.

        >>> Rule().conclude({"greedy": ["holds"], "noisy": ["undecided"]})
        ('holds', ('greedy',))
        """
        each = {name: set(outcomes) for name, outcomes in readings.items()}
        holding = tuple(name for name, outcomes in each.items() if outcomes == {"holds"})
        if holding:
            return "holds", () if len(holding) == len(each) else holding
        seen = set[Outcome]().union(*each.values())
        return next(outcome for outcome in OUTCOMES[1:] if outcome in seen), ()


def _judgement(test: Test, level: float) -> Judgement:
    answers = tuple(_answer(question, level) for question in test.questions)
    premises = tuple(_answer(question, level) for question in test.premises)
    outcome = _all_hold([answer.outcome for answer in answers])
    supposed = _one_holds([answer.outcome for answer in premises])
    if outcome != "not testable" and supposed not in (None, "holds"):
        outcome = "undecided" if supposed == "undecided" else "not testable"
    return Judgement(outcome, answers, premises, supposed)


def _answer(question: Question, level: float) -> Answer:
    interval = question.quantity.interval(level)
    if interval is None:
        return Answer(question, None, "not testable")
    sign = 1.0 if question.side == "above" else -1.0
    low, high = sorted((sign * (interval.low - question.number), sign * (interval.high - question.number)))
    return Answer(question, interval, "holds" if low > 0.0 else "does not hold" if high <= 0.0 else "undecided")


def _all_hold(outcomes: Sequence[Outcome]) -> Outcome:
    order: tuple[Outcome, ...] = ("does not hold", "not testable", "undecided", "holds")
    return next((outcome for outcome in order if outcome in outcomes), "not testable")


def _one_holds(outcomes: Sequence[Outcome]) -> Outcome | None:
    order: tuple[Outcome, ...] = ("holds", "undecided", "not testable", "does not hold")
    return next((outcome for outcome in order if outcome in outcomes), None)
