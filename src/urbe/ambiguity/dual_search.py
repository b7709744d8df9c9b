"""Maximise the duals of many rows at once, for certificates.

By weak duality the dual is a lower bound at every multiplier: a poor search makes a bound loose but never wrong.
Therefore multipliers are searched in double precision; the bound itself is computed in extended precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

SECTIONS = 80
"""0.618^80 of an interval of logarithms is about the resolution of a double."""

SIDE_BY_SIDE = 2048
"""NumPy processes this many numbers in about the time of one: small problems test many points at once."""

LEAST = 1e-290
"""With smaller probabilities doubles lose digits, so the search uses extended precision too."""


def highest_of_each(function: Callable[..., Any], low: Any, high: Any, *arrays: Any) -> Any:
    """Maximises k unimodal functions `x -> function(x, *arrays)` by sections; returns the `(k,)` values.

    Args:
      function: maps `(m k,)` arguments, in the precision of `arrays`, to `(m k,)` values; it receives m consecutive
        copies of `arrays`, and must work for any m.
      low, high: `(k,)` the intervals, or numbers.
      arrays: in extended precision.
    """
    k = len(arrays[0])
    precise = any(((array > 0.0) & (array < LEAST)).any() for array in arrays)
    searched = arrays if precise else [np.asarray(array, dtype=np.float64) for array in arrays]
    a, b = (np.array(np.broadcast_to(end, k), dtype=searched[0].dtype) for end in (low, high))
    points = min(SIDE_BY_SIDE // max(sum(array.size for array in arrays), 1), 31)
    search = _golden_sections if points < 7 else partial(_many_sections, points=points)
    with np.errstate(all="ignore"):  # the caller ignores rows that have no such dual
        # near a kink the two precisions may be on different sides of it
        values = [function(x.astype(np.longdouble), *arrays) for x in search(function, a, b, searched)]
        return np.fmax.reduce(values)


def _golden_sections(function: Callable[..., Any], a: Any, b: Any, arrays: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Returns the best argument, and the two ends of the last interval."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    best, highest = a, np.full(len(a), -np.inf)

    def at(x: Any) -> Any:
        nonlocal best, highest
        value = function(x, *arrays)
        best, highest = np.where(value > highest, x, best), np.fmax(value, highest)
        return value

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
    return best, a, b


def _many_sections(
    function: Callable[..., Any], a: Any, b: Any, arrays: Sequence[Any], points: int
) -> tuple[Any, Any, Any]:
    """Like `_golden_sections`, with equal parts: the two around the highest of `points` are the next interval."""
    k, rounds = len(a), math.ceil(SECTIONS * math.log(0.618) / math.log(2.0 / (points - 1)))
    copies = [np.tile(array, (points,) + (1,) * (array.ndim - 1)) for array in arrays]
    part, own = np.linspace(0.0, 1.0, points, dtype=a.dtype)[:, None], np.arange(k)
    best, highest = a, np.full(k, -np.inf)
    for _ in range(rounds):
        x = np.minimum(a + part * (b - a), b)
        value = function(x.reshape(-1), *copies).reshape(points, k)
        value[np.isnan(value)] = -np.inf
        top = value.argmax(axis=0)
        best = np.where(value[top, own] > highest, x[top, own], best)
        highest = np.maximum(value[top, own], highest)
        a, b = x[np.maximum(top - 1, 0), own], x[np.minimum(top + 1, points - 1), own]
    return best, a, b


def dual_by_bisection(p: Any, z: Any, cost: Any, budget: Any) -> Any:
    """`(k,)` lower bounds on the minimum when mass p moves from j to value z_i at `cost[:, j, i]`; plain NumPy.

        g(lam) = -lam budget + sum_j p_j min_i (z_i + lam cost[j, i])

    is a lower bound for every lam >= 0 by weak duality. Bisection on its slope finds the best one in double
    precision; g itself is then summed in extended precision.

    Args:
      p: `(k, n)` the mass of each donor, in extended precision.
      z: `(k, m)` the value at each receiver, in extended precision.
      cost: `(k, n, m)`, zero where mass stays in place.
      budget: `(k,)` largest total cost.
    """
    mass, value = p.astype(np.float64), z.astype(np.float64)[:, None, :]
    least = np.where(cost > 0.0, cost, np.inf).min(axis=(1, 2))
    with np.errstate(over="ignore"):
        most = np.minimum(np.ptp(value, axis=(1, 2)) / least, np.finfo(np.float64).max)  # nothing moves beyond
    low, high = np.zeros(len(p), dtype=np.int64), most.view(np.int64)
    # bisects the doubles in between, not the distance: multipliers may have any size
    while (high - low).max() > 1:
        middle = low + (high - low) // 2
        with np.errstate(over="ignore"):
            chosen = (value + middle.view(np.float64)[:, None, None] * cost).argmin(axis=2)
        paid = np.take_along_axis(cost, chosen[:, :, None], axis=2)[:, :, 0]
        rises = mean(mass, paid) > budget
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)

    def bound(lam: Any) -> Any:
        lowest = (z[:, None, :] + lam[:, None, None] * cost).min(axis=2)
        return (p * lowest).sum(axis=1) - lam * budget

    multipliers = np.zeros(len(p)), most, low.view(np.float64), high.view(np.float64)
    return np.max([bound(lam.astype(np.longdouble)) for lam in multipliers], axis=0)


def in_units(p: Any, z: Any, low: Any) -> tuple[Any, Any, Any]:
    """Returns weights p / sum p, values y = (z - low) / span, and the span `(k,)` of each row, zero if y is zero."""
    y = z - low[:, None]
    span = y.max(axis=1)
    return p / p.sum(axis=1, keepdims=True), y / np.where(span > 0.0, span, 1.0)[:, None], span


def mean(weight: Any, y: Any) -> Any:
    """`(k,)` sum_j weight_j y_j of each row."""
    return np.einsum("kn,kn->k", weight, y)
