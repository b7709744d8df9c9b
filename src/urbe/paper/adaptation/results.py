"""The results of the adaptation study: quantities for claims and figures."""

from __future__ import annotations

import numpy as np

from urbe.paper.adaptation import LEARNERS, ORACLE, SCHEDULE, YARDSTICKS
from urbe.paper.results import Results
from urbe.statistics import recovery_times, relative_regret
from urbe.types import FloatArray

WAITING = -0.2
"""The return of waiting until the time limit on Mars Rover."""


def returns(results: Results, agent: str, world: str, metric: str = "return") -> FloatArray:
    """`(seeds,)` returns of an agent in a world; a single one for planned agents."""
    return results.where(agent=agent, world=world, metric=metric).pivot("seed")


def of_phases(results: Results, agent: str, world: str, metric: str) -> FloatArray:
    """`(phases, seeds)` values of an agent in a world."""
    return results.where(agent=agent, world=world, metric=metric).pivot("at", "seed")


def agents_of(results: Results) -> list[str]:
    """The agents in the results, without yardsticks and agents that are deployed in few worlds."""
    return [agent for agent in results.unique("agent") if agent not in (*YARDSTICKS, *LEARNERS)]


def worlds_of(results: Results) -> list[str]:
    """The worlds in the results."""
    return list(results.unique("world"))


def advantage(results: Results, agent: str, world: str) -> FloatArray:
    """`(seeds,)` shares of the oracle's advantage over waiting."""
    most = oracle(results, world)
    shares: FloatArray = (returns(results, agent, world) - WAITING) / (most - WAITING)
    return shares


AGAIN = 0.1
"""Tolerance relative to the oracle at the end of a phase, as a share of the range between agents."""

AVERAGED = 5
"""Largest number of episodes whose mean return counts as a recovery; a fifth of shorter phases."""


def recovered_at(results: Results) -> dict[str, FloatArray]:
    """`(phases - 1, seeds)` episodes after each change of the schedule before an agent is as good as it has to be.

    That is, until the return, averaged over lives and some episodes, is within `AGAIN` of the oracle's at the end of
    the phase. An agent that is not before the next change has the length of the phase.
    """
    late = {agent: of_phases(results, agent, SCHEDULE, "late").mean(axis=1) for agent in results.unique("agent")}
    targets = late[ORACLE] - AGAIN * np.ptp(np.stack([late[agent] for agent in agents_of(results)]), axis=0)
    found = {}
    for agent in results.unique("agent"):
        curves = of_phases(results, agent, SCHEDULE, "curve").T  # (seeds, episodes)
        length = curves.shape[1] // len(targets)
        window = min(AVERAGED, max(length // 5, 1))
        found[agent] = recovery_times(curves, [length] * len(targets), targets, window)[:, 1:].T.astype(np.float64)
    return found


def oracle(results: Results, world: str) -> float:
    """The oracle's return, averaged over its training seeds if it was trained."""
    return float(returns(results, ORACLE, world).mean())


def regrets(results: Results) -> dict[str, FloatArray]:
    """`(worlds,)` relative regrets of every agent, of its mean over training seeds; in the order of `worlds_of`."""
    worlds = worlds_of(results)
    earned = {agent: [returns(results, agent, world).mean() for world in worlds] for agent in agents_of(results)}
    return relative_regret(earned, [oracle(results, world) for world in worlds])


def regrets_of_seeds(results: Results) -> dict[str, FloatArray]:
    """`(seeds, worlds)` relative regrets of each training seed; a single row for agents that are planned.

    The unit in each world is the range of the agents' means over their seeds, as in `regrets`.
    """
    worlds = worlds_of(results)
    earned = {
        agent: np.stack([returns(results, agent, world) for world in worlds], axis=1) for agent in agents_of(results)
    }
    means = np.stack([each.mean(axis=0) for each in earned.values()])
    width, best = np.ptp(means, axis=0), np.array([oracle(results, world) for world in worlds])
    with np.errstate(divide="ignore", invalid="ignore"):
        return {agent: np.where(best == each, 0.0, (best - each) / width) for agent, each in earned.items()}
