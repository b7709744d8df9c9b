"""Uncertain rewards: a normal-gamma posterior of the mean reward of each pair.

    precision(s, a) ~ Gamma(shape, rate),    r(s, a) | precision ~ Normal(mean, 1 / (weight precision))

and what is observed is Normal(r(s, a), 1 / precision). After n observations of mean x and sum of squared deviations d:

    weight' = weight + n                       mean' = (weight mean + n x) / weight'
    shape'  = shape + n / 2                    rate' = rate + d / 2 + n weight (x - mean)^2 / (2 weight')
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe import checks
from urbe.types import FloatArray


@dataclass(frozen=True)
class NormalGamma:
    """The prior of every pair's mean reward.

    Args:
      mean: what is expected without data.
      weight: how many observations that expectation is worth, positive.
      shape: of the precision's gamma distribution, above 1 (else the mean has no variance).
      rate: of the same; `rate / (shape - 1)` is the expected variance of one observation.

    >>> NormalGamma(mean=0.0, weight=1.0).after(np.array([3.0]), np.array([1.0]), np.array([0.0])).mean
    array([0.75])
    """

    mean: float = 0.0
    weight: float = 1.0
    shape: float = 2.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name in ("mean", "weight", "shape", "rate"):
            checks.float_array(name, getattr(self, name), ndim=0)
        for name in ("weight", "rate"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a positive number.")
        if not self.shape > 1.0:
            raise ValueError(f"shape is {self.shape}, expected more than 1: else the mean reward has no variance.")

    def before(self, n_rows: int) -> RewardPosterior:
        """The prior of `n_rows` pairs."""
        return RewardPosterior(*(np.full(n_rows, x) for x in (self.mean, self.weight, self.shape, self.rate)))

    def after(self, n: FloatArray, mean: FloatArray, squares: FloatArray) -> RewardPosterior:
        """The posterior after `n` rewards per row, of this `mean` and sum of squared deviations from it, `(R,)`."""
        return self.before(len(n)).after(n, mean, squares)


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """Normal-gamma posteriors, one per row; all `(R,)` (see the module)."""

    mean: FloatArray
    weight: FloatArray
    shape: FloatArray
    rate: FloatArray

    def after(self, n: FloatArray, mean: FloatArray, squares: FloatArray) -> RewardPosterior:
        """The posterior after `n` more rewards per row, of this `mean` and sum of squared deviations, `(R,)`.

        `mean` is not read where `n` is 0; `n` need not be whole (old rewards may count less).
        """
        weight = self.weight + n
        gap = np.where(n > 0.0, mean - self.mean, 0.0)
        return RewardPosterior(
            mean=self.mean + n * gap / weight,
            weight=weight,
            shape=self.shape + 0.5 * n,
            rate=self.rate + 0.5 * squares + 0.5 * n * self.weight * gap**2 / weight,
        )

    def variance(self) -> FloatArray:
        """`(R,)` of the mean reward: rate / (weight (shape - 1))."""
        out: FloatArray = self.rate / (self.weight * (self.shape - 1.0))
        return out

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """`(R,)` mean rewards drawn from the posterior."""
        precision = rng.standard_gamma(self.shape) / self.rate
        out: FloatArray = self.mean + rng.standard_normal(len(self.mean)) / np.sqrt(self.weight * precision)
        return out
