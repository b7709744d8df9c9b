"""The robust Bellman operator of norm balls: the nominal operator minus a penalty.

    (T v)(s)    = max_pi  pi . Q - ||pi w||_q  over the actions of s,      Q, w as in `nature`
    (T_pi v)(s) =         pi . Q - ||pi w||_q

If no probability can become negative, T is monotone with T(v + c) = T v + gamma c, like any robust operator. Otherwise
it is a contraction in the maximum norm, with a modulus larger than the discount; its bounds then rely only on this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from urbe.ambiguity.closed_form.evidence import evidence
from urbe.ambiguity.closed_form.nature import NormNature
from urbe.ambiguity.closed_form.sharing import best_answers, largest_loss, natures_share
from urbe.ambiguity.operator import (
    ROUNDING,
    Improvement,
    LinearSystem,
    Memory,
    Operator,
    PolicyOperator,
    PolicyRows,
    StepEvidence,
    StepMoments,
    greedy,
    linear_system,
    midrange,
    underflow,
)
from urbe.ambiguity.rectangular import RectangularSet
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray
from urbe.workers import SERIAL, Workers

PER_ENTRY = 8.0 * ROUNDING
"""Rounding of a row, for each of its successors, relative to max |z|."""


@dataclass(frozen=True, eq=False)
class NormOperator:
    """T of a model and norm balls around its rows.

    Args:
      mdp: the model.
      nature: the balls.
      shared: whether the actions of a state share the balls.
      modulus: modulus of the contraction if kernels of the balls need not be distributions; None if they all are.
      relaxed: a set of distributions that contains them.
    """

    mdp: MDP
    nature: NormNature
    shared: bool
    modulus: float | None
    relaxed: RectangularSet

    @property
    def singleton(self) -> bool:
        return not (self.nature.alpha.any() or self.nature.beta.any())

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        """Computes T v; `q` is the value of every action by itself or, for a shared budget, under nature's answer."""
        middle = self._middle(v)
        q, w = self.nature.costs(v - middle, middle)
        if not self.shared:
            q -= w
            value, policy = greedy(self.mdp, q)
            return Improvement(value, q, policy, None)
        value, weights = np.zeros(self.mdp.n_states), np.zeros(len(q))
        best_answers(self.mdp.row_start, q, w, self.nature.norm, value, weights)
        return Improvement(value, q - self._saddle(q, w, value) * w, PolicyRows.of_weights(weights), None)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        return NormPolicy(self, policy), None

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's answer with its rewards; for a shared budget, rows that the policy does not take stay."""
        return self.nature.answer(v, self._share(v, policy))

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns the penalised values of all actions, without forming nature's rows."""
        middle = self._middle(v)
        q, w = self.nature.costs(v - middle, middle)
        return q - self._share(at, policy) * w, None

    def error(self, v: FloatArray) -> float:
        rows, gamma = self.nature.rows, self.mdp.discount
        middle = self._middle(v)
        spread = float(np.abs(v - middle).max(initial=0.0))
        size = rows.largest_reward + gamma * spread
        n = float(len(v) if self.nature.everywhere else rows.longest)
        largest_kappa = n ** (1.0 - 1.0 / self.nature.norm) * size  # all values at the largest distance from c
        lost = float((self.nature.alpha + self.nature.beta * largest_kappa).max(initial=0.0))
        whole = size + gamma * abs(middle) + lost
        actions = int(np.diff(self.mdp.row_start).max(initial=0))
        return 1.01 * (
            (PER_ENTRY * (n + 8.0) + 8.0 * actions * ROUNDING) * (size + lost)
            + gamma * abs(middle) * rows.mass_error
            + 6.0 * ROUNDING * whole
            + underflow(whole)
        )

    def moments(
        self,
        v: FloatArray,
        u: FloatArray,
        policy: PolicyRows | None = None,
        memory: Memory = None,
        q: FloatArray | None = None,
    ) -> StepMoments:
        """The penalty does not move with the centre: the sensitivity is z itself."""
        best = self.improve(v)
        following = best.policy if policy is None else policy
        rows = self.nature.rows
        z = rows.successor_values(self.mdp.discount * (v - self._middle(v)))
        deviation = z - rows.row_sums(rows.probability * z)[rows.entry_row]
        scatter = rows.row_sums(rows.probability * deviation**2)
        kernel = self.kernel(v, following)
        carried = kernel.row_sums(kernel.probability * u[kernel.successor])
        if policy is None:
            return StepMoments(best.value, best.q, following, scatter, carried, None)
        value, values = NormPolicy(self, policy).apply(v)[0], self.action_values(v, v, policy)[0]
        return StepMoments(value, values, policy, scatter, carried, None)

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        """By duality below and by nature's own answer above, while it is a distribution."""
        return evidence(self.mdp, self.nature, self.shared, self.modulus, kernel, optimal)

    def clock(self) -> Operator:
        """Returns the clock of the balls within the simplex, which contain all distributions of these balls."""
        return self.relaxed.operator(self.mdp).clock()

    def _middle(self, v: FloatArray) -> float:
        """Returns the centre of values; zero if nature may destroy mass, because a constant then matters."""
        return 0.0 if self.nature.free else midrange(v)

    def _share(self, v: FloatArray, policy: PolicyRows) -> FloatArray:
        """`(R,)` the share of its radii that nature uses on each row, in its answer to a policy."""
        if not self.shared:
            return np.ones(self.mdp.n_rows)
        middle = self._middle(v)
        q, w = self.nature.costs(v - middle, middle)
        facing = NormPolicy(self, policy)
        value, weights = np.zeros(self.mdp.n_states), np.zeros(len(q))
        best_answers(self.mdp.row_start, q, w, self.nature.norm, value, weights)
        best = value - facing.apply(v)[0] <= 4.0 * self.error(v)
        share = np.where(best[self.mdp.row_state], self._saddle(q, w, value), 0.0)
        left = ~best[self.mdp.row_state[policy.rows]]
        share[policy.rows[left]] = facing.share(v)[left]
        return share

    def _saddle(self, q: FloatArray, w: FloatArray, value: FloatArray) -> FloatArray:
        """`(R,)` the share of the budget that lowers every action to the value of its state."""
        above = np.maximum(q - value[self.mdp.row_state], 0.0)
        share = np.where(w > 0.0, above / np.where(w > 0.0, w, 1.0), 0.0)
        if self.nature.norm == 1.0:
            total = np.bincount(self.mdp.row_state, share, minlength=self.mdp.n_states)
        else:
            total = np.sqrt(np.bincount(self.mdp.row_state, share**2, minlength=self.mdp.n_states))
        return np.asarray(share / np.maximum(total, 1.0)[self.mdp.row_state])


class NormPolicy:
    """T_pi, on a policy's own rows."""

    def __init__(self, operator: NormOperator, policy: PolicyRows) -> None:
        self._operator = operator
        self._policy = policy
        self._nature = operator.nature.take(policy.rows)
        self._states = operator.mdp.row_state[policy.rows]
        self._first = np.searchsorted(self._states, np.arange(operator.mdp.n_states + 1))
        self._norm = operator.nature.norm if operator.shared else np.inf

    @property
    def entries(self) -> int:
        return self._nature.rows.n_entries

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        q, w = self._costs(v)
        out = np.zeros(len(self._first) - 1)
        _follow(self._first, self._policy.share, q, w, self._norm, out)
        return out, None

    def share(self, v: FloatArray) -> FloatArray:
        """Returns the share of its radii that nature uses on each row of the policy."""
        out = np.ones(len(self._policy.rows))
        if self._operator.shared:
            _shares(self._first, self._policy.share, self._costs(v)[1], self._norm, out)
        return out

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return self._nature.answer(v, self.share(v))

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        n_states = len(self._first) - 1
        if not self._nature.everywhere:
            return linear_system(n_states, self._states, self._policy, self.kernel(v))
        # rows over all states are never stored: the penalty is one number, and is held fixed instead of the kernel
        nominal = linear_system(n_states, self._states, self._policy, self._nature.rows)
        return nominal._replace(reward=self.apply(v)[0] - self._operator.mdp.discount * (nominal.matrix @ v))

    def _costs(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        middle = 0.0 if self._nature.free else midrange(v)
        return self._nature.costs(v - middle, middle)


@njit(cache=True, nogil=True)
def _follow(first, pi, q, w, norm, out):
    for s in range(len(out)):
        a, b = first[s], first[s + 1]
        for k in range(a, b):
            out[s] += pi[k] * q[k]
        out[s] -= largest_loss(pi[a:b], w[a:b], norm)


@njit(cache=True, nogil=True)
def _shares(first, pi, w, norm, out):
    for s in range(len(first) - 1):
        a, b = first[s], first[s + 1]
        natures_share(pi[a:b], w[a:b], norm, out[a:b])
