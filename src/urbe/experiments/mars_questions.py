"""Questions put to the Mars Rover results: under which reading, of which agents, and how an interval answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from urbe.experiments.mars_readings import NO_SET, OPTIMUM, WORLDS, set_told
from urbe.experiments.mars_results import Result
from urbe.report.content import Outcome, Verdict
from urbe.report.numbers import decimals, interval_text
from urbe.statistics.estimates import Interval, mean_interval
from urbe.types import FloatArray

HEADS = ("dqn-ube", "dqn-urbe", "calibrated-dqn-urbe")
"""Agents that can act by the noise of an uncertainty head."""


class Reading(NamedTuple):
    """Where a claim is tested; `acting` is that of the agents with an uncertainty head."""

    world: str
    members: str
    acting: str

    @property
    def told(self) -> str:
        """The reading in a few words."""
        world = WORLDS[self.world]
        parts = [world.short]
        if self.members != NO_SET:
            parts.append(set_told(world, self.members))
        return ", ".join([*parts, self.acting])


def find(found: Sequence[Result], world: str, members: str, agent: str, acting: str) -> Result | None:
    """The result of an agent; those without a set are found under every set."""
    for result in found:
        alike = (result.world, result.agent, result.acting) == (world, agent, acting)
        if alike and result.members in (members, NO_SET):
            return result
    return None


def paired(first: Result, second: Result) -> tuple[Result, Result]:
    """Both, with the seeds they have in common alone, in one order."""
    common = tuple(seed for seed in first.seeds if seed in second.seeds)
    return _only(first, common), _only(second, common)


def _only(result: Result, seeds: tuple[int, ...]) -> Result:
    places = [result.seeds.index(seed) for seed in seeds]
    return result._replace(seeds=seeds, returns=result.returns[places], goal=result.goal[places])


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


def readings_of(
    found: Sequence[Result], agents: Sequence[str], sets: Sequence[str], ways: Sequence[str]
) -> Iterator[Reading]:
    """Those for which all agents have results: with the test policy, or greedy for agents without such a one."""
    for world in dict.fromkeys(result.world for result in found):
        for members in sets:
            for acting in ways:
                if all(_of(found, Reading(world, members, acting), agent) for agent in agents):
                    yield Reading(world, members, acting)


def _of(found: Sequence[Result], reading: Reading, agent: str) -> Result | None:
    """An agent under a reading; those without an uncertainty head act greedily where others act by its noise."""
    able = reading.acting != "noisy" or agent in HEADS
    return find(found, reading.world, reading.members, agent, reading.acting if able else "greedy")


def get(found: Sequence[Result], reading: Reading, *agents: str) -> list[Result]:
    """The agents' results, which exist, by the seeds they have in common."""
    chosen = [result for agent in agents if (result := _of(found, reading, agent)) is not None]
    return list(paired(*chosen)) if len(chosen) == 2 else chosen


def optimum(found: Sequence[Result], world: str) -> Result:
    """What no policy can beat in a world: returns and chances of the goal, `(1, P)`."""
    result = find(found, world, NO_SET, OPTIMUM, "greedy")
    if result is None:
        raise ValueError(f"The rows hold nothing on the optimum of the world {world!r}; run its cell.")
    return result


def waiting(world: str) -> float:
    """The return of staying out of harm's way for 200 steps."""
    return 200.0 * WORLDS[world].rewards[2]
