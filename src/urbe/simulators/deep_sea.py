"""Deep sea: a diver sinks one row per step, and only one sequence of moves reaches the treasure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from urbe import checks
from urbe.simulators.base import Key, Outcomes
from urbe.simulators.limits import Number, check_nominal_params
from urbe.types import BoolArray, IntArray


class DeepSeaParams(NamedTuple):
    """The total cost of going right in all rows, the reward of the treasure, and the probability that a move slips."""

    move_cost: Number = 0.01
    treasure: Number = 1.0
    slip: Number = 0.0


@dataclass(frozen=True)
class DeepSea:
    """The deep sea [Osband2019] of N rows; the state is a cell's number, row (row + 1) / 2 + column, column <= row.

    Of the two actions one goes left (staying at column 0) and one right, at a cost of move_cost / N. Each step sinks by
    one row; after the last row the dive is over, in state N (N + 1) / 2. With probability `slip` going right leads
    straight down instead. Going right in the last cell of the last row pays the treasure, whether it slips or not.

    Only a diver who always goes right and never slips finds it; off this path, going left is optimal, so the best
    expected return is

        max{ 0, treasure q^(N-1) - (move_cost / N) sum_{k<N} q^k },   q = discount (1 - slip),

    0.99 without discount for the nominal parameters. All other dives without slips return 0 or less, so a learner
    without deep exploration needs about 2^N of them.

    The observation is one-hot, `N * N` numbers with a 1 at row N + column; all zeros when the dive is over.

    Args:
      size: N, number of rows.
      seed: draws which action goes right in each cell, as in `urbe.library.deep_sea`; with None, action 1 does
        everywhere.
      nominal_params: the nominal parameters.
    """

    size: int = 10
    seed: int | None = None
    nominal_params: DeepSeaParams = DeepSeaParams()

    def __post_init__(self) -> None:
        checks.whole_number("size", self.size, 1)
        if self.seed is not None:
            checks.whole_number("seed", self.seed, 0)
        check_nominal_params(self, self.nominal_params)

    @property
    def n_actions(self) -> int:
        """Left and right; the cell determines which is which."""
        return 2

    @property
    def time_limit(self) -> int:
        """The dive terminates after this many steps."""
        return self.size

    @property
    def n_states(self) -> int:
        """All cells, and the end."""
        return self.size * (self.size + 1) // 2 + 1

    def nominal(self) -> DeepSeaParams:
        """`nominal_params`, as float32 numbers."""
        return DeepSeaParams(*map(jnp.float32, self.nominal_params))

    def check_params(self, params: Mapping[str, float]) -> None:
        """`slip` is a probability."""
        checks.number("slip", params["slip"], 0.0, 1.0)

    def observation_bounds(self) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " D"]]:
        """Zeros and ones."""
        return np.zeros(self.size**2, dtype=np.float32), np.ones(self.size**2, dtype=np.float32)

    def best_return(self, params: DeepSeaParams, discount: float = 1.0) -> float:
        """The best expected discounted return, in float64.

        >>> round(DeepSea(10).best_return(DeepSeaParams()), 6)
        0.99
        """
        q = discount * (1.0 - float(params.slip))
        way = sum(q**k for k in range(self.size)) * float(params.move_cost) / self.size
        return max(0.0, float(params.treasure) * q ** (self.size - 1) - way)

    def available(self) -> BoolArray:
        """`(S, A)`: both actions everywhere."""
        return np.ones((self.n_states, self.n_actions), dtype=np.bool_)

    def start_distribution(self, params: DeepSeaParams) -> Float[Array, " S"]:
        """The distribution of `start`: the first cell."""
        return jnp.zeros(self.n_states, jnp.result_type(*params, jnp.float32)).at[0].set(1)

    def start(self, key: Key, params: DeepSeaParams) -> Int[Array, ""]:
        """The first cell."""
        return jnp.zeros((), jnp.int32)

    def outcomes(self, state: Int[Array, ""], action: Int[Array, ""], params: DeepSeaParams) -> Outcomes:
        """The intended move, and straight down."""
        number = jnp.result_type(*params, jnp.float32)  # float64 if parameters are, so that models are exact
        rows, columns = _cells(self.size)
        row, column = jnp.asarray(rows, jnp.int32)[state], jnp.asarray(columns, jnp.int32)[state]
        right = jnp.asarray(_right(self.size, self.seed), jnp.int32)[state] == action
        slips = jnp.where(right, params.slip, 0.0)
        meant = jnp.where(right, column + 1, jnp.maximum(column - 1, 0))
        below = jnp.stack([meant, jnp.where(right, column, meant)]) + (row + 1) * (row + 2) // 2
        over = row >= self.size - 1
        found = right & (row == self.size - 1) & (column == self.size - 1)
        reward = jnp.where(right, -params.move_cost / self.size, 0.0) + jnp.where(found, params.treasure, 0.0)
        return Outcomes(
            jnp.stack([1.0 - slips, slips]).astype(number),
            jnp.where(over, self.n_states - 1, below).astype(jnp.int32),
            jnp.broadcast_to(reward, (2,)).astype(number),
            jnp.broadcast_to(over, (2,)),
        )

    def observe(self, state: Int[Array, ""]) -> Float[Array, " D"]:
        """One-hot; all zeros at the end."""
        rows, columns = _cells(self.size)
        place = jnp.asarray(rows * self.size + columns, jnp.int32)[state]
        return jax.nn.one_hot(place, self.size**2, dtype=jnp.float32)


@cache
def _cells(size: int) -> tuple[IntArray, IntArray]:
    """Row and column of every state; the end is below the first column."""
    rows, columns = np.tril_indices(size)
    return np.append(rows, size), np.append(columns, 0)


@cache
def _right(size: int, seed: int | None) -> IntArray:
    """The action that goes right in each state; at the end none does."""
    cells = size * (size + 1) // 2
    right = np.ones(cells, dtype=np.int64) if seed is None else np.random.default_rng(seed).integers(2, size=cells)
    return np.append(right, -1)
