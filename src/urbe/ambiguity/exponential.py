"""Powers of two that a compiler can vectorise: a polynomial and a table, without branches.

    2^t = 2^k (1 + g(f)),   k = round(t),   f = t - k in [-1/2, 1/2],   g(f) = 2^f - 1

g(f) / f is a polynomial of degree 10 (interpolation at Chebyshev nodes, relative error 2e-17; 5e-17 once its
coefficients are rounded). e^x is `power_of_two(x * LOG2_E)`: rounding the product moves x by one part in 2^53.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

LOG2_E = 1.4426950408889634
LEAST = -1000.0
"""Exponents below count as this one: 1e-301 in place of still smaller numbers."""

_POWERS = 2.0 ** -np.arange(1001.0)


@register_jitable
def power_of_two(t):  # type: ignore[no-untyped-def]
    """2^t and 2^t - 1 for t <= 0, each to within 2 units in the last place."""
    t = max(t, LEAST)
    k = np.floor(t + 0.5)
    f = t - k
    # the polynomial in short chains of operations
    f2 = f * f
    f4 = f2 * f2
    a = (0.6931471805599453 + 0.24022650695910097 * f) + f2 * (0.0555041086648216 + 0.009618129107606888 * f)
    b = (0.0013333558146416936 + 0.0001540353044173605 * f) + f2 * (1.525273382983612e-05 + 1.321544258792169e-06 * f)
    c = (1.0178062445845774e-07 + 7.072585949269223e-09 * f) + f2 * 4.4549605981865186e-10
    scale = _POWERS[np.uint32(-k)]
    part = scale * (f * (a + f4 * (b + f4 * c)))
    return scale + part, (scale - 1.0) + part
