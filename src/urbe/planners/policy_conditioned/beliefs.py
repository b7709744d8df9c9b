"""The beliefs at which the problem is solved: the probability that the policy, not the reference, produced the past.

    odds_0 = 1,     odds_{t+1} = odds_t / reference(a | s)   if the policy's action was taken, 0 otherwise

and b = odds / (1 + odds). If the reference has few different probabilities, few odds are reachable; then all are listed
and nothing is approximated. Otherwise beliefs are spaced evenly over the reachable range, and values are interpolated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from urbe.types import FloatArray, IntArray

SAME = 1e-9
"""Odds with a smaller relative difference count as equal."""


class Beliefs(NamedTuple):
    """Beliefs of each step; belief 0 comes first in all of them.

    Attributes:
      odds: `(T + 1, G)` increasing within a step, padded with the last.
      counts: `(T + 1,)` number of beliefs.
      exact: whether all reachable beliefs are listed.
    """

    odds: FloatArray
    counts: IntArray
    exact: bool

    @property
    def share(self) -> FloatArray:
        """`(T + 1, G)` b."""
        return 1.0 - self.rest

    @property
    def rest(self) -> FloatArray:
        """`(T + 1, G)` 1 - b."""
        out: FloatArray = 1.0 / (1.0 + self.odds)
        return out


def reachable(reference: FloatArray, horizon: int, most: int) -> Beliefs:
    """Computes the beliefs that any policy may reach, at most `most` in each step.

    Args:
      reference: `(R,)` probabilities of the rows.
      horizon: T.
      most: maximum number of beliefs of a step; if there are more, evenly spaced ones replace them.
    """
    factors = 1.0 / _distinct(reference[reference > 0.0])
    never = bool((reference <= 0.0).any())
    layers, exact, now = [np.array([1.0])], True, np.array([1.0])
    low = high = 1.0
    for _ in range(horizon):
        low, high = low * factors.min(initial=np.inf), high * factors.max(initial=0.0)
        low, high = (low, np.inf) if never else (low, high)
        if exact:
            now = _distinct(np.concatenate([np.outer(now, factors).ravel(), [np.inf] if never else []]))
            exact = len(now) <= most
        layers.append(now if exact else _spread(min(low, 1e300), min(high, 1e300) if not never else np.inf, most))
    return listed(layers, exact)


def listed(layers: list[FloatArray], exact: bool) -> Beliefs:
    """Stacks the odds of each step in one array, after belief 0."""
    count = np.array([len(layer) + 1 for layer in layers])
    odds = np.zeros((len(layers), int(count.max())))
    for layer, row in zip(layers, odds, strict=True):
        row[1 : len(layer) + 1] = layer
        row[len(layer) + 1 :] = layer[-1]
    return Beliefs(odds, count, exact)


def _distinct(values: FloatArray) -> FloatArray:
    """Returns increasing values that differ by more than rounding."""
    ordered = np.unique(values)
    new = np.ones(len(ordered), dtype=bool)
    with np.errstate(invalid="ignore"):
        new[1:] = ordered[1:] > ordered[:-1] * (1.0 + SAME)
    out: FloatArray = ordered[new]
    return out


def distinct_indices(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Returns distinct values, increasing, and the index of each value among them."""
    found = _distinct(values)
    at: IntArray = np.searchsorted(found, values * (1.0 - SAME))
    return found, np.minimum(at, len(found) - 1)


def _spread(low: float, high: float, most: int) -> FloatArray:
    """Returns the odds of evenly spaced beliefs between two odds."""
    rest = np.linspace(1.0 / (1.0 + low), 1.0 / (1.0 + high), most)
    with np.errstate(divide="ignore"):
        odds = np.where(rest > 0.0, 1.0 / rest - 1.0, np.inf)
    odds[0], odds[-1] = low, high
    out: FloatArray = _distinct(odds)
    return out
