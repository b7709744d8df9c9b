"""Kullback-Leibler divergence: the path q_j = p_j exp(-beta y_j) / mass.

    K(beta) = log sum_j p_j exp(-beta y_j)            q . y = -K'(beta)
    h(price) = -price K(1 / price)                    xi(c) = max_beta -K(beta) - beta c

Divergence is infinite for mass outside the row. The path's parameter is beta itself, x = beta.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.exponential import LOG2_E, log_of, power_of_two
from urbe.ambiguity.levels import Distance
from urbe.ambiguity.sweep import row_function
from urbe.types import FloatArray

LOSS = 2.0**-52
"""What stopping the search for beta may cost, in the units of y relative to the row's mean."""


@register_jitable
def _prepare(p, y):  # type: ignore[no-untyped-def]
    pass


@row_function
def _moments(p, y, beta, c):  # type: ignore[no-untyped-def]
    """Sums of p_j e^{-beta y_j} (1, y_j - c, (y_j - c)^2), and of p_j (e^{-beta y_j} - 1)."""
    mass, less, first, second = 0.0, 0.0, 0.0, 0.0
    factor = -LOG2_E * beta
    for j in range(p.shape[0]):
        power, power_less = power_of_two(factor * y[j])
        weight = p[j] * power
        mass += weight
        less += p[j] * power_less
        first += weight * (y[j] - c)
        second += weight * (y[j] - c) * (y[j] - c)
    return mass, less, first, second


@register_jitable
def _floor(p, y):  # type: ignore[no-untyped-def]
    """-log of the mass at value 0."""
    mass, out = 0.0, 0.0
    for j in range(p.shape[0]):
        if y[j] <= 0.0:
            mass += p[j]
        else:
            out += p[j]
    return -math.log1p(-out) if out < 0.5 else -math.log(min(mass, 1.0))


@register_jitable
def _level(p, y, c, mean, hint, work):  # type: ignore[no-untyped-def]
    if c <= 0.0:
        return _floor(p, y), np.inf, np.inf, hint
    beta = hint
    if not 0.0 < hint < np.inf:
        variance = 0.0
        for j in range(p.shape[0]):
            variance += p[j] * (y[j] - mean) * (y[j] - mean)
        beta = max((mean - c) / variance, 2.0**-60 / mean)
    least, most = 0.0, np.inf
    count = 0
    while True:
        mass, less, first, second = _moments(p, y, beta, c)
        above = first / mass
        variance = second / mass - above * above
        if above > 0.0:
            least = beta
        else:
            most = beta
        step = above / variance if variance > 0.0 else math.copysign(np.inf, above)
        # -K - beta c is concave with slope `above`: this far from its maximum
        if abs(above * step) <= 2.0 * LOSS * beta * mean or most <= least * (1.0 + 2.0**-52) or count > 200:
            better = beta + step if least < beta + step < most else beta
            return max(-log_of(mass, less) - beta * c, 0.0), beta, better, better
        count += 1
        following = min(max(beta + step, 0.125 * beta), 8.0 * beta)
        if not least < following < most or count % 8 == 0:
            following = math.sqrt(least) * math.sqrt(most) if least > 0.0 and most < np.inf else following
            if not least < following < most:
                following = 0.5 * (least + most)
        beta = following


@register_jitable
def _penalty(p, y, mean, price, hint, work):  # type: ignore[no-untyped-def]
    if price <= 0.0:
        return 0.0, _floor(p, y), 0.0, np.inf, hint
    beta = min(1.0 / price, 1e250)
    mass, less, first, second = _moments(p, y, beta, 0.0)
    log_mass = log_of(mass, less)
    level = first / mass
    variance = max(second / mass - level * level, 0.0)
    return -log_mass * price, max(-log_mass - beta * level, 0.0), variance * beta * beta * beta, beta, hint


@register_jitable
def _point(p, y, x, work, q):  # type: ignore[no-untyped-def]
    mass = 0.0
    for j in range(p.shape[0]):
        if x == np.inf:
            q[j] = p[j] if y[j] <= 0.0 else 0.0
        else:
            power, _ = power_of_two(-LOG2_E * x * y[j])
            q[j] = p[j] * power
        mass += q[j]
    for j in range(p.shape[0]):
        q[j] /= mass
    return 0.0


def _measure(q: FloatArray, p: FloatArray) -> float:
    some = q > 0.0
    if (p[some] <= 0.0).any():
        return np.inf
    return float((q[some] * np.log(q[some] / p[some])).sum())


KL = Distance(_prepare, _level, _penalty, _point, _measure, 2.0**-108, np.inf)
