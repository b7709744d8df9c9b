"""Finite-horizon plans under a posterior with L1 balls, and their variance, for many replicates at once; compiled.

For h = H - 1, ..., 0, with p = alpha / N, and V = W = 0 after the last step and in terminal states:

    z_j    = r_j + gamma V_{h+1}(s'_j)
    Q_h    = min_{||x - p||_1 <= psi} x . z + bonus,      at most cap_h
    u_h    = nu + gamma^2 sum_j x*_j W_{h+1}(s'_j),       x* the minimiser
    V_h(s) = max_a Q_h(s, a),       W_h(s) = u_h(s, a*),  a* the first maximiser

One kernel serves all planning agents: psi = 0 is ordinary dynamic programming, a drawn kernel in place of alpha is
posterior sampling, a bonus or the best case in place of the worst is optimism. Only rows that may have changed are
computed again: those whose posterior changed, and those with a successor whose V or W changed. The result equals a full
plan, bit for bit, and does not depend on the other replicates in the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from urbe.agents.l1_rows import L1Answers, L1Rows, dense_sweep, sort_down, sparse_sweep, strict_function
from urbe.agents.set_plan import (
    CALIBRATED,
    COUNT,
    DIRICHLET,
    LocalUncertainty,
    PlanData,
    PlanValues,
    local_arrays,
    plan_model,
)
from urbe.ambiguity.sweep import named_after
from urbe.mdp.model import MDP
from urbe.types import BoolArray, FloatArray, IntArray

MANY = 0.25
"""If at least this share of states changed, all rows are computed again."""


class Again(NamedTuple):
    """The data that decide which rows are computed again.

    Attributes:
      made: `(B,)` replicates that have a plan.
      touched: `(B, R)` rows whose data changed.
      leading_start, leading_row: `leading_row[leading_start[s] : leading_start[s + 1]]` are the rows that list state s.
    """

    made: BoolArray
    touched: BoolArray
    leading_start: IntArray
    leading_row: IntArray


class Extra(NamedTuple):
    """What is added to Q, `(B, R)`, and the most it can be, `(H,)`; sign -1 takes the best case."""

    bonus: FloatArray
    cap: FloatArray
    sign: float


class L1Plan:
    """Values and variances of B replicates, kept from one plan to the next.

    Args:
      model: pairs, feasible successors, rewards and discount.
      horizon: H, steps of an episode.
      replicates: B.
      optimistic: whether Q is the maximum over the ball.

    Attributes:
      q, u: `(B, H, R)` values of rows and their variances.
      v, w: `(B, H + 1, S)` those of the greedy actions.
    """

    share = None  # against L1 balls some deterministic policy is optimal

    def __init__(self, model: MDP, horizon: int, replicates: int, *, optimistic: bool = False) -> None:
        self.model, self._sign = model, -1.0 if optimistic else 1.0
        self.q = np.zeros((replicates, horizon, model.n_rows))
        self.u = np.zeros((replicates, horizon, model.n_rows))
        self.v = np.zeros((replicates, horizon + 1, model.n_states))
        self.w = np.zeros((replicates, horizon + 1, model.n_states))
        self.made = np.zeros(replicates, dtype=np.bool_)
        self._leading = _rows_leading_to(model)

    def update(
        self,
        which: IntArray,
        alpha: FloatArray,
        total: FloatArray,
        reward: FloatArray,
        radius: FloatArray,
        touched: BoolArray | None = None,
        /,
        *,
        local: LocalUncertainty | None = None,
        bonus: FloatArray | None = None,
        cap: FloatArray | None = None,
    ) -> None:
        """Plans again for the replicates `which`; see `urbe.agents.set_plan.Plan.update`.

        Args:
          radius: `(B, R)` psi, in [0, 2].
        """
        touched = np.ones(reward.shape, dtype=np.bool_) if touched is None else touched
        again = Again(self.made, touched, *self._leading)
        extra = Extra(
            np.zeros(reward.shape) if bonus is None else bonus,
            np.full(self.q.shape[1], np.inf) if cap is None else cap,
            self._sign,
        )
        data, values = PlanData(alpha, total, reward, radius), PlanValues(self.q, self.u, self.v, self.w)
        entry_reward, uncertain = self.model.rows.entry_reward, local_arrays(local, reward.shape)
        _plan(which, plan_model(self.model), entry_reward, data, uncertain, again, extra, values)
        self.made[which] = True

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name).copy() for name in ("q", "u", "v", "w", "made")}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in ("q", "u", "v", "w", "made"):
            setattr(self, name, np.array(state[name]))


def _rows_leading_to(model: MDP) -> tuple[IntArray, IntArray]:
    """`row[start[s] : start[s + 1]]` are the rows that list state s."""
    order = np.argsort(model.rows.successor, kind="stable")
    start = np.searchsorted(model.rows.successor[order], np.arange(model.n_states + 1))
    return start, model.rows.entry_row[order]


@njit(cache=True, nogil=True)
@named_after(sparse_sweep)
def _plan(which, model, entry_reward, data, uncertain, again, extra, values):
    entry_start, successor, row_start, row_state, gamma, longest = model
    alpha, total, reward, radius = data
    form, scale, reward_variance = uncertain
    made, touched, leading_start, leading_row = again
    bonus, cap, sign = extra
    q, u, v, w = values
    n_rows, n_states, horizon, layers = len(entry_start) - 1, len(row_start) - 1, q.shape[1], alpha.shape[1]
    dense = entry_reward is None and len(successor) == n_rows * n_states
    p, nu, hint = np.empty(len(successor)), np.empty(n_rows), np.zeros(n_rows, dtype=np.int64)
    answers = L1Answers(np.empty(n_rows), np.zeros(n_rows), np.zeros(n_rows))
    value, spread, carried = answers
    ready, stale = np.empty(n_rows, dtype=np.bool_), np.empty(n_rows, dtype=np.bool_)
    due, changed = np.empty(n_states, dtype=np.bool_), np.empty(n_states, dtype=np.int64)
    z, order = np.empty(n_states if dense else longest), np.arange(n_states)
    for b in which:
        beta2, of_touched = scale[b] * scale[b], touched[b]
        rows = L1Rows(entry_start, successor, p, radius[b], hint, z)
        n_changed = 0  # states whose V or W at the next step differs from the last plan's
        for h in range(horizon - 1, -1, -1):
            layer = h if layers > 1 else 0
            if h == horizon - 1 or layers > 1:
                ready[:] = False
            every = not made[b] or n_changed > MANY * n_states
            _mark(every, of_touched, changed[:n_changed], leading_start, leading_row, row_state, stale, due)
            _prepare(stale, ready, entry_start, alpha[b, layer], total[b, layer], form, beta2, p, nu)
            v_next, w_next = v[b, h + 1], w[b, h + 1]
            if dense:
                for s in range(n_states):
                    z[s] = sign * (gamma * v_next[s])
                sort_down(z, order)
                dense_sweep(stale, rows, order, w_next, sign, form >= 0, answers)
            else:
                sparse_sweep(stale, rows, entry_reward, gamma, v_next, w_next, sign, form >= 0, answers)
            for row in range(n_rows):
                if stale[row]:
                    x = value[row]
                    if entry_reward is None:
                        x += reward[b, row]
                    q[b, h, row] = min(x + bonus[b, row], cap[h])
                    u[b, h, row] = nu[row] + gamma * gamma * carried[row] + beta2 * reward_variance[b, row]
                    if form == CALIBRATED:
                        u[b, h, row] += beta2 * spread[row] / (total[b, layer, row] + 1.0)
            n_changed = 0
            for s in range(n_states):
                best = row_start[s]
                if best == row_start[s + 1] or not due[s]:
                    continue
                for row in range(best + 1, row_start[s + 1]):
                    if q[b, h, row] > q[b, h, best]:
                        best = row
                if v[b, h, s] != q[b, h, best] or w[b, h, s] != u[b, h, best]:
                    v[b, h, s], w[b, h, s] = q[b, h, best], u[b, h, best]
                    changed[n_changed] = s
                    n_changed += 1


@strict_function
def _mark(every, touched, changed, leading_start, leading_row, row_state, stale, due):
    """Marks rows to compute again, which were touched or lead to a changed state, and their states."""
    if every:
        stale[:] = True
        due[:] = True
        return
    stale[:] = touched
    for s in changed:
        for k in range(leading_start[s], leading_start[s + 1]):
            stale[leading_row[k]] = True
    due[:] = False
    for row in range(len(stale)):
        if stale[row]:
            due[row_state[row]] = True


@strict_function
def _prepare(stale, ready, entry_start, alpha, total, form, beta2, p, nu):
    """Computes mean probabilities, and the part of nu independent of values, for stale rows that are not ready."""
    for row in range(len(stale)):
        if not stale[row] or ready[row]:
            continue
        ready[row], feasible = True, 0.0
        for j in range(entry_start[row], entry_start[row + 1]):
            p[j] = alpha[j] / total[row]
            feasible += 1.0 if alpha[j] > 0.0 else 0.0
        nu[row] = 0.0
        if form == COUNT:
            nu[row] = beta2 / total[row]
        elif form == DIRICHLET:
            nu[row] = beta2 * (feasible - 1.0) / (total[row] + 1.0)
