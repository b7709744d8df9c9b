"""One-dimensional maximisation for the independent dual bounds: plain NumPy, extended precision, no derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def highest(function: Callable[[Any], Any], low: float, high: float, rounds: int = 8) -> float:
    """The highest value seen of a unimodal `function` on `[low, high]`, by zooming into a grid.

    Each round looks at 33 points and keeps the neighbours of the best: 16 times closer. The error is second order in
    the last spacing. By weak duality every value seen is a bound, so a poor search only makes it loose.

    Args:
      function: maps `(k,)` arguments of type longdouble to `(k,)` values.
      low, high: the interval.
      rounds: number of grids.
    """
    a, b = np.longdouble(low), np.longdouble(high)
    best = -np.inf
    for _ in range(rounds):
        x = a + (b - a) * np.linspace(0, 1, 33, dtype=np.longdouble)
        values = function(x)
        at = int(np.argmax(values))
        best = max(best, float(values[at]))
        a, b = x[max(at - 1, 0)], x[min(at + 1, 32)]
    return best


def highest_of_each(function: Callable[[Any], Any], low: Any, high: Any, rounds: int = 90) -> Any:
    """`(k,)` the highest values seen of k concave functions at once, by golden sections.

    Args:
      function: maps `(k,)` arguments of type longdouble to `(k,)` values; -inf, if at all, at the upper end.
      low, high: `(k,)` the intervals.
      rounds: each shrinks them to 0.618 of their length; 90 leave the rounding of extended precision.
    """
    ratio = (np.sqrt(np.longdouble(5.0)) - 1.0) / 2.0
    a, b = low.astype(np.longdouble), high.astype(np.longdouble)
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    at_c, at_d = function(c), function(d)
    best = np.maximum(np.maximum(function(a), function(b)), np.maximum(at_c, at_d))
    for _ in range(rounds):
        up = at_d > at_c
        a, b = np.where(up, c, a), np.where(up, b, d)
        new = np.where(up, a + ratio * (b - a), b - ratio * (b - a))
        at_new = function(new)
        c, d = np.where(up, d, new), np.where(up, new, c)
        at_c, at_d = np.where(up, at_d, at_new), np.where(up, at_new, at_c)
        best = np.maximum(best, at_new)
    return best
