"""The rows of the Mars Rover comparison, gathered by agent and test policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.experiments.mars_readings import CHANGED, GRID, NOMINAL
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.experiments.mars_rover import Row

N_STATES = 101
"""Cells of the grid, and the wreck."""


class Result(NamedTuple):
    """One agent with one test policy in one world, over its seeds; arrays have seeds first, then `GRID`.

    Attributes:
      seeds: in increasing order.
      returns, goal: `(n, P)`.
      visits: at the nominal and at the changed probability, the mean over seeds `(S,)`; empty where not kept.
      flipped, steps, episodes, largest: `(n,)` see `Row`; empty where there are none.
      sampled, error: `(n, P)` of the played episodes; empty where none were.
    """

    world: str
    members: str
    agent: str
    acting: str
    seeds: tuple[int, ...]
    returns: FloatArray
    goal: FloatArray
    visits: dict[float, FloatArray]
    flipped: FloatArray
    steps: FloatArray
    episodes: FloatArray
    largest: FloatArray
    sampled: FloatArray
    error: FloatArray

    def at(self, p: float) -> FloatArray:
        """`(n,)` returns at a failure probability of the grid."""
        return self.returns[:, GRID.index(p)]

    def goal_at(self, p: float) -> FloatArray:
        """`(n,)` chances of the goal at a failure probability of the grid."""
        return self.goal[:, GRID.index(p)]


def results(rows: Sequence[Row]) -> list[Result]:
    """A `Result` for each world, set, agent and test policy, in the order of the rows; seeds in increasing order."""
    kinds: dict[tuple[str, str, str, str], list[Row]] = {}
    shared: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row.acting:
            kinds.setdefault((row.world, row.members, row.agent, row.acting), []).append(row)
        else:
            shared.setdefault((row.world, row.members, row.agent), []).append(row)
    return [_result(*kind, mine, shared.get(kind[:3], [])) for kind, mine in kinds.items()]


def _result(world: str, members: str, agent: str, acting: str, mine: list[Row], shared: list[Row]) -> Result:
    seeds = tuple(sorted({row.seed for row in mine}))
    visits = {p: np.zeros(N_STATES) for p in (NOMINAL, CHANGED)}
    for row in mine:
        if row.metric == "visits":
            visits[row.at][row.state] += row.value / len(seeds)
    kept = any(row.metric == "visits" for row in mine)
    return Result(
        world=world,
        members=members,
        agent=agent,
        acting=acting,
        seeds=seeds,
        returns=_over_grid(mine, seeds, "return"),
        goal=_over_grid(mine, seeds, "goal"),
        visits=visits if kept else {},
        flipped=_over_seeds(mine, seeds, "flipped"),
        steps=_over_seeds(shared, seeds, "steps"),
        episodes=_over_seeds(shared, seeds, "episodes"),
        largest=_over_seeds(shared, seeds, "largest"),
        sampled=_over_grid(mine, seeds, "sampled"),
        error=_over_grid(mine, seeds, "sampled error"),
    )


def _over_grid(rows: list[Row], seeds: tuple[int, ...], metric: str) -> FloatArray:
    found = {(row.seed, row.at): row.value for row in rows if row.metric == metric}
    return np.array([[found[seed, p] for p in GRID] for seed in seeds]) if found else np.empty((0, len(GRID)))


def _over_seeds(rows: list[Row], seeds: tuple[int, ...], metric: str) -> FloatArray:
    found = {row.seed: row.value for row in rows if row.metric == metric}
    return np.array([found[seed] for seed in seeds]) if found else np.empty(0)
