"""Chi-square balls around a model's own rows.

    minimise  q . z   subject to  sum_j (q_j - p_j)^2 / p_j <= radius,  q in the simplex

has the dual

    max_eta  eta - sqrt((1 + radius) sum_j p_j (eta - z_j)_+^2),           q_j proportional to p_j (eta - z_j)_+ .

For a known active set A = {z < eta}, with mass P, mean m and standard deviation s of z within it,

    value = m - s sqrt(e),     eta = m + s / sqrt(e),     e = (1 + radius) P - 1,

and A is right when eta separates it from the rest; while every successor is active e = radius. The slope of
the dual at any level tells on which side the maximum lies. Mass where p = 0 is infinitely far, so the support is
always the nominal one. A sweep starts from the row's last level; in the code z is scaled to
y = (z - low) / span in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from urbe import checks
from urbe.ambiguity.block_sweep import NO_SPAN, to_unit
from urbe.ambiguity.dual_search import highest_of_each, in_units, mean
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, in_order, make_minimiser
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

ROUNDS = 3

NEAR = 1e-5
"""If eta is closer to the mean, rounding of the mean may put an entry of much mass on the wrong side of it: a level
that is wrong by d is wrong by d / (eta - mean) in the slope of the dual, and by the square of that in the value."""

HUGE = 1e150
"""Above this radius, products of relevant probabilities and variances may underflow."""

UP, DOWN = 2.0**200, 2.0**-200
"""For such radii probabilities are multiplied by UP before they are summed, in the given order."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53, with s sqrt(e) <= m <= 1 above low: m and s^2 are
# sums of n terms of one sign, (n + 3) u and, under the root, half of that. An error d of e changes the value by
# (eta - m) d / 2: if all are active e is exact; otherwise eta - m <= 1 and (eta - m) e <= 1, while
# d <= (n + 3) u (e + 1). In all (5 n / 2 + 10) u, twice that of max |z|; the caller allows for n u already. An entry
# rounded to the wrong side of eta counts to second order only.
ACCURACY = 24 * 2.0**-53
PER_ENTRY = 4 * 2.0**-53


@dataclass(frozen=True, eq=False)
class Chi2Ball(RectangularSet):
    """U(s, a) = {q in simplex : sum_j (q_j - pbar_j)^2 / pbar_j <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      support: "nominal" or "all"; both give the same set, since mass where pbar = 0 has infinite distance.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.chi2 import Chi2Ball
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> Chi2Ball(0.25).bind(mdp).values(np.array([0.0, 2.0]))
    array([0.25, 2.  ])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        checks.one_of("support", self.support, ("nominal", "all"))
        return bind_balls(KERNEL, mdp, self.radius, "nominal")


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _sweep(first, last, problem, r, reward, shift, hint, work, out):
    """A few rounds from the last eta, then `_solve`; the hint is 0.0 if there is none."""
    start, successor, p, data, radius, outside, w = problem
    y = work[0]
    for row in range(first, last):
        a = np.uint64(start[row])  # unsigned: skips the check for negative indices
        n = np.uint64(start[row + 1]) - a
        for j in range(n):
            y[j] = w[np.uint32(successor[a + j])]
        if r is not None:
            for j in range(n):
                y[j] += r[a + j]
        low, high = y[0], y[0]
        for j in range(n):
            low = min(low, y[j])
            high = max(high, y[j])
        span = high - low
        value, found = 0.0, not span > NO_SPAN
        unit = 0.0 if found else 1.0 / span
        for j in range(n):
            y[j] = (y[j] - low) * unit
        eta = hint[row] if hint[row] > 0.0 else 2.0
        for _ in range(ROUNDS if radius[row] < HUGE else 0):
            if found:
                break
            rest = 0.0
            mass = 0.0
            total = 0.0
            for j in range(n):
                active = p[a + j] if y[j] < eta else 0.0
                rest += 0.0 if y[j] < eta else p[a + j]
                mass += active
                total += active * y[j]
            mean = total / mass
            square = 0.0
            for j in range(n):
                square += p[a + j] * (y[j] - mean) * (y[j] - mean) if y[j] < eta else 0.0
            e = radius[row] if rest <= 0.0 else (1.0 + radius[row]) * mass - 1.0
            if not e > 0.0:
                break
            s, root = math.sqrt(square / mass), math.sqrt(e)
            following = mean + s / root
            if not following > 0.0:  # all mass on the lowest successors
                value, found = 0.0, True
                break
            between = 0.0
            for j in range(n):
                between += 0.0 if (y[j] < eta) == (y[j] < following) else 1.0
            value, found = mean - s * root, between == 0.0 and s > NEAR * root
            eta = following
        if not found:
            m = np.int64(n)
            value, inside, gap, _ = _solve(p[np.int64(a) : np.int64(a) + m], y[:m], radius[row], eta)
            eta = inside * (1.0 + 4e-16) + gap
        hint[row] = min(max(eta, 1e-300), 2.0)
        out[row] = low + span * value + shift
        if r is None:
            out[row] += reward[row]


@in_order
def _solve(p, y, radius, eta):
    """Returns value, largest active y, eta minus that y, and UP sum_j p_j (eta - y_j)_+, from any start.

    `below < eta <= above` is invariant, and each step removes an entry from the interval. Distances are measured from
    the largest active y, because eta may exceed it by less than its rounding.
    """
    below, above = 0.0, 2.0
    eta = min(eta, above)
    count = 0
    while True:
        if not below < eta:  # only the upper level is left
            eta = above
        rest, mass, inside, beyond, lag, s = _active(p, y, eta)
        e = radius if rest <= 0.0 else (1.0 + radius) * (DOWN * mass) - 1.0
        if e > 0.0:
            root = math.sqrt(e)
            gap = s / root - lag
            if gap > 0.0 and gap <= beyond - inside:
                return inside - lag - s * root, inside, gap, mass * s / root
            if gap > 0.0:
                below = beyond
            elif inside <= 0.0:
                return 0.0, 0.0, 0.0, 0.0
            else:
                above = inside
            eta = inside + gap
        elif rest <= 0.0:
            return inside - lag, inside, np.inf, np.inf
        else:
            below = beyond
            eta = above
        if not below < above:  # eta is `above` up to rounding
            root = math.sqrt(1.0 + radius)
            square = 0.0
            for j in range(p.shape[0]):
                square += UP * p[j] * (above - y[j]) ** 2 if y[j] < above else 0.0
            deviation = math.sqrt(square) * math.sqrt(DOWN)
            return above - root * deviation, above, 0.0, UP * deviation / root
        count += 1
        if count % 4 == 0 or not (below < eta <= above):
            eta = below + 0.5 * (above - below)


@in_order
def _active(p, y, eta):
    """Returns mass at or above eta, UP times mass below, the two y next to eta, lag of the mean, deviation below."""
    rest = 0.0
    mass = 0.0
    inside, beyond = 0.0, np.inf
    for j in range(p.shape[0]):
        if y[j] < eta:
            mass += UP * p[j]
            inside = max(inside, y[j])
        else:
            rest += p[j]
            beyond = min(beyond, y[j])
    lag = 0.0
    for j in range(p.shape[0]):
        lag += UP * p[j] * (inside - y[j]) if y[j] < eta else 0.0
    lag /= mass
    square = 0.0
    for j in range(p.shape[0]):
        d = inside - y[j] - lag if y[j] < eta else 0.0
        square += UP * p[j] * d * d
    return rest, mass, inside, beyond, lag, math.sqrt(square) / math.sqrt(mass)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _moments(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments`. Active are the successors below the last eta; with P their mass and d = y - mean,

        q = p (g - d) / (P g),     m = -(g - d)^2 / (2 P g),     g = eta - mean = s / sqrt(e),

    and moments of d up to the fourth give both sums. The variance is over all successors; m = 0 if not active.
    """
    start, successor, p, data, radius, outside, w = problem
    y = work[0]
    for row in range(len(start) - 1):
        a = np.uint64(start[row])
        n = np.uint64(start[row + 1]) - a
        for j in range(n):
            y[j] = w[np.uint32(successor[a + j])]
        if r is not None:
            for j in range(n):
                y[j] += r[a + j]
        low, high = y[0], y[0]
        for j in range(n):
            low = min(low, y[j])
            high = max(high, y[j])
        span = high - low
        eta = hint[row] if span > NO_SPAN and radius[row] > 0.0 else 2.0
        unit = 1.0 / span if span > NO_SPAN else 0.0
        # sums of powers of y about the row's value, not far from the mean, and then about the mean
        centre = (bare[row] - low) * unit
        rest, mass, first, second, third, fourth, first_u, slope = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            u_j = u[np.uint32(successor[a + j])]
            unit_y = (y[j] - low) * unit
            active = p[a + j] if unit_y < eta else 0.0
            d = unit_y - centre
            rest += p[a + j] - active
            mass += active
            first_u += active * u_j
            active *= d
            first += active
            slope += active * u_j
            active *= d
            second += active
            third += active * d
            fourth += active * d * d
        off = first / mass
        slope -= off * first_u
        fourth += off * (off * (6.0 * second - 3.0 * off * first) - 4.0 * third)
        third += off * (2.0 * off * first - 3.0 * second)
        second -= off * first
        e = radius[row] if rest <= 0.0 else (1.0 + radius[row]) * mass - 1.0
        if not (second > 0.0 and e > 0.0):  # nature changes nothing, or all mass is on the lowest
            scatter[row] = span * span * second if rest <= 0.0 else 0.0
            carried[row] = first_u / mass
            continue
        g = math.sqrt(second / (mass * e))
        variance = 4.0 * g * g * second - 4.0 * g * third + fourth - second * second
        if rest > 0.0:
            variance += g * g * (mass * (1.0 - mass) * g * g + 2.0 * (1.0 - mass) * second)
        scale = 0.5 * span / (mass * g)
        scatter[row] = max(variance, 0.0) * scale * scale
        carried[row] = (first_u - slope / g) / mass


@in_order
def _minimiser(p, z, low, radius, data, work, q, m):
    n = p.shape[0]
    y = work[0]
    span = to_unit(z, low, y)
    inside, gap, total = 0.0, np.inf, np.inf
    if span > 0.0:
        _, inside, gap, total = _solve(p, y, radius, 2.0)
    if gap == np.inf:
        for j in range(n):
            q[j] = p[j]
            m[j] = z[j]
        return 0.0
    # q = p (eta - y)_+ UP / total and the sensitivity is -(eta - y)_+^2 UP / (2 total); once all mass is on the lowest
    # successors, total is zero and their value does not change
    mass = 0.0
    rest = 0.0
    for j in range(n):
        mass += p[j] if y[j] <= 0.0 else 0.0
        rest += 0.0 if y[j] <= inside else p[j]
    # if all are active, gap^2 is constant in the row; omitting it keeps the sensitivity bounded as gap grows
    constant = gap * gap if rest > 0.0 else 0.0
    largest = 0
    moved = 0.0
    for j in range(n):
        d = inside - y[j]
        if total > 0.0:
            q[j] = UP * p[j] * (gap + d) / total if y[j] <= inside else 0.0
            m[j] = -0.5 * span * (constant + (2.0 * gap + d) * d) / total * UP if y[j] <= inside else 0.0
        else:
            q[j] = p[j] / mass if y[j] <= 0.0 else 0.0
            m[j] = 0.0
        moved += q[j]
        largest = j if q[j] > q[largest] else largest
    q[largest] = max(q[largest] + (1.0 - moved), 0.0)
    return 0.0


@in_order
def _divergence(q, p, sent):
    total = 0.0
    for j in range(p.shape[0]):
        total += ((q[j] - p[j]) / math.sqrt(p[j])) ** 2
    return total


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    own, other = (np.asarray(x, dtype=np.longdouble) for x in (q, p))
    own, other = own / own.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)
    terms = (own - other) ** 2 / np.where(other > 0.0, other, 1.0)
    return np.where(other > 0.0, terms, np.where(own > 0.0, np.inf, 0.0)).sum(axis=1)


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """max over log(eta) of eta - sqrt((1 + radius) sum_j p_j (eta - y_j)_+^2)."""
    weight, y, span = in_units(p, z, low)

    def bound(log_eta: Any, y: Any, weight: Any, radius: Any) -> Any:
        # with t = eta - m: m + t - sqrt(c P (s^2 + t^2)), free of the cancellation of large t
        eta, c = np.exp(log_eta), 1.0 + radius
        active = np.where(y < eta[:, None], weight, 0.0)
        mass = active.sum(axis=1)
        m = mean(active, y) / mass
        square = mean(active, (y - m[:, None]) ** 2) / mass
        e = np.where(mass >= weight.sum(axis=1), radius, c * mass - 1.0)
        t = eta - m
        return m - (c * mass * square + e * t**2) / (np.sqrt(c * mass * (square + t**2)) + t)

    last = np.maximum(0.0, -0.5 * np.log(radius)) + 2.0
    best = np.fmax(highest_of_each(bound, -45.0, last, y, weight, radius), 0.0)
    return low + span * np.where(radius <= 0.0, mean(weight, y), best)


KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=_sweep,
    minimise=make_minimiser(_minimiser, _divergence),
    moments=_moments,
    centred=True,
)
