"""Estimates from replicates, each with a confidence interval.

A replicate is one run with its own seed; replicates are independent. An interval of confidence c covers the true value
in a fraction c of all repetitions of the whole experiment: exactly for the mean of normal numbers, approximately for
the others, and better with more replicates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from urbe import checks
from urbe.types import FloatArray


class ConfidenceInterval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether the value lies outside.

        >>> ConfidenceInterval(1.0, 0.5, 1.5).excludes(0.0)
        True
        """
        return not self.low <= value <= self.high


class Band(NamedTuple):
    """A `ConfidenceInterval` at each point of a curve: arrays of one shape."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def mean_interval(samples: ArrayLike, *, confidence: float = 0.95) -> ConfidenceInterval:
    """The mean of independent replicates, and Student's interval for it.

        m -+ t s / sqrt(n),   s^2 = sum_i (x_i - m)^2 / (n - 1),   t the (1 + confidence) / 2 quantile, n - 1 degrees

    Args:
      samples: `(n,)` one number per replicate, n >= 2.
      confidence: in (0, 1).

    >>> print("%.3f %.3f %.3f" % mean_interval([1.0, 2.0, 4.0]))
    2.333 -1.461 6.128
    """
    band = mean_band(checks.float_array("samples", samples, ndim=1), confidence=confidence)
    return ConfidenceInterval(*map(float, band))


def mean_band(samples: ArrayLike, *, confidence: float = 0.95) -> Band:
    """`mean_interval` at every point of curves; intervals hold pointwise, not simultaneously.

    Args:
      samples: `(n, ...)` one curve per replicate, n >= 2.
      confidence: in (0, 1).

    Returns:
      arrays of shape `(...)`.
    """
    x = _samples("samples", samples)
    n = len(x)
    t = special.stdtrit(n - 1, 0.5 + 0.5 * checks.confidence(confidence))
    mean = x.mean(axis=0)
    half = t * x.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)


def paired_difference(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> ConfidenceInterval:
    """The mean of first - second over replicates that share their seed, and Student's interval for it.

    Common noise cancels, so the interval is narrower than those of the two means suggest.

    Args:
      first, second: `(n,)` replicate i of both ran under the same conditions.
      confidence: in (0, 1).

    >>> print("%.2f %.2f %.2f" % paired_difference([1.0, 5.0, 9.0], [0.9, 4.8, 8.9]))
    0.13 -0.01 0.28
    """
    a, b = _samples("first", first, ndim=1), _samples("second", second, ndim=1)
    if len(a) != len(b):
        raise ValueError(f"first has {len(a)} replicates and second has {len(b)}, expected pairs.")
    return mean_interval(a - b, confidence=confidence)


def frequency_interval(successes: int, trials: int, *, confidence: float = 0.95) -> ConfidenceInterval:
    """A relative frequency k / n, and Wilson's interval for the probability behind it.

        (k + z^2/2 -+ z sqrt(k (n - k) / n + z^2/4)) / (n + z^2),   z the normal (1 + confidence) / 2 quantile

    It lies within [0, 1] and has positive width even if nothing or everything succeeded.

    Args:
      successes: k.
      trials: n >= 1.
      confidence: in (0, 1).

    >>> print("%.3f %.3f %.3f" % frequency_interval(0, 20))
    0.000 0.000 0.161
    """
    n = checks.whole_number("trials", trials, 1)
    k = checks.whole_number("successes", successes, 0)
    if k > n:
        raise ValueError(f"successes is {k}, expected at most the {n} trials.")
    z = float(special.ndtri(0.5 + 0.5 * checks.confidence(confidence)))
    half = z * np.sqrt(k * (n - k) / n + 0.25 * z * z)
    low, rest = (float((count + 0.5 * z * z - half) / (n + z * z)) for count in (k, n - k))
    return ConfidenceInterval(k / n, low, 1.0 - rest)  # so that both 0 and 1 are attained exactly


def cvar(samples: ArrayLike, share: float) -> FloatArray:
    """Computes the mean of the lowest numbers: the conditional value at risk (CVaR) of the empirical distribution.

        max_c c - mean_i (c - x_i)^+ / share

    Of n numbers the lowest share * n count, the last one fractionally. A share of 1 gives the mean, one of 1 / n or
    less the minimum.

    Args:
      samples: `(n, ...)`, n >= 1.
      share: above 0 and at most 1.

    Returns:
      an array of shape `(...)`.

    >>> float(cvar([4.0, 1.0, 2.0, 3.0], 0.375))  # (1 + 2 / 2) / 1.5
    1.3333333333333333
    """
    x = checks.float_array("samples", samples)
    if x.ndim == 0 or not len(x):
        raise ValueError(f"samples has shape {x.shape}, expected at least one along the first axis.")
    count = len(x) * checks.number("share", checks.positive("share", share), 0.0, 1.0)
    weight = np.clip(count - np.arange(len(x)), 0.0, 1.0) / count
    lowest: FloatArray = np.tensordot(weight, np.sort(x, axis=0), axes=1)
    return lowest


def _samples(name: str, value: ArrayLike, ndim: int | None = None) -> FloatArray:
    x = checks.float_array(name, value, ndim)
    if x.ndim == 0 or len(x) < 2:
        raise ValueError(f"{name} has shape {x.shape}, expected at least 2 replicates along the first axis.")
    return x
