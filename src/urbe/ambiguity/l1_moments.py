"""Moments of L1 balls (see `moments`), in one pass over each row after a sweep."""

from __future__ import annotations

import numpy as np
from numba import njit

from urbe.ambiguity.sweep import FAST

BITS = 26
MARGINAL = (1 << BITS) - 1
"""A row's hint holds two of its entries: where the removal stopped, and the lowest one, shifted by BITS."""


@njit(cache=True, nogil=True, fastmath=FAST)
def l1_moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments` in one pass over each row: m = min(z, tau), whose mean follows from the row's value.

    What lies above tau moves to the lowest, and of what lies at tau as much as is left to move.
    """
    start, successor, p, data, radius, outside, w = problem
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        code = np.int64(hint[row])
        marginal, lowest = code & MARGINAL, code >> BITS
        tau, least = w[np.int64(successor[a + marginal])], w[np.int64(successor[a + lowest])]
        low, u_low = outside, u_outside
        if r is not None:
            tau += r[a + marginal]
            least += r[a + lowest]
        if least <= outside:
            low, u_low = least, u[np.int64(successor[a + lowest])]
        moved = 0.5 * radius[row]
        mean = bare[row] + moved * (tau - low)
        first, square, above, kept_u = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            state = np.uint32(successor[a + j])
            z = w[state]
            if r is not None:
                z += r[a + j]
            m = min(z, tau) - mean
            first += p[a + j] * m
            square += p[a + j] * m * m
            over = p[a + j] if z > tau else 0.0
            above += over
            kept_u += (p[a + j] - over) * u[state]
        left = max(moved - above, 0.0) if tau > low else 0.0
        at, at_u = p[a + marginal], u[np.int64(successor[a + marginal])]
        if left > at:  # more than one successor at tau: they give alike
            at, at_u = 0.0, 0.0
            for j in range(n):
                state = np.uint32(successor[a + j])
                z = w[state]
                if r is not None:
                    z += r[a + j]
                at += p[a + j] if z == tau else 0.0
                at_u += p[a + j] * u[state] if z == tau else 0.0
            at_u /= at
            left = min(left, at)
        scatter[row] = max(square - first * first, 0.0)
        carried[row] = kept_u - left * at_u + (above + left) * u_low


@njit(cache=True, nogil=True, fastmath=FAST)
def dense_l1_moments(p, radius, w, u, lowest, bare, hint, scatter, carried):
    """The same for rows that list every state, `p` of shape `(R, S)`; `hint` is the state where the removal stopped."""
    n = len(w)
    low, u_low = w[lowest], u[lowest]
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
        if left > at:  # more than one state at tau: they give alike
            at, at_u = 0.0, 0.0
            for j in range(n):
                here = row_p[j] if w[j] == tau else 0.0
                at += here
                at_u += here * u[j]
            at_u /= at
            left = min(left, at)
        scatter[row] = max(square - first * first, 0.0)
        carried[row] = kept_u - left * at_u + (above + left) * u_low
