"""The results of the adaptation study: quantities, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from urbe.paper.adaptation import BELIEF, GAIN, NOMINAL, ORACLE, ROBUST, ROVER, YARDSTICKS
from urbe.paper.results import Results
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.statistics import relative_regret
from urbe.statistics.verdicts import ExactNumber, Mean, Question, Test
from urbe.types import FloatArray

WAITING = -0.2
"""What waiting until the time limit earns on Mars Rover."""

SHARES = {"schedule": 0.82, "slow schedule": 0.88, "stationary 0.005": 0.97}
"""Of the oracle's advantage that the belief agent should keep in these worlds."""

ADVERSE, TOLERATED = "stationary 0.3", 0.05
"""Where waiting is best, and by how much of the range between agents it may be missed."""

BALANCED = {"schedule": 195.0, "between members": 195.0, "outside the set": 190.0}
"""Returns that the belief agent should reach with every gain, from the first episode on."""


def returns(results: Results, agent: str, world: str, metric: str = "return") -> FloatArray:
    """`(seeds,)` of an agent in a world; a single one for agents that are planned."""
    return results.where(agent=agent, world=world, metric=metric).pivot("seed")


def agents_of(results: Results) -> list[str]:
    """The agents there are, without yardsticks."""
    return [agent for agent in results.unique("agent") if agent not in YARDSTICKS]


def advantage(results: Results, agent: str, world: str) -> FloatArray:
    """`(seeds,)` shares of what the oracle earns more than waiting."""
    most = float(returns(results, ORACLE, world)[0])
    shares: FloatArray = (returns(results, agent, world) - WAITING) / (most - WAITING)
    return shares


def regrets(results: Results) -> dict[str, FloatArray]:
    """`(worlds,)` relative regrets of every agent, of its mean over training seeds; in the order of `worlds_of`."""
    worlds = worlds_of(results)
    earned = {agent: [returns(results, agent, world).mean() for world in worlds] for agent in agents_of(results)}
    return relative_regret(earned, [float(returns(results, ORACLE, world)[0]) for world in worlds])


def worlds_of(results: Results) -> list[str]:
    """The worlds there are."""
    return list(results.unique("world"))


def verdicts(results: Results) -> list[Verdict]:
    """On what is wanted of the belief agent, and on the paper's claims restated for it."""
    rover, gain = (results.where(domain=domain) for domain in (ROVER, GAIN))
    return [*_rover(rover), *_gain(gain), *_regret(rover)]


def _has(results: Results, *agents: str) -> bool:
    return all(bool(results.where(agent=agent)) for agent in agents)


def _rover(results: Results) -> Iterable[Verdict]:
    if not _has(results, ORACLE, BELIEF):
        return
    tests = [
        Test([Question("The share", Mean(advantage(results, BELIEF, world)), wanted)], reading=f"{world}, {wanted:.0%}")
        for world, wanted in SHARES.items()
        if world in worlds_of(results)
    ]
    yield from judge("The belief agent keeps the wanted share of the oracle's advantage over waiting.", tests)
    if _has(results, NOMINAL, ROBUST):
        earned = [returns(results, agent, ADVERSE).mean() for agent in agents_of(results)]
        least = WAITING - TOLERATED * (max(earned) - min(earned))
        question = Question("Its return", Mean(returns(results, BELIEF, ADVERSE)), least)
        yield from judge("Where waiting is best, the belief agent hardly misses it.", [Test([question])])
        bold = Question("The difference at the nominal probability", _difference(results, ROBUST, "stationary 0.005"))
        yield from judge("The belief agent is less conservative than the robust policy.", [Test([bold])])
        calm = Question("The difference under the schedule", _difference(results, NOMINAL, "schedule"))
        yield from judge("The belief agent is less sensitive to change than the nominal policy.", [Test([calm])])


def _difference(results: Results, other: str, world: str) -> Mean:
    return Mean(returns(results, BELIEF, world) - returns(results, other, world).mean())


def _gain(results: Results) -> Iterable[Verdict]:
    if not _has(results, BELIEF):
        return
    for metric, when in (("phase", "in every phase"), ("first", "in the first episode of every phase")):
        tests = [
            Test(
                [
                    Question(f"Its return in phase {at + 1}", Mean(returns(part, BELIEF, world, metric)), wanted)
                    for (at,), part in results.where(agent=BELIEF, world=world, metric=metric).groups("at")
                ],
                reading=f"{world}, {wanted:g}",
            )
            for world, wanted in BALANCED.items()
            if world in worlds_of(results)
        ]
        yield from judge(f"The belief agent balances the pole with every gain, {when}.", tests)


def _regret(results: Results) -> Iterable[Verdict]:
    if not _has(results, ORACLE, BELIEF, NOMINAL, ROBUST):
        return
    largest = {agent: float(np.max(shares)) for agent, shares in regrets(results).items()}
    mean = {agent: float(np.mean(shares)) for agent, shares in regrets(results).items()}
    ours = largest[BELIEF]
    third = [
        Question(f"A third of the {other} policy's minus its own", ExactNumber(largest[other] / 3.0 - ours))
        for other in (NOMINAL, ROBUST)
    ]
    yield from judge(
        "Over all worlds, the belief agent's largest regret is at most a third of the nominal and the robust policy's.",
        [Test(third)],
    )
    others = [agent for agent in largest if agent != BELIEF]
    lowest = Question("The lowest of the others' minus its own", ExactNumber(min(largest[a] for a in others) - ours))
    yield from judge("No other agent has a smaller largest regret.", [Test([lowest])])
    average = Question(
        "The lowest of the others' minus its own", ExactNumber(min(mean[a] for a in others) - mean[BELIEF])
    )
    yield from judge("No other agent has a smaller mean regret.", [Test([average])])
