"""Bayesian Q-learning [Dearden1998]: how beliefs about returns are updated, and how actions are chosen by them.

The return of a pair is Normal(mu, 1 / tau), with a normal-gamma belief about mu and tau, which implies

    mu   Student-t, 2 shape degrees of freedom, centre mean, scale sqrt(rate / (weight shape))
    R    the return itself: the same with scale sqrt((weight + 1) rate / (weight shape)),
         E R = mean,   Var R = (weight + 1) / weight * rate / (shape - 1)

A step does not give a return, but a reward r and a belief about the return R' from the next state on: the belief must
be updated by r + gamma R' with unknown R'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from urbe import checks
from urbe.posteriors.rewards import RewardPosterior
from urbe.types import BoolArray, FloatArray

LEAST_SHAPE = 1.001
"""The least shape after a projection; at 1 or below, the return would have no variance."""


class Update(Protocol):
    """A rule that updates a belief by a step."""

    def __call__(
        self, pair: RewardPosterior, reward: FloatArray, gamma: FloatArray, ahead: RewardPosterior
    ) -> RewardPosterior:
        """Updates the beliefs `pair` by r + gamma R'; all arrays are `(K,)`, and gamma is 0 at terminal states."""


class ActionChoice(Protocol):
    """A rule that scores actions."""

    def __call__(self, belief: RewardPosterior, listed: BoolArray, uniform: FloatArray) -> FloatArray:
        """`(K, A)` scores of the actions `listed`, from their beliefs and from uniform numbers, all `(K, A)`."""


@dataclass(frozen=True)
class Moments:
    """Updates by one observation with the first two moments of r + gamma R'.

    M1 = r + gamma E R',   M2 - M1^2 = gamma^2 Var R': beliefs get narrower for any uncertainty about R'.
    """

    def __call__(
        self, pair: RewardPosterior, reward: FloatArray, gamma: FloatArray, ahead: RewardPosterior
    ) -> RewardPosterior:
        variance = (ahead.weight + 1.0) / ahead.weight * ahead.rate / (ahead.shape - 1.0)
        return pair.after(np.ones_like(reward), reward + gamma * ahead.mean, gamma**2 * variance)


@dataclass(frozen=True)
class Mixture:
    """Updates by the mixture of the exact updates over the values of R', projected on the normal-gamma family.

    The projection is the closest in Kullback-Leibler divergence: it keeps E tau, E tau mu, E tau mu^2 and E log tau.

    Args:
      nodes: number of values of R': the medians of as many intervals of equal probability.
    """

    nodes: int = 32

    def __post_init__(self) -> None:
        checks.whole_number("nodes", self.nodes, 1)

    def __call__(
        self, pair: RewardPosterior, reward: FloatArray, gamma: FloatArray, ahead: RewardPosterior
    ) -> RewardPosterior:
        middle = (np.arange(self.nodes) + 0.5) / self.nodes
        scale = np.sqrt((ahead.weight + 1.0) * ahead.rate / (ahead.weight * ahead.shape))
        returns = ahead.mean[:, None] + scale[:, None] * special.stdtrit(2.0 * ahead.shape[:, None], middle)
        one = np.ones((len(reward), 1))
        each = RewardPosterior(*(x[:, None] for x in (pair.mean, pair.weight, pair.shape, pair.rate))).after(
            one, reward[:, None] + gamma[:, None] * returns, 0.0 * one
        )
        return closest(each)


def closest(each: RewardPosterior) -> RewardPosterior:
    """`(K,)` the normal-gamma distribution closest to the mean of several, `(K, nodes)`, or `(K, 1)` if they agree."""
    tau = each.shape / each.rate
    mean_tau = tau.mean(axis=1)
    mean = (tau * each.mean).mean(axis=1) / mean_tau
    spread = (1.0 / each.weight + tau * (each.mean - mean[:, None]) ** 2).mean(axis=1)
    mean_log = (special.psi(each.shape) - np.log(each.rate)).mean(axis=1)
    shape = np.maximum(shape_of(np.log(mean_tau) - mean_log), LEAST_SHAPE)
    return RewardPosterior(mean=mean, weight=1.0 / spread, shape=shape, rate=shape / mean_tau)


def shape_of(gap: FloatArray) -> FloatArray:
    """Solves log y - digamma(y) = gap > 0 by Newton's method on 1 / y: five steps suffice from a start within 2 %."""
    y = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(5):
        off = np.log(y) - special.psi(y) - gap
        y = 1.0 / (1.0 / y + off / (y**2 * (1.0 / y - special.zeta(2.0, y))))
    return y


@dataclass(frozen=True)
class QSampling:
    """Takes an action with the probability that it is the best: draws mu of each, and takes the largest."""

    def __call__(self, belief: RewardPosterior, listed: BoolArray, uniform: FloatArray) -> FloatArray:
        drawn: FloatArray = belief.mean + _scale(belief) * special.stdtrit(2.0 * belief.shape, uniform)
        return drawn


@dataclass(frozen=True)
class ValueOfInformation:
    """Takes the action with the largest E mu + VPI, the myopic value of perfect information.

    VPI(a) is the value of learning mu_a: for the best action E (mean_2 - mu_1)_+, since it may be worse than the second
    best; for any other E (mu_a - mean_1)_+.
    """

    def __call__(self, belief: RewardPosterior, listed: BoolArray, uniform: FloatArray) -> FloatArray:
        scores: FloatArray = belief.mean + value_of_information(belief, listed)
        return scores


def value_of_information(belief: RewardPosterior, listed: BoolArray) -> FloatArray:
    """`(K, A)` VPI of the actions `listed`, at least 0; 0 if there is no other action."""
    mean = np.where(listed, belief.mean, -np.inf)
    each = np.arange(len(mean))
    best = mean.argmax(axis=1)
    first = mean[each, best]
    others = mean.copy()
    others[each, best] = -np.inf
    gap = np.where(listed, first[:, None] - belief.mean, np.inf)
    gap[each, best] = first - others.max(axis=1)
    scale = _scale(belief)
    gain: FloatArray = np.where(np.isfinite(gap), scale * expected_excess(2.0 * belief.shape, gap / scale), 0.0)
    return gain


def expected_excess(freedom: FloatArray, z: FloatArray) -> FloatArray:
    """E (T - z)_+ = (n + z^2) / (n - 1) f(z) - z (1 - F(z)) for T Student-t with n = `freedom` > 1 and z >= 0."""
    z = np.where(np.isfinite(z), z, 0.0)
    norm = special.gammaln(0.5 * (freedom + 1.0)) - special.gammaln(0.5 * freedom) - 0.5 * np.log(np.pi * freedom)
    density = np.exp(norm - 0.5 * (freedom + 1.0) * np.log1p(z**2 / freedom))
    excess = (freedom + z**2) / (freedom - 1.0) * density - z * special.stdtr(freedom, -z)
    out: FloatArray = np.maximum(excess, 0.0)
    return out


def _scale(belief: RewardPosterior) -> FloatArray:
    out: FloatArray = np.sqrt(belief.rate / (belief.weight * belief.shape))
    return out
