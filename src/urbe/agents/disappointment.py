"""By how much a step fell short of the value planned for it; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from urbe.agents.l1_rows import sparse_sweep
from urbe.ambiguity.sweep import named_after
from urbe.mdp.model import MDP
from urbe.posteriors.beliefs import Visit
from urbe.types import FloatArray


def disappointment(
    model: MDP, visit: Visit, alpha: FloatArray, total: FloatArray, radius: FloatArray, v: FloatArray
) -> FloatArray:
    """`(K,)` min_{||x - p||_1 <= radius} x . z - z_j with z = r + gamma V_{h+1} and j the successor that came.

    Args:
      model: successors and their rewards, discount.
      visit: what was done, at which step h, and what came.
      alpha, total: `(B, 1, E)` and `(B, 1, R)`; p is `alpha / total`.
      radius: `(K,)`.
      v: `(B, H + 1, S)` planned values.
    """
    out, rows = np.empty(len(visit.row)), model.rows
    _fall_short(
        *visit, rows.entry_start, rows.successor, rows.entry_reward, model.discount, rows.longest, alpha, total, radius,
        v, out,
    )  # fmt: skip
    return out


@njit(cache=True, nogil=True)
@named_after(sparse_sweep)
def _fall_short(
    replicate, row, entry, step, entry_start, successor, reward, gamma, longest, alpha, total, radius, v, out
):
    p, z, nothing = np.zeros(len(successor)), np.empty(longest), np.zeros(v.shape[2])
    one, hint, unused = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.int64), np.zeros(1)
    for k in range(len(row)):
        b, first, last = replicate[k], entry_start[row[k]], entry_start[row[k] + 1]
        for j in range(first, last):
            p[j] = alpha[b, 0, j] / total[b, 0, row[k]]
        hint[0] = 0
        ahead = v[b, step[k] + 1]
        sparse_sweep(
            one, entry_start[row[k] : row[k] + 2], p, successor, reward, gamma, ahead, nothing, radius[k : k + 1], 1.0,
            False, hint, z, out[k : k + 1], unused, unused,
        )  # fmt: skip
        came = gamma * ahead[successor[entry[k]]]
        if reward is not None:
            came += reward[entry[k]]
        out[k] -= came
