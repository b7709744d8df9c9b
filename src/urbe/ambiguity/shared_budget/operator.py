"""The robust Bellman operator of sets in which the actions of a state share nature's budget.

    (T v)(s)    = max_pi min_{q in U(s)} sum_a pi_a sum_s' q_a(s') [r(s, a, s') + gamma v(s')]
    (T_pi v)(s) =        min_{q in U(s)} sum_a pi_a sum_s' q_a(s') [r(s, a, s') + gamma v(s')]

Both are monotone and T(v + c) = T v + gamma c [Wiesemann2013]; optimal policies may have to randomise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from urbe.ambiguity import evidence as proofs
from urbe.ambiguity.entries import joined_rows
from urbe.ambiguity.operator import (
    ROUNDING,
    Improvement,
    LinearSystem,
    Memory,
    Operator,
    PolicyOperator,
    PolicyRows,
    StepBound,
    StepEvidence,
    StepMoments,
    linear_system,
    midrange,
    underflow,
)
from urbe.ambiguity.rectangular import RectangularSet
from urbe.ambiguity.row_nature import values_under
from urbe.ambiguity.shared_budget.nature import PolicyNature, StateNature
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray
from urbe.workers import SERIAL, Workers


@dataclass(frozen=True, eq=False)
class StateOperator:
    """T of a model and a set that is rectangular in s.

    Args:
      mdp: the model.
      nature: the budgets bound to the model.
      relaxed: a set rectangular in (s, a) that contains this one.
    """

    mdp: MDP
    nature: StateNature
    relaxed: RectangularSet

    modulus = None  # T is monotone

    @property
    def singleton(self) -> bool:
        return not self.nature.budget.any()

    def improve(
        self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL, out: FloatArray | None = None
    ) -> Improvement[FloatArray]:
        """Computes T v; `q` has the values of the actions under a kernel that is optimal for nature."""
        memory = self.nature.fresh() if memory is None else memory
        middle = midrange(v)
        value, q, weights, _ = self.nature.improve(v - middle, middle, workers, memory)
        return Improvement(value, q, PolicyRows.of_weights(weights), memory)

    def against(self, policy: PolicyRows, memory: Memory = None) -> tuple[PolicyOperator, Memory]:
        """Returns T_pi without memory: the levels of an improvement give no prices of a policy."""
        return StatePolicy(self.mdp, policy, self.nature.against(policy)), None

    def kernel(self, v: FloatArray, policy: PolicyRows) -> Rows:
        """Returns nature's answer; rows that the policy does not take stay nominal, unless the policy is optimal."""
        centred = v - midrange(v)
        facing = self.nature.against(policy)
        best = self.nature.improve(centred).value[facing.states]
        if (facing.values(centred) >= best - 4.0 * self.error(v)).all():
            return self.nature.saddle(centred)
        return _in_place(self.nature.rows, policy.rows, facing.answer(centred))

    def action_values(
        self, v: FloatArray, at: FloatArray, policy: PolicyRows, memory: Memory = None
    ) -> tuple[FloatArray, Memory]:
        """Returns the values of all actions under nature's answer to the policy."""
        return self._under(self.kernel(at, policy), v), None

    def error(self, v: FloatArray) -> float:
        """Bounds the error as for rectangular sets, but with rewards, which take part in the comparison of actions."""
        rows, gamma = self.nature.rows, self.mdp.discount
        middle = midrange(v)
        size = rows.largest_reward + gamma * 0.5 * (float(v.max()) - float(v.min()) if len(v) else 0.0)
        whole = size + gamma * abs(middle)
        actions = int(np.diff(self.mdp.row_start).max(initial=0))
        # missing mass of a row counts as mass at the lowest successor
        return 1.01 * (
            (self.nature.accuracy + 2.0 * actions * ROUNDING) * size
            + whole * (rows.mass_error + 6.0 * ROUNDING)
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
        """Nature does not change rows that the policy does not take."""
        middle, rows = midrange(v), self.nature.rows
        centred = v - middle
        best = self.improve(v, memory)  # computed for any policy: it is cheap
        following = best.policy if policy is None else policy
        answer, taken = self.nature.against(following).sensitivity(centred)
        full = _in_place(rows, following.rows, answer)
        m = self.mdp.discount * centred[rows.successor]
        if rows.entry_reward is not None:
            m = m + rows.entry_reward
        m[rows.entries_of(following.rows)] = taken
        deviation = m - rows.row_sums(rows.probability * m)[rows.entry_row]
        scatter = rows.row_sums(rows.probability * deviation**2)
        carried = full.row_sums(full.probability * u[full.successor])
        if policy is None:
            return StepMoments(best.value, best.q, following, scatter, carried, best.memory)
        q = self._under(full, v)
        return StepMoments(following.average(self.mdp, q), q, following, scatter, carried, best.memory)

    def evidence(self, kernel: Rows | None, optimal: bool) -> StepEvidence:
        """The kernel must hold every action to the level of its state; below, the budget's Lagrangian.

        For every price of the budget the duals of the single actions give a lower bound (`StateNature.policy_bound`).
        """
        mdp, rows = self.mdp, self.nature.rows
        below, above = proofs.unproven(mdp.n_rows, -1.0), proofs.unproven(mdp.n_rows, 1.0)
        excess, outside, actions = np.full(mdp.n_rows, -np.inf), np.zeros(mdp.n_rows, dtype=np.bool_), (below, above)
        if kernel is not None:
            radius = self.nature.budget[mdp.row_state]
            excess, outside = proofs.membership(rows, kernel, self.nature.excess(kernel)[mdp.row_state], radius)
            if not outside.any():
                above = proofs.under_kernel(rows, mdp.discount, kernel, np.maximum(excess, 0.0), radius)
                actions = proofs.around_kernel(rows, mdp.discount, kernel)
        found = proofs.over_rows(mdp, proofs.RowEvidence(above, below, excess, outside), optimal)
        return found._replace(below=self._lagrangian(), rows=actions)

    def clock(self) -> Operator:
        """Returns the clock of the rectangular set, which contains this one."""
        return self.relaxed.operator(self.mdp).clock()

    def _under(self, kernel: Rows, v: FloatArray) -> FloatArray:
        """`(R,)` the values of all actions under a kernel."""
        middle = midrange(v)
        return values_under(kernel, self.mdp.discount * (v - middle)) + self.mdp.discount * middle

    def _lagrangian(self) -> StepBound:
        """`StateNature.policy_bound`, widened by its rounding."""
        mdp, rows = self.mdp, self.nature.rows
        eps = proofs.mass_error(rows)
        eps += (rows.longest + mdp.n_actions + 16) * float(np.finfo(np.longdouble).eps)

        def bound(v: FloatArray, policy: PolicyRows) -> proofs.Extended:
            slack = eps * proofs.largest_value(rows, mdp.discount, v)
            lowest = self.nature.policy_bound(v, policy.weights(mdp.n_rows)) - slack
            return np.where(mdp.terminal, 0.0, lowest)

        return bound


class StatePolicy:
    """T_pi against nature with one budget per state."""

    def __init__(self, mdp: MDP, policy: PolicyRows, facing: PolicyNature) -> None:
        self._n_states = mdp.n_states
        self._policy = policy
        self._facing = facing

    @property
    def entries(self) -> int:
        return self._facing.rows.n_entries

    def apply(self, v: FloatArray, memory: Memory = None, workers: Workers = SERIAL) -> tuple[FloatArray, Memory]:
        memory = self._facing.fresh() if memory is None else memory
        middle = midrange(v)
        out = np.zeros(self._n_states)
        out[self._facing.states] = self._facing.values(v - middle, middle, workers, memory)
        return out, memory

    def kernel(self, v: FloatArray, memory: Memory = None) -> Rows:
        return self._facing.answer(v - midrange(v), memory)

    def linear_system(self, v: FloatArray, memory: Memory = None) -> LinearSystem:
        return linear_system(self._n_states, self._facing.row_states, self._policy, self.kernel(v, memory))


def _in_place(rows: Rows, chosen: IntArray, answer: Rows) -> Rows:
    """Replaces the rows `chosen` by `answer`, which may list other successors."""
    kept = np.setdiff1d(np.arange(rows.n_rows), chosen)
    return joined_rows(rows, [(chosen, answer), (kept, rows.take(kept))])
