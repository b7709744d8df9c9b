"""L1 balls where every row lists every state: one order of the states serves all rows of a sweep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from urbe.ambiguity.evidence import RowEvidence
from urbe.ambiguity.l1_moments import dense_l1_moments
from urbe.ambiguity.moments import RowMoments
from urbe.ambiguity.nature import WorstCase
from urbe.ambiguity.row_nature import RowNature
from urbe.ambiguity.sweep import FAST
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class DenseL1Nature:
    """The L1 adversary of dense rows; `inner` answers what is asked only once."""

    inner: RowNature

    @property
    def rows(self) -> Rows:
        return self.inner.rows

    @property
    def discount(self) -> float:
        return self.inner.discount

    @property
    def accuracy(self) -> float:
        """A row's sum is corrected once for each state its threshold moves over."""
        return 2.0 * self.inner.accuracy

    @property
    def singleton(self) -> bool:
        return self.inner.singleton

    def fresh(self) -> FloatArray | None:
        return np.zeros(self.rows.n_rows)

    def values(
        self,
        v: FloatArray,
        shift: float = 0.0,
        workers: Workers = SERIAL,
        out: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> FloatArray:
        nature = self.inner
        w = nature.discount * v
        order = np.argsort(-w, kind="stable")
        rank = np.empty_like(order)
        rises = np.append(True, np.diff(w[order]) != 0.0)
        rank[order] = np.maximum.accumulate(np.where(rises, np.arange(len(order)), 0))  # tied states share the first
        p = nature.rows.probability.reshape(nature.rows.n_rows, nature.rows.n_states)
        out = np.empty(nature.rows.n_rows) if out is None else out
        hint = np.zeros(nature.rows.n_rows) if memory is None else memory

        def task(first: int, last: int) -> None:
            _dense_sweep(
                first, last, p, nature.radius, w, order, rank, nature.rows.reward, nature.discount * shift,
                hint, out,
            )  # fmt: skip

        workers.run(nature.rows.entry_start, task)
        return out

    def worst_case(self, v: FloatArray, memory: FloatArray | None = None) -> WorstCase:
        nature, hint = self.inner, self.fresh() if memory is None else memory
        value = self.values(v, memory=hint)
        rows, w = nature.rows, nature.discount * v
        shape = (rows.n_rows, rows.n_states)
        q, m = np.empty(shape), np.empty(shape)
        if rows.n_rows:
            _dense_minimise(rows.probability.reshape(shape), nature.radius, w, int(np.argmin(w)), hint, q, m)
        kernel = Rows(rows.n_states, rows.entry_start, rows.successor, q.ravel(), rows.reward)
        return WorstCase(value, kernel, m.ravel())

    def moments(
        self,
        v: FloatArray,
        shift: float,
        u: FloatArray,
        value: FloatArray | None = None,
        memory: FloatArray | None = None,
    ) -> RowMoments:
        nature, hint = self.inner, self.fresh() if memory is None else memory
        value = self.values(v, shift, memory=hint) if value is None or memory is None else value
        rows, w = nature.rows, nature.discount * v
        scatter, carried = np.empty(rows.n_rows), np.empty(rows.n_rows)
        p = rows.probability.reshape(rows.n_rows, rows.n_states)
        bare = value - nature.discount * shift - rows.reward
        dense_l1_moments(p, nature.radius, w, u, int(np.argmin(w)), bare, hint, scatter, carried)
        return RowMoments(value, scatter, carried)

    def take(self, chosen: IntArray) -> DenseL1Nature:
        return replace(self, inner=self.inner.take(chosen))

    @property
    def ball_radius(self) -> FloatArray | None:
        return self.inner.ball_radius

    def excess(self, kernel: Rows) -> FloatArray:
        return self.inner.excess(kernel)

    def dual_bound(self, v: FloatArray) -> FloatArray:
        return self.inner.dual_bound(v)

    def evidence(self, kernel: Rows | None) -> RowEvidence:
        return self.inner.evidence(kernel)


@njit(cache=True, nogil=True, fastmath=FAST)
def _dense_sweep(first, last, p, radius, w, order, rank, reward, constant, hint, out):
    """One pass at the state where the removal stopped last time, then a walk along the common order."""
    n = len(w)
    low = w[order[n - 1]]
    for row in range(first, last):
        moved = 0.5 * radius[row]
        row_p = p[row]
        k = rank[np.uint32(hint[row])]
        tau = w[order[k]]
        total = 0.0
        above = 0.0
        for j in range(n):
            total += row_p[j] * min(w[j], tau)
            above += row_p[j] if w[j] > tau else 0.0
        while above > moved and k > 0:
            k -= 1
            step = w[order[k]]
            total += above * (step - tau)
            tau = step
            # states tied with the new level are no longer above it
            while k > 0 and w[order[k - 1]] == tau:
                above -= row_p[order[k]]
                k -= 1
            above -= row_p[order[k]]
        while k < n - 1 and above + row_p[order[k]] < moved:
            above += row_p[order[k]]
            k += 1
            step = w[order[k]]
            total -= above * (tau - step)
            tau = step
        hint[row] = order[k]
        out[row] = total - moved * (tau - low) + reward[row] + constant


@njit(cache=True, nogil=True)
def _dense_minimise(p, radius, w, lowest, hint, q, m):
    """Moves the mass of each row, after a sweep found where its removal stops; equal states give in their order."""
    n = len(w)
    for row in range(len(radius)):
        row_p, row_q, tau = p[row], q[row], w[np.uint32(hint[row])]
        above = 0.0
        for j in range(n):
            m[row, j] = min(w[j], tau)
            above += row_p[j] if w[j] > tau else 0.0
        left, total = 0.5 * radius[row] - above, 0.0
        for j in range(n):
            step = row_p[j] if w[j] > tau else 0.0
            if w[j] == tau and tau > w[lowest]:
                step = min(max(left, 0.0), row_p[j])
                left -= step
            row_q[j] = row_p[j] - step
            total += step
        row_q[lowest] += total
