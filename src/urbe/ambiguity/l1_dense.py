"""L1 balls for rows that list every state: one order of the states serves all rows of a sweep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from urbe.ambiguity.l1_search import move_mass
from urbe.ambiguity.row_nature import RowNature
from urbe.ambiguity.sweep import FAST


def with_shared_order(nature: RowNature) -> RowNature:
    """Makes a nature for dense rows whose rewards do not depend on the successor, with the loops of this file.

    A row's sum is corrected once for each state that its threshold passes, which doubles the error of a sum.
    """
    kernel = nature.kernel._replace(accuracy=nature.accuracy, sweep=_sweep, minimise=_minimise, moments=_moments)
    return replace(nature, kernel=kernel)


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep(first, last, problem, r, reward, shift, hint, work, out):
    """Makes one pass at the state where the removal stopped before, then walks along the shared order."""
    radius, w = problem.radius, problem.w
    n = len(w)
    p = problem.p.reshape(len(radius), n)
    order = np.argsort(-w, kind="mergesort")
    rank = np.empty(n, dtype=np.int64)  # tied states share the rank of the first
    for k in range(n):
        tied = k > 0 and w[order[k]] == w[order[k - 1]]
        rank[order[k]] = rank[order[k - 1]] if tied else k
    low = w[order[n - 1]]
    for row in range(first, last):
        moved = 0.5 * radius[row]
        row_p = p[row]
        k = rank[np.uint32(hint[row])]
        tau = w[order[k]]
        total = 0.0
        above = 0.0
        for j in range(n):
            total += row_p[j] * min(w[j], tau)
            above += row_p[j] if w[j] > tau else 0.0
        while above > moved and k > 0:
            k -= 1
            step = w[order[k]]
            total += above * (step - tau)
            tau = step
            # states tied with the new level are no longer above it
            while k > 0 and w[order[k - 1]] == tau:
                above -= row_p[order[k]]
                k -= 1
            above -= row_p[order[k]]
        while k < n - 1 and above + row_p[order[k]] < moved:
            above += row_p[order[k]]
            k += 1
            step = w[order[k]]
            total -= above * (tau - step)
            tau = step
        hint[row] = order[k]
        out[row] = total - moved * (tau - low) + reward[row] + shift


@njit(cache=True, nogil=True)
def _minimise(problem, r, hint, work, q, m, sent):
    """The loop of `make_minimiser`: a sweep finds where each removal stops, then mass is moved."""
    p, radius, w = problem.p, problem.radius, problem.w
    n, n_rows = len(w), len(radius)
    unused = np.zeros(n_rows)
    _sweep(0, n_rows, problem, r, unused, 0.0, hint, work, unused)
    low = w.min()
    for row in range(n_rows):
        a, b = row * n, (row + 1) * n
        move_mass(p[a:b], w, low, 0.5 * radius[row], w[np.uint32(hint[row])], q[a:b], m[a:b])


@njit(cache=True, nogil=True, fastmath=FAST)
def _moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments` as for other rows (`urbe.ambiguity.l1`); the hint is where the removal stopped."""
    radius, w = problem.radius, problem.w
    n, lowest = len(w), np.argmin(w)
    p, low, u_low = problem.p.reshape(len(radius), n), w[lowest], u[lowest]
    for row in range(len(radius)):
        row_p, marginal = p[row], np.uint32(hint[row])
        tau, moved = w[marginal], 0.5 * radius[row]
        mean = bare[row] + moved * (tau - low)
        first, square, above, kept_u = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            m = min(w[j], tau) - mean
            first += row_p[j] * m
            square += row_p[j] * m * m
            over = row_p[j] if w[j] > tau else 0.0
            above += over
            kept_u += (row_p[j] - over) * u[j]
        left = max(moved - above, 0.0) if tau > low else 0.0
        at, at_u = row_p[marginal], u[marginal]
        if left > at:  # several states at tau share the removal
            at, at_u = 0.0, 0.0
            for j in range(n):
                here = row_p[j] if w[j] == tau else 0.0
                at += here
                at_u += here * u[j]
            at_u /= at
            left = min(left, at)
        scatter[row] = max(square - first * first, 0.0)
        carried[row] = kept_u - left * at_u + (above + left) * u_low
