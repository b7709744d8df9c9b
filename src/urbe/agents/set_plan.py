"""Finite-horizon plans under a posterior with any ambiguity set, and their variance, for many replicates.

For h = H - 1, ..., 0, with T the set's Bellman operator around p = alpha / N, and V = W = 0 after the last step:

    Q_h, pi_h = T V_{h+1}
    u_h       = nu + gamma^2 sum_j q*_j W_{h+1}(s'_j),     q* nature's answer
    V_h(s)    = (T V_{h+1})(s),        W_h(s) = sum_a pi_h(a|s) u_h(s, a)

This is the general form of `urbe.agents.l1_plan`, which does the same for L1 balls in one compiled loop and skips rows
that have not changed. The arrays of compiled plans are grouped in tuples at the end of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from urbe.ambiguity.operator import AmbiguitySet, StepMoments, greedy
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray, IntArray

COUNT, DIRICHLET, CALIBRATED = 0, 1, 2

KEPT = ("q", "u", "v", "w", "share")


class LocalUncertainty(NamedTuple):
    """The local uncertainty nu of a row.

    Attributes:
      form: COUNT is scale^2 / N, DIRICHLET scale^2 (K - 1) / (N + 1) for K feasible successors, CALIBRATED
        scale^2 Var[p . m] with m the sensitivity of the worst case to its centre.
      scale: `(B,)`.
      reward: `(B, R)` variance of the reward, times scale^2 part of nu; None when rewards are known.
    """

    form: int
    scale: FloatArray
    reward: FloatArray | None = None


class Plan(Protocol):
    """Values, variances and policies of B replicates, kept from one plan to the next.

    Attributes:
      model: pairs, feasible successors, rewards and discount.
      q, u: `(B, H, R)` values of rows and their variances.
      v, w: `(B, H + 1, S)` the same of states.
      share: `(B, H, R)` the plan's policy: the probability of each row; None for the greedy one.
    """

    model: MDP
    q: FloatArray
    u: FloatArray
    v: FloatArray
    w: FloatArray

    @property
    def share(self) -> FloatArray | None: ...

    def update(
        self,
        which: IntArray,
        alpha: FloatArray,
        total: FloatArray,
        reward: FloatArray,
        nature: Any,
        touched: BoolArray | None = None,
        /,
        *,
        local: LocalUncertainty | None = None,
        bonus: FloatArray | None = None,
        cap: FloatArray | None = None,
    ) -> None:
        """Plans again for the replicates `which`.

        Args:
          which: `(K,)` replicates.
          alpha: `(B, L, E)` concentrations; L is 1, or H if each step has its own.
          total: `(B, L, R)` their sums.
          reward: `(B, R)` expected rewards; not used if the model's rewards depend on the successor.
          nature: the sets, in the form that the plan takes.
          touched: `(B, R)` rows whose posterior, reward, radius or bonus changed since their last plan; None for all.
          local: the local uncertainty; None leaves u at zero.
          bonus: `(B, R)` added to Q; the policy is then the greedy one.
          cap: `(H,)` upper limit of Q.
        """

    def state(self) -> dict[str, Any]:
        """Everything that the next plan needs."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the result of `state`."""


class SetPlan:
    """Values, variances and policies of B replicates.

    Args:
      model: pairs, feasible successors, rewards and discount.
      horizon: H, steps of an episode.
      replicates: B.

    Attributes:
      q, u: `(B, H, R)` values of rows and their variances.
      v, w: `(B, H + 1, S)` the same of states.
      share: `(B, H, R)` the plan's policy: the probability of each row.
    """

    def __init__(self, model: MDP, horizon: int, replicates: int) -> None:
        self.model = model
        self.q, self.u, self.share = (np.zeros((replicates, horizon, model.n_rows)) for _ in range(3))
        self.v, self.w = (np.zeros((replicates, horizon + 1, model.n_states)) for _ in range(2))

    def update(
        self,
        which: IntArray,
        alpha: FloatArray,
        total: FloatArray,
        reward: FloatArray,
        set_of: Callable[[int], AmbiguitySet],
        touched: BoolArray | None = None,
        /,
        *,
        local: LocalUncertainty | None = None,
        bonus: FloatArray | None = None,
        cap: FloatArray | None = None,
    ) -> None:
        """Plans again for the replicates `which`, all rows of them; see `Plan.update`.

        Args:
          set_of: a function from a replicate to the set around its centre.
        """
        horizon, layers, gamma = self.q.shape[1], alpha.shape[1], self.model.discount
        for b in which:
            nature, memory = set_of(int(b)), None
            for h in range(horizon - 1, -1, -1):
                layer = h if layers > 1 else 0
                if h == horizon - 1 or layers > 1:
                    centre = centred(self.model, alpha[b, layer], total[b, layer], reward[b])
                    operator, memory = nature.operator(centre), None
                found = operator.moments(self.v[b, h + 1], self.w[b, h + 1], None, memory)
                memory = found.memory
                q, value, policy = found.q, found.value, found.policy
                if bonus is not None or cap is not None:
                    q = q if bonus is None else q + bonus[b]
                    q = q if cap is None else np.minimum(q, cap[h])
                    value, policy = greedy(self.model, q)
                self.q[b, h], self.v[b, h], self.share[b, h] = q, value, policy.weights(self.model.n_rows)
                self.u[b, h] = 0.0 if local is None else _nu(local, b, found, alpha[b, layer], total[b, layer], centre)
                if local is not None:
                    self.u[b, h] += gamma**2 * found.carried
                self.w[b, h] = policy.average(self.model, self.u[b, h])

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name).copy() for name in KEPT}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in KEPT:
            setattr(self, name, np.array(state[name]))


def centred(model: MDP, alpha: FloatArray, total: FloatArray, reward: FloatArray) -> MDP:
    """Returns the model with the mean probabilities alpha / N, and expected rewards if rewards are those of pairs."""
    rows = model.rows
    probability = alpha / total[rows.entry_row]
    pays = rows.reward if rows.rewards_successors else reward
    return model.with_rows(Rows(rows.n_states, rows.entry_start, rows.successor, probability, pays))


def _nu(
    local: LocalUncertainty, b: int, found: StepMoments, alpha: FloatArray, total: FloatArray, centre: MDP
) -> FloatArray:
    """`(R,)` the local uncertainty of one step."""
    if local.form == COUNT:
        nu = 1.0 / total
    elif local.form == DIRICHLET:
        feasible = centre.rows.row_sums((alpha > 0.0).astype(np.float64))
        nu = (feasible - 1.0) / (total + 1.0)
    else:
        assert local.form == CALIBRATED
        nu = found.scatter / (total + 1.0)
    if local.reward is not None:
        nu = nu + local.reward[b]
    return np.asarray(local.scale[b] ** 2 * nu)


class PlanModel(NamedTuple):
    """The rows of a model, as in `MDP` and `Rows`, without the rewards of entries."""

    entry_start: IntArray
    successor: IntArray
    row_start: IntArray
    row_state: IntArray
    gamma: float
    longest: int


class PlanData(NamedTuple):
    """The posterior of the model.

    Attributes:
      alpha: `(B, L, E)` concentrations; L is 1, or H when each step has its own.
      total: `(B, L, R)` their sums.
      reward: `(B, R)` expected rewards; not read if the model's rewards depend on the successor.
      radius: `(B, R)`.
    """

    alpha: FloatArray
    total: FloatArray
    reward: FloatArray
    radius: FloatArray


class PlanValues(NamedTuple):
    """Values q and variances u of rows, `(B, H, R)`, and those of the greedy actions, v and w, `(B, H + 1, S)`."""

    q: FloatArray
    u: FloatArray
    v: FloatArray
    w: FloatArray


def plan_model(model: MDP) -> PlanModel:
    """The arrays of a model for compiled plans."""
    rows = model.rows
    return PlanModel(
        rows.entry_start, rows.successor, model.row_start, model.row_state, float(model.discount), rows.longest
    )


def local_arrays(local: LocalUncertainty | None, shape: tuple[int, ...]) -> tuple[int, FloatArray, FloatArray]:
    """Form, scale and variance of rewards for compiled plans: -1 and empty arrays if missing."""
    if local is None:
        return -1, np.zeros(shape[0]), np.zeros(shape)
    return local.form, local.scale, np.zeros(shape) if local.reward is None else local.reward
