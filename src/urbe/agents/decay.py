"""Step sizes and exploration rates that decay with experience."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from urbe import checks
from urbe.types import FloatArray


@dataclass(frozen=True)
class PolynomialDecay:
    """The rate after n times: max(floor, first (1 + n / delay)^-power). Numbers may be given one per replicate.

    Args:
      first: the initial rate, in [0, 1].
      power: speed of the decay, at least 0; averages with such step sizes converge for (1/2, 1].
      delay: number of times before it decays noticeably, positive.
      floor: the least rate, in [0, 1].

    >>> PolynomialDecay(1.0, power=1.0).after(3)
    0.25
    """

    first: ArrayLike = 1.0
    power: ArrayLike = 0.0
    delay: ArrayLike = 1.0
    floor: ArrayLike = 0.0

    def after(self, times: float) -> float:
        """The rate after this number of times (of the first replicate)."""
        return float(rate_after(times, self.for_replicates("rate", max(np.size(x) for x in vars(self).values()))[0]))

    def for_replicates(self, name: str, replicates: int) -> FloatArray:
        """`(B, 4)` the numbers of each replicate for `rate_after`; `name` is the name of the rate in errors."""
        highest = {"first": 1.0, "power": np.inf, "delay": np.inf, "floor": 1.0}
        columns = [
            checks.per_replicate(f"{name}.{field}", getattr(self, field), replicates, 0.0, high, above=field == "delay")
            for field, high in highest.items()
        ]
        return np.column_stack(columns)


def as_decay(rate: ArrayLike | PolynomialDecay) -> PolynomialDecay:
    """Converts a plain number, or one per replicate, to a constant rate."""
    return rate if isinstance(rate, PolynomialDecay) else PolynomialDecay(rate)


@njit(cache=True, nogil=True)
def rate_after(times, decay):
    """Computes the rate; `decay` is one replicate's row of `for_replicates`."""
    return max(decay[3], decay[0] * (1.0 + times / decay[2]) ** -decay[1])
