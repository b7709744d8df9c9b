"""Kullback-Leibler balls around a model's own rows.

    minimise  q . z   subject to  KL(q || p) = sum_j q_j log(q_j / p_j) <= radius

With y_j = z_j - min z and K(beta) = log sum_j p_j exp(-beta y_j), the dual is

    max_{beta > 0}  min z - (K(beta) + radius) / beta,          q_j = p_j exp(-beta y_j - K(beta)),

attained where D(beta) = KL(q || p) = beta K' - K equals the radius; D' = beta K''. KL is infinite for mass outside the
row, so the support is always the nominal one. A sweep starts from the last beta and usually ends there.
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
from urbe.ambiguity.exponential import LOG2_E, log_of, power_of_two, relative_entropy, relative_entropy_exact
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_balls
from urbe.ambiguity.sweep import FAST, in_order, make_minimiser, row_function
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

TOLERANCE = 2.0**-48
"""Largest error of a row's value after the search for beta, as a multiple of the row's span."""

TINY = 2.0**-100
"""Smaller radii change no value by more than sqrt(radius / 2) = 2^-50.5 spans (Pinsker's inequality)."""

NOISE = 2.0**-50
"""Allowance for rounding in the sums of a row, relative to their terms."""

SMALLEST = 1e-100
"""Keeps quotients finite in constant rows."""

DEEP, FAINT = 600.0, 1e-200
"""If x is larger and the sum of p e^(-x y) smaller, `_at` sums logarithms: powers end at 2^-1000."""

LARGEST_LOG = 700.0
"""Logarithm of the largest q / p that is computed: a larger one would overflow."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53: TOLERANCE = 32 u from the search. Rounding moves
# y, x y and 2^t by a few u relative, and a change of y by u relative moves the value by at most u. K / x <= 1, and the
# sums behind it are of terms of one sign: n u |sum (1 - e^{-x y})| / mass while mass > sqrt(1/2), n u below, where
# x >= log 2 / 2; in either case at most 3 n u of x. The logarithm and the last operations add 8 u. The caller allows
# for n u of max |z| already.
ACCURACY = 2 * (32 + 16) * 2.0**-53
PER_ENTRY = 5 * 2.0**-53


@dataclass(frozen=True, eq=False)
class KLBall(RectangularSet):
    """U(s, a) = {q in simplex : sum_j q_j log(q_j / pbar_j) <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      support: "nominal" or "all"; both give the same set, since the divergence of mass where pbar = 0 is infinite.

    >>> import numpy as np, urbe
    >>> from urbe.ambiguity.kl import KLBall
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> KLBall(1.0).bind(mdp).values(np.array([0.0, 2.0]))
    array([0., 2.])
    """

    radius: Any
    support: Support = "nominal"

    def __post_init__(self) -> None:
        checks.numbers("radius", self.radius)

    def bind(self, mdp: MDP) -> RowNature:
        checks.one_of("support", self.support, ("nominal", "all"))
        return bind_balls(KERNEL, mdp, self.radius, "nominal")


@vector_function
def _line(x):
    return -LOG2_E * x, 0.0


@vector_function
def _moments(p, a, t, u, v, b, n):
    """Sums of p (2^t - 1) and of p 2^t (1, t, t^2)."""
    mass = 0.0
    less = 0.0
    first = 0.0
    second = 0.0
    for j in range(n):
        weight = p[a + j] * u[b + j]
        mass += weight
        less += p[a + j] * v[b + j]
        first += weight * t[b + j]
        second += weight * t[b + j] * t[b + j]
    return mass, less, first, second


@vector_function
def _judge(radius, x, mass, less, first, second):
    """Returns value and better x by Newton's parabola, and whether the error is within the tolerance."""
    unit = -1.0 / (LOG2_E * x)  # t in units of y
    value, better, ok = _assess(radius, x, log_of(mass, less), first * unit / mass, second * unit * unit / mass)
    return value, better, ok & ((x <= DEEP) | (mass >= FAINT))


@vector_function
def _assess(radius, x, log_mass, mean, square):
    """Does the work of `_judge`, from K and the first two moments of y under q."""
    lam = 1.0 / x
    # the dual as a function of lam = 1 / x, -lam (K + radius), has slope -unused and second derivative -x^3 K''
    unused = radius - (-x * mean - log_mass)
    curvature = max(square - mean * mean, SMALLEST)
    step = unused * lam / curvature
    gain = 0.5 * unused * step * lam * lam
    # The logarithm of the second derivative changes at a rate of at most x (3 + x), as |K'''| <= K''. If it changes
    # little over 1.5 Newton steps, the maximum is within 1.2 steps, and the parabola misses the gain by a factor
    # of at most e^drift - 1 < 1.15 drift. Rounding blurs `unused` and the curvature.
    drift = 1.5 * abs(step) * (3.0 * lam + 1.0)
    blur = NOISE * ((abs(unused) + NOISE * x) * lam * lam + gain * square) / curvature
    sharp = (curvature > 64.0 * NOISE * square) & (drift <= 0.25) & (1.15 * gain * drift + blur <= TOLERANCE)
    # if some radius is unused, the value of the remaining slope is at most unused * lam
    reached = (unused >= 0.0) & (unused * lam <= TOLERANCE)
    # Newton on sqrt(D), which is almost linear in x
    spent = max(radius - unused, 0.0)
    turn = 2.0 * (math.sqrt(spent * radius) - spent) * lam / curvature
    better = min(max(x + (step if sharp else turn), 0.25 * x), 4.0 * x)
    value = max(-(log_mass + radius) * lam + (gain if sharp else 0.0), 0.0)
    return value, x if reached else better, sharp | reached


@row_function
def _worst(p, y, t, u, v, radius, x):
    """Solves a row from any start, by Newton steps inside a bracket."""
    if radius <= TINY:
        return _mean(p, y), 0.0
    # Hoeffding: D <= x^2 / 8. From `most` on, unused radius is worth at most the tolerance.
    least = math.sqrt(8.0 * radius)
    most = max(radius / TOLERANCE, 2.0 * least)
    if radius >= _reach(p, y):
        return 0.0, most
    x = min(max(x, least), most)
    count = 0
    while True:
        log_mass, mean, square = _at(p, y, t, u, v, x)
        value, following, ok = _assess(radius, x, log_mass, mean, square)
        if ok:
            return value, following
        unused = radius - (-x * mean - log_mass)
        if unused > 0.0:
            least = x
        else:
            most = x
        # the dual is concave in 1 / x with slope -unused here, and its maximum lies within the bracket
        if -unused * (1.0 / least - 1.0 / x) <= TOLERANCE and unused * (1.0 / x - 1.0 / most) <= TOLERANCE:
            return max(-(log_mass + radius) / x, 0.0), x
        count += 1
        if count % 4 == 0 or not (least < following < most):  # bisect, so that the bracket always shrinks
            following = math.sqrt(least) * math.sqrt(most)
            if not (least < following < most):
                return max(-(log_mass + radius) / x, 0.0), x
        x = following


@row_function
def _at(p, y, t, u, v, x):
    """Returns K and the first two moments of y under q, at x.

    Sums of p_j e^(-x y_j) are accurate unless they underflow. If x is large and all low successors have tiny
    probabilities, logarithms of the terms are summed instead. Their rounding, some 750 units in the last place, is
    divided by x > DEEP in the value.
    """
    n = y.shape[0]
    mass, less, first, second = _powers(p, y, t, u, v, x)
    if x <= DEEP or mass >= FAINT:
        unit = -1.0 / (LOG2_E * x)
        return log_of(mass, less), first * unit / mass, second * unit * unit / mass
    log_mass = logarithms(p, y, t, x)
    first, second = 0.0, 0.0
    for j in range(n):
        weight = math.exp(t[j])
        first += weight * y[j]
        second += weight * y[j] * y[j]
    return log_mass, first, second


@row_function
def _powers(p, y, t, u, v, x):
    """t = -x y log2(e), u = 2^t, v = u - 1 and the sums of `_moments`."""
    factor, _ = _line(x)
    for j in range(y.shape[0]):
        t[j] = factor * y[j]
        u[j], v[j] = power_of_two(t[j])
    return _moments(p, 0, t, u, v, 0, y.shape[0])


@row_function
def logarithms(p, y, t, x):
    """t = log q = log p - x y - K; returns K."""
    top = -np.inf
    for j in range(y.shape[0]):
        t[j] = math.log(p[j]) - x * y[j]
        top = max(top, t[j])
    mass = 0.0
    for j in range(y.shape[0]):
        mass += math.exp(t[j] - top)
    log_mass = top + math.log(mass)
    for j in range(y.shape[0]):
        t[j] -= log_mass
    return log_mass


@row_function
def _tilted(p, y, t, u, v, x, q, m):
    """q_j = p_j e^(-x y_j - K), and the sensitivity m_j = (1 - q_j / p_j) / x in units of the span.

    Without the constant 1 / x it would not tend to y as x goes to zero.
    """
    n = y.shape[0]
    mass, less, _, _ = _powers(p, y, t, u, v, x)
    if x <= DEEP or mass >= FAINT:
        for j in range(n):
            q[j] = p[j] * u[j] / mass
            m[j] = (less - v[j]) / (x * mass)
        return
    logarithms(p, y, t, x)
    total = 0.0
    for j in range(n):
        q[j] = math.exp(t[j])
        total += q[j]
        m[j] = (1.0 - math.exp(min(t[j] - math.log(p[j]), LARGEST_LOG))) / x
    for j in range(n):
        q[j] /= total


@row_function
def _mean(p, y):
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * y[j]
    return total


@row_function
def _reach(p, y):
    """The least radius at which all mass can move to the lowest successors: -log of their nominal mass."""
    lowest = 0.0
    for j in range(p.shape[0]):
        lowest += p[j] if y[j] <= 0.0 else 0.0
    return -math.log(min(lowest, 1.0))


@njit(cache=True, nogil=True, fastmath=FAST)
def _carry(problem, r, u, u_outside, bare, hint, work, scatter, carried):
    """The loop of `make_moments`: q proportional to p e^(-x y), m = -span e^(-x y) / (x mass) at the last sweep's x.

    m omits the row's constant: e^(-x y) - 1 keeps its digits if x is small.
    """
    start, successor, p, data, radius, outside, w = problem
    z, row_u = work[0], work[1]
    for row in range(len(start) - 1):
        a = np.uint64(start[row])
        n = np.uint64(start[row + 1]) - a
        for j in range(n):
            z[j] = w[np.uint32(successor[a + j])]
            row_u[j] = u[np.uint32(successor[a + j])]
        if r is not None:
            for j in range(n):
                z[j] += r[a + j]
        low, high = z[0], z[0]
        for j in range(n):
            low = min(low, z[j])
            high = max(high, z[j])
        span, x = high - low, max(hint[row], 1e-30)  # at 1e-30 nature changes nothing
        factor, unit = (-LOG2_E * x, 1.0 / span) if span > NO_SPAN else (0.0, 0.0)
        mass, first, square, total = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            power, less = power_of_two(factor * ((z[j] - low) * unit))
            mass += p[a + j] * power
            total += p[a + j] * power * row_u[j]
            first += p[a + j] * less
            square += p[a + j] * less * less
        if x <= DEEP or mass >= FAINT:
            scale = span / (x * mass)
            scatter[row] = max(square - first * first, 0.0) * scale * scale
            carried[row] = total / mass
        else:
            e, k = np.int64(a), np.int64(n)
            scatter[row], carried[row] = _deep_moments(p[e : e + k], z[:k], row_u[:k], low, span, x, work[2:, :k])


@row_function
def _deep_moments(p, z, u, low, span, x, work):
    """Returns the variance of m under p, and q . u, if sums of p e^(-x y) would underflow."""
    y, t, q, m = work[0], work[1], work[2], work[3]
    for j in range(p.shape[0]):
        y[j] = (z[j] - low) / span
    _tilted(p, y, t, q, m, x, q, m)
    # the variance of q / p under p is q . (q / p) - 1 = -x q . m
    moved, carried = 0.0, 0.0
    for j in range(p.shape[0]):
        moved -= q[j] * m[j]
        carried += q[j] * u[j]
    return max(moved, 0.0) / x * span * span, carried


@row_function
def _minimiser(p, z, low, radius, data, work, q, m):
    n = p.shape[0]
    y, t, u = work[0], work[1], work[2]
    span = to_unit(z, low, y)
    if radius <= TINY or span <= 0.0:
        for j in range(n):
            q[j] = p[j]
            m[j] = z[j]
        return 0.0
    reach = _reach(p, y)
    if radius >= reach:
        scale, total = math.exp(min(reach, LARGEST_LOG)), 0.0
        for j in range(n):
            q[j] = p[j] * scale if y[j] <= 0.0 else 0.0
            m[j] = 0.0
            total += q[j]
        for j in range(n):
            q[j] /= total
        return 0.0
    _, x = _worst(p, y, t, u, m, radius, 1.0)
    x = _polished(p, y, t, u, m, radius, x)
    _tilted(p, y, t, u, m, x, q, m)
    for j in range(n):
        m[j] *= span
    return 0.0


@row_function
def _polished(p, y, t, u, v, radius, x):
    """Finds the root x of D = radius: values are insensitive to its error, the minimiser is not."""
    least, most = 1e-20, 1e20
    best, best_error = x, np.inf
    count = 0
    while True:
        log_mass, mean, square = _at(p, y, t, u, v, x)
        unused = radius - (-x * mean - log_mass)
        if abs(unused) < best_error:
            best, best_error = x, abs(unused)
        if unused > 0.0:
            least = x
        else:
            most = x
        curvature = square - mean * mean
        count += 1
        following = x + unused / (x * curvature) if curvature > 0.0 and count % 3 != 0 else 0.0
        if not (least < following < most):
            following = math.sqrt(least) * math.sqrt(most)
        if best_error <= 1e-16 * radius or not (least < following < most):
            return best
        x = following


@in_order
def _divergence(q, p, sent):
    return relative_entropy(q, p)


def _distance(q: Any, p: Any, data: FloatArray) -> Any:
    return relative_entropy_exact(q, p)


def _dual(p: Any, z: Any, low: Any, radius: Any, data: FloatArray) -> Any:
    """max over log(beta) of low - (log sum_j p_j exp(-beta y_j) + radius) / beta."""
    weight, y, span = in_units(p, z, low)

    def bound(log_beta: Any, y: Any, weight: Any, radius: Any) -> Any:
        beta = np.exp(log_beta)
        less, mass = (mean(weight, power(-beta[:, None] * y)) for power in (np.expm1, np.exp))
        log_mass = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), np.log(mass))
        return -(log_mass + radius) / beta

    first, last = np.log(8.0 * radius) / 2.0 - 1.0, np.log(np.maximum(radius, 1.0)) + 50.0
    best = np.fmax(highest_of_each(bound, first, last, y, weight, radius), 0.0)
    pinsker = mean(weight, y) - np.sqrt(radius / 2.0)
    return low + span * np.where(radius <= 1e-36, pinsker, best)


KERNEL = RowKernel(
    _minimiser,
    _distance,
    _dual,
    ACCURACY,
    per_entry=PER_ENTRY,
    sweep=make_block_sweep(_line, power_of_two, _moments, _judge, _worst),
    minimise=make_minimiser(_minimiser, _divergence),
    moments=_carry,
    centred=True,
)
