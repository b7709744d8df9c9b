"""Lower bounds on the value of a policy that is fixed given the data: quantiles over posterior draws.

Let v be the true value of the policy and v_(1) <= .. <= v_(M) its values under M models drawn from the posterior that
were not used to choose the policy. If k is such that fewer than k of M draws fall below the delta-quantile of the
posterior with probability at most `SIMULATION`,

    P(Binomial(M, delta) < k) <= SIMULATION,

then v >= v_(k) with posterior probability at least 1 - delta, except with probability `SIMULATION` over the draws.
This needs neither a union bound over rows nor rectangularity: given enough draws, it is as tight as the posterior.

In all states simultaneously: with m and d the mean and standard deviation of the values of each state under some draws,
and t = max_s (m(s) - v(s)) / d(s) a number for each of the other draws, the same order statistic of t gives c with

    v(s) >= m(s) - c d(s)   for every state s at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from urbe import checks, memory
from urbe.planners.held_out import drawn_models
from urbe.planners.many_models import values_under_models
from urbe.posteriors.dirichlet import Posterior
from urbe.progress import Report, silent
from urbe.types import FloatArray, IntArray

SIMULATION = 0.01
"""Probability over the draws that the quantile is too high."""

DRAWS = 2000
"""Default number of draws."""

ROUNDING = 1e-12
"""Deviations below this share of the largest value count as rounding error."""


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Lower bounds on the true value of one policy, each with posterior probability at least 1 - delta.

    Attributes:
      at_start: for the value averaged over the first state.
      in_every_state: `(S,)` for the values of all states simultaneously.
      draws: number of models drawn from the posterior.
    """

    at_start: float
    in_every_state: FloatArray
    draws: int


def safe_rank(delta: float, draws: int) -> int:
    """The largest k with P(Binomial(M, delta) < k) <= SIMULATION; 0 if M is too small.

    >>> safe_rank(0.05, 2000), safe_rank(0.05, 50)
    (78, 0)
    """
    k = int(binom.ppf(SIMULATION, draws, delta))  # the smallest with P(X <= k) >= SIMULATION
    return k + 1 if binom.cdf(k, draws, delta) <= SIMULATION else k


def fewest_draws(delta: float) -> int:
    """The smallest M for which the lowest value is low enough: (1 - delta)^M <= SIMULATION."""
    return math.ceil(math.log(SIMULATION) / math.log1p(-delta))


def require_draws(delta: float, draws: int) -> int:
    """Returns the least number of draws for `guarantee`; raises if there are fewer."""
    needed = math.ceil(4 * fewest_draws(delta) / 3)
    if checks.whole_number("certify", draws, 0) < needed:
        raise ValueError(
            f"certify is {draws}, expected at least {needed} draws: with fewer, no quantile is low enough for a "
            f"failure probability of {delta:.4g}. Use more draws, or a lower confidence."
        )
    return needed


def guarantee(
    posterior: Posterior,
    policy: IntArray,
    start: FloatArray,
    delta: float,
    rng: np.random.Generator,
    draws: int,
    report: Report = silent,
) -> Guarantee:
    """Computes bounds on the value of a policy that was chosen without these draws.

    Args:
      posterior: of models, including rewards if they are uncertain.
      policy: `(S,)` action ids, -1 at terminal states.
      start: `(S,)` distribution of the first state.
      delta: probability with which each bound may fail.
      rng: generator not used for anything else.
      draws: number of models; a quarter of them only sets the scale of the states.
      report: receives the progress.

    Raises:
      ValueError: there are too few draws for `delta`; the message names the number needed.
    """
    needed, scaling = require_draws(delta, draws), draws // 4
    model = posterior.model
    memory.require(
        {f"values of {model.n_states} states under {draws} drawn models": 8.0 * draws * model.n_states},
        f"Use fewer draws to certify with: certify={needed} is the least at this confidence.",
    )
    drawn = drawn_models(posterior, rng, draws, report, "models for the guarantee")
    values = np.concatenate([values_under_models(model, policy, *models) for models in drawn])
    at_start = np.sort(values @ start)[safe_rank(delta, draws) - 1]
    mean, deviation = values[:scaling].mean(axis=0), values[:scaling].std(axis=0)
    deviation = np.maximum(deviation, ROUNDING * max(1.0, float(np.abs(mean).max(initial=0.0))))
    short = np.sort(((mean - values[scaling:]) / deviation).max(axis=1, initial=-np.inf))
    c = short[len(short) - safe_rank(delta, len(short))]
    return Guarantee(float(at_start), np.where(model.terminal, 0.0, mean - c * deviation), draws)
