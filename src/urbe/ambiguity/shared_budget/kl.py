"""Kullback-Leibler divergence: the path q_j = p_j exp(-beta y_j) / mass.

    K(beta) = log sum_j p_j exp(-beta y_j)            q . y = -K'(beta)
    h(price) = -price K(1 / price)                    xi(c) = max_beta -K(beta) - beta c

The divergence of mass outside the row is infinite. The path's parameter is x = beta.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.exponential import LOG2_E, log_of, power_of_two, relative_entropy, relative_entropy_exact
from urbe.ambiguity.kl import DEEP, FAINT, logarithms
from urbe.ambiguity.shared_budget.distance import Distance, in_any_order
from urbe.ambiguity.sweep import row_function

FARTHEST = 1000.0
"""Above -log of the smallest double: successors with larger beta y have no mass."""

UNPAID = 1e250
"""At higher prices nature stays: only rows that the policy hardly takes cost so much for what they are worth."""

LOSS = 2.0**-52
"""Largest error of the search for beta, in the units of y, relative to the row's mean."""


@row_function
def _moments(p, y, beta, c, work):
    """Computes K(beta), and the means of y - c and of (y - c)^2 under q.

    If all low successors have tiny probabilities, sums of p e^(-beta y) underflow: see `urbe.ambiguity.kl`.
    """
    mass, less, first, second, farthest = 0.0, 0.0, 0.0, 0.0, 0.0
    factor = -LOG2_E * beta
    for j in range(p.shape[0]):
        power, power_less = power_of_two(factor * y[j])
        weight = p[j] * power
        mass += weight
        less += p[j] * power_less
        first += weight * (y[j] - c)
        second += weight * (y[j] - c) * (y[j] - c)
        farthest = max(farthest, y[j])
    if beta * farthest <= DEEP or mass >= FAINT:
        return log_of(mass, less), first / mass, second / mass
    t = work[0]
    log_mass = logarithms(p, y, t, beta)
    first, second = 0.0, 0.0
    for j in range(p.shape[0]):
        weight = math.exp(t[j])
        first += weight * (y[j] - c)
        second += weight * (y[j] - c) * (y[j] - c)
    return log_mass, first, second


@register_jitable
def _floor(p, y):
    """-log of the mass at value 0."""
    mass, out = 0.0, 0.0
    for j in range(p.shape[0]):
        if y[j] <= 0.0:
            mass += p[j]
        else:
            out += p[j]
    return -math.log1p(-out) if out < 0.5 else -math.log(min(mass, 1.0))


@register_jitable
def _level(p, y, c, mean, hint, work):
    if c <= 0.0:
        return _floor(p, y), np.inf, np.inf, hint
    beta = hint
    if not 0.0 < hint < np.inf:
        variance = 0.0
        for j in range(p.shape[0]):
            variance += p[j] * (y[j] - mean) * (y[j] - mean)
        # beyond `FARTHEST / c` almost no mass is above c, for any probabilities
        beta = min(max((mean - c) / max(variance, 1e-300), 2.0**-60 / mean), FARTHEST / c)
    least, most = 0.0, np.inf
    count = 0
    while True:
        log_mass, above, square = _moments(p, y, beta, c, work)
        variance = square - above * above
        if above > 0.0:
            least = beta
        else:
            most = beta
        step = above / variance if variance > 0.0 else math.copysign(np.inf, above)
        # -K - beta c is concave with slope `above`: this far from its maximum
        if abs(above * step) <= 2.0 * LOSS * beta * mean or most <= least * (1.0 + 2.0**-52) or count > 200:
            better = beta + step if least < beta + step < most else beta
            return max(-log_mass - beta * c, 0.0), beta, better, better
        count += 1
        following = min(max(beta + step, 0.125 * beta), 8.0 * beta)
        if not least < following < most or count % 8 == 0:
            following = math.sqrt(least) * math.sqrt(most) if least > 0.0 and most < np.inf else following
            if not least < following < most:
                following = 0.5 * (least + most)
        beta = following


@register_jitable
def _penalty(p, y, mean, price, hint, work):
    if price <= 0.0:
        return 0.0, _floor(p, y), 0.0, np.inf, hint
    if price >= UNPAID:
        return mean, 0.0, 0.0, 0.0, hint
    beta = min(1.0 / price, UNPAID)
    log_mass, level, square = _moments(p, y, beta, 0.0, work)
    variance = max(square - level * level, 0.0)
    return -log_mass * price, max(-log_mass - beta * level, 0.0), variance * beta * beta * beta, beta, hint


@register_jitable
def _point(p, y, x, work, q):
    if x == np.inf:
        q[:] = np.where(y <= 0.0, p, 0.0)
    else:
        logarithms(p, y, q, x)
        q[:] = np.exp(q)
    q /= q.sum()
    return 0.0


@register_jitable
def _distance(q, p, sent):
    return relative_entropy(q, p)


@register_jitable
def _sensitivity(p, y, q, price, m):
    """h = -price log sum_j p_j exp(-y_j / price), whose derivative is -price q_j / p_j, up to a constant."""
    total = 0.0
    for j in range(len(p)):
        m[j] = np.expm1(-y[j] / price)
        total += p[j] * m[j]
    for j in range(len(p)):
        m[j] = -price * m[j] / (1.0 + total)


def _bound(p: Any, y: Any, price: Any) -> Any:
    """h = -price log sum_j p_j exp(-y_j / price), exactly; the lowest successor has y = 0."""
    exponent = -y / price[:, None]
    less, mass = ((p * power(exponent)).sum(axis=1) for power in (np.expm1, np.exp))
    return -price * np.where(less > -0.5, np.log1p(np.maximum(less, -0.5)), np.log(mass))


KL = Distance(
    in_any_order, _level, _penalty, _point, _distance, _sensitivity, relative_entropy_exact, _bound, 2.0**-108, np.inf
)
