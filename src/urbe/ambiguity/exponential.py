"""Compute powers of two, logarithms and relative entropy without branches, so that a compiler can vectorise them.

    2^t = 2^k (1 + g(f)),   k = round(t),   f = t - k in [-1/2, 1/2],   g(f) = 2^f - 1

g(f) / f is a polynomial of degree 10 (interpolation at Chebyshev nodes, relative error 2e-17; 5e-17 once its
coefficients are rounded). e^x is `power_of_two(x * LOG2_E)`: rounding the product moves x by one part in 2^53.

    log x = k log 2 + log c,   x = 2^k c,   c in [sqrt(1/2), sqrt(2)),   log c = 2 atanh(s),   s = (c - 1) / (c + 1)

2 atanh(s) = 2 s + s^3 R(s^2) with R of degree 6, found the same way (5e-18).

Relative entropy is a sum of terms that are at least 0, so that nothing cancels, however close a is to b:

    KL(a || b) = sum_j a_j log(a_j / b_j) = sum_j [a_j log(a_j / b_j) - a_j + b_j],       a and b distributions
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from urbe.ambiguity.sweep import in_order

elementwise = register_jitable(fastmath={"contract", "nsz", "nnan"}, error_model="numpy")
"""Operations may be fused but not reordered: reordering would turn (a - 1) + b into (a + b) - 1, and cancel."""

LOG2_E = 1.4426950408889634
LEAST = -1000.0
"""Smaller exponents are replaced by this one, hence smaller powers by 1e-301."""

CLOSE = 2.0**-8
"""For smaller relative differences, terms of relative entropy are computed by a series."""

_LOG_2 = 0.6931471805599453
_ROOT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)


@elementwise
def power_of_two(t):
    """2^t and 2^t - 1 for t < 1000, each to within 2 units in the last place."""
    t = max(t, LEAST)
    k = np.floor(t + 0.5)
    f = t - k
    # the polynomial in short chains of operations
    f2 = f * f
    f4 = f2 * f2
    a = (0.6931471805599453 + 0.24022650695910097 * f) + f2 * (0.0555041086648216 + 0.009618129107606888 * f)
    b = (0.0013333558146416936 + 0.0001540353044173605 * f) + f2 * (1.525273382983612e-05 + 1.321544258792169e-06 * f)
    c = (1.0178062445845774e-07 + 7.072585949269223e-09 * f) + f2 * 4.4549605981865186e-10
    scale = np.int64((np.int64(k) + 1023) << 52).view(np.float64)  # 2^k
    part = scale * (f * (a + f4 * (b + f4 * c)))
    return scale + part, (scale - 1.0) + part


@register_jitable(inline="always")
def log_of(x, less):
    """log x for x > 0, to within 3 units in the last place; `less` is x - 1, known more precisely when x is near 1."""
    bits = np.float64(x).view(np.int64)
    k = (bits - _ROOT_HALF_BITS) >> 52
    c = np.int64(bits - (k << 52)).view(np.float64)
    d = less if k == 0 else c - 1.0
    s = d / (2.0 + d)
    t = s * s
    t2 = t * t
    low = (0.666666666666667 + 0.3999999999989924 * t) + t2 * (0.2857142862609589 + 0.2222221111514416 * t)
    high = (0.18182890556695602 + 0.1533167403016786 * t) + t2 * 0.1461703754879165
    return k * _LOG_2 + (2.0 * s + s * t * (low + t2 * t2 * high))


@in_order
def relative_entropy(a, b):
    """KL(a || b) of two rows in double precision, compiled; infinite where a > 0 = b."""
    total = 0.0
    for j in range(a.shape[0]):
        if a[j] <= 0.0:
            total += b[j]
        elif b[j] <= 0.0:
            return np.inf
        else:
            d = a[j] - b[j]
            if abs(d) <= CLOSE * b[j]:
                total += d * _series(d / b[j])
            else:
                total += a[j] * (math.log(a[j]) - math.log(b[j])) - d
    return max(total, 0.0)


@in_order
def _series(e):
    """((1 + e) log(1 + e) - e) / e for small e; the first term left out is e^8 / 72."""
    tail = 1.0 / 20.0 + e * (-1.0 / 30.0 + e * (1.0 / 42.0 - e / 56.0))
    return e * (0.5 + e * (-1.0 / 6.0 + e * (1.0 / 12.0 - e * tail)))


def relative_entropy_exact(a: Any, b: Any) -> Any:
    """`(...)` KL(a || b) of rows `(..., n)` in extended precision, for certificates; each is divided by its sum."""
    a, b = (np.asarray(x, dtype=np.longdouble) for x in (a, b))
    a, b = a / a.sum(axis=-1, keepdims=True), b / b.sum(axis=-1, keepdims=True)
    d, some = a - b, a > 0.0
    near = some & (np.abs(d) <= CLOSE * b)
    own, other = np.where(some, a, 1.0), np.where(b > 0.0, b, 1.0)
    e = np.where(near, d / other, 0.0)
    # e - log(1 + e) would cancel; log1p keeps e^2 / 2 up to a relative error eps / e, which the factor e compensates
    close = other * ((1.0 + e) * np.log1p(e) - e)
    far = own * (np.log(own) - np.log(other)) - d
    terms = np.where(near, close, np.where(some, np.where(b > 0.0, far, np.inf), b))
    return terms.sum(axis=-1)
