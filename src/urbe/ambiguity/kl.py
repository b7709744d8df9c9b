"""Kullback-Leibler balls around a model's own rows.

    minimise  q . z   subject to  KL(q || p) = sum_j q_j log(q_j / p_j) <= radius

With y_j = z_j - min z and K(beta) = log sum_j p_j exp(-beta y_j), the dual is

    max_{beta > 0}  min z - (K(beta) + radius) / beta,          q_j = p_j exp(-beta y_j - K(beta)),

attained where D(beta) = KL(q || p) = beta K' - K equals the radius; D' = beta K''. KL is infinite for mass outside the
row, so the support is always the nominal one. A sweep starts from last time's beta and usually ends there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe import checks
from urbe.ambiguity.exponential import LOG2_E, power_of_two
from urbe.ambiguity.lean_sweep import extremes, make_lean_sweep
from urbe.ambiguity.row_nature import RowKernel, RowNature, bind_rows
from urbe.ambiguity.sweep import make_minimiser
from urbe.ambiguity.zoom import highest
from urbe.mdp.model import MDP
from urbe.types import FloatArray, Support

TOLERANCE = 2.0**-48
"""Largest error of a row's value left by the search for beta, as a multiple of the row's span."""

TINY = 2.0**-100
"""Radii below change no value by more than sqrt(radius / 2) = 2^-50.5 spans (Pinsker's inequality)."""

NOISE = 2.0**-50
"""Allowance for rounding in the sums of a row, relative to their terms."""

# Error of a row's value, in units of span <= 2 max |z| and u = 2^-53: TOLERANCE = 32 u from the search. Rounding moves
# y, beta y and 2^t by a few u relative: a change of y by u relative moves the value by at most u. The sum behind K is
# of terms of one sign and K / beta <= span: its error counts up to 1.5 (n / 4 + 2) u as it is summed in lanes of
# four, 3 (n / 4 + 2) u <= (n + 6) u of max |z|, which the caller's allowance for a sum of n terms covers. log, the
# division and the final sums add 6 u. In all below 2 (32 + 16) u of max |z|.
ACCURACY = 96 * 2.0**-53


@dataclass(frozen=True, eq=False)
class KLBall:
    """U(s, a) = {q in simplex : sum_j q_j log(q_j / pbar_j) <= radius(s, a)}.

    Args:
      radius: a number, `(R,)`, `(S, A)` or `{(s, a): number}`, at least 0.
      support: "nominal" or "all"; both name the same set, since the divergence of mass where pbar = 0 is infinite.

    >>> import urbe
    >>> from urbe.ambiguity.kl import KLBall
    >>> mdp = urbe.MDP.from_dense([[[0.5, 0.5]], [[0.0, 1.0]]], [[0.0], [1.0]], discount=0.5)
    >>> KLBall(1.0).bind(mdp).values([0.0, 2.0])
    array([0., 2.])
    """

    radius: Any
    support: Support = "nominal"

    def bind(self, mdp: MDP) -> RowNature:
        """See `AmbiguitySet`."""
        checks.one_of("support", self.support, ("nominal", "all"))
        radius = mdp.per_row("radius", self.radius)
        checks.row_range("radius", radius, 0.0, np.inf, mdp.row_name)
        return bind_rows(KERNEL, mdp, radius)


@register_jitable
def _worst(p, z, low, high, radius, hint):  # type: ignore[no-untyped-def]
    top = high - low
    if radius <= TINY or not top > 0.0:
        return low + _mean(p, z, low), hint
    # Hoeffding: D(beta) <= (beta top)^2 / 8. From `most` on, an unused radius is worth at most the tolerance.
    tolerance = TOLERANCE * top
    least = math.sqrt(8.0 * radius) / top
    most = max(radius / tolerance, 2.0 * least)
    beta = hint / top
    if hint <= 0.0:
        beta = _first_guess(p, z, low, radius)
        if beta <= 0.0:
            return low, most * top
    beta = min(max(beta, least), most)
    count = 0
    while True:
        log_mass, first, second = _moments(p, z, low, beta)
        unused = radius - (-beta * first - log_mass)  # radius - D(beta)
        curvature = second - first * first
        dual = low - (log_mass + radius) / beta
        if unused > 0.0:
            least = beta
        else:
            most = beta
        # In lam = 1 / beta the dual is concave with slope -unused, and its maximum lies within the bracket.
        if unused * (1.0 / beta - 1.0 / most) <= tolerance and -unused * (1.0 / least - 1.0 / beta) <= tolerance:
            return dual, beta * top
        step = 0.0
        if curvature > 64.0 * NOISE * second:
            # The dual's second derivative in lam is -beta^3 K''. Its logarithm changes at a rate of at most
            # beta (3 + beta top), as K''' is at most top K''. While that makes little over 1.5 Newton steps, the
            # maximum is within 1.2 steps and Newton's parabola misses the gain by a factor of at most e^drift - 1.
            step = unused / (beta * curvature)
            gain = 0.5 * unused * step / (beta * beta)
            drift = 1.5 * abs(step) * (3.0 / beta + top)
            noise = NOISE * beta * top  # rounding of `unused`
            blur = noise * (abs(unused) + noise) / (beta * beta * beta * curvature) + gain * NOISE * second / curvature
            if drift <= 0.25 and 1.15 * gain * drift + blur <= tolerance:
                return dual + gain, (beta + step) * top
            # Newton on sqrt(D), which is almost linear in beta
            root = math.sqrt(max(radius - unused, 0.0))
            step = 2.0 * root * (math.sqrt(radius) - root) / (beta * curvature)
        count += 1
        following = beta + step
        if count % 4 == 0 or not (least < following < most):  # the bracket shrinks for sure
            following = math.sqrt(least) * math.sqrt(most)
            if not (least < following < most):
                return dual, beta * top
        beta = following


@register_jitable
def _mean(p, z, low):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * (z[j] - low)
    return total


@register_jitable
def _first_guess(p, z, low, radius):  # type: ignore[no-untyped-def]
    """sqrt(2 radius / variance), from D = beta^2 variance / 2 + ...; 0 when the radius reaches the lowest value."""
    mean = _mean(p, z, low)
    variance = 0.0
    lowest = 0.0
    for j in range(p.shape[0]):
        y = z[j] - low
        variance += p[j] * (y - mean) * (y - mean)
        lowest += p[j] if y <= 0.0 else 0.0
    if radius >= -math.log(min(lowest, 1.0)):
        return 0.0
    return math.sqrt(2.0 * radius) / math.sqrt(max(variance, 1e-300))


@register_jitable
def _moments(p, z, low, beta):  # type: ignore[no-untyped-def]
    """K(beta), and the mean and second moment of y under q; one pass without branches."""
    rate = beta * LOG2_E
    mass = 0.0
    less = 0.0
    first = 0.0
    second = 0.0
    for j in range(p.shape[0]):
        y = z[j] - low
        power, power_less_one = power_of_two(-rate * y)
        weight = p[j] * power
        mass += weight
        less += p[j] * power_less_one
        first += weight * y
        second += weight * y * y
    # either form is accurate relative to beta times the span
    log_mass = math.log1p(less) if mass > 0.5 else math.log(mass)
    return log_mass, first / mass, second / mass


@register_jitable
def _minimiser(p, z, low, radius, data, work, q, m):  # type: ignore[no-untyped-def]
    n = p.shape[0]
    _, high = extremes(z)
    top = high - low
    if radius <= TINY or not top > 0.0:
        for j in range(n):
            q[j] = p[j]
            m[j] = z[j]
        return 0.0
    if _first_guess(p, z, low, radius) <= 0.0:
        lowest = 0.0
        for j in range(n):
            lowest += p[j] if z[j] <= low else 0.0
        for j in range(n):
            q[j] = p[j] / lowest if z[j] <= low else 0.0
            m[j] = 0.0
        return 0.0
    _, scaled = _worst(p, z, low, high, radius, 0.0)
    beta = _polished(p, z, low, radius, scaled / top)
    mass = 0.0
    less = 0.0
    for j in range(n):
        power, power_less_one = power_of_two(-beta * LOG2_E * (z[j] - low))
        q[j] = p[j] * power
        m[j] = power_less_one
        mass += q[j]
        less += p[j] * power_less_one
    # -exp(-beta y) / (beta mass), shifted so that it tends to y as beta goes to zero
    for j in range(n):
        q[j] /= mass
        m[j] = (less - m[j]) / (beta * mass)
    return 0.0


@register_jitable
def _polished(p, z, low, radius, beta):  # type: ignore[no-untyped-def]
    """Newton steps on D(beta) = radius for as long as they help: the minimiser needs beta itself."""
    best, best_error = beta, np.inf
    while True:
        log_mass, first, second = _moments(p, z, low, beta)
        unused = radius - (-beta * first - log_mass)
        if not abs(unused) < best_error:
            return best
        best, best_error = beta, abs(unused)
        curvature = second - first * first
        if not curvature > 0.0:
            return best
        beta = min(max(beta + unused / (beta * curvature), 0.5 * best), 2.0 * best)


def _distance(q: FloatArray, p: FloatArray, data: FloatArray) -> float:
    some = q > 0.0
    if (p[some] <= 0.0).any():
        return np.inf
    return float((q[some] * np.log(q[some] / p[some])).sum())


def _dual(p: FloatArray, z: FloatArray, low: float, radius: float, data: FloatArray) -> float:
    """max over a search in log(beta) of low - (log sum_j p_j exp(-beta y_j) + radius) / beta."""
    y, weight = z.astype(np.longdouble) - low, p.astype(np.longdouble) / p.sum(dtype=np.longdouble)
    span, mean = float(y.max()), float(weight @ y)
    if radius <= 1e-36 or span <= 0.0:
        return low + mean - np.sqrt(radius / 2.0) * span

    def bound(log_beta: Any) -> Any:
        beta = np.exp(log_beta)
        less = np.expm1(-beta[:, None] * y) @ weight
        log_mass = np.where(less > -0.5, np.log1p(less), np.log(np.exp(-beta[:, None] * y) @ weight))
        return -(log_mass + radius) / beta

    first = np.log(8.0 * radius) / 2.0 - np.log(span) - 1.0
    last = np.log(max(radius, 1.0)) - np.log(span) + 50.0
    return low + max(0.0, highest(bound, first, last))


KERNEL = RowKernel(make_lean_sweep(_worst), make_minimiser(_minimiser), _distance, _dual, ACCURACY)
