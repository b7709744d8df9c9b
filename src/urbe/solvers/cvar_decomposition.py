"""Compute the CVaR of the return at every level, by decomposing over (state, remaining share of the worst outcomes).

    y V(s, y) = min { sum_j p_j G_j(t_j) : 0 <= t_j <= 1, sum_j p_j t_j = y },    G_j(t) = t (r_j + gamma V(s'_j, t))

Nature keeps the share y of the outcomes, and passes t_j to each successor [Chow2015]. y V(s, y) is convex in y; it is
interpolated linearly between the levels of a grid, and nature fills the pieces with the smallest slopes first, so one
sort solves all levels. For a given policy this is its CVaR, up to the error of the grid, which is upwards.

Choosing max_a at every (s, y) does not give the best CVaR: only a policy that observes nature's t_j could attain it.
The result is an upper bound, which can be arbitrarily loose and does not improve with finer grids [Hau2023]. Use
`urbe.cvar_of_return`, which has the reward so far in the state and searches over the value at risk; it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks, memory
from urbe.mdp.evaluate import policy_rows
from urbe.mdp.model import MDP, check_model
from urbe.types import FloatArray, IntArray

MOST_SWEEPS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class CVaRByLevel:
    """The result of `cvar_by_level`.

    Attributes:
      levels: `(N,)` in (0, 1], increasing.
      value: `(S, N)` the CVaR of the return at each level: of the given policy, or an upper bound for all policies.
      actions: `(S, N)` the actions of the decomposition, -1 where terminal; None if a policy was given. They do not
        attain `value` in general.
      exact: whether `value` is, up to the grid, the CVaR of a policy: only if a policy was given.
    """

    levels: FloatArray
    value: FloatArray
    actions: IntArray | None
    exact: bool

    def at(self, level: float) -> FloatArray:
        """`(S,)` the CVaR at any level in (0, 1], interpolated like the decomposition."""
        y = checks.number("level", level, 0.0, 1.0)
        if y == 0.0:
            raise ValueError("level is 0, expected a number in (0, 1].")
        grid = np.append(0.0, self.levels)
        return np.array([np.interp(y, grid, np.append(0.0, self.levels * line)) / y for line in self.value])

    def __repr__(self) -> str:
        what = "of a policy" if self.exact else "upper bounds for all policies"
        return f"CVaRByLevel({len(self.value)} states at {len(self.levels)} levels, {what})"


def cvar_by_level(
    mdp: MDP,
    policy: ArrayLike | None = None,
    *,
    horizon: int | None = None,
    levels: ArrayLike | None = None,
    tolerance: float = 1e-8,
) -> CVaRByLevel:
    """Computes the CVaR of a policy's discounted return at all levels at once, or an upper bound for all policies.

    Args:
      mdp: the model; rewards may be any numbers, and depend on the successor.
      policy: `(S,)` action ids or `(S, A)` probabilities. None bounds the best CVaR from above, see the module.
      horizon: number of decisions; None for an infinite horizon, which needs a discount below 1.
      levels: grid in (0, 1] that ends with 1; by default 33 levels, denser near 0.
      tolerance: tolerance of the values, for an infinite horizon.

    >>> import numpy as np, urbe
    >>> draw = np.array([[[0.0, 0.1, 0.2, 0.3, 0.4]]] + [np.eye(5)[[s]] for s in range(1, 5)])
    >>> reward = np.zeros((5, 1, 5))
    >>> reward[0, 0, 1:] = [0.0, 1.0, 2.0, 10.0]
    >>> lottery = urbe.MDP.from_dense(draw, reward, discount=1.0, terminal=[1, 2, 3, 4])
    >>> urbe.cvar_by_level(lottery, [0, -1, -1, -1, -1], horizon=1, levels=[0.1, 0.3, 0.5, 1.0]).value[0].round(4)
    array([0.    , 0.6667, 1.2   , 4.8   ])
    """
    check_model("mdp", mdp)
    steps = MOST_SWEEPS if horizon is None else checks.whole_number("horizon", horizon, 1)
    if horizon is None and mdp.discount >= 1.0:
        raise ValueError("discount is 1 and there is no horizon: give horizon=, or a discount below 1.")
    grid = _grid(levels)
    n, width = len(grid), mdp.rows.longest * (mdp.n_actions if policy is not None else 1)
    memory.require(
        {"values by level": 24.0 * mdp.n_states * n, "pieces of a state": 24.0 * width * n}, "Use fewer levels."
    )
    weights = np.ones(mdp.n_rows) if policy is None else policy_rows(mdp, policy)
    f = np.zeros((mdp.n_states, n + 1))  # y V(s, y) at 0 and the levels
    choice = np.full((mdp.n_states, n), -1, dtype=np.int64)
    reward = mdp.rows.reward_per_entry
    y = np.append(0.0, grid)
    for _ in range(steps):
        new = np.zeros_like(f)
        _backward(
            mdp.row_start, mdp.rows.entry_start, mdp.rows.successor, mdp.rows.probability, reward, weights,
            policy is not None, mdp.discount, y, f, new, choice, np.empty((2, width * n)),
        )  # fmt: skip
        change, f = float(np.abs(new - f)[:, 1:].max(initial=0.0)), new
        if horizon is None and change * mdp.discount / (1.0 - mdp.discount) <= tolerance * grid[0]:
            break
    actions = None
    if policy is None:
        actions = np.where(choice < 0, -1, mdp.action[choice])
    return CVaRByLevel(grid, f[:, 1:] / grid, actions, policy is not None)


def _grid(levels: ArrayLike | None) -> FloatArray:
    """Returns increasing levels in (0, 1]; the last is 1."""
    if levels is None:
        return np.append(np.geomspace(0.001, 0.1, 16, endpoint=False), np.linspace(0.1, 1.0, 17))
    grid = checks.float_array("levels", levels, ndim=1)
    if not len(grid) or grid[0] <= 0.0 or grid[-1] != 1.0 or (np.diff(grid) <= 0.0).any():
        raise ValueError(f"levels is {checks.shown(levels)}, expected increasing numbers in (0, 1] that end with 1.")
    return grid


@njit(cache=True, nogil=True)
def _backward(row_start, start, successor, p, reward, weights, given, gamma, y, f, new, choice, work):
    """Applies one step: writes y V(s, y) for every state and level."""
    n = len(y) - 1
    for s in range(len(row_start) - 1):
        pieces = 0
        for row in range(row_start[s], row_start[s + 1]):
            if not given:
                pieces = 0
            if weights[row] > 0.0:
                for e in range(start[row], start[row + 1]):
                    for k in range(n):
                        width = y[k + 1] - y[k]
                        slope = reward[e] + gamma * (f[successor[e], k + 1] - f[successor[e], k]) / width
                        work[0, pieces], work[1, pieces] = slope, weights[row] * p[e] * width
                        pieces += 1
            if given and row < row_start[s + 1] - 1:
                continue
            order = np.argsort(work[0, :pieces])
            at, filled, total = 0, 0.0, 0.0
            for k in range(1, n + 1):
                while at < pieces and filled + work[1, order[at]] < y[k]:
                    filled += work[1, order[at]]
                    total += work[0, order[at]] * work[1, order[at]]
                    at += 1
                last = order[min(at, pieces - 1)]
                value = total + (y[k] - filled) * work[0, last]
                if given or row == row_start[s] or value > new[s, k]:
                    new[s, k] = value
                    choice[s, k - 1] = row
