"""The linear program of one row of a `MomentSet`, its solution, and members of the set close to others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from urbe.ambiguity.evidence import Extended
from urbe.types import FloatArray


class RowAnswer(NamedTuple):
    """A row's worst mean, a bound on its value, and the derivative by the centre, for values in [0, 1]."""

    mean: FloatArray
    bound: float
    sensitivity: FloatArray


class Block:
    """The program of one row; its variables are y, t, both `(n, K)`, and mu, `(n,)`, all in [0, 1]."""

    def __init__(
        self, p: FloatArray, mean_error: float, deviation: float, radius: FloatArray, confidence: FloatArray
    ) -> None:
        from scipy.sparse import block_array, csr_array, diags_array, eye_array, kron

        k, n = len(p), len(radius)
        self.shape, self.centre = (n, k), p
        self.mean_error, self.deviation, self.radius, self.confidence = mean_error, deviation, radius, confidence
        self.of_states = kron(np.ones((1, n)), eye_array(k))  # sums over shells
        of_shells, each = kron(eye_array(n), np.ones((1, k))), eye_array(n * k)
        centre = kron(eye_array(n), p[:, None])  # mu_i p_j
        before = -np.tril(np.ones((n, n)))[:-1]
        self.matrix = csr_array(
            block_array(
                [
                    [each, -each, -centre],
                    [-each, -each, centre],
                    [None, of_shells, -diags_array(radius)],
                    [None, self.of_states, None],
                    [self.of_states, None, None],
                    [-self.of_states, None, None],
                    *([[None, None, csr_array(before)]] if n > 1 else []),
                ]
            )
        )
        self.bound = np.concatenate(
            [
                np.zeros(2 * n * k + n),
                np.full(k, deviation),
                p + mean_error,
                mean_error - p,
                -confidence[:-1],
            ]
        )
        nothing = csr_array((n, n * k))
        self.equal = csr_array(block_array([[of_shells, nothing, -eye_array(n)], [None, None, np.ones((1, n))]]))
        self.right = np.append(np.zeros(n), 1.0)

    def cost(self, z: FloatArray) -> FloatArray:
        n, k = self.shape
        return np.concatenate([np.tile(z, n), np.zeros(n * k + n)])

    def read(self, z: FloatArray, x: FloatArray, price: FloatArray, level: FloatArray) -> RowAnswer:
        """Extracts this row's answer from a solution; the bound holds for any multipliers.

        min over 0 <= x <= 1 of  cost . x - price . (matrix x - bound) - level . (equal x - right),    price <= 0
        """
        n, k = self.shape
        price, level = np.minimum(price, 0.0).astype(np.longdouble), level.astype(np.longdouble)
        reduced = self.cost(z) - price @ self.matrix - level @ self.equal
        bound = price @ self.bound + level @ self.right + np.minimum(reduced, 0.0).sum()
        mu = x[2 * n * k : 2 * n * k + n]
        above, below = price[: n * k].reshape(n, k), price[n * k : 2 * n * k].reshape(n, k)
        at = 2 * n * k + n + k
        sensitivity = mu @ (above - below) + price[at : at + k] - price[at + k : at + 2 * k]
        mean = self.member(x).astype(np.float64)
        return RowAnswer(mean, float(bound), np.asarray(sensitivity, dtype=np.float64))

    def member(self, x: FloatArray) -> Extended:
        """`(K,)` the mean of a distribution that keeps every limit, close to a solution that keeps them up to rounding.

        With the masses mu, whose sums are raised to the confidences, any departures d_i = y_i - mu_i p that sum to zero
        are brought within the limits by multiplying them: by one factor for each ball, since each has its own radius,
        and by one for all of them, for the mean and the deviation.
        """
        n, k = self.shape
        total = np.maximum.accumulate(np.clip(np.cumsum(x[2 * n * k : 2 * n * k + n]), 0.0, 1.0))
        total = np.maximum(total, self.confidence)  # both increase, and end at one
        mu = np.diff(total.astype(np.longdouble), prepend=np.longdouble(0.0))[:, None]
        p = self.centre.astype(np.longdouble) / self.centre.astype(np.longdouble).sum()
        y = np.maximum(x[: n * k].reshape(n, k), 0.0).astype(np.longdouble)
        d = y - mu * p
        d -= p * d.sum(axis=1, keepdims=True)
        d *= _factor(-d, mu * p).min(axis=1, keepdims=True)  # no probability below zero
        d *= _factor(np.abs(d).sum(axis=1), self.radius * mu[:, 0])[:, None]
        d *= _factor(np.abs(d).sum(axis=0), np.full(k, self.deviation)).min()
        moved = d.sum(axis=0)
        mean: Extended = p + moved * _factor(np.abs(moved), np.full(k, self.mean_error)).min()
        return mean

    def nearest(self, q: FloatArray) -> Extended:
        """`(K,)` the mean of a feasible distribution with about the least max_j |q_j - mean_j|."""
        from scipy.sparse import block_array, csr_array, hstack

        n, k = self.shape
        means, ones = hstack([self.of_states, csr_array((k, n * k + n))]), np.ones((k, 1))
        matrix = csr_array(block_array([[self.matrix, None], [means, -ones], [-means, -ones]]))
        bound = np.concatenate([self.bound, q, -q])
        equal = csr_array(hstack([self.equal, csr_array((self.equal.shape[0], 1))]))
        cost = np.append(np.zeros(self.matrix.shape[1]), 1.0)
        return self.member(minimise(cost, matrix, bound, equal, self.right).x)


def _factor(size: Extended, limit: Extended) -> Extended:
    """The largest factor, at most one, that keeps each size within its limit."""
    beyond = size > limit
    return np.where(beyond, limit / np.where(beyond, size, 1.0), 1.0)


def minimise(cost: FloatArray, matrix: Any, bound: FloatArray, equal: Any, right: FloatArray) -> Any:
    """Solves the program. It is feasible, but presolving may find it infeasible by a rounding; then it is left out."""
    from scipy.optimize import linprog

    for presolve in (True, False):
        answer = linprog(
            cost, A_ub=matrix, b_ub=bound, A_eq=equal, b_eq=right, bounds=(0.0, 1.0), method="highs",
            options={
                "presolve": presolve, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10,
            },
        )  # fmt: skip
        if answer.status == 0:
            return answer
    raise RuntimeError(f"HiGHS did not solve a moment problem: {answer.message}")
