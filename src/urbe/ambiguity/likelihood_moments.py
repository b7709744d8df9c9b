"""Moments of likelihood regions (see `moments`), in one pass over each row after a sweep; notation of `likelihood`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from urbe.ambiguity.block_sweep import NO_SPAN, to_unit
from urbe.ambiguity.exponential import log_of
from urbe.ambiguity.moments import gather_u, spread_of
from urbe.ambiguity.sweep import FAST, gather, row_function

TOLERANCE = 2.0**-48
"""Largest error of a row's value left by the search for X, as a multiple of the row's span."""

TINY = 2.0**-100
"""Radii below change no value by more than sqrt(radius / 2) = 2^-50.5 spans (Pinsker's inequality)."""

FAINT = 1e-30
"""Mass of the lowest successors that counts as none: it bounds how much the others have to keep by 70 FAINT."""

MOST = 1.0 / TOLERANCE
"""Largest x a sweep looks at: the dual's slope in X is at least -1, so that smaller X gain at most the tolerance."""


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def region_moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments`: q = p / (mass (1 + x y)), m = span log(1 + x y) / (x mass) at the last sweep's x."""
    start, successor, p, data, radius, outside, w = problem
    for row in range(len(start) - 1):
        a = np.int64(start[row])
        n = np.int64(start[row + 1]) - a
        row_p, row_successor = p[a : a + n], successor[a : a + n]
        z, low = gather(a, n, successor, r, w, outside, work)
        high = z[0]
        for j in range(n):
            high = max(high, z[j])
        span, x = high - low, hint[row]
        if x >= 0.5 * MOST and span > NO_SPAN and radius[row] > TINY:  # only there may mass have left the row
            row_u, u_low = gather_u(a, n, successor, z, low, u, u_outside, work)
            m = work[2, :n]
            carried[row] = _beyond(row_p, z, row_u, low, u_low, radius[row], work[3:, :n], m)
            if carried[row] >= 0.0:
                scatter[row] = spread_of(row_p, m)
                continue
        x = max(x, 1e-30) if radius[row] > TINY else 1e-30  # at 1e-30 nature does nothing
        factor, unit = (x, 1.0 / span) if span > NO_SPAN else (0.0, 0.0)
        mass, first, square, total = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            t = factor * ((z[j] - low) * unit)
            share = row_p[j] / (1.0 + t)
            less = log_of(1.0 + t, t)
            mass += share
            total += share * u[np.uint32(row_successor[j])]
            first += row_p[j] * less
            square += row_p[j] * less * less
        scale = span / (x * mass)
        scatter[row] = max(square - first * first, 0.0) * scale * scale
        carried[row] = total / mass


@row_function
def _beyond(p, z, u, low, u_low, radius, work, m):
    """q . u where the set may send mass out of the row, and m as in `_minimiser`; negative where it does not."""
    y = work[0]
    span = to_unit(z, low, y)
    mean_log, limit = at_zero(p, y)
    if radius < limit:
        return -1.0
    c = math.exp(max(mean_log - radius, -500.0))
    mass, carried = 0.0, 0.0
    for j in range(p.shape[0]):
        m[j] = 0.0
        if p[j] > 0.0 and y[j] > 0.0:
            share = c * p[j] / y[j]
            m[j] = span * c * math.log(y[j])
            mass += share
            carried += share * u[j]
    return carried + max(1.0 - mass, 0.0) * u_low


@row_function
def at_zero(p, y):
    """sum p log y over the successors above the lowest, and H(0): infinite unless the lowest have hardly any mass."""
    logs = 0.0
    inverse = 0.0
    faint = 0.0
    for j in range(p.shape[0]):
        if y[j] <= 0.0:
            faint += p[j]
        elif p[j] > 0.0:
            logs += p[j] * math.log(y[j])
            inverse += p[j] / y[j]
    return logs, logs + math.log(inverse) if faint <= FAINT else np.inf
