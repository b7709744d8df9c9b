"""L1 distance: mass moves from the highest successors to the lowest one; half the distance is the moved mass.

    h(price) = sum_j p_j min(y_j, tau),   tau = 2 price
    xi(c)    = 2 (sum_j p_j min(y_j, tau) - c) / tau,   tau where removing everything above leaves at least c,
                                                        and removing the mass at tau too leaves at most c
The path's parameter is the distance, x = xi.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.shared_budget.distance import Distance, in_any_order
from urbe.ambiguity.sweep import row_function


@row_function
def _level(p, y, c, mean, hint, work):
    if c <= 0.0:
        distance = 2.0 * _mass_above(p, y, 0.0)
        return distance, np.inf, distance, hint
    k = _stop(p, y, mean - c, hint, True)
    tau = y[k]
    beta = 2.0 / tau
    xi = max((_capped(p, y, tau) - c) * beta, 0.0)
    return xi, beta, xi, float(k)


@row_function
def _penalty(p, y, mean, price, hint, work):
    tau = 2.0 * max(price, 0.0)
    distance = 2.0 * _mass_above(p, y, tau)
    return _capped(p, y, tau), distance, 0.0, distance, hint


@row_function
def _point(p, y, x, work, q):
    """Moves mass x / 2 from the top to the first entry of value 0 or, without one, outside the row."""
    tau = y[_stop(p, y, 0.5 * x, 0.0, False)]
    left = 0.5 * x - _mass_above(p, y, tau)
    sent = 0.0
    for j in range(p.shape[0]):
        step = p[j] if y[j] > tau else 0.0
        if y[j] == tau and tau > 0.0:
            step = min(max(left, 0.0), p[j])
            left -= step
        q[j] = p[j] - step
        sent += step
    for j in range(p.shape[0]):
        if y[j] == 0.0:
            q[j] += sent
            return 0.0
    return sent


@row_function
def _capped(p, y, tau):
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * min(y[j], tau)
    return total


@row_function
def _mass_above(p, y, tau):
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] if y[j] > tau else 0.0
    return total


@row_function
def _around(p, y, tau, by_value):
    """Returns weight above tau and at tau, the adjacent values, and an entry at tau; one pass without branches."""
    above, at, up, down, entry = 0.0, 0.0, np.inf, -np.inf, 0
    for j in range(p.shape[0]):
        weight = p[j] * y[j] if by_value else p[j]
        above += weight if y[j] > tau else 0.0
        at += weight if y[j] == tau else 0.0
        up = min(up, y[j] if y[j] > tau else np.inf)
        down = max(down, y[j] if y[j] < tau else -np.inf)
        entry = j if y[j] == tau else entry
    return above, at, up, down, entry


@row_function
def _stop(p, y, amount, hint, by_value):
    """Finds an entry with weight(y > y_k) <= amount <= weight(y >= y_k), or the lowest; weights are p y, or p.

    The search moves from the previous entry to its neighbours, then bisects the values.
    """
    n = p.shape[0]
    tau = y[int(hint)] if 0.0 <= hint < n else 0.5 * y.max()
    bottom, top = 0.0, np.inf
    # entries of value zero have no weight p y: a removal by value never reaches them
    ground = 0.0 if by_value else -np.inf
    tries = 0
    while True:
        above, at, up, down, entry = _around(p, y, tau, by_value)
        # sums in different order may differ in the last bit: never return to visited entries
        if above > amount and up < np.inf and up <= top:
            bottom = up
            following = up
        elif above + at < amount and down > ground and down >= bottom:
            top = down
            following = down
        elif at > 0.0 or y[entry] == tau:
            return entry
        else:  # the first guess was between two values
            following = up if up < np.inf else down
        tries += 1
        if tries > 2 and bottom < top:
            # use values as ends, so that the next guess is a value
            bottom, top = max(bottom, y.min()), min(top, y.max())
            middle = 0.5 * (bottom + top)
            following = bottom
            for j in range(n):
                following = max(following, y[j] if y[j] <= middle else bottom)
        tau = following


@register_jitable
def _distance(q, p, sent):
    return np.abs(q - p).sum() + sent


@register_jitable
def _sensitivity(p, y, q, price, m):
    """h = sum_j p_j min(y_j, 2 price)."""
    for j in range(len(p)):
        m[j] = min(y[j], 2.0 * price)


def _measure(q: Any, p: Any) -> Any:
    return np.abs(q - p).sum(axis=-1)


def _bound(p: Any, y: Any, price: Any) -> Any:
    """u_j = max(c - y_j, -price) with c = price: c - p . u = sum_j p_j min(y_j, 2 price)."""
    return (p * np.minimum(y, 2.0 * price[:, None])).sum(axis=1)


L1 = Distance(in_any_order, _level, _penalty, _point, _distance, _sensitivity, _measure, _bound, 2.0**-53, 2.0)
