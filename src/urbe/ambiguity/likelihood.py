"""Likelihood regions: kernels under which a model's own rows have a high likelihood (reverse KL, Burg entropy).

    minimise  q . z   subject to  sum_j p_j log(p_j / q_j) <= radius,  q in the simplex

With y_j = (z_j - low) / span in [0, 1], where low is the least value mass may be sent to, and X > 0, the dual is

    max_X  exp(sum_j p_j log(y_j + X) - radius) - X,            q_j proportional to p_j / (y_j + X),

attained where H(X) = sum_j p_j log(y_j + X) + log sum_j p_j / (y_j + X) equals the radius. Every successor of the
model keeps some mass. If mass may leave the row, to a state lower than all successors, H(0) is finite; for a larger
radius X = 0: q_j = c p_j / y_j with c = exp(sum_j p_j log y_j - radius), and the rest goes outside. The same holds, up
to an error of FAINT log(1 / FAINT), if the lowest successors have less than FAINT of the mass.

Below, x = 1 / X and r = (y + X) / (1 + X) in (0, 1], so that sums of p log r stay small for all X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from urbe import checks
from urbe.ambiguity.block_sweep import NO_SPAN, make_block_sweep, to_unit, vector_function
from urbe.ambiguity.dual_search import highest_of_each, in_units, mean
from urbe.ambiguity.exponential import (
    LOG2_E,
    elementwise,
    log_of,
    power_of_two,
    relative_entropy,
    relative_entropy_exact,
)
from urbe.ambiguity.moments import gather_u, spread_of
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, gather, in_order, make_minimiser, row_function
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

TOLERANCE = 2.0**-48
"""Largest error of a row's value after the search for X, as a multiple of the row's span."""

TINY = 2.0**-100
"""Smaller radii change no value by more than sqrt(radius / 2) = 2^-50.5 spans (Pinsker's inequality)."""

FAINT = 1e-30
"""Less mass of the lowest successors counts as none: it bounds how much the others have to keep by 70 FAINT."""

MOST = 1.0 / TOLERANCE
"""Largest x of a sweep: the dual's slope in X is at least -1, so smaller X gain at most the tolerance."""

NOISE = 2.0**-50
"""Allowance for rounding in the sums of a row, relative to their terms."""

SMALLEST = 1e-100
"""Keeps quotients finite in rows of constant values."""

LEAST_NUMBER = 5e-324
"""Every successor of the model keeps this mass: without any, the divergence would be infinite."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53: TOLERANCE = 32 u from the search. The value is
# X (e^g - 1) + e^g with g = sum p log r - radius, and c = (1 + X) e^g. Rounding a sum moves g by n u |sum p log r|, and
# c |sum p log r| <= 2: for X <= 1 as (1 + X) |g| e^g < 1, beyond since |log r| <= log(1 + x) <= x. The rounding of
# r = 1 + t moves the value by sum_j c p_j u / ((1 + X) r_j) = sum_j q_j u = u. Logarithm, exponential and the last
# operations add 12 u. In all (2 n + 46) u, twice that of max |z|; the caller allows for n u already.
ACCURACY = 96 * 2.0**-53
PER_ENTRY = 3 * 2.0**-53


@dataclass(frozen=True, eq=False)
class LikelihoodRegion(RectangularSet):
    """U(s, a) = {q in simplex : sum_j pbar_j log(pbar_j / q_j) <= radius(s, a)}.

    With pbar the frequencies of N observations, N radius is the largest loss of log-likelihood.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      support: successors that may receive mass: the row's own ("nominal"), or every state ("all").

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.likelihood import LikelihoodRegion
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> LikelihoodRegion(0.5 * 0.287682072451781).bind(mdp).values(np.array([0.0, 2.0])).round(12)
    array([0.25, 2.  ])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        return bind_balls(KERNEL, mdp, self.radius, self.support, receiver=True)


@vector_function
def _line(x):
    """r = (y + X) / (1 + X) = 1 + t."""
    factor = x / (1.0 + x)
    return factor, -factor


@elementwise
def _curve(t):
    r = max(1.0 + t, SMALLEST)
    return log_of(r, t), 1.0 / r


@vector_function
def _moments(p, a, t, u, v, b, n):
    """Sums of p log r, of p / r, and of p g and p g^2 with g = 1 / r - 1."""
    logs = 0.0
    mass = 0.0
    first = 0.0
    second = 0.0
    for j in range(n):
        g = -t[b + j] * v[b + j]
        logs += p[a + j] * u[b + j]
        mass += p[a + j] * v[b + j]
        first += p[a + j] * g
        second += p[a + j] * g * g
    return logs, mass, first, second


@vector_function
def _judge(radius, x, logs, mass, first, second):
    """Returns value and better x by Newton's parabola, and whether the error is within the tolerance."""
    big = 1.0 / x  # X
    spent = logs + log_of(mass, first)  # H
    curvature = max(second - first * first, SMALLEST)
    power, power_less_one = power_of_two(LOG2_E * (logs - radius))
    # the dual in X has slope e^(H - radius) - 1 and second derivative -e^(sum p log r - radius) Var(1 / r) / (1 + X)
    _, slope = power_of_two(LOG2_E * (spent - radius))
    bend = max(power * curvature / (1.0 + big), SMALLEST)
    step = slope / bend
    gain = 0.5 * slope * step
    # The logarithm of the second derivative changes at a rate of at most 4 / X. If it changes little over 1.5
    # Newton steps, the maximum is within 1.2 steps, and the parabola misses the gain by a factor of at most
    # e^drift - 1 < 1.15 drift. Rounding blurs the slope and the curvature.
    drift = 6.0 * abs(step) * x
    noise = NOISE * (mass * x / (1.0 + x) - logs)
    blur = noise * (abs(slope) + noise) / bend + gain * NOISE * second / curvature
    sharp = (curvature > 64.0 * NOISE * second) & (drift <= 0.25) & (1.15 * gain * drift + blur <= TOLERANCE)
    # if some radius is unused, smaller X gain at most X times the slope
    reached = (slope <= 0.0) & (-slope * big <= TOLERANCE)
    # Newton on sqrt(H), which is almost linear in small x
    known = max(spent, 0.0)
    turn = 2.0 * (math.sqrt(known * radius) - known) * mass * (1.0 + x) / curvature
    better = min(x * min(max(1.0 + (-step * x if sharp else turn), 0.125), 8.0), MOST)
    value = max(big * power_less_one + power + (gain if sharp else 0.0), 0.0)
    return value, x if reached else better, sharp | reached


@row_function
def _worst(p, y, t, u, v, radius, x):
    """Solves a row from any start, by Newton steps inside a bracket."""
    if radius <= TINY:
        return _mean(p, y), 0.0
    mean_log, limit = _at_zero(p, y)
    if radius >= limit:
        return math.exp(mean_log - radius), MOST
    # H is the gap between the logarithm of a mean and the mean of logarithms with range log(1 + x); Hoeffding's lemma
    # bounds it by log(1 + x)^2 / 8
    least = min(math.expm1(min(math.sqrt(8.0 * radius), 50.0)), 0.5 * MOST)
    most = MOST
    x = min(max(x, least), most)
    count = 0
    while True:
        logs, mass, first, second = _at(p, y, t, u, v, x)
        value, following, ok = _judge(radius, x, logs, mass, first, second)
        if ok:
            return value, following
        power, power_less_one = power_of_two(LOG2_E * (logs - radius))
        dual = max(power_less_one / x + power, 0.0)
        _, slope = power_of_two(LOG2_E * (logs + log_of(mass, first) - radius))
        if slope < 0.0:
            least = x
        else:
            most = x
        # the dual is concave in X with this slope, and its maximum lies within the bracket
        if -slope * (1.0 / x - 1.0 / most) <= TOLERANCE and slope * (1.0 / least - 1.0 / x) <= TOLERANCE:
            return dual, x
        count += 1
        if count % 4 == 0 or not (least < following < most):  # bisect, so that the bracket always shrinks
            following = math.sqrt(least) * math.sqrt(most)
            if not (least < following < most):
                return dual, x
        x = following


@row_function
def _at(p, y, t, u, v, x):
    """Computes the moments of one row at x."""
    factor, offset = _line(x)
    for j in range(y.shape[0]):
        t[j] = factor * y[j] + offset
        u[j], v[j] = _curve(t[j])
    return _moments(p, 0, t, u, v, 0, y.shape[0])


@row_function
def _mean(p, y):
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * y[j]
    return total


@row_function
def _minimiser(p, z, low, radius, data, work, q, m):
    n = p.shape[0]
    y = work[0]
    span = to_unit(z, low, y)
    if radius <= TINY or span <= 0.0:
        for j in range(n):
            q[j] = p[j]
            m[j] = z[j]
        return 0.0
    mean_log, limit = _at_zero(p, y)
    if radius >= limit:
        return _beyond_zero(p, y, span, mean_log, radius, q, m)
    _, x = _worst(p, y, work[1], work[2], q, radius, 1.0)
    x = _polished(p, y, radius, x)
    mass = 0.0
    for j in range(n):
        q[j] = p[j] / (1.0 + x * y[j])
        mass += q[j]
    # the sensitivity is c log(y + X) with c = 1 / sum_j p_j / (y_j + X), without the constant c log X
    for j in range(n):
        q[j] = max(q[j] / mass, LEAST_NUMBER) if p[j] > 0.0 else 0.0
        m[j] = span / (x * mass) * math.log1p(x * y[j])
    return 0.0


@in_order
def _beyond_zero(p, y, span, mean_log, radius, q, m):
    """Writes q and m at X = 0: the mass that higher successors lose goes to the lowest ones, or out of the row."""
    c = math.exp(max(mean_log - radius, -500.0))
    total, faint = 0.0, 0.0
    receiver = -1
    for j in range(p.shape[0]):
        q[j], m[j] = 0.0, 0.0  # the sensitivity to a first observation has no finite value
        if y[j] <= 0.0:
            faint += p[j]
            receiver = j
        elif p[j] > 0.0:
            q[j] = max(c * p[j] / y[j], LEAST_NUMBER)
            m[j] = span * c * math.log(y[j])
            total += q[j]
    sent = max(1.0 - total, LEAST_NUMBER)
    if faint > 0.0:
        for j in range(p.shape[0]):
            if y[j] <= 0.0 and p[j] > 0.0:
                q[j] = sent * (p[j] / faint)
                m[j] = span * c * (math.log(c) + math.log(faint) - math.log(sent))
        return 0.0
    if receiver >= 0:
        q[receiver] = sent
        return 0.0
    return sent


@row_function
def _polished(p, y, radius, x):
    """Finds the root x of H = radius, of any size: values are insensitive to its error, the minimiser is not."""
    least, most = 1e-20, 1e280
    best, best_error = x, np.inf
    count = 0
    while True:
        logs = 0.0
        mass = 0.0
        first = 0.0
        second = 0.0
        for j in range(p.shape[0]):
            share = x * y[j] / (1.0 + x * y[j])
            logs += p[j] * math.log1p(x * y[j])
            mass += p[j] / (1.0 + x * y[j])
            first += p[j] * share
            second += p[j] * share * share
        unused = radius - (logs + (math.log1p(-first) if first < 0.5 else math.log(mass)))
        if abs(unused) < best_error:
            best, best_error = x, abs(unused)
        if unused > 0.0:
            least = x
        else:
            most = x
        curvature = second - first * first
        count += 1
        following = 0.0
        if curvature > 0.0 and count % 3 != 0:  # Newton in log x
            following = x * math.exp(min(max(unused * mass / curvature, -50.0), 50.0))
        if not (least < following < most):
            following = math.exp(0.5 * (math.log(least) + math.log(most)))
        if best_error <= 1e-16 * radius or not (least < following < most):
            return best
        x = following


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _carry(problem, r, u, u_outside, bare, hint, work, scatter, carried):
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
        x = max(x, 1e-30) if radius[row] > TINY else 1e-30  # at 1e-30 nature changes nothing
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
    """Returns q . u and writes m as in `_minimiser` if mass may leave the row; returns -1 if none does."""
    y = work[0]
    span = to_unit(z, low, y)
    mean_log, limit = _at_zero(p, y)
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
def _at_zero(p, y):
    """Returns sum p log y over successors above the lowest, and H(0), infinite if the lowest have mass over FAINT."""
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


@in_order
def _divergence(q, p, sent):
    return relative_entropy(p, q) + sent


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    return relative_entropy_exact(p, q)


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """max over log(X) of X (exp(sum_j p_j log(1 + y_j / X) - radius) - 1), or its limit at X = 0."""
    some = p > 0.0
    weight, y, span = in_units(p, np.where(some, z, low[:, None]), low)

    def bound(log_x: Any, y: Any, weight: Any, radius: Any) -> Any:
        x = np.exp(log_x)
        return x * np.expm1(mean(weight, np.log1p(y / x[:, None])) - radius)

    last = np.maximum(1.0 - 0.5 * np.log(8.0 * radius), -44.0)
    best = np.fmax(highest_of_each(bound, -45.0, last, y, weight, radius), 0.0)
    at_zero = np.exp(mean(weight, np.log(np.where(some, y, 1.0))) - radius)
    pinsker = mean(weight, y) - np.sqrt(radius / 2.0)
    return low + span * np.where(radius <= 1e-36, pinsker, np.fmax(best, at_zero))


KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=make_block_sweep(_line, _curve, _moments, _judge, _worst),
    minimise=make_minimiser(_minimiser, _divergence),
    moments=_carry,
    centred=True,
)
