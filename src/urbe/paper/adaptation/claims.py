"""The requirements on the belief agent, and the paper's claims restated for it, with verdicts from the numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from urbe.paper.adaptation import (
    ACROBOT,
    BELIEF,
    CAR,
    EVEN,
    GAIN,
    LEARNING,
    LEARNING_BELIEF,
    LENGTH,
    NOMINAL,
    ORACLE,
    PENDULUM,
    RANDOMISED,
    ROBUST,
    ROVER,
    STATES,
)
from urbe.paper.adaptation.results import (
    AGAIN,
    WAITING,
    advantage,
    agents_of,
    of_phases,
    regrets_of_seeds,
    returns,
    worlds_of,
)
from urbe.paper.results import Results
from urbe.report.claims import judge
from urbe.report.content import Verdict
from urbe.report.numbers import percent
from urbe.statistics.verdicts import ExactNumber, Mean, Quantity, Question, Test
from urbe.types import FloatArray

SHARES = {"schedule": 0.82, "slow schedule": 0.88, "stationary 0.005": 0.97}
"""Share of the oracle's advantage that the belief agent should keep in these worlds."""

SPREAD = 0.1
"""The largest distance of a training seed's share from the median over seeds."""

ADVERSE, TOLERATED = "stationary 0.3", 0.05
"""Worlds in which waiting is best, and the tolerance, as a share of the range between agents."""

BALANCED = {"schedule": 195.0, "between members": 195.0, "outside the set": 190.0}
"""Returns that the belief agent should reach with every gain, from the first episode on."""

NEARLY = 0.03
"""Tolerance relative to nominal DQN without changes, as a share."""

NEGLIGIBLE = {LENGTH: 2.0, PENDULUM: 1.0}
"""Tolerance relative to domain randomisation if one policy may suit all members: one step in a hundred."""

AT_REST = {ROVER: "stationary 0.005", EVEN: "stationary 0.005", STATES: "stationary 0.9", GAIN: "nominal",
           LENGTH: "nominal", ACROBOT: "nominal", CAR: "nominal", PENDULUM: "nominal"}  # fmt: skip
"""Worlds in which the nominal parameters do not change; in the seven states, the world nearest to that."""

DOMAINS = (ROVER, EVEN, STATES, GAIN, LENGTH, ACROBOT, CAR, PENDULUM)


def verdicts(results: Results) -> list[Verdict]:
    """Returns the verdicts on all claims, for the domains in the results."""
    parts = {domain: part for domain in DOMAINS if (part := results.where(domain=domain))}
    found = [*_shares(parts), *_gain(parts), *_lengths(parts), *_nominal(parts), *_restated(parts), *_learning(parts)]
    return [*found, *_regrets(parts)]


def _has(results: Results, *agents: str) -> bool:
    return all(bool(results.where(agent=agent)) for agent in agents)


def minus(one: FloatArray, other: FloatArray) -> Quantity:
    """The mean difference, paired by seed if both were trained; a number if neither was."""
    if len(one) > 1 and len(other) > 1:
        both = min(len(one), len(other))
        return Mean(one[:both] - other[:both])
    return Mean(one - other.mean() if len(one) > 1 else one.mean() - other)


def _difference(results: Results, agent: str, other: str, world: str) -> Quantity:
    return _less(results, returns(results, agent, world), returns(results, other, world))


def _shares(parts: dict[str, Results]) -> Iterable[Verdict]:
    shares = {
        world: advantage(part, BELIEF, world)
        for domain, part in parts.items()
        if domain == ROVER and _has(part, ORACLE, BELIEF)
        for world in SHARES
        if world in worlds_of(part)
    }
    if shares:
        kept = [
            Test([Question("The share", Mean(share), SHARES[world])], reading=f"{world}, {percent(SHARES[world])}")
            for world, share in shares.items()
        ]
        yield from judge("The belief agent keeps the required share of the oracle's advantage over waiting.", kept)
        close = [
            Test(
                [Question("The tolerated distance minus the largest one of these seeds",
                          ExactNumber(SPREAD - float(np.abs(share - np.median(share)).max())))],
                reading=world,
            )
            for world, share in shares.items()
        ]  # fmt: skip
        yield from judge(f"Every training seed's share is within {percent(SPREAD)} of the median.", close)
    if ROVER in parts and _has(parts[ROVER], BELIEF, NOMINAL, ROBUST):
        part = parts[ROVER]
        earned = [returns(part, agent, ADVERSE).mean() for agent in agents_of(part)]
        least = WAITING - TOLERATED * (max(earned) - min(earned))
        question = Question("Its return", Mean(returns(part, BELIEF, ADVERSE)), least)
        yield from judge("If waiting is best, the belief agent loses little compared with it.", [Test([question])])


def _gain(parts: dict[str, Results]) -> Iterable[Verdict]:
    if GAIN not in parts or not _has(parts[GAIN], BELIEF):
        return
    part = parts[GAIN]
    for metric, when in (("phase", "in every phase"), ("first", "in the first episode of every phase")):
        tests = [
            Test(
                [
                    Question(f"Its return in phase {at + 1}", Mean(earned), wanted)
                    for at, earned in enumerate(of_phases(part, BELIEF, world, metric))
                ],
                reading=f"{world}, {wanted:g}",
            )
            for world, wanted in BALANCED.items()
            if world in worlds_of(part)
        ]
        yield from judge(f"The belief agent balances the pole with every gain, {when}.", tests)


def _lengths(parts: dict[str, Results]) -> Iterable[Verdict]:
    tests = [
        Test([Question("The difference", _difference(parts[domain], BELIEF, RANDOMISED, world), -tolerated)],
             reading=f"{domain}, {world}")
        for domain, tolerated in NEGLIGIBLE.items()
        if domain in parts and _has(parts[domain], BELIEF, RANDOMISED)
        for world in ("schedule", "drift")
        if world in worlds_of(parts[domain])
    ]  # fmt: skip
    if tests:
        yield from judge(
            "If one policy may suit all members, the belief agent earns no less than domain randomisation.", tests
        )


def _nominal(parts: dict[str, Results]) -> Iterable[Verdict]:
    tests = []
    for domain, world in AT_REST.items():
        if domain in parts and _has(parts[domain], BELIEF, NOMINAL) and world in worlds_of(parts[domain]):
            allowed = NEARLY * abs(float(returns(parts[domain], NOMINAL, world).mean()))
            difference = _difference(parts[domain], BELIEF, NOMINAL, world)
            tests.append(Test([Question("The difference from DQN", difference, -allowed)], reading=domain))
    if tests:
        yield from judge(f"With nominal parameters the belief agent is within {percent(NEARLY)} of nominal DQN.", tests)


def _restated(parts: dict[str, Results]) -> Iterable[Verdict]:
    """The paper's claims about its own agent, restated for the adaptive one; a reading for each domain."""

    def compared(other: str, world: Callable[[str], str | None], name: str) -> list[Test]:
        return [
            Test([Question(name, _difference(part, BELIEF, other, where))], reading=domain)
            for domain, part in parts.items()
            if (where := world(domain)) is not None and where in worlds_of(part) and _has(part, BELIEF, other)
        ]

    if bold := compared(ROBUST, AT_REST.get, "The difference if nothing changes"):
        yield from judge("The belief agent is less conservative than the robust agent.", bold)
    if calm := compared(NOMINAL, lambda _: "schedule", "The difference under the schedule"):
        yield from judge(
            "The belief agent is less sensitive to change than the nominal agent (to which DQN-UBE, too, converges on "
            "Mars Rover).",
            calm,
        )
    faster, again = [], []
    for domain, part in parts.items():
        there = [agent for agent in (NOMINAL, ROBUST) if _has(part, agent)]
        if _has(part.where(world="schedule", metric="early"), BELIEF, ORACLE) and there:
            faster.append(Test(
                [Question(f"The difference from {agent} in the first episodes of later phases",
                          _early(part, agent)) for agent in there],
                reading=domain,
            ))  # fmt: skip
            again.append(Test(list(_late(part, domain)), reading=domain))
    if faster:
        yield from judge("The belief agent recovers faster after a change than nominal and robust agents.", faster)
        yield from judge("The belief agent reaches the highest return again in every phase.", again)


def _learning(parts: dict[str, Results]) -> Iterable[Verdict]:
    """The effect of gradient steps in deployment, on the domains with agents that take them."""
    there = {domain: part for domain, part in parts.items() if _has(part, BELIEF, ORACLE, LEARNING)}
    if not there:
        return

    def early(agent: str, other: str) -> list[Test]:
        name = "The difference in the first episodes of later phases"
        return [
            Test([Question(name, _early(part, other, agent))], reading=domain)
            for domain, part in there.items()
            if _has(part, agent, other)
        ]

    yield from judge("The belief agent recovers faster than a DQN that keeps on learning.", early(BELIEF, LEARNING))
    if deep := [Test(list(_late(part, domain, LEARNING)), reading=domain) for domain, part in there.items()]:
        yield from judge("A DQN that keeps on learning reaches the highest return again in every phase.", deep)
    if improved := [
        Test([Question("The difference under the schedule", _difference(part, LEARNING_BELIEF, BELIEF, "schedule"))],
             reading=domain)
        for domain, part in there.items()
        if _has(part, LEARNING_BELIEF)
    ]:  # fmt: skip
        yield from judge("Gradient steps in deployment improve the belief agent.", improved)


def _early(results: Results, other: str, agent: str = BELIEF) -> Quantity:
    return _less(results, *(of_phases(results, each, "schedule", "early")[1:].mean(axis=0) for each in (agent, other)))


def _late(results: Results, domain: str, of: str = BELIEF) -> Iterable[Question]:
    """For each phase, the margin of the last episodes over the tolerated distance from the oracle."""
    late = {agent: of_phases(results, agent, "schedule", "late").mean(axis=1) for agent in agents_of(results)}
    width = np.ptp(np.stack(list(late.values())), axis=0)
    most = of_phases(results, ORACLE, "schedule", "late").mean(axis=1)
    for at, earned in enumerate(of_phases(results, of, "schedule", "late")):
        above = earned - (most[at] - AGAIN * width[at])
        quantity = ExactNumber(float(above.mean())) if domain == STATES else Mean(above)
        yield Question(f"Phase {at + 1}: its return minus the required one", quantity)


def _regrets(parts: dict[str, Results]) -> Iterable[Verdict]:
    """Regrets over all worlds of each domain; worlds in which all agents earn the same have no unit."""
    thirds: list[Test] = []
    smallest: list[Test] = []
    lowest: list[Test] = []
    for domain, part in parts.items():
        if not _has(part, ORACLE, BELIEF, NOMINAL, ROBUST):
            continue
        found = regrets_of_seeds(part)
        with_unit = np.isfinite(np.concatenate(list(found.values()))).all(axis=0)
        largest = {agent: shares[:, with_unit].max(axis=1) for agent, shares in found.items()}
        mean = {agent: shares[:, with_unit].mean(axis=1) for agent, shares in found.items()}
        reading = f"{domain}, {with_unit.sum()} environments"
        margins = {other: largest[other] / 3.0 for other in (NOMINAL, ROBUST)}
        others = [agent for agent in found if agent != BELIEF]
        for tests, name, of in (
            (thirds, "A third of {}'s minus its own", margins),
            (smallest, "{}'s minus its own", {other: largest[other] for other in others}),
            (lowest, "{}'s minus its own", {other: mean[other] for other in others}),
        ):
            own = mean[BELIEF] if tests is lowest else largest[BELIEF]
            tests.append(
                Test(
                    [Question(name.format(other), _less(part, each, own)) for other, each in of.items()],
                    reading=reading,
                )
            )
    for claim, tests in (
        (
            "Over all environments, the belief agent's largest regret is at most a third of the nominal and the robust "
            "agent's.",
            thirds,
        ),
        ("No other agent has a smaller largest regret.", smallest),
        ("Every other agent has a larger mean regret.", lowest),
    ):
        if tests:
            yield from judge(claim, tests)


def _less(results: Results, one: FloatArray, other: FloatArray) -> Quantity:
    """`minus`, or a number in the seven states, whose agents are computed."""
    return ExactNumber(float(one.mean() - other.mean())) if results.one("domain") == STATES else minus(one, other)
