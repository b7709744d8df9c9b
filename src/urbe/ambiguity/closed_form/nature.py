"""The penalty of norm balls for each row: one pass over the entries, and one number per row.

    Q(k) = r + p . z,      w(k) = alpha + beta kappa(z),      z_j = r(s, a, s'_j) + gamma v(s'_j)

If every state may receive mass, kappa is the same number for all rows, and a sweep costs as much as a nominal one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from urbe.ambiguity.closed_form.deviation import kappa, worst_deviation
from urbe.ambiguity.nature import exponent
from urbe.mdp.rows import Rows
from urbe.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NormNature:
    """Balls around rows.

    Args:
      rows: the model's rows, without zeros; they list every state if rewards and kernels are needed.
      discount: the model's discount.
      alpha: `(R,)` radius of the reward.
      beta: `(R,)` radius of the transition.
      norm: p of both balls, 1, 2 or inf.
      everywhere: whether every state may receive mass, rather than only the row's successors.
      free: whether the deviation of a row need not sum to zero.
    """

    rows: Rows
    discount: float
    alpha: FloatArray
    beta: FloatArray
    norm: float
    everywhere: bool
    free: bool

    def costs(self, v: FloatArray, shift: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """`(R,)` the nominal value of each row at the state values `v + shift`, and its penalty w."""
        rows = self.rows
        q, w = np.empty(rows.n_rows), np.empty(rows.n_rows)
        common = kappa(self.discount * v, self.norm, self.free, np.empty(len(v))) if self.everywhere else -1.0
        work = np.empty((2, rows.longest))
        _costs(
            rows.entry_start, rows.successor, rows.probability, rows.reward, rows.rewards_successors,
            self.discount * v, self.discount * shift, self.alpha, self.beta, self.norm, self.free, common, work, q, w,
        )  # fmt: skip
        return q, w

    def answer(self, v: FloatArray, share: FloatArray) -> Rows:
        """Returns nature's rows and rewards at v if it uses the share `(R,)` of both radii of each row."""
        rows = self.rows.with_all_states() if self.everywhere else self.rows
        probability, reward = rows.probability.copy(), rows.reward.copy()
        work = np.empty((2, rows.longest))
        w, entry_reward = self.discount * v, rows.entry_reward
        if k := exponent(w, entry_reward):  # means of numbers near the smallest have few digits
            w, entry_reward = np.ldexp(w, -k), None if entry_reward is None else np.ldexp(entry_reward, -k)
        _move(
            rows.entry_start, rows.successor, probability, entry_reward, w, share * self.beta,
            self.norm, self.free, work,
        )  # fmt: skip
        loss = share * self.alpha
        reward -= loss[rows.entry_row] if rows.rewards_successors else loss
        return replace(rows, probability=probability, reward=reward)

    def take(self, chosen: IntArray) -> NormNature:
        """Restricts nature to the rows `chosen`."""
        return replace(self, rows=self.rows.take(chosen), alpha=self.alpha[chosen], beta=self.beta[chosen])


@njit(cache=True, nogil=True)
def _costs(start, successor, p, reward, by_entry, z, shift, alpha, beta, norm, free, common, work, q, w):
    for row in range(len(start) - 1):
        a, n = start[row], start[row + 1] - start[row]
        total = 0.0
        for j in range(n):
            at = z[successor[a + j]] + (reward[a + j] if by_entry else 0.0)
            work[0, j] = at
            total += p[a + j] * at
        q[row] = (total if by_entry else reward[row] + total) + shift
        spread = common
        if common < 0.0:
            spread = kappa(work[0, :n], norm, free, work[1]) if beta[row] > 0.0 else 0.0
        w[row] = alpha[row] + beta[row] * spread


@njit(cache=True, nogil=True)
def _move(start, successor, p, reward, z, beta, norm, free, work):
    for row in range(len(start) - 1):
        a, n = start[row], start[row + 1] - start[row]
        if beta[row] > 0.0:
            for j in range(n):
                work[0, j] = z[successor[a + j]] + (0.0 if reward is None else reward[a + j])
            worst_deviation(work[0, :n], norm, free, work[1])
            for j in range(n):
                p[a + j] -= beta[row] * work[1, j]
