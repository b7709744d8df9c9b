"""The rows of one state, copied together for the searches."""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.sweep import row_function


@row_function
def gather(first, last, problem, masses, values, at, low, mean):
    """Copies the rows of a state; y = z - low in `values`, low and p . y of each row, and max |z|.

    Differences of `nothing` or less, or of 2^-100 of the row's values, are ties.
    """
    start, successor, p, reward, by_entry, w, outside, nothing = problem
    size = 0.0
    at[0] = 0
    for row in range(first, last):
        k = row - first
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        y = values[at[k] : at[k] + n]
        constant = 0.0 if by_entry else reward[row]
        lowest = outside + constant
        highest = -np.inf
        for j in range(n):
            z = w[np.uint32(successor[a + j])] + (reward[a + j] if by_entry else constant)
            y[j] = z
            lowest = min(lowest, z)
            highest = max(highest, z)
        largest = max(abs(lowest), abs(highest))
        least = max(nothing, 2.0**-100 * largest)
        total = 0.0
        for j in range(n):
            above = y[j] - lowest
            y[j] = above if above > least else 0.0
            masses[at[k] + j] = p[a + j]
            total += p[a + j] * y[j]
        at[k + 1] = at[k] + n
        low[k] = lowest
        mean[k] = total
        size = max(size, largest)
    return size
