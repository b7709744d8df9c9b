"""A sweep for sets whose rows are solved by improving last time's multiplier, many rows at a time.

Rows are gathered in blocks. For each row of a block `moments` makes a few vectorised passes over its entries; then
`judge`, itself vectorised over the rows, turns the sums into a value, a better multiplier and a verdict. Rows judged
unfinished take another round; those still unfinished after `ROUNDS` are given to `worst`.

    moments(p, z, low, high, radius, x)            -> four sums
    judge(low, high, radius, x, s0, s1, s2, s3)    -> value, better x, ok
    worst(p, z, low, high, radius, x)              -> value, x

    p     (n,)   nominal probabilities             low, high  least value mass may be sent to, largest z
    z     (n,)   value of each successor           x          the row's multiplier, 0.0 when none is known yet

`judge` has no branches and divides by no zero. Wherever it says ok the value is as accurate as that of `worst`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numba.extending import register_jitable

from urbe.ambiguity.sweep import FAST, RowFunction, _fingerprint

ROUNDS = 3
BLOCK = 256
"""Rows in a block, and the distance between columns of its scratch space: a constant, so that they cannot overlap."""

GATHERED = 8192
"""Entries a block may gather: they stay in the nearest cache."""


def make_block_sweep(worst: RowFunction, moments: RowFunction, judge: RowFunction) -> Callable[..., None]:
    """A compiled sweep over the rows `first .. last` that writes `out` and updates `hint`."""
    text = _fingerprint(worst)

    @njit(cache=True, nogil=True, fastmath=FAST)
    def sweep(first, last, start, successor, p, r, data, radius, outside, w, reward, shift, hint, work, out):  # type: ignore[no-untyped-def]
        text  # noqa: B018  part of the cache key
        width = work.shape[1]
        size = max(1, min(BLOCK, GATHERED // width))
        z = np.empty(size * width)
        # columns: low, high, radius, x, four sums, value, better x, ok
        c = np.empty(11 * BLOCK)
        place = np.empty(BLOCK, dtype=np.int64)
        for block in range(first, last, size):
            left = min(size, last - block)
            for i in range(left):
                a = np.int64(start[block + i])
                n = np.int64(start[block + i + 1]) - a
                row_z, row_successor = z[i * width : i * width + n], successor[a : a + n]
                for j in range(n):
                    row_z[j] = w[np.uint32(row_successor[j])]
                    if r is not None:
                        row_z[j] += r[a + j]
                low, c[BLOCK + i] = extremes(row_z)
                c[i] = min(low, outside)
                c[2 * BLOCK + i] = radius[block + i]
                c[3 * BLOCK + i] = hint[block + i]
                place[i] = i
            for _ in range(ROUNDS):
                for i in range(left):
                    k = place[i]
                    a = np.int64(start[block + k])
                    n = np.int64(start[block + k + 1]) - a
                    c[4 * BLOCK + i], c[5 * BLOCK + i], c[6 * BLOCK + i], c[7 * BLOCK + i] = moments(
                        p[a : a + n], z[k * width : k * width + n], c[i], c[BLOCK + i], c[2 * BLOCK + i],
                        c[3 * BLOCK + i],
                    )  # fmt: skip
                for i in range(left):
                    value, x, ok = judge(
                        c[i], c[BLOCK + i], c[2 * BLOCK + i], c[3 * BLOCK + i],
                        c[4 * BLOCK + i], c[5 * BLOCK + i], c[6 * BLOCK + i], c[7 * BLOCK + i],
                    )  # fmt: skip
                    c[8 * BLOCK + i] = value
                    c[9 * BLOCK + i] = x
                    c[10 * BLOCK + i] = 1.0 if ok else 0.0
                unfinished = 0
                for i in range(left):
                    k = place[i]
                    out[block + k] = c[8 * BLOCK + i]
                    hint[block + k] = c[9 * BLOCK + i]
                    if c[10 * BLOCK + i] == 0.0:
                        c[unfinished] = c[i]
                        c[BLOCK + unfinished] = c[BLOCK + i]
                        c[2 * BLOCK + unfinished] = c[2 * BLOCK + i]
                        c[3 * BLOCK + unfinished] = c[9 * BLOCK + i]
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
                    p[a : a + n], z[k * width : k * width + n], c[i], c[BLOCK + i], c[2 * BLOCK + i], c[3 * BLOCK + i]
                )
        for row in range(first, last):
            out[row] += shift
            if r is None:
                out[row] += reward[row]

    return sweep  # type: ignore[no-any-return]


@register_jitable
def extremes(z):  # type: ignore[no-untyped-def]
    """min z and max z, in four chains each: compilers do not reorder minima, and one chain is slow."""
    n = z.shape[0]
    low0 = low1 = low2 = low3 = high0 = high1 = high2 = high3 = z[0]
    for j in range(0, n - 3, 4):
        low0 = min(low0, z[j])
        low1 = min(low1, z[j + 1])
        low2 = min(low2, z[j + 2])
        low3 = min(low3, z[j + 3])
        high0 = max(high0, z[j])
        high1 = max(high1, z[j + 1])
        high2 = max(high2, z[j + 2])
        high3 = max(high3, z[j + 3])
    for j in range(n - n % 4, n):
        low0 = min(low0, z[j])
        high0 = max(high0, z[j])
    return min(min(low0, low1), min(low2, low3)), max(max(high0, high1), max(high2, high3))
