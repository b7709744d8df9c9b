"""Compute the worst cases of rows over L1 balls, and the sums for their variances; compiled.

    value   = min_{||x - p||_1 <= psi} x . z = sum_j p_j min(z_j, tau) - psi / 2 (tau - low)
    spread  = sum_j p_j (m_j - p . m)^2        m_j = min(z_j, tau), the sensitivity to the centre p
    carried = x* . w                           x* the minimiser

with low the lowest z and tau the lowest one with at most psi / 2 of mass above it, both among successors with p_j > 0:
listed successors of probability 0 receive no mass. The sums that determine tau have a fixed order, so that tau does not
depend on the initial guess, and plans agree to the last bit. Among equal z, mass is taken from the first successors and
sent to the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.sweep import row_function
from urbe.types import FloatArray, IntArray

LONG = 8
"""In rows of at least this length, a search jumps instead of moving from level to level."""

SHUFFLED = 20
"""An insertion sort is abandoned after this many moves per entry."""

strict_function = register_jitable(fastmath=False)
"""Marks a function whose sums keep their order. Arrays make calls expensive: sweeps take all rows of a step in one."""


class L1Rows(NamedTuple):
    """Rows, their balls, and scratch space of a sweep.

    Attributes:
      entry_start, successor, p: as in `Rows`.
      radius: psi of each row.
      hint: the entry of each row at which the removal stopped before, tested first.
      z: values of successors: scratch of the longest row's length, or the values of all states if rows are dense.
    """

    entry_start: IntArray
    successor: IntArray
    p: FloatArray
    radius: FloatArray
    hint: IntArray
    z: FloatArray


class L1Answers(NamedTuple):
    """The results of sweeps, one number per row; see the module."""

    value: FloatArray
    spread: FloatArray
    carried: FloatArray


@strict_function
def sparse_sweep(wanted, rows, reward, gamma, v, w, sign, variance, answers):
    """Fills `answers`, L1Answers, for the `wanted` rows of `rows`, L1Rows.

    Args:
      reward: rewards of entries, or None.
      v, w: values and variances of the successors.
      sign: 1.0, or -1.0 for the best case instead of the worst.
      variance: whether to compute spread and carried.
    """
    entry_start, successor, p, radius, hint, z = rows
    value, spread, carried = answers
    for row in range(len(wanted)):
        if not wanted[row]:
            continue
        a = np.int64(entry_start[row])
        n, moved = np.int64(entry_start[row + 1]) - a, 0.5 * radius[row]
        for j in range(n):
            z[j] = gamma * v[np.uint32(successor[a + j])]
            if reward is not None:
                z[j] += reward[a + j]
            z[j] *= sign
        if n == 1:
            value[row], spread[row], carried[row] = sign * z[0], 0.0, w[np.uint32(successor[a])]
            continue
        tau = z[hint[row]] if moved > 0.0 else np.inf
        mean, over, low = 0.0, 0.0, np.inf
        for attempt in range(2):
            mean, over, reach, low = 0.0, 0.0, 0.0, np.inf
            for j in range(n):
                x, mass = z[j], p[a + j]
                mean += mass * min(x, tau)
                over += mass if x > tau else 0.0
                reach += mass if x >= tau else 0.0
                low = min(low, x) if mass > 0.0 else low
            if attempt == 1 or moved == 0.0 or (over <= moved and (reach > moved or tau == low)):
                break
            hint[row] = _search(a, n, p, z, moved, hint[row])
            tau = z[hint[row]]
        value[row] = sign * (mean - moved * (tau - low) if moved > 0.0 else mean)
        if not variance:
            continue
        around, kept, left, taken, bottom = 0.0, 0.0, moved - over, 0.0, -1
        for j in range(n):
            mass, gap = p[a + j], min(z[j], tau) - mean
            around += mass * gap * gap
            step = mass if z[j] > tau else 0.0
            if z[j] == tau and tau > low:
                step = min(max(left, 0.0), mass)
                left -= step
            taken += step
            kept += (mass - step) * w[np.uint32(successor[a + j])]
            bottom = j if z[j] == low and mass > 0.0 and bottom < 0 else bottom
        spread[row] = around
        carried[row] = kept + taken * w[np.uint32(successor[a + bottom])]


@strict_function
def _search(a, n, p, z, moved, hint):
    """Finds an entry at tau, from the hint to neighbouring levels; in long rows also by entries between the bounds."""
    at, probe = hint, hint
    below, above = -np.inf, np.inf  # tau lies strictly between
    while True:
        level, over, reach = z[at], 0.0, 0.0
        up, down, here = -1, -1, False
        for j in range(n):
            over += p[a + j] if z[j] > level else 0.0
            reach += p[a + j] if z[j] >= level else 0.0
            if p[a + j] > 0.0:
                if z[j] > level and (up < 0 or z[j] < z[up]):
                    up = j
                if z[j] < level and (down < 0 or z[j] > z[down]):
                    down = j
                here |= z[j] == level
        if up >= 0 and (over > moved or (down < 0 and not here)):
            below, at = level, up
        elif reach > moved or down < 0:
            return at
        else:
            above, at = level, down
        if n > LONG:
            probe = (probe + 5 * n // 8 + 1) % n
            if below < z[probe] < above:
                at = probe


@strict_function
def sort_down(z, order):
    """Sorts the entries by decreasing z, ties by position; `order` is a guess with few entries out of place."""
    n, moves = len(z), 0
    for k in range(1, n):
        at, j = k, order[k]
        while at > 0 and (z[order[at - 1]] < z[j] or (z[order[at - 1]] == z[j] and order[at - 1] > j)):
            order[at] = order[at - 1]
            at -= 1
        order[at] = j
        moves += k - at
        if moves > SHUFFLED * n:
            order[:] = np.argsort(-z, kind="mergesort")
            return


@strict_function
def dense_sweep(wanted, rows, order, w, sign, variance, answers):
    """Like `sparse_sweep`, for rows that list every state; `rows.z`, with its sign, is sorted in `order`."""
    _, _, p, radius, _, z = rows
    value, spread, carried = answers
    n = len(z)
    for row in range(len(wanted)):
        if not wanted[row]:
            continue
        a, moved, last = row * n, 0.5 * radius[row], n - 1
        while p[a + order[last]] == 0.0:
            last -= 1
        low = z[order[last]]
        left, k, tau = moved, 0, np.inf
        if moved > 0.0:
            while z[order[k]] > low and p[a + order[k]] <= left:
                left -= p[a + order[k]]
                k += 1
            tau = z[order[k]]
        mean, around, kept = _dense_sums(p[a : a + n], z, w, tau, variance)
        value[row] = sign * (mean - moved * (tau - low) if moved > 0.0 else mean)
        if not variance:
            continue
        if moved > 0.0:
            bottom = last
            while last > 0 and z[order[last - 1]] == low:
                last -= 1
                bottom = last if p[a + order[last]] > 0.0 else bottom
            if tau > low:
                kept += (p[a + order[k]] - left) * w[order[k]]
                left, k = 0.0, k + 1
            while k < n and z[order[k]] == tau:
                kept += p[a + order[k]] * w[order[k]]
                k += 1
            kept += (moved - left) * w[order[bottom]]
        spread[row], carried[row] = around, kept


@row_function
def _dense_sums(p, z, w, tau, variance):
    """Computes p . m, its spread, and the part of carried from successors below tau."""
    mean, around, kept = 0.0, 0.0, 0.0
    for j in range(len(p)):
        mean += p[j] * min(z[j], tau)
    if variance:
        for j in range(len(p)):
            gap = min(z[j], tau) - mean
            around += p[j] * gap * gap
            kept += p[j] * (w[j] if z[j] < tau else 0.0)
    return mean, around, kept
