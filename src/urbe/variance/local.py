"""Local uncertainty: the contribution of an uncertain row to the posterior variance of its value.

    u(k) = nu(k) + gamma^2 sum_s' q*(s') u(s'),        k = (s, a)

Each choice of nu is a value, such as `Calibrated()` or `Count(beta=0.5)`. `bind` prepares it for a problem, and the
result computes one step of the recursion. N is the sum of a row's Dirichlet concentrations and K the number of
its feasible successors. Forms that rest on posterior draws are in `local_draws`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from urbe import checks
from urbe.ambiguity.operator import AmbiguitySet, Operator, PolicyRows
from urbe.mdp.model import MDP
from urbe.posteriors.dirichlet import Posterior
from urbe.types import FloatArray


class Problem(NamedTuple):
    """The common data of all steps.

    Attributes:
      posterior: the posterior of the model.
      centre: its mean, the centre of the set.
      set: the ambiguity set.
      operator: T of the set around the centre.
      horizon: number of steps, None when infinite.
    """

    posterior: Posterior
    centre: MDP
    set: AmbiguitySet
    operator: Operator
    horizon: int | None

    @property
    def largest_value(self) -> float:
        """Qmax = H Rmax, or Rmax / (1 - gamma) without a horizon."""
        largest = self.centre.rows.largest_reward
        if self.horizon is not None:
            return self.horizon * largest
        if self.centre.discount == 1.0:
            raise ValueError(
                "Without a horizon and with discount 1 there is no bound on values, which this local uncertainty "
                "needs. Give horizon=, a discount below 1, or local=Calibrated()."
            )
        return largest / (1.0 - self.centre.discount)

    @property
    def reward_variance(self) -> FloatArray | float:
        """`(R,)` posterior variance of the reward; 0 when rewards are known."""
        rewards = self.posterior.rewards
        return 0.0 if rewards is None else rewards.variance()


class LocalStep(NamedTuple):
    """The data of one step for a local uncertainty.

    Attributes:
      scatter: `(R,)` sum_j p_j (m_j - p . m)^2 with m the sensitivity of the worst case to its centre p.
      v: `(S,)` values of the successors, under `policy`.
      policy: the policy from the next step on; None when nothing follows.
    """

    scatter: FloatArray
    v: FloatArray
    policy: PolicyRows | None


LocalTerm = Callable[[LocalStep], FloatArray]
"""`(R,)` nu of one step."""


class LocalForm(Protocol):
    """A way to choose nu."""

    def bind(self, problem: Problem) -> LocalTerm:
        """Prepares for a problem, once; steps are then computed from the last to the first."""


@dataclass(frozen=True)
class Calibrated:
    """nu = Var[p . m] = sum_j p_j (m_j - p . m)^2 / (N + 1), plus the variance of an uncertain reward.

    By the delta method, m the derivative of the row's worst case with respect to the centre of its set (with
    z = r + gamma V inside, so that the discount is already in m). Its unit is that of squared values: the square root
    of u is one posterior standard deviation, and nothing is left to tune. Zero on rows whose successor is known.
    """

    def bind(self, problem: Problem) -> LocalTerm:
        weight = 1.0 / (problem.posterior.total + 1.0)
        reward = problem.reward_variance
        return lambda step: weight * step.scatter + reward


@dataclass(frozen=True)
class Count:
    """nu = beta^2 / N, or beta^2 / max(n, n0) for n transitions seen: the tabular form of [Derman2019], Section 5.1.

    Args:
      beta: scale, at least 0, to be tuned.
      n0: positive: counts only the visits n, with this floor; None also counts the prior.
    """

    beta: float = 1.0
    n0: float | None = None

    def __post_init__(self) -> None:
        checks.number("beta", self.beta, 0.0, np.inf, closed=False)
        if self.n0 is not None and not checks.number("n0", self.n0, 0.0, np.inf, closed=False) > 0.0:
            raise ValueError("n0 is 0, expected a positive number: rows never visited would have infinite variance.")

    def bind(self, problem: Problem) -> LocalTerm:
        posterior = problem.posterior
        n = posterior.total if self.n0 is None else np.maximum(posterior.seen, self.n0)
        nu = self.beta**2 / n
        return lambda step: nu


@dataclass(frozen=True)
class DirichletForm:
    """nu = beta^2 (K - 1) / (N + 1) = beta^2 sum_j Var[p_j] / E[p_j]; zero on rows whose successor is known.

    Args:
      beta: scale, at least 0, to be tuned.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        checks.number("beta", self.beta, 0.0, np.inf, closed=False)

    def bind(self, problem: Problem) -> LocalTerm:
        nu = self.beta**2 * relative_variance(problem.posterior)
        return lambda step: nu


@dataclass(frozen=True)
class Bound:
    """nu = Qmax^2 (K - 1) / (N + 1): the local term of [Derman2019], Lemma 4.1, at the centre of the set.

    Qmax = H Rmax, or Rmax / (1 - gamma) without a horizon, with Rmax the largest |r| of the mean model. The variance
    of an uncertain reward is added [ODonoghue2018].

    Departure: the lemma takes mean and variance of the worst-case rows of posterior draws (`MonteCarlo` does), the
    paper's tabular form their bound K / n, which fails for worst-case rows (docs/theory/variance.md).
    """

    def bind(self, problem: Problem) -> LocalTerm:
        nu = problem.largest_value**2 * relative_variance(problem.posterior) + problem.reward_variance
        return lambda step: nu


def relative_variance(posterior: Posterior) -> FloatArray:
    """`(R,)` sum_j Var[p_j] / E[p_j] = (K - 1) / (N + 1).

    >>> import urbe
    >>> relative_variance(Posterior.before(urbe.library.riverswim(3), concentration=2.0)).round(3)
    array([0.   , 0.2  , 0.   , 0.286, 0.   , 0.2  ])
    """
    out: FloatArray = (posterior.feasible - 1.0) / (posterior.total + 1.0)
    return out
