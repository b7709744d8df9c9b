"""A sweep for sets whose rows are solved by improving the multiplier of the last sweep, many rows at a time.

Each row of a block is scaled to y_j = (z_j - low) / (high - low) in [0, 1], where `low` is the least value that may
receive mass and `high` the largest of the row. A set provides functions of plain numbers,

    line(x)                             -> a, b: the set's nonlinearity is taken at t = a y + b; x > 0 is a multiplier
    curve(t)                            -> u, v: the nonlinearity, without branches
    moments(p, a, t, u, v, b, n)        -> four sums over the entries p[a + j], t[b + j], u[b + j], v[b + j], j < n
    judge(radius, x, s0, s1, s2, s3)    -> value, better x, ok, without branches
    worst(p, y, t, u, v, radius, x)     -> value, x: solves a row from any x > 0; t, u, v are scratch

`curve` runs over all entries of the block at once, whatever the length of its rows, and `judge` over all its rows, so
that both are vectorised. Rows judged unfinished take another round at the better x; those still unfinished are solved
by `worst`. Wherever `judge` says ok, its value is as accurate as that of `worst`. Values are in units of high - low,
above low. A multiplier is such that small radii have x = sqrt(2 radius / variance of y), the first guess.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.exponential import power_of_two
from urbe.ambiguity.sweep import FAST, RowFunction, named_after, row_function, when_called

ROUNDS = 4

BLOCK = 64
"""Largest number of rows of a block, and the stride of its scratch space; a constant lets loops vectorise."""

ENTRIES = 2048
"""Entries of a block, unless one row is longer: its arrays then fit into the first-level cache."""

NO_SPAN = 1e-300
"""A row whose values differ by less counts as constant: the inverse of its span would overflow."""

# Offsets are unsigned, since each access would otherwise check for a negative index; slices would count references.
U = np.uint64

vector_function = register_jitable(fastmath=FAST, error_model="numpy", inline="always")
"""Marks a function to be vectorised over rows: inlined, and without tests for division by zero."""


@when_called
def make_block_sweep(
    line: RowFunction, curve: RowFunction, moments: RowFunction, judge: RowFunction, worst: RowFunction
) -> Callable[..., None]:
    """Makes a compiled sweep over the rows `first .. last` that writes `out` and updates `hint`."""

    @njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
    @named_after(worst, power_of_two)
    def sweep(first, last, problem, r, reward, shift, hint, work, out):
        start, successor, p, data, radius, outside, w = problem
        width = work.shape[1]
        size = max(1, min(BLOCK, ENTRIES // width))
        z, t, u, v = np.empty(size * width), np.empty(size * width), np.empty(size * width), np.empty(size * width)
        low, span, place = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, dtype=np.int64)
        c = np.empty(9 * BLOCK)  # columns: radius, x, four sums, value, better x, ok
        for block in range(first, last, size):
            count = min(size, last - block)
            left = 0
            for k in range(count):
                a, b = U(start[block + k]), U(k * width)
                n = U(start[block + k + 1]) - a
                for j in range(n):
                    z[b + j] = w[np.uint32(successor[a + j])]
                if r is not None:
                    for j in range(n):
                        z[b + j] += r[a + j]
                least, most = z[b], z[b]
                for j in range(n):
                    least = min(least, z[b + j])
                    most = max(most, z[b + j])
                least = min(least, outside)
                low[k], span[k] = least, most - least
                out[block + k] = 0.0
                if span[k] > NO_SPAN:
                    x = hint[block + k]
                    if x <= 0.0:
                        mean, unit = 0.0, 1.0 / span[k]
                        for j in range(n):
                            mean += p[a + j] * ((z[b + j] - least) * unit)
                        variance = 0.0
                        for j in range(n):
                            variance += p[a + j] * ((z[b + j] - least) * unit - mean) ** 2
                        x = first_guess(radius[block + k], variance)
                    place[left], c[left], c[BLOCK + left] = k, radius[block + k], x
                    left += 1
            for _ in range(ROUNDS):
                used = U(0)
                for i in range(left):
                    k = place[i]
                    b, n = U(k * width), U(start[block + k + 1]) - U(start[block + k])
                    factor, offset = line(c[BLOCK + i])
                    unit, least = 1.0 / span[k], low[k]
                    for j in range(n):
                        t[used + j] = factor * ((z[b + j] - least) * unit) + offset
                    used += n
                for j in range(used):
                    u[j], v[j] = curve(t[j])
                used = U(0)
                for i in range(left):
                    a = U(start[block + place[i]])
                    n = U(start[block + place[i] + 1]) - a
                    s0, s1, s2, s3 = moments(p, a, t, u, v, used, n)
                    c[2 * BLOCK + i], c[3 * BLOCK + i], c[4 * BLOCK + i], c[5 * BLOCK + i] = s0, s1, s2, s3
                    used += n
                for i in range(left):
                    value, x, ok = judge(
                        c[i], c[BLOCK + i], c[2 * BLOCK + i], c[3 * BLOCK + i], c[4 * BLOCK + i], c[5 * BLOCK + i]
                    )
                    c[6 * BLOCK + i] = value
                    c[7 * BLOCK + i] = x
                    c[8 * BLOCK + i] = 1.0 if ok else 0.0
                unfinished = 0
                for i in range(left):
                    k = place[i]
                    out[block + k] = c[6 * BLOCK + i]
                    hint[block + k] = c[7 * BLOCK + i]
                    if c[8 * BLOCK + i] == 0.0:
                        place[unfinished] = k
                        c[unfinished], c[BLOCK + unfinished] = c[i], c[7 * BLOCK + i]
                        unfinished += 1
                left = unfinished
                if left == 0:
                    break
            for i in range(left):
                k = place[i]
                e, m, d = np.int64(start[block + k]), np.int64(start[block + k + 1] - start[block + k]), k * width
                y = z[d : d + m]
                least, unit = low[k], 1.0 / span[k]
                for j in range(m):
                    y[j] = (y[j] - least) * unit
                out[block + k], hint[block + k] = worst(p[e : e + m], y, t[:m], u[:m], v[:m], c[i], c[BLOCK + i])
            for k in range(count):
                out[block + k] = low[k] + span[k] * out[block + k] + shift
                if r is None:
                    out[block + k] += reward[block + k]

    return sweep


@vector_function
def first_guess(radius, variance):
    """sqrt(2 radius / variance), kept away from zero and infinity."""
    return min(max(np.sqrt(2.0 * radius / max(variance, 1e-30)), 1e-30), 1e15)


@row_function
def to_unit(z, low, y):
    """Writes (z - low) / span to y; returns the span max z - low, zero if all values are equal.

    Values within 1e-100 spans of the lowest become ties: the squares of their distances would underflow.
    """
    high = z[0]
    for j in range(z.shape[0]):
        high = max(high, z[j])
    span = high - low
    if not span > NO_SPAN:
        return 0.0
    unit = 1.0 / span
    for j in range(z.shape[0]):
        y[j] = (z[j] - low) * unit
        y[j] = y[j] if y[j] > 1e-100 else 0.0
    return span
