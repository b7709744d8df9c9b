"""Mars Rover: a grid, a goal in the far corner, and moves towards it that may wreck the rover [Derman2019].

    risky move       with probability `failure`: wrecked, reward `fail`, terminal
    reaching goal    reward `success`, terminal
    any other step   reward `step_reward`

Every path to the goal makes at least as many risky moves as a shortest one, so no policy reaches it more often than
(1 - failure)^d from distance d when all moves towards it are risky: policies differ in whether they travel at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number, check_nominal_params
from urbe.types import BoolArray


class GridPosition(NamedTuple):
    """A cell of the grid, counted from the top left corner."""

    row: Int[Array, ""]
    column: Int[Array, ""]


RiskRule = Callable[[GridPosition, GridPosition, GridPosition], Bool[Array, ""]]
"""Whether the move from a cell to another may fail, given the goal. It is only called for moves that change the cell:
moves against the border are never risky."""

Encoding = Callable[[Int[Array, ""], int], Float[Array, " D"]]
"""The observation of a state, given the size of the grid. The wreck has the number size^2."""


def any_approach(before: GridPosition, after: GridPosition, goal: GridPosition) -> Bool[Array, ""]:
    """Every move that reduces the Manhattan distance to the goal."""
    return _distance(after, goal) < _distance(before, goal)


def vertical_approach(before: GridPosition, after: GridPosition, goal: GridPosition) -> Bool[Array, ""]:
    """Only moves that bring the rover nearer to the goal's row."""
    return jnp.abs(goal.row - after.row) < jnp.abs(goal.row - before.row)


def horizontal_approach(before: GridPosition, after: GridPosition, goal: GridPosition) -> Bool[Array, ""]:
    """Only moves that bring the rover nearer to the goal's column."""
    return jnp.abs(goal.column - after.column) < jnp.abs(goal.column - before.column)


def diagonal_approach(before: GridPosition, after: GridPosition, goal: GridPosition) -> Bool[Array, ""]:
    """Moves that reduce the distance while both row and column are off: once in line with the goal, none is risky."""
    off_both_axes = (before.row != goal.row) & (before.column != goal.column)
    return off_both_axes & any_approach(before, after, goal)


def xy(state: Int[Array, ""], size: int) -> Float[Array, " D"]:
    """Column and row, each in [0, 1]; (-1, -1) for the wreck."""
    place = jnp.stack((state % size, state // size)).astype(jnp.float32) / jnp.float32(size - 1)
    return jnp.where(state < size * size, place, jnp.float32(-1.0))


def one_hot(state: Int[Array, ""], size: int) -> Float[Array, " D"]:
    """A one in the place of the cell, `(size^2,)`; all zero for the wreck."""
    return (jnp.arange(size * size, dtype=jnp.int32) == state).astype(jnp.float32)


class MarsRoverParams(NamedTuple):
    """The uncertain parameter: the probability that a risky move fails."""

    failure: Number = 0.005


@dataclass(frozen=True)
class MarsRover:
    """The rover of [Derman2019]: a state is the cell's number row * size + column, or size^2 for the wreck.

    Actions 0, 1, 2, 3 go up, right, down, left; a move against the border stays and is not risky. The goal is the
    bottom right cell, the start uniform in a zone at the top left.

    Departure: the paper states size, time limit and nominal failure probability, but not the rewards, the zone, or
    which moves are risky. With the defaults travelling and waiting earn the same over the time limit at a failure
    probability of about 0.2, where the paper's curves cross; `urbe.simulators.calibrated` finds the step reward for
    other choices.

    Args:
      size: cells on a side, at least 2.
      success, fail, step_reward: rewards of reaching the goal, of failing, and of any other step.
      start_zone: (rows, columns) of the zone in which episodes start; the goal is outside of it.
      risk: which moves may fail: `any_approach`, `vertical_approach`, `horizontal_approach`, `diagonal_approach`, or a
        traceable function of (before, after, goal).
      encoding: the observation: `xy`, `one_hot`, or a traceable function of (state, size).
      time_limit: steps after which an episode is truncated.
      nominal_params: the nominal parameters.

    >>> import jax.numpy as jnp
    >>> rover = MarsRover()
    >>> down = rover.outcomes(jnp.int32(0), jnp.int32(2), MarsRoverParams(0.25))
    >>> down.probability.tolist(), down.state.tolist(), down.terminated.tolist()
    ([0.25, 0.75], [100, 10], [True, False])
    """

    size: int = 10
    success: float = 1.0
    fail: float = -1.0
    step_reward: float = -0.0048
    start_zone: tuple[int, int] = (3, 3)
    risk: RiskRule = any_approach
    encoding: Encoding = xy
    time_limit: int = 200
    nominal_params: MarsRoverParams = MarsRoverParams()

    def __post_init__(self) -> None:
        checks.whole_number("size", self.size, 2)
        for name in ("success", "fail", "step_reward"):
            checks.finite_number(name, getattr(self, name))
        checks.whole_number("time_limit", self.time_limit, 1)
        rows, columns = self.start_zone
        for name, length in (("start_zone[0]", rows), ("start_zone[1]", columns)):
            if checks.whole_number(name, length, 1) > self.size:
                raise ValueError(f"{name} is {length}, expected at most the size of the grid, {self.size}.")
        if rows == columns == self.size:
            raise ValueError(f"start_zone is {self.start_zone}, the whole grid, expected a zone without the goal.")
        check_nominal_params(self, self.nominal_params)

    @property
    def n_states(self) -> int:
        """The cells and the wreck."""
        return self.size * self.size + 1

    @property
    def n_actions(self) -> int:
        """Up, right, down, left."""
        return 4

    @property
    def goal(self) -> int:
        """The number of the goal's cell."""
        return self.size * self.size - 1

    @property
    def wreck(self) -> int:
        """The number of the state in which failed episodes end."""
        return self.size * self.size

    def nominal(self) -> MarsRoverParams:
        """`nominal_params`, as float32 numbers."""
        return MarsRoverParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """`failure` is a probability."""
        checks.number("failure", params["failure"], 0.0, 1.0)

    def available(self) -> BoolArray:
        return np.ones((self.n_states, self.n_actions), dtype=np.bool_)

    def start_distribution(self, params: MarsRoverParams) -> Float[Array, " S"]:
        """Uniform over the zone."""
        rows, columns = self.start_zone
        state = np.arange(self.n_states)
        inside = (state // self.size < rows) & (state % self.size < columns)
        return jnp.asarray(inside / inside.sum(), jnp.result_type(params.failure, jnp.float32))

    def start(self, key: Key, params: MarsRoverParams) -> Int[Array, ""]:
        """Draws a cell of the zone. The key is consumed."""
        rows, columns = self.start_zone
        drawn = jax.random.randint(key, (), 0, rows * columns, dtype=jnp.int32)
        return drawn // columns * self.size + drawn % columns

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""], params: MarsRoverParams) -> Outcomes:
        """Two outcomes: the rover fails, or it moves. Goal and wreck are never left and pay nothing."""
        number = jnp.result_type(params.failure, jnp.float32)  # float64 where parameters are, so that models are exact
        ended = state >= self.goal
        before, goal = self._cell(state), self._cell(jnp.int32(self.goal))
        sideways = jnp.asarray((0, 1, 0, -1), jnp.int32)[action]
        downwards = jnp.asarray((-1, 0, 1, 0), jnp.int32)[action]
        after = GridPosition(
            jnp.clip(before.row + downwards, 0, self.size - 1), jnp.clip(before.column + sideways, 0, self.size - 1)
        )
        target = after.row * self.size + after.column
        risky = self.risk(before, after, goal) & (target != state) & ~ended
        failure = jnp.where(risky, jnp.asarray(params.failure, number), 0)
        arrived = target == self.goal
        reward = jnp.asarray((self.fail, jnp.where(arrived, self.success, self.step_reward)), number)
        return Outcomes(
            probability=jnp.stack((failure, 1 - failure)),
            state=jnp.where(ended, state, jnp.stack((jnp.int32(self.wreck), target))),
            reward=jnp.where(ended, 0, reward),
            terminated=jnp.stack((jnp.bool_(True), arrived | ended)),
        )

    def observe(self, state: Int[Array, ""]) -> Float[Array, " D"]:
        return self.encoding(state, self.size)

    def _cell(self, state: Int[Array, ""]) -> GridPosition:
        return GridPosition(state // self.size, state % self.size)


def _distance(cell: GridPosition, goal: GridPosition) -> Int[Array, ""]:
    return jnp.abs(goal.row - cell.row) + jnp.abs(goal.column - cell.column)
