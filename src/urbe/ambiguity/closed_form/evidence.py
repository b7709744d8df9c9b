"""Bounds for certificates of norm balls: plain NumPy in extended precision, sharing nothing with the sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from urbe.ambiguity import evidence as proofs
from urbe.ambiguity.closed_form.nature import NormNature
from urbe.ambiguity.operator import PolicyRows, StepEvidence
from urbe.mdp.model import MDP
from urbe.mdp.rows import Rows
from urbe.types import BoolArray, FloatArray

ENTRY_ROUNDING = 2.0**-52
"""Rounding error of an entry of nature's rows, relative to itself and the model's."""

SUBNORMAL = 4.0 * 2.0**-1074
"""Rounding error of a subnormal entry."""

REWARD_ROUNDING = 2.0**-51
"""Rounding error of nature's rewards, relative to the model's."""


def evidence(
    mdp: MDP, nature: NormNature, shared: bool, modulus: float | None, kernel: Rows | None, optimal: bool
) -> StepEvidence:
    """Bounds from below by the penalty at a centre c, and from above by nature's kernel and rewards."""
    nothing = proofs.unproven(mdp.n_rows, 1.0)
    if modulus is not None:
        unproven = proofs.RowEvidence(
            nothing, proofs.unproven(mdp.n_rows, -1.0), np.full(mdp.n_rows, -np.inf), np.zeros(0, dtype=np.bool_)
        )
        failure = "kernels of this set may have negative probabilities, but bounds exist only for distributions."
        return proofs.over_rows(mdp, unproven, optimal)._replace(failure=failure)
    excess, outside, above = np.full(mdp.n_rows, -np.inf), np.zeros(mdp.n_rows, dtype=np.bool_), nothing
    actions = (proofs.unproven(mdp.n_rows, -1.0), nothing)
    if kernel is not None:
        excess, outside, back = _membership(mdp, nature, shared, kernel)
        if not outside.any():
            above, actions = _under(nature, kernel, back), (_under(nature, kernel, side=-1.0), _under(nature, kernel))

    def each(v: FloatArray) -> proofs.Extended:
        q, w, slack = _penalised(mdp, nature, v)
        return q - w - slack

    def below(v: FloatArray, policy: PolicyRows) -> proofs.Extended:
        return _below(mdp, nature, v, policy)

    found = proofs.over_rows(mdp, proofs.RowEvidence(above, each, excess, outside), optimal)
    return found._replace(below=below, rows=actions) if shared else found


def _penalised(
    mdp: MDP, nature: NormNature, v: FloatArray
) -> tuple[proofs.Extended, proofs.Extended, np.floating[Any]]:
    """`(R,)` Q and w with every kappa bounded by ||z - c||_q at one c for each row, and the rounding of both."""
    rows = nature.rows
    z = np.longdouble(nature.discount) * v.astype(np.longdouble)[rows.successor]
    if rows.entry_reward is not None:
        z = z + rows.entry_reward
    q = rows.row_reward + proofs.row_sums(rows, rows.probability * z)
    if nature.everywhere:
        whole = np.longdouble(nature.discount) * v.astype(np.longdouble)
        bound = np.full(rows.n_rows, _distance(whole[None, :], nature.norm)[0], dtype=np.longdouble)
    else:
        bound = np.zeros(rows.n_rows, dtype=np.longdouble)
        for length in np.unique(rows.length):
            alike = np.flatnonzero(rows.length == length)
            bound[alike] = _distance(z[rows.entry_start[alike][:, None] + np.arange(length)], nature.norm)
    w = nature.alpha + nature.beta * bound
    eps = proofs.mass_error(rows) + (rows.longest + mdp.n_actions + 16) * float(np.finfo(np.longdouble).eps)
    slack = eps * (proofs.largest_value(rows, nature.discount, v) + float(np.abs(w).max(initial=0.0)))
    return q, w, slack


def _below(mdp: MDP, nature: NormNature, v: FloatArray, policy: PolicyRows) -> proofs.Extended:
    """pi . Q - ||pi w||_q, if the actions of a state share the ball."""
    q, w, slack = _penalised(mdp, nature, v)
    taken, states = policy.share * w[policy.rows], mdp.row_state[policy.rows]
    loss = np.zeros(mdp.n_states, dtype=np.longdouble)
    if nature.norm == 1.0:
        np.maximum.at(loss, states, taken)
    else:
        np.add.at(loss, states, taken**2)
        loss = np.sqrt(loss)
    return np.where(mdp.terminal, 0.0, proofs.mean(mdp, q, policy) - loss - slack)


def _distance(z: proofs.Extended, norm: float) -> proofs.Extended:
    """`(k,)` min_c ||z - c||_q of each row of `(k, n)` numbers."""
    if norm == 1.0:
        centre = (z.max(axis=1) + z.min(axis=1)) / 2.0
    else:
        centre = z.mean(axis=1) if norm == 2.0 else np.sort(z, axis=1)[:, z.shape[1] // 2]
    apart = np.abs(z - centre[:, None])
    if norm == 2.0:
        return np.asarray(np.sqrt((apart**2).sum(axis=1)))
    return np.asarray(apart.max(axis=1) if norm == 1.0 else apart.sum(axis=1))


def _membership(
    mdp: MDP, nature: NormNature, shared: bool, kernel: Rows
) -> tuple[FloatArray, BoolArray, proofs.Extended]:
    """Computes how far a kernel and its rewards are outside the set, and how to bring them inside.

    Returns:
      `(R,)` how far each row has to move, its rewards relative to the largest, `(R,)` which rows are no evidence, and
      `(R,)` the weight of the model's own row that brings it inside its ball, or inside the budget that the actions
      share.
    """
    rows = nature.rows.with_all_states() if nature.everywhere else nature.rows
    if not np.array_equal(rows.successor, kernel.successor) or len(rows.reward) != len(kernel.reward):
        nowhere = np.full(mdp.n_rows, np.inf)
        return nowhere, np.ones(mdp.n_rows, dtype=np.bool_), nowhere
    moved = np.abs(kernel.probability.astype(np.longdouble) - rows.probability)
    rounded = ENTRY_ROUNDING * (np.abs(kernel.probability).astype(np.longdouble) + rows.probability) + SUBNORMAL
    moved = np.maximum(moved - rounded, 0.0)
    if nature.norm == np.inf:
        far = np.maximum.reduceat(moved, rows.entry_start[:-1])
    elif nature.norm == 1.0:
        far = proofs.row_sums(rows, moved)
    else:
        far = np.sqrt(proofs.row_sums(rows, moved**2))
    fallen = np.maximum(rows.reward.astype(np.longdouble) - kernel.reward - REWARD_ROUNDING * np.abs(rows.reward), 0.0)
    if rows.rewards_successors:
        fallen = np.maximum.reduceat(fallen, rows.entry_start[:-1])
    used = np.maximum(_share(far, nature.beta), _share(fallen, nature.alpha))
    if shared:
        power = 1.0 if nature.norm == 1.0 else 2.0
        total = np.zeros(mdp.n_states, dtype=np.longdouble)
        np.add.at(total, mdp.row_state, used**power)
        used = (total ** (1.0 / power))[mdp.row_state]
    back = np.where(used > 1.0, 1.0 - 1.0 / np.where(used > 1.0, used, 1.0), 0.0)
    apart = np.maximum(far, fallen / (rows.largest_reward or 1.0))
    excess, outside = proofs.membership(rows, kernel, (back * apart).astype(np.float64), np.full(mdp.n_rows, np.nan))
    return excess, outside, back


def _share(distance: proofs.Extended, radius: FloatArray) -> proofs.Extended:
    """distance / radius, infinite for a positive distance and radius zero."""
    nothing = np.where(distance > 0.0, np.inf, 0.0)
    return np.where(radius > 0.0, distance / np.where(radius > 0.0, radius, 1.0), nothing)


def _under(nature: NormNature, kernel: Rows, back: proofs.Extended | float = 0.0, side: float = 1.0) -> proofs.RowBound:
    """Bounds the value under nature's answer from one side, by rounding.

    Mixed with the model's row to lie in the set, with weight `back`, it bounds the minimum from above.
    """
    eps = proofs.mass_error(kernel) + (kernel.longest + 16) * float(np.finfo(np.longdouble).eps) + REWARD_ROUNDING
    eps += 4.0 * ENTRY_ROUNDING  # of the entries, whose sum is one in either row
    own = nature.rows
    nominal_z = own.entry_reward

    def bound(v: FloatArray) -> proofs.Extended:
        values = np.longdouble(nature.discount) * v.astype(np.longdouble)
        z = values[kernel.successor] + (0.0 if kernel.entry_reward is None else kernel.reward)
        answer = kernel.row_reward + proofs.row_sums(kernel, kernel.probability * z)
        z = values[own.successor] + (0.0 if nominal_z is None else nominal_z)
        nominal = own.row_reward + proofs.row_sums(own, own.probability * z)
        slack = eps * proofs.largest_value(own, nature.discount, v)
        return answer + np.maximum(nominal - answer, 0.0) * back + side * slack

    return bound
