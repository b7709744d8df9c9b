"""Euclidean distance: the path q(t) = max(p - t (y - nu), 0), with nu such that q sums to one.

Entries that reach zero stay there as t grows. With A the entries of positive mass, n_A their number, y_A their mean
value, SS_A = sum_A (y - y_A)^2, p_out the mass of the others, and lost^2 = p_out^2 / n_A + sum_{not A} p^2,

    q . y   = sum_A p y + p_out y_A - t SS_A          ||q - p||^2 = t^2 SS_A + lost^2
    beta    = t / ||q - p||                           price^2     = SS_A + lost^2 / t^2

For a level, A starts with all entries; the algorithm solves for t and removes entries that became negative, repeatedly:
t grows but never beyond the solution, and no entry of the solution is removed. For a price, Newton's method runs in
1 / t^2, in which price^2 is concave and piecewise linear: after the first step t decreases to the solution. Squares of
masses, which may underflow, are never computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.shared_budget.distance import Distance, in_any_order

MOST_STEPS = 200
"""Maximum Newton steps of a price, far more than needed: each but the first leaves at least one more entry in A."""

SMALLEST = 2.0**-1074
"""The smallest positive number: t, by which masses are divided, does not underflow to zero."""

STEEPEST = 1e150
"""Largest 1 / t of a bound: entries of less mass than its inverse are ignored."""

FAINT = 1e-60
"""Smaller masses above the lowest value, and prices, count as zero: moving all of this mass costs almost nothing."""


@register_jitable
def _sums(p, y, active):
    """Computes n_A, y_A, SS_A, sum_A p y, p_out and lost."""
    count, total, value, out = 0.0, 0.0, 0.0, 0.0
    for j in range(p.shape[0]):
        if active[j] > 0.0:
            count += 1.0
            total += y[j]
            value += p[j] * y[j]
        else:
            out += p[j]
    centre = total / count
    spread, square = 0.0, 0.0
    for j in range(p.shape[0]):
        if active[j] > 0.0:
            spread += (y[j] - centre) * (y[j] - centre)
        elif out > 0.0:
            square += (p[j] / out) * (p[j] / out)
    return count, centre, spread, value, out, out * math.sqrt(1.0 / count + square)


@register_jitable
def _face(p, y, active):
    """Marks the lowest entries; returns the distance to the distributions on them."""
    for j in range(p.shape[0]):
        active[j] = 1.0 if y[j] <= 0.0 else 0.0
    return _sums(p, y, active)[5]


@register_jitable
def _level(p, y, c, mean, hint, work):
    active = work[0]
    if c <= 0.0:
        return _face(p, y, active), np.inf, np.inf, hint
    if mean <= FAINT * y.max():
        distance = _face(p, y, active)
        return distance * (1.0 - c / mean), distance / mean, np.inf, hint
    active[:] = 1.0
    t = 0.0
    while True:
        count, centre, spread, value, out, lost = _sums(p, y, active)
        if not spread > 0.0:
            break
        t = max((value + out * centre - c) / spread, t)
        if not _leave_out(p, y, active, t, centre + out / (t * count) if t > 0.0 else np.inf):
            break
    distance = math.hypot(t * math.sqrt(spread), lost)
    return distance, t / distance if distance > 0.0 else 0.0, t, hint


@register_jitable
def _leave_out(p, y, active, t, nu):
    """Unmarks the entries that are negative at t; returns whether there were any."""
    some = False
    for j in range(p.shape[0]):
        if active[j] > 0.0 and p[j] - t * (y[j] - nu) < 0.0:
            active[j] = 0.0
            some = True
    return some


@register_jitable
def _project(p, y, t, active):
    """Marks A at t; returns its sums."""
    active[:] = 1.0
    while True:
        count, centre, spread, value, out, lost = _sums(p, y, active)
        if not _leave_out(p, y, active, t, centre + out / count / t):
            return count, centre, spread, value, out, lost


@register_jitable
def _start(p, y, active):
    """SS_A for t just above zero: entries without mass belong to A only if they are below y_A."""
    active[:] = 1.0
    while True:
        _, centre, spread, _, _, _ = _sums(p, y, active)
        some = False
        for j in range(p.shape[0]):
            if active[j] > 0.0 and p[j] <= 0.0 and y[j] > centre:
                active[j] = 0.0
                some = True
        if not some:
            return spread


@register_jitable
def _penalty(p, y, mean, price, hint, work):
    active = work[0]
    if price <= 0.0:
        return 0.0, _face(p, y, active), 0.0, np.inf, hint
    square_price = price * price
    if square_price >= _start(p, y, active):
        return mean, 0.0, 0.0, 0.0, hint
    if mean <= FAINT * y.max() or square_price <= FAINT * FAINT * y.max() ** 2:
        distance = _face(p, y, active)
        return price * distance, distance, 0.0, np.inf, hint
    t = hint if 0.0 < hint < np.inf else 0.0
    warm = t > 0.0
    if not warm:
        t = _face(p, y, active) / price
    for _ in range(MOST_STEPS):
        _, centre, spread, value, out, lost = _project(p, y, t, active)
        following = np.inf
        if square_price > spread and lost > 0.0:
            following = max(lost / math.sqrt(square_price - spread), SMALLEST)
        if warm and following == np.inf:  # too far left for a tangent step
            following = _face(p, y, active) / price
        elif (not warm and not following < t * (1.0 - 2.0**-51)) or (warm and abs(following - t) <= 2.0**-51 * t):
            break
        warm = False
        t = following
    distance = math.hypot(t * math.sqrt(spread), lost)
    h = value + out * centre - t * spread + price * distance
    curvature = t * spread * (t / lost) ** 2 if lost > 0.0 else 0.0
    return h, distance, curvature, t, t


@register_jitable
def _point(p, y, x, work, q):
    active = work[0]
    if x <= 0.0:
        q[:] = p
        return 0.0
    if x == np.inf:
        _face(p, y, active)
        count, centre, _, _, out, _ = _sums(p, y, active)
        x, nu = 0.0, 0.0
        lift = out / count
    else:
        count, centre, _, _, out, _ = _project(p, y, x, active)
        nu = centre
        lift = out / count
    for j in range(p.shape[0]):
        q[j] = max(p[j] - x * (y[j] - nu) + lift, 0.0) if active[j] > 0.0 else 0.0
    return 0.0


@register_jitable
def _distance(q, p, sent):
    largest = np.abs(q - p).max()
    return largest * math.sqrt((((q - p) / largest) ** 2).sum()) if largest > 0.0 else 0.0


@register_jitable
def _sensitivity(p, y, q, price, m):
    """price times the derivative of ||q - p|| with respect to p."""
    far = _distance(q, p, 0.0)
    for j in range(len(p)):
        m[j] = price * ((p[j] - q[j]) / far) if far > 0.0 else y[j]


def _measure(q: Any, p: Any) -> Any:
    return np.sqrt(((q - p) ** 2).sum(axis=-1))


def _bound(p: Any, y: Any, price: Any) -> Any:
    """Bounds h by a u along q(t) - p, at the t at which its length equals the price.

    In units of t, q(t) - p is nu - y on A and -s p elsewhere, with s = 1 / t. The square of its length,
    SS_A + s^2 lost^2, is concave and piecewise linear in s^2: Newton's method increases to the price, from the s at
    which A contains only the lowest entries. If no s is enough, nu - y itself is the best u.
    """
    active, spread = y <= 0.0, np.zeros(len(p))
    s = np.zeros(len(p))
    for _ in range(p.shape[1] + 2):
        out = np.where(active, 0.0, p)
        lost = np.sqrt((out**2).sum(axis=1) + out.sum(axis=1) ** 2 / active.sum(axis=1))
        found = np.sqrt(np.maximum(price**2 - spread, 0.0)) / np.where(lost > 0.0, lost, 1.0)
        following = np.where(lost > 0.0, np.clip(found, s, STEEPEST), np.where(s > 0.0, s, STEEPEST))
        if (following == s).all():
            break
        s = following
        active, step = _stretched(p * s[:, None], y)
        spread = (np.where(active, step - _mean(step, active), 0.0) ** 2).sum(axis=1)
    length = np.sqrt((step**2).sum(axis=1))
    factor = price / np.where(length > 0.0, length, 1.0)
    # scaled to the price: an error of the search then has only a second-order effect
    met = (lost > 0.0) & (s < STEEPEST)
    u = step * np.where(met, factor, np.minimum(1.0, factor))[:, None]
    return (y + u).min(axis=1) - (p * u).sum(axis=1)


def _stretched(mass: Any, y: Any) -> tuple[Any, Any]:
    """Returns A, and q(t) - p in units of t, for mass = p / t: negative entries are removed until none is left."""
    active = np.ones(y.shape, dtype=np.bool_)
    while True:
        nu = np.where(active, y, mass).sum(axis=1, keepdims=True) / active.sum(axis=1, keepdims=True)
        stays = active & (mass - y + nu >= 0.0)
        if (stays == active).all():
            return active, np.where(active, nu - y, -mass)
        active = stays


def _mean(x: Any, some: Any) -> Any:
    """`(k, 1)` the mean of x over some entries of each row."""
    return np.where(some, x, 0.0).sum(axis=1, keepdims=True) / some.sum(axis=1, keepdims=True)


L2 = Distance(
    in_any_order, _level, _penalty, _point, _distance, _sensitivity, _measure, _bound, 2.0**-54, math.sqrt(2.0)
)
