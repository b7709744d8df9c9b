"""Find where the removal of mass stops in an L1 ball, and remove it.

    tau = the lowest z_j with mass(z > z_j) <= moved,

so that mass(z >= tau) >= moved, or tau is the lowest value of all.
"""

from __future__ import annotations

import numpy as np

from urbe.ambiguity.sweep import row_function

SHORT = 48
"""Up to this row length, comparing all pairs of entries is faster than a search."""

PASSES = 12


@row_function
def stopping_value(p, z, moved, guess, above):
    """Returns tau and the lowest value of a row; `guess` is the level at which a search starts, `above` is scratch.

    Short rows compare all pairs of entries, which takes no branches.
    """
    n = p.shape[0]
    if n > SHORT:
        return _search(p, z, moved, guess)
    for j in range(n):
        above[j] = 0.0
    for i in range(n):
        p_i, z_i = p[i], z[i]
        for j in range(n):
            above[j] += p_i if z_i > z[j] else 0.0
    tau, least = np.inf, np.inf
    for j in range(n):
        tau = min(tau, z[j] if above[j] <= moved else np.inf)
        least = min(least, z[j])
    return tau, least


@row_function
def move_mass(p, z, low, moved, tau, q, m):
    """Writes q, p with mass `moved` removed from the top down to tau, and m = min(z, tau); returns mass sent outside.

    Among equal successors the first ones give, and the first at `low` receives; without one, mass leaves the row.
    """
    above, receiver = 0.0, -1
    for j in range(p.shape[0]):
        m[j] = min(z[j], tau)
        above += p[j] if z[j] > tau else 0.0
    for j in range(p.shape[0]):
        if z[j] == low:
            receiver = j
            break
    left, total = moved - above, 0.0
    for j in range(p.shape[0]):
        step = p[j] if z[j] > tau else 0.0
        if z[j] == tau and tau > low:
            step = min(max(left, 0.0), p[j])
            left -= step
        q[j] = p[j] - step
        total += step
    if receiver < 0:
        return total
    q[receiver] += total
    return 0.0


@row_function
def _search(p, z, moved, guess):
    """Returns tau with mass(z > tau) <= moved <= mass(z >= tau), or the lowest value; and the lowest value.

    Mass and number of entries above a level are sums, which vectorise: a secant search on the level starts from the
    guess and ends when one entry is left in the interval. For ties and uneven spacings, a walk over the rest follows.
    """
    least, top = _extremes(z)
    bottom = least
    above_bottom, count_bottom = _beyond(p, z, bottom)
    if above_bottom <= moved:
        return bottom, least
    above_top, count_top = 0.0, 0.0
    level = guess
    for _ in range(PASSES):
        if not bottom < level < top:
            level = 0.5 * (bottom + top)
        above, count = _beyond(p, z, level)
        if above > moved:
            bottom, above_bottom, count_bottom = level, above, count
        else:
            top, above_top, count_top = level, above, count
        if count_bottom - count_top == 1.0:
            between = 0.0
            for j in range(p.shape[0]):
                between += z[j] if (z[j] > bottom) & (z[j] <= top) else 0.0
            return between, least
        level = bottom + (top - bottom) * (above_bottom - moved) / (above_bottom - above_top)
    return _walk_down(p, z, moved - above_top, bottom, top), least


@row_function
def _beyond(p, z, level):
    """Returns mass and number of entries above a level."""
    above, count = 0.0, 0.0
    for j in range(p.shape[0]):
        above += p[j] if z[j] > level else 0.0
        count += 1.0 if z[j] > level else 0.0
    return above, count


@row_function
def _extremes(z):
    """Returns the least and the largest entry, in two interleaved chains, since minima do not vectorise here."""
    n = z.shape[0]
    low_a, low_b, high_a, high_b = z[0], z[n - 1], z[0], z[n - 1]
    for j in range(n >> 1):
        x, y = z[2 * j], z[2 * j + 1]
        low_a, low_b = min(low_a, x), min(low_b, y)
        high_a, high_b = max(high_a, x), max(high_b, y)
    return min(low_a, low_b), max(high_a, high_b)


@row_function
def _walk_down(p, z, left, bottom, top):
    """Walks down from the highest entry in (bottom, top], value by value, until mass `left` is covered."""
    tau = np.inf
    while True:
        highest, mass = bottom, 0.0
        for j in range(p.shape[0]):
            if z[j] <= top and z[j] < tau and z[j] > highest:
                highest = z[j]
        if highest == bottom:  # the remaining mass is rounding
            return tau
        tau = highest
        for j in range(p.shape[0]):
            mass += p[j] if z[j] == tau else 0.0
        left -= mass
        if left <= 0.0:
            return tau
