"""The results of the Mars Rover comparison by agent and test policy, and the readings they answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from urbe.paper.mars_rover.cells import CHANGED, GRID, NO_SET, NOMINAL, OPTIMUM, WORLDS, set_told
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.paper.mars_rover.cells import Row

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


def analyse(rows: Sequence[Row]) -> list[Result]:
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
