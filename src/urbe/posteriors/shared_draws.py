"""Draw many Dirichlet rows from common random numbers: draws are not stored, and can be reproduced.

A credible set of R rows at level delta / R needs R / delta draws of each row. For thousands of rows they do not fit
into memory, and drawing independent random numbers takes minutes: 5,000 rows of 5 successors at delta = .05 are 2.5e9
gamma variables. But draws are only used one row at a time, and a union bound does not need independent rows:

    P(row k fails) <= delta / R  for each k      hence      P(some row fails) <= delta.

So all rows use the same normal and uniform numbers. The draws of each row are mutually independent and exactly
Dirichlet [MarsagliaTsang2000]; draws of different rows are dependent, and must not be combined to a model. Only
extremes of the draws are kept: the largest distances, or the lowest values with their draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from urbe import memory
from urbe.posteriors.dirichlet import Posterior
from urbe.posteriors.sampling import SMALL, gammas
from urbe.progress import Report, silent
from urbe.types import BoolArray, FloatArray, IntArray

BUFFER = 1 << 13
"""Normal numbers at a time: they stay in a processor's cache while all rows use them."""

SPARE = 1.25
"""Numbers per variable: at most one in twenty proposals is rejected, so a thousand variables never need more."""


class Lowest(NamedTuple):
    """The draws of some rows with the lowest values p . z.

    Attributes:
      value: `(k, T)` in increasing order.
      draw: `(e, T)` the draws on the rows' entries, in the order of rows.
    """

    value: FloatArray
    draw: FloatArray


class CommonNumbers(NamedTuple):
    """Common random numbers: proposals, and uniform numbers for what else is needed.

    Attributes:
      normal: `(n,)` x.
      sure: `(n,)` whether u < 1 - 0.0331 x^4, which accepts the proposal for any concentration.
      log_u: `(n,)` log u.
      uniform: `(2 n,)`.
    """

    normal: FloatArray
    sure: BoolArray
    log_u: FloatArray
    uniform: FloatArray


class SharedDraws:
    """M draws of every row of a posterior, generated on request, the same each time.

    Args:
      posterior: distribution of the draws.
      rng: source of the common numbers; one generator is spawned from it.
      draws: M, at least 1.
      report: receives the progress of each request.
    """

    def __init__(self, posterior: Posterior, rng: np.random.Generator, draws: int, report: Report = silent) -> None:
        self._posterior, self._draws, self._report = posterior, draws, report
        self._rng = rng.spawn(1)[0]
        self._start = self._rng.bit_generator.state

    def farthest(self, count: int) -> FloatArray:
        """`(R, count)` the largest distances ||p - mean||_1 of each row's draws, in decreasing order."""
        rows = self._posterior.model.rows
        self._require(count * rows.n_rows)
        most = np.full((rows.n_rows, count), -1.0)
        for n, numbers in self._buffers():
            _farthest(n, rows.entry_start, self._posterior.concentration, self._posterior.probability, numbers, most)
        return most

    def lowest(self, chosen: IntArray, z: FloatArray, count: int) -> Lowest:
        """Returns the `count` draws with the lowest p . z of each of the rows `chosen`, for `(E,)` values z."""
        rows = self._posterior.model.rows
        length = rows.length[chosen]
        start = np.concatenate(([0], np.cumsum(length)))
        self._require(count * (len(chosen) + int(start[-1])))
        entries = rows.entries_of(chosen)
        alpha, values = self._posterior.concentration[entries], np.ascontiguousarray(z[entries])
        out = Lowest(np.full((len(chosen), count), np.inf), np.zeros((int(start[-1]), count)))
        for n, numbers in self._buffers():
            _lowest(n, start, alpha, values, numbers, out.value, out.draw)
        return out

    def _buffers(self) -> Iterator[tuple[int, CommonNumbers]]:
        """Buffers of common numbers, each with the number of draws it is enough for, M of them in all.

        They depend on the longest of all rows, even if only some are requested: a row's draws are the same each time.
        """
        longest = self._posterior.model.rows.longest
        self._rng.bit_generator.state = self._start
        size = max(BUFFER, int(SPARE * longest) + 64)
        each = max(int((size - 64) / (SPARE * longest)), 1)
        for done in range(0, self._draws, each):
            self._report("posterior draws", done, self._draws)
            normal, u = self._rng.standard_normal(size), 1.0 - self._rng.random(size)
            numbers = CommonNumbers(normal, u < 1.0 - 0.0331 * normal**4, np.log(u), self._rng.random(2 * size))
            yield min(each, self._draws - done), numbers

    def _require(self, numbers: int) -> None:
        memory.require(
            {f"the extremes of {self._draws} draws": 8.0 * numbers}, "Use fewer draws, or a higher confidence."
        )


@njit(cache=True, nogil=True)
def _farthest(n, entry_start, alpha, mean, numbers, most):
    g, total, far = np.empty((np.diff(entry_start).max(), n)), np.empty(n), np.empty(n)
    for row in range(len(entry_start) - 1):
        first, size = entry_start[row], entry_start[row + 1] - entry_start[row]
        if size == 1:
            most[row] = 0.0
            continue
        _draw(alpha[first : first + size], numbers, g, total)
        far[:] = 0.0
        for j in range(size):
            centre = mean[first + j]
            for m in range(n):
                far[m] += abs(g[j, m] * total[m] - centre)
        last = most.shape[1] - 1
        for m in range(n):
            if far[m] > most[row, last]:
                k = last
                while k > 0 and most[row, k - 1] < far[m]:
                    most[row, k] = most[row, k - 1]
                    k -= 1
                most[row, k] = far[m]


@njit(cache=True, nogil=True)
def _lowest(n, start, alpha, z, numbers, value, draw):
    g, total, x = np.empty((np.diff(start).max(), n)), np.empty(n), np.empty(n)
    for row in range(len(start) - 1):
        first, size = start[row], start[row + 1] - start[row]
        _draw(alpha[first : first + size], numbers, g, total)
        x[:] = 0.0
        for j in range(size):
            each = z[first + j]
            for m in range(n):
                x[m] += g[j, m] * each
        last = value.shape[1] - 1
        for m in range(n):
            x[m] *= total[m]
            if x[m] < value[row, last]:
                k = last
                while k > 0 and value[row, k - 1] > x[m]:
                    value[row, k] = value[row, k - 1]
                    for j in range(size):
                        draw[first + j, k] = draw[first + j, k - 1]
                    k -= 1
                value[row, k] = x[m]
                for j in range(size):
                    draw[first + j, k] = g[j, m] * total[m]


@njit(cache=True, nogil=True)
def _draw(alpha, numbers, g, total):
    """Fills `g[j, m]` with gamma variables up to a factor per draw m, and `total[m]` with the inverse of their sum."""
    normal, sure, log_u, uniform = numbers
    size, n = len(alpha), len(total)
    if alpha.min() < SMALL:
        at, uniform_at, one = 0, 0, np.empty(size)
        for m in range(n):
            at, uniform_at = gammas(alpha, normal, at, uniform, uniform_at, one)
            if at < 0:
                raise RuntimeError("too few random numbers for the draws of a row")
            g[:size, m] = one
    else:
        at = 0
        for j in range(size):
            at = _column(alpha[j], normal, sure, log_u, at, g[j])
            if at < 0:
                raise RuntimeError("too few random numbers for the draws of a row")
            if alpha[j] < 1.0:
                for m in range(n):
                    g[j, m] *= np.exp(np.log(1.0 - uniform[j * n + m]) / alpha[j])
    total[:] = 0.0
    for j in range(size):
        for m in range(n):
            total[m] += g[j, m]
    for m in range(n):
        total[m] = 1.0 / total[m]


@njit(cache=True, nogil=True)
def _column(alpha, normal, sure, log_u, at, g):
    """Draws gamma variables of alpha, or of alpha + 1 if alpha < 1; returns where the used numbers end, or -1."""
    d = alpha - 1.0 / 3.0 if alpha >= 1.0 else alpha + 2.0 / 3.0
    c, n, m = 1.0 / np.sqrt(9.0 * d), len(normal), 0
    while m < len(g):
        if at == n:
            return -1
        x = normal[at]
        y = 1.0 + c * x
        y = y * y * y
        g[m] = d * y
        if y > 0.0 and (sure[at] or log_u[at] < 0.5 * x * x + d * (1.0 - y + np.log(y))):
            m += 1
        at += 1
    return at
