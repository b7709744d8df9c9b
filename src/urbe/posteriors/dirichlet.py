"""The posterior of a finite model: independent Dirichlet rows on feasible successors.

    p(s, a) ~ Dirichlet(alpha(s, a)),    E p = alpha / N,    Var p_j = p_j (1 - p_j) / (N + 1),    N = sum_j alpha_j

A successor that a row does not list, or lists with alpha = 0, is impossible: nature cannot lead there, and no draw
does. Rewards are known, or have a normal-gamma posterior of their own (`NormalGamma`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from urbe import checks
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray

if TYPE_CHECKING:
    from urbe.posteriors.rewards import RewardPosterior

SMALL = 0.1
"""Concentrations below which gamma draws underflow; their logarithms are drawn instead."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """What is known of a model's transitions after some data.

    Args:
      model: pairs, feasible successors, rewards and discount. Its probabilities are not read.
      concentration: `(E,)` alpha of each entry, at least 0, positive somewhere in each row.
      prior: `(E,)` the part of it that was there before the data.
      rewards: posterior of r(s, a); None when the model's rewards are known.

    >>> import urbe
    >>> posterior = Posterior.before(urbe.library.riverswim(6), concentration=1.0)
    >>> posterior
    Posterior(12 rows, 22 feasible successors, 0 transitions seen)
    >>> posterior.mean().rows.probability[-2:]
    array([0.5, 0.5])
    """

    model: MDP
    concentration: FloatArray
    prior: FloatArray
    rewards: RewardPosterior | None = None

    @staticmethod
    def before(model: MDP, concentration: ArrayLike = 1.0, rewards: RewardPosterior | None = None) -> Posterior:
        """The prior: `concentration` (a number or `(E,)`) on every successor that `model` lists, zeros included."""
        alpha = checks.float_array("concentration", concentration)
        if alpha.ndim and alpha.shape != (model.rows.n_entries,):
            raise ValueError(
                f"concentration has shape {alpha.shape}, expected a number or one per successor "
                f"({model.rows.n_entries},) in the order of model.rows."
            )
        checks.non_negative("concentration", alpha)
        alpha = np.ascontiguousarray(np.broadcast_to(alpha, (model.rows.n_entries,)))
        empty = model.rows.row_sums(alpha) <= 0.0
        if empty.any():
            raise ValueError(
                f"concentration is 0 on every successor of {model.row_name(int(np.argmax(empty)))}, expected a "
                "positive number on at least one: give the row a prior."
            )
        return Posterior(model, alpha, alpha, rewards)

    @cached_property
    def total(self) -> FloatArray:
        """`(R,)` N, the sum of each row's concentrations."""
        return self.model.rows.row_sums(self.concentration)

    @cached_property
    def seen(self) -> FloatArray:
        """`(R,)` transitions seen from each row (what is left of them after forgetting)."""
        return self.model.rows.row_sums(self.concentration - self.prior)

    @cached_property
    def feasible(self) -> FloatArray:
        """`(R,)` K, the number of successors of positive concentration."""
        return self.model.rows.row_sums((self.concentration > 0.0).astype(np.float64))

    @cached_property
    def probability(self) -> FloatArray:
        """`(E,)` the posterior mean alpha / N."""
        mean: FloatArray = self.concentration / self.total[self.model.rows.entry_row]
        return mean

    def variance(self) -> FloatArray:
        """`(E,)` p (1 - p) / (N + 1)."""
        p = self.probability
        out: FloatArray = p * (1.0 - p) / (self.total[self.model.rows.entry_row] + 1.0)
        return out

    def mean(self) -> MDP:
        """The model of mean probabilities (and mean rewards)."""
        return self.model_with(self.probability, None if self.rewards is None else self.rewards.mean)

    def draws(self, rng: np.random.Generator, size: int) -> FloatArray:
        """`(size, E)` probabilities of all rows, drawn `size` times."""
        rows = self.model.rows
        if not rows.n_rows:
            return np.zeros((size, 0))
        small = self.concentration < SMALL
        gamma = rng.standard_gamma(
            np.where(small, self.concentration + 1.0, self.concentration), (size, rows.n_entries)
        )
        first = rows.entry_start[:-1]
        if small.any():  # G(a) = G(a + 1) U^(1/a), in logarithms and relative to the largest of the row
            with np.errstate(divide="ignore"):
                log = np.log(gamma)
                log[:, small] += np.log(rng.random((size, int(small.sum())))) / self.concentration[small]
            largest = np.maximum.reduceat(log, first, axis=1)
            gamma = np.exp(log - largest[:, rows.entry_row])
        gamma /= np.add.reduceat(gamma, first, axis=1)[:, rows.entry_row]
        return gamma

    def sample(self, rng: np.random.Generator) -> MDP:
        """A model drawn from the posterior (rewards too, where they are uncertain)."""
        reward = None if self.rewards is None else self.rewards.sample(rng)
        return self.model_with(self.draws(rng, 1)[0], reward)

    def model_with(self, probability: FloatArray, reward: FloatArray | None = None) -> MDP:
        """The model with other probabilities, `(E,)`, and other rewards when given, `(R,)`."""
        rows = self.model.rows
        kept = rows.reward if reward is None else reward
        return self.model.with_rows(Rows(rows.n_states, rows.entry_start, rows.successor, probability, kept))

    def with_counts(self, counts: FloatArray) -> Posterior:
        """The posterior after `counts`, `(E,)`, more transitions."""
        return replace(self, concentration=self.concentration + counts)

    def __repr__(self) -> str:
        rows = self.model.rows
        seen = f"{float(self.seen.sum()):.6g}"
        return f"Posterior({rows.n_rows} rows, {rows.n_entries} feasible successors, {seen} transitions seen)"
