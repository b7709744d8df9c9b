"""The cost of carrying one distribution over to another: linear programs, for checking memberships."""

from __future__ import annotations

import numpy as np

from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

BATCH = 5_000
"""Variables of one linear program; rows are solved together because starting the solver costs the most."""


def transport_costs(source: Rows, target: Rows, metric: FloatArray, skip: BoolArray) -> FloatArray:
    """`(R,)` W(p, q) = min sum_ji x_ji d_ji with x 1 = p, x' 1 = q, x >= 0, for each row; zero where `skip`.

    The solver meets each equation to about 1e-9 of mass on rows of ordinary size, and it may then report a distance
    that much too low or too high.
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

    costs, left, right, blocks = [], [], [], []
    for row in batch:
        j, p = _row(source, row)
        i, q = _row(target, row)
        q = q * (p.sum() / q.sum())  # both are distributions up to rounding; the equations need equal totals
        costs.append(metric[np.ix_(j, i)].ravel())
        gives = kron(eye_array(len(j)), np.ones((1, len(i))))
        takes = kron(np.ones((1, len(j))), eye_array(len(i)))
        blocks.append(vstack([coo_array(gives), coo_array(takes)]))
        left.append(np.concatenate([p, q]))
        right.append(len(costs[-1]))
    answer = linprog(
        np.concatenate(costs), A_eq=csr_array(block_diag(blocks)), b_eq=np.concatenate(left), method="highs"
    )
    if answer.x is None:
        raise RuntimeError(f"The transport problem of rows {batch[:5]} was not solved: {answer.message}")
    ends = np.cumsum(right)
    return np.add.reduceat(np.concatenate(costs) * answer.x, np.concatenate([[0], ends[:-1]]))


def _row(rows: Rows, row: int) -> tuple[IntArray, FloatArray]:
    a, b = rows.entry_start[row : row + 2]
    keep = rows.probability[a:b] > 0.0
    return rows.successor[a:b][keep], rows.probability[a:b][keep]
