"""A sweep for sets whose rows are solved by improving last time's multiplier, many rows at a time.

A block of rows is gathered and brought to the unit y_j = (z_j - low) / (high - low) in [0, 1], where `low` is the
least value mass may be sent to and `high` the largest of the row. A set brings functions of plain numbers,

    rate(x)                                 factor of y in the set's nonlinearity, for a row's multiplier x
    curve(t)                                -> u, v: the nonlinearity at t = rate * y, without branches
    moments(p, y, u, v)                     -> four sums over a row
    judge(radius, x, s0, s1, s2, s3)        -> value, better x, ok
    worst(p, y, u, v, radius, x)            -> value, x: solves a row from any x (0.0: none known); u, v are scratch

`curve` runs over all entries of the block at once, whatever the length of its rows: this is where vector units pay.
Rows judged unfinished take another round at the better x; those still unfinished are given to `worst`. Wherever
`judge` says ok its value is as accurate as that of `worst`. Values are in units of high - low, above low.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from urbe.ambiguity.sweep import FAST, RowFunction, fingerprint, row_function

ROUNDS = 3
BLOCK = 128
"""Most rows of a block, and the distance between columns of its scratch space; a constant lets loops vectorise."""

ENTRIES = 1280
"""Entries of a block, so that its arrays stay in the nearest cache."""


def make_block_sweep(
    rate: RowFunction, curve: RowFunction, moments: RowFunction, judge: RowFunction, worst: RowFunction
) -> Callable[..., None]:
    """A compiled sweep over the rows `first .. last` that writes `out` and updates `hint`."""
    text = fingerprint(worst)

    @njit(cache=True, nogil=True, fastmath=FAST)
    def sweep(first, last, start, successor, p, r, data, radius, outside, w, reward, shift, hint, work, out):  # type: ignore[no-untyped-def]
        text  # noqa: B018  part of the cache key
        width = work.shape[1]
        size = max(1, min(BLOCK, ENTRIES // width))
        y, t, u, v = np.empty(size * width), np.empty(size * width), np.empty(size * width), np.empty(size * width)
        low, span = np.empty(BLOCK), np.empty(BLOCK)
        place = np.empty(BLOCK, dtype=np.int64)
        c = np.empty(9 * BLOCK)  # columns: radius, x, four sums, value, better x, ok
        for block in range(first, last, size):
            count = min(size, last - block)
            left = 0
            for k in range(count):
                a = np.int64(start[block + k])
                n = np.int64(start[block + k + 1]) - a
                row_y, row_successor = y[k * width : k * width + n], successor[a : a + n]
                for j in range(n):
                    row_y[j] = w[np.uint32(row_successor[j])]
                    if r is not None:
                        row_y[j] += r[a + j]
                least, most = extremes(row_y)
                least = min(least, outside)
                low[k], span[k] = least, most - least
                out[block + k] = 0.0
                if most > least:
                    unit = 1.0 / (most - least)
                    for j in range(n):
                        row_y[j] = (row_y[j] - least) * unit
                    place[left] = k
                    c[left] = radius[block + k]
                    c[BLOCK + left] = hint[block + k]
                    left += 1
            for _ in range(ROUNDS):
                used = 0
                for i in range(left):
                    k = place[i]
                    n = np.int64(start[block + k + 1]) - np.int64(start[block + k])
                    factor = rate(c[BLOCK + i])
                    row_y, row_t = y[k * width : k * width + n], t[used : used + n]
                    for j in range(n):
                        row_t[j] = factor * row_y[j]
                    used += n
                for j in range(used):
                    u[j], v[j] = curve(t[j])
                used = 0
                for i in range(left):
                    k = place[i]
                    a = np.int64(start[block + k])
                    n = np.int64(start[block + k + 1]) - a
                    c[2 * BLOCK + i], c[3 * BLOCK + i], c[4 * BLOCK + i], c[5 * BLOCK + i] = moments(
                        p[a : a + n], y[k * width : k * width + n], u[used : used + n], v[used : used + n]
                    )
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
                        c[unfinished] = c[i]
                        c[BLOCK + unfinished] = c[7 * BLOCK + i]
                        place[unfinished] = k
                        unfinished += 1
                left = unfinished
                if left == 0:
                    break
            for i in range(left):
                k = place[i]
                a = np.int64(start[block + k])
                n = np.int64(start[block + k + 1]) - a
                out[block + k], hint[block + k] = worst(
                    p[a : a + n], y[k * width : k * width + n], u[:n], v[:n], c[i], c[BLOCK + i]
                )
            for k in range(count):
                out[block + k] = low[k] + span[k] * out[block + k] + shift
                if r is None:
                    out[block + k] += reward[block + k]

    return sweep  # type: ignore[no-any-return]


@row_function
def extremes(z):  # type: ignore[no-untyped-def]
    """min z and max z."""
    low = z[0]
    high = z[0]
    for j in range(z.shape[0]):
        low = min(low, z[j])
        high = max(high, z[j])
    return low, high
