"""Relative entropy without cancellation: what KL balls and likelihood regions measure distances with.

    KL(a || b) = sum_j a_j log(a_j / b_j) = sum_j [a_j log(a_j / b_j) - a_j + b_j],       a and b distributions

Every term of the second sum is at least 0, so that its rounding is relative to the result, however close a is to b.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from urbe.ambiguity.sweep import in_order

CLOSE = 2.0**-8
"""Relative differences below which terms are summed as a series."""


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
    # e - log(1 + e) would cancel; log1p keeps e^2 / 2 to within eps / e of itself, which the term's factor e makes up
    close = other * ((1.0 + e) * np.log1p(e) - e)
    far = own * (np.log(own) - np.log(other)) - d
    terms = np.where(near, close, np.where(some, np.where(b > 0.0, far, np.inf), b))
    return terms.sum(axis=-1)
