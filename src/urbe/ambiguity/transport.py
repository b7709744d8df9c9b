"""The cost of carrying one distribution over to another: linear programs, for checking memberships."""

from __future__ import annotations

import numpy as np

from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

BATCH = 5_000
"""Variables of one linear program; rows are solved together because starting the solver costs the most."""


def transport_costs(source: Rows, target: Rows, metric: FloatArray, skip: BoolArray) -> FloatArray:
    """`(R,)` W(p, q) = min sum_ji x_ji d_ji with x 1 = p, x' 1 = q, x >= 0, from above; zero where `skip`.

    The solver meets each equation to about 1e-9 of mass. Its plan is cut to the masses there are, and what it leaves
    behind is charged the longest way, so that the cost is never below the true one.
    """
    out = np.zeros(source.n_rows)
    batch: list[int] = []
    size = 0
    for row in np.flatnonzero(~skip):
        batch.append(int(row))
        size += int(source.length[row]) * int(target.length[row])
        if size >= BATCH:
            out[batch] = _solve(batch, source, target, metric)
            batch, size = [], 0
    if batch:
        out[batch] = _solve(batch, source, target, metric)
    return out


def _solve(batch: list[int], source: Rows, target: Rows, metric: FloatArray) -> FloatArray:
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron, vstack

    costs, masses, right, blocks = [], [], [], []
    for row in batch:
        j, p = _row(source, row)
        i, q = _row(target, row)
        q = q * (p.sum() / q.sum())  # both are distributions up to rounding; the equations need equal totals
        costs.append(metric[np.ix_(j, i)].ravel())
        gives = kron(eye_array(len(j)), np.ones((1, len(i))))
        takes = kron(np.ones((1, len(j))), eye_array(len(i)))
        blocks.append(vstack([coo_array(gives), coo_array(takes)]))
        masses.append((p, q))
        right.append(len(costs[-1]))
    answer = linprog(
        np.concatenate([cost / max(cost.max(), 1e-300) for cost in costs]),
        A_eq=csr_array(block_diag(blocks)),
        b_eq=np.concatenate([np.concatenate(pair) for pair in masses]),
        method="highs",
    )
    if answer.x is None:
        raise RuntimeError(f"The transport problem of rows {batch[:5]} was not solved: {answer.message}")
    plans = np.split(answer.x, np.cumsum(right)[:-1])
    return np.array([_cost(*pair, plan, cost) for pair, plan, cost in zip(masses, plans, costs, strict=True)])


def _cost(p: FloatArray, q: FloatArray, plan: FloatArray, cost: FloatArray) -> float:
    """The cost of a plan cut to what j has and what i may get; the rest is charged the longest way."""
    x = np.maximum(plan, 0.0).astype(np.longdouble).reshape(len(p), len(q))
    for axis, most in ((1, p[:, None]), (0, q[None])):
        total = x.sum(axis=axis, keepdims=True)
        x = x * np.minimum(1.0, most / np.where(total > 0.0, total, 1.0))
    left = max(np.longdouble(0.0), p.sum(dtype=np.longdouble) - x.sum())
    return float((x.ravel() * cost).sum() + left * cost.max(initial=0.0))


def _row(rows: Rows, row: int) -> tuple[IntArray, FloatArray]:
    a, b = rows.entry_start[row : row + 2]
    keep = rows.probability[a:b] > 0.0
    return rows.successor[a:b][keep], rows.probability[a:b][keep]
