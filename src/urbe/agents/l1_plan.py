"""Finite-horizon plans under a posterior with L1 balls, and their variance, for many replicates at once; compiled.

For h = H - 1, ..., 0, with p = alpha / N, and V = W = 0 after the last step and in terminal states:

    z_j    = r_j + gamma V_{h+1}(s'_j)
    Q_h    = min_{||x - p||_1 <= psi} x . z + bonus,      at most cap_h
    u_h    = nu + gamma^2 sum_j x*_j W_{h+1}(s'_j),       x* the minimiser
    V_h(s) = max_a Q_h(s, a),       W_h(s) = u_h(s, a*),  a* the first maximiser

One kernel serves every agent that plans ahead: psi = 0 is ordinary dynamic programming, a drawn kernel in the place of
alpha is posterior sampling, a bonus is optimism. Only what can have changed is computed again: rows whose posterior
moved, and rows with a successor whose V or W did. The result is that of a full plan, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from urbe.ambiguity.l1_search import stopping_value
from urbe.ambiguity.sweep import row_function
from urbe.mdp.model import MDP
from urbe.types import BoolArray, FloatArray, IntArray

MANY = 0.25
"""Share of changed states from which on all rows are computed again."""

COUNT, DIRICHLET, CALIBRATED = 0, 1, 2


class Local(NamedTuple):
    """The local uncertainty nu of a row.

    Attributes:
      form: COUNT is scale^2 / N, DIRICHLET scale^2 (K - 1) / (N + 1) for K feasible successors, CALIBRATED
        scale^2 Var[p . m] with m_j = min(z_j, tau), the sensitivity of the ball's worst case to its centre.
      scale: `(B,)`.
      reward: `(B, R)` variance of the reward, times scale^2 part of nu; None when rewards are known.
    """

    form: int
    scale: FloatArray
    reward: FloatArray | None = None


class Plan:
    """Values and variances of B replicates, kept from one plan to the next.

    Args:
      model: pairs, feasible successors, rewards and discount.
      horizon: H, steps of an episode.
      replicates: B.

    Attributes:
      q, u: `(B, H, R)` values of rows and their variances.
      v, w: `(B, H + 1, S)` the same of the greedy actions.
    """

    def __init__(self, model: MDP, horizon: int, replicates: int) -> None:
        self.model = model
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
        touched: BoolArray,
        *,
        local: Local | None = None,
        bonus: FloatArray | None = None,
        cap: FloatArray | None = None,
    ) -> None:
        """Plans again for the replicates `which`.

        Args:
          which: `(K,)` replicates.
          alpha: `(B, L, E)` concentrations; L is 1, or H when each step has its own.
          total: `(B, L, R)` their sums.
          reward: `(B, R)` expected rewards; not read where the model's rewards depend on the successor.
          radius: `(B, R)` psi, in [0, 2].
          touched: `(B, R)` rows whose posterior, reward, radius or bonus changed since their last plan.
          local: the local uncertainty; None leaves u at zero.
          bonus: `(B, R)` added to Q.
          cap: `(H,)` the most Q can be.
        """
        model, rows = self.model, self.model.rows
        none = np.zeros((1, 1))
        noise = None if local is None else local.reward
        _plan(
            which, self.made, rows.entry_start, rows.successor, rows.entry_reward, model.row_start, model.row_state,
            *self._leading, model.discount, rows.longest, alpha, total, reward, radius, touched,
            -1 if local is None else local.form, np.zeros(len(self.q)) if local is None else local.scale,
            none if noise is None else noise, none if bonus is None else bonus,
            np.zeros(0) if cap is None else cap, self.q, self.u, self.v, self.w,
        )  # fmt: skip
        self.made[which] = True

    def state(self) -> dict[str, Any]:
        """Everything that the next plan builds on."""
        return {name: getattr(self, name).copy() for name in ("q", "u", "v", "w", "made")}

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave."""
        for name in ("q", "u", "v", "w", "made"):
            setattr(self, name, np.array(state[name]))


def _rows_leading_to(model: MDP) -> tuple[IntArray, IntArray]:
    """`row[start[s] : start[s + 1]]` are the rows that list state s."""
    order = np.argsort(model.rows.successor, kind="stable")
    start = np.searchsorted(model.rows.successor[order], np.arange(model.n_states + 1))
    return start, model.rows.entry_row[order]


@njit(cache=True, nogil=True)
def _plan(  # type: ignore[no-untyped-def]
    which, made, entry_start, successor, entry_reward, row_start, row_state, leading_start, leading_row, gamma, longest,
    alpha, total, reward, radius, touched, form, scale, reward_variance, bonus, cap, q, u, v, w,
):  # fmt: skip
    n_rows, n_states, horizon = len(entry_start) - 1, len(row_start) - 1, q.shape[1]
    p, fixed = np.empty(len(successor)), np.empty(n_rows)
    z, above, hint = np.empty(longest), np.empty(longest), np.zeros(n_rows, dtype=np.int64)
    changed = np.empty(n_states, dtype=np.int64)  # states whose V or W differs from the last plan's
    stale_row, stale_state = np.empty(n_rows, dtype=np.bool_), np.empty(n_states, dtype=np.bool_)
    for b in which:
        n_changed = 0
        for h in range(horizon - 1, -1, -1):
            layer = h if alpha.shape[1] > 1 else 0
            if h == horizon - 1 or alpha.shape[1] > 1:
                _prepare(entry_start, alpha[b, layer], total[b, layer], form, scale[b], p, fixed)
                if reward_variance.shape[1] == n_rows:
                    fixed += scale[b] ** 2 * reward_variance[b]
            every = not made[b] or n_changed > MANY * n_states
            if not every:
                stale_row[:] = touched[b]
                for i in range(n_changed):
                    for k in range(leading_start[changed[i]], leading_start[changed[i] + 1]):
                        stale_row[leading_row[k]] = True
                stale_state[:] = False
            v_next, w_next = v[b, h + 1], w[b, h + 1]
            for row in range(n_rows):
                if not every:
                    if not stale_row[row]:
                        continue
                    stale_state[row_state[row]] = True
                value, spread, carried, hint[row] = _worst(
                    entry_start[row], entry_start[row + 1] - entry_start[row], p, successor, entry_reward, gamma,
                    v_next, w_next, 0.5 * radius[b, row], form >= 0, hint[row], z, above,
                )  # fmt: skip
                if entry_reward is None:
                    value += reward[b, row]
                if bonus.shape[1] == n_rows:
                    value += bonus[b, row]
                q[b, h, row] = min(value, cap[h]) if len(cap) else value
                u[b, h, row] = fixed[row] + gamma * gamma * carried
                if form == CALIBRATED:
                    u[b, h, row] += scale[b] ** 2 * spread / (total[b, layer, row] + 1.0)
            n_changed = 0
            for s in range(n_states):
                if row_start[s] == row_start[s + 1] or not (every or stale_state[s]):
                    continue
                best = row_start[s]
                for row in range(best + 1, row_start[s + 1]):
                    if q[b, h, row] > q[b, h, best]:
                        best = row
                if v[b, h, s] != q[b, h, best] or w[b, h, s] != u[b, h, best]:
                    v[b, h, s], w[b, h, s] = q[b, h, best], u[b, h, best]
                    changed[n_changed] = s
                    n_changed += 1


@row_function
def _prepare(entry_start, alpha, total, form, scale, p, fixed):  # type: ignore[no-untyped-def]
    """Mean probabilities, and the part of nu that does not depend on values."""
    for row in range(len(entry_start) - 1):
        feasible = 0.0
        for j in range(entry_start[row], entry_start[row + 1]):
            p[j] = alpha[j] / total[row]
            feasible += 1.0 if alpha[j] > 0.0 else 0.0
        fixed[row] = 0.0
        if form == COUNT:
            fixed[row] = scale * scale / total[row]
        elif form == DIRICHLET:
            fixed[row] = scale * scale * (feasible - 1.0) / (total[row] + 1.0)


@row_function
def _worst(a, n, p, successor, reward, gamma, v, w, moved, with_variance, hint, z, above):  # type: ignore[no-untyped-def]
    """Of the row at entries a, ..., a + n - 1: the worst case, Var_p[m], x* . w, and the entry where removal stops.

    That entry is tried first next time. The value does not depend on it: tau is the lowest value with at most `moved`
    above it, whichever way it was found.
    """
    for j in range(n):
        z[j] = gamma * v[np.uint32(successor[a + j])]
        if reward is not None:
            z[j] += reward[a + j]
    tau = z[hint] if moved > 0.0 else np.inf
    value, over, low, stop = 0.0, 0.0, np.inf, hint
    for attempt in range(2):
        value, over, level, low = 0.0, 0.0, 0.0, np.inf
        for j in range(n):
            value += p[a + j] * min(z[j], tau)
            over += p[a + j] if z[j] > tau else 0.0
            level += p[a + j] if z[j] == tau else 0.0
            low = min(low, z[j])
        if attempt == 1 or moved == 0.0 or (over <= moved and (over + level > moved or tau == low)):
            break
        tau, low = stopping_value(p[a : a + n], z[:n], moved, tau, above[:n])
        for j in range(n):
            stop = j if z[j] == tau else stop
    spread, carried = 0.0, 0.0
    if with_variance:
        left, taken, bottom = moved - over, 0.0, -1
        for j in range(n):
            spread += p[a + j] * (min(z[j], tau) - value) ** 2
            step = p[a + j] if z[j] > tau else 0.0
            if z[j] == tau and tau > low:
                step = min(max(left, 0.0), p[a + j])
                left -= step
            taken += step
            carried += (p[a + j] - step) * w[np.uint32(successor[a + j])]
            bottom = j if z[j] == low and bottom < 0 else bottom
        carried += taken * w[np.uint32(successor[a + bottom])]
    if moved > 0.0:
        value -= moved * (tau - low)
    return value, spread, carried, stop
