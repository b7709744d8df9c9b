"""Values of policies on models drawn from the posterior that were not used for planning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from urbe import checks
from urbe.planners.many_models import values_under_models
from urbe.posteriors.dirichlet import Posterior
from urbe.progress import Report, silent
from urbe.types import FloatArray, IntArray

MOST_NUMBERS = 4_000_000
"""Probabilities drawn at a time; fixed, since the draws depend on it."""

ROUNDING = 1e-9
"""A shortfall below this share of the largest value counts as none."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The values of one policy under M fresh models.

    Attributes:
      values: `(M,)` from the start.
      below: share of the draws in which the value of some state is below its guarantee; NaN without draws.
    """

    values: FloatArray
    below: float

    @property
    def mean(self) -> float:
        """Mean over the draws, NaN without any."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    def percentile(self, share: float) -> float:
        """The lower quantile of the values at `share` in (0, 1), NaN without draws.

        The k-th lowest of M values with k = share (M + 1) rounded down, so that a new draw is below it with probability
        at most `share`; the lowest value if M is too small for that.
        """
        checks.number("share", share, 0.0, 1.0)
        if not len(self.values):
            return float("nan")
        at = min(max(int(share * (len(self.values) + 1) + 1e-9), 1), len(self.values))
        return float(np.sort(self.values)[at - 1])

    def __repr__(self) -> str:
        return f"HeldOut({len(self.values)} draws, mean {self.mean:.6g}, 5% quantile {self.percentile(0.05):.6g})"


def hold_out(
    posterior: Posterior,
    policies: Sequence[IntArray],
    promised: Sequence[FloatArray],
    start: FloatArray,
    rng: np.random.Generator,
    draws: int,
    report: Report = silent,
) -> list[HeldOut]:
    """Values of each policy under the same `draws` models.

    Args:
      posterior: of models, including rewards if they are uncertain.
      policies: `(S,)` action ids each, -1 at terminal states.
      promised: `(S,)` each, compared with the values drawn.
      start: `(S,)` distribution of the first state.
      rng: generator not used for anything else.
      draws: number of models.
      report: receives the progress.
    """
    model = posterior.model
    values: list[list[FloatArray]] = [[] for _ in policies]
    below = [0] * len(policies)
    for models in drawn_models(posterior, rng, draws, report, "held-out models"):
        for k, policy in enumerate(policies):
            v = values_under_models(model, policy, *models)
            values[k].append(v @ start)
            short = v < promised[k] - ROUNDING * np.abs(v).max(initial=0.0)
            below[k] += int(np.count_nonzero(short.any(axis=1)))
    return [
        HeldOut(np.concatenate([np.empty(0), *each]), count / draws if draws else float("nan"))
        for each, count in zip(values, below, strict=True)
    ]


class ModelDraws(NamedTuple):
    """Models drawn from a posterior.

    Attributes:
      probability: `(M, E)` of the entries of the model's rows.
      reward: `(M, R)` of its rows; None if rewards are known.
    """

    probability: FloatArray
    reward: FloatArray | None


def drawn_models(
    posterior: Posterior, rng: np.random.Generator, draws: int, report: Report = silent, stage: str = "models"
) -> Iterator[ModelDraws]:
    """Draws models in blocks that need little memory each, and reports each block before it is drawn."""
    size = max(MOST_NUMBERS // max(posterior.model.rows.n_entries, 1), 1)
    for first in range(0, draws, size):
        report(stage, first, draws)
        n = min(size, draws - first)
        probability = posterior.draws(rng, n)
        reward = None if posterior.rewards is None else np.stack([posterior.rewards.sample(rng) for _ in range(n)])
        yield ModelDraws(probability, reward)
