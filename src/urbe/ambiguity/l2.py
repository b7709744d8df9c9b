"""L2 balls around a model's own rows.

    minimise  q . z   subject to  ||q - p||_2 <= radius,  q in the simplex

is solved by q_j = max(p_j - x (y_j - eta), 0), y = (z - low) / span: the projection of p - x y onto the simplex, for
the x > 0 at which its distance from p is `radius`. As x grows, entries leave the active set A = {q > 0} and never
return. For a known A, with m and W the mean of y and the sum of (y - m)^2 over A, and Q the sum of p outside A,

    x^2 W = E = radius^2 - sum_{j not in A} p_j^2 - Q^2 / |A|,      eta = m + Q / (|A| x),
    value = m + sum_{j in A} p_j (y_j - m) - sqrt(E W),

and A is correct if these x and eta reproduce it. If all are active and Q = 0, this is the mean minus the radius times
the Euclidean norm of y - m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from urbe import checks
from urbe.ambiguity.block_sweep import to_unit
from urbe.ambiguity.dual_search import highest_of_each, in_units, mean
from urbe.ambiguity.moments import make_moments, unmoved
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import in_order, make_minimiser, make_sweep, row_function
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

FARTHEST = 1.5
"""Above the diameter sqrt(2) of the simplex: larger radii give the same set."""

TINY = 1e-140
"""Radii below this have squares that underflow."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53. An error of m counts Q (n + 3) u, that of the sum
# over A (n + 3) u, that of W (n + 3) u, as x W = sqrt(E W) <= ||q - p||_1 <= 2 and W is under the root. An error d of E
# moves the value by d / (2 x); d <= (n + 4) u radius^2, and radius^2 <= max |q - p| ||q - p||_1 <= 2 x since
# |q - p| <= x |y - eta| <= x. In all (4 n + 20) u, twice that of max |z|; the caller allows for n u already. An entry
# rounded to the wrong side counts to second order only.
ACCURACY = 48 * 2.0**-53
PER_ENTRY = 7 * 2.0**-53


@dataclass(frozen=True, eq=False)
class L2Ball(RectangularSet):
    """U(s, a) = {q in simplex : ||q - pbar(s, a)||_2 <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0; from sqrt(2) on the set is the simplex.
      support: successors that may receive mass: the row's own ("nominal"), or every state ("all"), which lists every
        state in every row.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.l2 import L2Ball
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> L2Ball(0.5**0.5).bind(mdp).values(np.array([0.0, 2.0])).round(12)
    array([0., 2.])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        nature = bind_balls(KERNEL, mdp, self.radius, self.support)
        return replace(nature, radius=np.minimum(nature.radius, FARTHEST))


@row_function
def _worst(p, z, low, radius, data, hint, work):
    y = work[0]
    span = to_unit(z, low, y)
    if span <= 0.0:
        return low, hint
    value, x, _ = _solve(p, y, radius, hint)
    return low + span * value, x


@row_function
def _solve(p, y, radius, x):
    """Returns value, x and theta = x eta; x is 0.0 if the radius is, and infinite if all mass is on the lowest."""
    n = p.shape[0]
    if radius <= TINY:
        mean = 0.0
        for j in range(n):
            mean += p[j] * y[j]
        return mean, 0.0, 0.0
    if radius * radius >= _reach(p, y):
        return 0.0, np.inf, 0.0
    below, above = 0.0, np.inf
    if not 0.0 < x < np.inf:
        x = radius / math.sqrt(0.5 * n)
    steps = 0
    while True:
        theta = _projection(p, y, x)
        count, rest, mean, spread, rest_square, tilt = _active(p, y, x, theta)
        room = radius * radius - rest_square - rest * rest / count
        value = mean + tilt - math.sqrt(max(room, 0.0) * spread)
        if x * x * spread < room:
            below = x
        else:
            above = x
        following = math.sqrt(room / spread) if room > 0.0 and spread > 0.0 else 0.0
        if following > 0.0:
            following_theta = rest / count + following * mean
            moved = 0.0
            for j in range(n):
                stays = (p[j] - x * y[j] + theta > 0.0) == (p[j] - following * y[j] + following_theta > 0.0)
                moved += 0.0 if stays else 1.0
            if moved == 0.0:
                return value, following, following_theta
        steps += 1
        if steps % 4 == 0 or not (below < following < above):  # bisect, so that the bracket always shrinks
            if below <= 0.0:
                following = above / 16.0
            elif above == np.inf:
                following = below * 16.0
            else:
                following = math.sqrt(below) * math.sqrt(above)
            if not (below < following < above):
                return value, x, theta
        x = following


@row_function
def _projection(p, y, x):
    """Solves sum_j max(p_j - x y_j + theta, 0) = 1 for theta: negative entries are dropped until none is left."""
    n = p.shape[0]
    theta = np.inf
    count = 2.0 * n
    while True:
        active = 0.0
        rest = 0.0
        total = 0.0
        for j in range(n):
            inside = p[j] - x * y[j] + theta > 0.0
            active += 1.0 if inside else 0.0
            rest += 0.0 if inside else p[j]
            total += y[j] if inside else 0.0
        if active >= count or active == 0.0:
            return theta
        count = active
        theta = rest / active + x * (total / active)


@row_function
def _active(p, y, x, theta):
    """Sums over A = {p - x y + theta > 0}: its size, mean and spread of y, tilt of p; outside, sums of p and p^2."""
    n = p.shape[0]
    count = 0.0
    rest = 0.0
    rest_square = 0.0
    total = 0.0
    for j in range(n):
        inside = p[j] - x * y[j] + theta > 0.0
        count += 1.0 if inside else 0.0
        rest += 0.0 if inside else p[j]
        rest_square += 0.0 if inside else p[j] * p[j]
        total += y[j] if inside else 0.0
    mean = total / count
    spread = 0.0
    tilt = 0.0
    for j in range(n):
        d = y[j] - mean if p[j] - x * y[j] + theta > 0.0 else 0.0
        spread += d * d
        tilt += p[j] * d
    return count, rest, mean, spread, rest_square, tilt


@row_function
def _reach(p, y):
    """The squared distance from p to the nearest distribution on the lowest successors."""
    count = 0.0
    rest = 0.0
    rest_square = 0.0
    for j in range(p.shape[0]):
        count += 1.0 if y[j] <= 0.0 else 0.0
        rest += 0.0 if y[j] <= 0.0 else p[j]
        rest_square += 0.0 if y[j] <= 0.0 else p[j] * p[j]
    return rest_square + rest * rest / count


@row_function
def _answer(p, z, u, low, u_low, radius, data, hint, work, m):
    """Computes q and m as in `_minimiser`, at the x of the last sweep."""
    n = p.shape[0]
    y = work[0]
    span = to_unit(z, low, y)
    if span <= 0.0 or hint <= 0.0:
        return unmoved(p, z, u, m)
    carried = 0.0
    if hint == np.inf:
        count = 0.0
        rest = 0.0
        for j in range(n):
            count += 1.0 if y[j] <= 0.0 else 0.0
            rest += 0.0 if y[j] <= 0.0 else p[j]
        for j in range(n):
            m[j] = 0.0
            carried += (p[j] + rest / count) * u[j] if y[j] <= 0.0 else 0.0
        return carried
    theta = _projection(p, y, hint)
    for j in range(n):
        q = p[j] - hint * y[j] + theta
        m[j] = span * (y[j] - theta / hint if q > 0.0 else p[j] / hint)
        carried += max(q, 0.0) * u[j]
    return carried


@row_function
def _minimiser(p, z, low, radius, data, work, q, m):
    n = p.shape[0]
    y = work[0]
    span = to_unit(z, low, y)
    x, theta = 0.0, 0.0
    if span > 0.0:
        _, x, theta = _solve(p, y, radius, 0.0)
    for j in range(n):
        q[j] = p[j]
        m[j] = z[j]
    if x == np.inf:
        count = 0.0
        rest = 0.0
        for j in range(n):
            count += 1.0 if y[j] <= 0.0 else 0.0
            rest += 0.0 if y[j] <= 0.0 else p[j]
        for j in range(n):
            q[j] = p[j] + rest / count if y[j] <= 0.0 else 0.0
            m[j] = 0.0
    elif x > 0.0:
        # the derivative of lam (||q - p||^2 - radius^2) in p, with lam = 1 / (2 x): (p - q) / x
        for j in range(n):
            inside = p[j] - x * y[j] + theta > 0.0
            q[j] = p[j] - x * y[j] + theta if inside else 0.0
            m[j] = span * (y[j] - theta / x if inside else p[j] / x)
    return 0.0


@in_order
def _norm(q, p, sent):
    """||q - p||_2, relative to the largest entry so that no square underflows."""
    largest = 0.0
    for j in range(p.shape[0]):
        largest = max(largest, abs(q[j] - p[j]))
    if largest <= 0.0:
        return 0.0
    total = 0.0
    for j in range(p.shape[0]):
        total += ((q[j] - p[j]) / largest) ** 2
    return largest * math.sqrt(total)


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    return np.sqrt(((q.astype(np.longdouble) - p) ** 2).sum(axis=1))


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """max over log(x) of the Lagrangian's minimum over q >= 0, at the eta that makes q sum to one.

    eta + sum_j min_{q_j >= 0} [q_j (y_j - eta) + (q_j - p_j)^2 / (2 x)] - radius^2 / (2 x) is a bound for any eta.
    """
    weight, y, span = in_units(p, z, low)
    ranks = np.arange(1, p.shape[1] + 1)

    def bound(log_x: Any, y: Any, weight: Any, radius: Any) -> Any:
        x = np.exp(log_x)[:, None]
        fall = x * y - weight
        falling = np.sort(fall, axis=1)
        size = ((1.0 + np.cumsum(falling, axis=1)) / ranks > falling).sum(axis=1, keepdims=True)
        kept = fall <= np.take_along_axis(falling, size - 1, axis=1)
        eta = (np.where(kept, x * y, weight).sum(axis=1) / (kept.sum(axis=1) * x[:, 0]))[:, None]
        active = weight > x * (y - eta)
        # sum_A p (y - eta) + eta = sum_A p y + eta sum_{not A} p, which does not cancel as eta grows
        inner = np.where(active, weight * y - x * (y - eta) ** 2 / 2.0, weight**2 / (2.0 * x) + eta * weight)
        return inner.sum(axis=1) - radius**2 / (2.0 * x[:, 0])

    # radius^2 <= 2 x, and x W <= 2
    best = np.fmax(highest_of_each(bound, 2.0 * np.log(radius) - 2.0, 60.0, y, weight, radius), 0.0)
    cauchy = mean(weight, y) - radius * np.sqrt(p.shape[1])
    return low + span * np.where(radius <= 1e-100, cauchy, best)


KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=make_sweep(_worst),
    minimise=make_minimiser(_minimiser, _norm),
    moments=make_moments(_answer),
    centred=True,
)
