"""The singleton set: nature has no choice, and solving is nominal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from urbe.ambiguity.base import WorstCase
from urbe.ambiguity.moments import Moments
from urbe.ambiguity.sweep import FAST
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True)
class Exact:
    """U(s, a) = {pbar(s, a)}: the model is right."""

    def bind(self, mdp: MDP) -> ExactNature:
        """See `AmbiguitySet`."""
        return ExactNature(mdp.rows, mdp.discount)


@dataclass(frozen=True, eq=False)
class ExactNature:
    """Nature without a choice: Q = sum_j p_j (r_j + gamma v_j)."""

    rows: Rows
    discount: float

    @property
    def accuracy(self) -> float:
        """See `Nature`: the error of a sum of n products."""
        return (self.rows.longest + 4) * 2.0**-53

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> FloatArray:
        """See `Nature`."""
        rows, w = self.rows, self.discount * v
        out = np.empty(rows.n_rows) if out is None else out
        constant = self.discount * shift
        dense = rows.probability.reshape(rows.n_rows, -1) if rows.is_dense and rows.n_rows else None

        def task(first: int, last: int) -> None:
            if dense is not None and rows.entry_reward is None:
                np.dot(dense[first:last], w, out=out[first:last])
                out[first:last] += rows.reward[first:last]
                out[first:last] += constant
            else:
                _sweep(first, last, rows.entry_start, rows.successor, rows.probability, rows.entry_reward, w,
                       rows.reward, constant, out)  # fmt: skip

        workers.run(rows.entry_start, task)
        return out

    def worst_case(self, v: FloatArray) -> WorstCase:
        """See `Nature`."""
        entry_reward = self.rows.entry_reward
        z = self.discount * v[self.rows.successor]
        sensitivity = z if entry_reward is None else z + entry_reward
        return WorstCase(self.values(v), self.rows, sensitivity)

    def moments(self, v: FloatArray, shift: float, u: FloatArray) -> Moments:
        """See `Carrier`."""
        rows, value = self.rows, self.values(v, shift)
        scatter, carried = np.empty(rows.n_rows), np.empty(rows.n_rows)
        mean = value - self.discount * shift - rows.row_reward
        _moments(
            rows.entry_start, None if rows.is_dense else rows.successor, rows.probability, rows.entry_reward,
            self.discount * v, u, mean, scatter, carried,
        )  # fmt: skip
        return Moments(value, scatter, carried)

    def take(self, chosen: IntArray) -> ExactNature:
        """See `Nature`."""
        return ExactNature(self.rows.take(chosen), self.discount)

    def excess(self, kernel: Rows) -> FloatArray:
        """See `Nature`: the L1 distance from the model."""
        from scipy.sparse import csr_array

        shape = (self.rows.n_rows, self.rows.n_states)
        p = csr_array((self.rows.probability, self.rows.successor, self.rows.entry_start), shape=shape)
        q = csr_array((kernel.probability, kernel.successor, kernel.entry_start), shape=shape)
        return np.asarray(abs(q - p).sum(axis=1)).ravel()

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """See `Nature`: the value itself, in extended precision."""
        z = (self.discount * v).astype(np.longdouble)[self.rows.successor]
        entry_reward = self.rows.entry_reward
        if entry_reward is not None:
            z = z + entry_reward
        total = np.add.reduceat(self.rows.probability * z, self.rows.entry_start[:-1]) if self.rows.n_rows else z[:0]
        return np.asarray(total + self.rows.row_reward, dtype=np.float64)


@njit(cache=True, nogil=True, fastmath=FAST)
def _moments(start, successor, p, r, w, u, mean, scatter, carried):  # type: ignore[no-untyped-def]
    """One pass over each row; its mean is known from its value. Without successors, rows list every state."""
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        first, square, total, centre = 0.0, 0.0, 0.0, mean[row]
        for j in range(n):
            state = np.uint32(j) if successor is None else np.uint32(successor[a + j])
            z = w[state] - centre
            if r is not None:
                z += r[a + j]
            first += p[a + j] * z
            square += p[a + j] * z * z
            total += p[a + j] * u[state]
        scatter[row], carried[row] = max(square - first * first, 0.0), total


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep(first, last, start, successor, p, r, w, reward, constant, out):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor = p[a : a + n], successor[a : a + n]
        total = 0.0
        for j in range(n):
            if r is None:
                total += row_p[j] * w[np.uint32(row_successor[j])]
            else:
                total += row_p[j] * (w[np.uint32(row_successor[j])] + r[a + j])
        out[row] = total + constant
        if r is None:
            out[row] += reward[row]
