"""The singleton set: nature has no choice, and solving is nominal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from urbe.ambiguity.moments import RowMoments
from urbe.ambiguity.nature import PlainNature, RowMemory, WorstCase
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.sweep import FAST, whole
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import Buffer, FloatArray, IntArray
from urbe.workers import SERIAL, Workers

CACHE = 2**19
"""Bytes of a dense model processed at a time, a part of the cache of common processors."""


@dataclass(frozen=True)
class Exact(RectangularSet):
    """U(s, a) = {pbar(s, a)}: only the nominal model."""

    def bind(self, mdp: MDP) -> ExactNature:
        return ExactNature(mdp.rows, mdp.discount)


@dataclass(frozen=True, eq=False)
class ExactNature(PlainNature):
    """Nature without a choice: Q = sum_j p_j (r_j + gamma v_j)."""

    rows: Rows
    discount: float

    @property
    def accuracy(self) -> float:
        """Bounds the error of a sum of n products."""
        return (self.rows.longest + 4) * 2.0**-53

    @property
    def singleton(self) -> bool:
        return True

    def values(
        self, v: FloatArray, shift: float = 0.0, workers: Workers = SERIAL, out: Buffer = None, memory: RowMemory = None
    ) -> FloatArray:
        rows, w = self.rows, self.discount * v
        out = np.empty(rows.n_rows) if out is None else out
        constant = self.discount * shift
        dense = self._dense

        def task(first: int, last: int) -> None:
            if dense is not None:
                for a, b in _blocks(first, last, dense):
                    self._products(dense, a, b, w, constant, out)
            else:
                _sweep(first, last, rows.entry_start, rows.successor, rows.probability, rows.entry_reward, w,
                       rows.reward, constant, out)  # fmt: skip

        workers.run(rows.entry_start, task)
        return out

    def worst_case(self, v: FloatArray, memory: RowMemory = None) -> WorstCase:
        return WorstCase(self.values(v), self.rows, self.rows.successor_values(self.discount * v))

    def moments(
        self, v: FloatArray, shift: float, u: FloatArray, value: FloatArray | None = None, memory: RowMemory = None
    ) -> RowMoments:
        rows, w, constant = self.rows, self.discount * v, self.discount * shift
        value, scatter, carried = (np.empty(rows.n_rows) for _ in range(3))
        dense = self._dense
        if dense is None:
            _sweep_moments(
                rows.entry_start, rows.successor, rows.probability, rows.entry_reward, w, rows.reward, constant, u,
                value, scatter, carried,
            )  # fmt: skip
            return RowMoments(value, scatter, carried)
        for a, b in _blocks(0, rows.n_rows, dense):  # small enough to be read from memory once
            self._products(dense, a, b, w, constant, value)
            _dense_moments(dense[a:b], w, value[a:b], rows.reward[a:b], constant, u, scatter[a:b], carried[a:b])
        return RowMoments(value, scatter, carried)

    @cached_property
    def _dense(self) -> FloatArray | None:
        """`(R, S)` probabilities if rows list every state and rewards do not depend on the successor; else None."""
        rows = self.rows
        if not rows.is_dense or not rows.n_rows or rows.entry_reward is not None:
            return None
        return rows.probability.reshape(rows.n_rows, -1)

    def _products(self, dense: FloatArray, a: int, b: int, w: FloatArray, constant: float, out: FloatArray) -> None:
        np.dot(dense[a:b], w, out=out[a:b])
        out[a:b] += self.rows.reward[a:b]
        out[a:b] += constant

    def take(self, chosen: IntArray) -> ExactNature:
        return ExactNature(self.rows.take(chosen), self.discount)

    @property
    def ball_radius(self) -> FloatArray | None:
        return np.zeros(self.rows.n_rows)

    def excess(self, kernel: Rows) -> FloatArray:
        """The L1 distance from the model."""
        from scipy.sparse import csr_array

        shape = (self.rows.n_rows, self.rows.n_states)
        p = csr_array((self.rows.probability, self.rows.successor, self.rows.entry_start), shape=shape)
        q = csr_array((kernel.probability, kernel.successor, kernel.entry_start), shape=shape)
        return np.asarray(abs(q - p).sum(axis=1)).ravel()

    def dual_bound(self, v: FloatArray) -> FloatArray:
        """Computes the value itself, in extended precision."""
        z = self.rows.successor_values((self.discount * v).astype(np.longdouble))
        total = np.add.reduceat(self.rows.probability * z, self.rows.entry_start[:-1]) if self.rows.n_rows else z[:0]
        return np.asarray(total + self.rows.row_reward, dtype=np.float64)


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep(first, last, start, successor, p, r, w, reward, constant, out):
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
        out[row] = whole(total, constant, 0.0 if r is not None else reward[row])


def _blocks(first: int, last: int, dense: FloatArray) -> Iterator[tuple[int, int]]:
    """Yields ranges of rows that fit into a processor's cache."""
    size = max(CACHE // (8 * dense.shape[1]), 1)
    for a in range(first, last, size):
        yield a, min(a + size, last)


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep_moments(start, successor, p, r, w, reward, constant, u, value, scatter, carried):
    """Computes values, with the sums of `_sweep`, and moments around them, row by row."""
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor = p[a : a + n], successor[a : a + n]
        total = 0.0
        for j in range(n):
            if r is None:
                total += row_p[j] * w[np.uint32(row_successor[j])]
            else:
                total += row_p[j] * (w[np.uint32(row_successor[j])] + r[a + j])
        value[row] = whole(total, constant, 0.0 if r is not None else reward[row])
        first, square, mean_u = 0.0, 0.0, 0.0
        for j in range(n):
            d = w[np.uint32(row_successor[j])] - total
            if r is not None:
                d += r[a + j]
            first += row_p[j] * d
            square += row_p[j] * d * d
            mean_u += row_p[j] * u[np.uint32(row_successor[j])]
        scatter[row], carried[row] = max(square - first * first, 0.0), mean_u


@njit(cache=True, nogil=True, fastmath=FAST)
def _dense_moments(p, w, value, reward, constant, u, scatter, carried):
    """Computes moments of rows that list every state, around their known values."""
    for row in range(len(p)):
        row_p, mean = p[row], value[row] - constant - reward[row]
        first, square, mean_u = 0.0, 0.0, 0.0
        for j in range(len(w)):
            d = w[j] - mean
            first += row_p[j] * d
            square += row_p[j] * d * d
            mean_u += row_p[j] * u[j]
        scatter[row], carried[row] = max(square - first * first, 0.0), mean_u
