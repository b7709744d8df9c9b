"""Largest absolute difference: at distance r low successors gain r each, high ones lose min(p_j, r).

    sigma(r) = min {q . y : |q_j - p_j| <= r} = mean - min_tau sum_j min(p_j, r) (y_j - tau)+ + r (tau - y_j)+
    -sigma'(r) = sum_{y_j > tau, p_j > r} (y_j - tau) + sum_{y_j < tau} (tau - y_j)

sigma is convex and piecewise linear: Newton's method finds the r of a level, and tangents from both sides the r of a
price, in finitely many steps. Rows are sorted by value first. The path is followed by the distance: x = r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.shared_budget.distance import Distance
from urbe.ambiguity.zoom import highest_of_each
from urbe.types import FloatArray

GOLDEN = 0.6180339887498949
SECTIONS = 80
"""0.618^80 is below the resolution of a double."""

NOISE = 2.0**-52
"""Rounding of sigma per entry, relative to the values."""


@register_jitable
def _prepare(p, y):
    """Sorts both by y, in place: Shell sort, insertion for short rows."""
    n = y.shape[0]
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            mass, value = p[i], y[i]
            k = i
            while k >= gap and y[k - gap] > value:
                p[k], y[k] = p[k - gap], y[k - gap]
                k -= gap
            p[k], y[k] = mass, value
        gap //= 3


@register_jitable
def _stop(p, y, r):
    """tau: from here on, what all lower entries may gain is no less than what the higher ones lose."""
    lose = 0.0
    for j in range(p.shape[0]):
        lose += min(p[j], r)
    for j in range(p.shape[0]):
        lose -= min(p[j], r)
        if r * (j + 1) >= lose:
            return y[j]
    return y[p.shape[0] - 1]


@register_jitable
def _sigma(p, y, mean, r):
    """sigma(r) and -sigma'(r), from the right."""
    tau = _stop(p, y, r)
    less, slope = 0.0, 0.0
    for j in range(p.shape[0]):
        above = max(y[j] - tau, 0.0)
        below = max(tau - y[j], 0.0)
        less += min(p[j], r) * above + r * below
        slope += (above if p[j] > r else 0.0) + below
    return max(mean - less, 0.0), slope


@register_jitable
def _floor(p, y):
    """The distance at which all mass is at value 0."""
    count, largest, mass = 0.0, 0.0, 0.0
    for j in range(p.shape[0]):
        if y[j] <= 0.0:
            count += 1.0
        else:
            largest = max(largest, p[j])
            mass += p[j]
    return max(largest, mass / count)


@register_jitable
def _level(p, y, c, mean, hint, work):
    if c <= 0.0:
        r = _floor(p, y)
        return r, np.inf, r, hint
    n = p.shape[0]
    noise = 4.0 * n * NOISE * y[n - 1]
    r = hint if 0.0 < hint < 1.0 else 0.0
    # from any start the first step leads to the left of the answer, the others rise to it
    rising, beta = r == 0.0, 0.0
    while True:
        sigma, slope = _sigma(p, y, mean, r)
        if not slope > 0.0:
            if rising:  # the last step reached the floor
                return r, beta, r, r
            rising, r = True, 0.0  # beyond the floor: start again from the left
            continue
        beta = 1.0 / slope
        following = max(r + (sigma - c) * beta, 0.0)
        if abs(sigma - c) <= noise or (rising and following <= r):
            return following, beta, following, following
        rising = True
        r = following


@register_jitable
def _penalty(p, y, mean, price, hint, work):
    right = _floor(p, y)
    if price <= 0.0 or right <= 0.0:
        return 0.0, right, 0.0, right, hint
    noise = 4.0 * p.shape[0] * NOISE * y[p.shape[0] - 1]
    left, sigma_left, sigma_right, slope_right = 0.0, mean, 0.0, 0.0
    _, slope_left = _sigma(p, y, mean, 0.0)
    if price >= slope_left:
        return mean, 0.0, 0.0, 0.0, hint
    probe = 0.0 < hint < right
    while True:
        # where the tangents at both ends meet; sigma is nowhere lower than there
        r = left + (sigma_left - sigma_right - slope_right * (right - left)) / (slope_left - slope_right)
        r = min(max(r, left), right)  # where rounding put it outside, it would leave the simplex too
        bound = sigma_left - slope_left * (r - left)
        if probe:
            r, bound, probe = hint, -np.inf, False
        sigma, slope = _sigma(p, y, mean, r)
        if sigma - bound <= noise or not (left < r < right):
            return sigma + price * r, r, 0.0, r, r
        if slope > price:
            left, sigma_left, slope_left = r, sigma, slope
        else:
            right, sigma_right, slope_right = r, sigma, slope


@register_jitable
def _point(p, y, x, work, q):
    """Everything above tau loses, everything below gains; entries at tau take what balances the row."""
    n = p.shape[0]
    work[0, :n], work[1, :n] = p, y
    _prepare(work[0, :n], work[1, :n])
    tau = _stop(work[0, :n], work[1, :n], x)
    left = 0.0
    for j in range(n):
        q[j] = p[j]
        if y[j] > tau or (y[j] == tau and tau > 0.0):
            q[j] = max(p[j] - x, 0.0)
            left += min(p[j], x)
        elif y[j] < tau:
            q[j] = p[j] + x
            left -= x
    for j in range(n):
        if y[j] == tau:
            step = min(max(left, 0.0), p[j] + x - q[j])
            q[j] += step
            left -= step
    return 0.0


@register_jitable
def _apart(q, p, sent):
    return np.abs(q - p).max()


@register_jitable
def _sensitivity(p, y, q, price, m):
    """m = -u for the u that maximises min_j (y_j + u_j) - p . u over sum_j |u_j| <= price.

    Golden sections over the level c: u lifts values below c to it, and what is left of the price lowers values above
    it, those with the largest p_j first. The maximum is concave in c, and u moves continuously with it.
    """
    order = np.argsort(-p)
    a, b = 0.0, y.max()
    for _ in range(SECTIONS):
        c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
        if _dual_at(c, p, y, price, order, m) < _dual_at(d, p, y, price, order, m):
            a = c
        else:
            b = d
    _dual_at(0.5 * (a + b), p, y, price, order, m)


@register_jitable
def _dual_at(c, p, y, price, order, m):
    """The value of the level c, -inf where lifting costs more than the price; m = -u."""
    left, value = price, c
    for j in range(len(p)):
        m[j] = min(y[j] - c, 0.0)
        left += m[j]
        value += p[j] * m[j]
    if left < -1e-14 * price:
        return -np.inf
    for j in order:
        if y[j] > c and left > 0.0:
            m[j] = min(y[j] - c, left)
            left -= m[j]
            value += p[j] * m[j]
    return value


def _measure(q: FloatArray, p: FloatArray) -> float:
    return float(np.abs(q - p).max())


def _bound(p: Any, z: Any, low: float, price: Any) -> Any:
    """u with sum_j |u_j| <= price: u_j = c - z_j below a level c, and what is left of the price from the largest p_j.

    c - p . u is concave and piecewise linear in c: golden sections close in on its maximum, for all prices together.
    """
    by_mass = np.argsort(-p, kind="stable")
    p, z = p[by_mass], z[by_mass]

    def value(c: Any) -> Any:
        """`(k,)` for `(k,)` levels."""
        gap = c[:, None] - z
        raised = np.maximum(gap, 0.0)
        left = price - raised.sum(axis=1)
        lowered = np.maximum(-gap, 0.0)
        before = np.cumsum(lowered, axis=1) - lowered
        taken = np.clip(left[:, None] - before, 0.0, lowered)
        return np.where(left >= 0.0, c + (taken - raised) @ p, -np.inf)

    return highest_of_each(value, np.full(len(price), z.min()), np.minimum(z.min() + price, z.max()))


LINF = Distance(_prepare, _level, _penalty, _point, _apart, _sensitivity, _measure, _bound, 2.0**-54, 1.0)
