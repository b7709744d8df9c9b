"""Quantities of the Mars Rover comparison, from its rows, and the assumptions under which there are results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from urbe.paper.mars_rover import NO_SET, OPTIMUM, WORLDS, set_title
from urbe.paper.results import Results, common_seeds
from urbe.types import FloatArray

N_STATES = 101
"""Cells of the grid, and the wreck."""

HEADS = ("dqn-ube", "dqn-urbe", "calibrated-dqn-urbe")
"""Agents that can act with the noise of an uncertainty head."""


class Reading(NamedTuple):
    """The conditions of a test; `acting` applies to agents with an uncertainty head."""

    world: str
    members: str
    acting: str

    @property
    def title(self) -> str:
        """The assumption in a few words."""
        world = WORLDS[self.world]
        parts = [world.short]
        if self.members != NO_SET:
            parts.append(set_title(world, self.members))
        return ", ".join([*parts, self.acting])


def find(results: Results, world: str, members: str, agent: str, acting: str) -> Results:
    """Returns an agent with a test policy; agents without a set appear under every set. Empty if it was not run."""
    return results.where(world=world, agent=agent, acting=acting, members=(members, NO_SET))


def returns(agent: Results, p: float) -> FloatArray:
    """`(n,)` expected return of each seed at a failure probability of the grid."""
    return agent.where(metric="return", at=p).pivot("seed")


def goals(agent: Results, p: float) -> FloatArray:
    """`(n,)` probability of each seed of reaching the goal, at a failure probability of the grid."""
    return agent.where(metric="goal", at=p).pivot("seed")


def over_grid(agent: Results, metric: str) -> FloatArray:
    """`(n, P)` a metric of each seed at all failure probabilities of the grid."""
    return agent.where(metric=metric).pivot("seed", "at")


def visits(agent: Results, p: float) -> FloatArray:
    """`(S,)` expected visits of each state, mean over seeds; zeros if they were not stored."""
    kept = agent.where(metric="visits", at=p)
    places, counts = (np.array(kept.column(name)) for name in ("state", "value"))
    found: FloatArray = np.bincount(places.astype(np.int64), counts, N_STATES).astype(np.float64)
    return found / len(agent.unique("seed"))


def training(results: Results, agent: Results, metric: str) -> FloatArray:
    """`(n,)` a number of each seed that does not depend on the test policy; empty if missing."""
    names = ("world", "members", "agent")
    return results.where(acting="", metric=metric, **{name: agent.one(name) for name in names}).pivot("seed")


def readings_of(results: Results, agents: Sequence[str], sets: Sequence[str], ways: Sequence[str]) -> Iterator[Reading]:
    """The assumptions under which all agents have results; agents without an uncertainty head act greedily."""
    for world in results.unique("world"):
        for members in sets:
            for acting in ways:
                reading = Reading(world, members, acting)
                if all(_under(results, reading, agent) for agent in agents):
                    yield reading


def get(results: Results, reading: Reading, *agents: str) -> list[Results]:
    """The results of agents under an assumption, restricted to their common seeds."""
    return common_seeds(*(_under(results, reading, agent) for agent in agents))


def optimum(results: Results, world: str) -> Results:
    """The returns and probabilities of the goal that no policy can exceed in a world."""
    found = find(results, world, NO_SET, OPTIMUM, "greedy")
    if not found:
        raise ValueError(f"The rows hold nothing on the optimum of the world {world!r}; run its cell.")
    return found


def waiting(world: str) -> float:
    """The return of a rover that never makes a risky move, for 200 steps."""
    return 200.0 * WORLDS[world].rewards[2]


def _under(results: Results, reading: Reading, agent: str) -> Results:
    """An agent under an assumption; agents without an uncertainty head act greedily in noisy tests."""
    able = reading.acting != "noisy" or agent in HEADS
    return find(results, reading.world, reading.members, agent, reading.acting if able else "greedy")
