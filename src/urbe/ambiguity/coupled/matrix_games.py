"""Solve many small matrix games, one for each state, by the simplex method; compiled.

    max_pi min_k  sum_a pi_a w_k(a)   =   min_mix max_a  sum_k mix_k w_k(a)

With the entries scaled to M in [1, 2], the second problem is: maximise sum_k y_k subject to sum_k M_ak y_k <= 1 and
y >= 0; then mix = y / sum y, and the multipliers of the rows are proportional to pi. Bland's rule excludes cycles.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from urbe.types import FloatArray, IntArray

SMALL = 1e-14
"""Reduced costs and pivots below this count as zero; entries are between 1 and 2."""


def solve_games(row_start: IntArray, columns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Returns `(S,)` an upper bound on the value of each state's game, `(R,)` policies and `(K, S)` mixtures.

    The bound is the best an action does against the mixture: it is valid whatever the accuracy of the simplex method.

    Args:
      row_start: the first row of each state, as in `MDP`.
      columns: `(K, R)` nature's answers: for each the value of every row.
    """
    n_states = len(row_start) - 1
    upper, policy = np.zeros(n_states), np.zeros(columns.shape[1])
    mixture = np.zeros((len(columns), n_states))
    _games(row_start, columns, upper, policy, mixture)
    return upper, policy, mixture


@njit(cache=True, nogil=True)
def _games(row_start, columns, upper, policy, mixture):
    n_answers = len(columns)
    for s in range(len(row_start) - 1):
        first, last = row_start[s], row_start[s + 1]
        n = last - first
        if n == 0:
            continue
        low, high = np.inf, -np.inf
        for k in range(n_answers):
            for a in range(first, last):
                low, high = min(low, columns[k, a]), max(high, columns[k, a])
        mix, weights = np.zeros(n_answers), np.zeros(n)
        mix[0], weights[0] = 1.0, 1.0
        if high > low:
            table = np.zeros((n + 1, n_answers + n + 1))
            for a in range(n):
                for k in range(n_answers):
                    table[a, k] = 1.0 + (columns[k, first + a] - low) / (high - low)
                table[a, n_answers + a] = 1.0
                table[a, n_answers + n] = 1.0
            table[n, :n_answers] = -1.0
            basis = n_answers + np.arange(n)
            _simplex(table, basis)
            mix[:] = 0.0
            for a in range(n):
                if basis[a] < n_answers:
                    mix[basis[a]] = max(table[a, n_answers + n], 0.0)
                weights[a] = max(table[n, n_answers + a], 0.0)
            mix /= mix.sum()
            weights /= weights.sum()
        best = -np.inf
        for a in range(n):
            worth = 0.0
            for k in range(n_answers):
                worth += mix[k] * columns[k, first + a]
            best = max(best, worth)
            policy[first + a] = weights[a]
        upper[s] = best
        mixture[:, s] = mix


@njit(cache=True, nogil=True)
def _simplex(table, basis):
    n, last = len(basis), table.shape[1] - 1
    for _ in range(100 * table.shape[1]):
        enter = -1
        for j in range(last):
            if table[n, j] < -SMALL:
                enter = j
                break
        if enter < 0:
            return
        leave, least = -1, np.inf
        for a in range(n):
            if table[a, enter] > SMALL:
                ratio = table[a, last] / table[a, enter]
                if ratio < least or (ratio == least and basis[a] < basis[leave]):
                    leave, least = a, ratio
        if leave < 0:
            return
        table[leave] /= table[leave, enter]
        for a in range(n + 1):
            if a != leave and table[a, enter] != 0.0:
                table[a] -= table[a, enter] * table[leave]
        basis[leave] = enter
