"""Uncertain rewards: a normal-gamma posterior of the mean reward of each pair.

    precision(s, a) ~ Gamma(shape, rate),    r(s, a) | precision ~ Normal(mean, 1 / (weight precision))

and observations are Normal(r(s, a), 1 / precision). After n observations of mean x and sum of squared deviations d:

    weight' = weight + n                       mean' = (weight mean + n x) / weight'
    shape'  = shape + n / 2                    rate' = rate + d / 2 + n weight (x - mean)^2 / (2 weight')

`RewardBelief` updates the posterior reward by reward, for many replicates. Rewards are constant: none is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.types import FloatArray, IntArray

if TYPE_CHECKING:
    from urbe.posteriors.beliefs import Visit
    from urbe.posteriors.dirichlet import Posterior


@dataclass(frozen=True)
class NormalGamma:
    """The prior of every pair's mean reward.

    Args:
      mean: prior mean.
      weight: weight of the prior mean in observations, positive.
      shape: shape of the precision's gamma distribution, above 1 (else the mean has no variance).
      rate: its rate; `rate / (shape - 1)` is the expected variance of one observation.

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

    @staticmethod
    def around(rewards: ArrayLike) -> NormalGamma:
        """Makes a weak prior from the mean and variance of some rewards, worth one observation.

        The prior uses the data themselves; with many rewards of each pair this does not matter.

        >>> NormalGamma.around([9.0, 11.0])
        NormalGamma(mean=10.0, weight=1.0, shape=2.0, rate=1.0)
        """
        seen = checks.float_array("rewards", rewards, ndim=1)
        if not len(seen):
            raise ValueError("rewards is empty, expected at least one.")
        variance = float(seen.var())
        return NormalGamma(mean=float(seen.mean()), rate=variance if variance > 0.0 else 1.0)

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
        """`(R,)` variance of the mean reward: rate / (weight (shape - 1))."""
        out: FloatArray = self.rate / (self.weight * (self.shape - 1.0))
        return out

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """`(R,)` mean rewards drawn from the posterior."""
        precision = rng.standard_gamma(self.shape) / self.rate
        out: FloatArray = self.mean + rng.standard_normal(len(self.mean)) / np.sqrt(self.weight * precision)
        return out


class RewardBelief:
    """Mean rewards of B replicates, with their variances.

    Args:
      prior: known rewards, or their prior (`Posterior.rewards`).
      replicates: B.

    Attributes:
      mean: `(B, R)` expected rewards; zero if the model's rewards depend on the successor (those are known).
      variance: `(B, R)` variance of the mean reward; None if rewards are known.
    """

    def __init__(self, prior: Posterior, replicates: int) -> None:
        uncertain = prior.rewards
        self.known = uncertain is None
        self.mean = np.tile(prior.model.rows.row_reward if uncertain is None else uncertain.mean, (replicates, 1))
        self._weight, self._shape, self._rate = (
            np.zeros((3, 0, 0))
            if uncertain is None
            else (np.tile(x, (replicates, 1)) for x in (uncertain.weight, uncertain.shape, uncertain.rate))
        )

    @property
    def variance(self) -> FloatArray | None:
        if self.known:
            return None
        out: FloatArray = self._rate / (self._weight * (self._shape - 1.0))
        return out

    def observe(self, visit: Visit, reward: FloatArray) -> None:
        """Updates by one reward of each replicate of a visit."""
        if self.known:
            return
        at = (visit.replicate, visit.row)
        gap, weight = reward - self.mean[at], self._weight[at]
        self._rate[at] += 0.5 * weight * gap**2 / (weight + 1.0)
        self.mean[at] += gap / (weight + 1.0)
        self._weight[at] += 1.0
        self._shape[at] += 0.5

    def draw(self, generators: list[np.random.Generator], which: IntArray) -> FloatArray:
        """`(B, R)` mean rewards; those of the replicates `which` are drawn from their posteriors."""
        if self.known:
            return self.mean
        out = self.mean.copy()
        for b in which:
            precision = generators[b].standard_gamma(self._shape[b]) / self._rate[b]
            out[b] += generators[b].standard_normal(out.shape[1]) / np.sqrt(self._weight[b] * precision)
        return out

    def state(self) -> dict[str, Any]:
        """Everything needed to resume."""
        names = ("mean", "_weight", "_shape", "_rate")
        return {name.lstrip("_"): getattr(self, name).copy() for name in names}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""
        for name in ("mean", "_weight", "_shape", "_rate"):
            setattr(self, name, np.array(state[name.lstrip("_")]))
