"""Maximum norm: at distance r low successors gain r each, high ones lose min(p_j, r).

    sigma(r) = min {q . y : |q_j - p_j| <= r} = mean - min_tau sum_j min(p_j, r) (y_j - tau)+ + r (tau - y_j)+
    -sigma'(r) = sum_{y_j > tau, p_j > r} (y_j - tau) + sum_{y_j < tau} (tau - y_j)

sigma is convex and piecewise linear: Newton's method finds the r of a level, and tangents from both sides the r of a
price, in finitely many steps. Rows are sorted by value first. The path's parameter is the distance, x = r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.shared_budget.distance import Distance

GOLDEN = 0.6180339887498949
SECTIONS = 80
"""0.618^80 is below the resolution of a double."""

MOST_LEVELS = 200
"""Maximum levels of a bound, far more than needed."""

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
    """Returns tau, the first value at which all lower entries can gain at least what the higher ones lose."""
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
    # from any start the first step leads to the left of the solution, the others increase to it
    rising, beta = r == 0.0, 0.0
    while True:
        sigma, slope = _sigma(p, y, mean, r)
        if not slope > 0.0:
            if rising:  # the last step reached the floor
                return r, beta, r, r
            rising, r = True, 0.0  # beyond the floor: restart from the left
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
        # the tangents at both ends meet here, a lower bound on sigma
        r = left + (sigma_left - sigma_right - slope_right * (right - left)) / (slope_left - slope_right)
        r = min(max(r, left), right)  # rounding must not move it outside, or q would leave the simplex
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
    """Lowers entries above tau and raises those below; entries at tau balance the row."""
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
def _distance(q, p, sent):
    return np.abs(q - p).max()


@register_jitable
def _sensitivity(p, y, q, price, m):
    """Writes m = -u for the u that maximises min_j (y_j + u_j) - p . u over sum_j |u_j| <= price.

    Golden-section search over the level c: u raises values below c to c, and the rest of the price lowers values above
    c, those with the largest p_j first. The maximum is concave in c, and u is continuous in c.
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
    """Returns the value of the level c, -inf if raising values costs more than the price; writes m = -u."""
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


def _measure(q: Any, p: Any) -> Any:
    return np.abs(q - p).max(axis=-1)


def _bound(p: Any, y: Any, price: Any) -> Any:
    """Bounds h by a u with sum_j |u_j| <= price: u_j = c - y_j below a level c, the rest lowers the largest p_j first.

    c - p . u is concave and piecewise linear in c: where the tangents of both sides meet, it is maximal or has another
    piece between them. Bisecting in every third step bounds the number of steps.
    """
    by_mass = np.argsort(-p, axis=1, kind="stable")
    p, y = (np.take_along_axis(x, by_mass, axis=1) for x in (p, y))
    # the level to which the price can raise all lower entries
    full = np.cumsum(np.sort(y, axis=1), axis=1) + price[:, None]
    left, right = np.zeros_like(price), np.minimum((full / np.arange(1, p.shape[1] + 1)).min(axis=1), y.max(axis=1))
    at_left, slope_left = _lifted(left, p, y, price)
    at_right, slope_right = _lifted(right, p, y, price)
    best = np.maximum(at_left, at_right)
    for step in range(MOST_LEVELS):
        fall = np.where(slope_left > slope_right, slope_left - slope_right, 1.0)
        meet = np.clip(left + (at_right - at_left - slope_right * (right - left)) / fall, left, right)
        top = at_left + slope_left * (meet - left)
        if (top - best <= 4.0 * np.finfo(p.dtype).eps * y.max(axis=1)).all():
            break
        level = 0.5 * (left + right) if step % 3 == 2 else meet
        value, slope = _lifted(level, p, y, price)
        best, up = np.maximum(best, value), slope > 0.0
        left, at_left, slope_left = (
            np.where(up, *pair) for pair in ((level, left), (value, at_left), (slope, slope_left))
        )
        right, at_right, slope_right = (
            np.where(up, *pair) for pair in ((right, level), (at_right, value), (slope_right, slope))
        )
    return best


def _lifted(c: Any, p: Any, y: Any, price: Any) -> tuple[Any, Any]:
    """`(k,)` c - p . u at the levels c, and its slope; entries by falling p."""
    gap = c[:, None] - y
    raised, lowered = np.maximum(gap, 0.0), np.maximum(-gap, 0.0)
    left = np.maximum(price - raised.sum(axis=1), 0.0)[:, None]
    before = np.cumsum(lowered, axis=1) - lowered
    taken = np.clip(left - before, 0.0, lowered)
    r = np.where(taken < lowered, p, 0.0).max(axis=1, keepdims=True)  # the mass of the entry at which the price ends
    slope = 1.0 - np.where(gap > 0.0, p + r, np.where(gap < 0.0, np.maximum(p - r, 0.0), 0.0)).sum(axis=1)
    return c + ((taken - raised) * p).sum(axis=1), slope


LINF = Distance(_prepare, _level, _penalty, _point, _distance, _sensitivity, _measure, _bound, 2.0**-54, 1.0)
