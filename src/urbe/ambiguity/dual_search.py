"""The maxima of the duals of many rows at once, for certificates.

By weak duality the dual is a lower bound at every multiplier: a poor search makes a bound loose but never wrong. So
double precision is enough to find the multipliers; the bound itself is then computed in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SECTIONS = 80
"""0.618^80 of an interval of logarithms is about the resolution of a double."""

LEAST = 1e-290
"""Smaller probabilities, next to which doubles lose their digits, are searched in extended precision too."""


def highest_of_each(function: Callable[..., Any], low: Any, high: Any, *arrays: Any) -> Any:
    """`(k,)` values of k unimodal functions `x -> function(x, *arrays)`, each where golden sections find it highest.

    Args:
      function: maps `(k,)` arguments, in the precision of `arrays`, to `(k,)` values.
      low, high: `(k,)` the intervals, or numbers.
      arrays: in extended precision.
    """
    k = len(arrays[0])
    precise = any(((array > 0.0) & (array < LEAST)).any() for array in arrays)
    searched = arrays if precise else [np.asarray(array, dtype=np.float64) for array in arrays]
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    a, b = (np.array(np.broadcast_to(end, k), dtype=searched[0].dtype) for end in (low, high))
    best, highest = a, np.full(k, -np.inf)

    def at(x: Any) -> Any:
        nonlocal best, highest
        value = function(x, *searched)
        best, highest = np.where(value > highest, x, best), np.fmax(value, highest)
        return value

    with np.errstate(all="ignore"):  # a row that has no such dual is of no use to the caller
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        at(a), at(b)
        at_c, at_d = at(c), at(d)
        for _ in range(SECTIONS):
            up = at_d > at_c
            a, b = np.where(up, c, a), np.where(up, b, d)
            new = np.where(up, a + ratio * (b - a), b - ratio * (b - a))
            at_new = at(new)
            c, d = np.where(up, d, new), np.where(up, new, c)
            at_c, at_d = np.where(up, at_d, at_new), np.where(up, at_new, at_c)
        # next to a kink the two precisions may see different sides of it
        values = [function(x.astype(np.longdouble), *arrays) for x in (best, a, b)]
        return np.fmax.reduce(values)


def in_units(p: Any, z: Any, low: Any) -> tuple[Any, Any, Any]:
    """Weights p / sum p, values y = (z - low) / span, and the span `(k,)` of each row: zero where y is zero."""
    y = z - low[:, None]
    span = y.max(axis=1)
    return p / p.sum(axis=1, keepdims=True), y / np.where(span > 0.0, span, 1.0)[:, None], span


def mean(weight: Any, y: Any) -> Any:
    """`(k,)` sum_j weight_j y_j of each row."""
    return np.einsum("kn,kn->k", weight, y)
