"""The linear program of one row of a `MomentSet`, its solution, and the distance of a kernel from the set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from urbe.types import FloatArray


class RowAnswer(NamedTuple):
    """The mean of a row's distribution, a bound on its value, and the derivative by the centre, for values in [0, 1].

    `infeasible` bounds the error of the value due to violated constraints: their largest violation times the sum of the
    multipliers, since values are convex in the limits.
    """

    mean: FloatArray
    bound: float
    sensitivity: FloatArray
    infeasible: float


class Block:
    """The program of one row; its variables are y, t, both `(n, K)`, and mu, `(n,)`, all in [0, 1]."""

    def __init__(
        self, p: FloatArray, mean_error: float, deviation: float, radius: FloatArray, confidence: FloatArray
    ) -> None:
        from scipy.sparse import block_array, csr_array, diags_array, eye_array, kron

        k, n = len(p), len(radius)
        self.shape = (n, k)
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
        mean = np.maximum(x[: n * k].reshape(n, k).sum(axis=0), 0.0)
        price = np.minimum(price, 0.0).astype(np.longdouble)
        reduced = self.cost(z) - price @ self.matrix - level @ self.equal
        bound = price @ self.bound + level @ self.right + np.minimum(reduced, 0.0).sum()
        mu = x[2 * n * k :]
        above, below = price[: n * k].reshape(n, k), price[n * k : 2 * n * k].reshape(n, k)
        at = 2 * n * k + n + k
        sensitivity = mu @ (above - below) + price[at : at + k] - price[at + k : at + 2 * k]
        violation = max(
            float((self.matrix @ x - self.bound).max()),
            float(np.abs(self.equal @ x - self.right).max()),
            -float(x.min()),
        )
        infeasible = max(violation, 0.0) * float(np.abs(price).sum() + np.abs(level).sum())
        return RowAnswer(mean / mean.sum(), float(bound), np.asarray(sensitivity, dtype=np.float64), infeasible)

    def distance(self, x: FloatArray) -> float:
        """Computes the least s with |x_j - sum_i y_ij| <= s for a feasible distribution."""
        from scipy.sparse import block_array, csr_array, hstack

        n, k = self.shape
        means, ones = hstack([self.of_states, csr_array((k, n * k + n))]), np.ones((k, 1))
        matrix = csr_array(block_array([[self.matrix, None], [means, -ones], [-means, -ones]]))
        bound = np.concatenate([self.bound, x, -x])
        equal = csr_array(hstack([self.equal, csr_array((self.equal.shape[0], 1))]))
        cost = np.append(np.zeros(self.matrix.shape[1]), 1.0)
        return float(minimise(cost, matrix, bound, equal, self.right).fun)


def minimise(cost: FloatArray, matrix: Any, bound: FloatArray, equal: Any, right: FloatArray) -> Any:
    from scipy.optimize import linprog

    answer = linprog(
        cost, A_ub=matrix, b_ub=bound, A_eq=equal, b_eq=right, bounds=(0.0, 1.0), method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )  # fmt: skip
    if answer.status != 0:
        raise RuntimeError(f"HiGHS did not solve a moment problem: {answer.message}")
    return answer
