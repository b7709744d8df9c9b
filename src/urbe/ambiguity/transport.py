"""Compute transport costs between distributions by linear programs, to check memberships."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

LEFT_BEHIND = 2.0**-50
"""Mass whose transport is ignored, since rounding may leave this much."""

BATCH = 5_000
"""Number of variables in one linear program; rows are solved together because starting the solver costs the most."""


def transport_excess(source: Rows, target: Rows, metric: FloatArray, radius: FloatArray, skip: BoolArray) -> FloatArray:
    """`(R,)` upper bounds on W(p, q) - radius, W = min sum_ji x_ji d_ji with x 1 = p, x' 1 = q, x >= 0; 0 where `skip`.

    The solver satisfies each equation to about 1e-9 of mass. Its plan is cut to the available masses, and the remaining
    mass is charged the longest distance, so that the cost is never below the true one. If little mass moves, a plan
    that leaves common mass in place is better: it is computed only for the rest, as a distribution.
    """
    out = np.full(source.n_rows, np.inf)
    out[skip] = 0.0
    for rest_only in (True, False):
        batch: list[Transport] = []
        size = 0
        for row in np.flatnonzero(~skip):
            task = _task(int(row), source, target, float(radius[row]), rest_only)
            if task is None:
                out[row] = -radius[row]
            elif not rest_only and _is_metric(metric):
                continue  # by the triangle inequality no plan is better than one that leaves common mass in place
            else:
                batch.append(task)
                size += len(task.p) * len(task.q)
            if size >= BATCH:
                _lower(out, batch, metric)
                batch, size = [], 0
        if batch:
            _lower(out, batch, metric)
    return out


class Transport(NamedTuple):
    """The transport problem of one row: masses `p` at `source` to masses `q` at `target`, in units of `total`."""

    row: int
    radius: float
    source: IntArray
    p: FloatArray
    target: IntArray
    q: FloatArray
    total: float


def _task(row: int, source: Rows, target: Rows, radius: float, rest_only: bool) -> Transport | None:
    """Returns the transport problem of a row, or None if nothing has to move."""
    (j, p), (i, q) = _row(source, row), _row(target, row)
    if rest_only:
        stays = np.zeros(source.n_states)
        stays[j] = p
        here = np.zeros(source.n_states)
        here[i] = q
        stays = np.minimum(stays, here)
        p, q = p - stays[j], q - stays[i]
        j, p, i, q = j[p > 0.0], p[p > 0.0], i[q > 0.0], q[q > 0.0]
        if not len(p) or not len(q):
            return None
    total = float(p.sum())
    return Transport(row, radius, j, p / total, i, q / q.sum(), total)


def _is_metric(metric: FloatArray) -> bool:
    """Whether distances satisfy the triangle inequality; only small metrics are checked."""
    n = len(metric)
    return n <= 64 and all((metric <= metric[:, [k]] + metric[[k]]).all() for k in range(n))


def _lower(out: FloatArray, batch: list[Transport], metric: FloatArray) -> None:
    rows = [task.row for task in batch]
    out[rows] = np.minimum(out[rows], _solve(batch, metric))


def _solve(batch: list[Transport], metric: FloatArray) -> FloatArray:
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, coo_array, csr_array, eye_array, kron, vstack

    costs, masses, right, blocks = [], [], [], []
    for _, _, j, p, i, q, _ in batch:
        costs.append(metric[np.ix_(j, i)].ravel())
        gives = kron(eye_array(len(j)), np.ones((1, len(i))))
        # the largest receiver takes what is left: with its equation, rounding of the sums may be found infeasible
        others = np.arange(len(i)) != np.argmax(q)
        takes = kron(np.ones((1, len(j))), csr_array(eye_array(len(i)))[others])
        blocks.append(vstack([coo_array(gives), coo_array(takes)]))
        masses.append((p, q))
        right.append(np.concatenate([p, q[others]]))
    answer = linprog(
        np.concatenate([cost / max(cost.max(), 1e-300) for cost in costs]),
        A_eq=csr_array(block_diag(blocks)),
        b_eq=np.concatenate(right),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise RuntimeError(f"The transport problem of row {batch[0].row} was not solved: {answer.message}")
    plans = np.split(answer.x, np.cumsum([len(cost) for cost in costs])[:-1])
    found = zip(batch, masses, plans, costs, strict=True)
    # also from an empty plan, cheapest moves first, in case costs differ beyond the solver's precision
    return np.array([
        min(_excess(task, *pair, start, cost) for start in (plan, np.zeros_like(plan)))
        for task, pair, plan, cost in found
    ])  # fmt: skip


def _excess(task: Transport, p: FloatArray, q: FloatArray, plan: FloatArray, cost: FloatArray) -> float:
    """Computes a plan's cost minus the radius, after cutting the plan to the masses and completing it greedily.

    Up to LEFT_BEHIND of mass is excluded: the costliest moves, which rounding alone can explain.
    """
    p, q = p.astype(np.longdouble), q.astype(np.longdouble)
    p, q = p / p.sum(), q / q.sum()
    x = np.maximum(plan, 0.0).astype(np.longdouble).reshape(len(p), len(q))
    for axis, most in ((1, p[:, None]), (0, q[None])):
        total = x.sum(axis=axis, keepdims=True)
        x = x * np.minimum(1.0, most / np.where(total > 0.0, total, 1.0))
    give, take = np.maximum(p - x.sum(axis=1), 0.0), np.maximum(q - x.sum(axis=0), 0.0)
    for way in np.argsort(cost, kind="stable"):
        j, i = divmod(int(way), len(q))
        more = min(give[j], take[i])
        x[j, i] += more
        give[j] -= more
        take[i] -= more
    moved = np.append(x.ravel(), give.sum()) * task.total
    costs = np.append(cost, cost.max(initial=0.0))
    costliest = np.argsort(-costs, kind="stable")
    saved = np.cumsum(moved[costliest] * costs[costliest])
    excess = saved[-1] - task.radius  # never above the last saving, whatever rounding does to another sum
    if excess > 0.0:
        before = np.cumsum(moved[costliest]) - moved[costliest]
        at = int(np.searchsorted(saved, excess))  # undoing the moves up to here is enough
        undone = saved[at - 1] if at else np.longdouble(0.0)
        if before[at] + (excess - undone) / costs[costliest[at]] <= LEFT_BEHIND:
            return 0.0
    return float(excess)


def _row(rows: Rows, row: int) -> tuple[IntArray, FloatArray]:
    a, b = rows.entry_start[row : row + 2]
    keep = rows.probability[a:b] > 0.0
    return rows.successor[a:b][keep], rows.probability[a:b][keep]
