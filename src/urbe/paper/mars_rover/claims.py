"""The paper's claims about Mars Rover and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.mars_rover.cells import (
    CHANGED,
    EXACT_ROBUST,
    MISSPECIFIED,
    NO_SET,
    NOMINAL,
    SMALL,
    WIDE,
)
from urbe.paper.mars_rover.results import Reading, Result, find, get, optimum, paired, readings_of, waiting
from urbe.report.content import Outcome, Verdict
from urbe.report.numbers import decimals, interval_text
from urbe.statistics.estimates import Interval, mean_interval
from urbe.types import FloatArray


class Question(NamedTuple):
    """A quantity per seed, and the number it must exceed, or stay below.

    Attributes:
      reading: where it is asked.
      what: names the quantity.
      samples: `(n,)` one number per seed.
      number: what it is compared with.
      below: whether the claim is that it is below.
      range: what the quantity cannot leave; nor does its interval.
      after: sentences added to the evidence.
    """

    reading: Reading
    what: str
    samples: FloatArray
    number: float = 0.0
    below: bool = False
    range: tuple[float, float] = (-np.inf, np.inf)
    after: str = ""


def decide(claim: str, source: str, questions: Sequence[Question]) -> Iterator[Verdict]:
    """One verdict for each question; all share the error."""
    for question in questions:
        interval = interval_of(question, len(questions))
        outcome = compare(question, interval)
        yield Verdict(claim, outcome, evidence(question, interval), source, question.reading.told)


def interval_of(question: Question, comparisons: int) -> Interval:
    """Student's interval of the mean for one of several comparisons; all there is for a single seed."""
    samples, (low, high) = np.round(question.samples, 10), question.range  # other orders of sums are no difference
    if len(samples) < 2:
        return Interval(float(samples.mean()), low, high)
    found = mean_interval(samples, confidence=1.0 - 0.05 / comparisons)
    return Interval(found.estimate, max(found.low, low), min(found.high, high))


def compare(question: Question, interval: Interval) -> Outcome:
    """Holds when all of the interval is on the claimed side; does not when none of it is; ties are on no side."""
    low, high = (interval.low, interval.high) if not question.below else (-interval.high, -interval.low)
    number = question.number if not question.below else -question.number
    return "holds" if low > number else "does not hold" if high <= number else "undecided"


def evidence(question: Question, interval: Interval) -> str:
    """The numbers that decide, in a sentence."""
    asked = f", asked to be {'below' if question.below else 'above'} {question.number:g}"
    return f"{question.what} is {shown(interval)}{asked}, {len(question.samples)} seeds.{question.after}"


def shown(interval: Interval) -> str:
    """An interval with decimals that fit its width."""
    return interval_text(interval, min(decimals([interval]), 4))


NAMES = {"dqn": "DQN", "dqn-ube": "DQN-UBE", "dqn-urbe": "DQN-URBE", "calibrated-dqn-urbe": "Calibrated DQN-URBE"}


NEVER, GOOD, HIGH, CEILING = 0.05, 0.95, 0.5, 0.99


CHANCE = (0.0, 1.0)


BELOW, ABOVE = 0.1, 0.3
"""Where curves that cross near 0.2 must differ."""


RULES = (
    "A quantity is compared with a number by its Student interval over seeds, of differences by seed where two agents "
    "are compared; intervals of a claim cover together in 95 % of repetitions (Bonferroni over its readings). When all "
    "of the interval is on the claimed side, the claim holds; when nothing of it is, it does not; else it is "
    f"undecided. Robust DQN never reaches the goal when it does in less than {NEVER:.0%} of episodes; its return is "
    f"stable when it falls by less than {NEVER:.0%} of what lies between waiting for 200 steps and the exact optimum. "
    f"DQN and DQN-UBE are good when they return more than {GOOD:.0%} of the optimum. DQN-URBE is high when it is "
    "beyond the middle between waiting and the optimum. Sensitivity is the return at 0.005 minus the mean return over "
    f"the probabilities from {MISSPECIFIED[0]:g} to {MISSPECIFIED[-1]:g}; it is not testable where DQN-URBE is not "
    "high at 0.005, since who waits has nothing to lose, and undecided where that is. Curves cross near 0.2 when the "
    f"first is above at {BELOW:g} and below at {ABOVE:g}. More often to the goal is not testable where the other agent "
    "is within 1 % of what no policy can beat, and the difference is not below zero."
)


def verdicts(found: Sequence[Result]) -> list[Verdict]:
    """On all claims, in the order of the paper; then on ours."""
    return [
        *_never(found),
        *_stable(found),
        *_good(found, "dqn", ("greedy",)),
        *_good(found, "dqn-ube", ("greedy", "noisy")),
        *_high(found, "dqn-urbe", "Fig. 3"),
        *_less_conservative(found),
        *_less_sensitive(found, "dqn"),
        *_less_sensitive(found, "dqn-ube"),
        *_crossing(found),
        *_most_episodes(found),
        *_more_often(found),
        *_high(found, "calibrated-dqn-urbe", ""),
        *_control(found),
    ]


def _advantage(found: Sequence[Result], result: Result) -> FloatArray:
    """`(n,)` return at the nominal probability, from 0 for waiting to 1 for the optimum."""
    rest = waiting(result.world)
    scaled: FloatArray = (result.at(NOMINAL) - rest) / (optimum(found, result.world).at(NOMINAL) - rest)
    return scaled


def _never(found: Sequence[Result]) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, ["robust-dqn"], (WIDE, SMALL), ("greedy",)):
        (robust,) = get(found, reading, "robust-dqn")
        goal = robust.goal_at(NOMINAL)
        exact = find(found, reading.world, reading.members, EXACT_ROBUST, "greedy")
        ideal = "" if exact is None else f" Exact robust planning has {exact.goal_at(NOMINAL).mean():.3f}."
        questions.append(Question(reading, "Its chance of the goal", goal, NEVER, True, CHANCE, ideal))
    yield from decide("Robust DQN never reaches the goal, even on the nominal model.", "Fig. 3", questions)


def _stable(found: Sequence[Result]) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, ["robust-dqn"], (WIDE, SMALL), ("greedy",)):
        (robust,) = get(found, reading, "robust-dqn")
        scale = float(optimum(found, reading.world).at(NOMINAL)[0]) - waiting(reading.world)
        fall = (robust.at(NOMINAL) - robust.returns.min(axis=1)) / scale
        questions.append(Question(reading, "The share by which it falls", fall, NEVER, True, (0.0, np.inf)))
    yield from decide("The return of robust DQN is stable over failure probabilities.", "Fig. 3", questions)


def _good(found: Sequence[Result], agent: str, ways: Sequence[str]) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, [agent], (NO_SET,), ways):
        (result,) = get(found, reading, agent)
        best = float(optimum(found, reading.world).at(NOMINAL)[0])
        told = f" Exact optimum: {best:.4f}."
        questions.append(Question(reading, "Its share of the optimum", result.at(NOMINAL) / best, GOOD, after=told))
    yield from decide(f"{NAMES[agent]} performs well on the nominal model.", "Fig. 3", questions)


def _high(found: Sequence[Result], agent: str, source: str) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, [agent], (WIDE, SMALL), ("greedy", "noisy")):
        (result,) = get(found, reading, agent)
        told = f" Its return is {result.at(NOMINAL).mean():.3f}."
        questions.append(
            Question(reading, "Its place between waiting and the optimum", _advantage(found, result), HIGH, after=told)
        )
    yield from decide(f"{NAMES[agent]} reaches a high return on the nominal model.", source, questions)


def _less_conservative(found: Sequence[Result]) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, ["dqn-urbe", "robust-dqn"], (WIDE, SMALL), ("greedy", "noisy")):
        ours, robust = get(found, reading, "dqn-urbe", "robust-dqn")
        questions.append(Question(reading, f"The difference of {_both(ours, robust, NOMINAL)}", _gap(ours, robust)))
    claim = "DQN-URBE is less conservative than robust DQN: it returns more on the nominal model."
    yield from decide(claim, "Fig. 3", questions)


def _less_sensitive(found: Sequence[Result], other: str) -> Iterator[Verdict]:
    readings = list(readings_of(found, ["dqn-urbe", other], (WIDE, SMALL), ("greedy", "noisy")))
    claim = f"DQN-URBE is less sensitive to increasing failure probabilities than {NAMES[other]}."
    for reading in readings:
        ours, theirs = get(found, reading, "dqn-urbe", other)
        lost = [each.at(NOMINAL) - sum(each.at(p) for p in MISSPECIFIED) / len(MISSPECIFIED) for each in (ours, theirs)]
        high = Question(reading, "", _advantage(found, ours), HIGH)
        told = f" It loses {_mean(lost[0]):.3f}, {NAMES[other]} {_mean(lost[1]):.3f}."
        travels = compare(high, interval_of(high, len(readings)))
        told += {
            "does not hold": " It is not high on the nominal model, and who waits has nothing to lose.",
            "undecided": " Whether it is high on the nominal model is undecided, and who waits has nothing to lose.",
        }.get(travels, "")
        question = Question(reading, "What it loses less", lost[1] - lost[0], after=told)
        interval = interval_of(question, len(readings))
        outcome = compare(question, interval)
        if travels != "holds":
            outcome = "not testable" if travels == "does not hold" else "undecided"
        yield Verdict(claim, outcome, evidence(question, interval), "Fig. 3", reading.told)


def _crossing(found: Sequence[Result]) -> Iterator[Verdict]:
    readings = list(readings_of(found, ["dqn-ube", "robust-dqn"], (WIDE, SMALL), ("greedy", "noisy")))
    claim = "DQN-UBE returns more than robust DQN at low failure probabilities and less above about 0.2."
    for reading in readings:
        ours, robust = get(found, reading, "dqn-ube", "robust-dqn")
        sides = [
            Question(reading, "", a - b)
            for a, b in ((ours.at(BELOW), robust.at(BELOW)), (robust.at(ABOVE), ours.at(ABOVE)))
        ]
        before, after = (interval_of(side, 2 * len(readings)) for side in sides)
        outcomes = {compare(sides[0], before), compare(sides[1], after)}
        outcome: Outcome = next(each for each in ("does not hold", "undecided", "holds") if each in outcomes)
        told = (
            f"DQN-UBE minus robust DQN is {shown(before)} at {BELOW:g}; robust DQN minus DQN-UBE is {shown(after)} at "
            f"{ABOVE:g}, {len(ours.seeds)} seeds."
        )
        yield Verdict(claim, outcome, told, "Fig. 3", reading.told)


def _most_episodes(found: Sequence[Result]) -> Iterator[Verdict]:
    questions = []
    for reading in readings_of(found, ["dqn-urbe"], (WIDE, SMALL), ("greedy", "noisy")):
        (result,) = get(found, reading, "dqn-urbe")
        told = f" No policy has more than {float(optimum(found, reading.world).goal_at(NOMINAL)[0]):.3f}."
        questions.append(Question(reading, "Its chance of the goal", result.goal_at(NOMINAL), 0.5, False, CHANCE, told))
    yield from decide("On the nominal model DQN-URBE reaches the goal in most episodes.", "Fig. 4", questions)


def _more_often(found: Sequence[Result]) -> Iterator[Verdict]:
    readings = list(readings_of(found, ["dqn-urbe", "dqn-ube"], (WIDE, SMALL), ("greedy", "noisy")))
    claim = f"At a failure probability of {CHANGED:g} DQN-URBE reaches the goal more often than DQN-UBE."
    for reading in readings:
        ours, theirs = (each.goal_at(CHANGED) for each in get(found, reading, "dqn-urbe", "dqn-ube"))
        ceiling = float(optimum(found, reading.world).goal_at(CHANGED)[0])
        told = f" No policy has more than {ceiling:.4f}."
        what = f"The difference of their chances ({ours.mean():.4f} and {theirs.mean():.4f})"
        question = Question(reading, what, ours - theirs, 0.0, False, (-1.0, 1.0), told)
        interval = interval_of(question, len(readings))
        outcome = compare(question, interval)
        if outcome != "holds" and interval.high >= 0.0 and theirs.mean() >= CEILING * ceiling:
            outcome, question = "not testable", question._replace(after=f"{told} DQN-UBE is already there.")
        yield Verdict(claim, outcome, evidence(question, interval), "Fig. 4", reading.told)


def _control(found: Sequence[Result]) -> Iterator[Verdict]:
    """Whether any noise would have done as well as that of the head."""
    questions = []
    for reading in readings_of(found, ["dqn-urbe"], (WIDE, SMALL), ("noisy",)):
        (ours,) = get(found, reading, "dqn-urbe")
        other = find(found, reading.world, reading.members, "robust-dqn-epsilon", "epsilon")
        if other is not None:
            both = paired(ours, other)
            questions.append(Question(reading, f"The difference of {_both(*both, NOMINAL)}", _gap(*both)))
    claim = "DQN-URBE returns more on the nominal model than robust DQN with a tenth of random actions."
    yield from decide(claim, "", questions)


def _mean(samples: FloatArray) -> float:
    return round(float(samples.mean()), 9) + 0.0  # never minus zero


def _gap(first: Result, second: Result) -> FloatArray:
    difference: FloatArray = first.at(NOMINAL) - second.at(NOMINAL)
    return difference


def _both(first: Result, second: Result, p: float) -> str:
    return f"their returns ({first.at(p).mean():.3f} and {second.at(p).mean():.3f})"
