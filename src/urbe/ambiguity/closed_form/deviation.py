"""The worst deviation of unit length from a row, in closed form.

    kappa(z) = max { x . z : ||x||_p <= 1, sum_j x_j = 0 } = min_c ||z - c||_q,      1 / p + 1 / q = 1

is half the range of z for p = 1, its distance from the mean for p = 2 and from the median for p = inf
[KumarLevyWangMannor2022]. If mass is free (sum_j x_j may be nonzero), kappa is ||z||_q [DermanGeistMannor2021].
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from urbe.types import FloatArray


@njit(cache=True, nogil=True)
def kappa(z, norm, free, work):
    """Computes kappa of z, exact up to (n + 4) roundings of max |z - c| n^(1/q); `work` has room for z."""
    n = len(z)
    if n == 0 or (n == 1 and not free):
        return 0.0
    if free:
        return _length(z, 0.0, norm)
    if norm == 1.0:
        low, high = z[0], z[0]
        for j in range(n):
            low, high = min(low, z[j]), max(high, z[j])
        return 0.5 * (high - low)
    if norm == 2.0:
        total = 0.0
        for j in range(n):
            total += z[j] - z[0]
        return _length(z, z[0] + total / n, norm)
    for j in range(n):
        work[j] = z[j]
    work[:n].sort()
    return _length(z, work[n // 2], norm)


@njit(cache=True, nogil=True)
def _length(z, centre, norm):
    """||z - centre||_q; if squares would underflow or overflow, the largest entry is factored out."""
    largest, total = 0.0, 0.0
    for j in range(len(z)):
        size = abs(z[j] - centre)
        largest = max(largest, size)
        total += size if norm == math.inf else size * size
    if norm == 1.0 or largest == 0.0:
        return largest
    if norm == math.inf:
        return total
    if 1e-130 < largest < 1e130:
        return math.sqrt(total)
    total = 0.0
    for j in range(len(z)):
        size = abs(z[j] - centre) / largest
        total += size * size
    return largest * math.sqrt(total)


@njit(cache=True, nogil=True)
def worst_deviation(z, norm, free, out):
    """Writes the x that attains kappa to `out`."""
    n = len(z)
    out[:n] = 0.0
    if norm == 1.0 and free:
        most = int(np.argmax(np.abs(z)))
        out[most] = 1.0 if z[most] >= 0.0 else -1.0
    elif norm == 1.0:
        high, low = int(np.argmax(z)), int(np.argmin(z))
        if high != low:
            out[high], out[low] = 0.5, -0.5
    elif norm == 2.0:
        first, mean = 0.0 if free else z[0], 0.0  # differences of close values are exact, so that sum x = 0
        for j in range(n):
            out[j] = z[j] - first
            mean += 0.0 if free else out[j] / n
        for j in range(n):
            out[j] -= mean
        length = _length(out[:n], 0.0, norm)
        for j in range(n):
            out[j] = out[j] / length if length > 0.0 else 0.0
    elif free:
        out[:n] = np.sign(z)
    else:
        order = np.argsort(z)
        for k in range(n // 2):
            out[order[k]], out[order[n - 1 - k]] = -1.0, 1.0


def largest_entry(n: FloatArray, norm: float, free: bool) -> FloatArray:
    """max |x_j| over deviations of unit length among n successors."""
    if free:
        return np.where(n > 0, 1.0, 0.0)
    if norm == 2.0:
        return np.where(n > 1, np.sqrt(1.0 - 1.0 / np.maximum(n, 1)), 0.0)
    return np.where(n > 1, 0.5 if norm == 1.0 else 1.0, 0.0)


def total_variation(n: FloatArray, norm: float, free: bool) -> FloatArray:
    """max ||x||_1 over deviations of unit length among n successors, their part of the Lipschitz constant of T."""
    if norm == 1.0:
        return np.where(n > 1 - free, 1.0, 0.0)
    if norm == 2.0:
        even = n - (n % 2) * (1.0 / np.maximum(n, 1))  # odd n: one more entry above the mean than below it
        return np.sqrt(np.where(free, n, np.where(n > 1, even, 0.0)))
    return n if free else n - n % 2
