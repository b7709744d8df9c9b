"""Rewards as an online agent knows them, for many replicates at once: known, or normal-gamma posteriors.

The world's dynamics may change, its rewards do not: nothing is forgotten here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from urbe.posteriors.beliefs import Visit
from urbe.posteriors.dirichlet import Posterior
from urbe.types import FloatArray, IntArray


class RewardBelief:
    """Mean rewards of B replicates and how uncertain they are.

    Args:
      prior: known rewards, or their prior (`Posterior.rewards`).
      replicates: B.

    Attributes:
      mean: `(B, R)` expected rewards; zero where the model's rewards depend on the successor (those are known).
      variance: `(B, R)` of the mean reward; None when rewards are known.
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
        """Takes in one reward of each replicate of a visit."""
        if self.known:
            return
        at = (visit.replicate, visit.row)
        gap, weight = reward - self.mean[at], self._weight[at]
        self._rate[at] += 0.5 * weight * gap**2 / (weight + 1.0)
        self.mean[at] += gap / (weight + 1.0)
        self._weight[at] += 1.0
        self._shape[at] += 0.5

    def draw(self, generators: list[np.random.Generator], which: IntArray) -> FloatArray:
        """`(B, R)` mean rewards, those of the replicates `which` drawn anew from their posteriors."""
        if self.known:
            return self.mean
        out = self.mean.copy()
        for b in which:
            precision = generators[b].standard_gamma(self._shape[b]) / self._rate[b]
            out[b] += generators[b].standard_normal(out.shape[1]) / np.sqrt(self._weight[b] * precision)
        return out

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""
        names = ("mean", "_weight", "_shape", "_rate")
        return {name.lstrip("_"): getattr(self, name).copy() for name in names}

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""
        for name in ("mean", "_weight", "_shape", "_rate"):
            setattr(self, name, np.array(state[name.lstrip("_")]))
