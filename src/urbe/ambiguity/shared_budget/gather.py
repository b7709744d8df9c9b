"""The inputs and scratch arrays of loops over states, and the function that copies the rows of one state together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe.ambiguity.sweep import row_function
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray


class StateProblem(NamedTuple):
    """The input of every loop over states.

    Attributes:
      row_start: first row of each state.
      start, successor, p: rows as in `Rows`: `(R + 1,)`, `(E,)`, `(E,)`.
      reward, by_entry: `(R,)` rewards, or `(E,)` where they depend on the successor.
      w: `(S,)` discounted state values.
      outside: the lowest value mass may be sent to outside a row; infinite where it may not leave.
      nothing: differences of values up to this count as zero.
      budget: of each state.
      tolerance: gap, as a multiple of max |z|, at which searches stop.
    """

    row_start: IntArray
    start: IntArray
    successor: IntArray
    p: FloatArray
    reward: FloatArray
    by_entry: bool
    w: FloatArray
    outside: float
    nothing: float
    budget: FloatArray
    tolerance: float


class Hints(NamedTuple):
    """Warm starts of searches, NaN if there are none: the level or price of states, and a number per row."""

    state: FloatArray
    row: FloatArray

    @classmethod
    def none(cls, n_states: int, n_rows: int) -> Hints:
        """No warm starts: all NaN."""
        return cls(np.full(n_states, np.nan), np.full(n_rows, np.nan))


class Scratch(NamedTuple):
    """Scratch arrays, large enough for the state with the most rows and the state with the most entries.

    Attributes:
      masses, values: p and z - low of a state's rows, one after another.
      at: where each of them begins.
      low, mean: the lowest z of each row, and p . (z - low).
      slope: of each row's distance at a level.
      work: `(4, n)` for the functions of one row.
      path: `(3, rows)` where nature's answers to prices lie: the last, and those on both sides of the best price.
    """

    masses: FloatArray
    values: FloatArray
    at: IntArray
    low: FloatArray
    mean: FloatArray
    slope: FloatArray
    work: FloatArray
    path: FloatArray

    @classmethod
    def of(cls, rows: Rows, row_start: IntArray) -> Scratch:
        """Fresh scratch for rows grouped by `row_start`."""
        n_rows = max(int(np.diff(row_start).max(initial=1)), 1)
        n_entries = max(int(np.diff(rows.entry_start[row_start]).max(initial=1)), 1)
        return cls(
            np.empty(n_entries), np.empty(n_entries), np.zeros(n_rows + 1, dtype=np.int64),
            np.empty(n_rows), np.empty(n_rows), np.empty(n_rows), np.empty((4, rows.longest)), np.empty((3, n_rows)),
        )  # fmt: skip


@row_function
def gather(first, last, problem, scratch):
    """Copies the rows of a state; y = z - low in `values`, low and p . y of each row, and max |z|.

    Differences of `nothing` or less, or of 2^-100 of the row's values, are ties.
    """
    start, successor, p, reward, by_entry, w = (
        problem.start, problem.successor, problem.p, problem.reward, problem.by_entry, problem.w,
    )  # fmt: skip
    outside, nothing = problem.outside, problem.nothing
    masses, values, at, low, mean = scratch.masses, scratch.values, scratch.at, scratch.low, scratch.mean
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
